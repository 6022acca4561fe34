"""Exponential and logarithm maps: round trips, and accuracy against mpmath at the values where formulas break."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from helpers import EPS, assert_close, col, rotation
from linkwork.backends.numpy_ import NUMPY as xp
from linkwork.spatial import skew
from linkwork.spatial.rotations import (
    SMALL,
    exp3,
    exp6,
    log3,
    log6,
    matrix_quaternion,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_product,
    rotation_about,
)

# 0, tiny, both sides of the series' threshold (for the angle and for half of it), ordinary, near pi, pi
THRESHOLD = float(np.sqrt(SMALL))
EDGES = [s * (1 + d) for s in (THRESHOLD, 2 * THRESHOLD) for d in (-1e-9, 0.0, 1e-9)]
ANGLES = [0.0, 1e-300, 1e-160, 1e-20, 1e-8, 1e-4, *EDGES, 0.1, 1.0, 2.0, 3.0, np.pi - 1e-4, np.pi - 1e-9, np.pi]
AXES = [np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0]), np.array([0.6, -0.48, 0.64])]


def exact_exp6(u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The matrix exponential with 60 digits."""
    with mpmath.workdps(60):
        A = mpmath.zeros(4)
        for (i, j), x in np.ndenumerate(np.array(skew(col(w), xp))):
            A[i, j] = mpmath.mpf(float(x))
        for i in range(3):
            A[i, 3] = mpmath.mpf(float(u[i]))
        T = np.array(mpmath.expm(A, method="taylor").tolist(), dtype=float)
    return T[:3, :3], T[:3, 3]


@pytest.mark.parametrize("axis", AXES, ids=["z", "x", "oblique"])
@pytest.mark.parametrize("angle", ANGLES)
def test_exponentials_are_exact_to_rounding(angle, axis):
    u, w = np.array([0.3, -0.7, 0.2]), angle * axis
    R, p = exact_exp6(u, w)
    mine_R, mine_p = exp6(col([*u, *w]), xp)
    assert_close(mine_R, R, c=8)
    assert_close(mine_p[:, 0], p, c=8)
    assert_close(exp3(col(w), xp), R, c=8)


@pytest.mark.parametrize("axis", AXES, ids=["z", "x", "oblique"])
@pytest.mark.parametrize("angle", ANGLES)
def test_logarithms_undo_exponentials(angle, axis):
    twist = np.array([0.3, -0.7, 0.2, *(angle * axis)])
    back = log6(*exp6(col(twist), xp), xp)[:, 0]
    if np.pi - angle < 1e-8:  # at half a turn both signs of the axis are right: compare what they do
        assert_close(exp3(col(back[3:]), xp), exp3(col(twist[3:]), xp), c=20)
        _, p = exp6(col(back), xp)
        assert_close(p, exp6(col(twist), xp)[1], c=20)
    else:
        assert_close(back, twist, c=20)
    # small rotations keep their relative accuracy, they do not drown in the ones of the matrix
    small = log3(exp3(col(twist[3:]), xp), xp)[:, 0]
    if angle < 0.1:
        assert np.linalg.norm(small - twist[3:]) <= 20 * EPS * max(angle, 1e-8) + 4 * EPS * angle + 5e-324 * 10


@pytest.mark.parametrize("angle", ANGLES)
def test_quaternion_logarithm_is_relatively_exact(angle):
    w = angle * AXES[2]
    error = np.linalg.norm(quaternion_log(quaternion_exp(col(w), xp), xp)[:, 0] - w)
    assert error <= 8 * EPS * angle + 1e-320
    # q and -q are the same rotation
    negative = quaternion_log(-quaternion_exp(col(w), xp), xp)[:, 0]
    assert_close(quaternion_matrix(quaternion_exp(col(negative), xp), xp), exp3(col(w), xp), c=8)


@pytest.mark.parametrize("axis", [*AXES, -AXES[0], np.array([1.0, 1e-9, 0.0]) / np.hypot(1, 1e-9)])
def test_logarithm_of_half_turns_has_length_pi(axis):
    R = 2 * np.outer(axis, axis) - np.eye(3)
    w = log3(R, xp)[:, 0]
    assert_close(np.linalg.norm(w), np.pi, c=4)
    assert_close(np.abs(w @ axis), np.pi, c=4)


@pytest.mark.parametrize("seed", range(8))
def test_quaternions_are_ordered_x_y_z_w_and_multiply_like_rotations(seed):
    rng = np.random.default_rng(seed)
    A, B = rotation(rng), rotation(rng)
    a, b = matrix_quaternion(A, xp), matrix_quaternion(B, xp)
    assert_close(quaternion_matrix(a, xp), A, c=8)
    assert_close(quaternion_matrix(quaternion_product(a, b, xp), xp), A @ B, c=8)
    assert_close(quaternion_product(a, quaternion_conjugate(a, xp), xp)[:, 0], [0, 0, 0, 1], c=8)
    quarter = quaternion_matrix(col([0, 0, np.sqrt(0.5), np.sqrt(0.5)]), xp)
    assert_close(quarter @ [1, 0, 0], [0, 1, 0], c=4)


@pytest.mark.parametrize("largest", range(4))
def test_every_branch_of_matrix_to_quaternion(largest):
    q = np.full(4, 0.1)
    q[largest] = 0.9
    q /= np.linalg.norm(q)
    found = matrix_quaternion(quaternion_matrix(col(q), xp), xp)[:, 0]
    assert_close(found * np.sign(found[largest]), q, c=8)


def test_rotation_about_an_axis_is_the_exponential_of_its_angle():
    for axis in AXES:
        R = rotation_about(axis, np.cos(0.7), np.sin(0.7), xp)
        assert_close(R, exp3(col(0.7 * axis), xp), c=8)


def test_maps_are_smooth_across_the_threshold_when_traced():
    """Derivatives of a trace that holds both branches are finite at zero, and continuous where they meet."""
    casadi = pytest.importorskip("casadi")
    from linkwork.backends.casadi_ import CASADI

    w, u = casadi.SX.sym("w", 3), casadi.SX([0.3, -0.7, 0.2])
    R, p = exp6(casadi.vertcat(u, w), CASADI)
    back = log6(R, p, CASADI)
    f = casadi.Function("f", [w], [casadi.jacobian(casadi.vec(R), w), casadi.jacobian(p, w), casadi.jacobian(back, w)])
    for angle in (0.0, 1e-9, *EDGES, 1.0):
        dR, dp, dback = (np.array(x) for x in f(angle * AXES[2]))
        assert np.isfinite(dR).all()
        assert np.isfinite(dp).all()
        assert_close(dback[3:], np.eye(3), kappa=1 / THRESHOLD**2, c=10)
    at_zero = np.array(f(np.zeros(3))[0]).reshape(3, 3, 3, order="F")
    for k in range(3):
        assert_close(at_zero[:, :, k], np.array(skew(col(np.eye(3)[k]), xp)))
