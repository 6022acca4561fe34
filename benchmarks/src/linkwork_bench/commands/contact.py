"""`linkwork bench contact`: steps with contacts and friction beside MuJoCo's."""

from __future__ import annotations

from linkwork_bench import contact as suite
from linkwork_bench.commands.options import Measuring, measuring
from linkwork_bench.commands.show import terminal


@measuring("peers", "threads", "compiling")
def contact(*, how: Measuring) -> None:
    """Steps per second of robots standing on the ground, against MuJoCo's mj_step (one thread)."""
    facts = how.begun()
    found = suite.measured(how.settings.rounds, how.settings.budget, how.conditions)
    suite.save(how.json, facts, found)
    terminal().print(suite.table(found))
