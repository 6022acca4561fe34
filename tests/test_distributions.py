"""Two distributions: one version, and the benchmarks are needed by nothing but their own tests."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

import linkwork

ROOT = Path(__file__).parents[1]
TESTS = [f for f in sorted((ROOT / "tests").rglob("*.py")) if f.parent.name != "benchmarks"]


def test_versions_agree():
    bench = re.search(r'__version__ = "(.*)"', (ROOT / "benchmarks/src/linkwork_bench/__init__.py").read_text())
    assert bench is not None
    assert bench[1] == linkwork.__version__
    assert f"version: {linkwork.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## (\d\S*) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == linkwork.__version__
    assert f"date-released: {newest[2]}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize("folder", [".", "benchmarks"])
def test_the_version_has_one_source(folder):
    told = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
    assert told["project"]["dynamic"] == ["version"]
    source = ROOT / folder / told["tool"]["hatch"]["version"]["path"]
    assert linkwork.__version__ in source.read_text()
    assert source.with_name("py.typed").is_file()


def test_neither_the_core_nor_its_tests_import_the_benchmarks():
    for file in [*TESTS, *(ROOT / "src").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.split(".")[0] != "linkwork_bench", f"{file.relative_to(ROOT)}:{node.lineno} imports {name}"
