"""Packages that are missing are named with the extra that has them, and before anything is computed."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
URDF = """<robot name="swing"><link name="base"/><link name="bob"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial></link><joint name="hinge" type="continuous"><parent link="base"/>
<child link="bob"/><axis xyz="0 1 0"/></joint></robot>"""


@pytest.mark.parametrize(
    ("package", "extra", "words"),
    [
        ("matplotlib", "plot", ["--plot", "run.png"]),
        ("viser", "view", ["--view"]),
        ("pyarrow", "parquet", ["-o", "run.parquet"]),
    ],
)
def test_a_simulation_says_it_before_it_starts(tmp_path, package, extra, words):
    (tmp_path / "swing.urdf").write_text(URDF)
    code = f"import sys; sys.modules[{package!r}] = None; from linkwork.cli.main import main; main()"
    command = [sys.executable, "-c", code, "simulate", "swing.urdf", "--duration", "1e6", *words]  # hours
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"pip install 'linkwork[{extra}]'" in done.stderr
    assert not done.stdout


def test_every_error_names_an_extra_that_there_is():
    found = {}
    for file in [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks" / "src").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "MissingExtra":
                package, extra = (ast.literal_eval(a) for a in node.args[:2])
                found[package] = extra
    assert len(found) >= 6
    for package, extra in found.items():
        assert any(r.startswith(package) for r in EXTRAS.get(extra, [])), f"'{package}' is not in the extra '{extra}'"
