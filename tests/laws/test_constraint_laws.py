"""Every constraint by differentiating it along motions; what constraint forces may and may not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwork as lw
from helpers import (
    EPS,
    FIVE_POINT,
    along,
    assert_close,
    body,
    closed_at,
    col,
    cond,
    constraints_of,
    derivative,
    motion,
    random_model,
    random_state,
    rotation,
)
from linkwork.algorithms.constrained.kkt import joint_space, kkt
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.energy import kinetic_energy, potential_energy
from linkwork.algorithms.tree.kinematics import frame_placement, frame_velocity
from linkwork.algorithms.tree.momentum import centre_of_mass, momentum
from linkwork.constraints import CUT_JOINTS, Closure, jacobian, position_error, velocity_error
from linkwork.errors import ModelError, NotFound
from linkwork.joints import make
from linkwork.joints.base import unit_axis
from linkwork.model import Builder, Placement
from linkwork.robots.mechanisms import quadruped

SEEDS = range(4)


def _constraint(seed, k):
    return constraints_of(random_model(seed), seed)[k]


ALL = [
    pytest.param(seed, k, id=f"{seed} {c.describe()}")
    for seed in SEEDS
    for k, c in enumerate(constraints_of(random_model(seed), seed))
]


@pytest.mark.parametrize(("seed", "k"), ALL)
def test_J_and_drift_are_derivatives_along_any_motion(seed, k):
    """d/dt (J v) = J a - k off the closed state too, with k holding drift and gravity as the solvers see them."""
    model = random_model(seed)
    c = constraints_of(model, seed)[k]
    model = model.with_constraints(c)
    q, v, a = random_state(model, seed)
    m = motion(model, q, v)
    J = jacobian(m)
    assert J.shape == (c.rows, model.nv) == (model.rows, model.nv)
    assert_close(J @ col(v), velocity_error(m))
    J_rows, k_rows = joint_space(m)
    assert_close(J_rows, J)
    at = along(model, q, v, a)
    rate = derivative(lambda t: velocity_error(at(t)))
    if isinstance(c, Closure) and c.joint == "spherical":
        # the two points' accelerations are compared in the world, not in the turning axes of a (as in Pinocchio and
        # MuJoCo): the two differ by w x (J v), which is zero where the constraint holds
        w = frame_velocity(m, model.frame(c.a if c.axes == "a" else c.b))[3:, 0]
        rate = rate + col(np.cross(w, velocity_error(m)[:, 0]))
    wanted = col(c.k) if isinstance(c, lw.LinkRows) else 0.0
    assert_close(J @ col(a) - k_rows, rate - wanted, eps=FIVE_POINT, scale=10.0)


@pytest.mark.parametrize(("seed", "k"), ALL)
def test_gravity_is_not_a_constraint(seed, k):
    """The rows ask for true accelerations: J and k do not change when gravity does."""
    model = random_model(seed)
    model = model.with_constraints(constraints_of(model, seed)[k])
    q, v, _ = random_state(model, seed)
    J, k0 = joint_space(motion(model.with_gravity([0, 0, 0]), q, v))
    J2, k1 = joint_space(motion(model.with_gravity([3.0, -5.0, 20.0]), q, v))
    assert_close(J2, J)
    assert_close(k1, k0, scale=20.0)


def plain(c):
    """Whether the error is a plain function of positions; closures of oriented frames are tested on closed states."""
    point = isinstance(c, Closure) and c.joint in ("point_on_line", "point_on_plane")
    return point or isinstance(c, (lw.CentreOfMass, lw.Coupling, lw.Custom, lw.Distance))


@pytest.mark.parametrize(("seed", "k"), [p for p in ALL if plain(_constraint(*p.values))])
def test_position_error_has_the_rate_J_v(seed, k):
    """Everywhere, for the constraints whose error is a plain function of positions."""
    model, c = random_model(seed), _constraint(seed, k)
    model = model.with_constraints(c)
    q, v, a = random_state(model, seed)
    at = along(model, q, v, a)
    assert_close(velocity_error(at(0.0)), derivative(lambda t: position_error(at(t))), eps=FIVE_POINT, scale=10.0)


AXIS, SECOND, PITCH = unit_axis([0.36, -0.48, 0.8]), unit_axis(np.cross([0.36, -0.48, 0.8], [1.0, 0, 0])), 0.3


def allowed(kind: str, rng: np.random.Generator) -> Placement:
    """Where the cut joint lets frame a be, seen from frame b."""

    def turn(axis, angle):
        K = np.cross(np.eye(3), axis)
        return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K

    angle, along_axis = rng.uniform(-3, 3), rng.normal() * AXIS
    across = np.cross(AXIS, rng.normal(size=3))
    return {
        "fixed": Placement(),
        "revolute": Placement(turn(AXIS, angle)),
        "prismatic": Placement(p=along_axis),
        "cylindrical": Placement(turn(AXIS, angle), along_axis),
        "helical": Placement(turn(AXIS, angle + 2 * np.pi), PITCH * (angle + 2 * np.pi) * AXIS),
        "planar": Placement(turn(AXIS, angle), across),
        "spherical": Placement(rotation(rng)),
        "universal": Placement(turn(AXIS, angle) @ turn(SECOND, 1.3)),
        "point_on_line": Placement(rotation(rng), along_axis),
        "point_on_plane": Placement(rotation(rng), across),
    }[kind]


def two_bodies(kind: str, seed: int, moved: bool = True):
    """Two free bodies whose frames are as this cut joint allows."""
    rng = np.random.default_rng(seed)
    b = Builder()
    for name in "ab":
        b.link(name, "world", "free", inertia=body(rng))
    b.frame("on_a", "a", Placement(rotation(rng), rng.normal(size=3)))
    model = b.build()
    q, v, tau = random_state(model, seed)
    model = closed_at(model, q, "on_a", "b", "on_b")
    where = model.frames["on_b"]
    place = where.placement @ (allowed(kind, rng).inverse() if moved else Placement())
    model = replace(model, frames={**model.frames, "on_b": replace(where, placement=place)})
    closure = Closure("on_a", "on_b", kind, axis=AXIS, second=SECOND, pitch=PITCH)
    if kind == "universal" and not moved:
        closure = Closure("on_a", "on_b", kind, axis=AXIS, second=SECOND)
    return model.with_constraints(closure), q, v, tau


@pytest.mark.parametrize("kind", CUT_JOINTS)
@pytest.mark.parametrize("seed", range(3))
def test_closures_hold_where_their_joint_allows(kind, seed):
    """phi = 0 there, and phi changes as J v does: G J with G like the identity, so that stabilisation decays."""
    model, q, *_ = two_bodies(kind, seed)
    assert_close(position_error(motion(model, q)), np.zeros((model.rows, 1)))
    J = jacobian(motion(model, q))
    assert (
        np.linalg.matrix_rank(J)
        == model.rows
        == 6
        - {
            "planar": 3,
            "spherical": 3,
            "universal": 2,
            "fixed": 0,
            "cylindrical": 2,
            "point_on_line": 4,
            "point_on_plane": 5,
        }.get(kind, 1)
    )
    slope = np.hstack(
        [derivative(lambda t, e=e: position_error(motion(model, model.integrate(q, t * e)))) for e in np.eye(model.nv)]
    )
    G = slope @ np.linalg.pinv(J)
    assert_close(slope, G @ J, cond(J), eps=FIVE_POINT)
    assert np.linalg.eigvals(G).real.min() > 0.99
    if kind not in ("prismatic", "cylindrical", "helical", "planar"):  # those slide: turning adds to the error's rate
        assert_close(slope, J, eps=FIVE_POINT)


@pytest.mark.parametrize("kind", CUT_JOINTS)
def test_closures_without_slide_have_the_rate_J_v(kind):
    model, q, *_ = two_bodies(kind, 1, moved=False)
    slope = np.hstack(
        [derivative(lambda t, e=e: position_error(motion(model, model.integrate(q, t * e)))) for e in np.eye(model.nv)]
    )
    assert_close(slope, jacobian(motion(model, q)), eps=FIVE_POINT)


@pytest.mark.parametrize("contact", [lw.point, lw.surface])
def test_contacts_in_world_axes_are_those_in_frame_axes_turned(contact):
    """The same accelerations; forces, Jacobian and errors turned by the frame's rotation, off the closed state too."""
    model, found = quadruped(), {}
    q, v, _ = random_state(model, 3)
    for axes in ("frame", "world"):
        held = model.with_constraints(contact("front_left_foot", axes=axes))
        m = motion(held, q, v)
        found[axes] = jacobian(m), position_error(m), *kkt(motion(held, q), np.ones((model.nv, 1)))
    R, _ = frame_placement(m, model.frame("front_left_foot"))
    turn = np.kron(np.eye(held.rows // 3), R)
    for k, expected in ((0, turn @ found["frame"][0]), (1, turn @ found["frame"][1]), (3, turn @ found["frame"][3])):
        assert_close(found["world"][k], expected, scale=1e3)
    assert_close(found["world"][2], found["frame"][2], scale=1e3)


def test_axes_are_for_closures_that_have_none_of_their_own():
    with pytest.raises(ModelError, match="fixed and spherical"):
        Closure("a", joint="revolute", axes="b")
    with pytest.raises(NotFound, match=r"frame.*world"):
        lw.point("a", axes="b")


@pytest.mark.parametrize("kind", ["fixed", "revolute", "prismatic", "cylindrical", "helical", "planar", "spherical"])
def test_a_closure_leaves_the_freedom_of_its_joint(kind):
    """Rows times S of the joint of the same name vanish: what the tree's joint allows, the cut joint allows."""
    axis = "z" if kind == "planar" else [0.36, -0.48, 0.8]
    j = make(
        kind,
        **({"axis": axis} if kind not in ("fixed", "planar", "spherical") else {}),
        **({"pitch": 0.3} if kind == "helical" else {}),
    )
    b = Builder()
    b.link("a", "world", j, inertia=body(np.random.default_rng(0)))
    model = b.build(merge_fixed=False).with_constraints(Closure("a", joint=kind, axis=axis, pitch=0.3))
    for seed in range(3):
        q, v, _a = random_state(model, seed)
        m = motion(model, q, v)
        assert_close(position_error(m), np.zeros((model.rows, 1)))
        J, k = joint_space(m)
        assert_close(J, np.zeros((model.rows, model.nv)))
        assert_close(k, np.zeros((model.rows, 1)), scale=10.0)


@pytest.mark.parametrize("kind", CUT_JOINTS)
def test_stabilisation_adds_damping_and_stiffness(kind):
    model, q, v, _ = two_bodies(kind, 2)
    q = model.integrate(q, 0.1 * v)
    c = model.constraints[0]
    stiff = replace(model, constraints=(replace(c, stabilisation=lw.Stabilisation(period=0.2, damping=0.7)),))
    m = motion(model, q, v)
    w = 2 * np.pi / 0.2
    expected = joint_space(m)[1] - 2 * 0.7 * w * velocity_error(m) - w**2 * position_error(m)
    assert_close(joint_space(motion(stiff, q, v))[1], expected)
    assert np.abs(position_error(m)).max() > 1e-3


@pytest.mark.parametrize("kind", CUT_JOINTS)
def test_constraint_forces_do_no_work(kind):
    """Along a motion that the constraint allows, energy changes by the joint forces' power alone."""
    model, q, v, tau = two_bodies(kind, 3)
    J = jacobian(motion(model, q))
    v = v - np.linalg.pinv(J) @ (J @ v)
    m = motion(model, q, v)
    a, lam = kkt(m, col(tau))
    at = along(model, q, v, a[:, 0])
    rate = derivative(lambda t: (kinetic_energy(at(t)) + potential_energy(at(t)))[0, 0])
    kappa = cond(J) * cond(crba(m))
    assert_close(rate, v @ tau, kappa, eps=FIVE_POINT, scale=float(np.abs(lam).max()))
    # and the constraint goes on holding: its second derivative is zero
    assert_close(derivative(lambda t: velocity_error(at(t))), np.zeros((model.rows, 1)), kappa, eps=FIVE_POINT)


@pytest.mark.parametrize("kind", CUT_JOINTS)
def test_internal_constraint_forces_change_no_momentum(kind):
    """Action = reaction: a closure between two bodies, off the closed state too.

    A spherical closure pulls each body at its own point, so apart they leave a couple; all others act at one point.
    """
    model, q, v, _ = two_bodies(kind, 4)
    if kind != "spherical":
        q = model.integrate(q, 0.3 * v)
    m = motion(model, q, v)
    a, _ = kkt(m, col(np.zeros(model.nv)))
    rate = derivative(lambda t: momentum(along(model, q, v, a[:, 0])(t))[:, 0])
    weight = model.mass * model.gravity
    wrench = [*weight, *np.cross(centre_of_mass(m)[:, 0], weight)]
    assert_close(rate, wrench, cond(jacobian(m)) * cond(crba(m)), eps=FIVE_POINT, scale=float(np.abs(a).max()))


def box(*points, gravity=(0, 0, -9.81)):
    b = Builder("box", gravity=np.array(gravity))
    b.link("box", "world", "free", inertia=lw.BodyInertia(2.0, np.array([0.1, 0.0, 0.3]), np.diag([0.3, 0.2, 0.1])))
    for i, p in enumerate(points):
        b.frame(f"p{i}", "box", Placement.at(p))
    return b.build()


def test_a_body_hanging_on_a_weld_is_carried_by_its_weight():
    """lam acts on the body, at the frame, in its axes: force +mg up, torque against the offset of the mass."""
    model = box((0, 0, 0)).with_constraints(lw.surface("box"))
    a, lam = kkt(motion(model, model.neutral()), np.zeros((6, 1)))
    assert_close(a, np.zeros((6, 1)), scale=10.0)
    up = np.array([0, 0, 2 * 9.81])
    assert_close(lam[:, 0], [*up, *np.cross([0.1, 0, 0.3], up)])


def test_a_box_stands_on_four_corners_though_their_forces_are_not_unique():
    corners = [(x, y, 0.0) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]
    model = box(*corners).with_constraints(*(lw.point(f"p{i}") for i in range(4)))
    m = motion(model, model.neutral())
    a, lam = kkt(m, np.zeros((6, 1)))
    forces = lam.reshape(4, 3)
    up = np.array([0, 0, 2 * 9.81])
    assert_close(a, np.zeros((6, 1)), scale=20.0)
    assert_close(forces.sum(axis=0), up)
    assert_close(sum(np.cross(p, f) for p, f in zip(corners, forces, strict=True)), np.cross([0.1, 0, 0.3], up))
    assert np.linalg.matrix_rank(jacobian(m)) == 6 < model.rows


def test_a_rod_in_compression_pushes():
    """Distance: a mass standing on a vertical rod of 0.7 m; positive lam is a push on `a`."""
    b = Builder()
    b.link("bob", "world", "prismatic", axis="z", inertia=lw.BodyInertia(3.0))
    model = b.build().with_constraints(lw.Distance("bob", "world", 0.7))
    a, lam = kkt(motion(model, np.array([0.7])), np.zeros((1, 1)))
    assert_close(a, [[0.0]], scale=10.0)
    assert_close(lam, [[3 * 9.81]])


def test_a_held_centre_of_mass_needs_no_net_force_but_the_weight():
    model = random_model(2, 6, base="free").with_constraints(lw.CentreOfMass((0, 0, 0)))
    q, _v, _tau = random_state(model, 2)
    _a, lam = kkt(motion(model, q, np.zeros(model.nv)), np.zeros((model.nv, 1)))
    assert_close(lam[:, 0], -model.mass * model.gravity, cond(crba(motion(model, q))))


def test_a_screw_closure_counts_its_turns():
    """After three turns and a half the thread is still met, and a shift along the axis is measured from it."""
    b = Builder()
    b.link("nut", "world", "cylindrical", axis="z", inertia=body(np.random.default_rng(0)))
    model = b.build().with_constraints(Closure("nut", joint="helical", axis="z", pitch=0.2))
    for turns in (0.0, 0.4, 0.5, 3.5, -2.2):
        angle = 2 * np.pi * turns
        on, off = (position_error(motion(model, np.array([0.2 * angle + d, angle])))[-1, 0] for d in (0.0, 0.01))
        assert abs(on) < 200 * EPS
        assert_close(off, 0.01)


def test_frames_are_where_the_placements_say():
    b = Builder()
    b.link("a", "world", "revolute", axis="z", placement=Placement.at((1, 2, 3), (0, 0, np.pi / 2)))
    b.frame("tip", "a", Placement.at((1, 0, 0)))
    model = b.build()
    R, p = frame_placement(motion(model, np.array([np.pi / 2])), model.frame("tip"))
    assert_close(p[:, 0], [0, 2, 3])
    assert_close(R, np.diag([-1.0, -1.0, 1.0]))
