"""Gears, belts and mimic joints: one joint's position as a polynomial of others'.

phi = q_0 - offset - sum_j sum_k c_jk q_j^k,   k = 1, 2, ...

A q is that of a joint with one degree of freedom, or one entry of a joint with several: "wrist[1]" is the second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linkwork.backends.ops import Array
from linkwork.checks import NAME, NUMBER, NUMBERS, checked_class, either, mapping
from linkwork.constraints.base import Constraint, Rows
from linkwork.constraints.stabilisation import STABILISATION, Stabilisation
from linkwork.errors import ModelError
from linkwork.value_objects import read_only

if TYPE_CHECKING:
    from linkwork.model import Model
    from linkwork.model.motion import Motion


@checked_class(
    joint=NAME,
    terms=mapping(either(NUMBERS, NUMBER), "a dictionary from names of joints to ratios or lists of coefficients"),
    offset=NUMBER,
    name=NAME,
    stabilisation=STABILISATION,
)
@dataclass(frozen=True, eq=False, repr=False)
class Coupling(Constraint):
    """q_joint = offset + sum of polynomials of other joints: `terms={"hip": 6.0}` is a gear of ratio 6.

    `terms` gives for each joint a ratio, or the coefficients of q, q^2, q^3, ... A joint with several degrees of
    freedom is coupled by one of its entries: "wrist[0]" is the first angle of a universal joint, say. Quaternions are
    not coupled.

    Examples:
        >>> geared = chain(2).with_constraints(lw.Coupling("link2_joint", {"link1_joint": 6.0}))
        >>> lw.constraint_error(geared)([0.1, 0.6], [1.0, 6.0]).phi.shape
        (1,)
    """

    joint: str
    terms: Mapping[str, Sequence[float]]  # a ratio becomes a list of it
    offset: float = 0.0
    name: str = ""
    stabilisation: Stabilisation | None = None

    def __post_init__(self) -> None:
        terms = {j: tuple(map(float, np.atleast_1d(coefficients))) for j, coefficients in self.terms.items()}
        object.__setattr__(self, "terms", read_only(terms))
        object.__setattr__(self, "name", self.name or f"{self.joint}<-{'+'.join(terms)}")

    rows = 1

    @property
    def has_fixed_ratios(self) -> bool:
        """Whether it is a gear, belt or differential: never singular, whichever joint is dependent."""
        return all(not any(coefficients[1:]) for coefficients in self.terms.values())

    def check(self, model: Model) -> None:
        for name in (self.joint, *self.terms):
            i, k = _entry(model, name)
            joint = model.links[i].joint
            if joint.nq != joint.nv or k >= joint.nv or (joint.nv > 1 and name in model.joint_names):
                raise ModelError(
                    f"coupling '{self.name}': joint '{name}' is {joint.kind} and has {joint.nv} degrees of freedom; "
                    "couplings take joints with one (revolute, prismatic, helical), or one entry of a joint with "
                    "several, as in 'wrist[1]'; use Custom for quaternions"
                )
        if _entry(model, self.joint) in [_entry(model, name) for name in self.terms]:
            raise ModelError(f"coupling '{self.name}': joint '{self.joint}' cannot depend on itself")

    def touches(self, model: Model) -> tuple[int, ...]:
        return tuple(dict.fromkeys(l for i in self.links(model) for l in (i, model.links[i].parent)))

    def links(self, model: Model) -> list[int]:
        """The links that the joints move."""
        return [_entry(model, name)[0] for name in (self.joint, *self.terms)]

    def renamed(self, new: Callable[[str], str]) -> Coupling:
        def entry(name: str) -> str:
            found = ENTRY.fullmatch(name)
            return f"{new(found[1])}[{found[2]}]" if found else new(name)

        terms = {entry(j): coefficients for j, coefficients in self.terms.items()}
        return replace(self, joint=entry(self.joint), terms=terms, name=new(self.name))

    def describe(self) -> str:
        powers = [
            f"{c:g} {j}" + (f"^{k}" if k > 1 else "") for j, cs in self.terms.items() for k, c in enumerate(cs, 1) if c
        ]
        return f"{self.joint} = " + " + ".join(powers + ([f"{self.offset:g}"] if self.offset else []))

    def evaluate(self, motion: Motion) -> Rows:
        model, xp = motion.model, motion.xp
        joints, drift = dict[int, Array](), xp.zeros(1)

        def add(name: str, slope: Array) -> None:
            i, k = _entry(model, name)
            G = xp.hstack([slope if j == k else xp.zeros(1) for j in range(model.links[i].joint.nv)])
            joints[i] = joints[i] + G if i in joints else G

        add(self.joint, xp.eye(1))
        for name, cs in self.terms.items():
            q, v = (_of(model, name, part) for part in (motion.joint_q, motion.joint_v))
            add(name, -_polynomial([k * c for k, c in enumerate(cs, 1)], q, xp.eye(1)))
            curvature = [k * (k - 1) * c for k, c in enumerate(cs, 1)][1:]
            drift = drift - _polynomial(curvature, q, xp.eye(1)) * v * v
        return Rows({}, joints, drift)

    def position_error(self, motion: Motion) -> Array:
        model, xp = motion.model, motion.xp
        phi = _of(model, self.joint, motion.joint_q) - self.offset * xp.eye(1)
        for name, cs in self.terms.items():
            phi = phi - _polynomial([0.0, *cs], _of(model, name, motion.joint_q), xp.eye(1))
        return phi


ENTRY = re.compile(r"(.*)\[(\d+)\]")
"""The name of a joint, and an entry of it."""


def _entry(model: Model, name: str) -> tuple[int, int]:
    """The link that a joint moves, and which of its entries is meant."""
    found = None if name in model.joint_names else ENTRY.fullmatch(name)
    return (model.joint(found[1]), int(found[2])) if found else (model.joint(name), 0)


def _of(model: Model, name: str, part: Callable[[int], Array]) -> Array:
    """The entry of q or v, 1 x 1; `part` gives those of a link's joint."""
    i, k = _entry(model, name)
    return part(i)[k : k + 1, :]


def _polynomial(coefficients: Sequence[float], x: Array, one: Array) -> Array:
    """c0 + c1 x + c2 x^2 + ... by Horner's rule."""
    total = 0 * one
    for c in reversed(coefficients):
        total = total * x + c * one
    return total
