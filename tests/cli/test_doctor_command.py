"""`linkwork doctor`: what is installed, and whether kernels compile here."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from linkwork.cli import doctor
from linkwork.cli.main import app

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
NO_USERS = {"test", "dev", "docs"}


def package(requirement: str) -> str:
    return requirement.partition(">")[0].partition("=")[0]


def test_it_knows_every_extra_and_every_package():
    extras = {e: package(r[0]) for e, r in PROJECT["optional-dependencies"].items() if e not in NO_USERS}
    assert {e: found[0] for e, found in doctor.EXTRAS.items()} == extras
    assert [package(r) for r in PROJECT["dependencies"]] == list(doctor.REQUIRED)


def test_what_it_says():
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["compile test"]["problem"] is None
    assert told["compile test"]["error"] < 1e-12
    assert told["machine"]["lanes"]["float32"] == 2 * told["machine"]["lanes"]["float64"]
    assert told["machine"]["threads"] >= 1
    assert set(told["extras"]) == set(doctor.EXTRAS)


def test_what_is_missing_is_named_with_its_extra(missing):
    missing("matplotlib")
    assert "pip install 'linkwork[plot]'" in CliRunner().invoke(app, ["doctor"]).stdout


def test_a_machine_that_cannot_compile(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(doctor.lw, "forward_dynamics", broken)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 1
    assert "FAILED: RuntimeError: no such instruction" in done.stdout


@pytest.mark.parametrize("setting", [None, "off"])
def test_the_cache_is_used_again_afterwards(environment, setting):
    environment.pop("LINKWORK_CACHE")
    environment.update({} if setting is None else {"LINKWORK_CACHE": setting})
    with doctor._uncached():
        assert doctor.os.environ["LINKWORK_CACHE"] == "off"
    assert doctor.os.environ.get("LINKWORK_CACHE") == setting
