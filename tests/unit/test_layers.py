"""Dependencies point downwards only, algorithms keep to the contract, and importing Linkwork imports little else."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import linkwork
from linkwork.backends.ops import Ops

ROOT = Path(linkwork.__file__).parent
FILES = {".".join(["linkwork", *f.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__"): f
         for f in sorted(ROOT.rglob("*.py"))}

LAYERS = [
    ["errors", "forks"],
    ["lazy"],
    ["checks"],
    ["backends"],
    ["spatial"],
    ["joints"],
    ["model"],
    ["constraints"],
    ["planner.elimination", "planner.pivots", "model.xml", "model.load", "model.urdf", "model.mjcf", "model.sdf",
     "model.looks", "model.solids", "model.mjcf_limits"],
    ["algorithms", "kernels"],
    ["simulate.assembly"],
    ["planner"],
    ["judge"],
    ["function"],
    ["simulate.actuation"],
    ["api"],
    ["robots", "simulate", "interop"],
    ["scale", "view"],
    [""],
    ["cli_arguments"],
    ["view.cli"],
    ["bench", "simulate.cli", "demo"],
    ["cli"],
]
"""From the bottom to the top; of several that fit a module, the longest name counts. "" is the package itself."""

UPWARDS = {("linkwork.model.load", "linkwork.robots")}
"""Looked up when a robot is asked for by name, and never imported before."""


def layer(module: str) -> tuple[int, str]:
    """How high a module is, and the entry that says so."""
    short = module.removeprefix("linkwork").removeprefix(".")
    fits = [(len(name), height, name) for height, names in enumerate(LAYERS) for name in names
            if short == name or (name and short.startswith(name + "."))]
    assert fits, f"{module} is in no layer: add it to LAYERS"
    return max(fits)[1:]


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
    height, own = layer(module)
    for name, line in imports(FILES[module]):
        if name.split(".")[0] != "linkwork" or (module, name.rsplit(".", 1)[0]) in UPWARDS or (module, name) in UPWARDS:
            continue
        other, theirs = layer(name)
        together = other == height and own.split(".")[0] == theirs.split(".")[0]
        assert other < height or together, f"{module}:{line} imports {name}, which is not below it"


def test_the_lint_sees_what_it_should():
    assert layer("linkwork.model.motion") < layer("linkwork.constraints.rows") < layer("linkwork.algorithms.tree.aba")
    assert layer("linkwork.model.urdf") > layer("linkwork.constraints")
    names = [n for n, _ in imports(FILES["linkwork.algorithms.tree.ltl"])]
    assert "linkwork.algorithms.tree.crba" in names
    assert "linkwork.constraints" not in [n for n, _ in imports(FILES["linkwork.model.model"])]


OPTIONAL = ("casadi", "llvmlite", "mujoco", "pinocchio", "viser", "yourdfpy", "typer", "rich", "robot_descriptions",
            "distributed", "dask", "matplotlib", "pyarrow")


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


@pytest.mark.parametrize("module", [*ALGORITHMS, *(m for m in FILES if m.startswith(("linkwork.spatial.",
                                    "linkwork.joints.", "linkwork.constraints.")))])
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
