"""`linkwork bench environments`: environments of Gymnasium beside MuJoCo's."""

from __future__ import annotations

from linkwork_bench.commands.options import Measuring, measuring
from linkwork_bench.commands.show import terminal


@measuring("peers", "threads", "compiling")
def environments(*, how: Measuring) -> None:
    """Steps of environments a second, observations and resets included, beside MuJoCo's (one thread)."""
    from linkwork_bench import environments as suite

    facts = how.begun()
    found = suite.measured(how.settings.rounds, how.settings.budget, how.conditions)
    suite.save(how.json, facts, found)
    terminal().print(suite.table(found))
