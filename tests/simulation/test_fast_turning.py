"""Semi-implicit steps keep the momentum of what turns fast, and motions that gain energy from nowhere fail."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from motions import angular_momentum, energy, pendulum

import linkwork as lw
from linkwork.errors import StepError, StepWarning
from linkwork.robots.mechanisms import chain, four_bar, quadruped, standing
from linkwork.simulation.steps.energy_balance import Ledger, energies_of
from linkwork.simulation.steps.gyroscopic import turns


def heavy_top(joint: str = "spherical") -> lw.Model:
    """A symmetric top on its point; 21 J at 224 rad/s."""
    b = lw.Builder("top")
    b.link("top", joint=joint, inertia=lw.BodyInertia(1.0, np.array([0, 0, 0.1]), np.diag([5e-4, 5e-4, 8e-4])))
    return b.build()


def asymmetric(com=(0.1, 0.0, 0.05), joint: str = "free") -> lw.Model:
    b = lw.Builder("brick")
    b.link("brick", joint=joint, inertia=lw.BodyInertia(1.0, np.array(com), np.diag([1e-3, 2e-3, 2.8e-3])))
    return b.build().with_gravity((0, 0, 0))


def gimbals() -> lw.Model:
    """A gyroscope whose rotor hangs on three hinges."""
    b, ring = lw.Builder("gimbals"), lw.BodyInertia(0.1, np.zeros(3), 1e-4 * np.eye(3))
    rotor = lw.BodyInertia(1.0, np.array([0, 0, 0.1]), np.diag([5e-4, 5e-4, 8e-4]))
    for name, parent, axis, body in (
        ("outer", "world", "z", ring),
        ("inner", "outer", "x", ring),
        ("rotor", "inner", "z", rotor),
    ):
        b.link(name, parent, joint="revolute", axis=axis, inertia=body)
    return b.build()


def floating_chain() -> lw.Model:
    b, body = lw.Builder("floating chain"), lw.BodyInertia(1.0, np.array([0, 0, -0.15]), np.diag([0.01, 0.012, 0.003]))
    b.link("link0", joint="free", inertia=body)
    for k in range(1, 6):
        b.link(
            f"link{k}",
            f"link{k - 1}",
            joint="revolute",
            axis="xy"[k % 2],
            inertia=body,
            placement=lw.Placement.at((0, 0, -0.3)),
        )
    return b.build().with_gravity((0, 0, 0))


TILTED = np.array([np.sin(0.15), 0, 0, np.cos(0.15)])
SPIN = 20 * np.array([0, 0, 0, 1, 0.3, 0.5, *(0.1 * np.array([1, -2, 0.5, 1, -1]))])
FAST = {
    "heavy top": (heavy_top(), TILTED, [0, 0, 224.0], 1e-3),
    "tennis racket": (asymmetric(), [0, 0, 0, 0, 0, 0, 1], [1, 0, 0, 0.5, 100.0, 0.3], 1e-3),
    "gyroscope": (gimbals(), [0, 0.5, 0], [0, 0, 224.0], 2e-3),
    "floating chain": (floating_chain(), floating_chain().neutral(), SPIN, 2e-2),
    "quadruped": (quadruped(), standing(quadruped()), [0, 0, 0, 20.0, 6.0, 4.0] + 12 * [0.0], 5e-2),
}


@pytest.mark.parametrize("name", FAST)
def test_energy_stays_with_default_steps(name):
    """Half a second at 1 ms; shorter steps err less. A plain semi-implicit step turns 21 J into 12 MJ."""
    model, q, v, bound = FAST[name]
    errors = []
    for dt in (1e-3, 2.5e-4):
        run = lw.simulate(model, q, v, dt=dt, duration=0.5)
        E = energy(model, run.q, run.v)
        errors.append(np.abs(E - E[0]).max() / E[0])
    assert errors[0] < bound
    assert errors[1] < errors[0] / 2.5


@pytest.mark.parametrize("backend", ["kernel", "numpy"])
def test_rollouts_keep_it_too(backend):
    model, q, v, bound = FAST["heavy top"]
    run = lw.rollout(model, backend=backend)(np.tile(q, (3, 1)), v, steps=200, every=20)
    E = energy(model, run.q[1], run.v[1])
    assert run.ok.all()
    assert np.abs(E - 21.0076).max() < bound * 21


def test_a_fast_top_precesses_as_it_should():
    model, q, v, _ = FAST["heavy top"]
    right = lw.simulate(model, q, v, duration=0.2, integrator="dormand_prince")
    run = lw.simulate(model, q, v, duration=0.2)
    assert np.abs(model.difference(right.q[-1], run.q[-1])).max() < 5e-3


@pytest.mark.parametrize("dt", [1e-3, 1e-2])
def test_the_momentum_of_a_body_stays_to_rounding(dt):
    """One rad in every step too; its centre of mass moves along a straight line."""
    model, q, v, _ = FAST["tennis racket"]
    run = lw.simulate(model, q, v, dt=dt, duration=1.0)
    L, body = angular_momentum(model, run.q, run.v), model.links[1].inertia
    np.testing.assert_allclose(L, np.tile(L[0], (len(L), 1)), rtol=0, atol=1e-12 * np.abs(L[0]).max())
    places, R = lw.forward_kinematics(model, backend="casadi")(run.q)
    centre = places[:, 0] + R[:, 0] @ body.com
    speed = v[:3] + np.cross(v[3:], body.com)
    np.testing.assert_allclose(centre - centre[0], run.t[:, None] * speed, rtol=0, atol=1e-12)
    assert energy(model, run.q, run.v).max() < (L[0] @ L[0]) / (2 * 1e-3) + (speed @ speed) / 2


def test_a_symmetric_body_is_exact_at_any_speed():
    """Energy to rounding, and a steady spin turns by as much as it should."""
    model = lw.Builder("top")
    model.link("top", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.diag([5e-4, 5e-4, 8e-4])))
    model = model.build().with_gravity((0, 0, 0))
    run = lw.simulate(model, model.neutral(), [0, 0, 0, 50.0, 0, 900.0], duration=0.5)
    E = energy(model, run.q, run.v)
    np.testing.assert_allclose(E, E[0], rtol=1e-11)
    run = lw.simulate(model, model.neutral(), [0, 0, 0, 0, 0, 100.0], duration=0.5)
    angle = 2 * np.arctan2(run.q[-1, 5], run.q[-1, 6])
    assert (angle - 50.0 + np.pi) % (2 * np.pi) - np.pi == pytest.approx(0, abs=1e-6)


def test_a_body_in_a_plane_keeps_its_momentum():
    model = asymmetric((0.1, 0.2, 0.0), "planar")
    run = lw.simulate(model, [0, 0, 1, 0], [1.0, -0.5, 100.0], duration=0.5)
    E = energy(model, run.q, run.v)
    np.testing.assert_allclose(E, E[0], rtol=1e-12)
    np.testing.assert_allclose(run.v[:, 2], 100.0, rtol=1e-12)
    falling, q = model.with_gravity((0, -9.81, 0)), [0.3, 0.2, np.cos(0.3), np.sin(0.3)]
    right, run = (
        lw.simulate(falling, q, [1.0, -0.5, 3.0], duration=0.3, integrator=i)
        for i in ("dormand_prince", "semi_implicit")
    )
    np.testing.assert_allclose(run.q[-1], right.q[-1], atol=5e-3)


def test_forces_count_in_the_axes_in_which_they_act():
    """Thrust and torque that turn with the body, on one that tumbles: errors fall with the step."""
    model, q, v, _ = FAST["tennis racket"]

    def thrust(t, q, v):
        return [0.5, 0.2, -0.3, 0.01, -0.02, 0.03]

    right = lw.simulate(model, q, np.array(v) / 10, thrust, duration=0.3, integrator="dormand_prince")
    errors = []
    for dt in (1e-3, 5e-4):
        run = lw.simulate(model, q, np.array(v) / 10, thrust, dt=dt, duration=0.3)
        errors.append(np.abs(model.difference(right.q[-1], run.q[-1])).max())
    assert errors[0] < 2e-2
    assert errors[1] < 0.6 * errors[0]


def test_joints_tied_to_the_ground_take_the_plain_step():
    """A door on a hinge that is a constraint turns steadily for ever; loops inside a robot do not tie its base."""
    b = lw.Builder("door")
    b.link("door", joint="free", inertia=lw.BodyInertia(1.0, np.array([0.3, 0, 0.1]), np.diag([0.01, 0.03, 0.025])))
    b.frame("post", "world")
    tree = b.build()
    door = tree.with_constraints(lw.Hinge("door", "post", axis="z"))
    assert turns(tree, 1)
    assert not turns(door, 1)
    run = lw.simulate(door, door.neutral(), [0, 0, 0, 0, 0, 100.0], duration=0.5)
    E = energy(door, run.q, run.v)
    np.testing.assert_allclose(E, E[0], rtol=1e-9)
    b.link("arm", "door", joint="revolute", axis="y", inertia=tree.links[1].inertia)
    b.frame("knob", "door", lw.Placement.at((0, 1, 0)))
    robot = b.build()
    inner = robot.with_constraints(lw.Distance("arm", "knob", length=1.0))
    outer = robot.with_constraints(lw.LinkRows({"arm": [[1.0, 0, 0, 0, 0, 0]]}))
    assert [turns(m, 1) for m in (inner, outer)] == [True, False]


def test_a_motion_that_gains_energy_from_nowhere_ends_with_an_error():
    """A chain whose joints turn by some 0.05 rad in a step; it says how fast, how long, and what to do."""
    model = chain(6)
    v = 20 * np.random.default_rng(1).normal(size=6)
    with pytest.raises(StepError, match=r"'.*' gained .* J from nowhere by t = 0\..* steps of 0.001 s .*rad/s.*rk4"):
        lw.simulate(model, model.neutral(), v, duration=0.5)
    assert np.isfinite(lw.simulate(model, model.neutral(), v, duration=0.2, integrator="rk4").q).all()
    with pytest.raises(StepError, match="gained"):
        lw.simulate(
            heavy_top("free").with_constraints(lw.point("top")),
            [0, 0, 0, *TILTED],
            [0, 0, 0, 0, 0, 224.0],
            duration=0.5,
        )


SWUNG = {
    "double pendulum": (chain(2), np.array([1.5, 0.5]), np.array([20.0, -14.0])),
    "chain of six": (chain(6), np.full(6, 0.3), 6 * np.random.default_rng(1).normal(size=6)),
    "four-bar": (
        fast := four_bar(1.0, 0.5, 1.0, 0.9),
        fast.neutral(),
        20 * lw.project_velocity(fast, fast.neutral(), [1.0, 0, 0]),
    ),
}


@pytest.mark.parametrize("name", SWUNG)
def test_energy_that_is_off_by_some_percent_is_told(name):
    """Gained or lost: one warning, which points to the call; slower, or with shorter steps, there is none."""
    model, q, v = SWUNG[name]

    def told(v, dt, call):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            call(v, dt)
        assert all(w.category is StepWarning and w.filename == __file__ for w in heard)
        return len(heard)

    def simulated(v, dt):
        run = lw.simulate(model, q, v, dt=dt, duration=1.0)
        T, V = energies_of(model)(run.q, run.v)
        off.append(np.ptp(T + V) / (T[0] + np.ptp(V)))

    def rolled(v, dt):
        run(q, v, dt=dt, steps=round(1 / dt), every=round(0.1 / dt))

    off, run = [], lw.rollout(model)
    assert told(v, 1e-3, simulated) == 1
    assert off.pop() > 0.04
    assert told(v / 10, 1e-3, simulated) == told(v, 1e-4, simulated) == 0
    assert max(off) < 0.1
    assert told(v, 1e-3, rolled) == 1
    assert told(v, 1e-4, rolled) == 0


@pytest.mark.parametrize("backend", ["kernel", "numpy"])
def test_states_of_a_rollout_that_gain_energy_fail_alone(backend):
    model = chain(6)
    v = np.array([0.01, 20, 0.02])[:, None] * np.random.default_rng(1).normal(size=6)
    run = lw.rollout(model, backend=backend, record=("a",))(np.zeros(6), v, steps=200, every=10)
    assert list(run.ok) == [True, False, True]
    stopped = run.survived[1]
    assert 0 < stopped < 200
    assert stopped % 10 == 0
    n = stopped // 10
    np.testing.assert_array_equal(run.q[1, n:], np.tile(run.q[1, n - 1], (20 - n, 1)))
    assert not run.a[1, n:].any()
    assert run.a[1, :n].all(axis=1).any()
    E, E0 = energy(model, run.q[1], run.v[1]), energy(model, np.zeros((1, 6)), v[1:2])
    assert E.max() < 2 * E0[0]


def test_what_forces_do_is_no_gain():
    """Motors, brakes, stiff joint control and swings that come back: no alarm."""
    model = pendulum()
    for controller in (lambda t, q, v: [50 * np.sign(np.sin(20 * t))], lambda t, q, v: -1e5 * (q - 1) - 10 * v):
        assert len(lw.simulate(model, [0.5], None, controller, duration=1.0)) == 1001
    tau = np.zeros((100, 1))
    tau[:50], tau[50:] = 100.0, -100.0
    assert lw.rollout(model)([0.0], [0.0], tau, steps=1000).ok
    assert lw.rollout(model, dt=5e-3)([3.1], [0.0], steps=20_000, every=20_000).ok
    loop = four_bar()
    q = lw.assemble(loop, loop.neutral())
    assert lw.rollout(loop, stabilisation=True)(q, lw.project_velocity(loop, q, [1.0, 0, 0]), steps=3000, every=3000).ok


def test_constraint_forces_do_work_where_their_frames_move():
    """A contact switched on while its foot rises lifts the robot: no gain. A top that stands on its tip has one."""
    b = lw.Builder("ball")
    b.link("ball", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), 0.004 * np.eye(3)))
    ball = b.build().with_constraints(lw.point("ball"))
    run = lw.rollout(ball)(ball.neutral(), [0, 0, 3.0, 0, 0, 0], steps=20_000, every=20_000)
    assert run.ok
    assert run.q[0, 2] == pytest.approx(60.0)
    assert lw.simulate(ball, ball.neutral(), [0, 0, 3.0, 0, 0, 0], duration=5.0).q[-1, 2] == pytest.approx(15.0)
    top = heavy_top("free").with_constraints(lw.point("top"))
    run = lw.rollout(top)([0, 0, 0, *TILTED], [0, 0, 0, 0, 0, 224.0], steps=500, every=10)
    assert not run.ok
    assert energy(top, run.q, run.v).max() < 1.6 * 21


def test_energies_are_those_of_the_model():
    model = floating_chain().with_gravity((1.0, 2.0, -9.81))
    rng = np.random.default_rng(4)
    q, v = np.array([model.random_q(rng) for _ in range(5)]), rng.normal(size=(5, model.nv))
    for backend in ("kernel", "numpy"):
        T, V = energies_of(model, backend)(q, v)
        np.testing.assert_allclose(T + V, energy(model, q, v), rtol=1e-12)
        np.testing.assert_allclose(T, energy(model.with_gravity((0, 0, 0)), q, v), rtol=1e-12)


def test_a_ledger_counts_what_projections_move():
    model = pendulum()
    ledger = Ledger(model, np.array([0.0]), np.array([10.0]), "numpy")
    ledger.moved((np.array([0.0]), np.array([10.0])), (np.array([0.0]), np.array([100.0])))
    ledger.check(0.1, 1e-3, np.array([0.0]), np.array([100.0]), "rk4")
    with pytest.raises(StepError, match="gained"):
        ledger.check(0.2, 1e-3, np.array([0.0]), np.array([200.0]), "rk4")


@pytest.mark.parametrize(("model", "most"), [(quadruped(), 2960), (chain(7), 1042)], ids=["quadruped", "chain"])
def test_what_a_step_costs(model, most):
    """A plain step of the quadruped takes 2783 operations: momentum and work add 6 %."""
    assert lw.rollout(model).operations <= most
