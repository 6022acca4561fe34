"""Every page of docs/tutorials runs as it is printed: its Python blocks in order, with the output that it shows."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


IMPORT = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)


@pytest.fixture(autouse=True)
def numbers_of_torch() -> Iterator[None]:
    """Pages may change torch's default type of numbers: the next page begins with the usual one."""
    yield
    if torch := sys.modules.get("torch"):
        torch.set_default_dtype(torch.float32)


@pytest.mark.filterwarnings("error::linkwork.errors.ConvergenceWarning", "error::linkwork.errors.StepWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_page(page: Path, tmp_path: Path, in_tmp_path: None) -> None:
    """A `text` block is what the `python` block before it prints, and a block without one prints nothing."""
    text, names, printed = page.read_text(), {}, ""
    blocks = [(*b.groups(), text.count("\n", 0, b.start(2))) for b in BLOCK.finditer(text)]
    for module in IMPORT.findall("".join(code for kind, code, _ in blocks if kind == "python")):
        pytest.importorskip(module, reason=f"{page.name} needs {module}: pip install -e '.[test]'")
    for kind, code, line in blocks:
        if kind == "text":
            assert printed == code, f"{page.name}, line {line + 1}"
            printed = ""
            continue
        assert not printed, f"{page.name}: printed before line {line + 1} and not shown"
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile("\n" * line + code, str(page), "exec"), names)
        printed = out.getvalue()
    assert not printed, f"{page.name}: printed at its end and not shown"


def test_every_page_is_listed() -> None:
    """In the navigation of the site, and tutorials on their first page."""
    navigation, docs = (ROOT / "mkdocs.yml").read_text(), ROOT / "docs"
    for page in docs.rglob("*.md"):
        assert f": {page.relative_to(docs).as_posix()}\n" in navigation
    first = (docs / "tutorials" / "index.md").read_text()
    for page in PAGES:
        assert page.name == "index.md" or f"]({page.name})" in first


@pytest.mark.parametrize(("prefix", "module"), [("lw", "linkwork"), ("pin", "pinocchio"), ("mujoco", "mujoco")])
def test_names_that_pages_mention_exist(prefix: str, module: str) -> None:
    """Tables translate calls of other libraries: both sides are names that exist."""
    library = pytest.importorskip(module)
    text = "".join(page.read_text() for page in PAGES)
    names = set(re.findall(rf"(?<![\w.]){prefix}\.(\w+)", text))
    assert len(names) > 15
    for name in names:
        if not hasattr(library, name):
            import_module(f"{module}.{name}")
