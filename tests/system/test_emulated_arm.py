"""`make test-arm`: a little of it wherever it has been set up; the set-up itself is not begun by a test."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "test_arm.py"


def test_the_slice_exists() -> None:
    """Every file of the slice is there, and where it cannot be set up one line says why."""
    sys.path.insert(0, str(TOOL.parent))
    try:
        import test_arm
    finally:
        sys.path.remove(str(TOOL.parent))
    for name in test_arm.SLICE:
        file, _, test = name.removeprefix("--deselect=").partition("::")
        assert (ROOT / file).exists()
        assert not test or f"def {test}(" in (ROOT / file).read_text()


def test_where_it_cannot_be_set_up_one_line_says_why(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, TOOL, tmp_path / "arm"], env=environment, capture_output=True, text=True)
    assert done.returncode == 77
    assert done.stderr == "ARM is not tested: there is no apt-get\n"


def test_a_kernel_on_arm(tmp_path: Path) -> None:
    folder = Path(os.environ.get("LINKWORK_ARM", ROOT / "build" / "arm"))
    if platform.machine() == "aarch64":
        pytest.skip("this is ARM already")
    if not (folder / "done").exists():
        pytest.skip(f"{folder} is not set up: make test-arm")
    chosen = "tests/system/test_every_machine.py::test_accelerations"
    subprocess.run([sys.executable, TOOL, folder, "--", chosen, "-k", "arm"], check=True)
