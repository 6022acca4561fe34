"""Which joints of a graph to cut: the search is never worse than the rule, and what is cut changes no mechanism."""

from __future__ import annotations

import random

import numpy as np
import pytest
from typer.testing import CliRunner

import linkwork as lw
from linkwork.cli.main import app
from linkwork.model import Model
from linkwork.planner.trees import search
from linkwork.structure.constraint_treatment import chosen


def graph(seed: int, links: int = 10, loops: int = 3, limited: tuple[int, ...] = ()) -> str:
    """An SDF file of links anywhere, which all joints fit at zero: a random tree and joints that close loops."""
    rng = random.Random(seed)

    def numbers(count: int) -> str:
        return " ".join(f"{rng.uniform(-1, 1):.3f}" for _ in range(count))

    body = "<inertial><mass>1</mass><inertia><ixx>.02</ixx><iyy>.03</iyy><izz>.04</izz></inertia></inertial>"
    text = "".join(f'<link name="l{k}"><pose>{numbers(6)}</pose>{body}</link>' for k in range(links))
    pairs = [(rng.randrange(max(0, k - 2), k), k) for k in range(1, links)]
    pairs += [tuple(sorted(rng.sample(range(links), 2))) for _ in range(loops)]
    for n, (a, b) in enumerate(pairs):
        kind, limit = "ball" if n % 5 == 4 else "revolute", ""
        if n in limited:
            kind, limit = "revolute", "<limit><lower>-1</lower><upper>1</upper></limit>"
        text += (
            f'<joint name="j{n}" type="{kind}"><parent>l{a}</parent><child>l{b}</child>'
            f"<axis><xyz>{numbers(3)}</xyz>{limit}</axis></joint>"
        )
    return f'<sdf version="1.7"><model name="graph {seed}">{text}</model></sdf>'


def work(model: Model) -> float:
    return chosen(model).work or 0.0


def fall(model: Model) -> np.ndarray:
    """The accelerations of all links when the mechanism is let go."""
    q, rest, h = model.neutral(), np.zeros(model.nv), 1e-4
    a = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, rest, rest).a
    where = lw.forward_kinematics(model, [f"l{k}" for k in range(10)], backend="numpy")
    ahead, behind = (where(model.integrate(q, s * h * h * a / 2)).positions for s in (1, -1))
    return np.asarray(ahead - behind) / (h * h)


@pytest.mark.parametrize("seed", range(8))
def test_the_search_is_never_worse_and_the_mechanism_stays_the_same(seed: int) -> None:
    text = graph(seed)
    found = search(lambda cut: lw.load(text, cut=cut), work)
    rule, best = lw.load(text), lw.load(text, cut=found.joints)
    assert found.us <= found.rule == work(rule)
    assert work(best) == found.us
    assert {c.name for c in best.constraints} == set(found.joints)
    np.testing.assert_allclose(fall(best), fall(rule), atol=1e-4)


def test_the_search_finds_better_trees_and_leaves_driven_joints_alone() -> None:
    gained = 0
    for seed in range(12):
        text = graph(seed, limited=(0, 2, 6))
        found = search(lambda cut, text=text: lw.load(text, cut=cut), work)
        rule = lw.load(text)
        assert not ({"j0", "j2", "j6"} & set(found.joints)) - {c.name for c in rule.constraints}
        gained += found.us < found.rule
    assert gained >= 2


def test_by_predicted_time_and_on_the_command_line(tmp_path) -> None:
    file = tmp_path / "graph.sdf"
    file.write_text(graph(6, links=6, loops=1))
    found = lw.best_cuts(file)
    assert lw.plan(lw.load(file, cut=found.joints)).best.predicted["state"] == found.us <= found.rule
    done = CliRunner().invoke(app, ["plan", str(file), "--cuts"])
    assert done.exit_code == 0, done.output
    assert f"cut={list(found.joints)}" in done.output
    file.write_text(graph(1, loops=0))
    assert lw.best_cuts(file).joints == ()


@pytest.mark.parametrize(
    ("name", "expected"), [("four_bar.urdf", {"joint3"}), ("six_bar.urdf", {"joint4"}), ("cassie.xml", None)]
)
def test_loops_of_urdf_and_mjcf_files(name: str, expected: set[str] | None) -> None:
    """Faster trees of linkages than the file's; Cassie's rods are cut where they should be (None)."""
    try:
        model = lw.load(name)
    except lw.LoadError:
        pytest.skip(f"{name} is not installed")
    found = lw.best_cuts(name, use="batch")
    assert set(found.joints) == (expected or {c.name for c in model.constraints})
    assert (found.us < 0.9 * found.rule) == (expected is not None)
    assert lw.plan(lw.load(name, cut=found.joints), use="batch").best.predicted["batch"] == found.us
    assert not {*found.joints} & {*model.independent}
