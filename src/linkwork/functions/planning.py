"""Which method for this model: the planner's choice, and what it is based on."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from linkwork.algorithms import registry
from linkwork.checks import FLAG, checked, choice, either
from linkwork.io.load import SOURCE, load
from linkwork.model import Model
from linkwork.model.digest import digest
from linkwork.model.model import MODEL
from linkwork.planner.cost import machine
from linkwork.planner.plan import USES, Plan, choose, kept, restored, timed, unsuitable
from linkwork.planner.trees import Cuts, search

TASKS, USE = ("forward_dynamics", "delassus"), choice("use", USES)


@checked(
    model=MODEL,
    task=choice("task to plan", TASKS),
    use=USE,
    independent=FLAG,
    soft=FLAG,
    modes=FLAG,
    measure=either(FLAG, choice("measure", ("ties",))),
)
def plan(
    model: Model,
    task: str = "forward_dynamics",
    *,
    use: str = "state",
    independent: bool = False,
    soft: bool = False,
    modes: bool = False,
    measure: bool | str = False,
) -> Plan:
    """The methods for a task ("forward_dynamics", "delassus") by predicted time: `print(plan(model).explain())`.

    `use` is "state" (one at a time) or "batch". `independent=True` promises constraint rows that are never redundant
    and postures that are never singular, so that methods without a proximal term count too. `soft` and `modes` are
    for functions with softness `R` and with the input `active`.

    `measure=True` compiles the methods that are predicted to come near the best, times them on random states, and takes
    the quickest; that is remembered in the cache, for this plan and for all functions made without `method=`. These
    measure "ties" themselves: only what predictions cannot tell apart, and only once.
    """
    from linkwork.kernels import recall

    able = registry.able(task, model, soft=soft, modes=modes)

    def reason(m: registry.Method) -> str:
        refusal = m.refusal(model, soft, modes)
        return unsuitable(m, model, independent, modes) if refusal is None else refusal

    def program(name: str, limit: int | None) -> Any:
        from linkwork.functions.dynamics import forward_dynamics
        from linkwork.functions.operational_space import delassus

        if task == "delassus":
            return delassus(model, method=name).traced(limit)
        return forward_dynamics(model, method=name, R=1.0 if soft else None, modes=modes).traced(limit)

    content = digest("plan", model, task, use, independent, soft, modes, asdict(machine()))
    methods = [(m, reason(m)) for m in registry.methods(task).values()]
    if all(why for _, why in methods):
        methods = [(m, "" if m is able[0] else why) for m, why in methods]
    made = restored(recall.noted(content, lambda: kept(choose(model, task, use, methods, program))), task, use)
    on_clock = None if content is None else f"{content} measured"
    found = None if measure is True else recall.known(on_clock)
    contest = made.near if measure is True else made.tied if measure and found is None else []
    if contest:
        from linkwork.planner.iterations import samples
        from linkwork.planner.stopwatch import timings

        given, known = samples(model), registry.methods(task)
        if given or measure is True:
            programs = [(known[c.method], program(c.method, None)) for c in contest]
            recall.keep(on_clock, found := timings(programs, given, USES if measure is True else (use,)))
    return made if found is None else timed(made, found)


@checked(source=SOURCE, use=USE, independent=FLAG)
def best_cuts(source: str | os.PathLike[str], *, use: str = "state", independent: bool = False, **options: Any) -> Cuts:
    """Where to cut the loops of a file's joint graph (SDF): ``lw.load(file, cut=lw.best_cuts(file).joints)``.

    The spanning tree is searched for by exchanging cut joints, with forward dynamics planned for each (a second or two
    for each tree). `use` and `independent` are those of :func:`plan`, `options` those of :func:`load`, without `cut`.
    """

    def predict(model: Model) -> float:
        return float(getattr(plan(model, use=use, independent=independent).best, use))

    return search(lambda cut: load(source, cut=cut, **options), predict)
