"""Springs have an energy, damping takes it, and motions of oscillators are the textbook's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends import get
from linkwork.errors import ModelError, StepError, StepWarning
from linkwork.joints import KINDS
from linkwork.robots.mechanisms import chain, geared_chain

NUMPY = get("numpy")


def oscillator(stiffness: float = 100.0, damping: float = 0.0, rest: float = 0.1) -> lw.Model:
    """A mass of 2 kg on a spring, without gravity."""
    b = lw.Builder("oscillator", gravity=np.zeros(3))
    body = lw.BodyInertia(2.0, np.zeros(3), 0.01 * np.eye(3))
    b.link("mass", joint="prismatic", axis="x", inertia=body, stiffness=stiffness, damping=damping, rest=rest)
    return b.build()


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "fixed"])
def test_the_displacement_of_a_joint_is_that_of_an_energy(kind: str) -> None:
    """d/dt |x|^2 / 2 = x . v along any motion, by differences."""
    joint, rng = KINDS[kind](), np.random.default_rng(3)
    for _ in range(5):
        rest, q, v = joint.random(rng)[:, None], joint.random(rng)[:, None], rng.normal(size=(joint.nv, 1))
        x, h = joint.displacement(rest, q, NUMPY), 1e-6
        size = [joint.displacement(rest, joint.integrate(q, s * v, NUMPY), NUMPY) for s in (h, -h)]
        rate = ((size[0] ** 2).sum() - (size[1] ** 2).sum()) / (4 * h)
        assert rate == pytest.approx((x.T @ v).item(), abs=1e-7 * (1 + float(np.abs(x).max())))
        assert np.abs(joint.displacement(rest, rest, NUMPY)).max() < 1e-7


def test_an_oscillator_swings_as_the_textbook_says() -> None:
    model, t = oscillator(damping=4.0), 0.7
    w, decay = np.sqrt(100 / 2 - 1), 1.0
    run = lw.simulate(model, [0.3], duration=t, integrator="rk4")
    right = 0.1 + 0.2 * np.exp(-decay * t) * (np.cos(w * t) + decay / w * np.sin(w * t))
    assert run.q[-1, 0] == pytest.approx(right, abs=1e-9)
    assert lw.inverse_dynamics(model)([0.3], [2.0], [0.0]).tau[0] == pytest.approx(100 * 0.2 + 4 * 2)


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4", "midpoint"])
def test_what_damping_takes_is_no_error(integrator: str) -> None:
    """Most of the energy is lost to damping, and no step is blamed; nor is one where springs store it."""
    model = chain(3)
    for l in model.links[1:]:
        model = model.with_damping(l.joint_name, 0.05).with_springs(l.joint_name, 2.0, 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StepWarning)
        run = lw.simulate(model, np.ones(3), np.ones(3), duration=1.0, integrator=integrator)
    assert np.isfinite(run.q).all()
    if integrator != "midpoint":
        with warnings.catch_warnings():
            warnings.simplefilter("error", StepWarning)
            assert lw.rollout(model, integrator=integrator, steps=1000, every=100)(np.ones(3), np.ones(3)).ok


def test_a_spring_that_is_too_stiff_for_the_step_is_told() -> None:
    stiff = oscillator(stiffness=2.0 * (3 / 1e-3) ** 2)  # three radians in a step: rk4 is unstable
    with pytest.raises(StepError):
        lw.simulate(stiff, [0.2], duration=0.05, integrator="rk4")
    assert not lw.rollout(stiff, integrator="rk4", steps=50, every=10)([0.2], [0.0]).ok


def test_models_keep_their_springs() -> None:
    model = oscillator(damping=1.0).with_friction("mass_joint", 0.2)
    twice = lw.combine(lw.Part(model, "a/"), lw.Part(model, "b/"))
    assert [l.passive.stiffness[0] for l in twice.links[1:]] == [100.0, 100.0]
    assert [l.passive.friction[0] for l in twice.links[1:]] == [0.2, 0.2]
    assert twice.parameters().rest.tolist() == [0.1, 0.1]
    assert model != model.without_passive()
    assert not model.without_passive().links[1].passive.acts
    geared = geared_chain(2)
    joint = geared.links[1].joint_name
    kept = lw.approximate(geared.with_damping(joint, 3.0))
    assert kept.links[kept.joint(joint)].passive.damping.tolist() == [3.0]


def test_damping_of_dependent_joints_is_felt_by_those_that_turn_them() -> None:
    """A rotor with damping d behind a gear of ratio n damps the joint with n^2 d."""
    model = geared_chain(1)
    rotor = next(l.joint_name for l in model.links[1:] if "rotor" in l.name or "rotor" in l.joint_name)
    q, v = lw.random_state(model, 1)
    damped, a = model.with_damping(rotor, 0.3), lw.forward_dynamics(model)(q, v, np.zeros(model.nv)).a
    lost = [lw.inverse_dynamics(m)(q, v, a).tau for m in (model, damped)]
    power = 0.3 * float(v[model.topology.v_slices[model.joint(rotor)]][0]) ** 2
    assert float(v @ (lost[1] - lost[0])) == pytest.approx(power, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.with_damping("mass_joint", -1.0), "at least 0"),
        (lambda m: m.with_springs("mass_joint", [1.0, 2.0]), "at least 0"),
        (lambda m: m.with_springs("mass_joint", 1.0, [1.0, 2.0]), "1 numbers"),
    ],
)
def test_what_no_joint_has(change, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        change(oscillator())


def test_springs_in_space_have_one_stiffness() -> None:
    b = lw.Builder("body")
    b.link("body", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
    model = b.build().with_springs("body_joint", [2.0, 2.0, 2.0, 5.0, 5.0, 5.0], [0, 0, 1, 0, 0, 0, 1])
    assert model.links[1].passive.rest[2] == 1
    with pytest.raises(ModelError, match="one stiffness for all rotations"):
        model.with_springs("body_joint", np.arange(6.0))
    with pytest.raises(ModelError, match="not of length one"):
        model.with_springs("body_joint", 1.0, np.zeros(7))


def test_files_say_what_resists() -> None:
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    joint = '<parent link="a"/><child link="b"/><dynamics damping="0.7" friction="0.2"/>'
    text = f'<robot name="r"><link name="a"/><link name="b">{body}</link>'
    urdf = f'{text}<joint name="j" type="continuous">{joint}</joint></robot>'
    link = lw.load(urdf).links[1]
    assert (link.passive.damping[0], link.passive.friction[0]) == (0.7, 0.2)
    assert not lw.load(urdf, passive=False).links[1].passive.friction.any()
    with pytest.warns(UserWarning, match="negative"):
        assert not lw.load(urdf.replace("0.7", "-0.7")).links[1].passive.damping.any()
    spring = "<spring_reference>0.4</spring_reference><spring_stiffness>6</spring_stiffness>"
    axis = f"<axis><xyz>0 1 0</xyz><dynamics><damping>0.5</damping><friction>0.1</friction>{spring}</dynamics></axis>"
    sdf = (
        '<sdf version="1.7"><model name="m"><link name="a"/><link name="b"/>'
        '<joint name="w" type="fixed"><parent>world</parent><child>a</child></joint>'
        f'<joint name="j" type="revolute"><parent>a</parent><child>b</child>{axis}</joint></model></sdf>'
    )
    passive = lw.load(sdf).links[1].passive
    assert [x[0] for x in (passive.damping, passive.stiffness, passive.rest, passive.friction)] == [0.5, 6, 0.4, 0.1]


@pytest.mark.parametrize(("stiffness", "damping"), [(1e2, 0.0), (1e6, 0.0), (1e9, 0.0), (1e6, 1e2), (0.0, 1e7)])
def test_semi_implicit_steps_take_any_stiffness(stiffness: float, damping: float) -> None:
    """The amplitude stays, or falls with damping, and no energy is missed."""
    model = oscillator(stiffness, damping, rest=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StepWarning)
        rolled = lw.rollout(model, steps=2000, every=10)([0.1], [0.0])
        simulated = lw.simulate(model, [0.1], duration=0.2)
    assert rolled.ok
    assert np.abs(rolled.q).max() < 0.15
    if stiffness and not damping:
        assert np.abs(rolled.q[-50:]).max() > 0.09
    np.testing.assert_allclose(simulated.q[10::10], rolled.q[: len(simulated.q[10::10])], atol=1e-9)
    if not stiffness:
        assert np.abs(lw.rollout(model, steps=1)([0.1], [3.0]).v).max() < 1e-3


def test_the_leaf_springs_of_cassie_at_a_millisecond() -> None:
    """1500 N m/rad on light links, 0.05 rad from rest: they swing, and no more than that."""
    try:
        model = lw.load("cassie.xml")
    except lw.LinkworkError as problem:
        pytest.skip(f"Cassie is not installed: {problem}")
    model = model.with_gravity((0, 0, 0))
    q = model.neutral()
    for side in ("left", "right"):
        for joint, x in (("hip-pitch", 0.5), ("knee", -1.2), ("tarsus", 1.43), ("foot", -1.6), ("shin", 0.05)):
            q[model.topology.q_slices[model.joint(f"{side}-{joint}")]] = x
    q = lw.assemble(model, q)
    shin = model.topology.q_slices[model.joint("left-shin")].start
    assert q[shin] == 0.05  # springs are where they were asked to be
    with warnings.catch_warnings():
        warnings.simplefilter("error", StepWarning)
        run = lw.rollout(model, stabilisation=True, method="prox_ltl", backend="numpy", steps=30)
        moved = run(q, np.zeros(model.nv))
    assert moved.ok
    assert np.abs(moved.q[:, shin]).max() <= 1.05 * abs(q[shin])
    assert moved.q[:, shin].min() < 0 < moved.q[:, shin].max()


def test_cassie_from_neutral_at_a_millisecond() -> None:
    """Its loops close without loading the springs, and it falls as a rigid body does."""
    try:
        model = lw.load("cassie.xml")
    except lw.LinkworkError as problem:
        pytest.skip(f"Cassie is not installed: {problem}")
    q = lw.assemble(model, model.neutral())
    sprung = [model.topology.q_slices[i].start for i in model.topology.links if model.links[i].passive.stiffness.any()]
    assert not q[sprung].any()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fall = lw.rollout(model, steps=500, every=100)(q, np.zeros(model.nv))
    assert fall.ok
    np.testing.assert_allclose(fall.q[-1, 2], -9.81 * 0.5**2 / 2, rtol=5e-3)
    assert np.abs(fall.q[:, sprung]).max() < 1e-3
