"""Random mechanisms for fuzz tests: joints, axes, placements, inertias and constraints at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from linkwork.checks import SEED, checked, choice, several
from linkwork.constraints import CUT_JOINTS, Closure, Constraint, Coupling, Distance
from linkwork.errors import InputError
from linkwork.joints import KINDS, SIMPLE
from linkwork.model import Builder, Frame, Model, Placement
from linkwork.robots.mechanisms.parts import (
    CHANCE,
    count,
    frame_pose,
    random_body,
    random_joint,
    random_placement,
)


@checked(
    seed=SEED,
    n=count(1),
    joints=several(choice("joint type", KINDS)),
    branching=CHANCE,
    loops=count(0),
    cuts=several(choice("cut joint", CUT_JOINTS)),
    contacts=count(0),
    couplings=count(0),
    distances=count(0),
    duplicates=count(0),
)
def random_mechanism(
    seed: int,
    n: int = 8,
    *,
    joints: Sequence[str] = tuple(j.kind for j in SIMPLE),
    branching: float = 0.4,
    loops: int = 2,
    cuts: Sequence[str] = tuple(CUT_JOINTS),
    contacts: int = 0,
    couplings: int = 1,
    distances: int = 1,
    duplicates: int = 0,
) -> Model:
    """A random tree of n links `link1` ... with random constraints; every constraint holds at neutral q.

    Joints are drawn from `joints` (all kinds), about aligned and random axes, with random placements and inertias,
    and armature on a third of them. `loops` closures join two links, `contacts` a link and the world, by cut joints
    drawn from `cuts`; `couplings` relate two or three joints with one freedom by polynomials (fewer where the tree has
    not enough such joints); `distances` are rods between two links or to the world. `duplicates` of these constraints
    are repeated under other names, so that rows are redundant. The same seed and arguments give the same mechanism.
    """
    for what, names in (("joint type", joints), ("cut joint", cuts)):
        if not names:
            raise InputError(f"name at least one {what}")
    rng = np.random.default_rng(seed)
    b, names = Builder(f"random mechanism {seed}"), ["world"]
    for i in range(1, n + 1):
        joint = random_joint(str(rng.choice(list(joints))), rng)
        parent = names[rng.integers(len(names))] if rng.random() < branching else names[-1]
        b.link(
            f"link{i}",
            parent,
            joint,
            placement=random_placement(rng),
            inertia=random_body(rng),
            armature=rng.uniform(0.01, 0.3, joint.nv) * (rng.random() < 1 / 3),
        )
        names.append(f"link{i}")
    model = b.build(merge_fixed=False)

    for k in range(loops if n > 1 else 0):
        a, other = rng.choice(names[1:], 2, replace=False)
        model = _joined(model, f"loop{k + 1}", str(a), str(other), cuts, rng)
    for k in range(contacts):
        model = _joined(model, f"contact{k + 1}", str(rng.choice(names[1:])), "world", cuts, rng)
    for k in range(distances):
        model = _rod(model, f"rod{k + 1}", names, rng)
    single = [l.joint_name for l in model.links[1:] if l.joint.nq == l.joint.nv == 1]
    for k in range(couplings if len(single) > 1 else 0):
        first, *others = (str(j) for j in rng.permutation(single)[: rng.integers(2, 4)])
        terms = {j: rng.uniform(-2, 2, rng.integers(1, 4)).tolist() for j in others}
        model = model.with_constraints(Coupling(first, terms, name=f"coupling{k + 1}"))
    again: list[Constraint] = []
    for k in range(duplicates if model.constraints else 0):
        pick = model.constraints[rng.integers(len(model.constraints))]
        again.append(replace(pick, name=f"{pick.name} again {k + 1}"))  # type: ignore[type-var]
    return model.with_constraints(*again)


def _with_frame(model: Model, name: str, link: str, placement: Placement) -> Model:
    return replace(model, frames={**model.frames, name: Frame(model.frame(link).link, placement)})


def _joined(model: Model, name: str, a: str, b: str, cuts: Sequence[str], rng: np.random.Generator) -> Model:
    """Two links joined by a random cut joint, through frames that coincide at neutral q."""
    q, on_a = model.neutral(), random_placement(rng)
    on_b = frame_pose(model, b, q).inverse() @ frame_pose(model, a, q) @ on_a
    model = _with_frame(_with_frame(model, f"{name}_a", a, on_a), f"{name}_b", b, on_b)
    axis = np.eye(3)[rng.integers(3)] if rng.random() < 0.5 else rng.normal(size=3)
    second = np.cross(axis, rng.normal(size=3))
    cut = str(rng.choice(list(cuts)))
    return model.with_constraints(Closure(f"{name}_a", f"{name}_b", cut, axis, second, rng.uniform(-0.3, 0.3), name))


def _rod(model: Model, name: str, names: Sequence[str], rng: np.random.Generator) -> Model:
    """A rod between two links, or a link and the world, as long as they are apart at neutral q."""
    a, b = (str(x) for x in rng.choice(names, 2, replace=False))
    for end, link in (("a", a), ("b", b)):
        model = _with_frame(model, f"{name}_{end}", link, random_placement(rng))
    ends = [frame_pose(model, f"{name}_{end}", model.neutral()).p for end in "ab"]
    length = float(np.linalg.norm(ends[0] - ends[1]))
    return model.with_constraints(Distance(f"{name}_a", f"{name}_b", length, name))
