"""A slice of the fuzz campaign, and every failure that it ever found and that is kept: `make fuzz` runs more."""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from types import SimpleNamespace

import campaign
import pytest

FAILURES = sorted((Path(__file__).parent / "failures").glob("*.json"))

OPEN: dict[str, str] = {
    "forward_dynamics-c_lcaba-330037817": "forces 2.0e-6 off: penalties through an embedded linkage (docs/promises.md)",
}
"""What is known and not repaired yet, by the name of its file: docs/fuzzing.md says so too. To stay empty."""


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_no_disagreement(first: int, tmp_path: Path) -> None:
    """Twenty mechanisms, every method on NumPy; a few are planned and compiled."""
    tally = campaign.Tally(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 20):
            tally.add(campaign.attempt(seed, sample=50))
    new = {f"{what.replace(':', '-')}-{seed}" for (what, _, _), seeds in tally.kinds.items() for seed in seeds}
    assert not new - set(OPEN), tally.report()


@pytest.mark.parametrize("path", FAILURES, ids=lambda p: p.stem)
def test_what_failed_once_does_not_fail_again(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = campaign.replay(path)
    if outcome.failed and path.stem in OPEN:
        pytest.xfail(OPEN[path.stem])
    assert not outcome.failed, f"{outcome}; it was {json.loads(path.read_text())['said']}"


def test_a_failure_is_saved_and_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a broken method: it is found, counted, written to a file, and the file fails again."""
    from linkwork.algorithms.constrained import kkt as page

    def broken(motion, tau, fext=None):
        a, lam = true(motion, tau, fext)
        return 1.01 * a, lam

    true = page.kkt
    tally = campaign.Tally(tmp_path)
    monkeypatch.setattr(page, "kkt", broken)
    tally.add(campaign.attempt(1, sample=0, only="forward_dynamics:kkt"))
    (saved,) = tmp_path.glob("*.json")
    assert tally.failures == 1
    assert campaign.replay(saved).verdict == "wrong"
    monkeypatch.setattr(page, "kkt", true)
    assert campaign.replay(saved).verdict == "right"


def test_a_run_ends_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not look at the clock once for every seed that is left, which took minutes."""
    clock = iter(range(100))
    monkeypatch.setattr(campaign, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(campaign, "_work", lambda job: {"seed": job[0]})
    options = argparse.Namespace(minutes=0.05, count=10**9, jobs=1, sample=0, only="")
    assert [done["seed"] for done in campaign._results(7, options)] == [7, 8]
    assert next(clock) < 10
