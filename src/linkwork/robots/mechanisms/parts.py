"""Parts of mechanisms: inertias of solid shapes, checked sizes, joints by name, closures that fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.checks import (
    NAME,
    NUMBER,
    POSITION,
    Kind,
    array,
    checked,
    choice,
    either,
    number,
    optional,
    several,
    whole,
)
from linkwork.constraints import Closure
from linkwork.errors import InputError, listing
from linkwork.joints import KINDS, Helical, Joint, Universal, make, unit_axis
from linkwork.joints.base import AXIS, JOINT
from linkwork.model import BodyInertia, Builder, Frame, Model, Motion, Placement
from linkwork.model.builder import BASES, base_joint
from linkwork.model.model import MODEL

JointSpec = Joint | str | Sequence[Joint | str]
"""A joint, its kind ("revolute", ...), or several of these to be used in turn."""

MOST = 10_000
"""The most links, loops or branches of a mechanism: more would only fill the memory."""


def count(least: int) -> Kind:
    """A number of links, or of whatever a mechanism repeats."""
    return whole(least, MOST, f"a whole number of at least {least}")


JOINTS = either(JOINT, NAME, several(either(JOINT, NAME)))
BASE = choice("base", BASES)
LENGTH, POINT = number(1e-9, 1e9, "a length in metres above 0"), array(3)
ANGLE, CHANCE = NUMBER, number(0, 1, "a probability from 0 (chain) to 1 (bush)")
MASS = number(0, 1e12, "a mass in kg, at least 0")


SIZES = array(3, what="three lengths in metres")


@checked(mass=MASS, size=SIZES, centre=POINT)
def box(mass: float, size: object, centre: object = (0, 0, 0)) -> BodyInertia:
    """A solid box with edges `size` along the link's axes."""
    x, y, z = np.asarray(size, dtype=float) ** 2
    return BodyInertia(mass, np.asarray(centre, dtype=float), mass / 12 * np.diag([y + z, x + z, x + y]))


@checked(mass=MASS, radius=LENGTH, length=LENGTH, axis=AXIS, centre=POINT)
def cylinder(mass: float, radius: float, length: float, axis: object = "z", centre: object = (0, 0, 0)) -> BodyInertia:
    """A solid cylinder along `axis`."""
    along = np.outer(unit_axis(axis), unit_axis(axis))
    I = mass * (3 * radius**2 + length**2) / 12 * (np.eye(3) - along) + mass * radius**2 / 2 * along
    return BodyInertia(mass, np.asarray(centre, dtype=float), I)


@checked(mass=MASS, tip=POINT, radius=LENGTH)
def rod(mass: float, tip: object, radius: float = 0.03) -> BodyInertia:
    """A solid cylinder from the link's origin to `tip`."""
    end = np.asarray(tip, dtype=float)
    return cylinder(mass, radius, float(np.linalg.norm(end)), end, end / 2)


@checked(mass=MASS, radius=LENGTH, centre=POINT)
def ball(mass: float, radius: float, centre: object = (0, 0, 0)) -> BodyInertia:
    """A solid ball."""
    return BodyInertia(mass, np.asarray(centre, dtype=float), 0.4 * mass * radius**2 * np.eye(3))


def random_body(rng: np.random.Generator, size: float = 0.3) -> BodyInertia:
    """A random body of 0.5 to 2 kg with its mass spread over about `size` metres."""
    mass = rng.uniform(0.5, 2.0)
    spread = size * random_rotation(rng) @ np.diag(rng.uniform(0.2, 0.5, 3))
    second = spread @ spread.T
    I = np.trace(second) * np.eye(3) - second
    return BodyInertia(mass, rng.uniform(-size, size, 3) / 2, mass * (I + I.T) / 2)


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    """A rotation drawn uniformly."""
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return np.asarray(Q * np.linalg.det(Q))


def random_placement(rng: np.random.Generator, size: float = 0.3) -> Placement:
    """A random orientation, at a distance of about `size` metres."""
    return Placement(random_rotation(rng), rng.uniform(-size, size, 3))


def joint_cycle(spec: JointSpec) -> list[Joint]:
    """The joints to use in turn; a helical one asked for by name advances 0.05 m per radian."""
    specs = [spec] if isinstance(spec, (Joint, str)) else list(spec)
    if not specs:
        raise InputError(f"name at least one joint type: {listing(KINDS)}")
    return [s if isinstance(s, Joint) else Helical("z", 0.05) if s == "helical" else make(s) for s in specs]


def random_joint(kind: str, rng: np.random.Generator) -> Joint:
    """A joint of this kind about a coordinate axis or, as often, about a random one."""
    aligned = rng.random() < 0.5
    axis: object = str(rng.choice(["x", "y", "z", "-x", "-y", "-z"])) if aligned else rng.normal(size=3)
    if kind == "helical":
        return Helical(axis, rng.uniform(-0.3, 0.3))
    if kind == "universal":
        return Universal(axis, np.roll(unit_axis(axis), 1) if aligned else rng.normal(size=3))
    if kind in ("revolute", "prismatic", "cylindrical"):
        return make(kind, axis=axis)
    return make(kind)


@checked(model=MODEL, frame=NAME, q=POSITION)
def frame_pose(model: Model, frame: str, q: np.ndarray) -> Placement:
    """The placement of a frame (or link) in the world at `q`."""
    motion = Motion(model, np.asarray(q, dtype=float)[:, None], np.zeros((model.nv, 1)), NUMPY)
    f = model.frame(frame)
    R, p = motion.poses[f.link]
    return Placement(R, p[:, 0]) @ f.placement


@checked(model=MODEL, a=NAME, b=NAME, cut=NAME, axis=AXIS, q=optional(POSITION), name=NAME)
def closed(
    model: Model, a: str, b: str, cut: str = "fixed", axis: object = "z", q: np.ndarray | None = None, name: str = ""
) -> Model:
    """The model with frame `a` joined to link `b` by a cut joint, where they are at `q` (neutral).

    The place on `b` becomes a frame called `<a>_on_<b>`. The axis is in the axes of `a`.
    """
    at = frame_pose(model, b, model.neutral() if q is None else q).inverse() @ frame_pose(
        model, a, model.neutral() if q is None else q
    )
    carrier = model.frame(b)
    place = f"{a}_on_{b}"
    model = replace(model, frames={**model.frames, place: Frame(carrier.link, carrier.placement @ at)})
    across = "x" if abs(unit_axis(axis)[0]) < 0.5 else "y"
    second = np.cross(unit_axis(axis), unit_axis(across))
    return model.with_constraints(Closure(a, place, cut, axis, second, name=name or f"{a}~{b}"))


def attach_base(b: Builder, base: str, inertia: BodyInertia, placement: Placement | None = None) -> str:
    """The base of a mechanism: the world (base="fixed") or a floating body called "base"."""
    joint = base_joint(base)
    if base == "fixed":
        return "world"
    b.link("base", "world", joint, placement=placement, inertia=inertia, joint_name="base_joint", actuated=False)
    return "base"
