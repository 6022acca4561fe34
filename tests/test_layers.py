"""Dependencies point downwards only, algorithms keep to the contract, and importing Linkwork imports little else."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import linkwork
from linkwork.backends.ops import Ops

ROOT = Path(linkwork.__file__).parent
FILES = {
    ".".join(["linkwork", *f.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__"): f
    for f in sorted(ROOT.rglob("*.py"))
}

TABLE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
LAYERS = re.findall(r"^\| `(\w+)` \|", TABLE, re.MULTILINE)[::-1]
"""From the bottom to the top: the table of docs/architecture.md is the list."""


def layer(module: str) -> int:
    """How high the package of a module stands; "linkwork" is the package itself."""
    package = (module.split(".") + ["linkwork"])[1] if module != "linkwork" else "linkwork"
    assert package in LAYERS, f"{module} is in no layer: add its package to the table of docs/architecture.md"
    return LAYERS.index(package)


def guarded(tree: ast.Module) -> set[ast.AST]:
    """Everything under `if TYPE_CHECKING:`."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    return {x for b in blocks for x in ast.walk(b)}


def imports(file: Path) -> list[tuple[str, int]]:
    """Linkwork's own modules that a file imports, lazily too, but not those for type checking."""
    tree = ast.parse(file.read_text())
    skip, out = guarded(tree), []
    for node in ast.walk(tree):
        if node in skip:
            continue
        if isinstance(node, ast.Import):
            out += [(a.name, node.lineno) for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from linkwork.model import xml` may name a module: take the deepest that is one
            deeper = [f"{node.module}.{a.name}" for a in node.names]
            out += [(d if d in FILES else node.module, node.lineno) for d in deeper]
    return out


@pytest.mark.parametrize("module", FILES)
def test_dependencies_point_downwards(module):
    height = layer(module)
    for name, line in imports(FILES[module]):
        if name.split(".")[0] != "linkwork" or name.split(".")[1:2] == module.split(".")[1:2]:
            continue
        assert layer(name) < height, f"{module}:{line} imports {name}, which is not below it"


INNER = re.findall(r"^\| `kernels/(\w+)` \|", TABLE, re.MULTILINE)[::-1]
"""The packages of `kernels`, from the bottom to the top."""


@pytest.mark.parametrize("module", [m for m in FILES if m.startswith("linkwork.kernels.")])
def test_packages_of_kernels_point_downwards_too(module):
    height = INNER.index(module.split(".")[2])
    for name, line in imports(FILES[module]):
        inner = name.removeprefix("linkwork.kernels.").split(".")[0]
        if name.startswith("linkwork.kernels."):
            assert INNER.index(inner) <= height, f"{module}:{line} imports {name}, which is not below it"


def test_every_package_is_in_the_table_once():
    packages = {(m.split(".") + ["linkwork"])[1] for m in FILES} | {"linkwork"}
    assert sorted(LAYERS) == sorted(packages)


@pytest.mark.parametrize("module", [m for m, f in FILES.items() if f.name == "__init__.py"])
def test_no_name_hides_a_module(module):
    """`import linkwork.simulation.rollouts.rollout` gives the module, whatever functions the packages export."""
    package = importlib.import_module(module)
    for name in (m.removeprefix(module + ".") for m in FILES if m.startswith(module + ".")):
        if "." not in name and name in vars(package):
            assert inspect.ismodule(vars(package)[name]), f"{module}.{name} is a module and something else"


def test_the_lint_sees_what_it_should():
    assert layer("linkwork.model.motion") < layer("linkwork.constraints.rows") < layer("linkwork.algorithms.tree.aba")
    assert layer("linkwork.io.urdf") > layer("linkwork.constraints")
    names = [n for n, _ in imports(FILES["linkwork.algorithms.tree.ltl"])]
    assert "linkwork.algorithms.tree.crba" in names
    assert "linkwork.constraints" not in [n for n, _ in imports(FILES["linkwork.model.model"])]


OPTIONAL = (
    "casadi",
    "llvmlite",
    "mujoco",
    "pinocchio",
    "viser",
    "yourdfpy",
    "typer",
    "rich",
    "robot_descriptions",
    "distributed",
    "dask",
    "matplotlib",
    "pyarrow",
    "jax",
    "torch",
)


def test_importing_linkwork_imports_no_heavy_package():
    code = f"import linkwork, sys; print([m for m in {OPTIONAL} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_numpy_needs_no_casadi():
    """The reference executes algorithms as they are: a model, its dynamics and its constraints, and nothing traced."""
    code = """
import sys, numpy as np, linkwork as lw
b = lw.Builder()
b.link("a", "world", "free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
m = b.build().with_constraints(lw.point("a"))
lw.forward_dynamics(m, backend="numpy", method="kkt")(m.neutral(), np.zeros(6), np.zeros(6))
print("casadi" in sys.modules)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_public_names_exist_and_are_sorted():
    assert linkwork.__all__ == sorted(linkwork.__all__)
    assert all(hasattr(linkwork, n) for n in linkwork.__all__)


ALGORITHMS = [m for m in FILES if m.startswith("linkwork.algorithms.")]


@pytest.mark.parametrize("module", ALGORITHMS)
def test_algorithms_never_import_or_name_a_backend(module):
    tree = ast.parse(FILES[module].read_text())
    names = {n for n, _ in imports(FILES[module])}
    assert not names & {"casadi", "linkwork.backends.numpy_", "linkwork.backends.casadi_", "linkwork.backends"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "type"):
            assert "ndarray" not in ast.dump(node), f"{module}:{node.lineno} asks what kind of array it has"
            assert "'SX'" not in ast.dump(node), f"{module}:{node.lineno} asks what kind of array it has"
        asks = isinstance(node, ast.Attribute) and node.attr == "name" and getattr(node.value, "id", "") == "xp"
        assert not asks, f"{module}:{node.lineno} asks which backend it runs on"


@pytest.mark.parametrize(
    "module",
    [
        *ALGORITHMS,
        *(m for m in FILES if m.startswith(("linkwork.spatial.", "linkwork.joints.", "linkwork.constraints."))),
    ],
)
def test_only_operations_of_the_contract_are_used(module):
    contract = {n for n in (*vars(Ops), *Ops.__annotations__) if not n.startswith("_")}
    for node in ast.walk(ast.parse(FILES[module].read_text())):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value
        if getattr(owner, "id", getattr(owner, "attr", "")) == "xp":
            assert node.attr in contract, f"{module}:{node.lineno}: xp.{node.attr} is not in the contract"


def test_the_contract_is_small_and_both_backends_fulfil_it():
    from linkwork.backends.casadi_ import CASADI
    from linkwork.backends.numpy_ import NUMPY

    contract = {n for n in (*vars(Ops), *Ops.__annotations__) if not n.startswith("_")}
    for backend in (NUMPY, CASADI):
        offered = {n for n in dir(backend) if not n.startswith("_")}
        assert offered - {"name"} == contract - {"name"}
    assert len(contract) <= 30
