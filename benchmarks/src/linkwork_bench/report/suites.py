"""A suite in a report: ours beside the peers, case by case."""

from __future__ import annotations

from collections.abc import Sequence

from linkwork_bench.lines import Line, lines
from linkwork_bench.measure import geometric_mean
from linkwork_bench.records import Record
from linkwork_bench.report.page import Cell, Dot, Dots, Head, Row, Section, Sheet, us_cell
from linkwork_bench.tables import NOTES


def suite_section(suite: str, records: Sequence[Record]) -> Section:
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
                    us_cell(line.theirs),
                    _by(line.theirs),
                    us_cell(line.wheel),
                    us_cell(line.mujoco),
                    us_cell(line.latency, "ours"),
                    _by(line.latency),
                    _times(line, "theirs", "latency"),
                    _times(line, "wheel", "latency"),
                    us_cell(line.batch, "ours"),
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


def suite_in_short(suite: str, records: Sequence[Record]) -> list[tuple[str, str]]:
    out = []
    for ours, text in (("latency", "one state"), ("batch", "in a batch, one thread")):
        found = [r.median for line in lines(records) if (r := line.ratio("theirs", ours))]
        if found:
            out.append((f"{geometric_mean(found):.1f} x", f"{suite}: theirs / ours, {text} (geometric mean)"))
    return out


def _by(r: Record | None) -> Cell:
    return Cell("" if r is None else r.method)


def _times(line: Line, theirs: str, ours: str) -> Cell:
    s = line.ratio(theirs, ours)
    return Cell() if s is None else Cell(f"{s.median:.2f}", s.median, "ratio")
