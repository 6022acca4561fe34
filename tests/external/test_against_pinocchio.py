"""Tree dynamics, constraint Jacobians and constrained accelerations against Pinocchio.

Found on the way, and pinned here: Pinocchio's CONTACT_3D and CONTACT_6D (reference frame LOCAL, joint 1 = our `a`,
joint 2 = our `b`) have exactly our rows and exactly our drift, for contacts and for internal loops, closed or not,
moving or not: both differentiate R_a^T (V_a - X V_b) for 6-D, and both compare the points' accelerations for 3-D.
"""

from __future__ import annotations

import numpy as np
import pytest

from helpers import assert_close, closed_at, col, cond, motion, random_model, random_state

pin = pytest.importorskip("pinocchio")

from pin_model import KINDS, closure, constraint_dynamics, se3, to_pinocchio  # noqa: E402
from pin_model import jacobian as pin_jacobian  # noqa: E402

import linkwork as lw  # noqa: E402
from linkwork.algorithms.constrained.kkt import kkt  # noqa: E402
from linkwork.algorithms.tree.aba import aba  # noqa: E402
from linkwork.algorithms.tree.crba import crba  # noqa: E402
from linkwork.algorithms.tree.energy import kinetic_energy, potential_energy  # noqa: E402
from linkwork.algorithms.tree.kinematics import frame_jacobian  # noqa: E402
from linkwork.algorithms.tree.momentum import centre_of_mass, momentum  # noqa: E402
from linkwork.algorithms.tree.rnea import rnea  # noqa: E402
from linkwork.constraints import jacobian  # noqa: E402

SEEDS = range(4)
ONE_OF_EACH = [pytest.param((7, 4, (k,)), id=k) for k in KINDS]
CASES = [*(pytest.param((s, 8, KINDS), id=f"mixed {s}") for s in SEEDS), *ONE_OF_EACH]


@pytest.fixture(params=CASES)
def pair(request):
    seed, n, kinds = request.param
    model = random_model(seed, n, kinds)
    return model, to_pinocchio(model), *random_state(model, seed)


def test_dynamics(pair):
    model, pm, q, v, x = pair
    m, data = motion(model, q, v), pm.createData()
    M = np.array(pin.crba(pm, data, q))
    assert_close(crba(m), np.triu(M) + np.triu(M, 1).T)
    rng = np.random.default_rng(0)
    f = rng.normal(size=(model.nlinks, 6))
    forces = pin.StdVec_Force()
    for wrench in (np.zeros(6), *f):
        forces.append(pin.Force(wrench))
    flat = col(f.ravel())
    assert_close(rnea(m, col(x), flat)[:, 0], pin.rnea(pm, data, q, v, x, forces), scale=10.0)
    assert_close(aba(m, col(x), flat)[:, 0], pin.aba(pm, data, q, v, x, forces), cond(M), scale=10.0)


def test_kinematics_energy_and_momentum(pair):
    model, pm, q, v, _ = pair
    m, data = motion(model, q, v), pm.createData()
    pin.forwardKinematics(pm, data, q, v)
    pin.computeJointJacobians(pm, data, q)
    for i in model.topology.links:
        R, p = m.poses[i]
        assert_close(R, data.oMi[i].rotation)
        assert_close(p[:, 0], data.oMi[i].translation)
        assert_close(m.V[i][:, 0], data.v[i].vector)
        J = pin.getJointJacobian(pm, data, i, pin.ReferenceFrame.LOCAL)
        assert_close(frame_jacobian(m, model.frame(model.links[i].name)), J)
    assert_close(centre_of_mass(m)[:, 0], pin.centerOfMass(pm, data, q))
    # not computeKineticEnergy, which leaves out the rotors of unaligned revolute and helical joints (Pinocchio 4.1)
    M = np.triu(pin.crba(pm, data, q))
    assert_close(kinetic_energy(m)[0, 0], v @ (M + np.triu(M, 1).T) @ v / 2)
    assert_close(potential_energy(m)[0, 0], pin.computePotentialEnergy(pm, data, q), scale=10.0)
    h = pin.computeCentroidalMomentum(pm, data, q, v)
    about_com = momentum(m)[:, 0]
    about_com[3:] -= np.cross(centre_of_mass(m)[:, 0], about_com[:3])
    assert_close(about_com, h.vector, scale=10.0)


def test_integrate_and_difference(pair):
    model, pm, q, v, _ = pair
    assert_close(model.integrate(q, v), pin.integrate(pm, q, v))
    other = model.random_q(99)
    assert_close(np.abs(model.difference(q, other)), np.abs(pin.difference(pm, q, other)), c=1e4)
    assert_close(model.neutral(), pin.neutral(pm))


@pytest.mark.parametrize("kind", ["fixed", "spherical"])
@pytest.mark.parametrize("other", ["world", "f4"])
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "open"])
@pytest.mark.parametrize("seed", range(3))
def test_contacts_and_loops(seed, closed, other, kind):
    model = random_model(seed, 6, KINDS, base="free")
    q, v, tau = random_state(model, seed)
    b = "meet" if closed else other
    model = closed_at(model, q, "f2", other, "meet").with_constraints(lw.Closure("f2", b, kind))
    pm = to_pinocchio(model)
    constraint = closure(model, pm, "f2", b, kind)
    J = jacobian(motion(model, q))
    assert_close(J, pin_jacobian(pm, [constraint], q))
    for speed in (v, v - np.linalg.pinv(J) @ (J @ v)):  # violating the constraint's velocity, and not
        m = motion(model, q, speed)
        a, lam = kkt(m, col(tau))
        theirs, data = constraint_dynamics(pm, [constraint], q, speed, tau)
        kappa = cond(J) ** 2 * cond(crba(m))
        assert_close(a[:, 0], theirs, kappa, scale=float(np.abs(lam).max()))
        assert_close(lam[:, 0], np.array(data.lambda_c), kappa, scale=float(np.abs(lam).max()))


@pytest.mark.parametrize(("seed", "rank"), [(0, 12), (1, 12), (2, 9), (3, 12)])
def test_several_constraints_at_once(seed, rank):
    """Rows that depend on each other are compared, accelerations only where they do not: Pinocchio has none there."""
    model = random_model(seed, 8, ("revolute", "spherical"), base="free")
    q, v, tau = random_state(model, seed)
    model = model.with_constraints(lw.surface("f3"), lw.point("f5"), lw.Connect("f6", "f1"))
    pm = to_pinocchio(model)
    both = [closure(model, pm, c.a, c.b, c.joint) for c in model.constraints]
    J = jacobian(motion(model, q))
    assert_close(J, pin_jacobian(pm, both, q))
    assert np.linalg.matrix_rank(J) == rank
    if rank == model.rows:
        a, _ = kkt(motion(model, q, v), col(tau))
        theirs, _ = constraint_dynamics(pm, both, q, v, tau)
        kappa = cond(J) ** 2 * cond(crba(motion(model, q)))
        assert_close(a[:, 0], theirs, kappa, scale=float(np.abs(a).max()))


def test_placements_are_the_same_thing():
    from linkwork.model import Placement

    x = Placement.at((1, 2, 3), (0.1, 0.2, 0.3))
    assert_close(x.R, pin.rpy.rpyToMatrix(0.1, 0.2, 0.3))
    assert_close((x @ x).p, (se3(x) * se3(x)).translation)
    assert_close(x.inverse().p, se3(x).inverse().translation)
