"""Motions say how far their steps violate constraints, and warn where that is too far."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import linkwork as lw
from linkwork.algorithms.constrained.kkt import joint_space
from linkwork.algorithms.registry import able
from linkwork.backends import get
from linkwork.errors import ConvergenceWarning, OpenLoopWarning
from linkwork.functions.dense_judge import Judge
from linkwork.functions.solver import Solver
from linkwork.model import Motion
from linkwork.rewrite.rewritten import Rewritten, rewritten
from linkwork.robots import mechanisms as mech
from linkwork.simulation.steps.constrained_step import limited_penalty
from linkwork.structure.independent import overconstrained

STEPS = {"steps": 100, "every": 100}


def on_feet() -> lw.Model:
    feet = (f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right"))
    return mech.quadruped().with_constraints(*map(lw.point, feet))


def crowded(model: lw.Model, seed: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """States with all feet at one place, beyond the limits of joints: many of them near singular postures."""
    rng = np.random.default_rng(seed)
    q = lw.assemble(model, model.random_q(rng, batch))
    return q, lw.project_velocity(model, q, rng.normal(size=(batch, model.nv)))


def quietly(run: lw.Rollout, *state: np.ndarray, **options: object) -> lw.RolloutResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(*state, **options)


@pytest.mark.parametrize(("dtype", "right", "bound"), [("float64", 1e-5, 1e-10), ("float32", 2e-4, 2e-4 / 1e5**0.5)])
def test_quadrupeds_near_singular_postures_say_so(dtype, right, bound):
    """Legs stretch on the way: what is off is among what did not converge, and most states are right and say so."""
    model = on_feet()
    q, v = crowded(model, 3, 48)
    exact = quietly(lw.rollout(model, iterations=8), q, 0.3 * v, **STEPS)
    with pytest.warns(ConvergenceWarning, match="of 48 states") as heard:
        found = lw.rollout(model, dtype=dtype, iterations=1)(q, 0.3 * v, **STEPS)
    assert [w.filename for w in heard if w.category is ConvergenceWarning] == [__file__]
    off = np.abs(found.q - exact.q).max(axis=(1, 2))
    assert off.max() > 1e-3
    assert not found.converged[off > right].any()
    assert found.converged.mean() > 0.6
    np.testing.assert_array_equal(found.converged, found.residual <= bound)


def test_states_that_have_not_converged_are_rolled_out_once_more():
    """By default, with more solver iterations; the others are the same to the bit, whatever batch they are in."""
    model = on_feet()
    q, v = crowded(model, 3, 48)
    once, exact = (quietly(lw.rollout(model, iterations=n), q, 0.3 * v, **STEPS) for n in (1, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        found = lw.rollout(model)(q, 0.3 * v, **STEPS)
    assert not once.converged.all()
    assert found.converged.all()
    assert np.abs(found.q - exact.q).max() < 1e-5
    np.testing.assert_array_equal(found.q[once.converged], once.q[once.converged])
    one = np.flatnonzero(~once.converged)[0]
    np.testing.assert_array_equal(lw.rollout(model)(q[one], 0.3 * v[one], **STEPS).q, found.q[one])


@pytest.mark.parametrize("speed", [1.0, 10.0])
def test_one_warm_iteration_in_violent_motion_is_as_exact_as_rounding_allows(speed):
    """After 200 steps it is off by what starts 1e-14 away make of the exact motion; the residual says it is solved.

    These motions amplify what is small by up to 1e9, so 2.5e-6 in v is no error of a solver.
    """
    model, q = on_feet(), mech.standing(mech.quadruped(), 0.5)
    rng = np.random.default_rng(0)
    v = speed * np.array([lw.project_velocity(model, q, rng.normal(size=model.nv)) for _ in range(16)])
    start, steps = np.tile(q, (len(v), 1)), {"steps": 200, "every": 200}
    exactly, warm = lw.rollout(model, iterations=8), lw.rollout(model, iterations=1)
    exact, found = (quietly(run, start, v, **steps) for run in (exactly, warm))
    near = [quietly(exactly, start, v * (1 + x), **steps) for x in (1e-14, -1e-14)]
    off, *amplified = (np.abs(r.v - exact.v).max(axis=(1, 2)) for r in (found, *near))
    assert (off <= 30 * np.max(amplified, axis=0) + 1e-10).all()
    assert off.max() > 1e-8
    assert (found.residual < 1e-7).all()
    assert np.median(found.residual) < 1e-14


REGULAR = {
    "quadruped": on_feet,
    "four-bar": lambda: mech.four_bar(1.0, 0.5, 1.0, 0.9),
    "geared chain": lambda: mech.geared_chain(5),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", REGULAR)
def test_regular_motions_do_not_warn(name, dtype):
    model = REGULAR[name]()
    q = mech.standing(mech.quadruped(), 0.5) if name == "quadruped" else lw.random_state(model, 1)[0]
    v = 0.3 * lw.project_velocity(model, q, np.random.default_rng(1).normal(size=model.nv))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = lw.rollout(model, dtype=dtype)(np.tile(q, (4, 1)), v, **STEPS)
        one = lw.rollout(model, dtype=dtype)(q, v, **STEPS)
    assert found.converged.all()
    assert found.residual.shape == found.converged.shape == (4,)
    assert one.converged
    assert one.residual.shape == ()


def test_nothing_to_violate():
    found = lw.rollout(mech.chain(3))(np.zeros(3), np.zeros(3), **STEPS)
    assert found.residual is None
    assert found.converged is None


@pytest.mark.parametrize("make", [on_feet, lambda: mech.four_bar(1.0, 0.5, 1.0, 0.9)], ids=["feet", "loop"])
def test_the_violation_is_that_of_the_rows(make):
    """|J a - k| with dense J and k, for every method that iterates, with a penalty that leaves much of it."""
    model, xp = make(), get("numpy")
    q, v = (x[:, None] for x in lw.random_state(model, 5))
    tau = np.random.default_rng(0).normal(size=v.shape)
    J, k = joint_space(Motion(model, q, v, xp))
    checked = 0
    for method in able("forward_dynamics", model):
        if method.prox is None or method.local:
            continue
        solved = Solver(method, Rewritten(model))(xp, q, v, tau, None, 10.0)
        for iterations in (1, 2):
            a, _, violation = solved.verified(iterations, 0.0)
            left, size = np.linalg.norm(J @ a - k), np.sqrt(solved.iteration.first.squares.sum())
            np.testing.assert_allclose(violation.item() * size, left, rtol=1e-8, atol=1e-13 * size, err_msg=method.name)
            checked += left > 1e-6 * size
    assert checked >= 4


def cassie() -> lw.Model:
    try:
        return lw.load("cassie.xml", passive=False)
    except lw.LinkworkError:
        pytest.skip("cassie.xml is not installed")


def test_little_that_is_left_does_not_stretch_steps_along_redundant_directions():
    """Cassie beyond its limits: accelerations were 55 % off in the twelfth step; kernels said it had converged."""
    model, rng = cassie(), np.random.default_rng(11)
    q = lw.assemble(model, model.random_q(rng))
    v = lw.project_velocity(model, q, rng.normal(size=model.nv))
    run = lw.rollout(model, method="prox_pv", iterations=8, backend="numpy", record=("a",))
    found = quietly(run, q, v, steps=12)
    state = {"q": found.q[-2], "v": found.v[-2], "tau": np.zeros(model.nv)}
    exact = Judge(run.model).redundant(state, lw.Prox().redundant).a
    np.testing.assert_allclose(found.a[-1], exact, rtol=0, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("seed", [9004, 9005, 9012])
def test_more_iterations_than_needed_find_no_forces_in_redundant_directions(seed):
    """Cassie with loops open by 1e-6: rows that depend on each other when closed differ by as much and hold nothing."""
    model = cassie()
    rng, xp = np.random.default_rng(seed - 9000), get("numpy")
    q = model.integrate(lw.random_state(model, seed)[0], 1e-6 * rng.normal(size=model.nv))
    v, tau = 0.1 * lw.project_velocity(model, q, rng.normal(size=model.nv)), np.zeros(model.nv)
    (method,) = (m for m in able("forward_dynamics", model) if m.name == "prox_pv")
    prox = limited_penalty(method, model)
    exact = Judge(model).redundant({"q": q, "v": v, "tau": tau}, prox.redundant).a
    solved = Solver(method, Rewritten(model))(xp, q[:, None], v[:, None], tau[:, None], None, prox.mu)
    for iterations in (2, 4, 8, 12):
        a = solved.straight(iterations, prox.flat)[0][:, 0]
        np.testing.assert_allclose(a, exact, rtol=0, atol=1e-6 * np.abs(exact).max())


STEPPED = {
    "Cassie": cassie,
    "ring": lambda: mech.ring(8),
    "leg": mech.planar_leg,
    "biped": mech.biped,
    "random": lambda: mech.random_mechanism(3, 9),
    "hinged loops": lambda: mech.chain_of_loops(3, 6, cut="revolute"),
}


@pytest.mark.parametrize("name", STEPPED)
def test_accelerations_of_default_steps_are_right_or_told(name):
    """To 1e-6 of dense solutions, near singular postures and where overconstrained loops have drifted open.

    They were up to 1e-5 off on Cassie, 1e-4 on the ring and the leg, 2e-5 on the biped, and told nobody.
    """
    model, steps = STEPPED[name](), 40
    q, v = crowded(model, 1, 16)
    run = lw.rollout(model, record=("a",))
    found = quietly(run, q, v, steps=steps)
    judge, zero = Judge(run.model), np.zeros(model.nv)
    assert found.converged.mean() > 0.6
    for b in np.flatnonzero(found.converged & found.ok):
        for k in (0, 1, 2, 10, 20, steps - 1):
            state = {"q": found.q[b, k - 1], "v": found.v[b, k - 1]} if k else {"q": q[b], "v": v[b]}
            exact = judge.redundant({**state, "tau": zero}, lw.Prox().redundant).a
            np.testing.assert_allclose(found.a[b, k], exact, rtol=0, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize(
    ("make", "moves_by_its_measures"),
    [(mech.bricard, True), (cassie, True), (mech.four_bar, False), (lambda: mech.ring(8), False), (on_feet, False)],
)
def test_overconstrained_mechanisms_are_found(make, moves_by_its_measures):
    """Rows of a planar four-bar that hinges close are redundant, open or closed; Cassie's only while closed."""
    assert overconstrained(make()) == moves_by_its_measures


def test_direct_methods_report_it_too():
    model = on_feet()
    q = mech.standing(mech.quadruped(), 0.5)
    for method in ("pv", "ltl"):
        found = lw.rollout(model, method=method, backend="numpy")(q, np.zeros(model.nv), steps=2)
        assert 0 < found.residual < 1e-12
        assert found.converged


def test_numpy_and_kernels_report_the_same():
    model, few = on_feet(), {"prox": lw.Prox(mu=10.0), "method": "constrained_aba"}
    q = mech.standing(mech.quadruped(), 0.5)
    v = 0.3 * lw.project_velocity(model, q, np.random.default_rng(1).normal(size=model.nv))
    runs = [lw.rollout(model, backend=b, **few) for b in ("kernel", "numpy", "numpy")]
    runs[1].step = replace(runs[1].step, within=rewritten(model))
    one, two, plain = (quietly(run, q, v, steps=5) for run in runs)
    assert one.residual > 1e-5
    assert not one.converged
    assert not two.converged
    np.testing.assert_allclose(one.residual, two.residual, rtol=1e-8)
    # rows over links with other frames have other terms
    np.testing.assert_allclose(plain.residual, two.residual, rtol=0.1)


def test_simulations_warn_once():
    model = on_feet()
    q = mech.standing(mech.quadruped(), 0.5)
    with pytest.warns(ConvergenceWarning, match="simulate by") as heard:
        lw.simulate(model, q, prox=lw.Prox(mu=1.0), method="constrained_aba", iterations=1, duration=0.02)
    assert [w.filename for w in heard] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.simulate(model, q, duration=0.02)


@pytest.mark.parametrize(("dtype", "right"), [("float64", 1e-5), ("float32", 3e-4)])
def test_contacts_that_switch_do_not_drift_silently(dtype, right):
    """From forces of contacts that were off until then: within the bound, or told; in float64 by a second try."""
    model, rng = on_feet(), np.random.default_rng(0)
    q = np.tile(mech.standing(mech.quadruped(), 0.5), (8, 1))
    v = 0.1 * lw.project_velocity(model, q, rng.normal(size=(8, model.nv)))
    given = {"active": (rng.random((8, 20, 4)) > 0.4).astype(float), "kp": 80.0, "kd": 4.0, "target": q[0]}
    options = {"modes": True, "pd": True, "method": "constrained_aba"}
    found, exact = (
        quietly(lw.rollout(model, dtype=kind, iterations=n, **options), q, v, steps=1000, every=1000, **given)
        for kind, n in ((dtype, None), ("float64", 8))
    )
    off = np.abs(found.q - exact.q).max(axis=(1, 2))
    assert not found.converged[off > right].any(), (found.residual, off)
    assert found.converged.all() == (dtype == "float64")


@pytest.mark.parametrize("name", ["four_bar", "six_bar"])
def test_linkages_that_start_flat_are_right_or_told(name):
    """Forces leave a posture of rank 1: after a step singular values are 1e-6 to 1e-4.

    Errors are relative to the larger of the accelerations with and without the loop, which holds nearly all of them.
    """
    try:
        model = lw.load(name)
    except lw.LinkworkError:
        pytest.skip(f"{name} is not installed")
    rng, batch = np.random.default_rng(3), 100
    q, v = np.tile(model.neutral(), (batch, 1)), np.zeros((batch, model.nv))
    tau = rng.normal(size=(batch, model.nv)) * 10 ** rng.uniform(-2, 2, (batch, 1))
    found = quietly(lw.rollout(model, record=("a",)), q, v, tau[:, None, :], steps=4)
    assert found.converged.mean() > 0.2
    judge, falls = Judge(model), lw.forward_dynamics(model.without_constraints(), backend="numpy", method="aba")
    for b in np.flatnonzero(found.converged & found.ok):
        for k in (0, 1, 2, 3):
            state = {"q": found.q[b, k - 1], "v": found.v[b, k - 1]} if k else {"q": q[b], "v": v[b]}
            exact = judge.redundant({**state, "tau": tau[b]}, lw.Prox().redundant).a
            size = max(np.abs(exact).max(), np.abs(falls(**state, tau=tau[b]).a).max())
            np.testing.assert_allclose(found.a[b, k], exact, rtol=0, atol=1e-6 * size)


@pytest.mark.parametrize("cut", ["fixed", "revolute"])
def test_overconstrained_loops_that_drift_open_have_not_converged(cut):
    """Rows that were redundant hold Bricard's linkage in the end, by singular values of 1e-6: 69 and 120 % off."""
    model = mech.bricard(cut=cut)
    states = [lw.random_state(model, seed) for seed in range(72)]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    run, steps = lw.rollout(model, record=("a",)), 400
    with pytest.warns(OpenLoopWarning, match="drifted open in"):
        found = run(q, v, steps=steps)
    assert found.converged.any()
    judge = Judge(model)
    for b in np.flatnonzero(found.converged & found.ok):
        for k in range(10, steps, 10):
            state = {"q": found.q[b, k - 1], "v": found.v[b, k - 1], "tau": np.zeros(model.nv)}
            exact = judge.redundant(state, lw.Prox().redundant).a
            np.testing.assert_allclose(found.a[b, k], exact, rtol=0, atol=1e-6 * np.abs(exact).max())
    with warnings.catch_warnings():
        warnings.simplefilter("error", OpenLoopWarning)
        quiet = run(q[found.converged], v[found.converged], steps=steps, every=steps)
    assert quiet.converged.all()


def test_simulations_say_that_loops_drifted_open():
    model = mech.bricard(cut="revolute")
    q, v = lw.random_state(model, 8)
    with pytest.warns(OpenLoopWarning, match="simulate: the loops of an overconstrained mechanism have drifted open,"):
        lw.simulate(model, q, v, duration=0.4, every=400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.simulate(model, q, v, duration=0.1, projection=True)
