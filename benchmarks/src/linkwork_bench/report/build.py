"""From results to a report: the papers' experiments beside what was published, the other suites beside the peers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwork_bench.measure import geometric_mean
from linkwork_bench.papers import PAPERS
from linkwork_bench.papers.experiment import SUITE, Case, Counts, Experiment, Figures, Paper, Times
from linkwork_bench.papers.run import Judged, judge, tally
from linkwork_bench.records import Record, Results
from linkwork_bench.report.page import Bars, Cell, Curve, Dot, Dots, Head, Lines, Page, Row, Section, Sheet, number
from linkwork_bench.tables import NOTES, Line, lines

PEER_NAMES = {
    "best": "Pinocchio",
    "wheel": "Pinocchio, pip's build",
    "python": "Pinocchio from Python",
    "mujoco": "MuJoCo",
}
ROBOT = "robot"
"""The suite of `linkwork bench robot`."""
SIGNS = {True: "holds", False: "does not hold", None: "not measured"}


def page_of(results: Results) -> Page:
    """The report of a run."""
    sections: list[Section] = []
    highlights: list[tuple[str, str]] = []
    mine = [r for r in results.records if r.suite == SUITE]
    papers = [p for p in PAPERS.values() if any(r.function.startswith(f"{p.name}/") for r in mine)]
    if papers:
        judged = judge(papers, mine)
        sections.append(_overview(papers, judged))
        for paper in papers:
            sections += _paper(paper, mine, [j for j in judged if j.experiment in paper.experiments])
        highlights += _papers_in_short(judged)
    sections += robot_sections(results)
    for suite in dict.fromkeys(r.suite for r in results.records if r.suite not in (SUITE, ROBOT)):
        records = [r for r in results.records if r.suite == suite]
        sections.append(_suite(suite, records))
        highlights += _suite_in_short(suite, records)
    return Page("Linkwork benchmarks", circumstances_text(results.circumstances), sections, highlights)


def circumstances_text(facts: dict[str, Any]) -> list[str]:
    """Where and when, in a few sentences."""
    versions = ", ".join(f"{k} {v}" for k, v in facts.get("versions", {}).items())
    load = facts.get("load") or []
    date = str(facts.get("date", "")).replace("T", " ")[:16]
    out = [
        f"{date} on {facts.get('cpu', 'an unknown processor')}, {facts.get('cores', '?')} cores, "
        f"load {load[0] if load else '?'} at the start; {facts.get('clock', 'time')}.",
        versions,
    ]
    return [text for text in out if text]


# papers


def _overview(papers: Sequence[Paper], judged: Sequence[Judged]) -> Section:
    heads = [
        Head("paper", number=False),
        Head("experiments"),
        Head("relations hold"),
        Head("do not"),
        Head("of these explained"),
        Head("not measured"),
    ]
    rows = []
    for p in papers:
        own = [j for j in judged if j.experiment in p.experiments]
        holds, fails, unknown = ([j for j in own if j.verdict.holds is x] for x in (True, False, None))
        explained = sum(bool(j.relation.why) for j in fails)
        counts = [len(p.experiments), len(holds), len(fails), explained, len(unknown)]
        rows.append(Row([Cell(p.citation), *(Cell(str(n), n) for n in counts)]))
    text = [
        f"{tally(judged)}.",
        "A relation is what a paper states in words or in a table; its tolerance is in its text. "
        "Operation counts are exact. Times are of compiled kernels, one state at a time on one core, in turns with "
        "the others of their row; published times are of other machines.",
    ]
    return Section("papers", "The papers' claims", text, sheets=[Sheet(heads, rows)])


def _paper(paper: Paper, records: Sequence[Record], judged: Sequence[Judged]) -> list[Section]:
    text = [f"Their machine: {paper.machine}.", f"{tally(judged)}."]
    timed = [r for r in records if r.function.startswith(f"{paper.name}/") and r.shares]
    if doubt := sum(r.disturbed for r in timed):
        text.append(
            f"{doubt} of {len(timed)} times had to share their core with other work: they are in doubt, and so "
            "are relations between them."
        )
    head = Section(paper.name, paper.citation, text, sheets=[_relations(judged)], short=paper.short)
    return [head, *(s for e in paper.experiments if (s := _experiment(e, Figures(e, records))))]


def _relations(judged: Sequence[Judged]) -> Sheet:
    heads = [
        Head("", number=False),
        Head("claim", number=False),
        Head("where", number=False),
        Head("found", number=False),
        Head("why not", number=False),
    ]
    rows = []
    for j in judged:
        kind = {True: "good", False: "bad", None: "open"}[j.verdict.holds]
        why = (j.relation.why or "not explained yet") if j.verdict.holds is False else ""
        order = {True: 1.0, False: 0.0, None: 2.0}[j.verdict.holds]
        where = ", ".join(dict.fromkeys((j.experiment.where, j.relation.where)))
        rows.append(
            Row(
                [
                    Cell(SIGNS[j.verdict.holds], order, kind),
                    Cell(j.relation.claim),
                    Cell(where),
                    Cell(j.verdict.found),
                    Cell(why),
                ]
            )
        )
    return Sheet(heads, rows, "Relations")


def _experiment(e: Experiment, figures: Figures) -> Section | None:
    cases = figures.measured
    if not figures.records:
        return None
    text = [f"{e.where[0].upper()}{e.where[1:]}." + (f" {e.caveat[0].upper()}{e.caveat[1:]}." if e.caveat else "")]
    plots = [p for p in (_plot(e, figures, cases),) if p is not None]
    sheets = [_table(e, figures, cases)] if cases else []
    return Section(e.id.replace("/", "-"), e.title, text, plots, sheets, figures.notes, 3, f"{e.where}: {e.title}")


def _table(e: Experiment, figures: Figures, cases: Sequence[Case]) -> Sheet:
    """Ours, the published figure and their ratio, method by method."""
    heads = [Head("robot", number=False), Head("case", number=False)]
    published = {m for row in e.published.values() for m in row}
    shown = [m for m in e.methods if m != e.relative_to]
    peers = _peer_columns(figures)
    for m in shown:
        heads.append(Head(f"{m}, {e.unit}" if e.unit == "%" else m, m))
        heads += [Head("paper", m), Head("x" if e.unit != "%" else "ours / paper", m)] if m in published else []
    heads += [Head(name, name) for name in peers]
    heads += [Head(f"{m} (paper)", m) for m in sorted(published - set(e.methods))]
    rows = []
    for c in cases:
        cells = [Cell(c.robot), Cell(c.case, c.x)]
        for m in shown:
            ours = figures.shown(c, m)
            cells.append(Cell(_shown(ours, e.unit), ours, "ours", _spread(figures, c, m)))
            if m in published:
                theirs = e.published.get(c.name, {}).get(m)
                cells.append(Cell(_shown(theirs, e.unit), theirs, "paper"))
                ratio = _ratio(ours, theirs, e.unit)
                cells.append(Cell(number(ratio), ratio, "ratio"))
        cells += [Cell(number(x), x, "paper") for x in (peers[n].get(c.name) for n in peers)]
        for m in sorted(published - set(e.methods)):
            theirs = e.published.get(c.name, {}).get(m)
            cells.append(Cell(number(theirs), theirs, "paper"))
        rows.append(Row(cells, c.robot))
    return Sheet(heads, rows, f"{e.unit}; x: published / ours" if published and e.unit != "%" else e.unit)


def _shown(x: float | None, unit: str) -> str:
    return "" if x is None else f"{x:+.1f}" if unit == "%" else number(x)


def _ratio(ours: float | None, theirs: float | None, unit: str) -> float | None:
    """How many times less ours is; of percentages, what the two times differ by."""
    if ours is None or theirs is None:
        return None
    return (100 + ours) / (100 + theirs) if unit == "%" else theirs / ours if ours else None


def _spread(figures: Figures, case: Case, method: str) -> str:
    found = [
        r
        for r in figures.records
        if (r.robot, r.case, r.method) == (case.robot, case.case, method)
        and r.measure == figures.experiment.measure
        and len(r.samples) > 1
    ]
    if not found:
        return ""
    s, n = found[0].summary, found[0].operations
    return f"{number(s.low)} .. {number(s.high)}" + (f"; {n} operations" if n else "")


def _peer_columns(figures: Figures) -> dict[str, dict[str, float]]:
    """The peers' best figure by case, for each that ran."""
    out: dict[str, dict[str, float]] = {}
    for r in figures.records:
        if r.role in PEER_NAMES and r.samples:
            column = out.setdefault(PEER_NAMES[r.role], {})
            name = f"{r.robot} {r.case}".strip()
            column[name] = min(column.get(name, r.us), r.us)
    return out


def _plot(e: Experiment, figures: Figures, cases: Sequence[Case]) -> Lines | Dots | Bars | None:
    if e.axis:
        curves = []
        for robot in dict.fromkeys(c.robot for c in cases):
            for m in e.methods:
                points = sorted((c.x, y) for c in cases if c.robot == robot and c.x and (y := figures.of(c, m)))
                if len(points) > 1:
                    curves.append(Curve(m, points, robot))
        return Lines(e.title, e.axis, e.unit, curves) if curves else None
    if isinstance(e, Counts):
        rows = [
            (c.robot, c.case, m, _parts(figures, c, m))
            for c in cases
            for m in e.methods
            if figures.of(c, m) is not None
        ]
        return Bars(e.title, e.unit, rows) if rows else None
    if isinstance(e, Times):
        rows_ = [(c.robot, c.case, _dots(e, figures, c)) for c in cases]
        return Dots(e.title, e.unit, [r for r in rows_ if r[2]], log=e.unit != "%")
    return None


def _parts(figures: Figures, c: Case, method: str) -> list[tuple[str, float]]:
    names = [
        r.measure
        for r in figures.records
        if r.measure.startswith("part: ") and (r.robot, r.case, r.method) == (c.robot, c.case, method)
    ]
    parts = [(n.removeprefix("part: "), x) for n in names if (x := figures.of(c, method, n)) is not None]
    return parts or [("all", figures.of(c, method) or 0.0)]


def _dots(e: Experiment, figures: Figures, c: Case) -> list[Dot]:
    out = []
    for m in e.methods:
        if m != e.relative_to and (x := figures.shown(c, m)) is not None:
            out.append(Dot(m, x))
    out += [Dot(m, x, hollow=True) for m, x in e.published.get(c.name, {}).items() if m != e.relative_to]
    return out + [Dot(name, column[c.name]) for name, column in _peer_columns(figures).items() if c.name in column]


def _papers_in_short(judged: Sequence[Judged]) -> list[tuple[str, str]]:
    holds, fails = (sum(j.verdict.holds is x for j in judged) for x in (True, False))
    known = sum(j.verdict.holds is False and bool(j.relation.why) for j in judged)
    out = [(f"{holds} of {holds + fails}", "statements of the papers hold here")]
    return [*out, (str(fails), f"do not; {known} of them explained")] if fails else out


# the user's robot


def robot_sections(results: Results) -> list[Section]:
    """Every method of one robot, the fastest first, the peers among them."""
    records, out = [r for r in results.records if r.suite == ROBOT], []
    defaults = results.circumstances.get("default", {})
    for function, robot in dict.fromkeys((r.function, r.robot) for r in records):
        group = [r for r in records if (r.function, r.robot) == (function, robot)]
        out.append(_methods_of(function, robot, group, defaults.get(function, "")))
    return out


def _methods_of(function: str, robot: str, records: Sequence[Record], default: str) -> Section:
    heads = [
        Head("method", number=False),
        Head("operations"),
        Head("one state, us"),
        Head("batch, us"),
        Head("error"),
        Head("", number=False),
    ]
    timed = {(r.role, r.method, r.measure): r for r in records if r.samples}
    keys = list(dict.fromkeys((r.role, r.method) for r in records if r.samples))
    keys.sort(key=lambda k: timed[*k, "latency"].us if (*k, "latency") in timed else float("inf"))
    rows, dots = [], []
    for role, method in keys:
        one, batch = timed.get((role, method, "latency")), timed.get((role, method, "batch"))
        best = one or batch
        assert best is not None
        name = method if role == "ours" else f"{PEER_NAMES.get(role, role)}: {method}"
        error = Cell("" if best.error is None else f"{best.error:.0e}", best.error)
        chosen = role == "ours" and method == default
        mark = Cell("default", kind="good") if chosen else Cell(best.note)
        rows.append(
            Row(
                [
                    Cell(name, kind="ours" if role == "ours" else "paper"),
                    _count(best),
                    _us(one),
                    _us(batch),
                    error,
                    mark,
                ],
                robot,
            )
        )
        both = (("one state", one), ("batch", batch))
        dots.append(
            (
                name,
                "",
                [Dot(label, r.us, role != "ours", r.summary.low, r.summary.high) for label, r in both if r is not None],
            )
        )
    nv, m = records[0].nv, records[0].rows
    what = function.replace("_", " ")
    title = f"{robot}: {what}, {nv} degrees of freedom, {m} constraint rows"
    notes = list(dict.fromkeys(f"{r.method}: {r.note}" for r in records if not r.samples and r.note))
    return Section(
        f"robot-{function}-{robot}".replace(" ", "-"),
        title,
        [],
        [Dots(title, "us", dots)] if dots else [],
        [Sheet(heads, rows)],
        notes,
    )


def _count(r: Record) -> Cell:
    return Cell(number(None if r.operations is None else float(r.operations)), r.operations)


# the other suites


def _suite(suite: str, records: Sequence[Record]) -> Section:
    rows = lines(records)
    many = suite == "kernels"
    heads = [
        Head("robot", number=False),
        Head("function" if many else "case", number=False),
        Head("theirs, us"),
        Head("by", number=False),
        Head("pip's build, us"),
        Head("MuJoCo, us"),
        Head("ours, us", "ours"),
        Head("by", number=False),
        Head("x", "ours"),
        Head("x pip", "ours"),
        Head("batch, us", "batch"),
        Head("by", number=False),
        Head("x", "batch"),
    ]
    table = []
    for line in rows:
        table.append(
            Row(
                [
                    Cell(line.robot),
                    Cell(line.function if many else line.case),
                    _us(line.theirs),
                    _by(line.theirs),
                    _us(line.wheel),
                    _us(line.mujoco),
                    _us(line.latency, "ours"),
                    _by(line.latency),
                    _times(line, "theirs", "latency"),
                    _times(line, "wheel", "latency"),
                    _us(line.batch, "ours"),
                    _by(line.batch),
                    _times(line, "theirs", "batch"),
                ],
                line.robot,
            )
        )
    dots = [(line.robot, line.function if many else line.case, _suite_dots(line)) for line in rows]
    notes = [f"{r.robot} {r.case} {r.method} ({r.measure}): {r.note}" for r in records if not r.samples and r.note]
    text = [
        x
        for x in (
            NOTES.get(suite, ""),
            "Theirs: " + ", ".join(sorted({r.library for r in records if r.role != "ours" and r.samples})),
        )
        if x and x != "Theirs: "
    ]
    plots = [Dots(f"{suite}: time per state", "us", [d for d in dots if d[2]])] if any(d[2] for d in dots) else []
    return Section(f"suite-{suite}", suite.capitalize(), text, plots, [Sheet(heads, table)], notes)


def _suite_dots(line: Line) -> list[Dot]:
    pairs = (
        ("ours, one state", line.latency),
        ("ours, batch", line.batch),
        ("Pinocchio", line.theirs),
        ("Pinocchio, pip's build", line.wheel),
        ("MuJoCo", line.mujoco),
    )
    return [
        Dot(name, r.us, low=r.summary.low, high=r.summary.high)
        for name, r in pairs
        if r is not None and (name != "Pinocchio, pip's build" or r is not line.theirs)
    ]


def _suite_in_short(suite: str, records: Sequence[Record]) -> list[tuple[str, str]]:
    out = []
    for ours, text in (("latency", "one state"), ("batch", "in a batch, one thread")):
        found = [r.median for line in lines(records) if (r := line.ratio("theirs", ours))]
        if found:
            out.append((f"{geometric_mean(found):.1f} x", f"{suite}: theirs / ours, {text} (geometric mean)"))
    return out


def _us(r: Record | None, kind: str = "") -> Cell:
    if r is None:
        return Cell()
    s = r.summary
    return Cell(f"{s.median:.3g}", s.median, kind, f"{s.low:.3g} .. {s.high:.3g} (95 %)")


def _by(r: Record | None) -> Cell:
    return Cell("" if r is None else r.method)


def _times(line: Line, theirs: str, ours: str) -> Cell:
    s = line.ratio(theirs, ours)
    return Cell() if s is None else Cell(f"{s.median:.2f}", s.median, "ratio")
