"""Actuators: what they make of controls, in every function that takes these, and what keeps them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError, ModelError
from linkwork.robots.mechanisms import chain, geared_chain

EPS = float(np.finfo(float).eps)


def arm(**motor) -> lw.Model:
    """Three hinges: a motor, a position servo that saturates, and a tendon over two joints with an affine gain."""
    model = chain(3)
    one, two, three = (l.joint_name for l in model.links[1:])
    return model.with_actuators(
        lw.Motor(one, gear=3.0, **motor),
        lw.PositionServo(two, kp=50.0, kd=2.0, force_range=(-5, 5)),
        lw.Actuator({two: 1.0, three: -2.0}, (1, 0.2, 0.1), (0.1, -0.3, -0.2), (-1, 1), name="tendon"),
    )


def by_hand(q, v, u) -> np.ndarray:
    """The joint forces of `arm`, written out."""
    servo = np.clip(50 * (u[1] - q[1]) - 2 * v[1], -5, 5)
    l, s, c = q[1] - 2 * q[2], v[1] - 2 * v[2], np.clip(u[2], -1, 1)
    pull = (1 + 0.2 * l + 0.1 * s) * c + 0.1 - 0.3 * l - 0.2 * s
    return np.array([3 * u[0], servo + pull, -2 * pull])


def states(model: lw.Model, count: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, model.nq)), rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nu))


@pytest.mark.parametrize("backend", ["kernel", "numpy", "casadi"])
def test_forces_are_those_of_the_formula(backend: str) -> None:
    model = arm()
    Q, V, U = states(model, 9)
    found = lw.actuation(model, backend=backend)(Q, V, U).tau
    right = np.array([by_hand(*x) for x in zip(Q, V, U, strict=True)])
    np.testing.assert_allclose(found, right, atol=100 * EPS * np.abs(right).max())
    saturated = np.abs(50 * (U[:, 1] - Q[:, 1]) - 2 * V[:, 1]) > 5
    assert saturated.any()
    assert not saturated.all()


def test_dynamics_take_controls() -> None:
    model = arm()
    Q, V, U = states(model, 5)
    fd, tau = lw.forward_dynamics(model, actuators=True), lw.actuation(model)(Q, V, U).tau
    right = lw.forward_dynamics(model)(Q, V, tau + 1).a
    np.testing.assert_allclose(fd(Q, V, U, tau=np.ones(3)).a, right, rtol=1e-12, atol=1e-12)
    assert list(fd.inputs) == ["q", "v", "u", "tau"]
    copy = pickle.loads(pickle.dumps(fd))
    np.testing.assert_array_equal(copy(Q, V, U).a, fd(Q, V, U).a)


@pytest.mark.parametrize("loops", [False, True])
def test_derivatives_by_controls(loops: bool) -> None:
    """Against central differences, servos included; also where a relation couples joints."""
    model = arm().with_constraints(lw.Coupling("link1_joint", {"link3_joint": [0.5, 0.3]})) if loops else arm()
    fd = lw.forward_dynamics(model, actuators=True, method="kkt" if loops else None)
    q, v, u = (x[0] for x in states(model, 1, seed=4))
    d, h = fd.derivatives()(q, v, u), 1e-6
    forward = fd.jvp()(q, v, u, *(np.ones(n) for n in (3, 3, 3)))
    back = fd.vjp()(q, v, u, np.ones(3), np.zeros(model.rows))
    for n, name in enumerate("qvu"):
        exact = getattr(d, f"da_d{name}")
        for k, e in enumerate(np.eye(3)):
            ends = [fd(*(x + s * h * e if i == n else x for i, x in enumerate((q, v, u)))).a for s in (1, -1)]
            slope = (ends[0] - ends[1]) / (2 * h)
            np.testing.assert_allclose(exact[:, k], slope, atol=1e-6 * (1 + np.abs(exact).max()))
        np.testing.assert_allclose(getattr(back, f"g_{name}"), exact.sum(axis=0), atol=1e-9 * (1 + np.abs(exact).max()))
    total = sum(getattr(d, f"da_d{name}").sum(axis=1) for name in "qvu")
    np.testing.assert_allclose(forward.da, total, atol=1e-9 * (1 + np.abs(total).max()))


def test_second_order_by_controls() -> None:
    """hvp against differences of vjp."""
    model = arm()
    fd, (q, v, u) = lw.forward_dynamics(model, actuators=True), (x[0] for x in states(model, 1, seed=4))
    w, d, h = np.ones(3), np.array([0.3, -0.2, 0.5]), 1e-5
    found = fd.hvp()(q, v, u, w, np.zeros(0), d, d, d)
    ends = [fd.vjp()(q + s * h * d, v + s * h * d, u + s * h * d, w, np.zeros(0)) for s in (1, -1)]
    for name in "qvu":
        slope = (getattr(ends[0], f"g_{name}") - getattr(ends[1], f"g_{name}")) / (2 * h)
        np.testing.assert_allclose(getattr(found, f"h_{name}"), slope, atol=1e-5 * (1 + np.abs(slope).max()))


def test_gains_are_parameters_of_their_own_in_each_lane() -> None:
    model = arm()
    Q, V, U = states(model, 4)
    gain = model.parameters().gain * np.linspace(0.5, 2, 4)[:, None, None]
    fd = lw.forward_dynamics(model, actuators=True, parameters=("gain", "bias"))
    np.testing.assert_allclose(fd(Q, V, U).a, lw.forward_dynamics(model, actuators=True)(Q, V, U).a, rtol=1e-12)
    found = fd(Q, V, U, gain=gain).a
    for b in range(4):
        changed = [
            lw.Actuator(dict(a.joints), g, a.bias, a.control_range, a.force_range, a.name)
            for a, g in zip(model.actuators, gain[b], strict=True)
        ]
        other = model.without_actuators().with_actuators(*changed)
        right = lw.forward_dynamics(other, actuators=True, backend="numpy")(Q[b], V[b], U[b]).a
        np.testing.assert_allclose(found[b], right, rtol=1e-10, atol=1e-10)


def test_motions_with_controls_agree() -> None:
    """Rollouts compiled and by NumPy, one step of `lw.step`, and a simulation, with controls that change."""
    model = arm()
    q, v, _ = (x[0] for x in states(model, 1))
    U = np.random.default_rng(1).normal(size=(20, 3))
    run = lw.rollout(model, actuators=True, record=("tau",))
    found, right = run(q, v, u=U), lw.rollout(model, actuators=True, record=("tau",), backend="numpy")(q, v, u=U)
    np.testing.assert_allclose(found.q, right.q, atol=1e-13)
    np.testing.assert_allclose(found.tau, right.tau, atol=1e-12)
    np.testing.assert_allclose(found.tau[0], by_hand(q, v, U[0]), atol=1e-12)
    once = lw.step(model, actuators=True)(q, v, U[0], [1e-3])
    np.testing.assert_allclose(once.v, found.v[0], atol=1e-12)
    for integrator in ("semi_implicit", "rk4", "midpoint", "dormand_prince"):
        walk = lw.simulate(
            model,
            q,
            v,
            lambda t, *_: U[min(round(t / 1e-3), 19)],
            duration=0.005,
            actuators=True,
            integrator=integrator,
        )
        bound = 1e-12 if integrator == "semi_implicit" else 0.02
        np.testing.assert_allclose(walk.q[5], found.q[4], atol=bound)
        np.testing.assert_allclose(walk.tau[0], by_hand(q, v, U[0]), atol=1e-12)


def test_simulations_with_contacts_take_controls_and_pushes() -> None:
    """As rollouts do: a cart with a servo on the ground, pushed."""
    b = lw.Builder("cart")
    body = lw.BodyInertia(2.0, np.zeros(3), 0.02 * np.eye(3))
    b.link("base", joint="prismatic", axis="z", inertia=body)
    b.link("cart", "base", "prismatic", axis="x", inertia=body)
    b.actuators.append(lw.PositionServo("cart_joint", kp=200.0, kd=10.0))
    model, foot, push = b.build(), [lw.Contact("base")], [3.0, 0, 0, 0, 0, 0]
    options = {"contacts": foot, "actuators": True}
    walk = lw.simulate(model, [0.0, 0.0], None, lambda *_: [0.1], duration=0.05, pushes={"cart": push}, **options)
    run = lw.rollout(model, steps=50, pushes=["cart"], **options)([0.0, 0.0], [0.0, 0.0], u=[0.1], push=push)
    np.testing.assert_allclose(walk.q[1:], run.q, atol=1e-12)
    assert walk.tau[0, 1] == pytest.approx(20.0)


def slider(kp: float, kd: float, **options) -> lw.Model:
    b = lw.Builder("slider", gravity=np.zeros(3))
    b.link("cart", joint="prismatic", axis="x", inertia=lw.BodyInertia(0.1, np.zeros(3), 0.01 * np.eye(3)))
    return b.build().with_actuators(lw.PositionServo("cart_joint", kp, kd, **options))


def test_stiff_servos_do_not_blow_up() -> None:
    """Gains a thousand times what an explicit step of 1 ms survives (h^2 k / m < 4)."""
    run = lw.rollout(slider(4e8, 1e5), actuators=True, steps=2000, every=100)([0.3], [0.0], u=np.array([0.1]))
    assert run.ok
    np.testing.assert_allclose(run.q[-1], [0.1], atol=1e-3)
    assert np.abs(run.q).max() < 0.5


def test_a_saturated_servo_pushes_as_a_constant_force_does() -> None:
    """m a = F while the target is far off, however stiff: the added inertia is that of the secant."""
    run = lw.rollout(slider(1e6, 1e3, force_range=(-2, 2)), actuators=True, steps=100, every=100)(
        [0.0], [0.0], u=np.array([1e3])
    )
    assert run.v[-1, 0] == pytest.approx(2 / 0.1 * 0.1, rel=1e-3)
    near = lw.rollout(slider(1e6, 1e4, force_range=(-2, 2)), actuators=True, steps=1000, every=10)(
        [0.0], [0.0], u=np.array([0.01])
    )
    assert near.ok
    assert np.abs(near.q[-1, 0] - 0.01) < 1e-5
    assert np.abs(near.q).max() < 0.02  # it does not swing past its target by its own stiffness


def test_joints_push_with_their_effort_limit_at_most() -> None:
    b = lw.Builder("limited")
    body = lw.BodyInertia(1.0, np.zeros(3), np.eye(3))
    b.link("a", joint="revolute", axis="z", inertia=body, limits=lw.model.Limits(effort=4.0))
    b.actuators += [lw.Motor("a_joint", name="one"), lw.Motor("a_joint", gear=-2, name="two")]
    act = lw.actuation(b.build())
    U = np.array([[1.0, 0.5], [9.0, 1.0], [1.0, 9.0]])
    np.testing.assert_array_equal(act(np.zeros((3, 1)), np.zeros((3, 1)), U).tau[:, 0], [0.0, 4.0, -4.0])


def test_models_keep_their_actuators() -> None:
    model = arm()
    assert model == pickle.loads(pickle.dumps(model))
    assert model != model.without_actuators()
    assert hash(model) != hash(arm(control_range=(0, 1)))
    twice = lw.combine(lw.Part(model, "a/"), lw.Part(model, "b/"))
    assert [a.name for a in twice.actuators][::3] == ["a/link1_joint", "b/link1_joint"]
    Q, V, U = states(twice, 1)
    alone = lw.actuation(model)(Q[:, :3], V[:, :3], U[:, :3]).tau
    np.testing.assert_allclose(lw.actuation(twice)(Q, V, U).tau[:, :3], alone, rtol=1e-12)
    assert "tau[2] =" in lw.actuation(model).c_source()


def test_motors_of_rotors_push_the_joints_that_these_turn() -> None:
    """The same motion by the exact model and, rotors without inertia, by its approximation."""
    model = geared_chain(2)
    rotors = [l.joint_name for l in model.links[1:] if "rotor" in l.name]
    driven = model.with_actuators(*(lw.Motor(j) for j in rotors))
    tree = lw.approximate(driven)
    assert tree.nu == 2
    u, q = np.array([0.3, -0.2]), tree.neutral()
    tau = lw.actuation(tree)(q, np.zeros(tree.nv), u).tau
    full = lw.actuation(driven)(driven.neutral(), np.zeros(driven.nv), u).tau
    state = lw.random_state(driven, 3)
    names = [l.joint_name for l in tree.links[1:]]
    slow = np.concatenate([state[1][driven.topology.v_slices[driven.joint(n)]] for n in names])
    assert float(full @ state[1]) == pytest.approx(float(tau @ slow))  # power


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: chain(1).with_actuators(lw.Motor("nothing")), "no joint called 'nothing'"),
        (lambda: arm().with_actuators(lw.Motor("link1_joint")), "there twice"),
        (lambda: chain(1).with_actuators(lw.Actuator({"link1_joint": (1, 2)})), "2 gears"),
        (lambda: lw.Actuator({}), "at least one joint"),
        (lambda: lw.Actuator("a", gain=(1, 2, 3, 4)), "up to three"),
    ],
)
def test_what_is_no_actuator(make, message: str) -> None:
    with pytest.raises((ModelError, lw.LinkworkError), match=message):
        make()


def test_controls_need_actuators() -> None:
    for make in (
        lw.actuation,
        *(lambda m, f=f: f(m, actuators=True) for f in (lw.forward_dynamics, lw.rollout, lw.step)),
    ):
        with pytest.raises(InputError, match="has no actuators"):
            make(chain(2))
    with pytest.raises(InputError, match="actuators=True"):
        lw.rollout(arm(), steps=2)(np.zeros(3), np.zeros(3), u=np.zeros(3))


def test_activations_are_inputs_with_derivatives() -> None:
    """The force of a filter is that of a motor whose control is the activation, and so are derivatives."""
    model = chain(2)
    one, two = (l.joint_name for l in model.links[1:])
    slow = model.with_actuators(
        lw.PositionServo(one, 20.0, 1.0, state="filter", time_constant=0.1, control_range=(-0.3, 0.3)), lw.Motor(two)
    )
    quick = model.with_actuators(lw.PositionServo(one, 20.0, 1.0), lw.Motor(two))
    q, v, u, w = np.array([0.2, 0.4]), np.array([0.1, -1.0]), np.array([2.0, 0.7]), np.array([0.5])
    fd, plain = (lw.forward_dynamics(m, actuators=True) for m in (slow, quick))
    assert (slow.na, quick.na, list(fd.inputs)) == (1, 0, ["q", "v", "u", "tau", "act"])
    np.testing.assert_allclose(fd(q, v, u, act=w).a, plain(q, v, [0.5, 0.7]).a, rtol=1e-13)
    found = fd.derivatives(("q", "u", "act"))(q, v, u, act=w)
    right = plain.derivatives(("q", "u"))(q, v, [0.5, 0.7])
    np.testing.assert_allclose(found.da_dq, right.da_dq, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.da_dact[:, 0], right.da_du[:, 0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.da_du, right.da_du * [0, 1], rtol=1e-12, atol=1e-12)
    assert lw.actuation(slow)(q, v, u, act=w).act_rate == pytest.approx([(0.3 - 0.5) / 0.1])
    assert "filter, 0.1 s" in slow.actuators[0].describe()
    with pytest.raises(ModelError, match="time_constant"):
        lw.Motor(one, state="filter")
