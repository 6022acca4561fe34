"""The choice of a method: candidates are traced, their times predicted, and the fastest is taken.

A trace is exact and takes milliseconds, so the choice needs no rules about mechanisms. A trace that has outgrown
the fastest so far is stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from linkwork.algorithms.registry import Method
from linkwork.errors import ModelError
from linkwork.kernels.programs.value_numbering import Outgrown
from linkwork.planner.cost import Machine, in_all, machine, parts_of
from linkwork.planner.iterations import count, samples
from linkwork.planner.plan import USES, Candidate, Decisions, Plan
from linkwork.planner.rules import Asked, reasons
from linkwork.structure.work import ITERATIONS

if TYPE_CHECKING:
    import numpy as np

    from linkwork.kernels.programs.iterate import IterativeProgram
    from linkwork.kernels.programs.program import Program

Trace = Callable[[str, int | None], "Program | IterativeProgram"]
"""`trace(method, limit)`: its program; stopped with `Outgrown` beyond so many operations."""

OUTGROWN, ROOM = 1.3, 2000
"""Tracing stops at so many times the operations of the fastest so far, and some more: predicted us per operation differ
by about 15 % between methods, and a trace counts operations before the needless ones are removed (5 to 14 % of the
largest programs, 500 to 3000 operations of small ones)."""


def choose(task: str, use: str, asked: Asked, trace: Trace) -> Plan:
    """The plan for one task and use."""
    costs, made, given = machine(), list[Candidate](), cache(partial(samples, asked.model))
    limit: int | None = None
    for method, reason in sorted(reasons(task, asked), key=lambda found: _promise(found[0], found[1], asked)):
        if reason:
            made.append(Candidate(method.name, reason=reason))
            continue
        try:
            program = trace(method.name, limit)
        except Outgrown:
            made.append(Candidate(method.name, reason=f"more than {limit} operations, too many to be the fastest"))
            continue
        except ModelError as no_clusters:
            made.append(Candidate(method.name, reason=str(no_clusters)))
            continue
        best = min((c.predicted[use] for c in made if c.possible and not c.unconverged), default=float("inf"))
        made.append(_candidate(method, program, use, asked, costs, best, given))
        limit = min(limit or _limit(made[-1]), _limit(made[-1]))
    return Plan.ordered(asked.model.name, task, use, made)


def _promise(method: Method, reason: str, asked: Asked) -> tuple[bool, bool, float]:
    """A key by which methods that are likely to be small come first, to stop larger ones early.

    Methods with clusters come first, then direct methods, then those of least estimated work.
    """
    mix = None if reason else asked.treatment(method)
    return not method.local, method.prox is not None, float("inf") if mix is None or mix.work is None else mix.work


def _limit(candidate: Candidate) -> int:
    repeated = min(candidate.iterations, ITERATIONS) - 1
    return int(OUTGROWN * (candidate.operations + repeated * candidate.operations_per_iteration)) + ROOM


def _candidate(
    method: Method,
    program: Program | IterativeProgram,
    use: str,
    asked: Asked,
    costs: Machine,
    best: float,
    given: Callable[[], dict[str, np.ndarray]],
) -> Candidate:
    """A method with its predicted times; solver iterations are counted unless one alone is too slow."""
    parts, expected, again, unconverged = parts_of(program), dict.fromkeys(USES, method.iterations), 0, 0.0
    if method.prox is not None:
        again = program.iterate.operations  # type: ignore[union-attr]
        if costs.us(in_all(parts), use) < best:
            counted, unconverged = count(program, method.prox, given())  # type: ignore[arg-type]
            expected = counted or expected
    predicted = {u: costs.us(in_all(parts, expected[u]), u) for u in USES}
    mix = asked.treatment(method)
    decisions = None if mix is None else Decisions.of(asked.model, mix)
    return Candidate(method.name, program.operations, again, expected[use], unconverged, predicted, decisions=decisions)
