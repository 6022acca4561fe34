"""Parameters of one link: the placement of its joint, and its inertia."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linkwork.checks import NUMBER, array, checked, checked_class, instance
from linkwork.errors import ModelError
from linkwork.value_objects import Value, read_only, short


def tidy(R: np.ndarray) -> np.ndarray:
    """A rotation with entries within 1e-12 of 0 and +-1 made exact, so that they fold away when traced."""
    R = np.where(np.abs(R) < 1e-12, 0.0, R)
    return np.where(np.abs(np.abs(R) - 1) < 1e-12, np.sign(R), R)


def _is_rotation(x: list[float], y: list[float], z: list[float]) -> bool:
    """Whether three columns are orthonormal and right-handed; without NumPy, for speed."""

    def dot(a: list[float], b: list[float]) -> float:
        return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]

    off = (dot(x, x) - 1, dot(y, y) - 1, dot(z, z) - 1, dot(x, y), dot(y, z), dot(z, x))
    across = [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]
    return max(map(abs, off)) <= 1e-6 and dot(across, z) > 0


@checked_class(R=array(3, 3), p=array(3))
@dataclass(frozen=True, eq=False, repr=False)
class Placement(Value):
    """A frame in another: the columns of R are its axes, p is its origin.

    Examples:
        >>> place = lw.Placement.at((1, 0, 0), rpy=(0, 0, np.pi / 2))
        >>> np.allclose((place @ place.inverse()).p, 0)
        True
        >>> lw.Placement.from_quaternion((1, 0, 0), (0, 0, 0, 1))
        Placement(p=[1 0 0], rpy=[0 0 0])
    """

    R: np.ndarray = field(default_factory=lambda: np.eye(3))
    p: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        R, p = self.R, self.p
        if not _is_rotation(*R.T.tolist()):
            raise ModelError("R of a placement is not a rotation: its columns must be orthonormal and right-handed")
        object.__setattr__(self, "R", read_only(tidy(R)))
        object.__setattr__(self, "p", read_only(p))

    @staticmethod
    @checked(xyz=array(3), rpy=array(3))
    def at(xyz: object = (0.0, 0.0, 0.0), rpy: object = (0.0, 0.0, 0.0)) -> Placement:
        """From a position and roll, pitch, yaw: R = Rz(yaw) Ry(pitch) Rx(roll), as in URDF and SDF."""
        (cr, cp, cy), (sr, sp, sy) = np.cos(np.asarray(rpy, dtype=float)), np.sin(np.asarray(rpy, dtype=float))
        R = [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
        return Placement(np.array(R), np.asarray(xyz, dtype=float))

    @staticmethod
    @checked(xyz=array(3), xyzw=array(4, what="four finite numbers [x y z w]"))
    def from_quaternion(xyz: object, xyzw: object) -> Placement:
        """From a position and a quaternion [x y z w] of any nonzero length."""
        q = np.asarray(xyzw, dtype=float)
        norm = float(np.linalg.norm(q))
        if not norm > 1e-12:
            raise ModelError("a quaternion is four numbers [x y z w], not all zero")
        x, y, z, w = q / norm
        R = np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )
        return Placement(R, np.asarray(xyz, dtype=float))

    def __matmul__(self, other: Placement) -> Placement:
        """First this placement, then `other` in its frame."""
        if type(other) is not Placement:
            other = PLACEMENT.checked("the second placement", other, {})
        return Placement(self.R @ other.R, self.p + self.R @ other.p)

    def inverse(self) -> Placement:
        return Placement(self.R.T, -self.R.T @ self.p)

    @property
    def rpy(self) -> np.ndarray:
        """Roll, pitch, yaw, as `at` takes them; where the pitch is +-pi/2, the roll is zero."""
        R = self.R
        level = np.hypot(R[0, 0], R[1, 0])
        if level < 1e-9:
            return np.array([0.0, np.arctan2(-R[2, 0], level), np.arctan2(-R[0, 1], R[1, 1])])
        return np.array([np.arctan2(R[2, 1], R[2, 2]), np.arctan2(-R[2, 0], level), np.arctan2(R[1, 0], R[0, 0])])

    def __repr__(self) -> str:
        return f"Placement(p={short(self.p)}, rpy={short(self.rpy)})"


TRIANGLE = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
"""The entries of a symmetric matrix in the order of parameters, which is Pinocchio's."""


@checked_class(mass=NUMBER, com=array(3), I=array(3, 3))
@dataclass(frozen=True, eq=False, repr=False)
class BodyInertia(Value):
    """Mass, centre of mass, and rotational inertia about the centre of mass, in link axes.

    Examples:
        >>> body = lw.BodyInertia(2.0, np.array([0.0, 0.0, 0.1]), 0.05 * np.eye(3))
        >>> body.first_moment, body.about_origin.diagonal()
        (array([0. , 0. , 0.2]), array([0.07, 0.07, 0.05]))
        >>> body.moved(lw.Placement.at((0, 0, 1))).com
        array([0. , 0. , 1.1])
    """

    mass: float = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    I: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))

    def __post_init__(self) -> None:
        com, I = np.array(self.com, dtype=float), np.array(self.I, dtype=float)
        if com.shape != (3,) or I.shape != (3, 3):
            raise ModelError("an inertia has a mass, a centre of mass (3) and a 3 x 3 matrix about it")
        object.__setattr__(self, "mass", float(self.mass))
        object.__setattr__(self, "com", read_only(com))
        object.__setattr__(self, "I", read_only(I))

    def check(self, owner: str, strict: bool = True) -> None:
        """Refuse what no body can have: negative mass, inertia not symmetric or (if strict) not semidefinite."""
        remedy = "correct the <inertial> data, or leave the inertia out for a link without mass"
        if not (np.isfinite(self.mass) and np.isfinite(self.com).all() and np.isfinite(self.I).all()):
            raise ModelError(f"{owner}: mass, centre of mass and inertia must be finite numbers; {remedy}")
        if self.mass < 0:
            raise ModelError(f"{owner}: the mass is negative ({self.mass:g}); {remedy}")
        scale = max(float(np.abs(self.I).max()), 1e-300)
        if np.abs(self.I - self.I.T).max() > 1e-9 * scale:
            raise ModelError(f"{owner}: the rotational inertia is not symmetric; {remedy}")
        least = float(np.linalg.eigvalsh(self.I).min()) if strict else 0.0
        if least < -1e-9 * scale:
            raise ModelError(f"{owner}: the rotational inertia has a negative principal moment ({least:g}); {remedy}")

    @property
    def first_moment(self) -> np.ndarray:
        """h = m c."""
        return np.asarray(self.mass * self.com)

    @property
    def about_origin(self) -> np.ndarray:
        c = self.com
        return np.asarray(self.I + self.mass * (c @ c * np.eye(3) - np.outer(c, c)))

    @property
    def parameters(self) -> np.ndarray:
        """[m  hx hy hz  Ixx Ixy Iyy Ixz Iyz Izz]: mass, first moments m c, inertia about the origin."""
        return np.array([self.mass, *self.first_moment, *(self.about_origin[e] for e in TRIANGLE)])

    @staticmethod
    @checked(parameters=array(10))
    def from_parameters(parameters: object) -> BodyInertia:
        """The inertia of ten numbers, as `parameters` gives them; first moments need a mass."""
        x = np.asarray(parameters, dtype=float)
        if x[0] == 0 and x[1:4].any():
            raise ModelError("a body without mass has no first moments")
        com, I = x[1:4] / x[0] if x[0] else np.zeros(3), np.zeros((3, 3))
        for (i, j), value in zip(TRIANGLE, x[4:], strict=True):
            I[i, j] = I[j, i] = value
        return BodyInertia(float(x[0]), com, I - x[0] * (com @ com * np.eye(3) - np.outer(com, com)))

    def moved(self, X: Placement) -> BodyInertia:
        """In the frame in which this link frame has placement X."""
        X = PLACEMENT.checked("X", X, {})
        return BodyInertia(self.mass, X.p + X.R @ self.com, X.R @ self.I @ X.R.T)

    def __add__(self, other: BodyInertia) -> BodyInertia:
        other = INERTIA.checked("the second inertia", other, {})
        mass = self.mass + other.mass
        if mass == 0:
            return BodyInertia(0.0, self.com, self.I + other.I)
        com = (self.mass * self.com + other.mass * other.com) / mass
        shift = np.zeros((3, 3))
        for part in (self, other):
            d = part.com - com
            shift = shift + part.mass * (d @ d * np.eye(3) - np.outer(d, d))
        return BodyInertia(mass, com, self.I + other.I + shift)

    def __repr__(self) -> str:
        moments = short(np.diagonal(self.I))
        return f"BodyInertia({self.mass:.4g} kg, com={short(self.com)}, Ixx Iyy Izz={moments})"


PLACEMENT = instance(Placement, "a linkwork.Placement")
INERTIA = instance(BodyInertia, "a linkwork.BodyInertia")


@dataclass(frozen=True, eq=False, repr=False)
class Moments(BodyInertia):
    """Mass, first moment h and rotational inertia I about the link's origin, perhaps of no real body.

    Where parts of a body are lumped into another's, h may be nonzero without mass. There is no centre of mass: `com` is
    zero.
    """

    h: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "h", read_only(np.array(self.h, dtype=float)))

    @staticmethod
    def of(body: BodyInertia) -> Moments:
        return Moments(body.mass, np.zeros(3), body.about_origin, body.first_moment)

    @property
    def first_moment(self) -> np.ndarray:
        return self.h

    def moved(self, X: Placement) -> Moments:
        """In the frame in which this link frame has placement X."""
        p, h = X.p, X.R @ self.h
        arm = np.outer(p, h) + np.outer(h + self.mass * p, p)
        I = X.R @ self.I @ X.R.T + np.trace(arm) * np.eye(3) - (arm + arm.T) / 2
        return Moments(self.mass, np.zeros(3), I, h + self.mass * p)

    def __add__(self, other: BodyInertia) -> Moments:
        mass, h = self.mass + other.mass, self.h + other.first_moment
        return Moments(mass, np.zeros(3), self.I + other.about_origin, h)

    def __neg__(self) -> Moments:
        return Moments(-self.mass, np.zeros(3), -self.I, -self.h)

    def __repr__(self) -> str:
        return f"Moments({self.mass:.4g} kg, h={short(self.h)}, Ixx Iyy Izz={short(np.diagonal(self.I))})"
