"""Records case by case: ours beside the peers', with the ratios between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwork_bench.measure import Summary, ratio
from linkwork_bench.records import Record


@dataclass(frozen=True)
class Line:
    """One case: the peers, our best method by latency and by batch, and the ratios between them.

    `theirs` is the comparison: the peer's best build, or else its wheel or its Python bindings.
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


def by_method(records: Sequence[Record]) -> dict[tuple[str, str, str], dict[str, Record]]:
    out: dict[tuple[str, str, str], dict[str, Record]] = {}
    for r in records:
        if r.role == "ours" and r.samples:
            out.setdefault((r.robot, r.case, r.method), {})[r.measure] = r
    return out


def overhead(found: dict[str, Record], measure: str) -> float | None:
    return found[measure].undisturbed - found["latency"].undisturbed if {measure, "latency"} <= found.keys() else None


def ratios(rows: Sequence[Line], theirs: str, ours: str) -> dict[str, float]:
    return {f"{line.robot} {line.case} {line.function}": r.median for line in rows if (r := line.ratio(theirs, ours))}
