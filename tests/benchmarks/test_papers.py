"""The papers' experiments: declarations are sound and run for one small case, relations are judged as they should."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import linkwork as lw
from linkwork.cli.main import app
from linkwork.errors import NotFound
from linkwork.io import zoo
from linkwork.robots.mechanisms import chain, quadruped
from linkwork_bench import papers, peers
from linkwork_bench.papers import experiment as declarations
from linkwork_bench.papers import mechanisms as shared
from linkwork_bench.papers import proximal_sparse, published, relations
from linkwork_bench.papers import run as running
from linkwork_bench.papers.experiment import Case, Counts, Figures, Paper, Study, Times
from linkwork_bench.papers.mechanisms import accelerations, forward, tube_chain, tube_ladder, tube_stem
from linkwork_bench.papers.sources import where_to_get
from linkwork_bench.records import Record, Results, read
from linkwork_bench.suites import Settings
from surroundings import Environment, Missing

EXPERIMENTS = {e.id: e for p in papers.PAPERS.values() for e in p.experiments}


@pytest.fixture
def bench(tmp_path: Path) -> declarations.Bench:
    nobody = peers.Peers([], None, python=False)
    return declarations.Bench(Settings(rounds=1, budget=0.0, threads=1), nobody, tmp_path, quick=True)


# declarations


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_declarations_are_sound(name: str) -> None:
    e = EXPERIMENTS[name]
    names = [c.name for c in e.cases]
    assert len(set(names)) == len(names)
    assert e.where
    assert e.unit
    assert e.measure
    assert set(e.published) <= set(names), "a published figure of a case that does not exist"
    assert e.relations or e.caveat.startswith("not in the paper"), "every experiment checks something"
    assert all(r.claim and r.where for r in e.relations)
    assert e.published or e.caveat, "what cannot be compared says so"
    assert not e.relative_to or e.relative_to in e.methods
    if e.axis:
        assert any(c.x for c in e.cases)


def test_the_tables_are_complete() -> None:
    assert len(EXPERIMENTS["pv_lqr/table2"].published) == 18
    assert all(len(row) == 7 for row in EXPERIMENTS["pv_lqr/table2"].published.values())
    loops = EXPERIMENTS["lcaba_proxbbo/table2"].published
    assert sum(len([m for m in row if m.startswith("lcaba")]) for row in loops.values()) == 14
    for table in ("table2", "table3", "table4"):
        assert len(EXPERIMENTS[f"clusters/{table}"].published) == 6
    assert {p.name for p in papers.PAPERS.values()} == {
        "pv_lqr",
        "pv_osimr",
        "proximal_sparse",
        "lcaba_proxbbo",
        "clusters",
    }


SMALL = {
    "pv_lqr/fig2c": 0,
    "pv_lqr/fig2d": 0,
    "pv_lqr/fig2f": 0,
    "pv_lqr/fig4a": 0,
    "pv_lqr/fig4c": 0,
    "pv_lqr/table2": 0,
    "pv_osimr/table1": 16,
    "pv_osimr/fig2": 0,
    "pv_osimr/fig3b": 0,
    "proximal_sparse/fig4": 0,
    "proximal_sparse/fig6": 0,
    "proximal_sparse/fig8": 0,
    "proximal_sparse/robustness": 0,
    "proximal_sparse/simulations": 0,
    "proximal_sparse/tasks": 1,
    "lcaba_proxbbo/fig6": 0,
    "lcaba_proxbbo/fig7": 0,
    "lcaba_proxbbo/fig8": 0,
    "lcaba_proxbbo/fig9": 0,
    "lcaba_proxbbo/fig10": 0,
    "lcaba_proxbbo/fig11": 1,
    "clusters/rotors": 0,
    "clusters/fig11": 0,
    "clusters/fig13": 0,
    "clusters/fig14": 0,
}
"""Experiments with a case that is small enough to run here, and which case that is."""


@pytest.mark.parametrize("name", SMALL)
def test_one_case_of_each_experiment_runs(name: str, bench: declarations.Bench) -> None:
    e = EXPERIMENTS[name]
    small = replace(e, cases=(replace(e.cases[SMALL[name]], quick=True),))
    records = [r for step in small.steps(quick=True) for r in step.run(bench)]
    if all("robot file missing" in r.note for r in records):
        pytest.skip(records[0].note)
    assert records
    assert not [r.note for r in records if not r.samples]
    assert {r.method for r in records} <= set(e.methods)
    assert all(r.suite == "papers" and r.function == name for r in records)
    assert Figures(small, records).measured == list(small.cases)
    assert all(r.judge(Figures(small, records)).found for r in e.relations)


def test_a_robot_that_is_not_installed_is_said_and_does_not_stop_the_rest(bench: declarations.Bench) -> None:
    def absent() -> object:
        raise NotFound("no robot called 'nobody'")

    cases = (Case("nobody", "", absent), Case("chain", "", lambda: chain(2)))  # type: ignore[arg-type]
    counts = Counts(id="t/c", title="t", where="w", cases=cases, ways={"aba": forward("aba")})
    times = Times(id="t/t", title="t", where="w", cases=cases, ways={"aba": forward("aba")}, reference=accelerations)
    study = Study(
        id="t/s",
        title="t",
        where="w",
        cases=cases,
        names=("m",),
        measure="x",
        ask=lambda case, quick: [("m", "x", [case.make().nv])],
    )
    for e in (counts, times, study):
        records = [r for step in e.steps(True) for r in step.run(bench)]
        assert [bool(r.samples) for r in records if r.measure != "chain"] == [False, True]
        assert "robot file missing" in records[0].note
        assert Figures(e, records).notes == ["nobody : robot file missing: 'nobody'."]


def test_a_method_that_is_wrong_is_not_timed(bench: declarations.Bench) -> None:
    e = Times(
        id="t/t",
        title="t",
        where="w",
        cases=(Case("quadruped", "", quadruped),),
        ways={"aba": forward("aba")},
        reference=lambda model, states: accelerations(model, states) + 1.0,
    )
    (record,) = e.steps(True)[0].run(bench)
    assert not record.samples
    assert "wrong by" in record.note


def test_parts_add_up_to_the_whole(bench: declarations.Bench) -> None:
    e = replace(EXPERIMENTS["pv_lqr/fig2c"], cases=(Case("quadruped", "one foot", _one_foot),))
    records = [r for step in e.steps(True) for r in step.run(bench)]
    figures = Figures(e, records)
    for method in ("pv", "efpa", "ltl"):
        parts = [r.samples[0] for r in records if r.method == method and r.measure.startswith("part: ")]
        assert len(parts) == 4
        assert min(parts) > 0
        assert sum(parts) == figures.of(e.cases[0], method)


def _one_foot():  # type: ignore[no-untyped-def]
    import linkwork as lw

    return quadruped().with_constraints(lw.point("front_left_foot"))


# relations

CASES = tuple(Case("family", f"{n}", lambda: chain(1), x=float(n)) for n in (1, 2, 4, 8))
TOY = Counts(
    id="toy/toy",
    title="toy",
    where="nowhere",
    cases=CASES,
    ways={"line": forward("aba"), "square": forward("aba"), "low": forward("aba")},
)


def figures_of(**curves: object) -> Figures:
    made = [
        Record("papers", "toy/toy", "family", c.case, 0, 0, "ours", "", m, "operations", [float(f(c.x))])
        for m, f in curves.items()
        for c in CASES
    ]  # type: ignore[operator]
    return Figures(TOY, made)


def test_ratios_values_and_growth_are_judged() -> None:
    f = figures_of(line=lambda x: 10 * x - 7, square=lambda x: 3 * x * x + 5, low=lambda x: 1.0)
    assert relations.ratio("line", "low", 3, 73)(f).holds is True
    verdict = relations.ratio("line", "low", 3, 70)(f)
    assert verdict.holds is False
    assert "family 8: 73" in verdict.found
    assert relations.ratio("line", "low", 3, 70, cases=("family 1", "family 2"))(f).holds is True
    assert relations.growth("line", 0.99, 1.01)(f).holds is True
    assert relations.growth("square", 1.95, 2.05)(f).holds is True
    assert relations.growth("square", high=1.1)(f).holds is False
    assert relations.fastest("low", ("line", "square"))(f).holds is True
    assert relations.fastest("line", ("low",))(f).holds is False
    assert relations.value("low", 1, 1)(f).holds is True
    assert relations.exponent("square", 1.5, 2.0)(f).holds is True
    assert relations.crossing("square", "line", 1, 8)(f).holds is False
    assert relations.ratio("absent", "low")(f).holds is None


def test_crossings_are_found_between_points() -> None:
    f = figures_of(line=lambda x: 12 - x, square=lambda x: x)
    assert relations.crossing("line", "square", 4, 8)(f).holds is True
    assert relations.crossing("line", "square", 1, 3)(f).holds is False


def test_the_tally_counts_what_holds_and_what_is_explained() -> None:
    kept = relations.Relation("a", "w", lambda f: relations.Verdict(True, ""))
    broken = relations.Relation("b", "w", lambda f: relations.Verdict(False, ""), why="because", proof=kept.judge)
    unproven = replace(broken, proof=lambda f: relations.Verdict(False, "it is not so"))
    unknown = relations.Relation("c", "w", lambda f: relations.NOT_MEASURED)
    paper = Paper("toy", "toy", "toy", "none", (replace(TOY, relations=(kept, kept, broken, unproven, unknown)),))
    text = running.tally(running.judge([paper], []))
    assert text == "2 of 4 relations hold, 2 do not (1 for a reason that is measured); 1 not measured in this run"


def test_a_reason_comes_with_what_proves_it() -> None:
    relations_ = [r for e in EXPERIMENTS.values() for r in e.relations]
    assert not [r.claim for r in relations_ if bool(r.why) != (r.proof is not None)]


def test_times_within_noise_of_a_bound_are_undecided() -> None:
    e = Times(id="t/t", title="t", where="w", cases=CASES[:2], ways={}, reference=accelerations)
    near, far = ([1.0 + noise for noise in (-0.1, -0.05, 0.0, 0.05, 0.1, 0.15)], [2.0] * 6)

    def record(case: Case, method: str, samples: list[float]) -> Record:
        return Record("papers", "t/t", case.robot, case.case, 0, 0, "ours", "", method, "latency", samples)

    figures = Figures(
        e,
        [
            record(CASES[0], "a", near),
            record(CASES[0], "b", [1.0] * 6),
            record(CASES[1], "a", far),
            record(CASES[1], "b", [1.0] * 6),
        ],
    )
    assert relations.ratio("a", "b", high=1.0)(figures).undecided == ("family 1",)
    assert relations.fastest("b", ("a",))(figures).undecided == ("family 1",)
    assert relations.ratio("a", "b", 0.5, 3.0)(figures).undecided == ()


def test_slowest_and_every_look_at_all_of_them() -> None:
    f = figures_of(line=lambda x: 10 * x, square=lambda x: x * x, low=lambda x: 1.0)
    assert relations.slowest("line", ("square", "low"))(f).holds is True
    assert relations.slowest("square", ("low",), cases=lambda c: c.x == 1)(f).holds is True
    assert relations.slowest("square", ("low", "line"))(f).holds is False
    good, bad = relations.ratio("line", "low", low=1.0), relations.ratio("low", "line", low=1.0)
    assert relations.every(good, good)(f).holds is True
    assert relations.every(good, bad)(f).holds is False
    assert relations.every(good, relations.ratio("absent", "low"))(f).holds is None


def test_a_missing_robot_says_where_it_can_be_had() -> None:
    files = ("iiwa", "atlas_v4", "shadow_hand", "digit_v3", "cassie.xml", "mini_cheetah", "mit_humanoid_leg", "go1")
    assert all("Public source" in where_to_get(name) for name in files)
    assert "cassie.xml" in where_to_get("cassie.xml")
    assert where_to_get("nobody") == ""


def test_every_case_that_is_skipped_says_where_its_robot_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without any robot files: every case that needs one names it, and a public source of it."""

    def nothing(name: str) -> None:
        raise NotFound(f"no robot '{name}' here")

    monkeypatch.setattr(zoo, "find", nothing)
    skipped = set()
    for e in (e for p in papers.PAPERS.values() for e in p.experiments):
        for case in e.cases:
            try:
                if "links" not in case.case and "branches" not in case.robot:  # these are made, not read
                    case.make()
            except declarations.ABSENT as problem:
                note = e.missing(case, problem).note
                assert "Public source" in note, (e.id, case.name, note)
                skipped.add(case.robot)
    assert len(skipped) > 20


@pytest.mark.parametrize("name", ["pv_lqr/fig2a", "pv_lqr/table2", "lcaba_proxbbo/table2", "clusters/fig14"])
def test_a_run_without_our_robots_says_where_they_can_be_had(
    name: str, bench: declarations.Bench, environment: Environment, tmp_path: Path
) -> None:
    environment["LINKWORK_ROBOTS"] = str(tmp_path)
    shared.robot.cache_clear()
    ours = {"Atlas", "Digit", "MIT Humanoid leg"}
    case = next(c for c in EXPERIMENTS[name].cases if c.robot in ours)
    e = replace(EXPERIMENTS[name], cases=(replace(case, quick=True),))
    notes = {r.note for step in e.steps(True) for r in step.run(bench)}
    shared.robot.cache_clear()
    (note,) = notes
    assert note.startswith("robot file missing: '")
    assert "Public source: " in note


# the algorithms as published


@pytest.mark.parametrize("compute", [published.pv, published.efpa, published.pv_r, published.ltl])
@pytest.mark.parametrize("model", [tube_stem(2, 2, 2), tube_ladder(2, 2, 2)], ids=["stem", "ladder"])
def test_published_forms_give_the_delassus_matrix(compute, model) -> None:  # type: ignore[no-untyped-def]
    q = declarations.random_states(model, 2)["q"]
    right = np.asarray(lw.delassus(model, method="dense", backend="numpy")(q)[0])
    found = np.asarray(published.of(compute)(model)(q)[0])
    assert np.abs(found - right).max() <= 1e-11 * np.abs(right).max()


def test_what_is_not_shared_is_counted_again() -> None:
    model = tube_stem(3, 2, 1)
    assert published.efpa_unshared(model).operations > published.of(published.efpa)(model).operations
    single = tube_chain(4)
    assert published.efpa_unshared(single).operations == published.of(published.efpa)(single).operations


def test_operations_of_factorisations() -> None:
    full, arrow = np.ones((3, 3), bool), np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1]], bool)
    assert proximal_sparse._eliminated(full, range(3)) == (2 + 6) + (1 + 2)
    assert proximal_sparse._eliminated(arrow, [2, 1, 0]) == 2 * (1 + 2)
    assert proximal_sparse._eliminated(arrow, None) == 2 * (1 + 2)
    assert proximal_sparse._eliminated(arrow, [0, 1, 2]) == (2 + 6) + (1 + 2)


# the command line


def test_the_command_writes_figures_and_reports(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("out.jsonl", "out.html", "out.md")}
    done = CliRunner().invoke(
        app,
        [
            "bench",
            "papers",
            "--quick",
            "--alone",
            "--only",
            "lcaba_proxbbo/fig7",
            "--json",
            str(files["out.jsonl"]),
            "--html",
            str(files["out.html"]),
            "--markdown",
            str(files["out.md"]),
        ],
    )
    assert done.exit_code == 0, done.output
    assert "relations hold" in done.output
    assert all(f.stat().st_size > 500 for f in files.values())
    assert {r.function for r in read(files["out.jsonl"]).records} == {"lcaba_proxbbo/fig7"}
    assert "| chain of loops | 2 loops |" in files["out.md"].read_text()


def test_interrupting_keeps_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def stop(self: Counts, case: Case, method: str, bench: object) -> list[Record]:
        seen.append(method)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return [self.record(case, method, "operations", samples=[7.0])]

    monkeypatch.setattr(Counts, "_count", stop)
    done = CliRunner().invoke(
        app,
        [
            "bench",
            "papers",
            "--quick",
            "--alone",
            "--only",
            "lcaba_proxbbo/fig6",
            "--json",
            str(tmp_path / "out.jsonl"),
            "--html",
            str(tmp_path / "out.html"),
        ],
    )
    assert done.exit_code == 130
    assert "stopped" in done.output
    assert len(read(tmp_path / "out.jsonl").records) == 2
    assert (tmp_path / "out.html").is_file()


@pytest.mark.parametrize("words", [["--paper", "nobody"], ["--only", "pv_lqr/fig99"]])
def test_unknown_papers_and_experiments_are_typed_errors(words: list[str]) -> None:
    done = CliRunner().invoke(app, ["bench", "papers", *words])
    assert isinstance(done.exception, NotFound)
    assert "pv_lqr" in str(done.exception)


def test_figures_are_on_disk_as_soon_as_they_are_known(tmp_path: Path, bench: declarations.Bench) -> None:
    results = Results({}, file=tmp_path / "out.jsonl")
    sizes = []
    paper = Paper("toy", "toy", "toy", "none", (replace(TOY, ways={"aba": forward("aba")}),))
    running.measure([paper], bench, results, lambda _: sizes.append((tmp_path / "out.jsonl").stat().st_size))
    assert sizes == sorted(set(sizes))


# one's own robot


@pytest.fixture
def leg(tmp_path: Path) -> str:
    """The file of a robot with four hinges."""
    file = tmp_path / "leg.urdf"
    joints = "".join(
        f'<link name="l{k}"><inertial><mass value="1"/><origin xyz="0.1 0 0.05"/><inertia ixx="0.1" '
        f'iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j{k}" '
        f'type="continuous"><parent link="l{k - 1}"/><child link="l{k}"/><origin xyz="0.3 0 0" '
        f'rpy="0.5 0 {k}"/><axis xyz="0 0 1"/></joint>'
        for k in range(1, 5)
    )
    file.write_text(f'<robot name="leg"><link name="l0"/>{joints}</robot>')
    return str(file)


def test_ones_own_robot(leg: str, tmp_path: Path, environment: Environment, missing: Missing) -> None:
    environment.pop(peers.VARIABLE, None)
    missing("pinocchio")
    out = tmp_path / "out.jsonl"
    done = CliRunner().invoke(
        app,
        [
            "bench",
            "robot",
            leg,
            "--contact",
            "l4:3d",
            "--quick",
            "-m",
            "pv,pv_early,pv_r",
            "--json",
            str(out),
            "--html",
            str(tmp_path / "out.html"),
        ],
    )
    assert done.exit_code == 0, done.output
    found = {(r.function, r.method, r.measure): r for r in read(out).records}
    assert set(found) == {("forward_dynamics", m, x) for m in ("pv", "pv_early") for x in ("latency", "batch")} | {
        ("delassus", m, x) for m in ("pv", "pv_r") for x in ("latency", "batch")
    }
    assert all(r.rows == 3 and r.nv == 4 and r.operations for r in found.values())
    assert read(out).circumstances["default"].keys() == {"forward_dynamics", "delassus"}
    assert "pv_early" in (tmp_path / "out.html").read_text()
    shown = CliRunner().invoke(app, ["bench", "show", str(out)])
    assert "forward dynamics, 4 degrees of freedom, 3 constraint rows" in shown.output


@pytest.mark.parametrize(("words", "offered"), [(["--contact", "nobody:3d"], "l4"), (["-m", "pvv"], "pv_early")])
def test_ones_own_robot_with_names_that_do_not_exist(leg: str, words: list[str], offered: str) -> None:
    done = CliRunner().invoke(app, ["bench", "robot", leg, *words])
    assert isinstance(done.exception, NotFound)
    assert offered in str(done.exception)
