"""tools/corpus.py: a verdict for every file of a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
LINK = f'<link name="{{}}"><inertial><mass value="1"/>{INERTIA}</inertial></link>'
HINGE = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><limit effort="1" velocity="1"/></joint>'
FILES = {
    "good.urdf": f'<robot name="r">{LINK.format("a")}{LINK.format("b")}{HINGE}</robot>',
    "negative.urdf": f'<robot name="r">{LINK.format("a")}</robot>'.replace('ixx="1"', 'ixx="-1"'),
    "cut_off.urdf": '<robot name="r"><link name="a">',
    "good.xml": '<mujoco><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>',
    "another.xml": "<library><book/></library>",
    "one.sdf": '<sdf version="1.9"><model name="m"><link name="a"/></model></sdf>',
}
VERDICTS = {
    "good.urdf": "agrees",
    "negative.urdf": "refused",
    "cut_off.urdf": "both",
    "good.xml": "agrees",
    "one.sdf": "loads",
}


def test_every_file_gets_a_verdict(tmp_path: Path) -> None:
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    command = [sys.executable, str(ROOT / "tools/corpus.py"), str(folder), "--json", str(tmp_path / "found")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in (tmp_path / "found").read_text().splitlines()]
    assert {x["file"]: x["verdict"] for x in found} == VERDICTS
    assert "| urdf | 3 | 1 | 0 | 1 | 1 | 0 | 0 |" in done.stdout
