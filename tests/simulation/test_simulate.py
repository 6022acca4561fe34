"""Simulations: loops stay closed, contacts come and go, controllers are obeyed, mistakes are named."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from motions import energy, gap, julia_four_bar, pendulum

import linkwork as lw
from linkwork.cli.demo import squatting_humanoid
from linkwork.errors import InputError, NotFound, OpenLoopWarning, StepError
from linkwork.robots.mechanisms import arm, bricard, four_bar, planar_leg, quadruped, standing
from linkwork.robots.scenarios import cassie


def loaded_cassie() -> lw.Model:
    try:
        return cassie()
    except lw.LinkworkError as problem:
        pytest.skip(f"Cassie is not installed: {problem}")


def ball() -> lw.Model:
    """A ball whose lowest point is its origin."""
    b = lw.Builder("ball")
    b.link("ball", joint="free", inertia=lw.BodyInertia(1.0, np.array([0, 0, 0.1]), 0.004 * np.eye(3)))
    return b.build().with_constraints(lw.point("ball"))


def test_an_open_loop_at_the_start_is_named_where_steps_fail():
    """Projection closes it with a jerk, and a shorter dt would not help."""
    model = four_bar(ground=1.1, crank=0.5, coupler=1.2, rocker=0.75)
    name = model.constraints[0].name
    with pytest.raises(StepError, match=rf"At the start '{name}' was violated by .* lw\.assemble"):
        lw.simulate(model, [0.5, 1.5, -2.0], np.full(3, 30.0), dt=0.02, duration=2.0, projection=True)


@pytest.mark.parametrize(("make", "duration", "integrator", "bound"), [
    (four_bar, 2.0, "rk4", 1e-6), (bricard, 2.0, "rk4", 1e-6), (loaded_cassie, 0.2, "semi_implicit", 1e-4),
], ids=["four-bar", "bricard", "cassie"])  # fmt: skip
def test_drift_with_projection_and_with_stabilisation(make, duration, integrator, bound):
    model = make()
    q = lw.assemble(model, model.neutral())
    v = lw.project_velocity(model, q, np.random.default_rng(0).normal(size=model.nv))
    options = {"duration": duration, "every": 10}
    projected = lw.simulate(model, q, v, projection=True, **options)
    assert gap(model, projected.q) < 1e-12
    assert np.abs(lw.constraint_error(model)(projected.q, projected.v).rate).max() < 1e-9
    assert gap(model, lw.simulate(model, q, v, stabilisation=True, integrator=integrator, **options).q) < bound


def test_stabilisation_slows_the_drift_of_a_crude_integrator():
    model, q = julia_four_bar()
    free, held = (lw.simulate(model, q, stabilisation=s) for s in (None, lw.Stabilisation(0.05)))
    assert gap(model, held.q) < gap(model, free.q) / 10
    assert gap(model, held.q) < 2e-4


def test_the_loops_of_cassie_hold_for_a_minute_of_violent_kicks():
    """Semi-implicit steps of 1 ms, motor torques that change all 0.3 s, speeds of up to 25 rad/s.

    4e-5 m are usual, 8e-5 m without regard to the step. Such motions are chaotic and pass singular postures, where one
    in 24 was open by 3e-4 m: CPUs differ, and the median of eight motions is judged.
    """
    model = loaded_cassie()
    t = model.topology
    driven = [t.v_slices[i].start for i in t.links if model.links[i].actuated]
    q, kicks = lw.assemble(model, model.neutral()), np.zeros((8, 200, model.nv))
    kicks[..., driven] = 1.4 * np.random.default_rng(5).normal(size=(8, 200, len(driven)))
    run = lw.rollout(model, stabilisation=True, pd=True, steps=60_000, every=50)
    motion = run(q, np.zeros(model.nv), kicks, kp=30.0, kd=1.0, target=q)
    assert motion.ok.all()
    assert np.abs(motion.v[..., 6:]).max() > 15
    gaps = [gap(model, q) for q in motion.q]
    assert np.median(gaps) < 6e-5
    assert max(gaps) < 1e-3


def test_stabilisation_knows_the_step():
    """A mass on a rod turns steadily, on its circle; not h dJ/dt v / omega inside it."""
    b = lw.Builder("mass")
    for parent, name, axis in (("world", "cart", "x"), ("cart", "mass", "y")):
        b.link(name, parent, joint="prismatic", axis=axis, inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
    model = b.build().with_gravity((0, 0, 0)).with_frame("post")
    model = model.with_constraints(lw.Distance("mass", "post", length=1.0))
    run = lw.simulate(model, [1.0, 0.0], [0.0, 2.0], duration=0.6, stabilisation=lw.Stabilisation(0.1))
    speed, radius = (float(np.hypot(*x[-1])) for x in (run.v, run.q))
    assert abs((1 - radius) / (1e-3 * speed**2 / (2 * np.pi / 0.1))) < 0.05


def test_numpy_and_kernel_simulate_the_same():
    model, q = julia_four_bar()
    for options in ({}, {"projection": True}, {"integrator": "rk4"}):
        fast, slow = (lw.simulate(model, q, duration=0.01, backend=b, **options) for b in ("kernel", "numpy"))
        np.testing.assert_allclose(fast.q, slow.q, atol=1e-12)
        np.testing.assert_allclose(fast.lam, slow.lam, atol=1e-6)


def test_a_controller_holds_a_pendulum_and_energy_is_its_work():
    model = pendulum()
    run = lw.simulate(model, [0.5], None, lambda t, q, v: -5 * v, dt=1e-3, duration=1.0, integrator="rk4")
    np.testing.assert_allclose(run.tau, -5 * run.v)
    work = np.trapezoid((run.tau * run.v)[:, 0], run.t)
    E = energy(model, run.q, run.v)
    assert work < -0.1
    np.testing.assert_allclose(E[-1] - E[0], work, rtol=2e-2)


def test_a_ball_falls_and_stays():
    run = lw.simulate(ball(), [0, 0, 0.2, 0, 0, 0, 1], duration=0.5, ground=0.0)
    fall = np.sqrt(2 * 0.2 / 9.81)
    (event,) = run.events
    assert event.kind == "touchdown"
    assert event.t == pytest.approx(fall, abs=1e-3)
    down = run.t > fall + 0.002
    np.testing.assert_allclose(run.q[down, 2], 0, atol=1e-9)
    np.testing.assert_allclose(run.lam[down, 2], 9.81, rtol=1e-6)
    np.testing.assert_array_equal(run.active[:, 0], run.t > event.t)


def test_a_ball_bounces_as_high_as_restitution_says():
    run = lw.simulate(ball(), [0, 0, 0.2, 0, 0, 0, 1], duration=1.5, ground=0.0, restitution=0.5, integrator="rk4")
    bounces = [e.t for e in run.events if e.kind == "bounce"]
    assert run.events[-1].kind == "touchdown"
    between = (run.t > bounces[0]) & (run.t < bounces[1])
    assert run.q[between, 2].max() == pytest.approx(0.2 * 0.25, rel=0.01)
    assert np.all(np.diff(bounces) > 0)
    assert abs(run.q[-1, 2]) < 1e-6
    assert run.q[:, 2].min() > -1e-6


def test_a_contact_that_would_pull_lifts_off():
    """A ball on the ground, pulled up for a while."""
    model = ball()

    def lift(t, q, v):
        return np.array([0, 0, 20.0 if 0.1 <= t < 0.15 else 0.0, 0, 0, 0])

    run = lw.simulate(model, [0, 0, 0, 0, 0, 0, 1], None, lift, duration=0.6, ground=0.0)
    assert [e.kind for e in run.events] == ["lift-off", "touchdown"]
    assert run.events[0].t == pytest.approx(0.1, abs=1.1e-3)
    assert run.q[:, 2].max() > 0.01
    assert np.all(run.lam[:, 2] >= 0)
    assert abs(run.q[-1, 2]) < 1e-9


@pytest.mark.parametrize("contact", [lw.point, lw.surface])
def test_contacts_in_world_axes_touch_down_and_lift_off_alike(contact):
    """A tilted body that falls, bounces and comes to rest does the same whatever axes its forces are in."""
    runs = []
    for axes in ("frame", "world"):
        model = ball().without_constraints().with_constraints(contact("ball", axes=axes))
        q = np.array([0.0, 0.0, 0.05, *np.array([0.3, 0.2, 0.1, 1.0]) / np.linalg.norm([0.3, 0.2, 0.1, 1.0])])
        v = np.array([0.0, 0.0, 0.0, 1.0, -2.0, 0.5])
        runs.append(lw.simulate(model, q, v, dt=1e-3, duration=0.25, ground=0.0, restitution=0.3))
    assert [e.kind for e in runs[0].events] == [e.kind for e in runs[1].events]
    assert runs[0].events
    np.testing.assert_allclose(runs[1].q, runs[0].q, atol=1e-9)


def test_a_quadruped_lands_on_its_feet():
    model, feet = quadruped(), ["front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot"]
    stand = standing(model)
    model = model.with_constraints(*(lw.point(f) for f in feet))

    def controller(t, q, v):
        return np.concatenate([np.zeros(6), 80 * (stand[7:] - q[7:]) - 3 * v[6:]])

    start = stand.copy()
    start[2] += 0.05
    start[3:7] = [0.04, 0.02, 0, np.sqrt(1 - 0.04**2 - 0.02**2)]
    run = lw.simulate(model, start, None, controller, duration=1.0, ground=0.0, projection=True)
    assert {e.contact for e in run.events if e.kind == "touchdown"} == {f"{f}~world" for f in feet}
    assert run.active[-1].all()
    positions, rotations = lw.forward_kinematics(model, feet)(run.q[-1])
    np.testing.assert_allclose(positions[:, 2], 0, atol=1e-9)
    carried = sum((rotations[k] @ run.lam[-1, 3 * k : 3 * k + 3])[2] for k in range(4))
    assert carried == pytest.approx(9.81 * model.mass, rel=0.02)


def test_a_humanoid_with_four_bar_legs_squats():
    model, q, controller = squatting_humanoid()
    run = lw.simulate(model, q, None, controller, duration=1.0, ground=0.0, projection=True, every=10)
    assert run.q[-1, 2] < run.q[0, 2] - 0.15
    assert run.active.all()
    loops = model.without_constraints().with_constraints(*model.constraints[:2])
    assert gap(loops, run.q) < 1e-12
    feet = lw.forward_kinematics(model, ["left_foot", "right_foot"])(run.q).positions
    assert np.abs(feet - feet[0]).max() < 1e-9


@pytest.mark.parametrize(("options", "message"), [
    ({"dt": 0.0}, "dt is a time above 0 s"),
    ({"restitution": 2.0}, "between 0"),
    ({"q0": [0.0, 0.0]}, "q0 has shape"),
    ({"v0": [np.nan]}, "NaN"),
    ({"ground": 0.0}, "needs contacts"),
    ({"integrator": "dormand_prince", "projection": True}, "neither projection"),
    ({"controller": lambda t, q, v: np.zeros(3)}, "shape"),
    ({"controller": lambda t, q, v: [np.inf]}, "infinite"),
])  # fmt: skip
def test_mistakes_are_named(options, message):
    with pytest.raises(InputError, match=message):
        lw.simulate(pendulum(), **{"q0": [0.0], "duration": 0.01, **options})


def test_unknown_backends_are_refused():
    with pytest.raises(NotFound, match="kernel"):
        lw.simulate(pendulum(), [0.0], backend="casadi")


def test_impulses_of_some_contacts_only():
    feet = ["front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot"]
    model = quadruped().with_constraints(*(lw.point(f) for f in feet))
    q, v = standing(model), np.random.default_rng(0).normal(size=18)
    jump = lw.impulse(model, modes=True)
    some = jump(q, v, [1.0, 0, 1.0, 0])
    two = model.without_constraints().with_constraints(lw.point(feet[0]), lw.point(feet[2]))
    np.testing.assert_allclose(some.v_after, lw.impulse(two)(q, v).v_after, atol=1e-8)
    np.testing.assert_array_equal(some.impulse[[3, 4, 5, 9, 10, 11]], 0)
    np.testing.assert_allclose(jump(q, v).v_after, lw.impulse(model)(q, v).v_after, atol=1e-8)


@pytest.mark.parametrize("options", [
    {"projection": True}, {"stabilisation": True}, {"integrator": "rk4"}, {"integrator": "midpoint"},
    {"integrator": "dormand_prince"}, {"backend": "numpy"},
], ids=str)  # fmt: skip
def test_prox_bbo_simulates_as_the_default_does(options):
    model, q = julia_four_bar()
    one, other = (lw.simulate(model, q, duration=0.01, method=m, **options) for m in (None, "prox_bbo"))
    np.testing.assert_allclose(one.q, other.q, atol=1e-9)


def test_prox_bbo_lands_on_its_feet_and_rolls_out():
    model = quadruped().with_constraints(lw.point("front_left_foot"), lw.point("rear_right_foot"))
    q = standing(model)
    q[2] += 1e-3
    one, other = (lw.simulate(model, q, duration=0.03, ground=0.0, method=m) for m in (None, "prox_bbo"))
    assert [(e.kind, e.contact) for e in one.events] == [(e.kind, e.contact) for e in other.events]
    np.testing.assert_allclose(one.q, other.q, atol=1e-6)
    active = np.array([[1.0, 1.0], [1.0, 0.0]])
    rolled = [
        lw.rollout(model, method=m, modes=True, steps=20)(q, np.zeros(model.nv), active=active).q
        for m in (None, "prox_bbo")
    ]
    np.testing.assert_allclose(*rolled, atol=1e-6)


@pytest.mark.parametrize("axes", ["a", "b"])
def test_contacts_hold_whatever_the_axes_of_their_rows(axes):
    """A ball stands on a frame of the world whose z axis points down: forces in its axes are negative, and push."""
    model = ball().with_frame("plane", "world", lw.Placement.at(rpy=(np.pi, 0, 0))).without_constraints()
    model = model.with_constraints(lw.Closure("ball", "plane", "spherical", axes=axes))
    run = lw.simulate(model, model.neutral(), duration=0.05, ground=0.0)
    assert run.active.all()
    up = 1 if axes == "a" else -1
    np.testing.assert_allclose(run.lam[:, 2], up * 9.81, rtol=1e-6)


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4", "dormand_prince"])
def test_divergence_is_no_fault_of_the_input(integrator):
    """Gains that no step of this length can follow: the error names the time and the joint that runs away."""
    model = arm(4)
    gain = 1e5 if integrator == "dormand_prince" else -1e5  # its steps are as short as they must be

    def controller(t, q, v):
        return gain * v

    with pytest.raises(StepError, match=r"diverges: joint '.*' moves with .*rad/s after [0-9.e-]+ s"):
        lw.simulate(model, model.neutral(), np.ones(4), controller, dt=1e-2, duration=5.0, integrator=integrator)


def test_motions_that_begin_with_an_open_loop_say_so():
    """Nothing closes it, and nothing said so: the rows hold accelerations alone."""
    model = four_bar()
    q = lw.assemble(model, np.array([0.5, 0.3, 0.2]))
    still = q + np.array([0.1, 0.0, 0.0])
    with pytest.warns(OpenLoopWarning, match=r"At the start '.*' was violated by 0\.\d+ m or rad") as heard:
        lw.simulate(model, still, duration=0.002)
    assert [w.filename for w in heard if w.category is OpenLoopWarning] == [__file__]
    with pytest.warns(OpenLoopWarning):
        lw.simulate(model, still, duration=0.002, contacts=[])
    with warnings.catch_warnings():
        warnings.simplefilter("error", OpenLoopWarning)
        lw.simulate(model, q, duration=0.002)
        lw.simulate(model, still, duration=0.002, projection=True)
        lw.simulate(model, still, duration=0.002, stabilisation=True)


def test_stabilisation_closes_loops_of_robots_on_the_ground():
    model = planar_leg(base="free")
    feet = [lw.Contact("foot", radius=0.02)]
    q = model.neutral()
    q[2], q[-1] = 1.0, q[-1] + 0.05
    options = {"contacts": feet, "dt": 1e-3, "duration": 0.1}
    with pytest.warns(OpenLoopWarning, match="stabilisation=True"):
        drifting = lw.simulate(model, q, **options)
    settled = lw.simulate(model, q, stabilisation=True, **options)
    still = lw.simulate(model, q, duration=1e-3, stabilisation=True, contacts=feet)
    assert gap(model, settled.q[-1:]) < 0.05 * gap(model, still.q[:1]) < 0.1 * gap(model, drifting.q[-1:])
    rolled = lw.rollout(model, contacts=feet, stabilisation=True, dt=1e-3)(q, np.zeros(model.nv), steps=100)
    np.testing.assert_allclose(settled.q[-1], rolled.q[-1], atol=1e-9)
