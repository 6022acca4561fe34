"""Chains with the rotors that move them.

Gears, parallel belts, differentials (Chignoli and others, clusters).

Every rotor is a body with its own hinge on the link that carries the motor, and a coupling says how far it turns with
the joints that it drives. Axes are z. The links' joints are the independent ones: `Model.independent` names them.
"""

from __future__ import annotations

import numpy as np

from linkwork.checks import NAME, NUMBER, Kind, Refused, checked
from linkwork.constraints import Coupling
from linkwork.joints import Revolute
from linkwork.model import BodyInertia, Builder, Model, Placement
from linkwork.model.body import INERTIA
from linkwork.robots.mechanisms.parts import ANGLE, BASE, LENGTH, attach_base, ball, box, count, cylinder, rod
from linkwork.robots.mechanisms.trees import Pattern

ROTOR = cylinder(0.25, 0.03, 0.04)
"""A motor's rotor: 0.25 kg, 60 mm across."""


def _ratio(value: object) -> object:
    x = NUMBER.take(value)
    if abs(x) < 1e-9:
        raise Refused
    return x


RATIO = Kind("the ratio of a transmission, finite and not zero", _ratio)


def _rotor(
    b: Builder, name: str, parent: str, placement: Placement, joints: dict[str, float], body: BodyInertia
) -> None:
    """A rotor whose angle is the sum of ratio times joint angle."""
    b.link(name, parent, Revolute("z"), placement=placement, inertia=body, actuated=False)
    b.constraints.append(Coupling(f"{name}_joint", {j: [n] for j, n in joints.items()}, name=f"{name}_gear"))


@checked(n=count(1), ratio=RATIO, length=LENGTH, twist=ANGLE, base=BASE, rotor=INERTIA)
def geared_chain(
    n: int,
    ratio: float = 6.0,
    *,
    length: float = 0.3,
    twist: float = np.pi / 2,
    base: str = "fixed",
    rotor: BodyInertia = ROTOR,
) -> Model:
    """A chain of n links, each driven by a motor on the link before through a gear.

    Rotor angle = ratio x joint angle.

    Links `link<i>`, rotors `rotor<i>`: nv = 2 n, n couplings, mobility n. Any q with rotor = ratio x link is valid,
    neutral q is.
    """
    return belt_chain(n, ratio, group=1, length=length, twist=twist, base=base, rotor=rotor, name=f"geared chain {n}")


@checked(n=count(1), ratio=RATIO, group=count(1), length=LENGTH, twist=ANGLE, base=BASE, rotor=INERTIA, name=NAME)
def belt_chain(
    n: int,
    ratio: float = 6.0,
    *,
    group: int = 2,
    length: float = 0.3,
    twist: float = np.pi / 2,
    base: str = "fixed",
    rotor: BodyInertia = ROTOR,
    name: str = "",
) -> Model:
    """A chain of n links driven through parallel belts.

    The motors of `group` joints sit on the link before them all.

    A belt runs over the joints in between, so that rotor k of a group turns by ratio (q_1 + ... + q_k), as at the
    knee and ankle of the MIT Humanoid. The joints of a group are parallel; between groups the axis turns by `twist`
    about x. Links `link<i>`, rotors `rotor<i>`: nv = 2 n, n couplings, mobility n, clusters of 2 `group` bodies.
    """
    b, turned, straight = Builder(name or f"belt chain {n}"), Pattern(length, twist, 0, 0), Pattern(length, 0, 0, 0)
    carrier = parent = attach_base(b, base, ball(2.0, 0.1))
    carried = placement = Placement()
    for i in range(1, n + 1):
        first = i - (i - 1) % group
        if i == first:
            carrier, carried = parent, placement
        b.link(f"link{i}", parent, Revolute("z"), placement=placement, inertia=rod(2 * length, (length, 0, 0)))
        shift = Placement.at((0, 0, 0.05 * (i - first + 1)))
        _rotor(b, f"rotor{i}", carrier, carried @ shift, {f"link{k}_joint": ratio for k in range(first, i + 1)}, rotor)
        b.independent.append(f"link{i}_joint")
        parent, placement = f"link{i}", (turned if i % group == 0 else straight).onward(i)
    b.frame("tip", parent, Placement.at((length, 0, 0)))
    return b.build()


@checked(stages=count(1), ratio=RATIO, length=LENGTH, base=BASE, rotor=INERTIA)
def differential(
    stages: int = 1, ratio: float = 6.0, *, length: float = 0.3, base: str = "fixed", rotor: BodyInertia = ROTOR
) -> Model:
    """Joints in pairs, each moved by two motors through a differential.

    Rotors turn by r1 = N (roll + pitch), r2 = N (roll - pitch).

    Stage k has `cross<k>` (hinge `roll<k>`), on it `link<k>` (hinge `pitch<k>`, across), and two rotors
    `rotor<k>a`, `rotor<k>b` on the link before: nv = 4 stages, 2 stages couplings, mobility 2 stages. Neutral q is
    valid.
    """
    b, quarter = Builder(f"differential {stages}"), np.pi / 2
    parent, placement = attach_base(b, base, ball(2.0, 0.1)), Placement()
    for k in range(1, stages + 1):
        b.link(
            f"cross{k}",
            parent,
            Revolute("z"),
            placement=placement,
            inertia=box(0.3, (0.05, 0.05, 0.05)),
            joint_name=f"roll{k}",
        )
        b.link(
            f"link{k}",
            f"cross{k}",
            Revolute("z"),
            placement=Placement.at(rpy=(quarter, 0, 0)),
            inertia=rod(2 * length, (length, 0, 0)),
            joint_name=f"pitch{k}",
        )
        for letter, sign in (("a", 1.0), ("b", -1.0)):
            beside = placement @ Placement.at((0, 0.06 * sign, 0))
            _rotor(b, f"rotor{k}{letter}", parent, beside, {f"roll{k}": ratio, f"pitch{k}": sign * ratio}, rotor)
        b.independent += [f"roll{k}", f"pitch{k}"]
        parent, placement = f"link{k}", Placement.at((length, 0, 0), (-quarter, 0, 0))
    b.frame("tip", parent, Placement.at((length, 0, 0)))
    return b.build()
