"""Which joints of a graph to cut: the spanning tree on which dynamics are predicted to be fastest.

A reader of graphs (SDF, USD) cuts where its rule says (io/spanning.py), URDF+ and MJCF files where they say: both look
at joints, not at the cost of recursions. Here a cut joint is exchanged for another one of its loop (io/recut.py) as
long as that is faster; driven joints and those with limits stay in the tree. Exchanges that make more work in blocks
and rows (structure/work.py) are not traced. A tree chosen anew has other positions q, so this is for the moment of
loading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from linkwork.constraints import Closure
from linkwork.errors import LoadError
from linkwork.io.recut import BASES
from linkwork.model import Model
from linkwork.model.link import Limits, Link
from linkwork.structure.constraint_treatment import chosen

PROMISING = 1.05
"""Trees with so many times the work of the best so far are not traced."""


@dataclass(frozen=True)
class Cuts:
    """The joints to cut, and predicted us per state: with these, and with the rule's or file's (`rule`)."""

    joints: tuple[str, ...]
    us: float
    rule: float


def search(load: Callable[[tuple[str, ...]], Model], predict: Callable[[Model], float]) -> Cuts:
    """One exchange after the other, each the first that is faster, until there is none."""
    model = load(())
    joints = _cut(model)
    us = rule = predict(model)
    tried = {frozenset(joints)}
    while better := _faster(load, predict, model, us, tried):
        model, us = better
        joints = _cut(model)
    return Cuts(joints, us, rule)


def _faster(
    load: Callable[[tuple[str, ...]], Model],
    predict: Callable[[Model], float],
    model: Model,
    us: float,
    tried: set[frozenset[str]],
) -> tuple[Model, float] | None:
    joints, work = _cut(model), _work(model)
    for name in joints:
        for other in _exchanges(model, name):
            trial = tuple(other if n == name else n for n in joints)
            if len(set(trial)) < len(joints) or frozenset(trial) in tried:
                continue
            tried.add(frozenset(trial))
            try:
                found = load(trial)
            except LoadError:  # another loop needs the joint that would come back
                continue
            if set(_cut(found)) == set(trial) and _work(found) < PROMISING * work and (t := predict(found)) < us:
                return found, t
    return None


def _work(model: Model) -> float:
    return chosen(model).work or 0.0


def _cut(model: Model) -> tuple[str, ...]:
    return tuple(c.name for c in model.constraints if isinstance(c, Closure))


def _exchanges(model: Model, name: str) -> Iterator[str]:
    """The joints of the loop that a cut joint closes, which could be cut instead of it."""
    t = model.topology
    a, b = ({*t.supports[l], l} for l in next(c for c in model.constraints if c.name == name).touches(model))
    motors = any(not l.actuated for l in model.links[1:] if l.joint.kind not in BASES)  # the file says what is driven
    for i in sorted(a ^ b):
        link = model.links[i]
        driven = link.joint_name in model.independent or (motors and link.actuated)
        if i and not driven and not _stops(link, bool(model.independent)):
            yield link.joint_name


def _stops(link: Link, told: bool) -> bool:
    """Whether limits of a joint count: any where nothing else tells (`told`) which joints are driven.

    Else limits of force and speed are a motor's that is not there, and angles beyond a turn are never met in a loop.
    """
    if not told or link.limits == Limits():
        return link.limits != Limits()
    turn = 2 * np.pi if link.joint.kind == "revolute" else np.inf
    return link.limits.lower > -turn or link.limits.upper < turn
