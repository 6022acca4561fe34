"""New link frames and lumped inertias: the same mechanism to rounding, in fewer operations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import linkwork as lw
from helpers import EPS, MOVING, assert_close, closed_at, cond, constraints_of, motion, random_model, random_state
from linkwork.algorithms.tree.energy import kinetic_energy, potential_energy
from linkwork.algorithms.tree.momentum import centre_of_mass, momentum
from linkwork.constraints.closure import Closure
from linkwork.io.zoo import find
from linkwork.model.body import Moments
from linkwork.rewrite import frames
from linkwork.rewrite.frame_choice import choose
from linkwork.rewrite.frames import moved, operations, reframed
from linkwork.rewrite.inertia_lumping import lumped
from linkwork.robots.mechanisms import quadruped, random_mechanism

CHANGES = {"lumped": lumped, "moved": lambda m: moved(m, choose(m)), "both": lambda m: lumped(moved(m, choose(m)))}


def same_dynamics(model, new, seed, backend="numpy", eps=EPS):
    """Everything of the tree, for one state with forces from outside."""
    q, v, x = random_state(model, seed)
    fext = np.random.default_rng(seed).normal(size=6 * model.nlinks)
    M = lw.mass_matrix(model, backend="numpy")(q)[0]
    kappa = cond(M)
    assert_close(lw.mass_matrix(new, backend=backend)(q)[0], M, eps=eps)
    for factory, method, k in (
        (lw.inverse_dynamics, "rnea", 1.0),
        (lw.forward_dynamics, "aba", kappa),
        (lw.forward_dynamics, "crba_ltl", kappa),
    ):
        expected = factory(model, method=method, backend="numpy", external_forces=True)(q, v, x, fext)[0]
        found = factory(new, method=method, backend=backend, external_forces=True)(q, v, x, fext)[0]
        assert_close(found, expected, k, eps=eps)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(12))
def test_trees_of_all_joints_stay_the_same(seed, change):
    model = random_model(seed, 8, base="free" if seed % 3 == 0 else None)
    same_dynamics(model, CHANGES[change](model), seed)


@pytest.mark.parametrize("kind", MOVING)
def test_every_kind_of_joint_stays_the_same_in_machine_code(kind):
    model = random_model(5, 4, (kind,))
    same_dynamics(model, CHANGES["both"](model), 5, backend="kernel")


@pytest.mark.parametrize("seed", range(6))
def test_places_momentum_and_energy_stay_the_same(seed):
    model = random_model(seed, 8)
    new = CHANGES["both"](model)
    q, v, _ = random_state(model, seed)
    frames = [*(l.name for l in model.links[1:]), *model.frames]
    for found, expected in zip(
        *(lw.forward_kinematics(m, frames, backend="numpy")(q) for m in (new, model)), strict=True
    ):
        assert_close(found, expected)
    a, b = motion(new, q, v), motion(model, q, v)
    for quantity in (centre_of_mass, momentum, kinetic_energy, potential_energy):
        assert_close(quantity(a), quantity(b), scale=model.mass * 10)


@pytest.mark.parametrize("seed", range(2))
def test_every_type_of_constraint_says_the_same(seed):
    model = random_model(seed, 7, base="free" if seed % 2 else None)
    q, v, tau = random_state(model, seed)
    W = choose(model)
    for c in constraints_of(model, seed):
        held = model.with_constraints(c)
        new = lumped(moved(held, W))
        assert_close(*(lw.constraint_jacobian(m, backend="numpy")(q)[0] for m in (new, held)))
        for found, expected in zip(*(lw.constraint_error(m, backend="numpy")(q, v) for m in (new, held)), strict=True):
            assert_close(found, expected, scale=10.0)
        J, M = lw.constraint_jacobian(held, backend="numpy")(q)[0], lw.mass_matrix(held, backend="numpy")(q)[0]
        kappa = cond(M) * cond(J @ np.linalg.solve(M, J.T))
        (a, lam), (a0, lam0) = (lw.forward_dynamics(m, method="kkt", backend="numpy")(q, v, tau) for m in (new, held))
        assert_close(a, a0, kappa)
        assert_close(J.T @ lam, J.T @ lam0, kappa)


@pytest.mark.parametrize("seed", range(4))
def test_loops_and_contacts_in_every_method(seed):
    """Methods by recursion and in joint space, on the new model, against the reference on the old one."""
    model = random_mechanism(seed, 7, loops=1, contacts=1, couplings=1, distances=1)
    new = CHANGES["both"](model)
    q, v, tau = random_state(model, seed)
    J, M = lw.constraint_jacobian(model, backend="numpy")(q)[0], lw.mass_matrix(model, backend="numpy")(q)[0]
    delassus = J @ np.linalg.solve(M, J.T)
    if np.linalg.matrix_rank(delassus) < len(J):
        pytest.skip("rows depend on each other here: multipliers are not unique")
    kappa = cond(M) * cond(delassus)
    a0, lam0 = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau)
    for method in ("kkt", "ltl", "pv", "bbo", "c_aba"):
        a, lam = lw.forward_dynamics(new, method=method, backend="numpy")(q, v, tau)
        assert_close(a, a0, kappa * cond(M))
        assert_close(lam, lam0, kappa * cond(M))


@pytest.mark.parametrize("method", ["pv", "pv_early", "constrained_aba", "prox_pv", "ltl", "lcaba", "prox_bbo"])
def test_contacts_in_machine_code(method):
    """Contact frames that are off the link's, on a branching robot with a free base."""
    model = random_model(3, 7, ("revolute", "prismatic", "spherical"), base="free", armature=False)
    q, v, tau = random_state(model, 3)
    for i in (5, 6):
        model = closed_at(model, q, f"f{i}", "world", f"ground{i}")
    model = model.with_constraints(lw.Connect("f5", "ground5"), lw.Connect("f6", "ground6"))
    new = reframed(model)
    J, M = lw.constraint_jacobian(model, backend="numpy")(q)[0], lw.mass_matrix(model, backend="numpy")(q)[0]
    kappa = cond(M) * cond(J @ np.linalg.solve(M, J.T))
    a0, lam0 = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau)
    f = lw.forward_dynamics(new, method=method)
    out = f(q, v, tau)
    # an iteration ends within its tolerance, and loses digits by its penalty
    left = 0.0 if f.prox is None else 10 * f.prox.tolerance + 100 * f.prox.mu * np.finfo(float).eps
    assert_close(out[0], a0, kappa + left / np.finfo(float).eps)
    assert_close(out[1], lam0, kappa * cond(M) + left * cond(M) / np.finfo(float).eps)


def test_gears_with_rotors_stay_clusters():
    from linkwork.robots.mechanisms import geared_chain

    model = geared_chain(4)
    new = CHANGES["both"](model)
    q, v, tau = random_state(model, 1)
    M = lw.mass_matrix(model, backend="numpy")(q)[0]
    a0 = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau)[0]
    assert_close(lw.forward_dynamics(new, method="c_aba", backend="numpy")(q, v, tau)[0], a0, cond(M) ** 2)


def test_a_link_on_a_hinge_keeps_seven_numbers():
    model = lumped(random_model(0, 5, ("revolute",)))
    for link in model.links[1:]:
        u, body = link.joint.axis, link.inertia
        assert body.mass == 0
        assert abs(body.first_moment @ u) < 1e-15
        across = np.cross(u, np.eye(3)[np.argmin(np.abs(u))])
        assert abs(across @ body.I @ across) < 1e-14
    assert model.links[0].inertia.mass == pytest.approx(random_model(0, 5, ("revolute",)).mass)


def test_moments_move_as_bodies_do():
    rng = np.random.default_rng(1)
    from helpers import body, rotation

    b, X = body(rng), lw.Placement(rotation(rng), rng.normal(size=3))
    found, expected = Moments.of(b).moved(X), b.moved(X)
    assert_close(found.I, expected.about_origin)
    assert_close(found.h, expected.first_moment)
    assert_close((Moments.of(b) + b).I, 2 * b.about_origin)


def test_constraints_of_unknown_types_leave_a_model_alone():
    @dataclass(frozen=True)
    class Mine(Closure):
        """It might look at link frames itself."""

    model = random_model(1, 4)
    held = model.with_constraints(Mine("l3", "world"))
    assert reframed(held) is held


def test_what_gains_nothing_is_left_alone():
    b = lw.Builder()
    b.link("a", "world", "free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
    model = b.build()
    assert reframed(model) is model


def contacts(name, model):
    feet = {
        "iiwa": [lw.surface("lbr_iiwa_link_7")],
        "go1": [lw.point(f"{leg}_foot") for leg in ("FL", "FR", "RL", "RR")],
        "atlas": [lw.surface("l_foot"), lw.surface("r_foot")],
        "talos": [lw.surface("leg_left_6_link"), lw.surface("leg_right_6_link")],
    }
    return model.with_constraints(*feet[name])


def robot(name):
    try:
        find(name)
    except lw.LinkworkError:
        pytest.skip(f"{name} is not installed")
    return lw.load(name, passive=False)


@pytest.mark.parametrize(
    ("name", "free", "held", "inverse"),
    [("iiwa", 1250, 1580, 640), ("go1", 3040, 3575, 1670), ("atlas", 6350, 6770, 3165), ("talos", 8260, 8710, 4300)],
)
def test_operations_of_robots(name, free, held, inverse):
    """In their files' frames they take 1494, 3529, 7173, 9060 operations free, 1736, 3876, 7567, 9465 in contact.

    Weighed errors of six rows, angles and lengths, take 44 more than errors alone.
    """
    model = robot(name)
    in_contact = contacts(name, model)
    assert operations(reframed(model)) <= free
    assert lw.forward_dynamics(reframed(in_contact), method="constrained_aba").operations <= held
    assert lw.inverse_dynamics(reframed(model)).operations <= inverse


@pytest.mark.parametrize(("name", "eps"), [("go1", EPS), ("talos", EPS), ("ur5", EPS), ("icub", 1e-14)])
def test_robots_stay_the_same(name, eps):
    """Placements make entries below 1e-12 zero, which is as far as the oblique rotations of the iCub are ones."""
    model = robot(name)
    same_dynamics(model, reframed(model), 2, eps=eps)
    assert operations(reframed(model)) < 0.95 * operations(model)


def test_operations_are_counted_once(empty_cache, monkeypatch) -> None:
    """Of an equal tree, whatever constraints it has, they are in the cache."""
    first = frames.operations(quadruped())
    monkeypatch.setattr(frames, "_counted", lambda tree: pytest.fail("traced again"))
    assert frames.operations(quadruped().with_constraints(lw.point("front_left_foot"))) == first
