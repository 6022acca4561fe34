"""Several models in one: nothing changes for parts that do not touch, and carried parts are as if built in one go."""

from __future__ import annotations

import casadi
import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, cond, constraints_of, motion, random_model
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.constraints import jacobian, position_error
from linkwork.errors import InputError, ModelError, NotFound, UnsupportedError
from linkwork.model import Model, Placement
from linkwork.robots import mechanisms as mech

TILTED = Placement.at((0.3, -0.2, 0.5), (0.4, -0.7, 1.1))


def dynamics(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    m = motion(model, q, v)
    return np.asarray(crba(m)), np.asarray(rnea(m, np.ones((model.nv, 1))))[:, 0]


@pytest.mark.parametrize("seed", range(4))
def test_parts_side_by_side_do_not_notice_each_other(seed: int) -> None:
    one, two = mech.random_mechanism(seed, 6, duplicates=1), mech.random_mechanism(seed + 50, 5, contacts=1)
    both = lw.combine(lw.Part(one, "one/"), lw.Part(two, "two/"), name="both")
    assert (both.nq, both.nv, both.rows) == (one.nq + two.nq, one.nv + two.nv, one.rows + two.rows)
    assert both.mass == pytest.approx(one.mass + two.mass)
    assert both.name == "both"
    states = [lw.random_state(m, seed) for m in (one, two)]
    q, v = (np.concatenate(x) for x in zip(*states, strict=True))
    M, h = dynamics(both, q, v)
    (M1, h1), (M2, h2) = (dynamics(m, *s) for m, s in zip((one, two), states, strict=True))
    zero = np.zeros((one.nv, two.nv))
    assert_close(M, np.block([[M1, zero], [zero.T, M2]]))
    assert_close(h, np.concatenate([h1, h2]))
    assert_close(position_error(motion(both, q)), np.zeros((both.rows, 1)), c=1e4)
    separate = [
        lw.forward_dynamics(m, method="kkt", backend="numpy")(*s, np.ones(m.nv)).a
        for m, s in zip((one, two), states, strict=True)
    ]
    together = lw.forward_dynamics(both, method="kkt", backend="numpy")(q, v, np.ones(both.nv)).a
    assert_close(together, np.concatenate(separate), cond(M) * cond(jacobian(motion(both, q))))


@pytest.mark.parametrize("seed", range(3))
def test_every_constraint_speaks_of_the_same_things(seed: int) -> None:
    model = random_model(seed, 6)
    cs = [c for c in constraints_of(model, seed) if not isinstance(c, lw.CentreOfMass)]
    model = model.with_constraints(*cs)
    other = random_model(seed + 9, 3)
    both = lw.combine(lw.Part(other, "o/"), lw.Part(model, "m/"))
    assert [c.name for c in both.constraints] == [f"m/{c.name}" for c in cs]
    q, v = model.random_q(seed), np.ones(model.nv)
    whole = motion(both, np.concatenate([other.neutral(), q]), np.concatenate([np.zeros(other.nv), v]))
    alone = motion(model, q, v)
    for c, d in zip(model.constraints, both.constraints, strict=True):
        assert_close(d.position_error(whole), c.position_error(alone))
        assert_close(d.evaluate(whole).drift, c.evaluate(alone).drift)
    assert_close(jacobian(whole)[:, other.nv :], jacobian(alone))


def built(placement: Placement) -> Model:
    """An arm with a tool, built link by link."""
    b = lw.Builder("arm with tool")
    b.link("upper", joint="revolute", axis="y", inertia=mech.rod(2.0, (0, 0, 0.5)))
    b.link("lower", "upper", "revolute", axis="x", placement=TILTED, inertia=mech.rod(1.0, (0, 0.4, 0)), armature=0.1)
    b.link("t/grip", "lower", "fixed", placement=Placement.at((0, 0.4, 0)) @ placement, inertia=mech.ball(0.5, 0.1))
    b.link("t/jaw", "t/grip", "prismatic", axis="z", placement=TILTED, inertia=mech.box(0.2, (0.1, 0.2, 0.3)))
    b.link("third", "upper", "revolute", axis="z", placement=TILTED.inverse(), inertia=mech.rod(1.0, (0, 0.4, 0)))
    return b.build()


@pytest.mark.parametrize("frame", [True, False])
def test_a_carried_part_is_as_if_built_in_one_go(frame: bool) -> None:
    b = lw.Builder("arm")
    b.link("upper", joint="revolute", axis="y", inertia=mech.rod(2.0, (0, 0, 0.5)))
    b.link("lower", "upper", "revolute", axis="x", placement=TILTED, inertia=mech.rod(1.0, (0, 0.4, 0)), armature=0.1)
    b.link("third", "upper", "revolute", axis="z", placement=TILTED.inverse(), inertia=mech.rod(1.0, (0, 0.4, 0)))
    b.frame("flange", "lower", Placement.at((0, 0.4, 0)))
    t = lw.Builder("tool")
    t.link("grip", joint="free", inertia=mech.ball(0.5, 0.1))
    t.link("jaw", "grip", "prismatic", axis="z", placement=TILTED, inertia=mech.box(0.2, (0.1, 0.2, 0.3)))
    where = TILTED if frame else Placement.at((0, 0.4, 0)) @ TILTED
    model = lw.combine(b.build(), lw.Part(t.build(), "t/", to="flange" if frame else "lower", placement=where))
    expected = built(TILTED)
    assert [l.name for l in model.links] == [l.name for l in expected.links]
    q, v = np.array([0.3, -0.8, 0.2, 1.1]), np.array([1.0, 2.0, -1.0, 0.5])
    for got, want in zip(dynamics(model, q, v), dynamics(expected, q, v), strict=True):
        assert_close(got, want)
    assert np.allclose(mech.frame_pose(model, "t/grip", q).p, mech.frame_pose(expected, "t/grip", q).p)
    kept = lw.combine(b.build(), lw.Part(t.build(), "t/", to="flange", base="keep"))
    assert kept.nv == 4 + 6


def test_loops_with_the_world_go_along() -> None:
    """A Bricard linkage closes on the world; on an arm, on the link that carries it."""
    linkage, arm = mech.bricard(), mech.chain(2)
    model = lw.combine(arm, lw.Part(linkage, "b/", to="link2", placement=TILTED))
    q, _ = lw.random_state(linkage, 3)
    for seed in range(3):
        whole = np.concatenate([arm.random_q(seed), q])
        assert_close(position_error(motion(model, whole)), np.zeros((6, 1)))
    assert model.independent == ("b/bar1_joint",)
    moved = lw.combine(lw.Part(linkage, "b/", placement=TILTED))
    assert_close(position_error(motion(moved, q)), np.zeros((6, 1)))
    assert lw.combine(linkage).constraints == linkage.constraints


def test_a_custom_function_and_a_gear_keep_their_joints() -> None:
    chain = mech.chain(3)
    joints = [l.joint_name for l in chain.links[1:]]
    chain = chain.with_constraints(
        lw.Custom(lambda a, b: casadi.sin(a) * b, joints[:2]), lw.Coupling(joints[2], {joints[0]: [2.0]})
    )
    both = lw.combine(mech.chain(1), lw.Part(chain, "x/"))
    assert both.constraints[0].joints == ("x/" + joints[0], "x/" + joints[1])
    assert dict(both.constraints[1].terms) == {"x/" + joints[0]: (2.0,)}
    assert both.rows == 2


def test_refusals() -> None:
    chain = mech.chain(2)
    with pytest.raises(ModelError, match="prefix"):
        lw.combine(chain, chain)
    with pytest.raises(NotFound, match="link2"):
        lw.combine(chain, lw.Part(chain, "b/", to="link9"))
    with pytest.raises(NotFound, match="keep"):
        lw.Part(chain, base="free")
    with pytest.raises(InputError, match="gravity"):
        lw.combine(chain, lw.Part(chain.with_gravity((0, 0, -1)), "b/"))
    moon = lw.combine(chain, lw.Part(chain.with_gravity((0, 0, -1)), "b/"), gravity=(0, 0, -1.62))
    assert moon.gravity[2] == -1.62
    with pytest.raises(UnsupportedError, match="centre of mass"):
        lw.combine(lw.Part(chain.with_constraints(lw.CentreOfMass()), "a/"), lw.Part(chain, "b/"))
    with pytest.raises(InputError, match="at least one"):
        lw.combine()


def test_frames_are_added_to_a_model() -> None:
    model = mech.chain(2).with_frame("tool", "link2", TILTED).with_frame("tip", "tool", TILTED)
    q = np.array([0.2, 0.5])
    place = mech.frame_pose(model, "link2", q) @ TILTED @ TILTED
    assert np.allclose(mech.frame_pose(model, "tip", q).p, place.p)
    with pytest.raises(ModelError, match="already"):
        model.with_frame("link1", "link2")
    with pytest.raises(NotFound, match="link1"):
        model.with_frame("new", "link7")
