"""The papers' experiments in a report: ours, what was published, and which statements hold."""

from __future__ import annotations

from collections.abc import Sequence

from linkwork_bench.papers.experiment import Case, Counts, Experiment, Figures, Paper, Times
from linkwork_bench.papers.run import Judged, tally
from linkwork_bench.records import Record
from linkwork_bench.report.page import (
    PEER_NAMES,
    Bars,
    Cell,
    Curve,
    Dot,
    Dots,
    Head,
    Lines,
    Row,
    Section,
    Sheet,
    number,
)

SIGNS = {True: "holds", False: "does not hold", None: "not measured"}


def overview(papers: Sequence[Paper], judged: Sequence[Judged]) -> Section:
    heads = [
        Head("paper", number=False),
        Head("experiments"),
        Head("relations hold"),
        Head("do not"),
        Head("of these for a measured reason"),
        Head("not measured"),
    ]
    rows = []
    for p in papers:
        own = [j for j in judged if j.experiment in p.experiments]
        holds, fails, unknown = ([j for j in own if j.verdict.holds is x] for x in (True, False, None))
        explained = sum(j.explained for j in fails)
        counts = [len(p.experiments), len(holds), len(fails), explained, len(unknown)]
        rows.append(Row([Cell(p.citation), *(Cell(str(n), n) for n in counts)]))
    text = [
        f"{tally(judged)}.",
        "A relation is what a paper states in words or in a table; its tolerance is in its text. "
        "Operation counts are exact. Times are of compiled kernels, one state at a time on one core, in turns with "
        "the others of their row; published times are of other machines.",
    ]
    return Section("papers", "The papers' claims", text, sheets=[Sheet(heads, rows)])


def paper_sections(paper: Paper, records: Sequence[Record], judged: Sequence[Judged]) -> list[Section]:
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
        why = _why(j) if j.verdict.holds is False else ""
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


def _why(j: Judged) -> str:
    """The reason, and what was measured to prove it."""
    text = j.relation.why or "not explained yet"
    if j.cause is None:
        return text
    proven = {True: "measured", False: "not confirmed by these figures", None: "not measured in this run"}
    return f"{text} ({proven[j.cause.holds]}: {j.cause.found})"


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
            for name, column in _peer_columns(figures).items():
                points = sorted((c.x, column[c.name]) for c in cases if c.robot == robot and c.x and c.name in column)
                if len(points) > 1:
                    curves.append(Curve(name, points, robot))
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
        shown = [(c.robot, c.case, found) for c in cases if (found := _dots(e, figures, c))]
        return Dots(e.title, e.unit, shown, log=e.unit != "%") if shown else None
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
    theirs = {m: x for m, x in e.published.get(c.name, {}).items() if m != e.relative_to}
    out += [Dot(m, x, hollow=True, source="published") for m, x in theirs.items()]
    return out + [Dot(name, column[c.name]) for name, column in _peer_columns(figures).items() if c.name in column]


def papers_in_short(judged: Sequence[Judged]) -> list[tuple[str, str]]:
    holds, fails = (sum(j.verdict.holds is x for j in judged) for x in (True, False))
    known = sum(j.explained for j in judged)
    out = [(f"{holds} of {holds + fails}", "statements of the papers hold here")]
    return [*out, (str(fails), f"do not; {known} of them for a measured reason")] if fails else out
