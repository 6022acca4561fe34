"""Open mechanisms: chains, trees, an arm, and the scaling mechanisms with welded tips (ladder, stem)."""

from __future__ import annotations

import numpy as np

from linkwork.errors import InputError
from linkwork.joints import Fixed, Joint, Revolute
from linkwork.model import Builder, Limits, Model, Placement
from linkwork.robots.mechanisms.parts import (
    JointSpec,
    attach_base,
    ball,
    box,
    check_count,
    check_lengths,
    closed,
    cylinder,
    joint_cycle,
    random_body,
    random_joint,
    random_placement,
    rod,
)


def add_chain(b: Builder, prefix: str, n: int, parent: str, joints: list[Joint], length: float, twist: float,
              start: Placement | None = None, rng: np.random.Generator | None = None) -> str:
    """Hang n links `<prefix>1`, `<prefix>2`, ... on `parent` and name the place at their end `<prefix>_tip`.

    Rods of `length` along x whose joints sit as Denavit and Hartenberg want it: each is turned by `twist` about x
    against the one before. With a generator, placements and inertias are drawn from it. Returns the last link.
    """
    step = Placement.at((length, 0, 0), (twist, 0, 0))
    placement = start or Placement()
    for i in range(n):
        body = rod(2.0 * length, (length, 0, 0)) if rng is None else random_body(rng, length)
        b.link(f"{prefix}{i + 1}", parent, joints[i % len(joints)], placement=placement, inertia=body)
        parent = f"{prefix}{i + 1}"
        placement = step if rng is None else random_placement(rng, length)
    b.frame(f"{prefix}_tip", parent, Placement.at((length, 0, 0)))
    return parent


def chain(n: int, joint: JointSpec = "revolute", *, seed: int | None = None, length: float = 0.3,
          twist: float = np.pi / 2, base: str = "fixed") -> Model:
    """A chain of n links `link1` ... `linkn` and a frame `link_tip`.

    Links are rods of `length` metres (2 kg per metre) along x, and each joint is turned by `twist` about x against
    the one before (Denavit-Hartenberg frames; twist 0 gives a planar chain). With a seed, placements and inertias
    are random instead. `joint` is a kind, a `Joint`, or a sequence used in turn.
    """
    check_count("the number of links n", n, 1)
    check_lengths(length=length)
    rng = None if seed is None else np.random.default_rng(seed)
    b = Builder(f"chain {n}")
    parent = attach_base(b, base, ball(2.0, 0.1))
    add_chain(b, "link", n, parent, joint_cycle(joint), length, twist, rng=rng)
    return b.build()


def random_tree(n: int, seed: int = 0, joints: JointSpec = "revolute", branching: float = 0.5, *,
                base: str = "fixed", armature: float = 0.0) -> Model:
    """A tree of n links `link1` ... `linkn` with random placements, inertias and joint axes.

    Each joint is drawn from `joints`: kinds get random axes, aligned with the coordinates or not; `Joint`s are taken
    as they are. `branching` is the chance that a link hangs on any earlier one rather than on the last: 0 is a chain,
    1 a bush. Half of the joints get the `armature`, if that is above zero.
    """
    check_count("the number of links n", n, 1)
    if not 0 <= branching <= 1:
        raise InputError(f"branching is a probability from 0 (chain) to 1 (bush), not {branching!r}")
    joint_cycle(joints)
    choices = [joints] if isinstance(joints, (Joint, str)) else list(joints)
    rng = np.random.default_rng(seed)
    b = Builder(f"random tree {n}, seed {seed}")
    names = [attach_base(b, base, random_body(rng))]
    for i in range(n):
        pick = choices[rng.integers(len(choices))]
        joint = random_joint(pick, rng) if isinstance(pick, str) else pick
        parent = names[rng.integers(len(names))] if rng.random() < branching else names[-1]
        b.link(f"link{i + 1}", parent, joint, placement=random_placement(rng), inertia=random_body(rng),
               armature=armature * (rng.random() < 0.5))
        names.append(f"link{i + 1}")
    return b.build(merge_fixed=not any(isinstance(j, Fixed) or j == "fixed" for j in choices))


def ladder(rungs: int, *, rung_links: int = 7, segment_links: int = 3, length: float = 0.2, cut: str = "fixed",
           base: str = "fixed") -> Model:
    """A rail with rungs whose far ends are welded to the world, all with hinges: constraints grow with the links.

    Sathya and Decre (PV solvers, fig. 4b): rungs of 7 links, 3 links of rail before each, 6-D constraints. The rail's
    links are `rail<k>_<i>`, the rungs' `rung<k>_<i>`, their tips `rung<k>__tip`. (3 + 7) rungs links, 6 rungs rows,
    closed at neutral q.
    """
    check_count("the number of rungs", rungs, 1)
    check_count("rung_links", rung_links, 1)
    check_count("segment_links", segment_links, 1)
    check_lengths(length=length)
    b, hinge = Builder(f"ladder {rungs}"), [Revolute("z")]
    parent = attach_base(b, base, ball(2.0, 0.1))
    start = Placement()
    for k in range(1, rungs + 1):
        parent = add_chain(b, f"rail{k}_", segment_links, parent, hinge, length, np.pi / 2, start)
        start = Placement.at((length, 0, 0), (np.pi / 2, 0, 0))
        add_chain(b, f"rung{k}_", rung_links, parent, hinge, length, np.pi / 2, Placement.at((length, 0, 0), (0, np.pi / 2, 0)))
    model = b.build()
    for k in range(1, rungs + 1):
        model = closed(model, f"rung{k}__tip", "world", cut)
    return model


def stem(n_stem: int, branches: int, *, branch_links: int = 7, length: float = 0.2, cut: str = "fixed",
         base: str = "free") -> Model:
    """A chain of n_stem links with `branches` chains on both ends, every branch's tip welded to the world.

    Sathya and Decre (PV solvers, fig. 2e; PV-OSIMr, fig. 3a). The first stem link carries half of the branches and
    (base="free") floats; the last carries the others. n_stem + 2 branches branch_links links, 12 branches rows,
    closed at neutral q. Stem links are `stem<i>`, branches `near<k>_<i>` and `far<k>_<i>`, tips `near<k>__tip`, ...
    """
    check_count("n_stem", n_stem, 1)
    check_count("the number of branches on each end", branches, 1)
    check_count("branch_links", branch_links, 1)
    check_lengths(length=length)
    b, hinge = Builder(f"stem {n_stem} with {branches} branches of {branch_links}"), Revolute("z")
    from linkwork.model.builder import base_joint

    first = base_joint(base)
    body, step = rod(2.0 * length, (length, 0, 0)), Placement.at((length, 0, 0), (np.pi / 2, 0, 0))
    b.link("stem1", "world", hinge if isinstance(first, Fixed) else first, inertia=body,
           actuated=isinstance(first, Fixed))
    for i in range(2, n_stem + 1):
        b.link(f"stem{i}", f"stem{i - 1}", hinge, placement=step, inertia=body)
    ends = [("near", "stem1", 0.0), ("far", f"stem{n_stem}", length)]
    for side, link, x in ends:
        for k in range(1, branches + 1):
            spread = Placement.at((x, 0, 0), (2 * np.pi * (k - 1) / branches, 0, 0)) @ Placement.at(rpy=(0, np.pi / 2, 0))
            add_chain(b, f"{side}{k}_", branch_links, link, [hinge], length, np.pi / 2, spread)
    model = b.build()
    for side, _, _ in ends:
        for k in range(1, branches + 1):
            model = closed(model, f"{side}{k}__tip", "world", cut)
    return model


def arm(n: int = 7) -> Model:
    """An arm of n hinges like a KUKA LBR iiwa: every axis is z, every placement a quarter turn and a shift.

    Links `link1` ... with a frame `tool` at the end; upper arm and forearm of 0.4 m, 0.34 m from the floor to the
    shoulder, 24 kg with seven joints. Neutral q is the arm stretched upwards.
    """
    check_count("the number of joints n", n, 1)
    b, quarter = Builder(f"arm {n}"), np.pi / 2
    rise = 0.34
    for i in range(n):
        outward = i % 2 == 1
        twist = 0.0 if i == 0 else quarter if outward else -quarter
        placement = Placement.at((0, 0, rise) if i % 2 == 0 and i == 0 else (0, 0, 0), (twist, 0, 0))
        if i % 2 == 0 and i > 0:
            placement = Placement.at((0, 0.4, 0), (-quarter, 0, 0))
        mass, reach = max(1.0, 5.0 - 0.55 * i), 0.2
        body = (cylinder(mass, 0.06, reach, "y", (0, reach / 2, 0)) if outward
                else cylinder(mass, 0.06, reach, "z", (0, 0, -reach / 2)))
        b.link(f"link{i + 1}", f"link{i}" if i else "world", Revolute("z"), placement=placement, inertia=body,
               limits=Limits(-2.9 + 0.8 * outward, 2.9 - 0.8 * outward, 300.0 / (1 + i / 2), 1.5), armature=0.1)
    last = (0, 0.126, 0) if n % 2 == 0 else (0, 0, 0.126)
    b.frame("tool", f"link{n}", Placement.at(last, (-quarter if n % 2 == 0 else 0.0, 0, 0)))
    return b.build()


__all__ = ["arm", "box", "chain", "ladder", "random_tree", "stem"]
