"""Results as tables: a row per case, ratios to the peers, geometric means, and the targets we set ourselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from linkwork_bench.measure import Summary, geometric_mean, ratio
from linkwork_bench.ours import CALLS
from linkwork_bench.records import Change, Record

NOTES = {
    "kernels": "latency: one state at a time in a native loop; batch: many states per call, one thread; threads: a "
    "large batch on all threads against one (cores: what nothing but multiply-adds gain, measured beside).\n"
    "The peers have no batches: their figure is one state in a C++ loop.\n"
    "of limit: vector operations against all that this machine issues, measured beside (bench/limit.py); like the cost "
    "of calls from Python a property of the code, so of undisturbed rounds: first deciles.\n"
    "crba: both write one triangle without what the tree leaves zero; Pinocchio over its own, ours packed, per state.",
    "constrained": "theirs: the fastest of Pinocchio's solvers that is exact or run to convergence, with a worst "
    "relative error of at most 1e-5 against a dense solve on the checked states; ours under the same condition. "
    "MuJoCo's constraints are soft.",
    "chains": "aba of chains of hinges, from thirty links to a thousand.",
    "loops": "theirs: as for contacts; proxLTL: their sparse factor alone (constraintDynamics), the fastest of its "
    "settings that is right.",
    "delassus": "theirs: the fastest of EFPA, PV-OSIMr and the sparse Cholesky factor (upper triangle); ours writes "
    "the full matrix. Both are checked against a dense J M^-1 J^T.",
}


@dataclass(frozen=True)
class Line:
    """One case: the peers, our best method by latency and by batch, and the ratios between them.

    `theirs` is what there is to compare with: the peer's best build, or else its wheel or its Python bindings.
    """

    function: str
    robot: str
    case: str
    theirs: Record | None
    best: Record | None
    wheel: Record | None
    mujoco: Record | None
    users: Record | None
    proxLTL: Record | None
    latency: Record | None
    batch: Record | None
    float32: Record | None
    limit: Record | None
    one: Record | None
    threads: Record | None
    one_core: Record | None
    cores: Record | None

    def ratio(self, theirs: str, ours: str) -> Summary | None:
        a, b = getattr(self, theirs), getattr(self, ours)
        return ratio(a.samples, b.samples) if a is not None and b is not None else None

    @property
    def of_limit(self) -> float | None:
        """The share of the batch kernel's time that its vector operations alone would take."""
        return self.limit.undisturbed / self.batch.undisturbed if self.limit and self.batch else None


@dataclass(frozen=True)
class Target:
    """A figure that we want to reach; `value` is None if this run has not measured it."""

    text: str
    value: float | None
    goal: float
    at_most: bool = False
    where: str = ""

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        return self.value <= self.goal if self.at_most else self.value >= self.goal


def lines(records: Sequence[Record]) -> list[Line]:
    """The records, case by case."""
    cases: dict[tuple[str, str, str], list[Record]] = {}
    for r in records:
        cases.setdefault((r.function, r.robot, r.case), []).append(r)
    out = []
    for key, group in cases.items():
        timed = [r for r in group if r.samples]

        def fastest(role: str, measure: str = "latency", timed: list[Record] = timed) -> Record | None:
            return min((r for r in timed if r.role == role and r.measure == measure), key=lambda r: r.us, default=None)

        best, wheel, python = (fastest(role) for role in ("best", "wheel", "python"))
        users = fastest("wheel-python") or (python if key[0] == "forward_dynamics" else None)
        ours = [fastest("ours", m) for m in ("latency", "batch", "float32", "limit")]
        scaling = [fastest("ours", m) for m in ("one", "threads", "one core", "cores")]
        out.append(
            Line(
                *key,
                best or wheel or python,
                best,
                wheel,
                fastest("mujoco"),
                users,
                fastest("proxLTL"),
                *ours,
                *scaling,
            )
        )
    return out


def table(suite: str, records: Sequence[Record]) -> RenderableType:
    """Everything about one suite: its table, what was refused, notes and targets."""
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
            found = _ratios([line for line in rows if name in (line.function, "all")], *pair)
            cells.append(f"{geometric_mean(list(found.values())):.2f} ({min(found.values()):.2f})" if found else "")
        out.add_row(name, *cells)
    return out


def targets(suite: str, rows: Sequence[Line], records: Sequence[Record] = ()) -> list[Target]:
    """What we want to reach in this suite, and what was reached."""

    def of(*functions: str) -> list[Line]:
        return [line for line in rows if not functions or line.function in functions]

    def mean(text: str, goal: float, theirs: str, ours: str, *functions: str) -> Target:
        found = _ratios(of(*functions), theirs, ours)
        return Target(f"{text}, geometric mean", geometric_mean(list(found.values())) if found else None, goal)

    def least(text: str, goal: float, theirs: str, ours: str, *functions: str) -> Target:
        found = _ratios(of(*functions), theirs, ours)
        where = min(found, key=lambda k: found[k], default="")
        return Target(f"{text}, every case", found.get(where), goal, where=where)

    if suite == "kernels":
        return [
            least("one state: rnea and aba against the best build", 2.0, "best", "latency", "rnea", "aba"),
            least("one state: crba against the best build", 1.5, "best", "latency", "crba"),
            mean("one state: aba against the best build", 2.3, "best", "latency", "aba"),
            mean("one state: aba against the wheel", 3.5, "wheel", "latency", "aba"),
            mean("batch, one thread", 14.0, "best", "batch"),
            least("batch, one thread", 9.0, "best", "batch"),
            mean("float32 against our float64", 1.7, "batch", "float32"),
            Target(
                "talos_reduced aba in a batch, share of the machine's vector operations",
                next((line.of_limit for line in of("aba") if line.robot == "talos_reduced"), None),
                0.55,
            ),
            _threads_target(rows),
            *_compile_targets(records),
        ]
    if suite == "constrained":
        return [
            mean("one state against the fastest solver", 2.5, "best", "latency"),
            least("one state against the fastest solver", 1.8, "best", "latency"),
            mean("batch, one thread", 18.0, "best", "batch"),
            least("batch, one thread", 10.0, "best", "batch"),
            mean("one state against constraintDynamics of the wheel", 5.0, "users", "latency"),
            mean("batch against constraintDynamics of the wheel", 40.0, "users", "batch"),
        ]
    if suite == "chains":
        by = _by_method(records)
        found = {
            robot: sum(of[m].us for m in ("trace", "cold batch")) / 1e6
            for (robot, _, _), of in by.items()
            if "trace" in of
        }
        return [
            Target(f"{n} links: seconds to trace and compile", found.get(f"chain{n}"), goal, True)
            for n, goal in ((300, 12.0), (1000, 45.0))
        ]
    if suite == "loops":
        digits = [line for line in rows if "digit" in line.robot]
        against = _ratios(digits, "proxLTL", "latency")
        where = min(against, key=lambda k: against[k], default="")
        return [
            mean("one state against the fastest solver", 2.5, "best", "latency"),
            mean("batch, one thread", 16.0, "best", "batch"),
            Target("one state: Digits against proxLTL, every case", against.get(where), 10.0, where=where),
        ]
    return [mean("one state", 2.5, "best", "latency"), mean("batch, one thread", 15.0, "best", "batch")]


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
    """Seconds to compile, and what a call from Python adds to the native time of one state."""
    out = Table(title="compiling (s), and what a call from Python for one state adds (us)", title_justify="left")
    for head in ("robot", "case", "method", *COMPILE, *CALLS):
        out.add_column(head, justify="left" if head in ("robot", "case", "method") else "right")
    for key, found in _by_method(records).items():
        if "trace" in found:
            seconds = [f"{found[c].us / 1e6:.3f}" for c in COMPILE]
            out.add_row(
                *map(escape, key),
                *seconds,
                *(f"{x:.2f}" if (x := _overhead(found, m)) is not None else "" for m in CALLS),
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


def _threads_target(rows: Sequence[Line]) -> Target:
    """Scaling, where the threads got their cores: on a busy machine it says nothing about us."""
    text = "all threads against one, geometric mean"
    found = _ratios(rows, "one", "threads")
    if any(line.threads is not None and line.threads.disturbed for line in rows):
        return Target(f"{text} (the machine is busy: not measurable)", None, 1.85)
    return Target(text, geometric_mean(list(found.values())) if found else None, 1.85)


def _compile_targets(records: Sequence[Record]) -> list[Target]:
    found = _by_method(records).get(("talos_reduced", "none", "aba"), {})

    def value(of: Callable[[], float | None]) -> float | None:
        return of() if "trace" in found else None

    return [
        Target(
            "talos_reduced aba, compile cold, with tracing, s",
            value(lambda: (found["trace"].us + found["cold batch"].us) / 1e6),
            1.5,
            True,
        ),
        Target(
            "talos_reduced aba, from the cache, as a new process finds it, ms",
            value(lambda: found["again"].us / 1e3),
            50,
            True,
        ),
        Target("call from Python, function, us", value(lambda: _overhead(found, "function")), 1.5, True),
        Target("call from Python, kernel, us", value(lambda: _overhead(found, "kernel")), 1.5, True),
        Target("call from Python, bound, us", value(lambda: _overhead(found, "bound")), 0.5, True),
    ]


def _by_method(records: Sequence[Record]) -> dict[tuple[str, str, str], dict[str, Record]]:
    out: dict[tuple[str, str, str], dict[str, Record]] = {}
    for r in records:
        if r.role == "ours" and r.samples:
            out.setdefault((r.robot, r.case, r.method), {})[r.measure] = r
    return out


def _overhead(found: dict[str, Record], measure: str) -> float | None:
    return found[measure].undisturbed - found["latency"].undisturbed if {measure, "latency"} <= found.keys() else None


def _ratios(rows: Sequence[Line], theirs: str, ours: str) -> dict[str, float]:
    return {f"{line.robot} {line.case} {line.function}": r.median for line in rows if (r := line.ratio(theirs, ours))}


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
