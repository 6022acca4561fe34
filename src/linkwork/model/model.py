"""The mechanism: a frozen tree of links, and the constraints of its loops and contacts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.checks import (
    ARRAY,
    CONSTRAINT,
    NAME,
    NAMES,
    Refused,
    array,
    checked,
    checked_class,
    finite_array,
    instance,
    mapping,
    optional,
    several,
    shown,
    whole,
)
from linkwork.errors import InputError, ModelError, listing, not_found
from linkwork.lazy import cached_property
from linkwork.model.actuator import Actuator
from linkwork.model.body import INERTIA, PLACEMENT, BodyInertia, Placement
from linkwork.model.configurations import Configurations
from linkwork.model.link import Link, Passive, armature_of, passive_of
from linkwork.model.tendon import Tendon
from linkwork.model.topology import Topology
from linkwork.model.unit_quaternions import check_unit_quaternions, places
from linkwork.value_objects import Value, read_only, short, uncached

if TYPE_CHECKING:
    from linkwork.constraints import Constraint
    from linkwork.model.parameters import Parameters

WORLD = "world"

Found = TypeVar("Found")


@checked_class(link=whole(), placement=PLACEMENT)
@dataclass(frozen=True, eq=False, repr=False)
class Frame(Value):
    """A named place on a link."""

    link: int
    placement: Placement


def _named(what: str, name: str, table: Mapping[str, Found]) -> Found:
    """What has this name. Algorithms ask hundreds of times: only what is no plain text is checked."""
    if type(name) is not str:
        name = NAME.checked("name", name, {})
    if name not in table:
        raise not_found(what, name, table)
    return table[name]


def _pulled_alike(a: BodyInertia, b: BodyInertia) -> bool:
    """Whether gravity acts equally on two bodies: their masses and first moments are equal."""
    return a.mass == b.mass and np.array_equal(a.first_moment, b.first_moment)


def _check_names(what: str, names: list[str]) -> None:
    """Refuse names that are there twice."""
    twice = [n for n in names if names.count(n) > 1]
    if twice:
        raise ModelError(f"the {what} {listing(dict.fromkeys(twice))} are there twice; give each its own name")


def _resists(passive: Passive) -> bool:
    return passive.acts or bool(passive.friction.any())


GRAVITY = array(3, what="three finite numbers, m/s^2 in world axes")
ACTUATOR = instance(Actuator, "a linkwork.Actuator")
TENDON = instance(Tendon, "a linkwork.Tendon")


@checked_class(
    name=NAME,
    links=several(instance(Link, "a Link")),
    frames=mapping(instance(Frame, "a Frame")),
    gravity=GRAVITY,
    constraints=several(CONSTRAINT),
    independent=NAMES,
    actuators=several(ACTUATOR),
    tendons=several(TENDON),
)
@dataclass(frozen=True, eq=False, repr=False)
class Model(Configurations, Value):
    """Links (link 0 is the world), frames, gravity, constraints, independent joints, actuators, tendons.

    Configurations are `q`, of length nq; a free joint has [x y z  qx qy qz qw], a spherical one [qx qy qz qw], a planar
    one [x y cos sin], all others their angles and lengths. Velocities `v`, of length nv, are in link coordinates.

    Examples:
        >>> model = chain(3)
        >>> model
        Model('chain 3': 3 links, nq=3, nv=3, 0 constraints with 0 rows, 1.8 kg)
        >>> q0, q1 = model.neutral(), model.random_q(0)
        >>> np.allclose(model.integrate(q0, model.difference(q0, q1)), q1)
        True
        >>> np.allclose(model.velocity(q0, model.rate(q0, q1)), q1)
        True
        >>> model.interpolate(q0, q1, 0.5).shape, model.normalised(q1).shape
        ((3,), (3,))
        >>> model.joint_names, model.v_slice("link2_joint"), model.links[model.joint("link2_joint")].joint.kind
        (('link1_joint', 'link2_joint', 'link3_joint'), slice(1, 2, None), 'revolute')
        >>> held = model.with_constraints(lw.point("linktip")).with_damping("link1_joint", 0.1)
        >>> held.constraints
        (Closure('linktip~world', spherical linktip ~ world),)
        >>> held.without("linktip~world").without_passive() == held.without_constraints().without_passive() == model
        True
        >>> sprung = model.with_springs("link1_joint", 10.0).with_friction("link1_joint", 0.1)
        >>> sprung.with_armature("link1_joint", 0.01).with_independent("link1_joint").nv
        3
    """

    name: str
    links: tuple[Link, ...]
    frames: Mapping[str, Frame]
    gravity: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    constraints: tuple[Constraint, ...] = ()
    independent: tuple[str, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    tendons: tuple[Tendon, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "gravity", read_only(np.array(self.gravity, dtype=float)))
        object.__setattr__(self, "frames", read_only(self.frames))
        if not self.links or any(l.parent >= i for i, l in enumerate(self.links) if i) or self.links[0].parent:
            raise ModelError(
                f"'{self.name}': links are the world and then all others, each behind the one that "
                "carries it; linkwork.Builder sorts them"
            )
        if any(f.link >= len(self.links) for f in self.frames.values()):
            raise ModelError(f"'{self.name}': a frame is on a link that is not there")

    @cached_property
    def _memo(self) -> dict[Any, Any]:
        """Cached results of functions of this model (memo.py)."""
        return {}

    @cached_property
    def reach(self) -> tuple[float, ...]:
        """For each link, the largest distance (m) of a frame, centre of mass or child from its frame."""
        far = [float(np.linalg.norm(l.inertia.com)) for l in self.links]
        for i, place in [(l.parent, l.placement) for l in self.links[1:]] + [
            (f.link, f.placement) for f in self.frames.values()
        ]:
            far[i] = max(far[i], float(np.linalg.norm(place.p)))
        return tuple(far)

    @cached_property
    def sliding(self) -> tuple[bool, ...]:
        """For each degree of freedom, whether it is a length, and not an angle."""
        S = [l.joint.subspace(l.joint.neutral()[:, None], NUMPY) for l in self.links[1:]]
        return tuple(not column[3:6].any() for columns in S for column in columns.T)

    @cached_property
    def topology(self) -> Topology:
        moving = [(0, 0, 0), *((l.parent, l.joint.nq, l.joint.nv) for l in self.links[1:])]
        parent, nq, nv = zip(*moving, strict=True)
        return Topology(parent, nq, nv)

    @property
    def nq(self) -> int:
        return self.topology.nq

    @property
    def nv(self) -> int:
        return self.topology.nv

    @property
    def nu(self) -> int:
        """Controls: one for each actuator."""
        return len(self.actuators)

    @property
    def na(self) -> int:
        """Activations: one for each actuator with a state."""
        return sum(bool(a.state) for a in self.actuators)

    @property
    def nlinks(self) -> int:
        """Moving links: the world does not count."""
        return len(self.links) - 1

    @property
    def rows(self) -> int:
        """Constraint rows in all."""
        return sum(c.rows for c in self.constraints)

    def row_span(self, n: int) -> tuple[int, int]:
        """The first row of constraint n among all rows, and the one behind its last."""
        if not -len(self.constraints) <= n < len(self.constraints):
            raise InputError(f"there is no constraint {n}: the model has {len(self.constraints)}, counted from 0")
        n %= len(self.constraints)
        start = sum(c.rows for c in self.constraints[:n])
        return start, start + self.constraints[n].rows

    @cached_property
    def mass(self) -> float:
        return sum(l.inertia.mass for l in self.links)

    @cached_property
    def _link_index(self) -> dict[str, int]:
        return {l.name: i for i, l in enumerate(self.links)}

    @cached_property
    def _joint_index(self) -> dict[str, int]:
        return {l.joint_name: i for i, l in enumerate(self.links) if i}

    @cached_property
    def _frame_index(self) -> dict[str, Frame]:
        """All frames: those of links, and the model's own, which come first where a link has the same name."""
        return {**{name: Frame(i, Placement()) for name, i in self._link_index.items()}, **self.frames}

    def link(self, name: str) -> int:
        """The index of a link, by its name."""
        return _named("link", name, self._link_index)

    def joint(self, name: str) -> int:
        """The index of the link that a joint moves, by the joint's name."""
        return _named("joint", name, self._joint_index)

    def frame(self, name: str) -> Frame:
        """A frame by its name: one of `frames`, a link, or "world"."""
        return _named("frame", name, self._frame_index)

    @checked(constraints=CONSTRAINT)
    def with_constraints(self, *constraints: Constraint) -> Model:
        """A new model with these constraints in addition to its own."""
        for c in constraints:
            c.check(self)
        return replace(self, constraints=(*self.constraints, *constraints))

    @checked(name=NAME, on=NAME, placement=optional(PLACEMENT))
    def with_frame(self, name: str, on: str = WORLD, placement: Placement | None = None) -> Model:
        """A new model with a named place on a link (or relative to a frame, or in the world)."""
        if name in self.frames or name in self._link_index:
            raise ModelError(f"'{name}' is there already; names of frames and links must be unique")
        carrier = self.frame(on)
        frame = Frame(carrier.link, carrier.placement @ (placement or Placement()))
        return replace(self, frames={**self.frames, name: frame})

    @checked(names=NAME)
    def without(self, *names: str) -> Model:
        """A new model without the constraints of these names."""
        there = [c.name for c in self.constraints]
        for name in names:
            if name not in there:
                raise not_found("constraint", name, there)
        return replace(self, constraints=tuple(c for c in self.constraints if c.name not in names))

    def without_constraints(self) -> Model:
        """A new model without any constraint: the spanning tree alone."""
        return replace(self, constraints=())

    @checked(gravity=GRAVITY)
    def with_gravity(self, gravity: object) -> Model:
        """A new model in another field of gravity: three numbers, m/s^2 in world axes."""
        return replace(self, gravity=gravity)  # type: ignore[arg-type]

    @checked(link=NAME, inertia=INERTIA, weightless=optional(INERTIA))
    def with_inertia(self, link: str, inertia: BodyInertia, weightless: BodyInertia | None = None) -> Model:
        """A new model in which a link has this inertia, in the link's axes.

        `weightless` is the part of it that gravity does not pull. Without it all of the new inertia is pulled if all of
        the old one was, and nothing if nothing was; a link that is weightless in part needs it.

        Raises ModelError for what no body can have, and for the world.
        """
        old = self.links[self.link(link)]
        if old is self.links[0]:
            raise ModelError(f"the world has no inertia. Links: {listing([l.name for l in self.links[1:]])}")
        inertia.check(f"link '{link}'")
        if weightless is None:
            weightless = old.weightless if _pulled_alike(old.weightless, BodyInertia()) else inertia
            if weightless is inertia and not _pulled_alike(old.weightless, old.inertia):
                raise ModelError(
                    f"link '{link}': gravity pulls {old.inertia.mass - old.weightless.mass:g} of its "
                    f"{old.inertia.mass:g} kg; say with weightless= which part of the new inertia it does not pull"
                )
        return self._with_link(replace(old, inertia=inertia, weightless=weightless))

    @checked(joint=NAME, armature=ARRAY)
    def with_armature(self, joint: str, armature: object) -> Model:
        """A new model in which a joint has this rotor inertia: a number, or one for each degree of freedom.

        In kg m^2 for rotations and kg for translations, as felt at the joint. Raises ModelError if it is negative.
        """
        old = self.links[self.joint(joint)]
        return self._with_link(replace(old, armature=armature_of(old.joint, armature, f"joint '{joint}'")))

    @checked(joint=NAME, damping=ARRAY)
    def with_damping(self, joint: str, damping: object) -> Model:
        """A new model in which a joint has this viscous damping: a number, or one per degree of freedom.

        The force is -damping v: in N m s/rad for rotations, N s/m for translations.
        """
        return self._with_passive(joint, damping=damping)

    @checked(joint=NAME, stiffness=ARRAY, rest=optional(ARRAY))
    def with_springs(self, joint: str, stiffness: object, rest: object = None) -> Model:
        """A new model in which a joint has a spring: its stiffness is a number, or one per degree of freedom.

        The force is -stiffness (q - rest): in N m/rad for rotations, N/m for translations. `rest` is a position of the
        joint (nq), by default the one that it has; rotations in space pull along the rotation vector from there.
        """
        known = self.links[self.joint(joint)].passive.rest
        return self._with_passive(joint, stiffness=stiffness, rest=known if rest is None else rest)

    @checked(joint=NAME, friction=ARRAY)
    def with_friction(self, joint: str, friction: object) -> Model:
        """A new model in which a joint has this dry friction: a number, or one per degree of freedom.

        In N m for rotations, N for translations. It acts in steps that solve for it: `lw.step`, and rollouts with
        contacts, for joints with one degree of freedom.
        """
        return self._with_passive(joint, friction=friction)

    @checked(actuators=ACTUATOR)
    def with_actuators(self, *actuators: Actuator) -> Model:
        """A new model with these actuators behind its own: `lw.Motor("knee", gear=9)`, `lw.PositionServo`, ...

        Functions made with actuators=True then take controls `u`, one for each; see `lw.actuation`.

        Examples:
            >>> model = chain(2).with_actuators(lw.Motor("link1_joint"), lw.PositionServo("link2_joint", kp=5.0))
            >>> model.nu, [a.name for a in model.actuators], model.without_actuators().nu
            (2, ['link1_joint', 'link2_joint'], 0)
        """
        _check_names("actuators", [a.name for a in (*self.actuators, *actuators)])
        for a in actuators:
            a.check(self)
        return replace(self, actuators=(*self.actuators, *actuators))

    def without_actuators(self) -> Model:
        """A new model without its actuators."""
        return replace(self, actuators=())

    @checked(tendons=TENDON)
    def with_tendons(self, *tendons: Tendon) -> Model:
        """A new model with these tendons behind its own: springs and dampers over several joints.

        Examples:
            >>> model = chain(2).with_tendons(lw.Tendon({"link1_joint": 1.0, "link2_joint": -1.0}, stiffness=50.0))
            >>> [t.name for t in model.tendons], len(model.without_passive().tendons)
            (['link1_joint'], 0)
        """
        _check_names("tendons", [t.name for t in (*self.tendons, *tendons)])
        for t in tendons:
            t.check(self)
        return replace(self, tendons=(*self.tendons, *tendons))

    def without_passive(self) -> Model:
        """A new model without damping, springs and friction of joints, and without tendons."""
        bare = (l if not _resists(l.passive) else replace(l, passive=None) for l in self.links)  # type: ignore[arg-type]
        cut = tuple(c.without_passive() for c in self.constraints)
        return replace(self, links=tuple(bare), constraints=cut, tendons=())

    def _with_passive(self, joint: str, **changed: object) -> Model:
        old = self.links[self.joint(joint)]
        return self._with_link(
            replace(old, passive=passive_of(old.joint, f"joint '{joint}'", **{**uncached(old.passive), **changed}))
        )

    def _with_link(self, link: Link) -> Model:
        """A new model in which the link of this name is replaced."""
        model = replace(self, links=tuple(link if l.name == link.name else l for l in self.links))
        for c in model.constraints:
            c.check(model)
        return model

    @checked(joints=NAME)
    def with_independent(self, *joints: str) -> Model:
        """A new model in which these joints are the independent ones of their clusters."""
        for name in joints:
            self.joint(name)
        return replace(self, independent=tuple(joints))

    def parameters(self) -> Parameters:
        """Inertias, armature, gravity, damping, springs, friction and targets as named arrays, with units.

        They are the defaults of functions made with `parameters=`, which take such arrays as inputs.
        """
        from linkwork.model.parameters import parameters_of

        return parameters_of(self)

    def unit_parts(self, i: int) -> list[slice]:
        """The entries of q that must be of length one for the joint of link i."""
        at = self.topology.q_slices[i].start
        return [slice(at + part.start, at + part.stop) for part in self.links[i].joint.units]

    @cached_property
    def _units(self) -> list[np.ndarray]:
        """The same of all joints."""
        return places(self)

    def check_position(self, q: np.ndarray) -> None:
        """Refuse quaternions [x y z w] and planar [cos sin] pairs that are not of length one."""
        try:
            q = finite_array(q, sys.float_info.max)
        except Refused as why:
            raise InputError(f"q is not an array of finite numbers: {str(why) or shown(q)}") from None
        if q.ndim == 0 or q.shape[-1] != self.nq:
            raise InputError(f"q has shape {q.shape}; this model needs ({self.nq},) or (batch, {self.nq})")
        check_unit_quaternions(self, q)

    def check_forward(self) -> None:
        """Refuse forward dynamics where a joint moves no inertia: its acceleration is undefined."""
        for link in self._moving_nothing:
            raise ModelError(
                f"joint '{link.joint_name}' moves no mass (link '{link.name}' and all behind it are massless), so "
                "its acceleration is undefined; give the link an inertia, the joint an armature, or fix the joint"
            )

    @cached_property
    def _moving_nothing(self) -> list[Link]:
        """The links whose joints move no inertia, not even a rotor's."""
        own = [np.abs(l.inertia.about_origin).sum() + l.inertia.mass for l in self.links]
        moved = ((l, sum(own[k] for k in self.topology.subtrees[i])) for i, l in enumerate(self.links) if i)
        return [l for l, inertia in moved if l.joint.nv and inertia == 0 and not np.all(l.armature > 0)]

    def __repr__(self) -> str:
        return (
            f"Model({short(self.name)}: {self.nlinks} links, nq={self.nq}, nv={self.nv}, "
            f"{len(self.constraints)} constraints with {self.rows} rows, {self.mass:.4g} kg)"
        )


MODEL = instance(Model, "a linkwork.Model")
