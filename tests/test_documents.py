"""What the documents say is what the code does."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import linkwork as lw

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_the_example_of_the_readme_runs(capsys) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert "(1000, 12)" in capsys.readouterr().out


def test_the_table_of_methods_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools" / "document_methods.py", "--check"], check=False)
    assert done.returncode == 0


SHORTER = {
    "06_simulate_four_bar": ("duration=2.0", "duration=0.2"),
    "15_contact": ("1000", "100"),
    "16_randomised_quadrupeds": ("B, STEPS, DT = 4096", "B, STEPS, DT = 256"),
    "20_mpc_casadi": ("seconds=1.5", "seconds=0.6"),
}
"""Of long examples: fewer of the same, here."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_example(example: Path, tmp_path: Path) -> None:
    if example.stem in SHORTER:
        long, short = SHORTER[example.stem]
        assert long in example.read_text()
        (tmp_path / example.name).write_text(example.read_text().replace(long, short))
        example = tmp_path / example.name
    runpy.run_path(str(example), run_name="__main__")


def test_local_links_of_the_documents_exist() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_promises_name_tests_that_exist() -> None:
    """Every line of docs/promises.md is held by tests with these names; `::name` belongs to the file before it."""
    tests, found = ROOT / "tests", 0
    for line in (ROOT / "docs" / "promises.md").read_text().splitlines():
        if not line.startswith("|") or "`" not in line.rsplit("|", 2)[-2]:
            continue
        text = ""
        for name in re.findall(r"`([^`]+)`", line.rsplit("|", 2)[-2]):
            file, _, function = name.partition("::")
            if file:
                assert (tests / file).is_file(), name
                text = (tests / file).read_text()
            assert not function or f"def {function}(" in text, name
            found += 1
    assert found > 40


def test_docstrings_begin_with_a_short_line() -> None:
    """Lists of names show first lines: at most 100 characters."""
    long = []
    for folder in ("src", "benchmarks/src", "tools", "examples"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                    first = text.splitlines()[0]
                    if len(first) > 100:
                        long.append(f"{file.name}: {first}")
    assert not long


def test_the_architecture_names_files_that_are_there() -> None:
    places = (ROOT / "docs" / "architecture.md").read_text().split("## Where is ...?")[1].split("##")[0]
    files = re.findall(r"`([\w/]+\.py)`", places)
    assert len(files) > 10
    assert [f for f in files if not (ROOT / "src" / "linkwork" / f).is_file()] == []


QUESTIONS = {
    "the elimination order": ("structure/elimination.py", "def ordered"),
    "a method chosen": ("planner/choice.py", "def choose"),
    "a result checked": ("functions/dense_judge.py", "class Judge"),
    "a kernel taken from the cache": ("kernels/calls/kernel.py", "def _made"),
    "doubts its own result": ("algorithms/common/certificates.py", "def balanced"),
    "the penalty of a row": ("algorithms/common/penalties.py", "def penalties"),
    "the stabilisation of rows": ("constraints/stabilisation.py", "class Stabilisation"),
    "the length of quaternions": ("model/unit_quaternions.py", "def unit_guard"),
    "a batch split over threads": ("kernels/calls/interruptible_run.py", "class Task"),
    "made cheaper before": ("rewrite/frames.py", "def reframed"),
    "from files that others planted": ("kernels/cache/folder.py", "def usable"),
    "a Ctrl-C heard": ("kernels/calls/interruptible_run.py", "def _work"),
    "rotors lumped": ("structure/rotor_lumping.py", "def freeze_rotors"),
    "two bodies that touch": ("constraints/nearest.py", "def nearest_points"),
    "the dense reference": ("algorithms/constrained/kkt.py", "def kkt"),
}
"""What somebody new asks for, the file that has it, and what it is called there."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_architecture_answers_questions(question: str) -> None:
    file, definition = QUESTIONS[question]
    (row,) = (line for line in (ROOT / "docs" / "architecture.md").read_text().splitlines() if question in line)
    assert f"`{file}`" in row
    assert definition in (ROOT / "src" / "linkwork" / file).read_text()


def test_the_default_of_cassie_is_the_one_that_the_documents_name() -> None:
    (said,) = re.findall(
        r"Cassie's default, as the planner predicts it now, is `(\w+)`", (ROOT / "docs/simulating.md").read_text()
    )
    assert "(default) |" not in (ROOT / "docs/simulating.md").read_text()
    try:
        model = lw.load("cassie.xml")
    except lw.LinkworkError as problem:
        pytest.skip(f"Cassie is not installed: {problem}")
    assert lw.rollout(model, dt=1e-3).method == said
