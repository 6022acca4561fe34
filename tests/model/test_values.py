"""A model is a value: equal, hashed, copied and pickled by content."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, replace
from typing import Any

import numpy as np
import pytest

import linkwork as lw
from linkwork import joints
from linkwork.constraints import CentreOfMass, Closure, Coupling, Custom, Distance, LinkRows
from linkwork.model import Frame, Limits, Link, Topology, Visual
from linkwork.model.body import Moments
from linkwork.model.visual import Box, Mesh
from linkwork.robots.mechanisms import chain, four_bar, humanoid, quadruped
from linkwork.value_objects import LINE, Value

BODY = {"mass": 1.5, "com": [0.1, 0.2, 0.3], "I": np.diag([0.1, 0.2, 0.25])}
PLACE = {"xyz": [1.0, 2.0, 3.0], "rpy": [0.1, -0.2, 0.3]}


def sine(a: Any, b: Any) -> Any:
    return a - b


def link(**changed: Any) -> Link:
    given = {
        "name": "arm",
        "parent": 0,
        "joint": joints.Revolute("y"),
        "joint_name": "elbow",
        "placement": lw.Placement.at(**PLACE),
        "inertia": lw.BodyInertia(**BODY),
        "armature": [0.1],
    }
    return Link(**{**given, **changed})


def model() -> lw.Model:
    """With a constraint of every class of Linkwork's."""
    b = lw.Builder("robot")
    for k, parent in enumerate(("world", "l0", "l1")):
        b.link(f"l{k}", parent, "revolute", axis="xyz"[k], inertia=lw.BodyInertia(**BODY), limits=Limits(-1, 2))
    b.frame("tip", "l2", lw.Placement.at(**PLACE))
    b.visual("l1", Visual(Box((1.0, 2.0, 3.0))))
    return b.build().with_constraints(
        lw.point("tip", stabilisation=lw.Stabilisation()),
        Closure("tip", "l0", "helical", axis=[1, 2, 2], pitch=0.1),
        Coupling("l0_joint", {"l1_joint": [2.0, 0.5]}),
        Distance("tip", "l0", 0.5),
        LinkRows({"l0": np.ones((2, 6)), "l2": np.eye(6)[:2]}, k=[1.0, 2.0]),
        CentreOfMass([0.0, 0.1, 0.2]),
        Custom(sine, joints=("l0_joint", "l1_joint")),
    )


VARIANTS: dict[str, tuple[Callable[[], Value], Callable[[], Value]]] = {
    "Placement, position": (lambda: lw.Placement.at(**PLACE), lambda: lw.Placement.at([1, 2, 4], PLACE["rpy"])),
    "Placement, rotation": (lambda: lw.Placement.at(**PLACE), lambda: lw.Placement.at(PLACE["xyz"])),
    "BodyInertia, mass": (lambda: lw.BodyInertia(**BODY), lambda: lw.BodyInertia(**{**BODY, "mass": 1.6})),
    "BodyInertia, com": (lambda: lw.BodyInertia(**BODY), lambda: lw.BodyInertia(**{**BODY, "com": np.zeros(3)})),
    "BodyInertia, class": (lambda: lw.BodyInertia(0.0), lambda: Moments(0.0)),
    "Moments": (lambda: Moments(1.0, h=np.ones(3)), lambda: Moments(1.0)),
    "Limits": (lambda: Limits(-1, 1), lambda: Limits(-1, 2)),
    "Frame": (lambda: Frame(1, lw.Placement.at(**PLACE)), lambda: Frame(2, lw.Placement.at(**PLACE))),
    "Link, name": (link, lambda: link(name="leg")),
    "Link, joint": (link, lambda: link(joint=joints.Revolute("x"))),
    "Link, armature": (link, lambda: link(armature=[0.2])),
    "Link, weightless": (link, lambda: link(weightless=lw.BodyInertia(**BODY))),
    "Topology": (lambda: Topology([0, 0], [0, 1], [0, 1]), lambda: Topology([0, 0], [0, 4], [0, 3])),
    "Revolute": (lambda: joints.Revolute("z"), lambda: joints.Revolute("-z")),
    "Revolute, class": (lambda: joints.Revolute("z"), lambda: joints.Prismatic("z")),
    "Prismatic": (lambda: joints.Prismatic([1, 1, 0]), lambda: joints.Prismatic([1, 1, 1])),
    "Helical": (lambda: joints.Helical("z", 0.1), lambda: joints.Helical("z", 0.2)),
    "Cylindrical": (lambda: joints.Cylindrical("z"), lambda: joints.Cylindrical("x")),
    "Universal": (lambda: joints.Universal("x", "y"), lambda: joints.Universal("x", "z")),
    "Free": (lambda: joints.Free("link"), lambda: joints.Free("parent")),
    "Planar": (joints.Planar, joints.Spherical),
    "Fixed": (joints.Fixed, joints.Planar),
    "Stabilisation": (lw.Stabilisation, lambda: lw.Stabilisation(0.2)),
    "Closure": (lambda: Closure("a", axis="y"), lambda: Closure("a", axis="x")),
    "Coupling": (lambda: Coupling("a", {"b": [1.0]}), lambda: Coupling("a", {"b": [2.0]})),
    "Distance": (lambda: Distance("a", "b", 1.0), lambda: Distance("a", "b", 2.0)),
    "LinkRows": (lambda: LinkRows({"a": np.eye(6)}), lambda: LinkRows({"a": 2 * np.eye(6)})),
    "LinkRows, k": (lambda: LinkRows({"a": np.eye(6)}), lambda: LinkRows({"a": np.eye(6)}, k=[1] * 6)),
    "CentreOfMass": (CentreOfMass, lambda: CentreOfMass([0, 0, 1])),
    "Custom": (lambda: Custom(sine, ("a", "b")), lambda: Custom(sine, ("b", "a"))),
    "Custom, function": (lambda: Custom(sine, ("a", "b")), lambda: Custom(lambda a, b: a - b, ("a", "b"))),
    "Mesh": (lambda: Mesh(np.eye(3), np.arange(3)), lambda: Mesh(np.eye(3), np.zeros(3, int))),
    "Model": (model, lambda: model().with_gravity([0, 0, -1.62])),
    "Model, frame": (model, lambda: model().with_frame("other")),
    "Model, constraints": (model, lambda: model().without("tip~world")),
    "Model, independent": (model, lambda: model().with_independent("l0_joint")),
    "Model, name": (model, lambda: replace(model(), name="other")),
    "quadruped": (quadruped, lambda: quadruped().with_armature("front_left_knee", 0.1)),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_equality_and_hash_are_by_content(name: str) -> None:
    same, other = VARIANTS[name]
    a, b, c = same(), same(), other()
    assert a is not b
    assert a == b
    assert hash(a) == hash(b)
    assert a != c
    assert len({a, b, c}) == 2
    assert {a: "found"}[b] == "found"
    assert a != "a"
    assert (a == 1) is False


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_equal_and_read_only(name: str, way: Callable[[Any], Any]) -> None:
    x = VARIANTS[name][0]()
    before = hash(x)
    y = way(x)
    assert y is not x
    assert y == x
    assert hash(y) == before
    assert repr(y) == repr(x)
    assert set(vars(y)) - {"_content"} <= set(vars(x))
    assert all(not a.flags.writeable for a in arrays(y))


def arrays(x: Any) -> list[np.ndarray]:
    """All arrays that a value of a model has in it."""
    if isinstance(x, np.ndarray):
        return [x]
    if isinstance(x, Value) and not isinstance(x, Mesh):
        return [a for n, y in vars(x).items() if n != "looks" for a in arrays(y)]
    if isinstance(x, list | tuple) or hasattr(x, "values"):
        return [a for y in (x.values() if hasattr(x, "values") else x) for a in arrays(y)]
    return []


def test_zeros_are_equal_whatever_their_sign_and_nan_is_equal_to_itself() -> None:
    assert lw.Placement(p=np.array([0.0, 0.0, -0.0])) == lw.Placement()
    assert lw.BodyInertia(-0.0) == lw.BodyInertia(0.0)
    assert hash(Limits(-0.0)) == hash(Limits(0.0))
    odd = object.__new__(Limits)  # constructors refuse it
    odd.__dict__.update(lower=math.nan, upper=1.0, effort=1.0, velocity=1.0)
    assert odd == copy.copy(odd)
    assert odd != Limits(0.0, 1.0, 1.0, 1.0)


def test_arguments_in_other_words_are_the_same_content() -> None:
    assert CentreOfMass() == CentreOfMass(np.zeros(3))
    assert joints.Revolute("z") == joints.Revolute([0, 0, 2])
    assert Closure("a", joint="weld") == Closure("a", joint="fixed", axis=(0, 0, 1))
    assert Limits(1, 2) == Limits(1.0, np.float32(2.0))
    assert Coupling("a", {"b": [1]}) == Coupling("a", {"b": np.ones(1)})


def test_looks_are_pickled_but_not_compared() -> None:
    with_looks = model()
    plain = replace(with_looks, links=tuple(replace(l, looks=()) for l in with_looks.links))
    assert plain == with_looks
    again = pickle.loads(pickle.dumps(with_looks))
    assert again.links[2].visuals == with_looks.links[2].visuals == (Visual(Box((1.0, 2.0, 3.0))),)
    assert not again.links[1].visuals


def test_what_has_no_content_is_equal_to_itself_alone() -> None:
    @dataclass(frozen=True, eq=False)
    class Own(Distance):
        pass

    class Turning(joints.Revolute):
        pass

    one, other = Own("l0", "tip", 1.0), Own("l0", "tip", 1.0)
    assert one == one
    assert one != other
    assert model().with_constraints(one) == model().with_constraints(one)
    assert model().with_constraints(one) != model().with_constraints(other)
    turning = Turning("z")
    assert link(joint=turning) == link(joint=turning)
    assert link(joint=turning) != link(joint=Turning("z"))
    assert copy.deepcopy(turning) != turning
    assert copy.deepcopy(turning).axis.tolist() == [0, 0, 1]


def test_the_content_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from linkwork import value_objects as values

    m, reads, content = quadruped(), [], values.content
    monkeypatch.setattr(values, "content", lambda *parts: reads.append(parts) or content(*parts))
    assert hash(m) == hash(m)
    first = len(reads)
    assert first > 0
    assert hash(m) == hash(replace(m))
    assert len(reads) == first + 1  # of the new model alone: its links are the same


def test_values_do_not_change() -> None:
    m = model()
    with pytest.raises(FrozenInstanceError):
        m.name = "other"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="a Revolute does not change"):
        m.links[1].joint.axis = np.ones(3)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="read-only"):
        m.links[1].joint.axis[0] = 2.0  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="read-only"):
        m.constraints[4].K["l0"][0, 0] = 2.0  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        m.constraints[2].terms["l0_joint"] = (1.0,)  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        m.frames["other"] = m.frames["tip"]  # type: ignore[index]


OTHER = """
import pickle, sys
import numpy as np
import linkwork as lw
from linkwork.robots.mechanisms import four_bar, humanoid, quadruped
given = pickle.load(sys.stdin.buffer)
assert given == [four_bar(), humanoid(), quadruped()], given
assert {four_bar(): 1}[given[0]] == 1
model = given[0]
a = lw.forward_dynamics(model, backend="numpy", method="kkt")(model.neutral(), np.zeros(3), np.ones(3)).a
sys.stdout.buffer.write(pickle.dumps((given, a)))
"""


def test_models_are_equal_in_another_process() -> None:
    given = [four_bar(), humanoid(), quadruped()]
    given[0].topology  # noqa: B018, cached, and not sent
    call = [sys.executable, "-c", OTHER]
    done = subprocess.run(call, input=pickle.dumps(given), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr[-1000:]
    back, a = pickle.loads(done.stdout)
    assert back == given
    m = given[0]
    here = lw.forward_dynamics(m, backend="numpy", method="kkt")(m.neutral(), np.zeros(3), np.ones(3)).a
    assert np.array_equal(a, here)


def test_pickles_do_not_grow_with_what_was_computed() -> None:
    m = four_bar()
    before = pickle.dumps(m)
    lw.forward_dynamics(m)(m.neutral(), np.zeros(3), np.zeros(3))
    assert {m}
    assert pickle.dumps(m) == before


LONG = "a name that is much too long, with\nlines " * 20


@pytest.mark.parametrize("x", [make() for pair in VARIANTS.values() for make in pair], ids=lambda x: type(x).__name__)
def test_reprs_are_short(x: Value) -> None:
    check_repr(x)


def check_repr(x: Value) -> None:
    text = repr(x)
    assert text.startswith(f"{type(x).__name__}("), text
    assert "\n" not in text, text
    assert len(text) <= LINE, text


def test_reprs_of_extremes_are_short() -> None:
    worst = np.array([-1.23456789e-29, -1.23456789e29, -1.23456789e-15])
    body = lw.BodyInertia(1.23456e-20, worst, np.diag(-worst))
    place = lw.Placement.at(worst, [1.23456, -0.123456, -2.3456])
    frame = Frame(4000, place)
    long = link(name=LONG, joint_name=LONG, inertia=body, placement=place, parent=3999)
    names = {LONG + str(k): [1.23456789e-15, -9.87654321] for k in range(9)}
    m = lw.Model(LONG, (link(name="world"), replace(long, parent=0)), {"f": Frame(0, place)})
    for x in (body, Moments.of(body), place, frame, long, m, joints.Helical(worst / 1e29, 1.2345678e-20)):
        check_repr(x)
    for c in (Closure(LONG, LONG), Coupling(LONG, names), Distance(LONG, LONG, 1e-12), Custom(sine, tuple(names))):
        check_repr(c)
    check_repr(Limits(-1.23456e-20, -1.23456e-20, -1.23456e-20, -1.23456e-20))
    assert all(len(repr(l)) <= LINE for l in humanoid().links)


def test_reprs_say_what_matters() -> None:
    assert repr(joints.Revolute("-y")) == "Revolute(axis='-y')"
    assert repr(lw.Placement.at([0, 0, 0.3], [0, 0, -1.0])) == "Placement(p=[0 0 0.3], rpy=[0 0 -1])"
    assert repr(Limits(upper=1)) == "Limits(upper=1)"
    assert repr(link()) == "Link('arm' on link 0 by revolute joint 'elbow', 1.5 kg)"
    assert repr(lw.point("foot")) == "Closure('foot~world', spherical foot ~ world)"
    assert repr(chain(4)) == "Model('chain 4': 4 links, nq=4, nv=4, 0 constraints with 0 rows, 2.4 kg)"
    assert repr(chain(4).topology) == "Topology(4 links, nq=4, nv=4, depth 4)"


@pytest.mark.parametrize("rpy", [(0.1, 0.2, 0.3), (0, 0, 0), (-3, 1.5, 2), (0.4, np.pi / 2, 0), (0.4, -np.pi / 2, 0.1)])
def test_roll_pitch_yaw(rpy: tuple[float, float, float]) -> None:
    R = lw.Placement.at(rpy=rpy)
    np.testing.assert_allclose(lw.Placement.at(rpy=R.rpy).R, R.R, atol=1e-12)
