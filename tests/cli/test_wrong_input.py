"""Wrong input gets one sentence: files that are missing or foreign, names that nobody knows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import linkwork as lw
from linkwork.cli.arguments import constrained
from linkwork.cli.main import app
from linkwork.errors import InputError, LinkworkError
from linkwork.io.xml import LoadWarning
from linkwork.robots.mechanisms import arm


def test_a_trajectory_that_is_not_there(tmp_path) -> None:
    with pytest.raises(InputError, match="no trajectory at"):
        lw.Trajectory.read(tmp_path / "none.npz")


def test_an_archive_that_is_no_trajectory(tmp_path) -> None:
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(InputError, match="not a trajectory"):
        lw.Trajectory.read(tmp_path / "other.npz")


@pytest.mark.parametrize(
    "words",
    [
        ["bench", "rollout", "--robots", "nobody"],
        ["plan", "nobody"],
        ["plan"],
        ["bench", "papers", "--paper", "nobody"],
    ],
)
def test_commands_say_what_is_wrong(words) -> None:
    told = CliRunner().invoke(app, words)
    assert isinstance(told.exception, LinkworkError)


def test_a_contact_of_no_kind_is_told_the_kinds() -> None:
    with pytest.raises(InputError, match=r"--contact tool:7d: .*:3d, :6d"):
        constrained(arm(2), ["tool:7d"], None)
    assert constrained(arm(2), ["tool:3d"], None).rows == 3


def test_python_runs_the_command_line_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "linkwork", "--help"], capture_output=True, text=True, check=True)
    assert "export" in done.stdout


BACKWARDS = """
<robot name="backwards">
  <link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
    <limit lower="1" upper="-1" effort="1" velocity="1"/></joint>
</robot>
"""


def test_a_warning_is_one_sentence(tmp_path) -> None:
    (tmp_path / "backwards.urdf").write_text(BACKWARDS)
    command = [sys.executable, "-m", "linkwork", "info", str(tmp_path / "backwards.urdf")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert told.startswith("warning: ")
    assert told.count("\n") == 1
    assert "above the upper limit" in told


def test_a_warning_names_the_line_that_loads() -> None:
    with pytest.warns(LoadWarning, match="above the upper limit") as told:
        lw.load(BACKWARDS)
    assert told[0].filename == __file__


def test_the_version() -> None:
    told = CliRunner().invoke(app, ["--version"])
    assert told.exit_code == 0
    assert told.output == f"linkwork {lw.__version__}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full here")
def test_a_full_disk_behind_the_output_gets_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "linkwork", "methods"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert "cannot be written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
