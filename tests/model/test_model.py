"""Builder, topology, frozen models, and every mechanism that must be refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, body, random_model, random_state
from linkwork.errors import InputError, ModelError, NotFound
from linkwork.joints import Revolute
from linkwork.model import BodyInertia, Builder, Limits, Model, Placement
from linkwork.model.builder import base_joint
from linkwork.model.topology import Topology
from linkwork.robots import mechanisms as mech

BODY = BodyInertia(1.0, np.array([0.1, 0.0, 0.0]), np.eye(3) * 0.01)


def tree() -> Model:
    """world - a - b - c, and d on a; e on the world. Given out of order."""
    b = Builder("tree")
    for name, parent, kind in [
        ("c", "b", "spherical"),
        ("a", "world", "free"),
        ("d", "a", "prismatic"),
        ("b", "a", "revolute"),
        ("e", "world", "planar"),
    ]:
        b.link(name, parent, kind, inertia=BODY)
    return b.build()


def test_links_are_sorted_so_that_parents_come_first():
    model = tree()
    assert [l.name for l in model.links] == ["world", "a", "d", "b", "c", "e"]
    assert all(p < i for i, p in enumerate(model.topology.parent) if i)


def test_topology():
    model = tree()
    t = model.topology
    a, d, b, c, e = (model.link(n) for n in "adbce")
    assert (model.nq, model.nv, model.nlinks) == (7 + 1 + 1 + 4 + 4, 6 + 1 + 1 + 3 + 3, 5)
    assert t.children[a] == (d, b)
    assert t.children[0] == (a, e)
    assert t.supports[c] == (a, b, c)
    assert t.subtrees[a] == (a, d, b, c)
    assert t.subtrees[0] == (0, a, d, b, c, e)
    assert [t.depth[i] for i in (0, a, b, c, e)] == [0, 1, 2, 3, 1]
    assert t.common_ancestor(c, d) == a
    assert t.common_ancestor(c, b) == b
    assert t.common_ancestor(c, e) == 0
    assert t.common_ancestor(c) == c
    assert t.dof_parent == (-1, 0, 1, 2, 3, 4, 5, 5, 7, 8, 9, -1, 11, 12)
    assert t.dof_link == (a,) * 6 + (d, b) + (c,) * 3 + (e,) * 3
    assert t.q_slices[c] == slice(9, 13)
    assert t.v_slices[c] == slice(8, 11)


def test_degrees_of_freedom_skip_links_without_any():
    t = Topology((0, 0, 1, 2), (0, 1, 0, 1), (0, 1, 0, 1))
    assert t.dof_parent == (-1, 0)


@pytest.mark.parametrize("seed", range(5))
def test_topology_is_consistent(seed):
    t = random_model(seed, 12).topology
    for i in t.links:
        assert t.supports[i][-1] == i
        assert i in t.children[t.parent[i]]
        assert all(i in t.subtrees[k] for k in (0, *t.supports[i]))
        assert t.common_ancestor(i, t.parent[i]) == t.parent[i]


def test_fixed_joints_are_merged_and_their_frames_kept():
    b = Builder()
    b.link("arm", "world", "revolute", axis="z", inertia=BODY)
    b.link("flange", "arm", placement=Placement.at((1, 0, 0)), inertia=BODY)
    b.link("tool", "flange", placement=Placement.at((0, 1, 0), (0, 0, np.pi / 2)), inertia=BODY)
    b.link("finger", "tool", "prismatic", axis="x", placement=Placement.at((0, 0, 1)), inertia=BODY)
    b.frame("tip", "tool", Placement.at((1, 0, 0)))
    b.link("floor")
    model = b.build()
    assert [l.name for l in model.links] == ["world", "arm", "finger"]
    assert_close(model.links[1].inertia.mass, 3.0)
    assert_close(model.links[1].inertia.com, (np.array([0.1, 0, 0]) + [1.1, 0, 0] + [1, 1.1, 0]) / 3)
    assert_close(model.frame("tip").placement.p, [1, 2, 0])
    assert_close(model.links[2].placement.p, [1, 1, 1])
    assert (model.frame("tool").link, model.frame("floor").link) == (1, 0)
    assert_close(model.mass, 4.0)
    assert b.build(merge_fixed=False).nlinks == 5


@pytest.mark.parametrize("seed", range(5))
def test_inertias_add_like_one_body(seed):
    """Sum and move against the 6 x 6 matrices about a common origin."""
    rng = np.random.default_rng(seed)
    x, y, move = body(rng), body(rng), Placement.at(rng.normal(size=3), rng.normal(size=3))

    def matrix(b):
        h = np.cross(np.eye(3), b.mass * b.com).T
        return np.block([[b.mass * np.eye(3), h.T], [h, b.about_origin]])

    R, p = move.R, np.cross(np.eye(3), move.p).T
    X = np.block([[R.T, -R.T @ p], [np.zeros((3, 3)), R.T]])
    assert_close(matrix(x + y), matrix(x) + matrix(y))
    assert_close(matrix(x.moved(move)), X.T @ matrix(x) @ X)
    massless = BodyInertia(0.0, np.zeros(3), np.eye(3))
    assert_close((massless + massless).I, 2 * np.eye(3))


def test_placements_compose_and_invert():
    a, b = Placement.at((1, 2, 3), (0.1, 0.2, 0.3)), Placement.from_quaternion((0, 1, 0), (0, 0, 2, 2))
    both = a @ b
    x = np.array([0.5, -1, 2])
    assert_close(both.R @ x + both.p, a.R @ (b.R @ x + b.p) + a.p)
    assert_close((a @ a.inverse()).R, np.eye(3))
    assert_close((a @ a.inverse()).p, np.zeros(3))
    assert_close(b.R, [[0, -1, 0], [1, 0, 0], [0, 0, 1]])


def test_models_are_frozen():
    model = tree()
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.name = "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.links[1].parent = 3
    for array in (model.gravity, model.links[1].inertia.I, model.links[1].placement.R, model.links[1].armature):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(TypeError):
        model.frames["new"] = model.frame("a")
    held = model.with_constraints(lw.point("c"))
    assert (model.rows, held.rows, held.with_constraints(lw.surface("d")).rows) == (0, 3, 9)
    assert held.without_constraints().rows == 0
    assert model.with_gravity([0, 0, 1]).gravity.tolist() == [0, 0, 1]
    assert model.gravity.tolist() == [0, 0, -9.81]


def test_random_positions_keep_the_limits_and_are_reproducible():
    b = Builder()
    b.link("a", "world", "revolute", inertia=BODY, limits=Limits(0.2, 0.3))
    b.link("b", "a", "prismatic", inertia=BODY, limits=Limits(-0.1, 0.0))
    b.link("c", "b", "free", inertia=BODY)
    model = b.build()
    draws = np.array([model.random_q(s) for s in range(50)])
    assert (draws[:, 0] >= 0.2).all()
    assert (draws[:, 0] <= 0.3).all()
    assert (draws[:, 1] >= -0.1).all()
    assert (draws[:, 1] <= 0.0).all()
    assert_close(np.linalg.norm(draws[:, 5:9], axis=1), np.ones(50), c=4)
    assert np.array_equal(model.random_q(3), model.random_q(3))
    assert_close(model.neutral(), [0, 0, 0, 0, 0, 0, 0, 0, 1])


def test_manifold_operations_of_models():
    model = random_model(1, 8)
    q, v, _ = random_state(model, 1)
    assert model.rate(q, v).shape == (model.nq,)
    assert_close(model.normalised(q), q, c=4)
    for call in (lambda: model.integrate(q[1:], v), lambda: model.integrate(q, v[1:]), lambda: model.difference(q, v)):
        with pytest.raises(InputError, match="shape"):
            call()


def test_names_are_found_or_near_ones_suggested():
    model = tree()
    assert (model.link("b"), model.joint("b_joint"), model.frame("world").link) == (3, 3, 0)
    for find, kind in ((model.link, "link"), (model.joint, "joint"), (model.frame, "frame")):
        with pytest.raises(NotFound, match=f"no {kind} called 'bb'.*Valid: "):
            find("bb")
    with pytest.raises(NotFound, match=r"Did you mean 'a_joint'"):
        model.joint("a_join")
    with pytest.raises(KeyError):
        model.with_independent("nobody")
    assert model.with_independent("b_joint").independent == ("b_joint",)


def test_descriptions_say_what_is_there():
    model = tree().with_constraints(lw.Hinge("c", "d"))
    assert "5 links" in repr(model)
    assert "nv=14" in repr(model)
    assert "1 constraints with 5 rows" in repr(model)
    assert model.constraints[0].describe() == "revolute c ~ d"


def builder(**first) -> Builder:
    b = Builder()
    b.link("a", "world", "revolute", inertia=BODY, **first)
    return b


def bad_inertia(mass=1.0, com=(0, 0, 0), I=((1, 0, 0), (0, 1, 0), (0, 0, 1))):
    return lambda: Builder().link("x", inertia=BodyInertia(mass, np.array(com, float), np.array(I, float)))


def orphan():
    b = builder()
    b.link("b", "nobody")
    b.build()


def cycle():
    b = builder()
    b.link("b", "c")
    b.link("c", "b")
    b.build()


def frame_on(link, name="f"):
    b = builder()
    b.frame(name, link)
    b.build()


def twice(what):
    b = builder(joint_name="j")
    if what == "link":
        b.link("a")
    elif what == "joint":
        b.link("b", joint_name="j")
    else:
        b.frame("f", "a")
        b.frame("f", "a")


REFUSED = {
    "negative mass": (bad_inertia(-1.0), "link 'x': the mass is negative"),
    "nan mass": (bad_inertia(np.nan), "mass is a finite number, not nan"),
    "infinite centre": (bad_inertia(com=(np.inf, 0, 0)), "com is 3 finite numbers.*NaN or infinite"),
    "asymmetric inertia": (bad_inertia(I=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), "not symmetric"),
    "negative moment": (bad_inertia(I=np.diag([1, 1, -0.5])), "negative principal moment"),
    "inertia shape": (lambda: BodyInertia(1.0, np.zeros(2), np.eye(3)), r"com is 3 finite numbers.*\(2,\)"),
    "no such parent": (orphan, "link 'b' hangs on link 'nobody'.*Links: 'a', 'b'"),
    "cycle": (cycle, "'b', 'c' form a cycle.*closure"),
    "frame on nothing": (lambda: frame_on("nobody"), "frame 'f' is on link 'nobody'"),
    "frame with a link's name": (lambda: frame_on("a", "a"), "name of a link"),
    "link twice": (lambda: twice("link"), "link 'a' is there already"),
    "joint twice": (lambda: twice("joint"), "joint 'j' is there already"),
    "frame twice": (lambda: twice("frame"), "frame 'f' is there already"),
    "link called world": (lambda: Builder().link("world"), "'world'"),
    "negative armature": (lambda: builder(armature=-1.0), "armature"),
    "nan armature": (lambda: builder(armature=np.nan), "armature"),
    "no rotation": (lambda: Placement(2 * np.eye(3)), "not a rotation"),
    "mirror": (lambda: Placement(np.diag([1.0, 1.0, -1.0])), "right-handed"),
    "nan placement": (lambda: Placement(p=np.array([0, 0, np.nan])), "finite"),
    "zero quaternion": (lambda: Placement.from_quaternion((0, 0, 0), (0, 0, 0, 0)), "quaternion"),
    "unknown joint": (lambda: Builder().link("x", joint="hinge"), "no joint type called 'hinge'.*'revolute'"),
    "bad axis": (lambda: Builder().link("x", joint="revolute", axis="q"), "axis 'q'"),
    "unknown base": (lambda: base_joint("flying"), "no base called 'flying'.*'free'"),
    "nan gravity": (lambda: builder().build().with_gravity([0, 0, np.nan]), "gravity"),
    "gravity of two numbers": (lambda: builder().build().with_gravity([0, 0]), "gravity"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nonsense_is_refused_with_a_message(case):
    make, message = REFUSED[case]
    with pytest.raises(lw.LinkworkError, match=message):
        make()


def test_massless_tips_may_hang_but_not_move_freely():
    """A massless link behind a joint: inverse dynamics is fine, forward dynamics has no answer without a rotor."""
    b = builder()
    b.link("tip", "a", "revolute")
    model = b.build()
    tau = lw.inverse_dynamics(model, backend="numpy")([0.1, 0.2], [0, 0], [1, 1]).tau
    assert tau[1] == 0
    with pytest.raises(ModelError, match=r"joint 'tip_joint' moves no mass.*armature"):
        lw.forward_dynamics(model)
    b = builder()
    b.link("tip", "a", "revolute", armature=0.1)
    lw.forward_dynamics(b.build(), backend="numpy")([0.1, 0.2], [0, 0], [1, 1])
    b = builder()
    b.link("tip", "a")
    b.link("middle", "a", Revolute("x"))
    b.link("end", "middle", inertia=BODY)
    lw.forward_dynamics(b.build(), backend="numpy")([0.1, 0.2], [0, 0], [1, 1])


CONSTRAINTS = {
    "same link": (lambda m: m.with_constraints(lw.Weld("tip", "a")), ModelError, "same link 'a'"),
    "same frame": (lambda m: m.with_constraints(lw.Distance("a", "a", 1.0)), ModelError, "same link"),
    "unknown frame": (lambda m: m.with_constraints(lw.point("nose")), NotFound, "no frame called 'nose'"),
    "unknown cut": (lambda m: lw.Closure("a", "b", "glued"), NotFound, "no cut joint called 'glued'.*'fixed'"),
    "universal axes": (lambda m: lw.Closure("a", "b", "universal", axis="z", second="z"), ModelError, "perpendicular"),
    "zero rod": (lambda m: lw.Distance("a", "b", 0.0), ModelError, "above zero.*Connect"),
    "nan rod": (lambda m: lw.Distance("a", "b", float("nan")), InputError, "length"),
    "coupling of a ball": (
        lambda m: m.with_constraints(lw.Coupling("a_joint", {"b_joint": [1.0]})),
        ModelError,
        "joint 'b_joint' is spherical and has 3 degrees of freedom.*Custom",
    ),
    "coupling to itself": (
        lambda m: m.with_constraints(lw.Coupling("a_joint", {"a_joint": [1.0]})),
        ModelError,
        "cannot depend on itself",
    ),
    "coupling unknown": (lambda m: m.with_constraints(lw.Coupling("a_joint", {"x": [1.0]})), NotFound, "no joint"),
    "custom untraceable": (lambda m: m.with_constraints(lw.Custom(lambda x: 1 / 0, ["a_joint"])), ModelError, "traced"),
    "custom without joints": (lambda m: lw.Custom(lambda: 0, []), InputError, "names of the joints"),
    "custom number": (lambda m: lw.Custom(lambda x: x, 1), InputError, "joints is a list of names"),
    "rows of five": (lambda m: lw.LinkRows({"a": np.ones((1, 5))}), InputError, "m x 6"),
    "rows differ": (lambda m: lw.LinkRows({"a": np.ones((1, 6)), "b": np.ones((2, 6))}), InputError, "same m"),
    "rows k": (lambda m: lw.LinkRows({"a": np.ones((1, 6))}, [1.0, 2.0]), InputError, r"these rows need \(1,\)"),
    "rows stabilised": (
        lambda m: lw.LinkRows({"a": np.ones((1, 6))}, stabilisation=lw.Stabilisation()),
        InputError,
        "cannot be stabilised",
    ),
    "rows on nobody": (lambda m: m.with_constraints(lw.LinkRows({"x": np.ones((1, 6))})), NotFound, "no link called"),
    "stabilisation": (lambda m: lw.Stabilisation(period=0.0), InputError, "period is a finite number above 0"),
    "stabilisation nan": (lambda m: lw.Stabilisation(damping=float("nan")), InputError, "damping"),
    "massless centre": (lambda m: Builder().build().with_constraints(lw.CentreOfMass()), InputError, "without mass"),
}


@pytest.mark.parametrize("case", CONSTRAINTS)
def test_bad_constraints_are_refused(case):
    make, error, message = CONSTRAINTS[case]
    b = builder()
    b.link("b", "a", "spherical", inertia=BODY)
    b.frame("tip", "a", Placement.at((1, 0, 0)))
    with pytest.raises(error, match=message):
        make(b.build())


def test_constraints_describe_themselves():
    import casadi

    assert lw.Weld("a", "b").name == "a~b"
    assert lw.Distance("a", "b", 0.5).describe() == "rod of 0.5 m a -- b"
    assert lw.Coupling("knee", {"hip": [2.0, 0.5]}, 0.1).describe() == "knee = 2 hip + 0.5 hip^2 + 0.1"
    assert lw.Closure("a", joint="weld").joint == "fixed"
    assert lw.Closure("a", joint="ball").rows == 3
    assert [lw.Closure("a", joint=j).rows for j in ("hinge", "screw")] == [5, 5]
    assert lw.Custom(lambda x: casadi.vertcat(x, x), ["j"]).rows == 2


@pytest.mark.parametrize("joint", ["spherical", "free", "planar"])
def test_custom_takes_joints_of_any_kind(joint):
    """phi sees the whole position of the joint; the number of rows is known once the model is."""
    b = Builder()
    b.link("a", "world", joint, inertia=BODY)
    model = b.build().with_constraints(lw.Custom(lambda q: q[0] * q[-1] + q[1], ["a_joint"]))
    assert model.rows == 1
    q = model.random_q(0)
    J = lw.constraint_jacobian(model, backend="numpy")(q).J
    assert J.shape == (1, model.nv)


def test_limits_that_leave_no_position_are_refused() -> None:
    with pytest.raises(lw.LinkworkError, match="lower limit 1 is above the upper limit -1"):
        Limits(1.0, -1.0)
    assert Limits(1.0, 1.0).lower == 1.0


def test_quaternions_without_a_direction_are_refused_by_every_operation():
    model = mech.quadruped()
    q, v = model.neutral(), np.ones(model.nv)
    none = np.where(np.isin(np.arange(model.nq), range(3, 7)), 0.0, q)
    for call in (
        lambda: model.integrate(none, v),
        lambda: model.integrate(np.stack([q, none]), v),
        lambda: model.difference(none, q),
        lambda: model.difference(q, none),
        lambda: model.interpolate(none, q, 0.5),
        lambda: model.velocity(none, np.ones(model.nq)),
        lambda: model.normalised(none),
    ):
        with pytest.raises(InputError, match="length zero"):
            call()
