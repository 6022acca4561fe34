"""The planner's choice of a method for a model, and its reasons."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from linkwork.algorithms import registry
from linkwork.checks import FLAG, checked, choice
from linkwork.errors import InputError
from linkwork.io.load import SOURCE, load
from linkwork.model import Model
from linkwork.model.digest import digest
from linkwork.model.model import MODEL
from linkwork.planner.cost import machine
from linkwork.planner.plan import USES, Plan
from linkwork.planner.rules import Asked
from linkwork.planner.trees import Cuts, search

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
    """
    from linkwork.kernels import notes
    from linkwork.planner.choice import choose

    def trace(name: str, limit: int | None) -> Any:
        from linkwork.functions.dynamics import forward_dynamics
        from linkwork.functions.operational_space import delassus

        if task == "delassus":
            return delassus(model, method=name).traced(limit)
        return forward_dynamics(model, method=name, R=1.0 if soft else None, modes=modes).traced(limit)

    asked, known = Asked(model, independent, soft, modes), registry.methods(task)
    content = digest("plan", model, task, use, independent, soft, modes, asdict(machine()), *known.values())
    made = Plan.from_data(notes.get_or_put(content, lambda: choose(task, use, asked, trace).to_data()))
    on_clock = None if content is None else f"{content} measured"
    found = None if measure else notes.get(on_clock)
    if measure:
        from linkwork.planner.iterations import samples, settings
        from linkwork.planner.stopwatch import timings

        if not (given := samples(model)):
            raise InputError(
                "its loops do not close from the neutral position, so there are no states to measure on: "
                "choose by prediction, or name a method"
            )
        traced = {c.method: trace(c.method, None) for c in made.near}
        found = timings({n: (p, {**given, **settings(known[n].prox)}) for n, p in traced.items()})
        notes.put(on_clock, found)
    return made if found is None else made.timed(found)


@checked(source=SOURCE, use=USE, independent=FLAG)
def best_cuts(source: str | os.PathLike[str], *, use: str = "state", independent: bool = False, **options: Any) -> Cuts:
    """Where to cut the loops of a file (SDF, USD, URDF+, MJCF).

    For ``lw.load(file, cut=lw.best_cuts(file).joints)``. The spanning tree is searched for by exchanging cut joints,
    with forward dynamics planned for each (a second or two for each tree). Driven joints, those with limits, and those
    with armature, springs, damping or friction (see `load(passive=False)`) stay in the tree. `use` and `independent`
    are those of `plan`, `options` those of `load`, without `cut`.
    """

    def predict(model: Model) -> float:
        return plan(model, use=use, independent=independent).best.predicted[use]

    return search(lambda cut: load(source, cut=cut, **options), predict)
