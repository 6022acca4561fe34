"""A function that was compiled before is called again without being traced."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.joints import Revolute
from linkwork.kernels.cache import program_cache
from linkwork.kernels.cache import result_cache as notes
from linkwork.kernels.cache.program_cache import Sketch
from linkwork.model.digest import digest
from linkwork.robots.mechanisms import chain, four_bar, quadruped


def never(*args):
    raise AssertionError("it was traced")


@pytest.mark.parametrize("model", [chain(3), four_bar()], ids=["straight", "iterative"])
def test_the_second_time_nothing_is_traced(empty_cache, monkeypatch, model) -> None:
    state = (model.neutral(), np.zeros(model.nv), np.ones(model.nv))
    first = lw.forward_dynamics(model)(*state).a
    monkeypatch.setattr(lw.functions.function.Function, "_written", never)
    again = lw.forward_dynamics(model)
    assert isinstance(again._cached_program, Sketch)
    assert np.array_equal(again(*state).a, first)


def test_what_is_asked_beyond_ports_comes_from_the_program(empty_cache) -> None:
    model = chain(3)
    first = lw.forward_dynamics(model)
    first(model.neutral(), np.zeros(3), np.zeros(3))
    again = lw.forward_dynamics(model)
    assert again.kernel.operations == first.operations


def test_damaged_notes_are_ignored(empty_cache) -> None:
    model = chain(2)
    state = (model.neutral(), np.zeros(2), np.ones(2))
    expected = lw.forward_dynamics(model)(*state).a
    for path in empty_cache.iterdir():
        data = bytearray(path.read_bytes())
        data[-1] ^= 0xFF
        path.write_bytes(bytes(data))
    again = lw.forward_dynamics(model)
    assert not isinstance(again._cached_program, Sketch)
    assert np.array_equal(again(*state).a, expected)


def test_the_digest_sees_every_part_of_a_model() -> None:
    base = quadruped()
    held = base.with_constraints(lw.point("front_left_foot"))
    variants = [
        base,
        base.with_gravity((0, 0, -1.62)),
        held,
        base.with_constraints(lw.point("front_right_foot")),
        base.with_constraints(lw.surface("front_left_foot")),
        base.with_constraints(lw.point("front_left_foot", stabilisation=lw.Stabilisation())),
        chain(4),
        chain(4, length=0.31),
        chain(4, "prismatic"),
    ]
    digests = [digest(m) for m in variants]
    assert None not in digests
    assert len(set(digests)) == len(variants)
    assert digest(quadruped()) == digest(base)


def test_functions_have_no_digest() -> None:
    model = chain(2).with_constraints(lw.Custom(lambda a, b: a - b, joints=[l.joint_name for l in chain(2).links[1:]]))
    assert digest(model) is None


def test_steps_of_rollouts_and_simulations_are_cached_too(empty_cache, monkeypatch) -> None:
    """And with them the kernel: the second time nothing is compiled either."""
    from linkwork.kernels.calls import rollout
    from linkwork.simulation.steps.constrained_step import Step

    def run():
        model = four_bar()
        rolled = lw.rollout(model, steps=4)(np.tile(model.neutral(), (3, 1)), np.zeros(3))
        return rolled.q, lw.simulate(model, model.neutral(), duration=2e-3).q

    first = run()
    monkeypatch.setattr(Step, "__call__", never)
    monkeypatch.setattr(rollout, "lower_rollout", never)
    for x, y in zip(run(), first, strict=True):
        assert np.array_equal(x, y)
    with pytest.raises(AssertionError, match="traced"):
        lw.rollout(four_bar(), steps=4, stabilisation=True)(four_bar().neutral(), np.zeros(3))


OWN = """
import sys
from dataclasses import dataclass, replace
import linkwork as lw
from linkwork.constraints import Distance
from linkwork.robots.mechanisms import chain

@dataclass(frozen=True)
class Own(Distance):
    def evaluate(self, motion):
        rows = super().evaluate(motion)
        return replace(rows, drift=rows.drift + DRIFT)

model = chain(3)
tip, backend, state, rest = model.links[-1].name, sys.argv[1], [0.3, 0.7, 0.2], [0.0] * 3
rule = lw.Custom(lambda a, b: a * b + DRIFT * a * a - b, ["link1_joint", "link2_joint"])
for own in (Own(tip, "world", 1.0, name="rod"), rule):
    held, contacts = model.with_constraints(own), [lw.Contact(tip)]
    for method in (None, "prox_ltl"):
        f = lw.forward_dynamics(held, method=method, backend=backend)
        print(repr(float(f(state, rest, rest).a[1])))
    print(repr(float(lw.rollout(held, backend=backend)(state, rest, steps=3).v[-1, 1])))
    print(repr(float(lw.rollout(held, contacts=contacts, backend=backend)(state, rest, steps=3).v[-1, 1])))
    print(repr(float(lw.step(held, contacts, backend=backend)(state, rest, rest, 1e-3).v[1])))
    print(repr(float(lw.simulate(held, state, duration=2e-3, backend=backend).v[-1, 1])))
    f = lw.forward_dynamics(held, backend=backend)
    print(repr(float(f.derivatives()(state, [0.1, 0.2, 0.3], rest).da_dq[1].sum())))
    print(repr(float(f.vjp()(state, [0.1, 0.2, 0.3], rest, [0.0, 1.0, 0.0], [0.0]).g_q.sum())))
"""


def test_what_users_write_is_never_cached(empty_cache) -> None:
    """A constraint of their own may do something else in the next run, under the same name and with the same fields."""

    def run(drift: float, backend: str) -> np.ndarray:
        code = OWN.replace("DRIFT", repr(drift))
        done = subprocess.run([sys.executable, "-c", code, backend], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-1000:]
        return np.array(done.stdout.split(), float)

    before = run(0.0, "kernel")
    after = run(5.0, "kernel")
    assert np.abs(after - before).min() > 1e-6
    np.testing.assert_allclose(after, run(5.0, "numpy"), rtol=1e-6)


def test_classes_of_others_have_no_digest() -> None:
    @dataclass(frozen=True)
    class Own(lw.constraints.Distance):
        pass

    class Turning(Revolute):
        pass

    rod = lw.constraints.Distance("a", "b", 1.0)
    assert digest(rod) is not None
    assert digest(Own("a", "b", 1.0)) is None
    assert digest(Revolute("z")) is not None
    assert digest(Turning("z")) is None
    assert digest(np.array([len], object)) is None
    pretending = type("Distance", (lw.constraints.Distance,), {"__module__": lw.constraints.Distance.__module__})
    assert digest(pretending("a", "b", 1.0)) is None


def test_sources_count_where_a_trace_depends_on_them(tmp_path) -> None:
    """Editing a benchmark, the command line or the viewer invalidates nothing; an algorithm, everything."""
    root = Path(lw.__file__).parent
    shutil.copytree(root, tmp_path / "linkwork", ignore=shutil.ignore_patterns("__pycache__"))

    def content() -> list[bytes]:
        return [Path(path).read_bytes() for path in notes.sources(tmp_path / "linkwork")]

    before = content()
    for name in ("cli/main.py", "viewer/server.py", "io/urdf.py", "robots/__init__.py"):
        (tmp_path / "linkwork" / name).open("a").write("# more\n")
        assert content() == before, name
    for name in (
        "algorithms/tree/aba.py",
        "joints/revolute.py",
        "kernels/programs/value_numbering.py",
        "rewrite/rewritten.py",
        "functions/dynamics.py",
    ):
        (tmp_path / "linkwork" / name).open("a").write("# more\n")
        assert content() != before, name
        before = content()


def test_all_that_runs_in_a_trace_is_among_the_sources(environment) -> None:
    environment["LINKWORK_CACHE"] = "off"
    root, ran = str(Path(lw.__file__).parent), set()
    _ = lw.forward_dynamics, lw.mass_matrix, lw.plan  # imported before the trace
    standing = quadruped().with_constraints(lw.point("front_left_foot"))
    models = chain(2), four_bar(), standing
    rolling = [lw.rollout(model, stabilisation=True) for model in models]
    _ = lw.forward_dynamics, lw.mass_matrix, lw.plan  # names are looked up by the package when they are first used
    program_cache.invalidate()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: ran.add(frame.f_code.co_filename))
    try:
        for model, rolled in zip(models, rolling, strict=True):
            lw.forward_dynamics(model).traced()
            lw.mass_matrix(model).traced()
            _ = rolled.step.traced
        lw.plan(models[1])
    finally:
        sys.setprofile(before)
    ours = {path for path in ran if path.startswith(root)}
    assert len(ours) > 30
    assert ours <= {str(Path(path)) for path in notes.sources(Path(root))}
