"""Gears, belts and mimic joints: one joint's position as a polynomial of others'.

phi = q_0 - offset - sum_j sum_k c_jk q_j^k,   k = 1, 2, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from linkwork.backends.ops import Array
from linkwork.checks import NAME, NUMBER, NUMBERS, checked_class, mapping
from linkwork.constraints.base import STABILISATION, Constraint, Rows, Stabilisation
from linkwork.errors import ModelError
from linkwork.values import read_only

if TYPE_CHECKING:
    from linkwork.model import Model
    from linkwork.model.motion import Motion


@checked_class(
    joint=NAME,
    terms=mapping(NUMBERS, "a dictionary from names of joints to lists of coefficients"),
    offset=NUMBER,
    name=NAME,
    stabilisation=STABILISATION,
)
@dataclass(frozen=True, eq=False, repr=False)
class Coupling(Constraint):
    """q_joint = offset + sum of polynomials of other joints: `terms={"hip": [6.0]}` is a gear of ratio 6.

    `terms` gives for each joint the coefficients of q, q^2, q^3, ...; all joints involved have one degree of freedom.
    """

    joint: str
    terms: Mapping[str, Sequence[float]]
    offset: float = 0.0
    name: str = ""
    stabilisation: Stabilisation | None = None

    def __post_init__(self) -> None:
        terms = {j: tuple(float(c) for c in coefficients) for j, coefficients in self.terms.items()}
        object.__setattr__(self, "terms", read_only(terms))
        object.__setattr__(self, "name", self.name or f"{self.joint}<-{'+'.join(terms)}")

    rows = 1

    @property
    def has_fixed_ratios(self) -> bool:
        """Whether it is a gear, belt or differential: never singular, whichever joint is dependent."""
        return all(not any(coefficients[1:]) for coefficients in self.terms.values())

    def check(self, model: Model) -> None:
        for name in (self.joint, *self.terms):
            joint = model.links[model.joint(name)].joint
            if joint.nq != 1 or joint.nv != 1:
                raise ModelError(
                    f"coupling '{self.name}': joint '{name}' is {joint.kind} and has {joint.nv} degrees of freedom; "
                    "couplings take joints with one (revolute, prismatic, helical); use Custom for others"
                )
        if self.joint in self.terms:
            raise ModelError(f"coupling '{self.name}': joint '{self.joint}' cannot depend on itself")

    def touches(self, model: Model) -> tuple[int, ...]:
        moved = [model.joint(j) for j in (self.joint, *self.terms)]
        return tuple(dict.fromkeys(l for i in moved for l in (i, model.links[i].parent)))

    def renamed(self, new: Callable[[str], str]) -> Coupling:
        terms = {new(j): coefficients for j, coefficients in self.terms.items()}
        return replace(self, joint=new(self.joint), terms=terms, name=new(self.name))

    def describe(self) -> str:
        powers = [
            f"{c:g} {j}" + (f"^{k}" if k > 1 else "") for j, cs in self.terms.items() for k, c in enumerate(cs, 1) if c
        ]
        return f"{self.joint} = " + " + ".join(powers + ([f"{self.offset:g}"] if self.offset else []))

    def evaluate(self, motion: Motion) -> Rows:
        model, xp = motion.model, motion.xp
        joints, drift = {model.joint(self.joint): xp.eye(1)}, xp.zeros(1)
        for name, cs in self.terms.items():
            i = model.joint(name)
            q, v = motion.joint_q(i), motion.joint_v(i)
            joints[i] = -_polynomial([k * c for k, c in enumerate(cs, 1)], q, xp.eye(1))
            curvature = [k * (k - 1) * c for k, c in enumerate(cs, 1)][1:]
            drift = drift - _polynomial(curvature, q, xp.eye(1)) * v * v
        return Rows({}, joints, drift)

    def position_error(self, motion: Motion) -> Array:
        model, xp = motion.model, motion.xp
        phi = motion.joint_q(model.joint(self.joint)) - self.offset * xp.eye(1)
        for name, cs in self.terms.items():
            phi = phi - _polynomial([0.0, *cs], motion.joint_q(model.joint(name)), xp.eye(1))
        return phi


def _polynomial(coefficients: Sequence[float], x: Array, one: Array) -> Array:
    """c0 + c1 x + c2 x^2 + ... by Horner's rule."""
    total = 0 * one
    for c in reversed(coefficients):
        total = total * x + c * one
    return total
