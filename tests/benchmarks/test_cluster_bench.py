"""What `linkwork bench clusters` measures is right before it is timed, and its tables say what was measured."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from linkwork.cli.main import app
from linkwork.errors import LinkworkError
from linkwork.robots import mechanisms as mech
from linkwork_bench import clusters as suite
from linkwork_bench.peers import Peers
from linkwork_bench.records import Record, Results
from linkwork_bench.suites import Settings, run
from surroundings import Environment

NOBODY = Peers([], None)


def shown(records: list[Record]) -> str:
    page = StringIO()
    Console(file=page, width=200).print(suite.table(records))
    return page.getvalue()


def test_all_methods_agree_and_are_counted() -> None:
    """Inverse, forward, Delassus matrix and contacts of a short geared chain: nobody is refused."""
    robot = suite.geared("gears12", mech.geared_chain(3))
    jobs = [
        suite.inverse_job(robot),
        suite.delassus_job(robot, ("tip",)),
        suite.forward_job(robot, "forward", (), ("c_aba", "projection", "lagrange")),
    ]
    records = [r for job in jobs for r in run(job, NOBODY, Settings(rounds=1, budget=1e-4, threads=1))]
    assert all(r.samples and r.operations and r.error is not None and r.error < 1e-8 for r in records), records
    assert {r.method for r in records} == {
        "c_rnea",
        "projected_rnea",
        "c_efpa",
        "c_pv",
        "projected_efpa",
        "projection",
        "c_aba",
        "lagrange",
    }
    text = shown(records)
    over = round(
        100
        * (
            next(r.operations for r in records if r.method == "projected_rnea" and r.operations)
            / next(r.operations for r in records if r.method == "c_rnea" and r.operations)
            - 1
        )
    )
    (line,) = (x for x in text.splitlines() if "projected_rnea" in x)
    assert f" {over} " in line
    assert "38" in line.split("│")[-2]


def test_wrong_results_are_not_timed() -> None:
    robot = suite.geared("gears12", mech.geared_chain(2))
    job = suite.forward_job(robot, "forward", (), ("c_aba",))
    job.robot.tau[:] += 1.0  # the reference is made of these, but only when it is asked for
    assert all(r.samples for r in run(job, NOBODY, Settings(rounds=1, budget=1e-4, threads=1)))
    job.robot.tau[:] -= 1.0
    assert not any(r.samples for r in run(job, NOBODY, Settings(rounds=1, budget=1e-4, threads=1)))


def test_growth_is_a_degree_where_counts_are_polynomials() -> None:
    sizes = (2, 4, 8, 12, 16, 20, 24)
    assert suite.degree({n: 7.0 * n - 5 for n in sizes}) == "1"
    assert suite.degree({n: n**3 - 2.0 * n for n in sizes}) == "3"
    assert suite.degree({n: 2.0**n for n in sizes}) == "?"


def test_growth_is_an_exponent(tmp_path: Path) -> None:
    assert abs(suite.exponent({n: 3.0 * n**2 for n in (2, 8, 12, 24)}) - 2) < 1e-9
    assert np.isnan(suite.exponent({2: 1.0, 4: 2.0}))
    record = {
        "suite": suite.GROWTH,
        "function": "gears forward",
        "robot": "x",
        "nv": 1,
        "rows": 0,
        "role": "ours",
        "library": "",
        "method": "c_aba",
    }
    records = [
        Record(**record, case=str(n), measure=m, samples=[0.1 * n], operations=100 * n)
        for n in (6, 12, 24)
        for m in ("latency", "batch")
    ]
    assert shown(records).count("1.00") == 3
    Results({}, file=tmp_path / "run.jsonl").add(records)
    again = CliRunner().invoke(app, ["bench", "show", str(tmp_path / "run.jsonl")])
    assert again.output.count("1.00") == 3, again.exception


def test_the_command(tmp_path: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    environment.pop("LINKWORK_PEERS", None)
    monkeypatch.setitem(suite.ROBOTS, "gears12", (lambda: mech.geared_chain(2), ("tip",)))
    file = tmp_path / "figures.json"
    options = ["--quick", "--rounds", "1", "--json", str(file)]
    done = CliRunner().invoke(app, ["bench", "clusters", "-r", "gears12", *options])
    assert done.exit_code == 0, done.output
    assert "projected_efpa" in done.output
    assert {json.loads(line)["suite"] for line in file.read_text().splitlines()[1:]} == {suite.SUITE}
    again = CliRunner().invoke(app, ["bench", "show", str(file)])
    assert "projected_efpa" in again.output
    with pytest.raises(LinkworkError, match="gears12"):
        suite.jobs(["unicorn"], NOBODY, tmp_path, True)
