"""Results are right, or say that they are not: joints held on the world, weak and redundant rows, any size, float32."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import linkwork as lw
from helpers import col, motion
from linkwork.algorithms import registry
from linkwork.algorithms.common.iteration import Prox
from linkwork.algorithms.constrained.kkt import joint_space, kkt
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.errors import ConvergenceWarning, SingularError, UnsupportedError
from linkwork.robots import mechanisms as mech

FD = registry.methods("forward_dynamics")
HARD = [m for m in FD.values() if m.rows != "none" and not m.soft and m.name != "kkt"]
ITERATED = [m for m in HARD if m.prox is not None]
LOOPS = [m for m in ITERATED if m.rows == "any"]
DIRECT = [m for m in HARD if m.prox is None and not m.local and not m.reference]


def named(method):
    return method.name


def solved(model, method, q, v, tau, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return lw.forward_dynamics(model, method=method, backend="numpy", **options)(q, v, tau)


def exact(model, q, v, tau):
    return kkt(motion(model, q, v), col(tau))[0][:, 0]


def off(result, right) -> float:
    return float(np.abs(result.a - right).max() / np.abs(right).max())


# joints that hang on the world


@pytest.mark.parametrize("method", HARD, ids=named)
def test_a_joint_that_hangs_on_the_world_is_held(method):
    """A coupling without other joints holds one where it is."""
    model = mech.chain(1)
    model = model.with_constraints(lw.Coupling(model.links[1].joint_name, {}))
    q = model.random_q(1)
    result, m = solved(model, method.name, q, np.zeros(1), np.array([3.0])), motion(model, q, np.zeros(1))
    free = abs(np.linalg.solve(crba(m), 3.0 - rnea(m, None)).item())
    assert free > 0.1
    assert np.abs(result.a).max() <= 1e-9 * free
    assert solved(model, None, q, np.zeros(1), np.array([3.0])).converged


@pytest.mark.parametrize("method", HARD, ids=named)
def test_an_arm_with_its_first_joint_held_in_contact(method):
    model = mech.chain(12)
    tip = model.links[-1].name
    model = model.with_constraints(lw.Coupling(model.links[1].joint_name, {}), lw.point(tip))
    rng = np.random.default_rng(0)
    q, v, tau = model.random_q(2), rng.normal(size=12), rng.normal(size=12)
    assert off(solved(model, method.name, q, v, tau), exact(model, q, v, tau)) < 1e-8


@pytest.mark.parametrize("name", [m.name for m in FD.values() if m.soft])
def test_soft_rows_hold_a_joint_on_the_world(name):
    model = mech.chain(3)
    model = model.with_constraints(lw.Coupling(model.links[1].joint_name, {}))
    q, tau = model.random_q(1), np.array([2.0, 0.5, 0.3])
    stiff = lw.forward_dynamics(model, method=name, R=1e-9, backend="numpy")(q, np.zeros(3), tau)
    assert off(stiff, exact(model, q, np.zeros(3), tau)) < 1e-6


# near-singular postures


@cache
def flat(size: float) -> tuple[lw.Model, float]:
    """A parallelogram, and the angle at which it lies flat; its neutral posture is some angle from that."""
    model = mech.four_bar(size, size / 2, size, size / 2)

    def weakness(t: float) -> float:
        m = motion(model, np.array([t, -t, t]), np.zeros(3))
        W = np.linalg.solve(np.linalg.cholesky(crba(m)), joint_space(m)[0].T)
        s = np.linalg.svd(W, compute_uv=False)
        return float(s[1] / s[0])

    angles = np.linspace(-3.2, 3.2, 801)
    middle = float(angles[np.argmin([weakness(t) for t in angles])])
    low, high = middle - 0.02, middle + 0.02
    for _ in range(90):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if weakness(a) < weakness(b) else (a, high)
    return model, (low + high) / 2


def flat_four_bar(size: float, angle: float) -> tuple[lw.Model, np.ndarray, np.ndarray]:
    """A parallelogram so near to lying flat, moving."""
    model, t = flat(size)
    t = t + angle
    return model, np.array([t, -t, t]), np.array([1.0, -1.0, 1.0])


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("angle", [1e-2, 1e-4, 1e-5, 1e-7, 1e-8])
def test_four_bars_near_flat_of_any_size(size, angle):
    """Down to 1e-4 rad every method is right to 1e-6, the default to 1e-5; below, it is or says that it is not."""
    model, q, v = flat_four_bar(size, angle)
    tau = np.array([0.3, -0.2, 0.5]) * size**2
    right = exact(model, q, v, tau)
    for method in (m for m in ITERATED if m.refusal(model) is None):
        result = solved(model, method.name, q, v, tau)
        assert off(result, right) < 1e-6 or (angle < 1e-4 and not result.converged), method.name
    result = solved(model, None, q, v, tau)
    assert off(result, right) < 1e-6 or (angle < 1e-5 and not result.converged)


def test_trees_of_four_bars_by_default():
    """Loops on loops: the planner does not take what does not converge."""
    bar = mech.four_bar(0.5, 0.2, 0.5, 0.25)
    carrier = bar.links[-1].name
    model = lw.combine(
        bar, lw.Part(bar, "b/", to=carrier), lw.Part(bar, "c/", to=f"b/{carrier}"), lw.Part(bar, "d/", to=carrier)
    )
    fd = lw.forward_dynamics(model)
    for seed in range(6):
        q, v = lw.random_state(model, seed)
        result = fd(q, v, np.ones(model.nv))
        assert result.converged
        assert off(result, exact(model, q, v, np.ones(model.nv))) < 1e-6


@pytest.mark.parametrize("bend", [1e-1, 1e-3, 1e-5])
def test_a_welded_arm_near_its_singular_posture_by_default(bend):
    """Six joints and six rows, the elbow nearly stretched: as right as a direct solve."""
    model = mech.arm()
    model = model.with_constraints(lw.surface(model.links[-1].name))
    q = np.full(model.nv, 0.4)
    q[3 if model.nv == 7 else 2] = bend
    v, tau = np.linspace(-1, 1, model.nv), np.linspace(1, 2, model.nv)
    result = solved(model, None, q, v, tau)
    assert result.converged
    assert off(result, exact(model, q, v, tau)) < 1e-6


def stretched_arm(size: float, bend: float, torques: float) -> tuple[lw.Model, list[np.ndarray]]:
    """A trunk on its sole, with a hand that holds on to the world, the elbow so far from stretched; q, v, tau."""
    b = lw.Builder("stretched arm")
    trunk = lw.BodyInertia(10.0, size * np.array([0, 0, 0.3]), size**2 * np.diag([0.3, 0.3, 0.1]))
    part = lw.BodyInertia(1.0, size * np.array([0.15, 0, 0]), size**2 * np.diag([0.001, 0.01, 0.01]))
    shoulder, elbow = (lw.Placement.at(size * np.array(p)) for p in ((0, 0.2, 0.4), (0.3, 0, 0)))
    b.link("trunk", joint="free", inertia=trunk)
    b.link("shoulder", "trunk", joint="revolute", axis="z", placement=shoulder, inertia=part)
    b.link("upper arm", "shoulder", joint="revolute", axis="y", inertia=part)
    b.link("forearm", "upper arm", joint="revolute", axis="y", placement=elbow, inertia=part)
    b.frame("sole", "trunk", lw.Placement.at(size * np.array([0.05, 0.02, -0.5])))
    b.frame("hand", "forearm", elbow)
    model = b.build().with_constraints(lw.surface("sole"), lw.point("hand"))
    rng, q = np.random.default_rng(1), model.neutral()
    q[-3:] = 0.2, 0.3, bend
    v, tau = rng.normal(size=(2, model.nv))
    lengths = np.repeat([size, 1.0], [3, 6])
    return model, [q, v * lengths, tau * torques * size**2 / lengths]


@pytest.mark.parametrize("name", ["prox_pv", "prox_ltl", "prox_bbo", "pv_early", "lcaba", None])
@pytest.mark.parametrize(("size", "bend", "torques"), [(1.0, 1e-5, 1.0), (0.01, 0.01, 1e4), (100.0, 1e-5, 1e3)])
def test_a_sole_and_a_hand_beside_a_stretched_arm(name, size, bend, torques):
    """Errors were those of multipliers, in a nearly redundant direction less than those of the accelerations: 7e-6 off.

    And angles, which accelerate the more the smaller a robot is, hid errors of its points: 2e-6 off with hard motors.
    """
    model, state = stretched_arm(size, bend, torques)
    for sign in (1.0, -1.0, 0.5):
        q, v, tau = state[0], sign * state[1], state[2] * sign
        result = solved(model, name, q, v, tau)
        assert off(result, exact(model, q, v, tau)) < 1e-6 or not result.converged
        assert result.converged or name is not None


@pytest.mark.parametrize("name", ["prox_pv", "prox_ltl"])
def test_large_penalties_hide_no_weak_directions(name):
    """Penalties of 1e10 hardly stretch steps at singular values of 1e-5: 1.7e-6 off, by default 1.4e-6."""
    model, (q, *_) = stretched_arm(1.0, 3e-5, 1e5)
    for seed in range(5, 9):
        v, tau = np.random.default_rng(seed).normal(size=(2, model.nv)) * [[1.0], [1e5]]
        result, m = solved(model, name, q, v, tau), motion(model, q, v)
        free, right = np.linalg.solve(crba(m), col(tau) - rnea(m, None))[:, 0], exact(model, q, v, tau)
        error = np.abs(result.a - right).max() / max(np.abs(free).max(), np.abs(right).max())
        assert error < 1e-6 or not result.converged


@pytest.mark.parametrize("name", ["prox_pv", "prox_ltl"])
def test_errors_are_those_of_the_accelerations_that_are_solved_for(name):
    """And not of what follows: velocities after an impact, accelerations of a base whose origin was moved."""
    model, (_, v, _) = stretched_arm(1.0, 0.5, 1.0)
    assert lw.impulse(model, method=name, backend="numpy")(model.random_q(0), v).residual < 1e-8


@pytest.mark.parametrize("ratio", [1000.0, -1000.0, 0.001])
@pytest.mark.parametrize("parent", ["world", "first"])
def test_a_small_mechanism_locked_through_a_gear_by_default(parent, ratio):
    """Links of 2 mm: terms of a gear of 1000 hid errors of the point that locks it, 2e-6 of the accelerations."""
    size, b = 0.002, lw.Builder("gear")
    part = lw.BodyInertia(1e-3, size * np.array([0.3, 0.1, 0.02]), 1e-3 * size**2 * np.diag([0.1, 0.2, 0.3]))
    b.link("first", joint="revolute", axis="y", inertia=part)
    b.link("second", parent, joint="revolute", axis="y", placement=lw.Placement.at((size, 0, 0)), inertia=part)
    b.frame("tip", "second", lw.Placement.at((size, 0, 0.2 * size)))
    model = b.build().with_constraints(lw.Coupling("second_joint", {"first_joint": ratio}), lw.point("tip"))
    fd, rng = lw.forward_dynamics(model, backend="numpy"), np.random.default_rng(1)
    for _ in range(12):
        q, tau = rng.uniform(-2, 2, 2), 1e-3 * size * rng.normal(size=2)
        result, m = fd(q, np.zeros(2), tau), motion(model, q)
        free = np.linalg.solve(crba(m), tau - rnea(m, None)[:, 0])
        assert result.converged
        assert np.abs(result.a).max() < 1e-6 * np.abs(free).max()  # nothing can move


# penalties and residuals


@pytest.mark.parametrize("method", LOOPS, ids=named)
def test_the_residual_is_that_of_all_rows_whatever_the_penalty(method):
    model, q, v = flat_four_bar(1.0, 0.5)
    J, k = joint_space(motion(model, q, v))
    for mu in (1e-12, 1e-3, 1e3):
        result = solved(model, method.name, q, v, np.array([1.0, 2.0, 3.0]), prox=Prox(mu, max_iterations=2))
        said, left = result.residual, np.abs(J @ result.a[:, None] - k).max()
        assert abs(said - left) <= 1e-6 * left + 1e-9, (mu, said, left)
        assert result.converged == (left < 1e-9) or method.local


@pytest.mark.parametrize("mass", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("size", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("method", LOOPS, ids=named)
def test_penalties_scale_with_the_mechanism(method, mass, size):
    """The same gripper, its masses and lengths times any number: as many solves, as many digits."""
    model, q, v = flat_four_bar(size, 0.3)
    links = tuple(
        replace(l, inertia=lw.BodyInertia(l.inertia.mass * mass, l.inertia.com, l.inertia.I * mass))
        for l in model.links
    )
    model = replace(model, links=links)
    tau = mass * size**2 * np.array([0.3, -0.2, 0.5])
    result = solved(model, method.name, q, v, tau)
    assert result.converged
    assert result.iterations <= 4
    assert off(result, exact(model, q, v, tau)) < 1e-7


def test_what_has_not_converged_warns_and_says_so():
    """Rows that contradict each other: least squares, and neither converged nor silent."""
    model = mech.chain(3)
    held = [
        lw.Coupling(model.links[1].joint_name, {}, offset=x, stabilisation=lw.Stabilisation(0.1), name=f"at {x}")
        for x in (0.1, 0.2)
    ]
    model = model.with_constraints(*held)
    fd = lw.forward_dynamics(model, method="constrained_aba")
    with pytest.warns(ConvergenceWarning, match=r"constrained_aba has not converged.*contradict"):
        result = fd(np.zeros(3), np.zeros(3), np.zeros(3))
    assert not result.converged
    assert result.residual > 1
    assert off(result, exact(model, np.zeros(3), np.zeros(3), np.zeros(3))) < 1e-6


@pytest.mark.parametrize("method", ITERATED, ids=named)
@pytest.mark.parametrize("tau", [[3.0, 1.0], [1e-3, 0.0], [0.0, 0.0]], ids=str)
def test_what_cannot_move_has_converged(method, tau):
    """Rows that nothing but joint forces pulls, and that are met to rounding: all their terms are rounding, too."""
    from linkwork.model import BodyInertia, Builder, Placement

    body, x = BodyInertia(1.0, np.array([0.2, 0.1, 0.3]), 0.1 * np.eye(3)), np.array([0.3, 0.0, 0.0])
    b = Builder("held", gravity=np.zeros(3))
    b.link("slider", "world", lw.joints.make("prismatic", axis="x"), inertia=body)
    b.link("arm", "slider", lw.joints.make("revolute", axis="z"), inertia=body, placement=Placement(np.eye(3), x))
    b.frame("tip", "arm", Placement(np.eye(3), np.array([0.5, 0.2, 0.0])))
    model = b.build().with_constraints(lw.surface("tip"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        f = lw.forward_dynamics(model, method=method.name, backend="numpy")
        result = f(np.array([0.3, 0.7]), np.zeros(2), np.array(tau))
    assert result.converged
    assert np.abs(result.a).max() <= 1e-9 * max(tau)


# direct methods


@pytest.mark.parametrize("method", DIRECT, ids=named)
@pytest.mark.parametrize("backend", ["numpy", "casadi", "kernel"])
def test_dependent_rows_are_an_error_of_direct_methods(method, backend):
    """A tip that is held twice."""
    model = mech.chain(7)
    model = model.with_constraints(lw.surface("linktip"), lw.surface("linktip", name="again"))
    with pytest.raises(SingularError, match="depend on each other"):
        lw.forward_dynamics(model, method=method.name, backend=backend)(model.random_q(0), np.ones(7), np.ones(7))


@pytest.mark.parametrize("method", DIRECT, ids=named)
def test_no_false_alarm_where_only_a_limb_is_singular(method):
    """Stretched legs cannot lift their feet while the hip rests, but the hip moves: the rows are independent."""
    model = mech.quadruped()
    model = model.with_constraints(*(lw.point(f) for f in [n for n in model.frames if "foot" in n][:3]))
    q = model.neutral()
    J = joint_space(motion(model, q, np.zeros(model.nv)))[0]
    if np.linalg.matrix_rank(J, tol=1e-9) < J.shape[0]:
        pytest.skip("this quadruped's neutral posture is singular as a whole")
    right = exact(model, q, np.zeros(model.nv), np.ones(model.nv))
    for backend in ("numpy", "kernel"):
        fd = lw.forward_dynamics(model, method=method.name, backend=backend)
        result = fd(q, np.zeros(model.nv), np.ones(model.nv))
        assert off(result, right) < 1e-8
        assert result.converged


@pytest.mark.parametrize("name", ["pv", "bbo", "ltl", "prox_pv", "constrained_aba", "kkt"])
def test_a_row_that_is_rounding_is_none(name):
    """A rod whose line passes through the hinge that it would turn: J is 1e-16, and so is nothing else."""
    b = lw.Builder()
    body = lw.BodyInertia(1.4, np.array([0.3, 0.1, 0.0]), np.diag([1.0, 1.2, 2.0]))
    b.link("bar", "world", "revolute", inertia=body)
    b.frame("end", "bar", lw.Placement(p=[0.7, 0.0, 0.0]))
    model = b.build().with_constraints(lw.Distance("end", "world", 0.7))
    q, tau = np.array([1.1]), np.array([2.0])
    free = lw.forward_dynamics(model.without_constraints(), backend="numpy")(q, np.zeros(1), tau).a
    if FD[name].prox is None and name != "kkt":
        with pytest.raises(SingularError):
            solved(model, name, q, np.zeros(1), tau)
    else:
        assert np.allclose(solved(model, name, q, np.zeros(1), tau).a, free, rtol=1e-9)


# clusters


@pytest.mark.parametrize("seed", [3, 32])
@pytest.mark.parametrize("method", [m for m in HARD if m.local], ids=named)
def test_forces_and_accelerations_of_clusters_satisfy_the_equation_of_motion(method, seed):
    model = mech.random_mechanism(seed, 9)
    q, v = lw.random_state(model, 0)
    tau = np.random.default_rng(seed).normal(size=model.nv)
    m = motion(model, q, v)
    try:
        result = solved(model, method.name, q, v, tau)
    except SingularError:
        return  # it says that it is not
    J, _ = joint_space(m)
    left = crba(m) @ result.a[:, None] + rnea(m, None) - col(tau) - J.T @ result.lam[:, None]
    size = np.abs(crba(m)).max() * np.abs(result.a).max() + np.abs(J.T @ result.lam[:, None]).max()
    assert np.abs(left).max() < 1e-8 * size or not result.converged
    assert off(result, exact(model, q, v, tau)) < 1e-6 or not result.converged


def test_an_embedded_loop_of_another_rank_is_not_hidden():
    """A cluster of which more rows count than in the postures that it was made for gives no numbers."""
    from linkwork.algorithms.common.certificates import kept
    from linkwork.structure.clusters import clusters

    model, q, v = flat_four_bar(1.0, 0.5)
    model = model.with_constraints(replace(model.constraints[0], name="again"))
    tree, m = clusters(model), motion(model, q, v)
    right = exact(model, q, v, np.ones(3))[:, None]
    assert any(len(rows) > len(columns) for c in tree.clusters for rows, columns in c.blocks)
    assert kept(m, tree, right) == 0
    assert np.isnan(kept(m, tree, right + np.abs(right).max() * np.array([[0.0], [0.1], [0.3]])))


def spread_arms() -> lw.Model:
    """Two arms on a pendulum whose tips a spherical closure ties together, where they need not be at one point."""
    from linkwork.model import BodyInertia, Builder, Placement

    body, x = BodyInertia(1.0, np.array([0.2, 0.0, 0.0]), 0.1 * np.eye(3)), np.array([1.0, 0.0, 0.0])
    b = Builder("arms")
    b.link("carrier", "world", lw.joints.make("revolute", axis="y"), inertia=body)
    for name, side in (("left", 0.3), ("right", -0.3)):
        b.link(name, "carrier", lw.joints.make("spherical"), placement=Placement(np.eye(3), side * x), inertia=body)
        b.frame(f"{name}_tip", name, Placement(np.eye(3), x))
    return b.build().with_constraints(lw.Connect("left_tip", "right_tip"), lw.point("left"))


@pytest.mark.parametrize("backend", ["numpy", "kernel"])
@pytest.mark.parametrize("method", ["c_efpa", "c_pv", "projected_efpa", "projection"])
def test_delassus_matrices_of_clusters_in_open_postures(method, backend):
    """Two points that are apart are turned about each other by what carries them, which clusters take for granted."""
    model = spread_arms()
    f = lw.delassus(model, method=method, backend=backend)
    closed = lw.assemble(model, model.random_q(2), only=["left_tip~right_tip"])
    for q in (model.neutral(), model.random_q(1), closed):
        m = motion(model, q, np.zeros(model.nv))
        J, _ = joint_space(m)
        W = np.linalg.solve(np.linalg.cholesky(crba(m)), J.T)
        W = W[:, 3:] - W[:, :3] @ np.linalg.lstsq(W[:, :3], W[:, 3:], rcond=None)[0]
        np.testing.assert_allclose(f(q).matrix, W.T @ W, atol=1e-9 * np.abs(W.T @ W).max())


def test_compiled_kkt_asks_numpy_where_its_trace_finds_no_solution():
    """A tip held twice, the same way or in conflict: least squares, as NumPy has it; so do states beside it."""
    q, v, tau = np.full((2, 4), 0.4), np.zeros((2, 4)), np.array([[1.0, 0, 0, 0], [0, 2.0, 0, 0]])
    for k in (1.0, 3.0):
        rows = [lw.LinkRows({"link4": np.eye(6)[:3]}, (x, 0.0, 0.0), name=f"{n}") for n, x in enumerate((1.0, k))]
        model = mech.chain(4).with_constraints(*rows)
        result = lw.forward_dynamics(model, method="kkt")(q, v, tau)
        for a, t in zip(result.a, tau, strict=True):
            right = exact(model, q[0], v[0], t)
            assert np.abs(a - right).max() <= 1e-9 * np.abs(right).max()


@pytest.mark.parametrize("make", [lw.forward_dynamics, lw.impulse])
def test_kkt_is_refused_in_float32(make):
    """Seven digits do not tell redundant rows from conflicting ones (fuzzing, seed 701420)."""
    with pytest.raises(UnsupportedError, match="float64 only"):
        make(mech.four_bar(), method="kkt", dtype="float32")


# float32

ROBOTS = {
    "humanoid": lambda: mech.humanoid(hands=False).with_constraints(lw.surface("left_foot"), lw.surface("right_foot")),
    "quadruped": lambda: (m := mech.quadruped()).with_constraints(
        *(lw.point(n) for n in [n for n in m.frames if "foot" in n])
    ),
    "chain": lambda: mech.chain(7).with_constraints(lw.point("linktip")),
    "geared chain": lambda: mech.geared_chain(5),
    "belts": lambda: mech.belt_chain(4),
    "differential": mech.differential,
    "four-bar": lambda: mech.four_bar(1.0, 0.5, 1.0, 0.5),
    "six-bar": mech.six_bar,
    "gripper": mech.gripper,
    "loops": lambda: mech.chain_of_loops(2),
}
SINGLE = 1e-2
"""Relative error of accelerations that float32 promises with default settings, where rows are not nearly redundant."""


@pytest.mark.parametrize("name", ROBOTS)
def test_float32_by_default(name):
    """Right to 1 % where it says that it has converged, and it does in most states; as few solves as in float64."""
    model = ROBOTS[name]()
    rng = np.random.default_rng(5)
    states = [lw.random_state(model, seed) for seed in range(8)]
    q, v = (np.stack(x) for x in zip(*states, strict=True))
    tau = rng.normal(size=v.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = lw.forward_dynamics(model, dtype="float32")(q, v, tau)
    right = np.stack([exact(model, *x) for x in zip(q, v, tau, strict=True)])
    errors = np.abs(result.a - right).max(axis=1) / np.abs(right).max(axis=1)
    assert (errors[result.converged] < SINGLE).all(), errors
    assert result.converged.mean() >= 0.75
    assert np.max(getattr(result, "iterations", 1)) < 20


@pytest.mark.parametrize("method", ["pv", "prox_pv", "bbo", "ltl", "constrained_aba", "pv_early"])
def test_armature_of_a_free_base_counts(method):
    robot = mech.quadruped()
    model = robot.with_armature(robot.links[1].joint_name, [0.5, 0.1, 0.3, 0.2, 0.1, 0.4])
    model = model.with_constraints(*(lw.point(f) for f in ("front_left_foot", "rear_right_foot")))
    q, v = lw.random_state(model, 3)
    tau = np.linspace(-1, 1, model.nv)
    right = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau)
    found = lw.forward_dynamics(model, method=method, backend="numpy")(q, v, tau)
    np.testing.assert_allclose(found.a, right.a, atol=1e-9 * np.abs(right.a).max())
    D = lw.delassus(model, method="dense", backend="numpy")(q).matrix
    x = np.linspace(0, 1, model.rows)
    np.testing.assert_allclose(lw.delassus(model, method="pv_fast", backend="numpy")(q, x).multiplied, D @ x, atol=1e-9)
