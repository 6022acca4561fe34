"""Springs and damping of joints that close loops: the same mechanism, cut elsewhere, moves alike."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import ModelError, StepWarning

RESISTS = {"damping": 0.7, "stiffness": 30.0, "rest": 0.4}
SIDE = 0.5


def ring(cut: str, slides: bool = False) -> lw.Model:
    """Three bars on the ground, closed to a four-bar; its last joint resists, in the tree or as the cut one.

    The neutral position is closed: three sides of a square, and the ground.
    """
    b = lw.Builder(f"ring cut at {cut}")
    bar = lw.BodyInertia(1.0, np.array([SIDE / 2, 0, 0]), 0.02 * np.eye(3))
    up = lw.Placement.at((0, 0, 0), (0, -np.pi / 2, 0))
    kind = "prismatic" if slides else "revolute"
    b.link("one", joint="revolute", axis="y", placement=up, inertia=bar)
    turn = lw.Placement.at((SIDE, 0, 0), (0, np.pi / 2, 0))
    b.link("two", "one", "revolute", axis="y", placement=turn, inertia=bar)
    b.frame("end of two", "two", turn)
    foot = lw.Placement.at((SIDE, 0, 0))
    if cut == "ground":
        b.link("three", "two", "revolute", axis="y", placement=turn, inertia=bar)
        b.frame("foot", "three", foot)
        b.frame("ground", "world", lw.Placement.at((SIDE, 0, 0), (0, np.pi / 2, 0)))
        b.constraints.append(lw.Closure("foot", "ground", kind, "x" if slides else "y", **RESISTS))
    else:
        at = lw.Placement.at((SIDE, 0, 0), (0, np.pi / 2, 0))
        axis = "x" if slides else "y"
        b.link("three", joint=kind, axis=axis, placement=at, inertia=bar.moved(foot.inverse()), **RESISTS)
        b.frame("start of three", "three", foot.inverse())
        b.constraints.append(lw.Closure("start of three", "end of two", "revolute", "y"))
    return b.build()


def same_state(slides: bool) -> tuple[tuple[lw.Model, np.ndarray, np.ndarray], ...]:
    """The two models, each with the configuration and velocity of the same motion."""
    inside, outside = ring("between", slides), ring("ground", slides)
    q, v = lw.random_state(outside, 3)
    near = inside.neutral()
    near[:2] = q[:2]
    p = lw.assemble(inside, near, locked=[l.joint_name for l in inside.links[1:3]])
    J = lw.constraint_jacobian(inside, backend="numpy")(p).J
    w = np.zeros(3)
    w[:2] = v[:2]
    w[2] = np.linalg.lstsq(J[:, 2:], -J[:, :2] @ v[:2], rcond=None)[0].item()
    assert np.abs(J @ w).max() < 1e-9
    return (inside, p, w), (outside, q, v)


@pytest.mark.parametrize("slides", [False, True])
def test_the_same_mechanism_cut_elsewhere(slides: bool) -> None:
    both = same_state(slides)
    (_, _, _), (outside, q, v) = both
    inside, found = (lw.forward_dynamics(m, method="kkt", backend="numpy")(x, y, np.zeros(3)).a for m, x, y in both)
    np.testing.assert_allclose(found[:2], inside[:2], rtol=1e-8, atol=1e-8)
    plain = lw.Closure("foot", "ground", "prismatic" if slides else "revolute", "x" if slides else "y")
    bare = outside.without_constraints().with_constraints(plain)
    assert outside.without_passive().constraints[0].describe() == plain.describe()
    assert not outside.without_passive().constraints[0].stiffness
    assert np.abs(lw.forward_dynamics(bare, method="kkt", backend="numpy")(q, v, np.zeros(3)).a - found).max() > 0.1
    for method in ("prox_ltl", "lcaba", None):
        compiled = lw.forward_dynamics(outside, method=method)(q, v, np.zeros(3)).a
        np.testing.assert_allclose(compiled, found, rtol=1e-6, atol=1e-6)


def test_derivatives_know_of_them() -> None:
    model = ring("ground")
    q, v = lw.random_state(model, 3)
    fd = lw.forward_dynamics(model, method="kkt")
    slope, h = fd.derivatives()(q, v, np.zeros(3)).da_dv, 1e-6
    for k, e in enumerate(np.eye(3)):
        ends = [fd(q, v + s * h * e, np.zeros(3)).a for s in (1, -1)]
        np.testing.assert_allclose(slope[:, k], (ends[0] - ends[1]) / (2 * h), atol=1e-5 * (1 + np.abs(slope).max()))


def test_motions_are_alike_and_what_they_take_is_no_error(recwarn) -> None:
    options = {"duration": 0.1, "method": "kkt", "backend": "numpy"}
    runs = [lw.simulate(m, q, v, integrator="rk4", **options) for m, q, v in same_state(False)]
    np.testing.assert_allclose(runs[0].q[:, :2], runs[1].q[:, :2], atol=1e-6)
    model, q, v = same_state(False)[1]
    lw.simulate(model, q, v, **options)
    assert not [w for w in recwarn if issubclass(w.category, StepWarning)]


def test_other_cut_joints_have_none() -> None:
    with pytest.raises(ModelError, match="revolute and prismatic"):
        lw.Closure("a", "b", "spherical", damping=1.0)
    assert lw.Closure("a", "b", "revolute", damping=1.0) != lw.Closure("a", "b", "revolute")
