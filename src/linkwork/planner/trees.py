"""Which joints of a graph to cut: the spanning tree on which dynamics are predicted to be fastest.

A reader of graphs (SDF) cuts where its rule says (io/spanning.py): it depends on joints, not on the cost of recursions.
Here a cut joint is exchanged for another one of its loop as long as that is faster; joints with limits, which are the
driven ones, stay in the tree. Exchanges that make more work in blocks and rows (structure/work.py) are not traced. A
tree chosen anew has other positions q, so this is for the moment of loading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from linkwork.constraints import Closure
from linkwork.errors import LoadError
from linkwork.model import Model
from linkwork.model.link import Limits
from linkwork.structure.treatment import chosen

PROMISING = 1.05
"""Trees with so many times the work of the best so far are not traced."""


@dataclass(frozen=True)
class Cuts:
    """The joints to cut, and predicted us per state: with these (`us`), and by the rule (`rule`)."""

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
            if frozenset(trial) in tried:
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
    for i in sorted(a ^ b):
        if i and model.links[i].limits == Limits():
            yield model.links[i].joint_name
