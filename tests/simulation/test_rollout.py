"""Rollouts are what NumPy computes step by step, whatever the threads, and one bad state harms no other."""

from __future__ import annotations

import numpy as np
import pytest
from motions import ball_chain, pendulum

import linkwork as lw
from linkwork.errors import InputError, NotFound, UnsupportedError
from linkwork.robots.mechanisms import arm, four_bar, quadruped, standing
from linkwork.robots.tello import tello

FEET = ("front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot")


def on_four_feet() -> lw.Model:
    return quadruped().with_constraints(*(lw.point(f) for f in FEET))


def both(model, *args, record=(), **options):
    """The same rollout by the kernel and by NumPy."""
    call = {
        k: options.pop(k) for k in list(options) if k in ("steps", "every", "active", "kp", "kd", "target", "target_v")
    }
    return [lw.rollout(model, backend=b, record=record, **options)(*args, **call) for b in ("kernel", "numpy")]


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
@pytest.mark.parametrize("batch", [1, 3, 19])
def test_a_tree_with_forces_over_time(integrator, batch):
    rng, model = np.random.default_rng(1), arm(4)
    q, v, tau = rng.normal(size=(batch, 4)), rng.normal(size=(batch, 4)), rng.normal(size=(batch, 6, 4))
    fast, slow = both(model, q, v, tau, every=2, integrator=integrator, record=("a", "tau"), dt=5e-3)
    assert fast.q.shape == (batch, 3, 4)
    np.testing.assert_allclose(fast.t, [0.01, 0.02, 0.03])
    for name in ("q", "v", "a", "tau"):
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-11, atol=1e-12)
    assert fast.ok.all()
    assert slow.ok.all()


def test_contact_schedule_and_joint_control():
    rng, model = np.random.default_rng(2), on_four_feet()
    q = standing(model)
    active = rng.integers(0, 2, size=(5, 6, 4))
    target = np.tile(q, (3, 1))
    target[1:, 7:] += 0.1
    fast, slow = both(
        model,
        np.tile(q, (5, 1)),
        np.zeros(18),
        steps=6,
        every=3,
        modes=True,
        pd=True,
        active=active,
        kp=rng.uniform(20, 40, size=(5, 18)),
        kd=1.0,
        target=target,
        record=("lam", "tau"),
    )
    # penalties lose mu eps of accelerations of some 100 m/s^2, here for 6 ms
    for name, tolerance in (("q", 1e-12), ("v", 5e-10), ("tau", 1e-8), ("lam", 1e-6)):
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), atol=tolerance)
    assert np.all(fast.tau[..., :6] == 0)
    off = np.repeat(active[:, [2, 5]], 3, axis=2) == 0
    assert np.all(fast.lam[off] == 0)
    assert np.abs(fast.lam[~off]).max() > 1


def test_loops_and_methods_without_iterations():
    model = four_bar(1.1, 0.5, 1.2, 0.75)
    for method in ("lcaba", "prox_ltl"):
        fast, slow = both(model, model.neutral(), np.zeros(3), steps=20, every=20, method=method, stabilisation=True)
        np.testing.assert_allclose(fast.q, slow.q, atol=1e-9)
    model = model.without_constraints().with_constraints(lw.Closure("coupler_end", "rocker_end", "point_on_line", "z"))
    fast, slow = both(model, model.neutral(), np.zeros(3), steps=20, every=20, method="ltl")
    np.testing.assert_allclose(fast.q, slow.q, atol=1e-12)


def test_one_state_is_a_row_of_a_batch_and_values_are_held():
    model, rng = ball_chain(), np.random.default_rng(3)
    q, v = model.neutral(), rng.normal(size=6)
    run = lw.rollout(model, dt=1e-2, integrator="rk4")
    knots = rng.normal(size=(3, 6))
    one = run(q, v, knots, steps=12)
    assert one.q.shape == (12, 8)
    many = run(np.tile(q, (9, 1)), v, np.repeat(knots, 4, axis=0), steps=12)
    np.testing.assert_allclose(many.q[4], one.q, atol=1e-14)
    constant = run(q, v, knots[0], steps=4)
    np.testing.assert_array_equal(constant.q, one.q[:4])
    np.testing.assert_allclose(np.linalg.norm(one.q[:, :4], axis=1), 1, atol=4e-16)


def test_threads_change_nothing_to_the_bit():
    model, rng = on_four_feet(), np.random.default_rng(4)
    batch = 517
    q = np.tile(standing(model), (batch, 1))
    v, tau = 0.1 * rng.normal(size=(batch, 18)), rng.normal(size=(batch, 10, 18))
    results = [lw.rollout(model, threads=n, record=("lam",))(q, v, tau, steps=20, every=10) for n in (1, 2, 5)]
    for other in results[1:]:
        for name in ("q", "v", "lam", "survived"):
            np.testing.assert_array_equal(getattr(other, name), getattr(results[0], name))


@pytest.mark.parametrize("backend", ["kernel", "numpy"])
def test_a_state_that_diverges_fails_alone(backend):
    model = pendulum()
    run = lw.rollout(model, dt=1e-2, limit=50.0, backend=backend, record=("a",))
    q, v = np.zeros((11, 1)), np.zeros((11, 1))
    tau = np.zeros((11, 40, 1))
    tau[3, 10:] = 1e4  # beyond the limit at once
    tau[7, 20:] = 1e308  # overflows
    result = run(q, v, tau)
    assert list(np.flatnonzero(~result.ok)) == [3, 7]
    assert result.survived[3] == 10
    assert result.survived[7] == 20
    assert (np.delete(result.survived, [3, 7]) == 40).all()
    assert np.isfinite(result.q).all()
    assert np.isfinite(result.v).all()
    assert (result.a[3, 10:] == 0).all()
    np.testing.assert_array_equal(result.q[3, 10:], np.tile(result.q[3, 9], (30, 1)))
    alone = run(q[:1], v[:1], tau[:1])
    np.testing.assert_allclose(result.q[0], alone.q[0], atol=1e-15)


def test_float32_follows_float64():
    model, rng = arm(4), np.random.default_rng(5)
    q, v = rng.normal(size=(40, 4)), rng.normal(size=(40, 4))
    single, double = (lw.rollout(model, dtype=d)(q, v, steps=50, every=50) for d in ("float32", "float64"))
    assert single.q.dtype == np.float32
    np.testing.assert_allclose(single.q, double.q, atol=2e-4)


def test_an_empty_batch_is_one():
    result = lw.rollout(pendulum(), steps=5)(np.zeros((0, 1)), np.zeros((0, 1)))
    assert result.q.shape == (0, 5, 1)


@pytest.mark.parametrize(("call", "message"), [
    ({"q0": np.zeros(2), "v0": np.zeros(1), "steps": 3}, "'q' has shape"),
    ({"q0": np.zeros(1), "v0": np.zeros(1)}, "number of steps"),
    ({"q0": np.zeros(1), "v0": np.zeros(1), "steps": 4, "every": 3}, "must divide"),
    ({"q0": np.zeros(1), "v0": np.zeros(1), "tau": np.zeros((3, 1)), "steps": 4}, "do not divide"),
    ({"q0": np.zeros(1), "v0": [np.nan], "steps": 4}, "NaN"),
    ({"q0": np.zeros((2, 1)), "v0": np.zeros((3, 1)), "steps": 4}, "different batch sizes"),
    ({"q0": np.zeros(1), "v0": np.zeros(1), "active": [1.0], "steps": 4}, "modes=True"),
    ({"q0": np.zeros(1), "v0": np.zeros(1), "kp": 1.0, "steps": 4}, "pd=True"),
    ({"q0": np.zeros(1), "v0": np.zeros(1), "dt": -1.0, "steps": 4}, "dt is a time"),
])  # fmt: skip
def test_bad_calls_say_what_is_needed(call, message):
    with pytest.raises(InputError, match=message):
        lw.rollout(pendulum())(**call)


def test_bad_factories_say_what_is_valid():
    with pytest.raises(NotFound, match="lam"):
        lw.rollout(pendulum(), record=("forces",))
    with pytest.raises(UnsupportedError, match="switch"):
        lw.rollout(on_four_feet(), method="pv", modes=True)
    with pytest.raises(InputError, match="does not iterate"):
        lw.rollout(pendulum(), prox=lw.Prox())


def test_making_one_plans_nothing():
    run = lw.rollout(on_four_feet(), steps=1)
    assert "to be planned" in repr(run)
    assert run.step.choice.settled is None
    assert run.method == run.step.choice.settled
    assert run.method in repr(run)


def test_stabilised_clusters_of_functions_of_the_user() -> None:
    """Independent joints do not depend on a stabilisation, whose step is traced: Tello's differentials have one."""
    try:
        model = tello()
    except lw.LinkworkError:
        pytest.skip("needs tello_humanoid.urdf in LINKWORK_ROBOTS")
    q, v = lw.random_state(model, seed=0)
    ends = {
        m: lw.rollout(model, dt=1e-3, stabilisation=True, method=m)(q, v, steps=5).v[-1] for m in ("c_aba", "lcaba")
    }
    np.testing.assert_allclose(ends["c_aba"], ends["lcaba"], atol=1e-6 * np.abs(ends["lcaba"]).max())
