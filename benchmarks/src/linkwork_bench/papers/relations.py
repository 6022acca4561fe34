"""What the papers state in words or tables, as assertions that are judged on our figures.

A relation that is known not to hold says why in `why`; its tolerance stays what the paper's statement asks for. `proof`
judges that reason on figures of the same experiment: a reason that its own figures contradict is none.

Ratios of times have intervals, from rounds that belong together. A case whose interval contains a bound is undecided:
`timing.run` repeats its rounds, and what remains undecided is judged by its median and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, log

from linkwork_bench.measure import Summary
from linkwork_bench.papers.experiment import Case, Experiment, Figures

Judge = Callable[[Figures], "Verdict"]
Which = Collection[str] | Callable[[Case], bool] | None
"""Cases: their names or robots, or a predicate; None is all."""


@dataclass(frozen=True)
class Verdict:
    """Whether a relation holds (None: not measured), what was found, and cases within noise of a bound."""

    holds: bool | None
    found: str
    undecided: tuple[str, ...] = ()


@dataclass(frozen=True)
class Relation:
    """A statement of a paper; `why` explains a known failure to hold, and `proof` judges that reason."""

    claim: str
    where: str
    judge: Judge
    why: str = ""
    proof: Judge | None = None


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
        found, spans = {}, {}
        for case in pick(figures, cases):
            a, b = figures.of(case, over, measure), figures.of(case, under, under_measure or measure)
            if a is not None and b:
                found[case.name] = a / b
                spans[case.name] = figures.interval(case, over, under, measure, under_measure)
        return within(found, low, high, spans=spans)

    return judge


def operations(over: str, under: str, low: float = 0.0, high: float = inf, *, cases: Which = None) -> Judge:
    """In every case low <= operations of over / operations of under <= high, of timed kernels."""

    def judge(figures: Figures) -> Verdict:
        found = {}
        for case in pick(figures, cases):
            a, b = figures.operations(case, over), figures.operations(case, under)
            if a is not None and b:
                found[case.name] = a / b
        return within(found, low, high, f"operations of {over} / {under}")

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
        found, spans = _against(figures, method, others, min, cases, measure)
        return within(found, 0.0, 1.0 + tolerance, f"{method} / best other", spans)

    return judge


def slowest(method: str, others: Sequence[str], *, cases: Which = None, measure: str = "") -> Judge:
    """In every case the method's figure is at least that of each other method."""

    def judge(figures: Figures) -> Verdict:
        found, spans = _against(figures, method, others, max, cases, measure)
        return within(found, 1.0, inf, f"{method} / worst other", spans)

    return judge


def _against(
    figures: Figures,
    method: str,
    others: Sequence[str],
    extreme: Callable[..., str],
    cases: Which,
    measure: str,
) -> tuple[dict[str, float], dict[str, Summary | None]]:
    """A method's figure over the least or largest of others, by case."""
    found, spans = {}, {}
    for case in pick(figures, cases):
        ours = figures.of(case, method, measure)
        theirs = {o: x for o in others if (x := figures.of(case, o, measure)) is not None}
        if ours is not None and theirs:
            other = extreme(theirs, key=theirs.__getitem__)
            found[case.name] = ours / theirs[other]
            spans[case.name] = figures.interval(case, method, other, measure)
    return found, spans


def every(*judges: Judge) -> Judge:
    """All of these hold; one that was not measured leaves it open."""

    def judge(figures: Figures) -> Verdict:
        verdicts = [j(figures) for j in judges]
        known = [v.holds for v in verdicts]
        holds = False if False in known else None if None in known else True
        undecided = tuple(dict.fromkeys(c for v in verdicts for c in v.undecided))
        return Verdict(holds, "; ".join(v.found for v in verdicts), undecided)

    return judge


def elsewhere(experiment: Experiment, judge: Judge) -> Judge:
    """The same, on the figures of another experiment of the run."""
    return lambda figures: judge(Figures(experiment, figures.all))


def said(what: str, judge: Judge) -> Judge:
    """The same, with a word on what the figures are."""

    def named(figures: Figures) -> Verdict:
        verdict = judge(figures)
        return Verdict(verdict.holds, f"{what}: {verdict.found}", verdict.undecided)

    return named


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


def within(
    found: Mapping[str, float],
    low: float,
    high: float,
    what: str = "",
    spans: Mapping[str, Summary | None] | None = None,
) -> Verdict:
    """The verdict on figures by case, with the range found and the worst case if it does not hold.

    `spans` are their intervals, where they are times.
    """
    if not found:
        return NOT_MEASURED
    bad = {k: x for k, x in found.items() if not low <= x <= high}
    least, most = min(found.values()), max(found.values())
    span = f"{least:.3g}" if len(found) == 1 else f"{least:.3g} .. {most:.3g} in {len(found)} cases"
    text = f"{what} {span}".strip()
    if bad:
        worst = max(bad, key=lambda k: max(low - bad[k], bad[k] - high))
        text += f"; {len(bad)} outside, worst {worst}: {bad[worst]:.3g}"
    undecided = tuple(k for k, s in (spans or {}).items() if s and any(s.low < x < s.high for x in (low, high)))
    if undecided:
        text += f"; within noise of a bound: {', '.join(undecided)}"
    return Verdict(not bad, text, undecided)


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
