"""`linkwork info`: everything that can be named is listed, and no name is cut where a program reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from linkwork.cli.main import app

LONG = "a_name_that_no_table_of_eighty_columns_has_room_for_" + "x" * 60
URDF = f"""<robot name="names"><link name="base"/>
<link name="{LONG}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<link name="tip_{LONG}"/>
<joint name="hinge_{LONG}" type="continuous"><parent link="base"/><child link="{LONG}"/><axis xyz="0 1 0"/></joint>
<joint name="end" type="fixed"><origin xyz="0.1 0 0.2"/><parent link="{LONG}"/><child link="tip_{LONG}"/></joint>
</robot>"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "names.urdf").write_text(URDF)
    return str(tmp_path / "names.urdf")


def test_frames_are_listed(file):
    told = json.loads(CliRunner().invoke(app, ["info", file, "--json"]).stdout)
    (tip,) = [f for f in told["frames"] if f["frame"] == f"tip_{LONG}"]
    assert tip == {"frame": f"tip_{LONG}", "link": LONG, "position": [0.1, 0.0, 0.2], "rpy": [0.0, 0.0, 0.0]}


def test_what_drives_and_bounds_joints_is_listed(tmp_path):
    pytest.importorskip("mujoco")
    body = '<joint name="j" range="-60 80" damping=".3"/><geom size=".1" pos=".1 0 0"/>'
    motor = '<position name="servo" joint="j" kp="7" forcerange="-4 4"/>'
    (tmp_path / "a.xml").write_text(
        f"<mujoco><worldbody><body>{body}</body></worldbody><actuator>{motor}</actuator></mujoco>"
    )
    told = json.loads(CliRunner().invoke(app, ["info", str(tmp_path / "a.xml"), "--json"]).stdout)
    (servo,), (joint,) = told["actuators"], told["joints"]
    assert servo["joints"] == {"j": [1.0]}
    assert servo["what"] == "position servo, kp 7, kd 0"
    assert servo["force_range"] == [-4, 4]
    assert servo["control_range"] == [None, None]
    assert joint["limits"]["upper"] == pytest.approx(80 * 3.141592653589793 / 180)
    text = CliRunner().invoke(app, ["info", str(tmp_path / "a.xml")]).stdout
    for words in ("1 actuators", "position servo", "-4 .. 4", "1 joints with limits", "1 joints with springs"):
        assert words in text


def test_names_are_whole_in_a_pipe(file):
    told = run("info", file)
    for name in (LONG, f"tip_{LONG}", f"hinge_{LONG}"):
        assert any(name in line for line in told.splitlines())
    assert "…" not in told


def test_names_are_folded_on_a_terminal(file):
    """In a narrow window a name goes on in the next line; nothing of it is lost."""
    told = run("info", file, FORCE_COLOR="1", COLUMNS="100")
    assert max(map(len, told.splitlines())) < 400  # 100 columns, and colours
    assert "…" not in told


def run(*words: str, **settings: str) -> str:
    """What a process of its own prints into a pipe."""
    code = "from linkwork.cli.main import main; main()"
    given = {**os.environ, **settings}
    return subprocess.run(
        [sys.executable, "-c", code, *words], env=given, capture_output=True, text=True, check=True
    ).stdout
