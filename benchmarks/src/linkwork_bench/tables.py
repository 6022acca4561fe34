"""Results as tables in the terminal: a row per case, ratios to the peers, geometric means, targets."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from linkwork_bench.lines import Line, by_method, lines, overhead, ratios
from linkwork_bench.measure import Summary, geometric_mean
from linkwork_bench.ours import CALLS
from linkwork_bench.records import Change, Record
from linkwork_bench.targets import targets

NOTES = {
    "kernels": "latency: one state at a time in a native loop; batch: many states per call, one thread; threads: a "
    "large batch on all threads against one (cores: the gain of multiply-adds alone, measured beside).\n"
    "The peers have no batches: their figure is one state in a C++ loop.\n"
    "of limit: vector operations against all that this machine issues, measured beside (limit.py); like the cost "
    "of calls from Python a property of the code, so of undisturbed rounds: first deciles.\n"
    "crba: both write one triangle without the zeros of the tree; Pinocchio over its own, ours packed, per state.",
    "constrained": "theirs: the fastest of Pinocchio's solvers that is exact or run to convergence, with a worst "
    "relative error of at most 1e-5 against a dense solve on the checked states; ours under the same condition. "
    "MuJoCo's constraints are soft.",
    "chains": "aba of chains of hinges, from thirty links to a thousand.",
    "loops": "theirs: as for contacts; proxLTL: their sparse factor alone (constraintDynamics), the fastest of its "
    "settings that is right.",
    "delassus": "theirs: the fastest of EFPA, PV-OSIMr and the sparse Cholesky factor (upper triangle); ours writes "
    "the full matrix. Both are checked against a dense J M^-1 J^T.",
}


def table(suite: str, records: Sequence[Record]) -> RenderableType:
    """The output of one suite: its table, refusals, notes and targets."""
    rows = lines(records)
    names = {r.library for r in records if r.role != "ours" and r.samples}
    out = Table(
        title=f"{suite}: us per state (95 % interval) and ratios theirs / ours",
        title_justify="left",
        caption=NOTES[suite],
        caption_justify="left",
    )
    many = suite == "kernels"
    by = () if many else ("by",)
    heads = [
        "robot",
        "function" if many else "case",
        "theirs",
        "by",
        "wheel",
        "MuJoCo",
        "ours",
        *by,
        "x",
        "x wheel",
        "batch",
        *by,
        "x",
    ]
    more = {"kernels": ("of limit", "float32", "f32/f64", "threads"), "loops": ("proxLTL", "x")}
    for head in [*heads, *more.get(suite, ("users x", "batch x"))]:
        out.add_column(head, justify="left" if head in ("robot", "case", "function", "by") else "right", no_wrap=True)
    for line in rows:
        cells = [
            escape(line.robot),
            line.function if many else line.case,
            _us(line.theirs),
            _method(line.theirs),
            _us(line.wheel, False),
            _us(line.mujoco, False),
            _us(line.latency),
            *(_method(line.latency) for _ in by),
            _times(line.ratio("theirs", "latency")),
            _times(line.ratio("wheel", "latency")),
            _us(line.batch),
            *(_method(line.batch) for _ in by),
            _times(line.ratio("theirs", "batch")),
        ]
        if suite == "loops":
            cells += [_us(line.proxLTL, False), _times(line.ratio("proxLTL", "latency"))]
        elif many:
            cells += [
                "" if line.of_limit is None else f"{line.of_limit:.2f}",
                _us(line.float32, False),
                _times(line.ratio("batch", "float32")),
                _times(line.ratio("one", "threads")),
            ]
        else:
            cells += [_times(line.ratio("users", "latency")), _times(line.ratio("users", "batch"))]
        out.add_row(*cells)
    parts: list[RenderableType] = [out]
    if names:
        parts.append("peers: " + ", ".join(sorted(names)))
    timed = [r for r in records if r.shares]
    if doubt := sum(r.disturbed for r in timed):
        parts.append(f"[yellow]{doubt} of {len(timed)} figures had to share their core with other work: in doubt[/]")
    parts += [
        f"[yellow]{escape(f'{r.robot} {r.case} {r.function} {r.method} ({r.measure}): {r.note}')}[/]"
        for r in records
        if not r.samples and r.note
    ]
    if any(line.theirs for line in rows):
        parts += [means(rows), target_table(suite, rows, records)]
    if any(r.measure == "trace" for r in records):
        parts.append(compile_table(records))
    return Group(*parts)


def means(rows: Sequence[Line]) -> Table:
    """Geometric means and the smallest ratio, by function and over all."""
    out = Table(title="geometric means of the ratios (smallest)", title_justify="left")
    pairs = {
        "latency": ("theirs", "latency"),
        "latency, wheel": ("wheel", "latency"),
        "batch": ("theirs", "batch"),
        "batch, wheel": ("wheel", "batch"),
        "float32 / float64": ("batch", "float32"),
        "threads / one": ("one", "threads"),
        "cores / one": ("one_core", "cores"),
    }
    pairs = {k: p for k, p in pairs.items() if any(line.ratio(*p) for line in rows)}
    out.add_column("function")
    for head in pairs:
        out.add_column(head, justify="right")
    functions = list(dict.fromkeys(line.function for line in rows))
    for name in [*functions, *(["all"] if len(functions) > 1 else [])]:
        cells = []
        for pair in pairs.values():
            found = ratios([line for line in rows if name in (line.function, "all")], *pair)
            cells.append(f"{geometric_mean(list(found.values())):.2f} ({min(found.values()):.2f})" if found else "")
        out.add_row(name, *cells)
    return out


def target_table(suite: str, rows: Sequence[Line], records: Sequence[Record]) -> Table:
    out = Table(title="targets", title_justify="left")
    for head in ("target", "goal", "reached", ""):
        out.add_column(head, justify="right" if head in ("goal", "reached") else "left")
    for t in targets(suite, rows, records):
        verdict = {True: "[green]met[/]", False: "[red]not met[/]", None: "not measured"}[t.met]
        where = f" ({t.where})" if t.where else ""
        value = "" if t.value is None else f"{t.value:.2f}"
        out.add_row(t.text + where, f"{'<=' if t.at_most else '>='} {t.goal:g}", value, verdict)
    return out


COMPILE = ("trace", "cold batch", "cold single", "cached batch", "cached single", "again")


def compile_table(records: Sequence[Record]) -> Table:
    """Seconds to compile, and the overhead of a call from Python for one state."""
    out = Table(title="compiling (s), and the overhead of a call from Python for one state (us)", title_justify="left")
    for head in ("robot", "case", "method", *COMPILE, *CALLS):
        out.add_column(head, justify="left" if head in ("robot", "case", "method") else "right")
    for key, found in by_method(records).items():
        if "trace" in found:
            seconds = [f"{found[c].us / 1e6:.3f}" for c in COMPILE]
            out.add_row(
                *map(escape, key),
                *seconds,
                *(f"{x:.2f}" if (x := overhead(found, m)) is not None else "" for m in CALLS),
            )
    return out


def changes_table(changes: Sequence[Change]) -> Table:
    """Two runs side by side; above one is faster now."""
    out = Table(title="before / after: above 1 is faster now; ~ where the intervals overlap", title_justify="left")
    for head in ("suite", "function", "robot", "case", "who", "method", "measure", "before us", "after us", "x"):
        out.add_column(head, justify="right" if head in ("before us", "after us", "x") else "left")
    for c in changes:
        colour = "" if not c.certain else "[green]" if c.ratio > 1 else "[red]"
        out.add_row(
            *map(escape, c.key),
            _interval(c.before),
            _interval(c.after),
            f"{colour}{c.ratio:.2f}{'[/]' if colour else ' ~'}",
        )
    return out


def _us(record: Record | None, interval: bool = True) -> str:
    if record is None:
        return ""
    return _interval(record.summary) if interval else f"{record.us:.3g}"


def _interval(s: Summary) -> str:
    return f"{s.median:.3g} [dim]({s.low:.3g}..{s.high:.3g})[/]"


def _times(s: Summary | None) -> str:
    return "" if s is None else f"{s.median:.2f}"


def _method(record: Record | None) -> str:
    return "" if record is None else record.method
