"""Another origin of a free base: the same mechanism in the user's coordinates, in fewer operations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, col, cond, random_model, random_state
from linkwork.algorithms.constrained.kkt import kkt
from linkwork.algorithms.constrained.pv import pv
from linkwork.algorithms.tree.aba import aba
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.rows import jacobian
from linkwork.io.zoo import find
from linkwork.model import Motion
from linkwork.rewrite.base_origin import Based, based, operations_based
from linkwork.rewrite.frame_choice import choose
from linkwork.rewrite.frames import moved, operations, reframed
from linkwork.rewrite.inertia_lumping import lumped


def with_another_base(model):
    """Whether it pays or not."""
    W = choose(lumped(model), free_base=True)
    W[1] = lw.Placement(p=(0.3, -0.2, 0.5))
    return Based(lumped(moved(lumped(model), W)), W[1].p)


def solved(solve, model, new, seed):
    """(a, lam) of both mechanisms, in the coordinates of the first."""
    q, v, tau = (col(x) for x in random_state(model, seed))
    fext = np.random.default_rng(seed).normal(size=(6 * model.nlinks, 1))
    there = Motion(new.model, new.position(q, NUMPY), new.velocity(v, NUMPY), NUMPY)
    expected, found = solve(Motion(model, q, v, NUMPY), tau, fext), solve(there, new.force(tau, NUMPY), fext)
    M = lw.mass_matrix(model, backend="numpy")(q[:, 0])[0]
    if not model.constraints:
        return new.acceleration(found, NUMPY), expected, None, None, cond(M)
    J = jacobian(Motion(model, q, v, NUMPY))
    kappa = cond(M) * cond(J @ np.linalg.solve(M, J.T))
    return new.acceleration(found[0], NUMPY), expected[0], found[1], expected[1], kappa


@pytest.mark.parametrize("seed", range(6))
def test_accelerations_are_the_users(seed):
    model = random_model(seed, 7, base="free")
    a, a0, _, _, kappa = solved(aba, model, with_another_base(model), seed)
    assert_close(a, a0, kappa)


@pytest.mark.parametrize("solve", [kkt, pv])
@pytest.mark.parametrize("seed", range(3))
def test_constraint_forces_are_the_users(seed, solve):
    """With stabilisation, which sees positions."""
    model = random_model(seed, 7, ("revolute", "spherical"), base="free")
    steady = lw.Stabilisation(period=1.0)
    model = model.with_constraints(lw.point("f4", stabilisation=steady), lw.point("f6", stabilisation=steady))
    a, a0, lam, lam0, kappa = solved(solve, model, with_another_base(model), seed)
    assert_close(a, a0, kappa)
    assert_close(lam, lam0, kappa)


def test_there_must_be_one_free_base():
    assert based(random_model(1, 4, ("revolute",))) is None


@pytest.mark.parametrize(("name", "at_most"), [("go1", 2900), ("atlas", 6310), ("talos", 8120)])
def test_operations_of_robots(name, at_most):
    """3529, 7173 and 9060 in their files' frames; conversions are counted."""
    try:
        find(name)
    except lw.LinkworkError:
        pytest.skip(f"{name} is not installed")
    model = lw.load(name, passive=False)
    found = based(model)
    assert found is not None
    assert operations_based(found) <= min(at_most, operations(reframed(model)) - 1)


def test_kernels_convert_and_only_the_base_moves():
    """Free joints further out keep their origins; the base's rotor inertia belongs to the user's origin."""
    for armature in (False, True):
        model = random_model(5, 4, ("free", "revolute"), base="free", armature=armature)
        q, v, tau = random_state(model, 5)
        both = [lw.forward_dynamics(model, method="aba", backend=b) for b in ("kernel", "numpy")]
        found, expected = (f(q, v, tau).a for f in both)
        kappa = cond(lw.mass_matrix(model, backend="numpy")(q).M)
        assert_close(found, expected, kappa, scale=float(np.abs(expected).max()))
    turning = random_model(5, 4, ("free",))
    turning = replace(
        turning, links=(turning.links[0], replace(turning.links[1], armature=np.full(6, 0.3)), *turning.links[2:])
    )
    assert based(turning) is None
