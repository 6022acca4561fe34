"""Drake's coordinates by its documentation, written out by hand; and laws that every map obeys."""

from __future__ import annotations

import numpy as np
import pytest

from linkwork import interop
from linkwork.errors import InputError, UnsupportedError
from linkwork.joints import Free, Helical, Planar, Prismatic, Revolute, Spherical, Universal
from linkwork.model import BodyInertia, Builder, Model, Placement
from linkwork.robots import mechanisms as mech

EPS = np.finfo(float).eps
QUARTER = np.sqrt(0.5)


def robot(placement: Placement | None = None) -> Model:
    b, body = Builder("robot"), BodyInertia(1.0, np.zeros(3), np.eye(3))
    b.link("trunk", joint=Free(), placement=placement, inertia=body, joint_name="float")
    b.link("ball", "trunk", Spherical(), inertia=body)
    b.link("cart", "trunk", Planar(), inertia=body)
    b.link("cross", "cart", Universal("x", "y"), inertia=body)
    b.link("arm", "cross", Revolute([1, 1, 0]), inertia=body)
    b.link("drawer", "arm", Prismatic("y"), inertia=body)
    b.link("screw", "drawer", Helical("z", 0.1), inertia=body)
    return b.build()


class Joint:
    """As much of a Drake joint as the map asks for."""

    def __init__(self, name: str, q: int, v: int, nq: int, nv: int) -> None:
        self._name, self._q, self._v, self._nq, self._nv = name, q, v, nq, nv

    def name(self) -> str:
        return self._name

    def type_name(self) -> str:
        return "joint"

    def position_start(self) -> int:
        return self._q

    def velocity_start(self) -> int:
        return self._v

    def num_positions(self) -> int:
        return self._nq

    def num_velocities(self) -> int:
        return self._nv


class Plant:
    """As much of a MultibodyPlant; a weld has no coordinates."""

    joints = (Joint("weld", 0, 0, 0, 0), Joint("arm_joint", 7, 6, 1, 1), Joint("robot_base", 0, 0, 7, 6))

    def GetJointIndices(self) -> range:
        return range(len(self.joints))

    def get_joint(self, k: int) -> Joint:
        return self.joints[k]

    def num_positions(self) -> int:
        return 8

    def num_velocities(self) -> int:
        return 7


def test_free_joint_by_hand() -> None:
    """A quarter turn about z: the body's x is the world's y."""
    b = Builder("body")
    b.link("trunk", joint=Free(), inertia=BodyInertia(1.0, np.zeros(3), np.eye(3)))
    to = interop.drake(b.build())
    q = np.array([1.0, 2, 3, 0, 0, QUARTER, QUARTER])
    v = np.array([0.5, 0, 0.1, 0.2, 0, 4])
    assert to.q_to(q) == pytest.approx([QUARTER, 0, 0, QUARTER, 1, 2, 3])
    assert to.v_to(q, v) == pytest.approx([0, 0.2, 4, 0, 0.5, 0.1])
    # w x v in the body is (0, 4 * 0.5 - 0.2 * 0.1, 0) = (0, 1.98, 0): in the world along -x
    assert to.a_to(q, v, np.zeros(6)) == pytest.approx([0, 0, 0, -1.98, 0, 0])
    assert to.tau_to(q, np.arange(1.0, 7)) == pytest.approx([-5, 4, 6, -2, 1, 3])


def test_other_joints_by_hand() -> None:
    m = robot()
    to = interop.drake(m)
    assert (to.nq, to.nv) == (7 + 3 + 3 + 2 + 3, 6 + 3 + 3 + 2 + 3)
    q = m.neutral()
    q[7:11] = [0, 0, QUARTER, QUARTER]  # ball: a quarter turn about z
    q[11:15] = [0.3, 0.4, 0, 1]  # cart: the same
    q[15:] = [0.1, 0.2, 0.3, 0.4, 0.5]
    assert to.q_to(q)[7:] == pytest.approx([0, 0, np.pi / 2, 0.3, 0.4, np.pi / 2, 0.1, 0.2, 0.3, 0.4, 0.5])
    v = np.zeros(m.nv)
    v[6:9], v[9:12], v[12:] = [1, 2, 3], [1, 0, 2], [1, 2, 3, 4, 5]
    assert to.v_to(q, v)[6:] == pytest.approx([-2, 1, 3, 0, 1, 2, 1, 2, 3, 4, 5])
    # the cart moves ahead, along y, and turns left: it is accelerated along -x
    assert to.a_to(q, v, np.zeros(m.nv))[9:12] == pytest.approx([-2, 0, 0])


def test_order_of_joints() -> None:
    m = robot()
    names = [l.joint_name for l in m.links[1:]]
    to = interop.drake(m, order=names[::-1])
    q = m.random_q(0)
    there = to.q_to(q)
    assert there[0:3] == pytest.approx(q[[-1, -2, -3]])
    assert there[-7] == q[6]  # w of the free joint, first in its seven numbers at the end
    with pytest.raises(InputError, match="each moving joint once"):
        interop.drake(m, order=names[1:])


def test_a_plant_says_where_joints_are() -> None:
    m = mech.chain(1, base="free")
    to = interop.drake(m, Plant(), {"link1_joint": "arm_joint"})
    q = m.random_q(1)
    assert to.q_to(q) == pytest.approx(np.concatenate([q[[6, 3, 4, 5, 0, 1, 2]], q[7:]]))
    with pytest.raises(InputError, match="do not pair up"):
        interop.drake(m, Plant())


def test_joints_that_drake_does_not_have() -> None:
    with pytest.raises(UnsupportedError, match="no cylindrical joint"):
        interop.drake(mech.chain(2, "cylindrical"))
    b = Builder("cross")
    b.link("a", joint=Universal("y", "z"), inertia=BodyInertia(1.0, np.zeros(3), np.eye(3)))
    with pytest.raises(UnsupportedError, match="x, then y"):
        interop.drake(b.build())


PLACES = [None, Placement.at((1, 2, 3), (0.4, -0.5, 2.0)), Placement.at((1, 0, 0), (np.pi, 0, 0))]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", range(5))
def test_laws(place: Placement | None, seed: int) -> None:
    """Round trips; equal power; a' is the derivative of v'; T is orthogonal."""
    m = robot(place)
    to, rng = interop.drake(m), np.random.default_rng(seed)
    q, v, a, tau = m.random_q(seed), *rng.normal(size=(3, m.nv))
    back = to.q_from(to.q_to(q))
    assert np.abs(m.difference(q, back)).max() < 1e-13  # quaternions may come back with the other sign
    assert np.abs(to.v_from(q, to.v_to(q, v)) - v).max() < 1e-14
    assert np.abs(to.tau_from(q, to.tau_to(q, tau)) - tau).max() < 1e-14
    assert np.abs(to.a_from(q, v, to.a_to(q, v, a)) - a).max() < 1e-13
    assert to.tau_to(q, tau) @ to.v_to(q, v) == pytest.approx(tau @ v, rel=1e-13)
    T = to.velocity_matrix(q)
    assert np.abs(T @ T.T - np.eye(m.nv)).max() < 1e-14
    assert np.abs(T @ v - to.v_to(q, v)).max() < 1e-14
    h = 1e-5
    ahead, behind = (to.v_to(m.integrate(q, s * h * v), v + s * h * a) for s in (1, -1))
    assert np.abs((ahead - behind) / (2 * h) - to.a_to(q, v, a)).max() < 1e-7


@pytest.mark.parametrize("place", PLACES)
def test_velocities_are_derivatives_of_positions(place: Placement | None) -> None:
    """The linear velocity of the free joint, the planar one and all others with as many positions as velocities."""
    m, h = robot(place), 1e-6
    to = interop.drake(m)
    q, v = m.random_q(3), np.random.default_rng(3).normal(size=m.nv)
    ahead, behind = (to.q_to(m.integrate(q, s * h * v)) for s in (1, -1))
    rate, there = (ahead - behind) / (2 * h), to.v_to(q, v)
    assert rate[4:7] == pytest.approx(there[3:6], abs=1e-8)
    assert rate[10:] == pytest.approx(there[9:], abs=1e-8)
    w, x, y, z = to.q_to(q)[:4]  # angular velocity in the world: 2 dq/dt times the conjugate of q
    conjugate = np.array([[-x, w, -z, y], [-y, z, w, -x], [-z, -y, x, w]])
    assert 2 * conjugate @ rate[:4] == pytest.approx(there[0:3], abs=1e-8)
    R = [mech.frame_pose(m, "trunk", p).R for p in (q, m.integrate(q, h * v), m.integrate(q, -h * v))]
    spin = (R[1] - R[2]) / (2 * h) @ R[0].T
    assert [spin[2, 1], spin[0, 2], spin[1, 0]] == pytest.approx(there[0:3], abs=1e-8)
