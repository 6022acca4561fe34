"""Derivatives against Pinocchio's, on random trees and on robots: of rnea, aba, and constrained dynamics."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import assert_close, cond, motion, random_model, random_state

pin = pytest.importorskip("pinocchio")

from pin_model import KINDS, closure, to_pinocchio  # noqa: E402

import linkwork as lw  # noqa: E402
from linkwork.algorithms.tree.crba import crba  # noqa: E402
from linkwork.constraints import jacobian  # noqa: E402
from linkwork.errors import LinkworkError  # noqa: E402

TREES = [k for k in KINDS if k != "cylindrical"]  # a composite joint there, whose derivatives Pinocchio 4.1 lacks
ROBOTS = ("ur5", "panda", "iiwa", "go1", "solo12", "anymal", "icub_reduced", "talos_reduced", "mit_humanoid.urdf")


def tree(name):
    if isinstance(name, int):
        return random_model(name, 8, TREES)
    base = None if name in ("ur5", "panda", "iiwa") else "free"
    try:
        return lw.load(name, base=base, passive=False).without_constraints()
    except LinkworkError as problem:
        pytest.skip(str(problem))


@pytest.mark.parametrize("name", [0, 1, 2, *ROBOTS])
def test_trees(name):
    model = tree(name)
    pm = to_pinocchio(model)
    q, v, x = random_state(model, 1)
    M = crba(motion(model, q))
    d = lw.inverse_dynamics(model, backend="numpy").derivatives()(q, v, x)
    data = pm.createData()  # its matrices are views
    theirs = [np.array(y) for y in pin.computeRNEADerivatives(pm, data, q, v, x)]
    for mine, other in zip(d[:2], theirs[:2], strict=True):
        assert_close(mine, other, scale=float(np.abs(other).max()) * 10)
    assert_close(d.dtau_da, M, scale=float(np.abs(M).max()))

    d = lw.forward_dynamics(model, backend="numpy").derivatives()(q, v, x)
    data = pm.createData()
    dq, dv, dtau = (np.array(y) for y in pin.computeABADerivatives(pm, data, q, v, x))
    dtau = np.triu(dtau) + np.triu(dtau, 1).T
    for mine, other in zip((d.da_dq, d.da_dv, d.da_dtau), (dq, dv, dtau), strict=True):
        assert_close(mine, other, cond(M), scale=float(np.abs(other).max()))


@pytest.mark.parametrize("kind", ["fixed", "spherical"])
@pytest.mark.parametrize("frames", [("f3",), ("f3", "f5")])
@pytest.mark.parametrize("seed", range(2))
def test_contacts(seed, frames, kind):
    model = random_model(seed, 7, ("revolute", "spherical"), base="free")
    q, v, tau = random_state(model, seed)
    model = model.with_constraints(*(lw.Closure(f, "world", kind) for f in frames))
    pm = to_pinocchio(model)
    cs = [closure(model, pm, f, "world", kind) for f in frames]
    J = jacobian(motion(model, q))
    W = np.linalg.solve(np.linalg.cholesky(crba(motion(model, q))), J.T)
    if np.linalg.svd(W, compute_uv=False)[-1] < 1e-2:
        pytest.skip("these contacts are nearly redundant")
    data, datas = pm.createData(), [c.createData() for c in cs]
    pin.initConstraintDynamics(pm, data, cs, datas)
    settings = pin.ProximalSettings(1e-14, 1e-12, 20)
    pin.constraintDynamics(pm, data, q, v, tau, cs, datas, settings)
    pin.computeConstraintDynamicsDerivatives(pm, data, cs, datas, settings)
    r = lw.forward_dynamics(model, backend="numpy", method="prox_ltl").derivatives()(q, v, tau)
    kappa = cond(J) ** 2 * cond(crba(motion(model, q)))
    pairs = [
        (r.da_dq, data.ddq_dq),
        (r.da_dv, data.ddq_dv),
        (r.da_dtau, data.ddq_dtau),
        (r.dlam_dq, data.dlambda_dq),
        (r.dlam_dv, data.dlambda_dv),
        (r.dlam_dtau, data.dlambda_dtau),
    ]
    scale = max(float(np.abs(x).max()) for _, x in pairs)
    for mine, other in pairs:
        assert_close(mine, other, kappa, scale=scale)
