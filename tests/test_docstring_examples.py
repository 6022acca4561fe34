"""Every public name has an example that runs: in its docstring, on a page of the tutorials, or in examples/."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.functions.function import Function
from linkwork.robots import mechanisms

ROOT = Path(__file__).parents[1]
NAMES = sorted(set(lw.__all__) - {"__version__"})
CLASSES = (
    Function,
    lw.BodyInertia,
    lw.Builder,
    lw.KKTCholesky,
    lw.Model,
    lw.Placement,
    lw.Rollout,
    lw.RolloutResult,
    lw.Trajectory,
    lw.Viewer,
)
"""What users hold and ask; constraints, which have members for algorithms, are only made."""

PUBLIC = {n: getattr(lw, n) for n in NAMES} | {
    f"{kind.__name__}.{n}": x for kind in CLASSES for n, x in inspect.getmembers(kind) if not n.startswith("_")
}
EXAMPLES = {
    n: found for n, x in PUBLIC.items() if (found := doctest.DocTestParser().get_examples(inspect.getdoc(x) or ""))
}
EXTRAS = {"view": "viser", "Viewer": "viser", "Trajectory.plot": "matplotlib"}

GIVEN = {"lw": lw, "np": np, **{n: f for n, f in vars(mechanisms).items() if inspect.isfunction(f)}}
"""What examples take for granted; the reference says so."""

INSIDE = {
    "Function": {"differentiable", "factors_mass", "kernel", "program", "recipe", "traced"},
    "Model": {
        *("check_forward", "check_position"),
        *("reach", "row_span", "sliding", "topology", "unit_parts"),
    },
    "Rollout": {"kernel", "program", "retried"},
    "Builder": {"strict", "look", "outline", "visual"},
    "BodyInertia": {"check"},
    "KKTCholesky": {"forces_to_rows", "rows_to_joints"},
    "Viewer": {"wait"},
}
"""Members that other packages of Linkwork need, and users do not; and `wait`, which waits for ever."""


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.filterwarnings("error::UserWarning")
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name])
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTest(EXAMPLES[name], dict(GIVEN), name, None, 0, None)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert tried
    assert not failed, "".join(said)


def shown() -> str:
    """All code that tests run as examples: tutorials, examples/, the README, docstrings."""
    pages = [*(ROOT / "docs" / "tutorials").glob("*.md"), ROOT / "README.md"]
    code = [c for p in pages for c in re.findall(r"^```python\n(.*?)^```$", p.read_text(), re.DOTALL | re.MULTILINE)]
    code += [p.read_text() for p in (ROOT / "examples").glob("*.py")]
    return "\n".join([*code, *(e.source for examples in EXAMPLES.values() for e in examples)])


def test_every_name_has_an_example_in_its_docstring() -> None:
    assert [n for n in NAMES if n not in EXAMPLES] == []


def test_every_member_of_a_public_class_is_in_an_example() -> None:
    code, missing = shown(), []
    for kind in CLASSES:
        for name, _ in inspect.getmembers(kind):
            inside = name.startswith("_") or name in INSIDE.get(kind.__name__, ())
            if not inside and not re.search(rf"\.{name}\b|\b{name}=", code):
                missing.append(f"{kind.__name__}.{name}")
    assert missing == []


EVERYWHERE = {"model", "frames", "backend", "dtype", "threads", "options"}
"""Arguments that the first lines of the reference explain for all."""


def test_every_argument_of_a_public_function_is_explained() -> None:
    missing = []
    for name in NAMES:
        function = getattr(lw, name)
        if inspect.isfunction(function):
            text = (inspect.getdoc(function) or "").split("Examples:")[0]
            given = [n for n in inspect.signature(function).parameters if n not in EVERYWHERE]
            missing += [f"{name}({n})" for n in given if not re.search(rf"\b{n}\b", text)]
    assert missing == []
