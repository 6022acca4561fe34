"""Every joint type: S and bias against differences of the placement, integrate and difference as a group."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import FIVE_POINT, assert_close, col, derivative, joint
from linkwork.backends.numpy_ import NUMPY as xp
from linkwork.errors import LinkworkError
from linkwork.joints import (
    KINDS,
    Composite,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
    make,
)
from linkwork.joints.base import coordinate_axis, unit_axis
from linkwork.spatial import Transform

OBLIQUE = (0.36, -0.48, 0.8)
CASES = [
    *(
        (k, axis)
        for k in ("revolute", "prismatic", "helical", "cylindrical", "universal")
        for axis in ("x", "y", "z", "-x", "-y", "-z", OBLIQUE)
    ),
    ("spherical", None),
    ("planar", None),
    ("free", None),
    ("fixed", None),
    ("translation", None),
    ("spherical_zyx", None),
]
JOINTS = [
    pytest.param(joint(k, np.random.default_rng(3), a), id=f"{k} {'oblique' if a is OBLIQUE else a or ''}")
    for k, a in CASES
] + [
    pytest.param(Composite(Prismatic("x"), Revolute(OBLIQUE), Helical("y", 0.2)), id="composite"),
    pytest.param(Composite(Universal(), Spherical(), Planar(), Revolute("z")), id="composite on a manifold"),
]


def pose(j: Joint, q: np.ndarray) -> np.ndarray:
    R, p = Transform(j.moves(col(q), xp), xp).pose
    return np.block([[R, p], [np.zeros((1, 3)), np.ones((1, 1))]])


def integrate(j: Joint, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return j.integrate(col(q), col(v), xp)[:, 0]


def difference(j: Joint, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
    return j.difference(col(q0), col(q1), xp)[:, 0]


def random(j: Joint, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, 9])
    return j.random(rng), rng.normal(size=j.nv), rng.normal(size=j.nv)


def test_every_kind_is_covered():
    assert {k for k, _ in CASES} == set(KINDS)


@pytest.mark.parametrize("j", JOINTS)
@pytest.mark.parametrize("seed", range(3))
def test_S_v_is_the_body_velocity_of_the_placement(j, seed):
    q, v, _ = random(j, seed)
    T = pose(j, q)
    twist = np.linalg.inv(T) @ derivative(lambda t: pose(j, integrate(j, q, t * v)))
    found = [*twist[:3, 3], twist[2, 1], twist[0, 2], twist[1, 0]]
    assert_close(found, (j.subspace(col(q), xp) @ col(v))[:, 0], eps=FIVE_POINT)
    assert_close(twist[:3, :3], -twist[:3, :3].T, eps=FIVE_POINT)


@pytest.mark.parametrize("j", JOINTS)
@pytest.mark.parametrize("seed", range(3))
def test_bias_is_the_rate_of_S_at_constant_v(j, seed):
    q, v, _ = random(j, seed)
    rate = derivative(lambda t: j.subspace(col(integrate(j, q, t * v)), xp) @ col(v))
    assert_close(j.bias(col(q), col(v), xp), rate, eps=FIVE_POINT)
    whole = derivative(lambda t: j.subspace(col(integrate(j, q, t * v)), xp))
    assert_close(j.subspace_rate(col(q), col(v), xp), whole, eps=FIVE_POINT)


@pytest.mark.parametrize("j", JOINTS)
def test_rate_is_the_derivative_of_q(j):
    q, v, _ = random(j, 1)
    assert_close(j.rate(col(q), col(v), xp)[:, 0], derivative(lambda t: integrate(j, q, t * v)), eps=FIVE_POINT)


@pytest.mark.parametrize("j", JOINTS)
@pytest.mark.parametrize("scale", [0.0, 1e-12, 1e-5, 0.5, 2.0])
def test_difference_undoes_integrate(j, scale):
    q, v, _ = random(j, 2)
    v = scale * v / max(np.linalg.norm(v), 1.0)
    assert_close(difference(j, q, integrate(j, q, v)), v)
    assert_close(integrate(j, q, np.zeros(j.nv)), q, c=4)


@pytest.mark.parametrize("j", JOINTS)
@pytest.mark.parametrize("seed", range(3))
def test_integrate_reaches_what_difference_saw(j, seed):
    q0, *_ = random(j, seed)
    q1, *_ = random(j, seed + 100)
    assert_close(pose(j, integrate(j, q0, difference(j, q0, q1))), pose(j, q1))
    if j.nq == j.nv or j.kind == "planar":
        assert_close(integrate(j, q0, difference(j, q0, q1)), q1)


@pytest.mark.parametrize("j", JOINTS)
def test_velocities_along_one_direction_form_a_group(j):
    """exp(s v) exp(t v) = exp((s + t) v), and going back undoes it."""
    q, v, _ = random(j, 4)
    there = integrate(j, integrate(j, q, 0.3 * v), 0.4 * v)
    assert_close(pose(j, there), pose(j, integrate(j, q, 0.7 * v)))
    assert_close(pose(j, integrate(j, there, -0.7 * v)), pose(j, q))


@pytest.mark.parametrize("j", [p for p in JOINTS if p.values[0].kind in ("spherical", "planar", "free")])
def test_integrate_is_invariant_to_where_it_starts(j):
    """Body velocities: the relative pose reached does not depend on q."""
    (q0, v, _), (q1, *_) = random(j, 5), random(j, 6)
    moved = [np.linalg.inv(pose(j, q)) @ pose(j, integrate(j, q, v)) for q in (q0, q1)]
    assert_close(moved[0], moved[1])


@pytest.mark.parametrize("j", JOINTS)
def test_neutral_is_the_identity_and_random_is_valid(j):
    assert_close(pose(j, j.neutral()), np.eye(4))
    assert j.neutral().shape == (j.nq,)
    for seed in range(5):
        q = j.random(np.random.default_rng(seed))
        assert q.shape == (j.nq,)
        T = pose(j, q)
        assert_close(T[:3, :3].T @ T[:3, :3], np.eye(3))
        assert_close(j.normalised(col(q), xp)[:, 0], q, c=4)
    assert not np.array_equal(j.random(np.random.default_rng(0)), j.random(np.random.default_rng(1))) or j.nq == 0


@pytest.mark.parametrize("kind", ["spherical", "planar", "free"])
def test_normalised_is_the_nearest_valid_position(kind):
    j = make(kind)
    q = j.random(np.random.default_rng(0))
    off = q.copy()
    turn = slice(2, 4) if kind == "planar" else slice(-4, None)
    off[turn] *= 1.7
    assert_close(j.normalised(col(off), xp)[:, 0], q, c=4)


@pytest.mark.parametrize("j", JOINTS)
def test_selects_names_the_coordinates_that_S_picks(j):
    q, *_ = random(j, 0)
    S = j.subspace(col(q), xp)
    assert S.shape == (6, j.nv)
    if j.selects:
        assert_close(np.abs(S), np.eye(6)[:, list(j.selects)], c=0)


def test_free_and_spherical_quaternions_end_with_w():
    """A quarter turn about z carries x to y."""
    s = np.sqrt(0.5)
    for kind, q in (("spherical", [0, 0, s, s]), ("free", [1, 2, 3, 0, 0, s, s])):
        T = pose(make(kind), np.array(q))
        assert_close(T[:3, 0], [0, 1, 0], c=4)
        assert_close(T[:3, 3], q[:3] if kind == "free" else np.zeros(3))


@pytest.mark.parametrize("axis", ["x", "-y", OBLIQUE])
def test_positive_angles_turn_by_the_right_hand(axis):
    u = unit_axis(axis)
    across = np.cross(u, [0.1, 0.9, 0.3])
    R = pose(Revolute(axis), np.array([np.pi / 2]))[:3, :3]
    assert_close(R @ u, u)
    assert_close(R @ across, np.cross(u, across))


def test_screw_advances_by_its_pitch():
    T = pose(make("helical", axis=OBLIQUE, pitch=0.3), np.array([2.0]))
    assert_close(T[:3, 3], 0.6 * np.array(OBLIQUE))


def test_axes_are_normalised_and_rounding_is_cleared():
    assert_close(unit_axis([0, 3, 4]), [0, 0.6, 0.8], c=4)
    assert unit_axis([1e-14, 0, -2]).tolist() == [0, 0, -1]
    assert coordinate_axis(unit_axis("-z")) == (2, -1.0)
    assert coordinate_axis(unit_axis([0, 1, 1])) is None


@pytest.mark.parametrize("axis", ["w", "", "--x", [0, 0, 0], [1, 2], [np.nan, 0, 1], [np.inf, 0, 0]])
def test_bad_axes_are_refused(axis):
    with pytest.raises(LinkworkError, match="axis"):
        Revolute(axis)


def test_parallel_universal_axes_and_unknown_kinds_are_refused():
    with pytest.raises(LinkworkError, match="parallel"):
        Universal("x", "-x")
    with pytest.raises(LinkworkError, match="'revolute'"):
        make("revolut")
    assert make("continuous").kind == "revolute"
    for kind in ("fixed", "spherical"):
        with pytest.raises(LinkworkError, match=f"a {kind} joint takes no axis"):
            make(kind, axis="x")
