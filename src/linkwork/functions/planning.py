"""The planner's choice of a method for a model, and its reasons."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from linkwork.algorithms import registry
from linkwork.checks import FLAG, checked, choice
from linkwork.errors import InputError
from linkwork.model import Model
from linkwork.model.digest import digest
from linkwork.model.model import MODEL
from linkwork.planner.cost import machine
from linkwork.planner.plan import USES, Plan
from linkwork.planner.rules import Asked

TASKS, USE = ("forward_dynamics", "delassus"), choice("use", USES)


@checked(
    model=MODEL,
    task=choice("task to plan", TASKS),
    use=USE,
    independent=FLAG,
    soft=FLAG,
    modes=FLAG,
    measure=FLAG,
)
def plan(
    model: Model,
    task: str = "forward_dynamics",
    *,
    use: str = "state",
    independent: bool = False,
    soft: bool = False,
    modes: bool = False,
    measure: bool = False,
) -> Plan:
    """The methods for a task by predicted time: `print(plan(model).explain())`.

    `task` is "forward_dynamics" or "delassus", `use` is "state" (one at a time) or "batch". `independent=True` promises
    constraint rows that are never redundant and postures that are never singular, so that methods without a proximal
    term count too. `soft` and `modes` are for functions with softness `R` and with the input `active`.

    The plan also says which constraints the chosen method embeds, penalises and propagates, and in which order links
    are eliminated (`plan.decisions`). Predictions alone decide, so that it is the same on every machine of a kind.
    `measure=True` compiles the methods that are predicted to take at most 1.6 times as long as the fastest, times them
    on random states, and takes the fastest; the cache stores that for this plan and for all functions made
    without `method=`.

    Examples:
        >>> plan = lw.plan(four_bar())
        >>> isinstance(plan.method, str)
        True
    """
    asked, known = Asked(model, independent, soft, modes), registry.methods(task)
    content = _content(task, use, asked)
    if not measure and (found := _cached_plan(content)) is not None:
        return found
    from linkwork.kernels.cache import result_cache as notes
    from linkwork.planner.choice import choose

    def trace(name: str, limit: int | None) -> Any:
        from linkwork.functions.dynamics import forward_dynamics
        from linkwork.functions.operational_space import delassus

        if task == "delassus":
            return delassus(model, method=name).traced(limit)
        return forward_dynamics(model, method=name, R=1.0 if soft else None, modes=modes).traced(limit)

    made = Plan.from_data(notes.get_or_put(content, lambda: choose(task, use, asked, trace).to_data()))
    if not measure:
        return made
    from linkwork.planner.iterations import samples, settings
    from linkwork.planner.stopwatch import timings

    if not (given := samples(model)):
        raise InputError(
            "its loops do not close from the neutral position, so there are no states to measure on: "
            "choose by prediction, or name a method"
        )
    traced = {c.method: trace(c.method, None) for c in made.near}
    took = timings({n: (p, {**given, **settings(known[n].prox)}) for n, p in traced.items()})
    notes.put(_measured(content), took)
    return made.timed(took)


def cached_plan(task: str, use: str, asked: Asked) -> Plan | None:
    """The plan that the cache has, with times if it was measured; None if this was never planned."""
    return _cached_plan(_content(task, use, asked))


def _cached_plan(content: str | None) -> Plan | None:
    from linkwork.kernels.cache import result_cache as notes

    data = notes.get(content)
    if data is None:
        return None
    took = notes.get(_measured(content))
    return Plan.from_data(data) if took is None else Plan.from_data(data).timed(took)


def _content(task: str, use: str, asked: Asked) -> str | None:
    """A digest of all that a plan depends on."""
    of = (asked.model, task, use, asked.independent, asked.soft, asked.modes)
    return digest("plan", *of, asdict(machine()), *registry.methods(task).values())


def _measured(content: str | None) -> str | None:
    """The content of the note with the times of a plan on this target."""
    from linkwork.kernels.codegen.target import Target

    return None if content is None else f"{content} measured {Target.host()}"
