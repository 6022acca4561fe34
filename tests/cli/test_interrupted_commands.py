"""Ctrl-C ends a command with one line and exit code 130, whenever it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

HEARING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it
"""

WHEN = f"""{HEARING}
from linkwork.__main__ import main

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {{module!r}}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["linkwork", *{{words!r}}]
main()
"""


PENDULUM = """
<robot name="pendulum">
  <link name="base"/>
  <link name="rod"><inertial><origin xyz="0 0 -1"/><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint>
</robot>
"""


@pytest.fixture
def pendulum(tmp_path) -> str:
    (tmp_path / "pendulum.urdf").write_text(PENDULUM)
    return str(tmp_path / "pendulum.urdf")


@pytest.mark.parametrize("module", ["typer", "numpy", "numpy.linalg", "rich.console", "linkwork.cli.view"])
def test_while_packages_are_imported(module) -> None:
    code = WHEN.format(module=module, words=["methods"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr, done.stdout) == (130, "interrupted\n", "")


@pytest.mark.parametrize("module", ["linkwork.io.urdf", "linkwork.kernels.codegen.lower"])
def test_while_a_command_runs(module, pendulum, tmp_path) -> None:
    """Within a command packages are imported that only it needs."""
    code = WHEN.format(module=module, words=["simulate", pendulum, "--duration", "0.05"])
    where = {**os.environ, "LINKWORK_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=where)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of processes are POSIX's")
def test_a_long_command_is_heard_at_once(pendulum) -> None:
    code = f"{HEARING}from linkwork.__main__ import main\nmain()"
    words = [sys.executable, "-c", code, "simulate", pendulum, "--q", "1.0", "--duration", "500"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        time.sleep(2.5)
        assert running.poll() is None
        began = time.perf_counter()
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=20)
    assert time.perf_counter() - began < 2.0
    assert running.returncode == 130
    assert said.splitlines()[-1] == "interrupted"
    assert "Traceback" not in said
