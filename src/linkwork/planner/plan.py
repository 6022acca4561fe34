"""Which method for this mechanism: all that can are traced, their time is predicted, the quickest is taken.

A trace is exact and takes milliseconds, so the choice needs no rules about mechanisms: it counts. A trace that has
outgrown the best one so far is given up. Where predictions come too close to tell, the clock decides (stopwatch.py).
What was decided is kept in the cache, under the content of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from linkwork.algorithms.registry import FD, Method, methods
from linkwork.model import Model
from linkwork.planner.cost import in_all, machine, parts_of

if TYPE_CHECKING:
    from linkwork.kernels.iterate import IterativeProgram
    from linkwork.kernels.program import Program

USES = ("state", "batch")
NEAR = 1.6
"""Methods that are predicted to take so many times as long as the best are not worth compiling."""

TIED, TIMED = 1.15, {"state": 40_000, "batch": 80_000}
"""Methods that are predicted to be closer than that to the best are compiled and timed when a function is made, if they
have no more operations than this together: some seconds at most, once. (Of 88 mechanisms, that picks within 5 % of the
best in 99 to 100 % of cases.)"""

CLEAR = 1.1
"""More work in blocks and rows (pivots.py) by this much is not traced."""

OUTGROWN = 1.7
"""Tracing stops at this many times the operations of the best so far with two solves: it counts before dead code goes.
"""


@dataclass(frozen=True)
class Candidate:
    """A method with its operations, those of one more iteration (`again`), and the predicted us per state.

    `missed` is the share of states, of those that solves were counted on, in which it did not converge. `why_not` says
    why it is out of the question; `measured` has us per state by use, once they were measured.
    """

    method: str
    operations: int = 0
    again: int = 0
    solves: float = 1.0
    state: float = float("inf")
    batch: float = float("inf")
    missed: float = 0.0
    why_not: str = ""
    measured: dict[str, float] = field(default_factory=dict)

    @property
    def possible(self) -> bool:
        return not self.why_not


@dataclass(frozen=True)
class Plan:
    """The methods for one task and use, the best first, and those that are out of the question last."""

    model: str
    task: str
    use: str
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        return self.candidates[0]

    @property
    def method(self) -> str:
        return self.best.method

    @property
    def near(self) -> list[Candidate]:
        """Those that are predicted to come near the best."""
        return self._within(NEAR)

    @property
    def tied(self) -> list[Candidate]:
        """Those of which a prediction cannot tell which is the best, if there are several and they compile quickly."""
        found = self._within(TIED)
        return found if len(found) > 1 and sum(c.operations for c in found) <= TIMED[self.use] else []

    def _within(self, times: float) -> list[Candidate]:
        able = [c for c in self.candidates if c.possible and c.missed <= self.best.missed]
        least = min((getattr(c, self.use) for c in able), default=0.0)
        return [c for c in able if getattr(c, self.use) <= times * least]

    @property
    def measured(self) -> bool:
        """Whether the order is one of measured times."""
        return self.use in self.best.measured

    def explain(self) -> str:
        """A table: methods, operations, predicted times; and why the others were left out."""
        how = "one state at a time" if self.use == "state" else "batches"
        lines = [
            f"{self.task.replace('_', ' ')} of '{self.model}' for {how}: {self.method}",
            "",
            f"{'method':16s} {'operations':>10s} {'per iteration':>13s} {'solves':>6s} {'state us':>9s} "
            f"{'batch us':>9s}" + (f" {'measured':>9s}" if self.measured else ""),
        ]
        for c in self.candidates:
            if c.why_not:
                lines.append(f"{c.method:16s} {c.why_not}")
                continue
            repeated = f"{c.again:13d} {c.solves:6.1f}" if c.again else f"{'':13s} {'':6s}"
            seen = f" {c.measured[self.use]:9.4f}" if self.use in c.measured else ""
            lines.append(f"{c.method:16s} {c.operations:10d} {repeated} {c.state:9.3f} {c.batch:9.4f}{seen}")
        return "\n".join(lines)


def unsuitable(method: Method, model: Model, independent: bool, modes: bool) -> str:
    """Why a method that could handle the model is not one to choose; "" if it is."""
    if method.reference:
        return "it is there to check others"
    if not model.constraints and method.rows != "none" and method.task == "forward_dynamics":
        return "without constraints it is aba"
    if method.task == "forward_dynamics" and model.constraints and not method.redundant and not independent:
        return "it needs independent rows: promise them with independent=True"
    if method.local:
        from linkwork.structure.local_loops import local_loops, never_singular

        inside = [n for _, constraints in local_loops(model) for n in constraints]
        if not inside:
            return "there are no local loops to resolve in clusters"
        if modes:
            return "what is resolved in a cluster cannot be switched off"
        if not all(never_singular(model.constraints[n]) for n in inside):
            if not independent:
                return "a linkage or cam in a cluster must not become singular: promise that with independent=True"
            if method.name == "c_lcaba" or (method.name == "c_mixed" and _strained(model)):
                return "through linkages in clusters its penalties need more digits than there are (3e-3 off on Digit)"
    if method.embeds or method.operator:
        return "its result is another one"
    return _less_work(method.name, model, modes)


def _less_work(name: str, model: Model, modes: bool) -> str:
    """Which other treatment of loops is the same or less work, as far as blocks and rows tell (pivots.py)."""
    if name not in ("lcaba", "prox_bbo", "mixed", "c_lcaba", "c_prox_bbo", "c_mixed") or not model.constraints:
        return ""
    if methods(FD)["constrained_aba"].refusal(model, False, modes) is None:
        return "without loops it is constrained_aba" if name in ("lcaba", "mixed") else ""
    from linkwork.structure.local_loops import local_loops
    from linkwork.structure.pivots import chosen

    mix = chosen(model, "nothing" if modes else "couplings")
    outer = frozenset(range(len(model.constraints))).difference(*(group for _, group in local_loops(model)))
    if mix.embedded and not mix.ends and mix.penalised == outer:  # all local loops are couplings, and embedded
        firmer = bool(outer) and not mix.couples
        if name == ("c_lcaba" if firmer else "mixed"):
            return "here it is mixed with softer penalties" if firmer else "here it is c_lcaba"
    elif name == "mixed" and not mix.mixes:
        return f"here it is {'prox_bbo' if mix.ends else 'lcaba'}: that is less work for all constraints"
    if name == "lcaba" and mix.without > CLEAR * mix.work:
        instead = "embedding couplings" if mix.embedded else "carrying loops"
        return f"{instead} is less work than penalties that couple links"
    if name == "prox_bbo" and (mix.mixes or mix.embedded):
        return "mixed is less work: it does not carry all constraints"
    if name in ("c_mixed", "c_prox_bbo"):
        local = chosen(model, "loops")
        same = "mixed" if local.embedded == mix.embedded else "c_prox_bbo" if frozenset(local.ends) == outer else ""
        if name == "c_mixed" and same:
            return f"here it is {same}: that is less work for all constraints"
        if name == "c_prox_bbo" and not same and not _strained(model):
            return "c_mixed is less work: it does not carry all constraints, or leaves loops outside of clusters"
    return ""


def _strained(model: Model) -> bool:
    """Whether `c_mixed` penalises links in or behind linkages that it embeds.

    Their inertias then pass through inverses of the linkages' rows, which are large near singular postures: on Digit
    7e-2 off in the worst of the benchmark's states, where `c_aba` and `c_prox_bbo` are right.
    """
    from linkwork.structure.local_loops import never_singular
    from linkwork.structure.pivots import chosen

    mix, parent = chosen(model, "loops"), model.topology.parent
    linkages = {
        i
        for node, _ in mix.order
        if not all(never_singular(model.constraints[n]) for n in node.constraints)
        for i in node.bodies
    }
    held = {i for n in mix.penalised for i in model.constraints[n].touches(model) if i > 0}
    while held and not held & linkages:
        held = {parent[i] for i in held} - {0}
    return bool(held)


def choose(
    model: Model,
    task: str,
    use: str,
    able: Iterable[tuple[Method, str]],
    program: Callable[[str, int | None], Program | IterativeProgram],
) -> Plan:
    """The plan, from methods with the reasons against them, and from `program(method, limit)`, which traces one.

    How many solves an iterative method needs is counted if it could come near the best: if it did with a single one.
    """
    from linkwork.kernels.values import Outgrown
    from linkwork.planner.iterations import samples, solves

    costs, made, least, given = machine(), list[Candidate](), 0, cache(partial(samples, model))
    large = set[str]()
    # clusters first, because they are small if they can; direct methods before their proximal forms, which are larger
    for method, why_not in sorted(able, key=lambda x: (not x[0].local, x[0].prox is not None)):
        if why_not:
            made.append(Candidate(method.name, why_not=why_not))
            continue
        try:
            if method.name.removeprefix("prox_") in large:
                raise Outgrown
            traced = program(method.name, int(OUTGROWN * least) + 2000 if least else None)
        except Outgrown:
            made.append(Candidate(method.name, why_not=f"it has outgrown {OUTGROWN:g} times the best operations"))
            large.add(method.name)
            continue
        best = min((getattr(c, use) for c in made if not c.missed), default=float("inf"))
        parts, expected, again, missed = parts_of(traced), dict.fromkeys(USES, method.solves), 0, 0.0
        if method.prox is not None:
            again = traced.iterate.operations  # type: ignore[union-attr]
            if costs.us(in_all(parts), use) < NEAR * best:
                counted, missed = solves(traced, method.prox, given())  # type: ignore[arg-type]
                expected = counted or expected
        state, batch = (costs.us(in_all(parts, expected[u]), u) for u in USES)
        made.append(Candidate(method.name, traced.operations, again, expected[use], state, batch, missed))
        least = min(least or traced.operations + again, traced.operations + again)
    made.sort(key=lambda c: (bool(c.why_not), c.missed, getattr(c, use)))
    return Plan(model.name, task, use, tuple(made))


def timed(plan: Plan, took: Mapping[str, Mapping[str, float]]) -> Plan:
    """The plan in the order of times that were measured, by use and method; the rest comes after them as it was."""
    found = [
        replace(c, measured={use: of[c.method] for use, of in took.items() if c.method in of}) for c in plan.candidates
    ]
    found.sort(key=lambda c: (bool(c.why_not), c.missed, c.measured.get(plan.use, float("inf")), getattr(c, plan.use)))
    return replace(plan, candidates=tuple(found))


def kept(plan: Plan) -> dict[str, Any]:
    """A plan as plain data."""
    return {"model": plan.model, "candidates": [_finite(asdict(c)) for c in plan.candidates]}


def restored(note: dict[str, Any], task: str, use: str) -> Plan:
    """The plan of plain data."""
    return Plan(note["model"], task, use, tuple(Candidate(**c) for c in note["candidates"]))


def _finite(entry: dict[str, Any]) -> dict[str, Any]:
    return {k: x for k, x in entry.items() if x != float("inf")}
