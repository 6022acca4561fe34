"""Which methods are traced for a mechanism: rules about traits of methods (algorithms/registry.py).

A rule gives the reason why a method that can handle the model is not traced, or ""; rules come first because they need
no trace. Of methods with the same treatment of all constraints one remains, and of those whose work can be estimated
(structure/work.py) all within CLEAR of the least.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linkwork.algorithms.registry import DELASSUS, FD, Method, able, methods
from linkwork.errors import ModelError
from linkwork.model import Model
from linkwork.structure.constraint_treatment import Mixture, treated
from linkwork.structure.local_loops import local_loops, never_singular

CLEAR = 1.2
"""Methods with so many times the estimated work of another are not traced. Traced operations of six treatments of 24
mechanisms deviate by 16 % from their estimates (root mean square, relative to the mean of a mechanism)."""


@dataclass(frozen=True)
class Asked:
    """What a plan is for: a model, what is promised (`independent`) and needed (`soft`, `modes`)."""

    model: Model
    independent: bool = False
    soft: bool = False
    modes: bool = False

    def treatment(self, method: Method) -> Mixture | None:
        """What a method does with the constraints; None if it treats them all at once, in joint space."""
        if method.ways is None:
            return None
        return treated(self.model, method.ways.switched() if self.modes else method.ways)


Rule = Callable[[Method, Asked], str]


def _refused(method: Method, asked: Asked) -> str:
    return method.refusal(asked.model, asked.soft, asked.modes) or ""


def _reference(method: Method, asked: Asked) -> str:
    return "reference implementation" if method.reference else ""


def _without_constraints(method: Method, asked: Asked) -> str:
    needless = method.task == FD and method.rows != "none" and not asked.model.constraints
    return "made for constraints, and the model has none" if needless else ""


def _independent_rows(method: Method, asked: Asked) -> str:
    needed = method.task == FD and asked.model.constraints and not method.redundant
    return "needs independent rows: promise them with independent=True" if needed and not asked.independent else ""


def _another_result(method: Method, asked: Asked) -> str:
    if method.outer_only:
        return "returns only the rows outside clusters"
    return "an operator, which never forms the matrix" if method.task == DELASSUS and method.operator else ""


def _closed_loops(method: Method, asked: Asked) -> str:
    if not method.local:
        return ""
    inside = [n for _, constraints in local_loops(asked.model) for n in constraints]
    if not inside:
        return "there are no local loops to embed"
    if asked.modes:
        return "embedded constraints cannot be switched off"
    if not asked.independent and not all(never_singular(asked.model.constraints[n]) for n in inside):
        return "an embedded linkage or cam must not become singular: promise that with independent=True"
    return ""


def _penalties_through_linkages(method: Method, asked: Asked) -> str:
    try:
        mix = asked.treatment(method)
    except ModelError as no_clusters:
        return str(no_clusters)
    if mix is None or not mix.strained:
        return ""
    return "penalties that pass through embedded linkages lose digits near singular postures (7e-2 off on Digit)"


RULES: tuple[Rule, ...] = (
    _refused,
    _reference,
    _without_constraints,
    _independent_rows,
    _another_result,
    _closed_loops,
    _penalties_through_linkages,
)


def reasons(task: str, asked: Asked) -> list[tuple[Method, str]]:
    """All methods of a task with the reason why each is not traced, "" for those that are.

    If there are reasons against all, the first that can handle the model is taken; a typed error if none can.
    """
    first = able(task, asked.model, soft=asked.soft, modes=asked.modes)[0]
    known = methods(task).values()
    found = {m: next(filter(None, (rule(m, asked) for rule in RULES)), "") for m in known}
    suitable = [m for m, reason in found.items() if not reason]
    if not suitable:
        return [(m, "" if m is first else reason) for m, reason in found.items()]
    return [(m, reason or _outdone(m, suitable, asked)) for m, reason in found.items()]


def _outdone(method: Method, suitable: list[Method], asked: Asked) -> str:
    """Why another method is better, from their treatments of the constraints; "" if none is known to be."""
    others = {m.name: m for m in suitable if m is not method}
    if method.direct in others:
        return f"{method.direct} takes fewer operations for independent rows"
    mix = asked.treatment(method)
    if mix is None or mix.work is None:
        return ""
    alike = [m for m in others.values() if (m.prox is None) == (method.prox is None)]
    treatments = {m: found for m in alike if (found := asked.treatment(m)) and found.work is not None}
    for other, found in treatments.items():
        if found.same(mix) and _before(other, method, suitable):
            return f"identical to {other.name} for this model"
    least = min(treatments, key=lambda m: treatments[m].work or 0.0, default=None)
    if least is not None and mix.work > CLEAR * (least_work := treatments[least].work or mix.work):
        return f"{100 * (mix.work / least_work - 1):.0f} % more work than {least.name}, estimated from blocks and rows"
    return ""


def _before(other: Method, method: Method, order: list[Method]) -> bool:
    """Order of methods with the same treatment: fixed before choosing ones, then as in the registry."""
    return _rank(other, order) < _rank(method, order)


def _rank(method: Method, order: list[Method]) -> tuple[bool, int]:
    return method.ways is not None and method.ways.chooses, order.index(method)
