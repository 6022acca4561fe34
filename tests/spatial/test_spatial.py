"""Moves and inertias against dense 6 x 6 matrices."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import assert_close, body, col, rotation
from linkwork.backends.numpy_ import NUMPY as xp
from linkwork.spatial import (
    ArticulatedInertia,
    RigidInertia,
    Rotate,
    Transform,
    Translate,
    Turn,
    cross_force,
    cross_motion,
    skew,
)
from linkwork.spatial.transforms import constant_moves

SEEDS = range(5)


def hat(a: np.ndarray) -> np.ndarray:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def dense(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Motion transform from the parent to a child with axes R at p: [R^T, -R^T p^; 0, R^T]."""
    return np.block([[R.T, -R.T @ hat(p)], [np.zeros((3, 3)), R.T]])


def about(k: int, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return {
        0: np.array([[1, 0, 0], [0, c, -s], [0, s, c]]),
        1: np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]),
        2: np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]),
    }[k]


def chain(seed: int) -> tuple[Transform, np.ndarray]:
    """Five moves of all kinds, and their dense product."""
    rng = np.random.default_rng(seed)
    k, angle, R, p, r = int(rng.integers(3)), rng.uniform(-3, 3), rotation(rng), rng.normal(size=3), rng.normal(size=3)
    moves = (
        Translate(col(p), xp),
        Turn(k, np.cos(angle), np.sin(angle), xp),
        Rotate(R, xp),
        Translate(col(r), xp),
        Turn((k + 1) % 3, np.cos(1.0), np.sin(1.0), xp),
    )
    z = np.zeros(3)
    X = np.eye(6)
    for A in (
        dense(np.eye(3), p),
        dense(about(k, angle), z),
        dense(R, z),
        dense(np.eye(3), r),
        dense(about((k + 1) % 3, 1.0), z),
    ):
        X = A @ X
    return Transform(moves, xp), X


def rigid(seed: int) -> RigidInertia:
    b = body(np.random.default_rng(seed))
    return RigidInertia(b.mass, col(b.mass * b.com), b.about_origin, xp)


def rigid_matrix(I: RigidInertia) -> np.ndarray:
    h = hat(I.h[:, 0])
    return np.block([[I.mass * np.eye(3), -h], [h, I.I]])


def articulated(seed: int) -> ArticulatedInertia:
    A = np.random.default_rng(seed).normal(size=(6, 6))
    A = A @ A.T
    return ArticulatedInertia(A[:3, :3], A[:3, 3:], A[3:, 3:], xp)


@pytest.mark.parametrize("seed", SEEDS)
def test_transform_moves_motions_and_its_transpose_forces(seed):
    X, D = chain(seed)
    rng = np.random.default_rng(seed)
    V, F = rng.normal(size=(6, 4)), rng.normal(size=(6, 3))
    assert_close(X @ V, D @ V)
    assert_close(X.T @ F, D.T @ F)
    assert_close(X.rotate(V[:3]), D[:3, :3] @ V[:3])


@pytest.mark.parametrize("seed", SEEDS)
def test_power_does_not_depend_on_the_frame(seed):
    X, _ = chain(seed)
    rng = np.random.default_rng(seed + 50)
    v, f = rng.normal(size=(6, 1)), rng.normal(size=(6, 1))
    assert_close(f.T @ (X @ v), (X.T @ f).T @ v)


@pytest.mark.parametrize("seed", SEEDS)
def test_pose_is_the_transform(seed):
    X, D = chain(seed)
    R, p = X.pose
    assert_close(dense(R, p[:, 0]), D)
    rng = np.random.default_rng(seed)
    Q, t = rotation(rng), rng.normal(size=(3, 1))
    R2, p2 = X.after(Q, t)
    assert_close(R2, Q @ R)
    assert_close(p2, t + Q @ p)


@pytest.mark.parametrize("make", [rigid, articulated])
@pytest.mark.parametrize("seed", SEEDS)
def test_congruence_is_X_transposed_I_X(seed, make):
    X, D = chain(seed)
    I = make(seed)
    full = rigid_matrix(I) if make is rigid else I.matrix()
    moved = X.congruence(I)
    found = rigid_matrix(moved) if make is rigid else moved.matrix()
    assert_close(found, D.T @ full @ D)


@pytest.mark.parametrize("make", [rigid, articulated])
@pytest.mark.parametrize("axis", range(3))
def test_turning_about_a_coordinate_axis_equals_the_general_rotation(axis, make):
    angle = 0.8
    turn, general = Turn(axis, np.cos(angle), np.sin(angle), xp), Rotate(about(axis, angle), xp)
    I = make(3)
    a, b = turn.inertia(I), general.inertia(I)
    assert_close(a.I, b.I)
    assert_close(a.h if make is rigid else a.H, b.h if make is rigid else b.H)
    assert_close(a.mass if make is rigid else a.M, b.mass if make is rigid else b.M)
    v = np.arange(6.0)[:, None]
    assert_close(turn.motion(v), general.motion(v))
    assert_close(turn.force(v), general.force(v))


@pytest.mark.parametrize("seed", SEEDS)
def test_inertias_times_motions(seed):
    V = np.random.default_rng(seed).normal(size=(6, 3))
    I, A = rigid(seed), articulated(seed)
    assert_close(I @ V, rigid_matrix(I) @ V)
    assert_close(A @ V, A.matrix() @ V)
    assert_close(I.articulated().matrix(), rigid_matrix(I))
    assert_close((I + rigid(seed + 1)) @ V, I @ V + rigid(seed + 1) @ V)
    U, W = V[:, :2], V[:, 1:]
    symmetric = U @ U.T
    assert_close(A.minus(U, U).matrix(), A.matrix() - symmetric)
    assert (A + A).matrix().tolist() == (2 * A.matrix()).tolist()
    assert W.shape == (6, 2)


def test_steiner():
    """A ball of 2 kg, 3 m away along x: nothing more about x, m d^2 more about y and z."""
    ball = RigidInertia(2.0, np.zeros((3, 1)), 0.1 * np.eye(3), xp)
    seen = ball.translated(col([3.0, 0, 0]))
    assert_close(seen.I, np.diag([0.1, 18.1, 18.1]))
    assert_close(seen.h[:, 0], [6.0, 0, 0])


@pytest.mark.parametrize("seed", SEEDS)
def test_bias_of_a_turning_body_is_newton_and_euler_about_its_centre(seed):
    """Force m w x (w x c), torque about the centre w x Ic w, taken to the origin."""
    b, w = body(np.random.default_rng(seed)), np.random.default_rng(seed).normal(size=3)
    found = rigid(seed).bias(col(w))[:, 0]
    force = b.mass * np.cross(w, np.cross(w, b.com))
    assert_close(found, [*force, *(np.cross(w, b.I @ w) + np.cross(b.com, force))])


@pytest.mark.parametrize("seed", SEEDS)
def test_cross_products_are_dual(seed):
    """(v x m) . f = -m . (v x* f), and v x v = 0."""
    v, m, f = np.random.default_rng(seed).normal(size=(3, 6, 1))
    assert_close(cross_motion(v, m, xp).T @ f, -m.T @ cross_force(v, f, xp))
    assert_close(cross_motion(v, v, xp), np.zeros((6, 1)))
    assert_close(skew(v[:3], xp) @ m[:3], np.cross(v[:3, 0], m[:3, 0])[:, None])
    assert_close(xp.cross(v[:3], np.hstack([m[:3], f[:3]])), hat(v[:3, 0]) @ np.hstack([m[:3], f[:3]]))


def permutation() -> np.ndarray:
    return np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize(
    ("R", "p", "count"),
    [
        (np.eye(3), np.zeros(3), 0),
        (np.eye(3), np.array([0, 0, 1.0]), 1),
        (about(0, 0.3), np.zeros(3), 1),
        (about(1, -1.3), np.array([1.0, 2, 3]), 2),
        (about(2, 3.0), np.zeros(3), 1),
        (about(2, 1e-7), np.zeros(3), 1),
        (about(0, np.pi), np.zeros(3), 1),
        (permutation(), np.array([1.0, 0, 0]), 2),
        (rotation(np.random.default_rng(1)), np.array([1.0, -1, 2]), 2),
    ],
)
def test_constant_moves_reproduce_the_placement(R, p, count):
    moves = constant_moves(R, p, xp)
    assert len(moves) == count
    found_R, found_p = Transform(moves, xp).pose
    assert_close(found_R, R, c=4)
    assert_close(found_p[:, 0], p, c=4)
    I = articulated(2)
    D = dense(R, p)
    assert_close(Transform(moves, xp).congruence(I).matrix(), D.T @ I.matrix() @ D)


def test_a_rotation_that_is_nearly_a_turn_is_not_taken_for_one():
    """Tilted by a millionth: as a turn about z it would be wrong by as much."""
    R = about(2, 0.5) @ about(0, 1e-6)
    found, _ = Transform(constant_moves(R, np.zeros(3), xp), xp).pose
    assert_close(found, R, c=4)
