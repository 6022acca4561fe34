"""The benchmarks without a clock: inputs, checks, records, tables and the command line."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import linkwork as lw
from linkwork.cli.bench import relative_errors
from linkwork.cli.main import app
from linkwork.errors import InputError, LinkworkError, LoadError, NotFound
from linkwork_bench import inputs, measure, ours, peers, records, suites
from linkwork_bench.lines import lines
from linkwork_bench.targets import targets
from surroundings import Environment, Missing, Typed

PLACE = "0 0 0 1 0 0 0 1 0 0 0 1"
MODEL = f"""pbmodel 1
name toy
nq 10
nv 9
gravity 0.0 0.0 -9.81
njoints 4
joint 1 0 F 0 0 0 {PLACE} 5.0 0.01 0.0 0.02 0.1 0.0 0.2 0.0 0.0 0.15 0.0 root
joint 2 1 R 0 1 0 0.2 0.1 0 1 0 0 0 1 0 0 0 1 1.0 0 0 -0.1 0.01 0 0.01 0 0 0.01 0.003 hip
joint 3 2 R 0.6 0 0.8 0 0 -0.2 1 0 0 0 1 0 0 0 1 0.7 0 0.01 -0.1 0.01 0.001 0.01 0 0 0.01 0.0 knee
joint 4 1 P 0 0 1 -0.2 0 0 1 0 0 0 1 0 0 0 1 0.5 0 0 0 0.01 0 0.01 0 0 0.01 0.0 lift
ncases 4
case none 0
case 1x3D 1
con 3 3 0 0 -0.2 1 0 0 0 1 0 0 0 1 0 {PLACE}
case 1x6D 1
con 6 3 0 0 -0.2 1 0 0 0 1 0 0 0 1 0 {PLACE}
case loop 1
con 3 3 0 0 -0.2 1 0 0 0 1 0 0 0 1 4 0 0 -0.3 1 0 0 0 1 0 0 0 1
end
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs as the harness writes them, with reference accelerations from Pinocchio's conventions and ours."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "toy.model").write_text(MODEL)
    model, _ = inputs.read_model(folder / "toy.model")
    rng = np.random.default_rng(1)
    q = np.array([model.random_q(rng) for _ in range(300)])
    states = np.hstack([q, rng.uniform(-1, 1, (300, 2 * model.nv))])
    states.astype("<f8").tofile(folder / "toy.states")
    robot = inputs.read_robot(folder, "toy")
    for case in robot.cases:
        solve = lw.forward_dynamics(robot.constrained(case), method="kkt", backend="numpy")
        np.asarray(solve(robot.q, robot.v, robot.tau)[0]).astype("<f8").tofile(folder / f"toy__{case}.qdd")
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """The same for one test, which may damage it."""
    return Path(shutil.copytree(written, tmp_path / "inputs"))


@pytest.fixture
def robot(folder: Path) -> inputs.Robot:
    return inputs.read_robot(folder, "toy")


NOBODY = peers.Peers([], None)


@pytest.fixture
def alone(environment: Environment, missing: Missing) -> None:
    """A machine without peers."""
    environment.pop(peers.VARIABLE, None)
    missing("pinocchio")


BRIEF = suites.Settings(rounds=1, budget=0.0, threads=2)


class Clockwork:
    """A contender that takes as long as it is told."""

    def __init__(self, us: list[float], share: float = 1.0) -> None:
        self.us, self.share, self.calls = us, share, 0

    def round(self, budget: float) -> measure.Reading:
        self.calls += 1
        return measure.Reading(self.us[(self.calls - 1) % len(self.us)], self.share)


# inputs


def test_a_model_file_becomes_the_same_robot(robot: inputs.Robot) -> None:
    assert (robot.model.nq, robot.model.nv, robot.q.shape, robot.tau.shape) == (10, 9, (300, 10), (300, 9))
    assert [l.joint.kind for l in robot.model.links[1:]] == ["free", "revolute", "revolute", "prismatic"]
    assert robot.model.links[2].armature == pytest.approx([0.003])
    assert {case: robot.constrained(case).rows for case in robot.cases} == {"none": 0, "1x3D": 3, "1x6D": 6, "loop": 3}
    assert robot.constrained("loop").constraints[0].touches(robot.model) == (3, 4)
    assert np.linalg.norm(robot.q[:, 3:7], axis=1) == pytest.approx(1)


def test_the_tree_agrees_with_pinocchio(robot: inputs.Robot) -> None:
    pin = pytest.importorskip("pinocchio")
    from linkwork.interop.pinocchio_ import to_pinocchio

    model = to_pinocchio(robot.model)
    data = model.createData()
    theirs = np.array([pin.aba(model, data, *s).copy() for s in zip(robot.q, robot.v, robot.tau, strict=True)])
    assert relative_errors(theirs, robot.reference("none")).max() < 1e-10


def test_the_delassus_matrix_agrees_with_pinocchio(robot: inputs.Robot) -> None:
    pin = pytest.importorskip("pinocchio")
    from linkwork.interop.pinocchio_ import to_pinocchio

    model = to_pinocchio(robot.model)
    data = model.createData()
    for case, rows in (("1x3D", 3), ("1x6D", 6)):
        frame = model.getFrameId(robot.constrained(case).constraints[0].a)  # type: ignore[attr-defined]
        theirs = []
        for q in robot.q[:20]:
            M = pin.crba(model, data, q)
            M = np.triu(M) + np.triu(M, 1).T
            J = pin.computeFrameJacobian(model, data, q, frame, pin.ReferenceFrame.LOCAL)[:rows]
            theirs.append(J @ np.linalg.solve(M, J.T))
        ours_ = lw.delassus(robot.constrained(case), method="pv")(robot.q[:20])[0]
        assert relative_errors(np.asarray(ours_), np.array(theirs)).max() < 1e-10


@pytest.mark.parametrize(
    ("sound", "damaged"),
    [
        ("joint 2 1 R 0 1 0", "joint 2 1 R 0"),
        ("con 3", "con 4"),
        ("case loop 1", "case loop 7"),
        ("joint 3 2", "joint 3 9"),
    ],
)
def test_a_damaged_model_file_is_refused(tmp_path: Path, sound: str, damaged: str) -> None:
    assert sound in MODEL
    (tmp_path / "bad.model").write_text(MODEL.replace(sound, damaged))
    with pytest.raises(LoadError, match=r"bad\.model"):
        inputs.read_model(tmp_path / "bad.model")


def test_unknown_names_are_typed_errors(robot: inputs.Robot, folder: Path) -> None:
    with pytest.raises(NotFound, match="toy"):
        inputs.read_robot(folder, "tyo")
    with pytest.raises(NotFound, match="1x3D"):
        suites.constrained_jobs([robot], ["9x9D"])
    with pytest.raises(NotFound, match="aba"):
        suites.kernel_jobs([robot], ["abba"])
    with pytest.raises(NotFound, match="pv"):
        suites.constrained_jobs([robot], [], ["pvv"])
    with pytest.raises(NotFound, match="toy"):
        suites.find_robots(["nobody"], peers.Peers([], folder), ())


# measuring


def test_the_interval_is_that_of_order_statistics() -> None:
    s = measure.summary([float(x) for x in range(1, 12)])
    assert (s.median, s.low, s.high) == (6.0, 2.0, 10.0)  # 98.8 % for ranks 2 and 10 of 11
    assert measure.summary([3.0, 1.0, 2.0]) == measure.Summary(2.0, 1.0, 3.0)


def test_contenders_take_turns_and_ratios_are_taken_by_round() -> None:
    slow, fast = Clockwork([8.0, 80.0, 8.0]), Clockwork([2.0, 20.0, 2.0])
    readings = measure.interleave({"slow": slow, "fast": fast}, 3, 0.0)
    samples = {name: [r.us for r in rs] for name, rs in readings.items()}
    assert measure.ratio(samples["slow"], samples["fast"]) == measure.Summary(4.0, 4.0, 4.0)


def test_a_disturbed_reading_is_tried_again() -> None:
    busy, calm = Clockwork([1.0], share=0.5), Clockwork([1.0])
    measure.interleave({"busy": busy, "calm": calm}, 2, 0.0)
    assert (busy.calls, calm.calls) == (2 * measure.TRIES, 2)


def test_passes_last_as_long_as_asked() -> None:
    calls: list[int] = []
    measure.passes(lambda: calls.append(1), 1, 0.0, span=1e-3)
    assert len(calls) > 1 + measure.MIN_PASSES


def test_circumstances_are_recorded() -> None:
    facts = measure.circumstances()
    assert {"date", "cpu", "cores", "governor", "load", "versions"} <= set(facts)
    assert {"casadi", "llvmlite", "numpy"} <= set(facts["versions"])


# our side


def test_native_loops_visit_every_state_and_compute_the_same(robot: inputs.Robot) -> None:
    for job in [*suites.kernel_jobs([robot]), *suites.constrained_jobs([robot], ["1x3D"], ["constrained_aba", "ltl"])]:
        for method in job.methods:
            entry = job.entry(method, job.make(method))
            expected = entry.function(*entry.inputs)[0].reshape(len(robot.q), -1)
            single = ours.Native(entry.kernel(lanes=1), entry.controls(), single=True)
            single.sweep()
            np.testing.assert_allclose(single.outputs[0][0], expected[-1], rtol=1e-9, atol=1e-9)
            batch = ours.Native(entry.kernel(), entry.controls(), single=False)
            batch.sweep()
            tail = len(robot.q) % ours.BLOCK
            np.testing.assert_allclose(batch.outputs[0][:tail], expected[-tail:], rtol=1e-9, atol=1e-9)


def test_one_state_runs_the_scalar_code(robot: inputs.Robot) -> None:
    entry = suites.kernel_jobs([robot], ["aba"])[0]
    native = entry.entry("aba", entry.make("aba")).contenders(["latency", "batch"], 1)
    assert native["latency"][1].lanes == 1
    assert native["batch"][1].lanes > 1 or native["batch"][1].target.lanes("float64") == 1


def test_results_are_checked_before_anything_is_timed(robot: inputs.Robot, folder: Path, alone: None) -> None:
    wrong = np.fromfile(folder / "toy__none.qdd") + 1.0
    wrong.tofile(folder / "toy__none.qdd")
    for job in suites.kernel_jobs([robot]):
        found = suites.run(job, NOBODY, BRIEF)
        assert found
        assert all(not r.samples and r.note.startswith("not timed: wrong by") for r in found)


def test_nan_is_infinitely_wrong() -> None:
    norm, entrywise = suites.errors(np.array([[np.nan, 1.0], [1.0, 1.0]]), np.ones((2, 2)))
    assert list(norm) == [np.inf, 0.0]
    assert list(entrywise) == [np.inf, 0.0]


def test_both_sides_are_judged_on_the_same_states() -> None:
    assert peers.checked_states(1000) == list(range(0, 1000, 5))
    assert peers.checked_states(3) == [0, 1, 2]


def test_every_suite_has_its_rows(robot: inputs.Robot, alone: None) -> None:
    """Threads are measured once: while other tests keep the cores busy, each of their readings is tried many times."""
    first, *others = suites.kernel_jobs([robot])
    assert all(job.measures == first.measures for job in others)
    brief = ("latency", "batch", "limit", "float32")
    jobs = [first, *(replace(job, measures=brief) for job in others)]
    found = [r for job in jobs for r in suites.run(job, NOBODY, BRIEF)]
    assert {(r.function, r.measure) for r in found if r.samples} == {
        *product(("rnea", "crba", "aba"), brief),
        *product(("rnea",), ("one", "threads", "one core", "cores")),
    }
    assert [line.function for line in lines(found)] == ["rnea", "crba", "aba"]
    jobs = suites.constrained_jobs([robot], [], ["constrained_aba", "ltl", "prox_pv"])
    assert [j.case for j in jobs] == ["none", "1x3D", "1x6D", "loop"]
    assert "constrained_aba" not in jobs[-1].methods
    jobs = suites.delassus_jobs([robot], [], ["pv", "ltl"])
    assert [j.case for j in jobs] == ["1x3D", "1x6D", "loop"]
    found = suites.run(jobs[0], NOBODY, BRIEF)
    assert all(r.samples and r.error is not None and r.error < 1e-8 for r in found)


def test_a_quick_run_measures_what_the_planner_picks(robot: inputs.Robot) -> None:
    """Of all methods; those that are named are measured anyway."""
    job = suites.constrained_jobs([robot], ["1x3D"], quick=True)[0]
    picked = {lw.plan(robot.constrained("1x3D"), use=use).method for use in ("state", "batch")}
    assert set(job.contenders()) == picked < set(job.methods)
    named = suites.constrained_jobs([robot], ["1x3D"], ["kkt", "ltl"], quick=True)[0]
    assert {*named.contenders()} == {"kkt", "ltl"}
    assert suites.constrained_jobs([robot], ["1x3D"])[0].contenders() == job.methods


# the peers


def harness(folder: Path, tmp: Path, arch: str = "-march=native", error: str = "1e-9") -> Path:
    """A build folder whose program answers like the harness."""
    build = tmp / f"build{arch[-2:]}"
    build.mkdir()
    (build / "inputs").symlink_to(folder)
    (build / "CMakeCache.txt").write_text(f"PB_ARCH:STRING={arch}\n")
    script = build / "pin_bench"
    script.write_text(f"""#!/bin/sh
for a in aba-local aba-world slow-aba; do
  us=2.0; [ $a = aba-world ] && us=1.9
  echo "check,pinocchio-0,$a,$2,$4,9,0,1e-12,{error},1.0"
  echo "time,pinocchio-0,$a,$2,$4,9,0,$us"
done
""")
    script.chmod(0o755)
    return build


def test_the_harness_competes_with_what_may_be_fastest(robot: inputs.Robot, folder: Path, tmp_path: Path) -> None:
    found = peers.find([harness(folder, tmp_path), harness(folder, tmp_path, "-march=x86-64")])
    assert [b.role for b in found.builds] == ["best", "wheel"]
    rivals = found.fastest("aba", robot, "none", peers.Host())
    assert [(p.role, p.algorithm) for p in rivals] == [
        ("best", "aba-world"),
        ("best", "aba-local"),
        ("wheel", "aba-world"),
        ("wheel", "aba-local"),
    ]
    assert rivals[0].contender.round(0.0).us == 1.9
    job = replace(suites.kernel_jobs([robot], ["aba"])[0], measures=("latency", "batch"))
    line = lines(suites.run(job, found, BRIEF))[0]
    assert line.best is not None
    assert (line.best.method, line.best.us) == ("aba-world", 1.9)
    assert line.ratio("best", "latency") is not None


def test_a_peer_that_is_wrong_does_not_compete(robot: inputs.Robot, folder: Path, tmp_path: Path) -> None:
    found = peers.find([harness(folder, tmp_path, error="nan")])
    assert found.fastest("aba", robot, "none", peers.Host()) == []


def test_absent_peers_are_said_clearly(alone: None, tmp_path: Path) -> None:
    assert "only our own figures" in peers.find().note
    with pytest.raises(InputError, match="pin_bench"):
        peers.find([tmp_path])


def test_python_bindings_say_what_a_call_costs(robot: inputs.Robot) -> None:
    pytest.importorskip("pinocchio")
    for function, case in (("aba", "none"), ("forward_dynamics", "1x6D"), ("rnea", "none")):
        (found,) = peers.python_peers(function, robot, case, peers.Host())
        assert "a call alone takes" in found.note
        assert found.role == "python"
    assert peers.python_peers("delassus", robot, "1x6D", peers.Host()) == []


# records, tables, command line


def record(us: list[float], **changes: object) -> records.Record:
    facts: dict[str, object] = {
        "suite": "kernels",
        "function": "aba",
        "robot": "toy",
        "case": "none",
        "nv": 9,
        "rows": 0,
        "role": "ours",
        "library": "linkwork",
        "method": "aba",
        "measure": "latency",
        "samples": us,
    }
    return records.Record(**{**facts, **changes})  # type: ignore[arg-type]


def test_results_go_to_disk_and_back(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    results = records.Results({"date": "today"}, file=file)
    results.add([record([1.0, 2.0], shares=[1.0, 0.9]), record([], note="not timed", role="best")])
    again = records.read(file)
    assert again.records == results.records
    assert again.circumstances == {"date": "today"}
    assert json.loads(file.read_text().splitlines()[0])["format"] == records.FORMAT
    file.write_text("{}\n")
    with pytest.raises(InputError, match="not a file of benchmark results"):
        records.read(file)
    with pytest.raises(InputError, match="cannot read"):
        records.read(tmp_path / "none")
    with pytest.raises(InputError, match="cannot write"):
        records.Results({}, file=tmp_path / "none" / "file")


def test_two_runs_are_compared_figure_by_figure() -> None:
    before = records.Results({}, [record([4.0, 4.1, 4.2]), record([1.0], measure="batch"), record([5.0], robot="gone")])
    after = records.Results({}, [record([2.0, 2.0, 2.1]), record([1.0], measure="batch"), record([5.0], robot="new")])
    first, second = records.compare(before, after)
    assert (first.ratio, first.certain) == (pytest.approx(4.1 / 2.0), True)
    assert (second.ratio, second.certain) == (1.0, False)


def test_targets_need_the_best_build() -> None:
    mine = [record([1.0, 1.0])]
    best = [*mine, record([3.0, 3.0], role="best", method="aba-local")]
    python = [*mine, record([9.0, 9.0], role="python")]
    reached = {t.text: t for t in targets("kernels", lines(best), best)}
    assert reached["one state: aba against the best build, geometric mean"].value == pytest.approx(3.0)
    assert reached["one state: aba against the best build, geometric mean"].met
    assert reached["one state: aba against the wheel, geometric mean"].met is None
    assert not any(t.met for t in targets("kernels", lines(python), python))


def test_scaling_is_not_judged_on_a_busy_machine() -> None:
    rows = [record([2.0], measure="one", shares=[1.0]), record([2.0], measure="threads", shares=[0.5])]
    verdict = next(t for t in targets("kernels", lines(rows), rows) if "threads" in t.text)
    assert verdict.met is None
    assert "busy" in verdict.text


def test_the_command_line_measures_shows_and_compares(folder: Path, tmp_path: Path, environment: Environment) -> None:
    build = harness(folder, tmp_path)
    environment[peers.VARIABLE] = str(build)
    file = str(tmp_path / "run.jsonl")
    run = CliRunner()
    done = run.invoke(app, ["bench", "kernels", "-r", "toy", "-f", "aba", "--quick", "--rounds", "1", "--json", file])
    assert done.exit_code == 0, done.output
    for text in ("toy", "aba-world", "geometric means", "targets", "no build like pip's wheel"):
        assert text in done.output
    shown = run.invoke(app, ["bench", "show", file])
    assert "aba-world" in shown.output
    same = run.invoke(app, ["bench", "compare", file, file, "--all"])
    assert same.exit_code == 0
    assert "geometric mean 1.000 x" in same.output


def test_wrong_robots_end_with_one_sentence(folder: Path, tmp_path: Path, type_command: Typed) -> None:
    build = str(harness(folder, tmp_path))
    code, said = type_command("linkwork", "bench", "kernels", "-r", "tyo", "--peers", build)
    assert code == 2
    assert "Did you mean 'toy'" in said


def test_interrupting_keeps_what_was_measured(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[suites.Job] = []

    def second_time_interrupted(job: suites.Job, *_: object) -> list[records.Record]:
        seen.append(job)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return [record([1.0], function=job.function)]

    monkeypatch.setattr(suites, "run", second_time_interrupted)
    file = tmp_path / "run.jsonl"
    done = CliRunner().invoke(
        app,
        [
            "bench",
            "kernels",
            "-r",
            "toy",
            "--quick",
            "--rounds",
            "1",
            "--json",
            str(file),
            "--peers",
            str(harness(folder, tmp_path)),
        ],
    )
    assert done.exit_code == 130
    assert "stopped" in done.output
    assert {r.function for r in records.read(file).records} == {"rnea"}


@pytest.mark.skipif(not (sys.platform.startswith("linux") and shutil.which("cc")), reason="needs Linux and cc")
def test_processor_time_does_not_pass_while_waiting() -> None:
    wait = "import time; b = time.perf_counter(); time.sleep(0.3); print(time.perf_counter() - b)"
    with measure.processor_time() as environment:
        assert float(peers.Host(environment=environment).run([sys.executable, "-c", wait])) < 0.15
    assert float(peers.Host().run([sys.executable, "-c", wait])) > 0.25


def test_processor_time_needs_a_compiler(environment: Environment) -> None:
    environment["PATH"] = ""
    with pytest.raises(LinkworkError, match="C compiler"), measure.processor_time():
        pass


def test_rollouts_beside_their_dynamics_and_mj_step(tmp_path) -> None:
    """Both sides stand on the same feet; the figures go into the table and the file."""
    pytest.importorskip("mujoco")
    out = tmp_path / "rollout.json"
    options = ["--quick", "--rounds", "1", "--robots", "go1", "--json", str(out)]
    shown = CliRunner().invoke(app, ["bench", "rollout", *options])
    assert shown.exit_code == 0, shown.output
    assert "MuJoCo does more" in shown.output
    facts, found = (json.loads(line) for line in out.read_text().splitlines())
    assert facts["clock"] == "time"
    assert found["robot"] == "Go1 on four feet"
    assert set(found["us"]) == {"bare dynamics", "rollout", "tau over time", "every step recorded", "mj_step"}


def test_the_bare_dynamics_are_those_of_the_rollout() -> None:
    from linkwork.simulation.rollouts.rollout import rollout
    from linkwork_bench.rollouts import DT, bare, contest

    case = contest("go1")
    run = rollout(case.model, dt=DT, record=("a",))
    tau = np.random.default_rng(0).normal(size=case.model.nv)
    a = run(case.q, np.zeros(case.model.nv), tau, steps=1).a[0]
    np.testing.assert_allclose(bare(run)(case.q, np.zeros(case.model.nv), tau).a, a, rtol=1e-9, atol=1e-9)


def test_other_robots_are_refused() -> None:
    from linkwork.errors import NotFound
    from linkwork_bench.rollouts import contest

    with pytest.raises(NotFound, match="cassie"):
        contest("talos")


def test_the_planner_is_judged_and_says_early_if_results_cannot_be_written(tmp_path: Path) -> None:
    ask = ["bench", "planner", "--mechanisms", "four_bar", "--rounds", "2", "--json"]
    done = CliRunner().invoke(app, [*ask, str(tmp_path / "found.jsonl")])
    assert done.exit_code == 0
    assert "cases: 1" in done.output
    assert len((tmp_path / "found.jsonl").read_text().splitlines()) == 1
    failed = CliRunner().invoke(app, [*ask, str(tmp_path / "nowhere" / "found.jsonl")])
    assert "cannot write results" in str(failed.exception or failed.output)
