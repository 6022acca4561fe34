"""What the papers state in words or tables, as assertions that are judged on our figures.

A relation that is known not to hold says why in `why`; its tolerance stays what the paper's statement asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, log

from linkwork_bench.papers.experiment import Case, Figures

Judge = Callable[[Figures], "Verdict"]
Which = Collection[str] | Callable[[Case], bool] | None
"""Cases: their names or robots, or a predicate; None is all."""


@dataclass(frozen=True)
class Verdict:
    """Whether a relation holds (None: not measured), and what was found."""

    holds: bool | None
    found: str


@dataclass(frozen=True)
class Relation:
    """A statement of a paper. `why` explains a known failure to hold on our side."""

    claim: str
    where: str
    judge: Judge
    why: str = ""


NOT_MEASURED = Verdict(None, "not measured")


def ratio(
    over: str,
    under: str,
    low: float = 0.0,
    high: float = inf,
    *,
    cases: Which = None,
    measure: str = "",
    under_measure: str | None = None,
) -> Judge:
    """In every case low <= over / under <= high."""

    def judge(figures: Figures) -> Verdict:
        found = {}
        for case in pick(figures, cases):
            a, b = figures.of(case, over, measure), figures.of(case, under, under_measure or measure)
            if a is not None and b:
                found[case.name] = a / b
        return within(found, low, high)

    return judge


def value(method: str, low: float = 0.0, high: float = inf, *, cases: Which = None, measure: str = "") -> Judge:
    """In every case low <= the figure <= high."""

    def judge(figures: Figures) -> Verdict:
        found = {c.name: x for c in pick(figures, cases) if (x := figures.of(c, method, measure)) is not None}
        return within(found, low, high)

    return judge


def fastest(
    method: str, others: Sequence[str], *, cases: Which = None, measure: str = "", tolerance: float = 0.0
) -> Judge:
    """In every case the method's figure is at most that of each other method (by up to `tolerance`)."""

    def judge(figures: Figures) -> Verdict:
        found = {}
        for case in pick(figures, cases):
            ours = figures.of(case, method, measure)
            theirs = [x for o in others if (x := figures.of(case, o, measure)) is not None]
            if ours is not None and theirs:
                found[case.name] = ours / min(theirs)
        return within(found, 0.0, 1.0 + tolerance, f"{method} / best other")

    return judge


def exponent(
    method: str, low: float = -inf, high: float = inf, *, cases: Which = None, measure: str = "", last: int = 3
) -> Judge:
    """The figure grows like x to a power between low and high.

    Fitted to the `last` points, series by series.
    """

    def judge(figures: Figures) -> Verdict:
        found = {}
        for name, series in by_robot(pick(figures, cases)).items():
            points = [(c.x, y) for c in series if c.x and (y := figures.of(c, method, measure))]
            if len(points) >= 2:
                found[name] = slope(points[-last:])
        return within(found, low, high, "exponent")

    return judge


def growth(
    method: str, low: float = -inf, high: float = inf, *, cases: Which = None, measure: str = "", last: int = 3
) -> Judge:
    """The figure grows like a + b x^p with p between low and high, series by series.

    Fitted to its differences.
    """

    def judge(figures: Figures) -> Verdict:
        found = {}
        for name, series in by_robot(pick(figures, cases)).items():
            points = [(c.x, y) for c in series if c.x and (y := figures.of(c, method, measure))]
            p = power(points[-last:])
            if p is not None:
                found[name] = p
        return within(found, low, high, "power")

    return judge


def crossing(over: str, under: str, low: float, high: float, *, cases: Which = None, measure: str = "") -> Judge:
    """over / under falls to one at an x between low and high (between points: on a straight line)."""

    def judge(figures: Figures) -> Verdict:
        found = {}
        for name, series in by_robot(pick(figures, cases)).items():
            points = [
                (c.x, a / b)
                for c in series
                if c.x is not None
                and (a := figures.of(c, over, measure)) is not None
                and (b := figures.of(c, under, measure))
            ]
            if len(points) > 1:
                found[name] = _first_below_one(points)
        return within(found, low, high, "crossing at")

    return judge


def within(found: dict[str, float], low: float, high: float, what: str = "") -> Verdict:
    """The verdict on figures by case, with the range found and the worst case if it does not hold."""
    if not found:
        return NOT_MEASURED
    bad = {k: x for k, x in found.items() if not low <= x <= high}
    least, most = min(found.values()), max(found.values())
    span = f"{least:.3g}" if len(found) == 1 else f"{least:.3g} .. {most:.3g} in {len(found)} cases"
    text = f"{what} {span}".strip()
    if bad:
        worst = max(bad, key=lambda k: max(low - bad[k], bad[k] - high))
        text += f"; {len(bad)} outside, worst {worst}: {bad[worst]:.3g}"
    return Verdict(not bad, text)


def pick(figures: Figures, cases: Which) -> list[Case]:
    """The measured cases that are selected."""
    known = figures.measured
    if cases is None:
        return known
    if callable(cases):
        return [c for c in known if cases(c)]
    return [c for c in known if c.name in cases or c.robot in cases]


def by_robot(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Series: cases of the same robot, by x."""
    out: dict[str, list[Case]] = {}
    for c in sorted(cases, key=lambda c: c.x or 0.0):
        out.setdefault(c.robot, []).append(c)
    return out


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The least-squares slope of log y over log x."""
    X, Y = [log(x) for x, _ in points], [log(y) for _, y in points]
    mx, my = sum(X) / len(X), sum(Y) / len(Y)
    return sum((x - mx) * (y - my) for x, y in zip(X, Y, strict=True)) / sum((x - mx) ** 2 for x in X)


def power(points: Sequence[tuple[float, float]]) -> float | None:
    """p of y = a + b x^p, from how fast the differences of y grow; None for fewer than three points."""
    steps = [((x0 + x1) / 2, (y1 - y0) / (x1 - x0)) for (x0, y0), (x1, y1) in pairwise(points)]
    return 1 + slope(steps) if len(steps) > 1 and all(y > 0 for _, y in steps) else None


def _first_below_one(points: Sequence[tuple[float, float]]) -> float:
    """Where y first falls to one; infinity if it does not."""
    if points[0][1] <= 1:
        return points[0][0]
    for (x0, y0), (x1, y1) in pairwise(points):
        if y1 <= 1:
            return x0 + (x1 - x0) * (y0 - 1) / (y0 - y1)
    return inf
