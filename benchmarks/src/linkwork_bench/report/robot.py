"""One's own robot in a report: every method, the fastest first, the peers among them."""

from __future__ import annotations

from collections.abc import Sequence

from linkwork_bench.records import Record, Results
from linkwork_bench.report.page import PEER_NAMES, Cell, Dot, Dots, Head, Row, Section, Sheet, number, us_cell

SUITE = "robot"


def robot_sections(results: Results) -> list[Section]:
    """Every method of one robot, the fastest first, the peers among them."""
    records, out = [r for r in results.records if r.suite == SUITE], []
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
                    us_cell(one),
                    us_cell(batch),
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
