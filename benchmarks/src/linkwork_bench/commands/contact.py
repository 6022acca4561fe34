"""`linkwork bench contact`: steps with contacts and friction beside MuJoCo's."""

from __future__ import annotations

from linkwork_bench import contact as suite
from linkwork_bench.commands.options import (
    CpuOption,
    JsonOption,
    ProcessorOption,
    QuickOption,
    RoundsOption,
    clock,
    settings_of,
)
from linkwork_bench.commands.show import print_circumstances, terminal
from linkwork_bench.measure import Conditions, circumstances


def contact(
    json: JsonOption = None,
    quick: QuickOption = False,
    rounds: RoundsOption = None,
    cpu: CpuOption = None,
    processor_time: ProcessorOption = False,
) -> None:
    """Steps per second of a quadruped standing on the ground, against MuJoCo's mj_step (one thread)."""
    settings = settings_of(quick, rounds, cpu, 1)
    facts = {**circumstances(), "clock": clock(processor_time)}
    print_circumstances(facts)
    found = suite.measured(settings.rounds, settings.budget, Conditions(settings.cpu, 0.0, processor_time))
    suite.save(json, facts, found)
    terminal().print(suite.table(found))
