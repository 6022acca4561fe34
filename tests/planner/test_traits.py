"""One file and one entry: a method that is added appears everywhere, and the planner judges it by its traits alone."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import linkwork as lw
import linkwork.algorithms
from linkwork.algorithms import registry
from linkwork.algorithms.registry import FD, METHODS, Method
from linkwork.cli.main import app
from linkwork.errors import NotFound, UnsupportedError
from linkwork.planner.plan import Plan
from linkwork.planner.rules import Asked, reasons
from linkwork.robots import mechanisms as mech
from linkwork.structure.constraint_treatment import Ways, treated

ROOT = Path(__file__).parents[2]
TOY = '''"""Articulated bodies under another name."""

from linkwork.algorithms.tree.aba import aba


def toy(motion, tau, fext=None):
    return aba(motion, tau, fext)
'''


pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.fixture
def register(monkeypatch):
    """`register(methods)`: the table has these for one test."""
    return lambda methods: monkeypatch.setattr(registry, "METHODS", tuple(methods))


@pytest.fixture
def toy(tmp_path, register, monkeypatch):
    """A method that exists for one test: its file and its entry."""
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.setattr(linkwork.algorithms, "__path__", [*linkwork.algorithms.__path__, str(tmp_path)])
    entry = Method("toy", FD, "toy:toy", "articulated bodies, once more", "a test", "O(n)", ways=Ways())
    register((*METHODS, entry))
    yield entry
    sys.modules.pop("linkwork.algorithms.toy", None)


def test_an_entry_is_enough(toy) -> None:
    model = mech.chain(20)
    known = lw.plan(model)
    by_name = {c.method: c for c in known.candidates}
    assert by_name["toy"].operations == by_name["aba"].operations
    assert "toy" in known.explain()
    q, v, tau = model.neutral(), np.zeros(model.nv), np.ones(model.nv)
    made = [lw.forward_dynamics(model, method=name, backend="numpy")(q, v, tau).a for name in ("toy", "aba")]
    np.testing.assert_array_equal(*made)

    listed = CliRunner().invoke(app, ["methods", "--json"])
    assert '"toy"' in listed.output

    with pytest.raises(NotFound, match=f"{len(registry.methods(FD))} in all"):
        lw.forward_dynamics(model, method="nothing")
    with pytest.raises(UnsupportedError, match=r"Methods that can.*'toy'"):
        lw.forward_dynamics(model, method="pv_soft")
    standing = mech.quadruped().with_constraints(lw.point("front_left_foot"))
    with pytest.raises(UnsupportedError, match="toy"):
        lw.forward_dynamics(standing, method="toy")
    assert "ignores constraints" in {c.method: c.reason for c in lw.plan(standing).candidates}["toy"]

    spec = importlib.util.spec_from_file_location("document_methods", ROOT / "tools" / "document_methods.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert "| `toy` | articulated bodies, once more |" in tool.table()


def test_a_plan_does_not_outlive_the_methods_that_it_knows(register) -> None:
    model = mech.chain(4)
    before = lw.plan(model)
    register(m for m in METHODS if m.name != before.method)
    assert lw.plan(model).method != before.method


@pytest.mark.parametrize("package", ["planner", "functions", "simulation", "structure"])
def test_no_rule_is_about_a_name(package: str) -> None:
    """Names of methods occur as arguments and in tables of samples, but are not compared with anything."""
    names = {m.name for m in METHODS}
    for file in (ROOT / "src" / "linkwork" / package).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Compare):
                said = {x.value for x in ast.walk(node) if isinstance(x, ast.Constant) and isinstance(x.value, str)}
                assert not said & names, f"{file.name}:{node.lineno} compares with the name of a method"


def test_methods_under_other_names_are_judged_alike(register) -> None:
    """The same reasons, but for the names in them."""
    cases = [(mech.geared_chain(3), False), (mech.chain_of_loops(2), True), (mech.four_bar(), False)]
    found = [reasons(FD, Asked(model, independent)) for model, independent in cases]
    renamed = {m.name: f"method {n}" for n, m in enumerate(METHODS)}
    shuffled = [Method(**{**vars(m), "name": renamed[m.name], "direct": renamed.get(m.direct, "")}) for m in METHODS]
    register(shuffled)
    for (model, independent), before in zip(cases, found, strict=True):
        after = {m.name: reason for m, reason in reasons(FD, Asked(model, independent))}
        assert [bool(reason) for _, reason in before] == [bool(after[renamed[m.name]]) for m, _ in before]


def gripper_on_a_base() -> lw.Model:
    hand = mech.gripper("four_bar", base="free")
    return hand.with_constraints(lw.point("left_tip", name="held"))


MODELS = {
    "chain": lambda: mech.chain(5),
    "contacts": lambda: mech.quadruped().with_constraints(lw.point("front_left_foot", name="foot")),
    "loops": lambda: mech.chain_of_loops(2),
    "gears": lambda: mech.geared_chain(3),
    "gripper": gripper_on_a_base,
}


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_plan_carries_what_its_method_does(name: str, independent: bool) -> None:
    """Every constraint is treated in one way, and every link is eliminated once, after those that it carries."""
    model = MODELS[name]()
    plan = lw.plan(model, independent=independent)
    links, constraints = [l.name for l in model.links[1:]], [c.name for c in model.constraints]
    for c in plan.candidates:
        if c.decisions is None:
            ways = registry.methods(FD)[c.method].ways
            assert c.reason or ways is None
            continue
        d = c.decisions
        assert sorted([*d.embedded, *d.penalised, *(c for c, _ in d.propagated)]) == sorted(constraints)
        gone = [link for step in d.order for link in step.links]
        assert sorted(gone) == sorted(links)
        for step in d.order:
            parent = step.parent
            assert parent == "world" or gone.index(parent) > max(map(gone.index, step.links))
            assert not set(step.neighbours) & set(gone[: gone.index(step.links[0])])
    assert plan.decisions == plan.best.decisions
    assert Plan.from_data(plan.to_data()) == plan


def test_the_decisions_are_those_of_the_algorithm() -> None:
    """Gears are embedded, contacts penalised, loops propagated to their roots; and that is what is printed."""
    model = mech.geared_chain(3)
    plan = lw.plan(model)
    assert set(plan.decisions.embedded) == {c.name for c in model.constraints}
    assert all(name in plan.explain() for name in plan.decisions.embedded)
    loops = mech.chain_of_loops(2)
    by_name = {c.method: c for c in lw.plan(loops, independent=True).candidates}
    mix = treated(loops, registry.methods(FD)["bbo"].ways)
    roots = tuple((loops.constraints[c].name, loops.links[i].name) for c, i in mix.ends.items())
    assert by_name["bbo"].decisions.propagated == roots
