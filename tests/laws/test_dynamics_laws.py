"""Laws of mechanics that no implementation can argue with, on random mechanisms with every joint type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers import (
    FIVE_POINT,
    KINDS,
    MOVING,
    along,
    assert_close,
    col,
    cond,
    derivative,
    motion,
    random_model,
    random_state,
    rotation,
)
from linkwork.algorithms.tree.aba import aba
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.energy import kinetic_energy, potential_energy
from linkwork.algorithms.tree.kinematics import frame_acceleration, frame_jacobian, frame_placement, frame_velocity
from linkwork.algorithms.tree.ltl import LTL, crba_ltl
from linkwork.algorithms.tree.momentum import centre_of_mass, momentum
from linkwork.algorithms.tree.rnea import rnea
from linkwork.model import Motion, Placement

SEEDS = range(5)
ONE_OF_EACH = [pytest.param((0, 4, (k,)), id=k) for k in MOVING]
CASES = [*(pytest.param((s, 7, tuple(KINDS)), id=f"mixed {s}") for s in SEEDS), *ONE_OF_EACH]


@pytest.fixture(params=CASES)
def case(request):
    seed, n, kinds = request.param
    model = random_model(seed, n, kinds)
    return model, *random_state(model, seed)


def forces(model, seed=0):
    return np.random.default_rng(seed).normal(size=6 * model.nlinks)


def test_mass_matrix_is_symmetric_positive_definite(case):
    model, q, *_ = case
    M = crba(motion(model, q))
    assert_close(M, M.T, c=10)
    assert np.linalg.eigvalsh(M).min() > 0


def test_kinetic_energy_is_half_vMv(case):
    model, q, v, _ = case
    m = motion(model, q, v)
    assert_close(kinetic_energy(m), col(v).T @ crba(m) @ col(v) / 2)


def test_inverse_dynamics_is_affine_in_acceleration_with_slope_M(case):
    """M = d tau / d a, column by column."""
    model, q, v, _ = case
    m = motion(model, q, v)
    bias = rnea(m, None)
    columns = [rnea(m, col(e)) - bias for e in np.eye(model.nv)]
    assert_close(np.hstack(columns), crba(m), scale=float(np.abs(bias).max()))


def test_forward_dynamics_is_the_inverse_of_inverse_dynamics(case):
    model, q, v, a = case
    m, f = motion(model, q, v), col(forces(model))
    M = crba(m)
    tau = rnea(m, col(a), f)
    size = float(np.abs(tau).max())
    assert_close(aba(m, tau, f), col(a), cond(M), scale=size)
    assert_close(crba_ltl(m, tau, f), col(a), cond(M), scale=size)


def test_branch_sparse_factor_is_LTL(case):
    model, q, *_ = case
    M = crba(motion(model, q))
    factor = LTL(M, model.topology.dof_parent, motion(model, q).xp)
    L, D = np.eye(model.nv), np.diag([1 / d for d in factor.pivots])
    for i, row in enumerate(factor.L):
        for j, x in row.items():
            L[i, j] = x
    assert_close(L.T @ D @ L, M, cond(M))
    b = np.random.default_rng(0).normal(size=(model.nv, 3))
    assert_close(factor.solve(b), np.linalg.solve(M, b), cond(M))


def test_power_of_all_forces_changes_the_energy(case):
    """d/dt (T + V) = v . tau + sum of the external forces' power, along the true motion."""
    model, q, v, tau = case
    f = forces(model)
    m = motion(model, q, v)
    a = aba(m, col(tau), col(f))[:, 0]
    at = along(model, q, v, a)
    rate = derivative(lambda t: (kinetic_energy(at(t)) + potential_energy(at(t)))[0, 0])
    power = v @ tau + sum((col(f)[6 * (i - 1) : 6 * i].T @ m.V[i])[0, 0] for i in model.topology.links)
    size = max(float(kinetic_energy(m)[0, 0]), float(np.abs(a).max()) * float(np.abs(tau).max()))
    assert_close(rate, power, cond(crba(m)), scale=size, eps=FIVE_POINT)


def test_gravity_torque_is_the_slope_of_the_potential(case):
    model, q, *_ = case
    tau = rnea(motion(model, q), None)[:, 0]
    slope = [
        derivative(lambda t, e=e: potential_energy(motion(model, model.integrate(q, t * e)))[0, 0])
        for e in np.eye(model.nv)
    ]
    assert_close(tau, slope, eps=FIVE_POINT, scale=10.0)


def test_Mdot_minus_2C_does_no_work(case):
    """v . (dM/dt v) = 2 v . (C v): velocity products store and release kinetic energy only."""
    model, q, v, _ = case
    model = model.with_gravity([0, 0, 0])
    Mdot = derivative(lambda t: crba(motion(model, model.integrate(q, t * v))))
    Cv = rnea(motion(model, q, v), None)[:, 0]
    assert_close(v @ Mdot @ v, 2 * v @ Cv, eps=FIVE_POINT, scale=10.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_Mdot_minus_2C_is_skew_symmetric_with_christoffel_symbols(seed):
    """For joints with coordinates whose rates are v: C from Christoffel symbols gives the same bias force."""
    kinds = ("revolute", "prismatic", "helical", "cylindrical", "universal")
    model = random_model(seed, 5, kinds).with_gravity([0, 0, 0])
    q, v, _ = random_state(model, seed)
    dM = np.array([derivative(lambda t, e=e: crba(motion(model, q + t * e))) for e in np.eye(model.nv)])
    gamma = (np.einsum("kij->ijk", dM) + np.einsum("jik->ijk", dM) - np.einsum("ijk->ijk", dM)) / 2
    C = gamma @ v
    assert_close(C @ v, rnea(motion(model, q, v), None)[:, 0], eps=FIVE_POINT, scale=10.0)
    N = np.einsum("kij,k->ij", dM, v) - 2 * C
    assert_close(N, -N.T, eps=FIVE_POINT, scale=10.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_momentum_of_a_floating_tree_changes_by_external_wrenches_only(seed):
    """Action = reaction: joint forces and rotors inside cancel; gravity and fext remain."""
    model = random_model(seed, 6, base="free", armature=False)
    q, v, tau = random_state(model, seed)
    tau[:6] = 0.0
    f = forces(model, seed)
    m = motion(model, q, v)
    a = aba(m, col(tau), col(f))[:, 0]
    rate = derivative(lambda t: momentum(along(model, q, v, a)(t))[:, 0])
    weight = model.mass * model.gravity
    wrench = np.concatenate([weight, np.cross(centre_of_mass(m)[:, 0], weight)])
    for i in model.topology.links:
        R, p = m.poses[i]
        force, torque = R @ f[6 * i - 6 : 6 * i - 3], R @ f[6 * i - 3 : 6 * i]
        wrench += np.concatenate([force, torque + np.cross(p[:, 0], force)])
    assert_close(rate, wrench, cond(crba(m)), eps=FIVE_POINT, scale=float(np.abs(a).max()))


@pytest.mark.parametrize("seed", SEEDS)
def test_linear_momentum_is_mass_times_velocity_of_the_centre(seed):
    model = random_model(seed, 6)
    q, v, a = random_state(model, seed)
    rate = derivative(lambda t: centre_of_mass(along(model, q, v, a)(t))[:, 0])
    assert_close(model.mass * rate, momentum(motion(model, q, v))[:3, 0], eps=FIVE_POINT)


@pytest.mark.parametrize("seed", SEEDS)
def test_accelerations_do_not_depend_on_where_the_world_is(seed):
    """Move a floating robot and gravity by the same rigid motion: body velocities and accelerations stay."""
    model = random_model(seed, 6, base="free")
    q, v, tau = random_state(model, seed)
    rng = np.random.default_rng(seed)
    world = Placement(rotation(rng), rng.normal(size=3))
    start = Placement.from_quaternion(q[:3], q[3:7])
    moved = world @ start
    from linkwork.spatial.rotations import matrix_quaternion

    q2 = np.concatenate([moved.p, matrix_quaternion(moved.R, motion(model, q).xp)[:, 0], q[7:]])
    turned = model.with_gravity(world.R @ model.gravity)
    a, b = aba(motion(model, q, v), col(tau)), aba(motion(turned, q2, v), col(tau))
    assert_close(b, a, cond(crba(motion(model, q))))
    assert_close(kinetic_energy(motion(turned, q2, v)), kinetic_energy(motion(model, q, v)))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_uniform_boost_changes_no_acceleration(seed):
    """Galilei: the same linear velocity added to everything, for a robot whose base has no other velocity."""
    model = random_model(seed, 6, base="free")
    q, v, tau = random_state(model, seed)
    R = Placement.from_quaternion(q[:3], q[3:7]).R
    boost = np.concatenate([R.T @ [3.0, -2.0, 1.0], np.zeros(model.nv - 3)])
    at_rest = aba(motion(model, q, v), col(tau))
    moving = aba(motion(model, q, v + boost), col(tau))
    # the base's acceleration is the rate of its body-frame velocity, so it sees the boost turn: -w x boost
    expected = at_rest[:, 0].copy()
    expected[:3] -= np.cross(v[3:6], boost[:3])
    assert_close(moving[:, 0], expected, cond(crba(motion(model, q))), scale=float(np.abs(expected).max()))


def test_weightless_things_fall_together():
    """In free fall without forces and velocity, every joint of a floating robot stays still: Galilei's tower."""
    model = random_model(3, 6, base="free")
    q, *_ = random_state(model, 3)
    a = aba(motion(model, q), col(np.zeros(model.nv)))[:, 0]
    R = Placement.from_quaternion(q[:3], q[3:7]).R
    assert_close(a, [*(R.T @ model.gravity), *np.zeros(model.nv - 3)], cond(crba(motion(model, q))))


def test_external_forces_act_like_joint_forces_through_the_jacobian(case):
    """rnea(.., fext) = rnea - sum J_l^T f_l."""
    model, q, v, a = case
    m, f = motion(model, q, v), forces(model)
    felt = sum(
        frame_jacobian(m, model.frame(model.links[i].name)).T @ col(f[6 * i - 6 : 6 * i]) for i in model.topology.links
    )
    assert_close(rnea(m, col(a), col(f)), rnea(m, col(a)) - felt, scale=10.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_frame_velocities_jacobians_and_accelerations_are_derivatives_of_placements(seed):
    model = random_model(seed, 6)
    q, v, a = random_state(model, seed)
    at = along(model, q, v, a)
    for name in ("f2", "l5", "f5"):
        frame = model.frame(name)

        def pose(t, frame=frame):
            R, p = frame_placement(at(t), frame)
            return np.hstack([R, p])

        R = pose(0.0)[:, :3]
        rate = R.T @ derivative(pose)
        V = np.array([*rate[:, 3], rate[2, 1], rate[0, 2], rate[1, 0]])
        assert_close(frame_velocity(at(0.0), frame)[:, 0], V, eps=FIVE_POINT)
        assert_close((frame_jacobian(at(0.0), frame) @ col(v))[:, 0], frame_velocity(at(0.0), frame)[:, 0])

        def world_velocity(t, frame=frame):
            m = at(t)
            R, _ = frame_placement(m, frame)
            V = frame_velocity(m, frame)
            return np.concatenate([R @ V[:3], R @ V[3:]])[:, 0]

        A = derivative(world_velocity)
        expected = np.concatenate([R.T @ A[:3], R.T @ A[3:]])
        assert_close(
            frame_acceleration(at(0.0), frame, col(a), classical=True)[:, 0], expected, eps=FIVE_POINT, scale=10.0
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_relative_pose_is_what_the_world_sees(seed):
    model = random_model(seed, 8)
    m = motion(model, *random_state(model, seed)[:2])
    for i in range(len(model.links)):
        for j in range(len(model.links)):
            (Ri, pi), (Rj, pj) = m.poses[i], m.poses[j]
            R, p = m.relative_pose(i, j)
            assert_close(R, Rj.T @ Ri)
            assert_close(p, Rj.T @ (pi - pj))


@pytest.mark.parametrize("seed", SEEDS)
def test_merging_fixed_joints_changes_no_dynamics(seed):
    """The same mechanism with links behind fixed joints merged into their parents."""
    from linkwork.model import Builder

    model = random_model(seed, 8)
    b = Builder("again")
    for link in model.links[1:]:
        b.link(
            link.name,
            model.links[link.parent].name,
            link.joint,
            placement=link.placement,
            inertia=link.inertia,
            armature=link.armature,
            joint_name=link.joint_name,
        )
    merged = b.build()
    kinds = {l.name: l.joint.kind for l in model.links}
    assert merged.nlinks == sum(kinds[l.name] != "fixed" for l in model.links[1:])
    q, v, tau = random_state(model, seed)
    order = [merged.links[i].joint_name for i in merged.topology.links]
    assert order == [l.joint_name for l in model.links[1:] if l.joint.kind != "fixed"]
    M = crba(motion(model, q))
    assert_close(aba(motion(merged, q, v), col(tau)), aba(motion(model, q, v), col(tau)), cond(M), scale=10.0)
    for name in kinds:
        f, g = model.frame(name), merged.frame(name)
        assert_close(frame_placement(motion(merged, q), g)[1], frame_placement(motion(model, q), f)[1])


def test_rotor_inertia_adds_to_the_diagonal(case):
    model, q, *_ = case
    bare = replace(model, links=tuple(replace(l, armature=np.zeros(l.joint.nv)) for l in model.links))
    rotors = np.concatenate([l.armature for l in model.links])
    assert_close(crba(motion(model, q)), crba(motion(bare, q)) + np.diag(rotors))


def test_a_motion_is_one_state():
    model = random_model(0, 4)
    q, v, _ = random_state(model, 0)
    m = motion(model, q, v)
    assert isinstance(m, Motion)
    before = [x.copy() for x in (m.q, m.v)]
    aba(m, col(v))
    rnea(m, col(v))
    crba(m)
    assert all(np.array_equal(x, y) for x, y in zip(before, (m.q, m.v), strict=True))
