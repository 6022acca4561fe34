"""The README's tables and charts are what the committed results say."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from linkwork_bench.records import read

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "readme_numbers.py"


def test_readme_and_charts_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, TOOL, "--check"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The tool with its own README and results."""
    for part in ("tools/readme_numbers.py", "README.md"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / part, tmp_path / part)
    shutil.copytree(ROOT / "docs" / "results", tmp_path / "docs" / "results")
    return tmp_path


def run(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, copy / "tools" / "readme_numbers.py", *words], check=False, capture_output=True, text=True
    )


def test_another_figure_or_another_text_is_seen(copy: Path) -> None:
    """The copy as it is passes: that is the test above."""
    readme = copy / "README.md"
    readme.write_text(readme.read_text().replace("| `aba`, 9 robots | ", "| `aba`, 9 robots | 9"))
    assert "README.md" in run(copy, "--check").stdout
    assert run(copy).returncode == 0
    assert readme.read_text() == (ROOT / "README.md").read_text()


def test_new_results_are_taken_and_trimmed(copy: Path) -> None:
    rows = [
        {
            "suite": "kernels",
            "function": "aba",
            "robot": "toy",
            "case": "none",
            "nv": 3,
            "rows": 0,
            "role": role,
            "library": "x",
            "method": "aba",
            "measure": measure,
            "samples": [us * k for k in (1.0, 1.1, 0.9, 1.05, 0.95)],
            "shares": [1.0] * 5,
            "error": 1.23e-15,
        }
        for role, measure, us in (("ours", "latency", 1.0), ("ours", "batch", 0.25), ("best", "latency", 3.0))
    ]
    slow = {**rows[0], "method": "crba_ltl", "samples": [9.0] * 5}
    head = {"format": "linkwork-bench-1", "date": "2030-01-01T00:00:00", "cpu": "toy", "load": [0.0], "clock": "time"}
    new = copy / "new.jsonl"
    new.write_text("\n".join(json.dumps(x) for x in [head, *rows, slow]) + "\n")
    assert run(copy, "--take", str(new)).returncode == 0
    kept = read(copy / "docs" / "results" / "kernels.jsonl")
    assert [r.method for r in kept.records] == ["aba"] * 3
    assert kept.records[0].samples == [0.9, 1.0, 1.1]
    assert "| `aba`, 1 robot | 3 (3) |  | 12 (12) |" in (copy / "README.md").read_text()
    assert "toy" in (copy / "docs" / "results" / "aba.svg").read_text()


def test_committed_results_are_small_and_name_no_place_on_a_disk() -> None:
    files = sorted((ROOT / "docs" / "results").glob("*.jsonl"))
    assert files
    for file in files:
        text = file.read_text()
        assert len(text) < 450_000
        assert not any(word in text for word in ("/root", "/home", "/work", "/tmp"))
        assert all(len(r.samples) <= 3 for r in read(file).records)
