"""`linkwork bench` with and without the distribution linkwork-bench, which is imported only when it is called."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

import linkwork as lw
from linkwork.cli import bench
from linkwork.cli.main import app
from linkwork.errors import InputError, NotFound, UnsupportedError
from linkwork.robots.mechanisms import quadruped
from surroundings import Typed

LINK = (
    '<link name="{0}"><inertial><mass value="1"/><origin xyz="0.1 0 0.05"/>'
    '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="j{1}" type="continuous"><parent link="{0}"/><child link="{1}"/><origin xyz="0.3 0 0" rpy="0.5 0 1"/>'
    '<axis xyz="0 0 1"/></joint>'
)


@pytest.fixture
def arm(tmp_path: Path) -> str:
    names = ["a", "b", "c", "d", "e"]
    links, joints = (LINK.format(n) for n in names), (JOINT.format(*pair) for pair in pairwise(names))
    file = tmp_path / "arm.urdf"
    file.write_text(f'<robot name="arm">{"".join(links)}{"".join(joints)}</robot>')
    return str(file)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without linkwork-bench."""
    monkeypatch.setattr(bench, "entry_points", lambda **_: ())


@pytest.mark.usefixtures("alone")
def test_ones_own_robot_needs_no_other_distribution(arm: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    words = ["bench", "robot", arm, "--contact", "e:3d", "-m", "pv,prox_pv,pv_r", "--json", str(out)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "arm: forward dynamics, 4 degrees of freedom, 3 constraint rows" in done.output
    found = {(row["task"], row["method"]): row for row in json.loads(out.read_text())}
    assert set(found) == {
        ("forward_dynamics", "pv"),
        ("forward_dynamics", "prox_pv"),
        ("delassus", "pv"),
        ("delassus", "pv_r"),
    }
    for row in found.values():
        assert row["operations"] > 0
        assert row["batch"] > 0
        assert row["state"] > 0
        assert row["error"] < 1e-6


@pytest.mark.usefixtures("alone")
def test_other_benchmarks_name_what_to_install(type_command: Typed) -> None:
    code, told = type_command("linkwork", "bench", "kernels")
    assert code == 2
    assert "`linkwork bench kernels` needs the package 'linkwork-bench': pip install" in told
    assert "robot" in CliRunner().invoke(app, ["bench", "--help"]).output


def test_a_broken_distribution_is_one_sentence(arm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torn_bench.py").write_text("import a_package_that_nobody_has")
    monkeypatch.syspath_prepend(tmp_path)
    torn = EntryPoint("bench", "torn_bench:app", bench.GROUP)
    monkeypatch.setattr(bench, "entry_points", lambda **_: (torn,))
    for words in (["kernels"], ["robot", arm], ["--help"]):
        done = CliRunner().invoke(app, ["bench", *words])
        assert isinstance(done.exception, UnsupportedError)
        assert "a_package_that_nobody_has" in str(done.exception)
        assert "pip install linkwork-bench" in str(done.exception)
    assert CliRunner().invoke(app, ["info", arm]).exit_code == 0
    assert CliRunner().invoke(app, ["--help"]).exit_code == 0


def test_other_commands_do_not_import_the_benchmarks(arm: str) -> None:
    code = f"""
import sys
from linkwork.cli.main import app
for words in (["info", {arm!r}], ["--help"]):
    app(words, standalone_mode=False)
print([m for m in sys.modules if m.startswith(("linkwork_bench", "matplotlib", "pinocchio"))])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "[]"


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("words", "offered"), [(["--contact", "nobody:3d"], "e"), (["-m", "pvv"], "pv_early")])
def test_names_that_do_not_exist(arm: str, words: list[str], offered: str) -> None:
    done = CliRunner().invoke(app, ["bench", "robot", arm, *words])
    assert isinstance(done.exception, NotFound)
    assert offered in str(done.exception)


def test_tasks_are_those_that_the_model_has() -> None:
    model = quadruped()
    assert [task for task, _ in bench.tasks(model, [])] == ["forward_dynamics"]
    with pytest.raises(InputError, match="none of the methods"):
        bench.able("forward_dynamics", model.with_constraints(lw.point("front_left_foot")), ["aba"])
