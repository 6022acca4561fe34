"""`linkwork bench rollout`: simulated steps beside MuJoCo's."""

from __future__ import annotations

from linkwork.cli.bench import words
from linkwork.errors import not_found
from linkwork_bench import rollouts
from linkwork_bench.commands.options import Measuring, MethodsOption, RobotsOption, measuring
from linkwork_bench.commands.show import terminal


@measuring("peers", "threads", "compiling")
def rollout(robots: RobotsOption = None, methods: MethodsOption = None, *, how: Measuring) -> None:
    """Steps per second of rollouts: over their bare dynamics, and against MuJoCo's mj_step (one thread)."""
    facts, found = how.begun(), []
    for name in (wanted := words(robots) or rollouts.ROBOTS):
        if name not in rollouts.METHODS:
            raise not_found("robot for rollouts", name, rollouts.ROBOTS)
    for name in wanted:
        for method in words(methods) or rollouts.METHODS[name]:
            found.append(rollouts.measured(name, method, how.settings.rounds, how.settings.budget, how.conditions))
            rollouts.save(how.json, facts, found)
    terminal().print(rollouts.table(found))
    terminal().print(rollouts.MORE, highlight=False)
