"""`linkwork bench rollout`: simulated steps beside MuJoCo's."""

from __future__ import annotations

from linkwork.cli.bench import words
from linkwork.errors import not_found
from linkwork_bench import rollouts
from linkwork_bench.commands.options import (
    CpuOption,
    JsonOption,
    MethodsOption,
    ProcessorOption,
    QuickOption,
    RobotsOption,
    RoundsOption,
    clock,
    settings_of,
)
from linkwork_bench.commands.show import print_circumstances, terminal
from linkwork_bench.measure import Conditions, circumstances


def rollout(
    robots: RobotsOption = None,
    methods: MethodsOption = None,
    json: JsonOption = None,
    quick: QuickOption = False,
    rounds: RoundsOption = None,
    cpu: CpuOption = None,
    processor_time: ProcessorOption = False,
) -> None:
    """Steps per second of rollouts: over their bare dynamics, and against MuJoCo's mj_step (one thread)."""
    settings = settings_of(quick, rounds, cpu, 1)
    conditions = Conditions(settings.cpu, 0.0, processor_time)
    facts = {**circumstances(), "clock": clock(processor_time)}
    print_circumstances(facts)
    found = []
    for name in (wanted := words(robots) or rollouts.ROBOTS):
        if name not in rollouts.METHODS:
            raise not_found("robot for rollouts", name, rollouts.ROBOTS)
    for name in wanted:
        for method in words(methods) or rollouts.METHODS[name]:
            found.append(rollouts.measured(name, method, settings.rounds, settings.budget, conditions))
            rollouts.save(json, facts, found)
    terminal().print(rollouts.table(found))
    terminal().print(rollouts.MORE, highlight=False)
