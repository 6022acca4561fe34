"""Open mechanisms: chains, trees, an arm, and the scaling mechanisms with welded tips (ladder, stem)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwork.checks import NAME, NOT_NEGATIVE, SEED, checked, optional
from linkwork.joints import Fixed, Joint, Revolute
from linkwork.model import BodyInertia, Builder, Limits, Model, Placement
from linkwork.model.builder import base_joint
from linkwork.robots.mechanisms.parts import (
    ANGLE,
    BASE,
    CHANCE,
    JOINTS,
    LENGTH,
    JointSpec,
    attach_base,
    ball,
    closed,
    count,
    cylinder,
    joint_cycle,
    random_body,
    random_joint,
    random_placement,
    rod,
)


@dataclass(frozen=True)
class Pattern:
    """Rods along x, each joint turned by `turn` about z and `twist` about x against the one before.

    These are Denavit-Hartenberg frames. Two quarter turns permute the axes: a chain of such links is a staircase.
    Were all steps equal, its hinges would lie on a screw and be singular, so every other link is longer by `uneven`.
    """

    length: float = 0.2
    twist: float = np.pi / 2
    turn: float = np.pi / 2
    uneven: float = 0.3

    def rod(self, i: int) -> float:
        """The length of link i = 1, 2, ..."""
        return self.length * (1 + self.uneven * (i % 2))

    def end(self, i: int) -> Placement:
        """The far end of link i, in its own axes."""
        return Placement.at((self.rod(i), 0, 0))

    def onward(self, i: int) -> Placement:
        """The next joint on link i."""
        return Placement.at((self.rod(i), 0, 0), (0, 0, self.turn)) @ Placement.at(rpy=(self.twist, 0, 0))

    def inertia(self, i: int) -> BodyInertia:
        """2 kg per metre."""
        return rod(2.0 * self.rod(i), (self.rod(i), 0, 0))


def add_chain(
    b: Builder,
    prefix: str,
    numbers: range,
    parent: str,
    start: Placement,
    pattern: Pattern,
    joints: Sequence[Joint] = (Revolute("z"),),
    rng: np.random.Generator | None = None,
) -> str:
    """Hang links `<prefix><number>` one after the other on `parent`, the first at `start`.

    Returns the last.

    The place at the end is called `<prefix>tip`. With a generator, placements and inertias are drawn from it.
    """
    for i in numbers:
        body = pattern.inertia(i) if rng is None else random_body(rng, pattern.length)
        b.link(f"{prefix}{i}", parent, joints[(i - numbers[0]) % len(joints)], placement=start, inertia=body)
        parent = f"{prefix}{i}"
        start = pattern.onward(i) if rng is None else random_placement(rng, pattern.length)
    b.frame(f"{prefix}tip", parent, pattern.end(numbers[-1]))
    return parent


@checked(n=count(1), joint=JOINTS, seed=optional(SEED), length=LENGTH, twist=ANGLE, turn=ANGLE, base=BASE)
def chain(
    n: int,
    joint: JointSpec = "revolute",
    *,
    seed: int | None = None,
    length: float = 0.3,
    twist: float = np.pi / 2,
    turn: float = 0.0,
    base: str = "fixed",
) -> Model:
    """A chain of n links `link1` ... `linkn` and a frame `linktip`.

    Links are rods of `length` metres (2 kg per metre) along x. Each joint is turned by `turn` about z and `twist`
    about x against the one before (Denavit-Hartenberg frames): the default is stretched along x when neutral,
    turn = pi/2 makes it a staircase, twist = 0 makes it planar. With a seed, placements and inertias are random
    instead. `joint` is a kind, a `Joint`, or a sequence used in turn; `base` "fixed", "free" or "planar".
    """
    rng = None if seed is None else np.random.default_rng(seed)
    b = Builder(f"chain {n}")
    parent = attach_base(b, base, ball(2.0, 0.1))
    pattern = Pattern(length, twist, turn, uneven=0.0)
    add_chain(b, "link", range(1, n + 1), parent, Placement(), pattern, joint_cycle(joint), rng)
    return b.build()


@checked(n=count(1), seed=SEED, joints=JOINTS, branching=CHANCE, base=BASE, armature=NOT_NEGATIVE)
def random_tree(
    n: int,
    seed: int = 0,
    joints: JointSpec = "revolute",
    branching: float = 0.5,
    *,
    base: str = "fixed",
    armature: float = 0.0,
) -> Model:
    """A tree of n links `link1` ... `linkn` with random placements, inertias and joint axes.

    Each joint is drawn from `joints`: kinds get random axes, aligned with the coordinates or not; `Joint`s are taken
    as they are. `branching` is the chance that a link hangs on any earlier one rather than on the last: 0 is a chain,
    1 a bush. Half of the joints get the `armature`, if that is above zero.
    """
    joint_cycle(joints)
    choices = [joints] if isinstance(joints, (Joint, str)) else list(joints)
    rng = np.random.default_rng(seed)
    b = Builder(f"random tree {n}, seed {seed}")
    names = [attach_base(b, base, random_body(rng))]
    for i in range(n):
        pick = choices[rng.integers(len(choices))]
        joint = random_joint(pick, rng) if isinstance(pick, str) else pick
        parent = names[rng.integers(len(names))] if rng.random() < branching else names[-1]
        b.link(
            f"link{i + 1}",
            parent,
            joint,
            placement=random_placement(rng),
            inertia=random_body(rng),
            armature=armature * (rng.random() < 0.5),
        )
        names.append(f"link{i + 1}")
    return b.build(merge_fixed=not any(isinstance(j, Fixed) or j == "fixed" for j in choices))


@checked(rungs=count(1), rung_links=count(1), segment_links=count(1), length=LENGTH, cut=NAME, base=BASE)
def ladder(
    rungs: int,
    *,
    rung_links: int = 7,
    segment_links: int = 3,
    length: float = 0.2,
    cut: str = "fixed",
    base: str = "fixed",
) -> Model:
    """A rail with rungs whose far ends are welded to the world, all with hinges.

    Constraints grow with the links.

    Sathya and others (PV solvers, fig. 4b): rungs of 7 links, 3 links of rail before each, 6-D constraints. The
    rail's links are `rail<k>_<i>`, the rungs' `rung<k>_<i>`, their tips `rung<k>_tip`. (3 + 7) rungs links, 6 rungs
    rows, mobility 4 rungs; closed at neutral q.
    """
    b, pattern = Builder(f"ladder {rungs}"), Pattern(length)
    rail = attach_base(b, base, ball(2.0, 0.1))
    start = Placement()
    for k in range(1, rungs + 1):
        rail = add_chain(b, f"rail{k}_", range(1, segment_links + 1), rail, start, pattern)
        start = pattern.onward(segment_links)
        aside = pattern.end(segment_links) @ Placement.at(rpy=(0, np.pi / 2, 0))
        add_chain(b, f"rung{k}_", range(1, rung_links + 1), rail, aside, pattern)
    model = b.build()
    for k in range(1, rungs + 1):
        model = closed(model, f"rung{k}_tip", "world", cut)
    return model


@checked(n_stem=count(1), branches=count(1), branch_links=count(1), length=LENGTH, cut=NAME, base=BASE)
def stem(
    n_stem: int, branches: int, *, branch_links: int = 7, length: float = 0.2, cut: str = "fixed", base: str = "free"
) -> Model:
    """A chain of n_stem links with `branches` chains on each end, every branch's tip welded to the world.

    Sathya and others (PV solvers, fig. 2e; PV-OSIMr, fig. 3a). The first stem link floats (base="free"; "fixed" puts
    it on a hinge) and carries the branches `near<k>_<i>`, the last, `stem<n_stem>`, carries `far<k>_<i>`; tips are
    `near<k>_tip`, `far<k>_tip`. n_stem + 2 branches branch_links links, 12 branches rows; closed at neutral q.
    """
    b, pattern = Builder(f"stem {n_stem}, {branches} branches of {branch_links}"), Pattern(length)
    add_root(b, "stem1", base, pattern)
    if n_stem > 1:
        add_chain(b, "stem", range(2, n_stem + 1), "stem1", pattern.onward(1), pattern)
    ends = {"near": ("stem1", Placement()), "far": (f"stem{n_stem}", pattern.end(n_stem))}
    tips = []
    for side, (link, place) in ends.items():
        for k in range(1, branches + 1):
            spread = Placement.at(rpy=(2 * np.pi * k / branches, 0, 0)) @ Placement.at(rpy=(0, np.pi / 2, 0))
            add_chain(b, f"{side}{k}_", range(1, branch_links + 1), link, place @ spread, pattern)
            tips.append(f"{side}{k}_tip")
    model = b.build()
    for tip in tips:
        model = closed(model, tip, "world", cut)
    return model


def add_root(b: Builder, name: str, base: str, pattern: Pattern) -> None:
    """The link that carries all others: on a hinge (base="fixed") or afloat."""
    joint = base_joint(base)
    floating = joint.nv > 0
    b.link(name, joint=joint if floating else Revolute("z"), inertia=pattern.inertia(1), actuated=not floating)


@checked(n=count(1))
def arm(n: int = 7) -> Model:
    """An arm of n hinges like a KUKA LBR iiwa.

    Every axis is z, every placement a quarter turn and a shift.

    Links `link1` ... `linkn` and a frame `tool` at the end, 0.126 m from the last axis or along it. 0.34 m from the
    floor to the shoulder, 0.4 m from one pitch axis to the next but one; with seven joints 23 kg. Neutral q is
    stretched upwards.
    """
    b, quarter, reach = Builder(f"arm {n}"), np.pi / 2, 0.2
    placement = Placement.at((0, 0, 0.34))
    for i in range(n):
        mass, effort = max(1.0, 5.0 - 0.55 * i), 300 / (1 + i / 2)
        if i % 2 == 0:  # turns about the arm's length
            body, range_ = cylinder(mass, 0.06, reach, "z", (0, 0, -reach / 2)), 2.9
            onward, tip = Placement.at(rpy=(quarter, 0, 0)), Placement.at((0, 0, 0.126))
        else:  # bends the arm
            body, range_ = cylinder(mass, 0.06, reach, "y", (0, reach / 2, 0)), 2.1
            back = (-quarter, 0, 0)
            onward, tip = Placement.at((0, 2 * reach, 0), back), Placement.at((0, 0.126, 0), back)
        b.link(
            f"link{i + 1}",
            f"link{i}" if i else "world",
            Revolute("z"),
            placement=placement,
            inertia=body,
            limits=Limits(-range_, range_, effort, 1.5),
            armature=0.1,
        )
        placement = onward
    b.frame("tool", f"link{n}", tip)
    return b.build()
