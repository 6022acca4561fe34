"""Closing loops from bad guesses, velocities that keep them closed, and mechanisms that cannot be closed."""

from __future__ import annotations

from dataclasses import replace

import casadi
import numpy as np
import pytest

import linkwork as lw
from helpers import FIVE_POINT, assert_close, cond, constraints_of, derivative, motion, random_model
from linkwork.algorithms.tree.crba import crba
from linkwork.closure.assembly import closing_of
from linkwork.closure.velocities import REDUNDANT
from linkwork.constraints import jacobian, position_error, velocity_error
from linkwork.errors import AssemblyError, InputError, NotFound, SingularError
from linkwork.model import Limits, Model
from linkwork.robots import mechanisms as mech

MECHANISMS = {
    "four_bar": mech.four_bar(),
    "four_bar_6d": mech.four_bar(cut="fixed"),
    "six_bar": mech.six_bar(),
    "bricard": mech.bricard(),
    "bricard_hinge": mech.bricard(cut="revolute"),
    "planar_leg": mech.planar_leg(base="free"),
    "gripper": mech.gripper("four_bar"),
    "geared": mech.geared_chain(4),
    "humanoid": mech.humanoid(hands=False, four_bar_legs=True),
    "ring": mech.ring(9),
    "chain_of_loops": mech.chain_of_loops(3),
    "coupled": mech.all_coupled_loops(2),
    "star": mech.star_of_loops(3),
    **{f"random{s}": mech.random_mechanism(s, 8, loops=2, contacts=s % 2, duplicates=s % 3) for s in range(8)},
}


def gap(model: Model, q: np.ndarray) -> float:
    return float(np.abs(position_error(motion(model, q))).max(initial=0.0))


def rank(model: Model, q: np.ndarray) -> int:
    s = np.linalg.svd(jacobian(motion(model, q)), compute_uv=False)
    return int(np.count_nonzero(s > REDUNDANT * s[0]))


@pytest.mark.parametrize("name", MECHANISMS)
def test_random_states_are_consistent(name: str) -> None:
    model = MECHANISMS[name]
    for seed in range(4):
        q, v = lw.random_state(model, seed)
        assert gap(model, q) <= 1e-12
        scale = float(np.abs(jacobian(motion(model, q))).max()) * max(1.0, float(np.abs(v).max()))
        assert_close(velocity_error(motion(model, q, v)), np.zeros((model.rows, 1)), scale=scale, c=100 + model.nv)
    again = lw.random_state(model, 3)
    assert np.array_equal(again[0], q)
    assert np.array_equal(again[1], v)
    assert not np.array_equal(lw.random_state(model, 4)[1], v)


@pytest.mark.parametrize("name", ["four_bar", "bricard", "chain_of_loops", "random3", "humanoid"])
@pytest.mark.parametrize("size", [0.1, 0.6])
def test_closed_again_after_a_push(name: str, size: float) -> None:
    model = MECHANISMS[name]
    q, _ = lw.random_state(model, 1)
    pushed = model.integrate(q, size * np.random.default_rng(2).normal(size=model.nv))
    assert gap(model, pushed) > 1e-3
    back = lw.assemble(model, pushed)
    assert gap(model, back) <= 1e-12
    if size < 0.5:  # nearby: the way back is about as long as the way out
        assert np.linalg.norm(model.difference(pushed, back)) < 3 * np.linalg.norm(model.difference(pushed, q))


def test_what_is_closed_stays() -> None:
    model = MECHANISMS["chain_of_loops"]
    q, _ = lw.random_state(model, 5)
    assert_close(lw.assemble(model, q), q, cond(jacobian(motion(model, q))))


@pytest.mark.parametrize(
    ("model", "mobility"),
    [
        (mech.four_bar(), 1),
        (mech.four_bar(cut="fixed"), 1),
        (mech.six_bar(), 1),
        (mech.bricard(), 1),
        (mech.bricard(cut="revolute"), 1),
        (mech.four_bar(cut="spherical"), 1),
    ],
    ids=["four_bar", "four_bar_6d", "six_bar", "bricard", "bricard_hinge", "four_bar_3d"],
)
def test_redundant_loops_keep_their_freedom(model: Model, mobility: int) -> None:
    for seed in range(5):
        q, v = lw.random_state(model, seed)
        assert model.nv - rank(model, q) == mobility
        assert np.abs(v).max() > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_the_derivative_is_that_of_the_position_error(seed: int) -> None:
    """D of the closing, off the closed state, for every constraint, against a five-point difference."""
    model = random_model(seed, 6, base="free")
    model = model.with_constraints(*constraints_of(model, seed))
    closing = closing_of(model, None)
    q, w = model.random_q(seed), np.random.default_rng(seed).normal(size=model.nv)
    phi, D = closing.residual(q)
    expected = derivative(lambda t: closing.residual(model.integrate(q, t * w))[0])
    curvature = float(np.abs(w).max()) ** 5
    assert_close(D @ w, expected, scale=max(curvature, float(np.abs(phi).max())), c=1e3, eps=FIVE_POINT)


def arm(reach: float) -> Model:
    """Two bars of a metre, whose end shall be held at a distance."""
    b = lw.Builder("arm")
    b.link("upper", joint="revolute", axis="z", inertia=mech.rod(1.0, (1, 0, 0)))
    end = lw.Placement.at((1, 0, 0))
    b.link("lower", "upper", "revolute", axis="z", placement=end, inertia=mech.rod(1.0, (1, 0, 0)))
    b.frame("hand", "lower", end)
    b.frame("peg", "world", lw.Placement.at((0, reach, 0)))
    b.constraints.append(lw.Connect("hand", "peg", name="grip"))
    b.constraints.append(lw.Coupling("lower_joint", {"upper_joint": [1.0]}, name="gear"))
    return b.build()


def test_what_cannot_be_closed_is_reported() -> None:
    model = arm(5.0)
    only_grip = lw.assemble(arm(1.2), model.neutral(), only=["grip"])
    assert gap(arm(1.2), only_grip) > 1e-3  # the gear is not closed, and was not asked for
    with pytest.raises(AssemblyError, match="'grip' by 3") as caught:
        lw.assemble(model, model.neutral(), only=["grip"])
    ((name, error),) = caught.value.gaps
    assert name == "grip"
    assert error == pytest.approx(3.0, abs=1e-3)  # the arm points at the peg
    assert np.cos(caught.value.q.sum()) == pytest.approx(0, abs=0.05)


def test_locked_joints_stay() -> None:
    model = mech.four_bar()
    start = np.array([0.4, 0.0, 0.0])
    q = lw.assemble(model, start, locked=["crank_joint"])
    assert q[0] == 0.4
    assert gap(model, q) <= 1e-12
    with pytest.raises(AssemblyError, match="unlock joints") as caught:
        lw.assemble(model, start, locked=["crank_joint", "coupler_joint", "rocker_joint"])
    assert np.array_equal(caught.value.q, start)
    with pytest.raises(NotFound, match="crank"):
        lw.assemble(model, start, locked=["krank_joint"])


def test_a_flat_four_bar_is_closed() -> None:
    """All bars on one line: the loop's rows lose rank there, and convergence is linear."""
    model = mech.four_bar()  # a parallelogram whose crank is pi / 3 above the ground link
    q = lw.assemble(model, np.array([-np.pi / 3, 0.2, -0.3]), locked=["crank_joint"])
    assert gap(model, q) <= 1e-12
    assert rank(model, q) < 2 or np.linalg.svd(jacobian(motion(model, q)), compute_uv=False)[1] < 1e-5


def test_rods_gears_functions_and_a_centre_of_mass() -> None:
    model = mech.chain(6, base="free")
    joints = [l.joint_name for l in model.links[1:] if l.joint.nv == 1]
    model = model.with_constraints(
        lw.Distance("link2", "link5", 0.4),
        lw.Coupling(joints[0], {joints[1]: [0.5, 0.1]}, 0.2),
        lw.Custom(lambda a, b: casadi.sin(a) - 0.3 * casadi.cos(b), joints[2:4]),
        lw.CentreOfMass((0.1, 0.2, 0.3)),
        lw.LinkRows({"link3": np.ones((2, 6))}),
    )
    q = lw.assemble(model, model.random_q(1))
    assert gap(model, q) <= 1e-12


def test_contacts_in_one_place_need_only() -> None:
    model = mech.humanoid(hands=False).with_constraints(lw.surface("left_foot", name="l"), lw.surface("right_foot"))
    with pytest.raises(AssemblyError, match="only="):
        lw.assemble(mech.chain(2).with_constraints(lw.Weld("link1", name="a"), lw.Weld("link2", name="b")), np.zeros(2))
    q, v = lw.random_state(model, 0, only=["l"])
    assert gap(model.without_constraints().with_constraints(model.constraints[0]), q) <= 1e-12
    assert_close(velocity_error(motion(model, q, v)), np.zeros((12, 1)), cond(jacobian(motion(model, q))))


def test_batches_and_bad_input() -> None:
    model = mech.four_bar()
    guesses = np.array([[0.1, 0.2, 0.3], [0.0, 0.0, 0.1]])
    q = lw.assemble(model, guesses)
    assert np.array_equal(q[1], lw.assemble(model, guesses[1]))
    v = lw.project_velocity(model, q, np.ones((2, 3)))
    assert np.array_equal(v[0], lw.project_velocity(model, q[0], np.ones(3)))
    assert [x.shape for x in lw.random_state(model, 0, batch=3)] == [(3, 3), (3, 3)]
    assert lw.assemble(model, np.zeros((0, 3))).shape == (0, 3)
    for bad in (np.zeros(2), np.zeros((1, 1, 3)), np.array([0, np.nan, 0])):
        with pytest.raises(InputError):
            lw.assemble(model, bad)
    with pytest.raises(InputError, match="quaternion"):
        lw.assemble(mech.planar_leg(base="free"), np.ones(mech.planar_leg(base="free").nq))
    with pytest.raises(InputError, match="list of names"):
        lw.assemble(model, np.zeros(3), only=1)
    for loop in ("loop", ["loop"]):
        with pytest.raises(NotFound, match="coupler_end"):
            lw.assemble(model, np.zeros(3), only=loop)
    with pytest.raises(NotFound, match="mass"):
        lw.project_velocity(model, np.zeros(3), np.zeros(3), norm="max")
    with pytest.raises(InputError, match="v has shape"):
        lw.project_velocity(model, np.zeros(3), np.zeros(2))


@pytest.mark.parametrize("name", ["four_bar_6d", "bricard", "star", "random1", "humanoid"])
def test_the_projected_velocity_is_the_nearest(name: str) -> None:
    model = MECHANISMS[name]
    q, allowed = lw.random_state(model, 2)
    v = np.random.default_rng(3).normal(size=model.nv)
    M, J = np.asarray(crba(motion(model, q))), jacobian(motion(model, q))
    kappa = cond(M) * cond(J)
    near = lw.project_velocity(model, q, v)
    assert_close(allowed @ M @ (near - v), 0.0, kappa, scale=float(np.abs(M).max()))
    assert_close(lw.project_velocity(model, q, near), near, kappa)
    plain = lw.project_velocity(model, q, v, norm="joint")
    assert_close(J @ plain, np.zeros(model.rows), scale=float(np.abs(J).max()), c=1000)
    assert_close(allowed @ (plain - v), 0.0, cond(J), scale=float(np.abs(allowed).max()))
    jump = lw.impulse(model, method="kkt", backend="numpy")(q, v)
    assert_close(jump.v_after, near, kappa, scale=float(np.abs(v).max()))


def test_a_model_without_constraints_is_closed() -> None:
    model = mech.chain(3)
    q = model.random_q(1)
    assert np.array_equal(lw.assemble(model, q), q)
    assert_close(lw.project_velocity(model, q, np.ones(3)), np.ones(3))


@pytest.mark.parametrize("cut", ["revolute", "cylindrical", "planar", "helical"])
def test_a_hinge_is_not_closed_the_wrong_way_round(cut: str) -> None:
    """Axes that are opposite are parallel too, but such a joint is not closed; from there it can be."""
    b = lw.Builder("ball")
    b.link("ball", joint="spherical", inertia=mech.ball(1.0, 0.1))
    model = b.build().with_constraints(lw.Closure("ball", "world", cut, "z", pitch=0.1))
    over = np.array([1.0, 0.0, 0.0, 0.0])
    assert gap(model, over) == pytest.approx(2)
    q = lw.assemble(model, over)
    assert_close((q[:2] ** 2).sum(), 0.0)


def test_one_freedom_and_links_without_any() -> None:
    """Links behind fixed joints that are not merged have no part in q and v, however short these are."""
    b = lw.Builder("slide")
    b.link("carriage", joint="prismatic", axis="x", inertia=mech.parts.ball(1.0, 0.1))
    b.link("tool", "carriage", joint="fixed", inertia=mech.parts.ball(0.1, 0.05))
    b.link("post", joint="fixed", inertia=mech.parts.ball(0.1, 0.05))
    model = b.build(merge_fixed=False).with_constraints(lw.Distance("tool", "post", 0.3))
    q, v = lw.random_state(model, 3)
    assert_close(np.abs(q), [0.3])
    assert_close(v, [0.0])


POINT = lw.BodyInertia(1.0, np.zeros(3), np.zeros((3, 3)))
ROD = lw.BodyInertia(1.0, np.array([0.0, 0.0, -0.2]), np.diag([0.1, 0.1, 0.0]))


def with_tip(joint: str, tip: lw.BodyInertia) -> Model:
    """A pendulum whose second link has an inertia that its joint, or a part of it, does not move."""
    b, axis = lw.Builder("pendulum"), {"axis": "y"} if joint == "revolute" else {}
    b.link("rod", joint="revolute", axis="y", inertia=lw.BodyInertia(1.0, np.array([0, 0, -0.3]), 0.01 * np.eye(3)))
    b.link("tip", "rod", joint=joint, placement=lw.Placement.at((0, 0, -0.5)), inertia=tip, **axis)
    return b.build()


@pytest.mark.parametrize(("joint", "tip"), [("revolute", POINT), ("spherical", ROD), ("free", ROD), ("free", POINT)],
                         ids=["point", "rod", "free rod", "free point"])  # fmt: skip
def test_joints_that_move_no_inertia_are_named(joint: str, tip: lw.BodyInertia) -> None:
    """M is singular, though every link has mass."""
    tree = with_tip(joint, tip)
    held = tree.with_constraints(lw.Closure("tip", "world", "point_on_plane", "y"))
    q, v = tree.neutral(), np.ones(tree.nv)
    for call in (
        lambda: lw.project_velocity(held, q, v),
        lambda: lw.project_velocity(held, [q, q], [v, v]),
        lambda: lw.random_state(held),
        lambda: lw.random_state(held, batch=2),
    ):
        with pytest.raises(SingularError, match="joints 'tip_joint' move no inertia"):
            call()
    plain = lw.project_velocity(held, q, v, norm="joint")
    np.testing.assert_allclose(velocity_error(motion(held, q, plain)), 0, atol=1e-14)
    np.testing.assert_array_equal(lw.project_velocity(tree, q, v), v)
    assert np.isfinite(lw.random_state(tree)[1]).all()
    for backend in ("kernel", "numpy"):
        with pytest.raises(SingularError, match="joints 'tip_joint' move no inertia"):
            lw.simulate(tree, q, duration=0.01, backend=backend)


def test_links_of_very_different_mass_are_not_taken_for_massless() -> None:
    for mass in (1e-9, 1e9):
        body = lw.BodyInertia(mass, np.array([0.0, 0.1, -0.2]), mass * np.diag([0.01, 0.02, 0.015]))
        model = with_tip("spherical", body).with_constraints(lw.Closure("tip", "world", "point_on_plane", "y"))
        v = lw.project_velocity(model, model.neutral(), np.ones(model.nv))
        np.testing.assert_allclose(velocity_error(motion(model, model.neutral(), v)), 0, atol=1e-13)


def test_a_loop_that_the_file_closes_to_few_digits_names_its_tolerance():
    """A pendulum whose pin is 4e-9 m beyond its reach: what the message proposes closes it."""
    b = lw.Builder("pendulum")
    b.link("bar", "world", "revolute", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
    b.frame("tip", "bar", lw.Placement(p=np.array([1.0, 0.0, 0.0])))
    b.frame("pin", "world", lw.Placement(p=np.array([1.0 + 4e-9, 0.0, 0.0])))
    model = b.build().with_constraints(lw.Connect("tip", "pin"))
    with pytest.raises(lw.AssemblyError, match=r"pass tolerance=1e-08 if the file") as told:
        lw.assemble(model, [0.1])
    assert told.value.gaps[0][1] == pytest.approx(4e-9, rel=1e-3)
    np.testing.assert_allclose(lw.assemble(model, [0.1], tolerance=1e-8), [0.0], atol=1e-7)


def test_random_states_respect_joint_limits() -> None:
    """A four-bar whose crank turns by little, which few closed positions have."""
    model = mech.four_bar(1.0, 0.5, 1.0, 0.9)
    free, _ = lw.random_state(model, 0, batch=40)
    crank = model.links[1]
    limits = Limits(*(float(np.quantile(free[:, 0], share)) for share in (0.4, 0.5)))
    limited = replace(model, links=(model.links[0], replace(crank, limits=limits), *model.links[2:]))
    q, v = lw.random_state(limited, 0, batch=20)
    assert (np.abs(free[:, 0] - free[:, 0].mean()) > limits.upper - limits.lower).any()
    assert ((q[:, 0] >= limits.lower) & (q[:, 0] <= limits.upper)).all()
    assert all(gap(limited, x) <= 1e-12 for x in q)
    assert np.abs(v).max() > 0
    impossible = replace(model, links=(model.links[0], replace(crank, limits=Limits(0.1, 0.1)), *model.links[2:]))
    assert gap(impossible, lw.random_state(impossible, 0)[0]) <= 1e-12  # beyond its limits, if it must be


def places(model: Model, q: np.ndarray, frames: list[str]) -> np.ndarray:
    """The origins of frames in the world."""
    poses = motion(model, q).poses
    found = [(poses[f.link], f.placement.p) for f in map(model.frame, frames)]
    return np.array([(p + R @ place[:, None])[:, 0] for (R, p), place in found])


def test_contacts_without_a_place_stay_where_the_posture_has_them() -> None:
    feet = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]
    model = mech.quadruped().with_constraints(*map(lw.point, feet))
    for seed in range(3):
        q, v = lw.random_state(model, seed)
        at = places(model, q, feet)
        apart = np.linalg.norm(at[:, None] - at[None], axis=2) + np.eye(4)
        assert apart.min() > 0.01
        assert (q >= model.limits.lower).all()
        assert (q <= model.limits.upper).all()
        np.testing.assert_allclose(velocity_error(motion(model, q, v)), 0, atol=1e-12)
    one = mech.quadruped().with_constraints(lw.point(feet[0]))
    assert gap(one, lw.random_state(one, 0)[0]) <= 1e-12
    closed = lw.random_state(model, 0, only=[model.constraints[0].name])[0]
    assert np.abs(places(model, closed, feet[:1])).max() <= 1e-12
