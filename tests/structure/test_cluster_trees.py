"""Which bodies move together, which joints are independent, and how all others follow from them."""

from __future__ import annotations

import numpy as np
import pytest

import cluster_cases as cases
import linkwork as lw
from helpers import FIVE_POINT, assert_close, derivative, motion
from linkwork.algorithms.common.embedding import embeddings
from linkwork.constraints import jacobian
from linkwork.errors import AssemblyError, InputError, ModelError, SingularError
from linkwork.robots import mechanisms as mech


def names(model: lw.Model, bodies) -> set[str]:
    return {model.links[i].name for i in bodies}


def test_gears_and_belts_are_clusters_on_the_link_that_carries_their_motors() -> None:
    model = mech.belt_chain(4)
    first, second = lw.clusters(model).clusters
    assert names(model, first.bodies) == {"link1", "link2", "rotor1", "rotor2"}
    assert first.output == 0
    assert names(model, second.bodies) == {"link3", "link4", "rotor3", "rotor4"}
    assert model.links[second.output].name == "link2"
    assert lw.clusters(model).independent == ("link1_joint", "link2_joint", "link3_joint", "link4_joint")
    assert lw.clusters(model).describe().startswith("link1")


def test_loops_that_overlap_are_one_cluster_and_those_that_do_not_are_apart() -> None:
    assert [len(c.bodies) for c in lw.clusters(mech.six_bar()).clusters] == [5]
    assert [len(c.bodies) for c in lw.clusters(mech.chain_of_loops(2)).clusters if c.constraints] == [7, 7]
    # a coupling over a gap takes the links in between along
    chain = mech.chain(5)
    joints = [l.joint_name for l in chain.links[1:]]
    (c,) = (
        c
        for c in lw.clusters(chain.with_constraints(lw.Coupling(joints[3], {joints[1]: [2.0]}))).clusters
        if c.constraints
    )
    assert c.bodies == (2, 3, 4)
    assert c.output == 1
    assert len(c.independent) == 2


def test_contacts_and_long_loops_stay_outside() -> None:
    model = mech.geared_chain(3).with_constraints(lw.point("tip"))
    assert lw.clusters(model).outer == (3,)
    assert lw.clusters(mech.star_of_loops(3)).outer == (0, 1)
    assert lw.clusters(mech.quadruped().with_constraints(lw.CentreOfMass())).outer == (0,)


def test_only_bodies_that_look_the_same_turned_are_rotors() -> None:
    model = mech.geared_chain(2)
    assert names(model, lw.clusters(model).rotors) == {"rotor1", "rotor2"}
    touched = model.with_constraints(lw.point("rotor2"))
    assert names(touched, lw.clusters(touched).rotors) == {"rotor1"}
    egg = lw.BodyInertia(0.2, np.zeros(3), np.diag([1e-4, 2e-4, 2e-4]))
    assert lw.clusters(mech.geared_chain(2, rotor=egg)).rotors == ()


def test_independent_joints_are_found_without_names() -> None:
    for model in (mech.four_bar(), mech.six_bar(), mech.planar_leg(), mech.differential(1)):
        tree = lw.clusters(model.with_independent())
        assert len(tree.velocities) == len(lw.clusters(model).velocities)
    motors = lw.clusters(mech.four_bar().with_independent()).independent
    assert motors in (("crank_joint",), ("rocker_joint",))


def test_wrong_independent_joints_are_refused() -> None:
    with pytest.raises(ModelError, match="leave 1 of the 3"):
        lw.clusters(mech.four_bar().with_independent("crank_joint", "rocker_joint"))
    belts = mech.belt_chain(2)
    with pytest.raises(ModelError, match="do not follow"):
        lw.clusters(belts.with_independent("link1_joint", "rotor1_joint"))
    assert lw.clusters(belts.with_independent("rotor1_joint", "rotor2_joint")).velocities.size == 2


@pytest.mark.parametrize("name", cases.ALL)
def test_expanded_states_are_consistent(name) -> None:
    model = cases.ALL[name]()
    q, _, _ = cases.state(model, 1, size=0.2)
    tree = lw.clusters(model)
    ydot = np.random.default_rng(1).normal(size=len(tree.velocities))
    full = lw.expand(model, q[tree.positions], ydot, guess=q)
    assert_close(full.q, q, 1e3)
    assert np.array_equal(full.v[tree.velocities], ydot)
    J = jacobian(motion(model, full.q))
    followed = J[:, np.setdiff1d(np.arange(model.nv), tree.velocities)]  # v_D = -K_D^-1 K_Y ydot is as good as K_D
    kappa = float(np.linalg.cond(followed)) if followed.size else 1.0
    assert_close(J @ full.v, np.zeros(model.rows), kappa * np.abs(J).max() * max(1.0, np.abs(full.v).max()))


@pytest.mark.parametrize("name", ["four-bar", "leg linkage", "cam", "differential", "tello"])
def test_g_is_the_acceleration_that_velocities_cause(name) -> None:
    """d/dt (G ydot) along q(t) = expand(y + t ydot) is g, by differences."""
    model = cases.ALL[name]()
    tree = lw.clusters(model)
    q, _, _ = cases.state(model, 2, size=0.2)
    ydot = np.random.default_rng(2).normal(size=len(tree.velocities))
    floating = tree.positions.size > tree.velocities.size
    ydot[:6] = 0.0 if floating else ydot[:6]
    move = np.concatenate([np.zeros(1), ydot]) if floating else ydot  # a base at rest has one coordinate more
    at = lambda t: lw.expand(model, q[tree.positions] + t * move, ydot, guess=q).v  # noqa: E731
    _, g = embeddings(motion(model, q, at(0.0)), tree)
    assert_close(derivative(at), g[:, 0], 100.0, scale=float(np.abs(g).max()), eps=FIVE_POINT)


def test_a_batch_follows_the_motion() -> None:
    """The crank goes round once; the coupler goes along and stays on its side."""
    model = mech.four_bar(1.0, 0.3, 0.9, 0.6)
    turn = np.linspace(0, 2 * np.pi, 41)[:, None]
    q, v = lw.expand(model, turn, np.ones_like(turn))
    assert np.abs(np.diff(q[:, 1:], axis=0)).max() < 0.3
    assert_close(q[-1], [2 * np.pi, -2 * np.pi, 0.0], 1e3)
    assert v.shape == (41, 3)


def test_linkages_that_cannot_close_and_singular_coordinates_are_errors() -> None:
    rocker = mech.four_bar(1.0, 0.3, 0.9, 0.6).with_independent("rocker_joint")
    with pytest.raises(AssemblyError, match="cannot be closed"):
        lw.expand(rocker, [2.0])
    flat = mech.four_bar(1.0, 0.4, 1.0, 0.4, angle=0.0)
    with pytest.raises(SingularError, match="with_independent"):
        lw.expand(flat, [0.0], guess=flat.neutral())
    with pytest.raises(InputError, match="need"):
        lw.expand(rocker, [0.0, 1.0])
    with pytest.raises(InputError, match="guess"):
        lw.expand(rocker, [0.0], guess=[0.0])


def test_approximate_trees() -> None:
    model = mech.geared_chain(3, base="free").with_constraints(lw.point("tip"))
    plain = lw.approximate(model)
    assert plain.nv == 9
    assert len(plain.constraints) == 1
    assert abs(plain.mass - model.mass) < 1e-12
    assert lw.approximate(model, lump=False).mass < model.mass
    assert not lw.approximate(model, reflected=False).links[2].armature.any()
    with pytest.raises(lw.LinkworkError, match="no tree is left"):
        lw.approximate(mech.four_bar())
