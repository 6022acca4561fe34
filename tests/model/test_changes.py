"""New models from old ones: inertia, armature, gravity, and fewer constraints."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork import joints
from linkwork.errors import InputError, ModelError, NotFound
from linkwork.robots.mechanisms import chain, four_bar, quadruped

BODY = lw.BodyInertia(2.0, np.array([0.1, 0.0, 0.0]), np.diag([0.1, 0.2, 0.25]))


def test_with_inertia_changes_one_link() -> None:
    m = chain(3)
    changed = m.with_inertia("link2", BODY)
    assert changed.links[2].inertia == BODY
    assert [changed.links[i] for i in (0, 1, 3)] == [m.links[i] for i in (0, 1, 3)]
    assert changed.mass == pytest.approx(m.mass - m.links[2].inertia.mass + 2.0)
    assert m == chain(3)
    assert changed.with_inertia("link2", m.links[2].inertia) == m


def test_with_inertia_is_what_the_builder_makes() -> None:
    def built(body: lw.BodyInertia) -> lw.Model:
        b = lw.Builder("pendulum")
        b.link("bob", joint="revolute", axis="y", inertia=body)
        return b.build()

    changed = built(lw.BodyInertia(1.0, np.zeros(3), np.eye(3))).with_inertia("bob", BODY)
    assert changed == built(BODY)
    q, v, tau = np.array([0.3]), np.zeros(1), np.ones(1)
    a, b = (lw.forward_dynamics(m, backend="numpy")(q, v, tau).a for m in (changed, built(BODY)))
    assert np.array_equal(a, b)


def test_with_inertia_keeps_what_gravity_pulls() -> None:
    def built(weightless: lw.BodyInertia | None) -> lw.Model:
        b = lw.Builder()
        b.link("bob", joint="revolute", inertia=BODY, weightless=weightless)
        return b.build()

    new = lw.BodyInertia(3.0, np.zeros(3), np.eye(3))
    half = lw.BodyInertia(1.0, np.array([0.1, 0.0, 0.0]))
    assert built(None).with_inertia("bob", new).links[1].weightless == lw.BodyInertia()
    assert built(BODY).with_inertia("bob", new).links[1].weightless == new
    with pytest.raises(ModelError, match=r"gravity pulls 1 of its 2 kg; say with weightless="):
        built(half).with_inertia("bob", new)
    assert built(half).with_inertia("bob", new, half).links[1].weightless == half
    none = built(None).with_inertia("bob", lw.BodyInertia())
    assert none.with_inertia("bob", new).links[1].weightless == lw.BodyInertia()


@pytest.mark.parametrize(
    ("link", "body", "message"),
    [
        ("link9", BODY, "no link called 'link9'"),
        ("world", BODY, "the world has no inertia. Links: 'link1'"),
        ("link1", lw.BodyInertia(-1.0), "link 'link1': the mass is negative"),
        ("link1", lw.BodyInertia(1.0, np.zeros(3), -np.eye(3)), "negative principal moment"),
        ("link1", lw.BodyInertia(1.0, np.zeros(3), np.triu(np.ones((3, 3)))), "not symmetric"),
        ("link1", 1.0, r"inertia is a linkwork.BodyInertia, not 1\.0"),
    ],
)
def test_with_inertia_refuses(link: str, body: lw.BodyInertia, message: str) -> None:
    with pytest.raises((InputError, ModelError, NotFound), match=message):
        chain(2).with_inertia(link, body)


def test_constraints_are_checked_again() -> None:
    m = chain(1).with_constraints(lw.CentreOfMass())
    with pytest.raises(InputError, match="no centre of mass"):
        m.with_inertia("link1", lw.BodyInertia())


def test_with_armature() -> None:
    m = chain(2)
    changed = m.with_armature("link2_joint", 0.5)
    assert changed.links[2].armature.tolist() == [0.5]
    assert changed.links[1] == m.links[1]
    q = m.random_q(0)
    difference = lw.mass_matrix(changed, backend="numpy")(q).M - lw.mass_matrix(m, backend="numpy")(q).M
    np.testing.assert_allclose(difference, np.diag([0.0, 0.5]), atol=1e-12)
    free = quadruped().with_armature("root", [0, 0, 0, 1, 2, 3])
    assert free.links[1].armature.tolist() == [0, 0, 0, 1, 2, 3]
    assert quadruped().with_armature("root", 1).links[1].armature.tolist() == [1] * 6


@pytest.mark.parametrize(
    ("joint", "value", "message"),
    [
        ("link9_joint", 0.1, "no joint called 'link9_joint'"),
        ("link1_joint", -0.1, "joint 'link1_joint': armature is a number of at least 0"),
        ("link1_joint", [0.1, 0.2], "one for each of the 1 degrees of freedom"),
        ("link1_joint", np.nan, "armature is an array of finite numbers"),
    ],
)
def test_with_armature_refuses(joint: str, value: object, message: str) -> None:
    with pytest.raises((InputError, ModelError, NotFound), match=message):
        chain(2).with_armature(joint, value)


def test_with_armature_in_the_axes_of_the_parent() -> None:
    b = lw.Builder()
    b.link("body", joint=joints.Free("parent"), inertia=BODY)
    with pytest.raises(ModelError, match="one value for all three directions"):
        b.build().with_armature("body_joint", [1, 2, 3, 0, 0, 0])


def test_with_gravity() -> None:
    m = chain(2).with_gravity([0, 0, -1.62])
    assert m.gravity.tolist() == [0, 0, -1.62]
    assert m.with_gravity(chain(2).gravity) == chain(2)
    with pytest.raises(InputError, match="gravity is three finite numbers"):
        m.with_gravity([0, 0])


def test_without_constraints_by_name() -> None:
    m = quadruped()
    feet = [lw.point("front_left_foot"), lw.point("front_right_foot"), lw.surface("rear_left_foot", name="held")]
    held = m.with_constraints(*feet)
    assert held.without("front_right_foot~world") == m.with_constraints(feet[0], feet[2])
    assert held.without("held", "front_left_foot~world") == m.with_constraints(feet[1])
    assert held.without(*(c.name for c in held.constraints)) == m == held.without_constraints()
    assert held.without() == held


def test_without_takes_all_of_a_name() -> None:
    m = quadruped().with_constraints(*(lw.point(f"{side}_foot", name="feet") for side in ("front_left", "front_right")))
    assert m.without("feet") == quadruped()


def test_without_says_what_names_there_are() -> None:
    name = four_bar().constraints[0].name
    with pytest.raises(NotFound, match=f"no constraint called 'loop'.*'{name}'"):
        four_bar().without("loop")
    with pytest.raises(NotFound, match=r"Valid: \(none\)"):
        chain(2).without("loop")
    with pytest.raises(InputError, match="names is a name"):
        four_bar().without(1)  # type: ignore[arg-type]
