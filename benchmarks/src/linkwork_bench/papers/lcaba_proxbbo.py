"""Sathya and Carpentier: constrained articulated bodies for closed loops (LCABA, proxBBO)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import pairwise
from math import inf, log10
from typing import Any

import numpy as np

from linkwork.algorithms import registry
from linkwork.algorithms.common.iteration import Prox
from linkwork.algorithms.constrained.kkt import joint_space
from linkwork.constraints.row_inertia import units
from linkwork.functions.function import Function
from linkwork.model import Model, Motion
from linkwork.robots.mechanisms import all_coupled_loops, chain_of_loops, ring, star_of_loops
from linkwork.robots.scenarios import SCENARIOS
from linkwork_bench.convergence import plain_step
from linkwork_bench.inputs import SEED
from linkwork_bench.papers.experiment import (
    NO_NUMBERS,
    OTHER_MACHINE,
    Case,
    Counts,
    Figures,
    Finding,
    Paper,
    Study,
    Times,
    Way,
    random_states,
)
from linkwork_bench.papers.mechanisms import accelerations, forward, free
from linkwork_bench.papers.relations import (
    NOT_MEASURED,
    Judge,
    Relation,
    Verdict,
    elsewhere,
    every,
    fastest,
    growth,
    operations,
    pick,
    ratio,
    said,
    slowest,
    value,
    within,
)

LOOPS = ("lcaba", "prox_bbo", "prox_ltl")
MU = 1e5


# table II


def _iterated(method: str, iterations: int) -> Way:
    """A method stopped after so many solver iterations, whatever its residual."""
    return forward(method, prox=Prox(mu=MU, tolerance=0.0, max_iterations=iterations))


SYSTEMS = {
    "AH-cube": ("allegro_cube", (4.91, 6.35, 3.96, 2.29), (6.28, 7.6, 5.21)),
    "AH2-cube": ("two_allegros_cube", (7.87, 15.6, 9.37, 4.2), (9.7, 19.3, 12.4)),
    "Hum-AH2-cube": ("humanoid_allegros_cube", (14.6, 30.7, 21.4, 8.8), (16.6, 35.6, 24.9)),
    "Hum-AH2-cube standing": ("humanoid_allegros_cube_standing", (15.6, 35.8, 29.0, 8.8), (18.2, 43.1, 33.5)),
    "Digit": ("digit_standing", (9.96, 14.7, 23.1, 5.5), (12.4, 18.4, 28.4)),
    "Digit-cube": ("digit_box", (12.0, 18.0, 28.9, 5.9), (14.8, 22.0, 33.9)),
    "Digit2-cube": ("two_digits_box", (23.5, 44.2, 142.6, 11.9), (31.0, 58.8, 168.0)),
}
"""Our scenario, and the paper's microseconds: LCABA, BBO, LTL and ABA for one iteration, the first three for three."""
ONE, THREE = ({m: f"{m} ({k})" for m in LOOPS} for k in (1, 3))
WAYS: dict[str, Way] = {
    **{ONE[m]: _iterated(m, 1) for m in LOOPS},
    **{THREE[m]: _iterated(m, 3) for m in LOOPS},
    "aba": free,
}
PUBLISHED = {
    name: dict(zip((*ONE.values(), "aba", *THREE.values()), one + three, strict=True))
    for name, (_, one, three) in SYSTEMS.items()
}
LARGER = tuple(name for name in SYSTEMS if name != "AH-cube")
HANDS = ("AH2-cube", "Hum-AH2-cube", "Hum-AH2-cube standing")
DIGITS = ("Digit", "Digit-cube", "Digit2-cube")


def _in_operations(figures: Figures) -> Verdict:
    """1 + the share of two more LCABA iterations in operations."""
    found = {}
    for c in figures.measured:
        more, base = figures.of(c, ONE["lcaba"], "iteration"), figures.operations(c, ONE["lcaba"])
        if more and base:
            found[c.name] = 1 + 2 * more / (base + more)
    return within(found, 1.0, 1.5)


def _in_waiting(figures: Figures) -> Verdict:
    """Their share in time over their share in the longest chain of operations that wait for each other."""
    found = {}
    for c in figures.measured:
        more, base = (figures.of(c, ONE["lcaba"], what) for what in ("iteration chain", "chain"))
        one, three = (figures.of(c, m["lcaba"]) for m in (ONE, THREE))
        if more and base and one and three:
            found[c.name] = (three / one - 1) / (2 * more / (base + more))
    return within(found, 0.0, 1.0)


TABLE2 = Times(
    id="lcaba_proxbbo/table2",
    title="Robots with closed loops, after one and three iterations: one state, us",
    where="table II (14 rows: seven systems, one and three iterations)",
    cases=tuple(
        Case(name, "", SCENARIOS[s], quick=s in ("allegro_cube", "digit_standing"))
        for name, (s, _, _) in SYSTEMS.items()
    ),
    ways=WAYS,
    reference=accelerations,
    unchecked=frozenset({*ONE.values(), "aba", *(THREE.values())}),
    measures=("latency",),
    compete=True,
    published=PUBLISHED,
    caveat=f"{OTHER_MACHINE} (Core Ultra 7 165H). Digit's legs as in the paper, redundantly welded; its file and "
    "Allegro's may differ. Results after a fixed number of iterations are not checked for accuracy, as in the paper",
    relations=(
        Relation(
            "one Allegro hand: proxLTL is the fastest",
            "VI-B",
            fastest(ONE["prox_ltl"], (ONE["lcaba"], ONE["prox_bbo"]), cases=("AH-cube",)),
        ),
        Relation(
            "everything larger: LCABA is the fastest",
            "VI-B",
            fastest(ONE["lcaba"], (ONE["prox_bbo"], ONE["prox_ltl"]), cases=LARGER),
            why="two hands with a cube: the joint-space factor has so many zeros that it is level in operations "
            "(within 15 %)",
            proof=operations(ONE["lcaba"], ONE["prox_ltl"], 0.85, 1.15, cases=("AH2-cube",)),
        ),
        Relation(
            "LCABA and proxBBO are similar on one hand (proxBBO / LCABA there 1.29; here 0.9 to 1.7)",
            "VI-B",
            ratio(ONE["prox_bbo"], ONE["lcaba"], 0.9, 1.7, cases=("AH-cube",)),
            why="our proxBBO needs 10 % fewer operations than LCABA here",
            proof=operations(ONE["prox_bbo"], ONE["lcaba"], 0.85, 0.95, cases=("AH-cube",)),
        ),
        Relation(
            "proxBBO scales worst where hands hold the cube (slower than proxLTL)",
            "VI-B",
            slowest(ONE["prox_bbo"], (ONE["prox_ltl"], ONE["lcaba"]), cases=HANDS),
            why="on the hands alone it is; on the humanoid proxLTL has 1.3 times the operations of proxBBO and "
            "more, and takes as much longer: Pinocchio's is vectorised over rows, ours over states",
            proof=every(
                said("hands alone", slowest(ONE["prox_bbo"], (ONE["prox_ltl"], ONE["lcaba"]), cases=("AH2-cube",))),
                operations(ONE["prox_ltl"], ONE["prox_bbo"], low=1.3, cases=HANDS[1:]),
            ),
        ),
        Relation(
            "Digit: both recursive methods beat proxLTL",
            "VI-B",
            every(*(ratio(ONE[m], ONE["prox_ltl"], high=1.0, cases=DIGITS) for m in ("lcaba", "prox_bbo"))),
        ),
        Relation(
            "two Digits and a box: LCABA is over 6x faster than proxLTL (here: 4.5 and more)",
            "VI-B",
            ratio(ONE["prox_ltl"], ONE["lcaba"], low=4.5, cases=("Digit2-cube",)),
        ),
        Relation(
            "two more iterations cost LCABA 14 to 32 % (here: at most 50 %)",
            "table II",
            ratio(THREE["lcaba"], ONE["lcaba"], 1.0, 1.5),
            why="in operations they do. For one state a sweep takes longer than its operations, because every joint "
            "waits for the one before, and further sweeps have little else to do meanwhile: in the longest chain of "
            "operations that wait for each other their share is larger than it is in time",
            proof=every(
                said("in operations", _in_operations), said("share in time / in the longest chain", _in_waiting)
            ),
        ),
    ),
)


# figures 6 to 9: scaling, first solve


def _family(name: str, make: Callable[[int], Model], sizes: tuple[int, ...], quick: int, noun: str) -> tuple[Case, ...]:
    return tuple(Case(name, f"{n} {noun}", partial(make, n), x=n, quick=n <= quick) for n in sizes)


SCALING = {m: forward(m) for m in LOOPS}
COUNTED = f"the paper times its C++, we count operations up to the first solution; {NO_NUMBERS}"


def _per_link(kind: str) -> Judge:
    """proxBBO over LCABA, for each further link or loop of a mechanism."""

    def judge(figures: Figures) -> Verdict:
        cases = [c for c in pick(figures, (kind,)) if figures.of(c, "lcaba") and figures.of(c, "prox_bbo")]
        found = {}
        for one, two in pairwise(sorted(cases, key=lambda c: c.x or 0.0)):
            step = [(figures.of(two, m) or 0.0) - (figures.of(one, m) or 0.0) for m in ("prox_bbo", "lcaba")]
            found[two.name] = step[0] / step[1]
        return within(found, 0.95, 1.05)

    return judge


PRUNED = (
    "in operations six propagated rows cost as much as the coupling of two links, 500 a link each. Only where the "
    "first link hangs on a hinge is LCABA ahead: its coupling with that link, which moves in one direction, has one "
    "column instead of six. Their slight advantage is of memory, as they say"
)
FIG6 = Counts(
    id="lcaba_proxbbo/fig6",
    title="A cycle of n links: operations",
    where="fig. 6",
    ways=SCALING,
    axis="links",
    cases=(
        *_family("ring", ring, (7, 14, 28, 56), 28, "links"),
        *_family("ring afloat", partial(ring, base="free"), (7, 14, 28), 14, "links"),
    ),
    caveat=COUNTED,
    relations=(
        *(
            Relation(f"{m} grows linearly (power at most 1.1)", "VI-C", growth(m, high=1.1))
            for m in ("lcaba", "prox_bbo")
        ),
        Relation("proxLTL grows faster than linearly (power at least 1.3)", "VI-C", growth("prox_ltl", low=1.3)),
        Relation(
            "proxBBO is slightly ahead of LCABA on long loops (here: by 0 to 30 %)",
            "VI-C",
            ratio("prox_bbo", "lcaba", 0.7, 1.0, cases=lambda c: (c.x or 0) >= 14),
            why=PRUNED,
            proof=said("afloat, each further link", _per_link("ring afloat")),
        ),
    ),
)
FIG7 = Counts(
    id="lcaba_proxbbo/fig7",
    title="A chain of loops of seven links: operations",
    where="fig. 7",
    ways=SCALING,
    axis="loops",
    cases=_family("chain of loops", chain_of_loops, (1, 2, 4, 8), 4, "loops"),
    caveat=COUNTED,
    relations=(
        *(
            Relation(f"{m} grows linearly (power at most 1.1)", "VI-C", growth(m, high=1.1))
            for m in ("lcaba", "prox_bbo")
        ),
        Relation(
            "proxBBO is slightly ahead of LCABA (here: by 0 to 30 %)",
            "VI-C",
            ratio("prox_bbo", "lcaba", 0.7, 1.0),
            why=PRUNED,
            proof=elsewhere(FIG6, said("ring afloat, each further link", _per_link("ring afloat"))),
        ),
        Relation(
            "proxLTL is the slowest from two loops on",
            "VI-C",
            slowest("prox_ltl", ("lcaba", "prox_bbo"), cases=lambda c: (c.x or 0) >= 2),
        ),
    ),
)
FIG8 = Counts(
    id="lcaba_proxbbo/fig8",
    title="Every loop coupled with every other: operations",
    where="fig. 8",
    ways=SCALING,
    axis="loops",
    cases=_family("all coupled", all_coupled_loops, (1, 2, 3, 4, 5), 3, "loops"),
    caveat=COUNTED,
    relations=(
        *(
            Relation(f"{m} grows faster than linearly (power at least 1.15)", "VI-C", growth(m, low=1.15))
            for m in LOOPS
        ),
        Relation(
            "recursion gives no speed-up here (LCABA at least 0.9 of proxLTL)",
            "VI-C",
            every(*(ratio(m, "prox_ltl", low=0.9, cases=lambda c: (c.x or 0) >= 3) for m in ("lcaba", "prox_bbo"))),
            why="in operations it does: proxLTL's are cubic in the joints of the loops, as its bound says. Theirs grow "
            "quadratically in time, because rows are vectorised (VI-A), so that time is no count",
            proof=said("operations of proxLTL", growth("prox_ltl", low=2.4)),
        ),
    ),
)
FIG9 = Counts(
    id="lcaba_proxbbo/fig9",
    title="Branches of twelve links on one floating link with their tips joined: operations",
    where="fig. 9",
    ways=SCALING,
    axis="branches",
    cases=_family("star of loops", partial(star_of_loops, links=12, base="free"), (2, 4, 6, 8), 4, "branches"),
    caveat=f"{COUNTED}; it does not give the length of branches either: with seven links on a hinge joint space is "
    "ahead of proxBBO by a fifth",
    relations=(
        Relation("LCABA grows linearly (power at most 1.1)", "VI-C", growth("lcaba", high=1.1)),
        Relation("LCABA is ahead of proxBBO", "VI-C", ratio("lcaba", "prox_bbo", high=1.0)),
        Relation(
            "proxBBO is ahead of proxLTL",
            "VI-C",
            ratio("prox_bbo", "prox_ltl", high=1.0, cases=lambda c: (c.x or 0) >= 4),
        ),
    ),
)


# figures 10 and 11: convergence on two hands that hold a cube

TWO_HANDS = SCENARIOS["two_allegros_cube"]
POSITIONS, INPUTS = 1000, 10
"""Random closed positions, and control inputs for each of them: ten thousand examples, as in the paper."""
ITERATIONS = 11


@cache
def _examples(quick: bool) -> dict[str, np.ndarray]:
    s = random_states(TWO_HANDS(), 8 if quick else POSITIONS)
    q, v = (np.repeat(s[name], INPUTS, axis=0) for name in ("q", "v"))
    return {"q": q, "v": v, "tau": np.random.default_rng(SEED).uniform(-1, 1, v.shape)}


@cache
def _iterates(method: str) -> Function:
    """Accelerations and rows' errors after 1, 2, ... plain steps; the penalty in SI units is an input."""
    model, solve = TWO_HANDS(), registry.methods("forward_dynamics")[method].load()
    unit = float(np.exp(np.mean(np.log(units(model)))))

    def body(xp: Any, x: Mapping[str, Any]) -> dict[str, Any]:
        motion = Motion(model, x["q"], x["v"], xp)
        J, k = joint_space(motion)
        iteration = solve(motion, x["tau"], mu=x["mu"][0, 0] / unit)
        lam, out = iteration.start, {}
        for step in range(1, ITERATIONS + 1):
            done = plain_step(iteration, lam)
            lam = done.lam
            a = iteration.finish(lam, done.found)[0]
            out[f"error{step}"] = J @ a - k
        return {**out, "a": a}

    inputs = {"q": model.nq, "v": model.nv, "tau": model.nv, "mu": 1}
    return Function(f"iterates_{method}", model, inputs, body, method=method)


def _after(method: str, mu: float, quick: bool) -> dict[str, np.ndarray]:
    """Of few examples the program is interpreted: to compile it takes longer."""
    s, program = _examples(quick), _iterates(method).program
    call = program.interpret if quick else _iterates(method)
    found = call(s["q"], s["v"], s["tau"], np.array([mu]))
    return dict(zip([port.name for port in program.outputs], map(np.asarray, found), strict=True))


def _convergence(case: Case, quick: bool) -> Iterator[Finding]:
    del case
    for method in LOOPS:
        found = _after(method, MU, quick)
        curves = [np.abs(found[f"error{k}"]).max(axis=1) for k in range(1, ITERATIONS + 1)]
        for k, largest in enumerate(curves, 1):
            yield method, f"residual {k}", [float(np.median(largest))]
            yield method, f"worst residual {k}", [float(largest.max())]
        yield method, "converged", [float(np.median(curves[2]))]


FIG10 = Study(
    id="lcaba_proxbbo/fig10",
    title="Residual |J a - k| after each iteration, mu = 1e5, two hands that hold a cube",
    where="fig. 10",
    cases=(Case("AH2-cube", "mu 1e5", TWO_HANDS),),
    names=LOOPS,
    ask=_convergence,
    measure="converged",
    unit="m/s^2 after three iterations, median",
    caveat=f"{NO_NUMBERS}; 1000 random closed positions of ours with 10 control inputs each (quick: 20)",
    relations=(
        *(
            Relation(f"{m} converges to 1e-6 within three iterations, typically", "VI-D", value(m, high=1e-6))
            for m in LOOPS
        ),
    ),
)
MUS = (1e3, 1e5, 1e7, 1e9, 1e11)


def _stability(case: Case, quick: bool) -> Iterator[Finding]:
    """|a - a_ref| / |a_ref|, with proxLTL at mu = 1e3 as reference, as in the paper."""
    reference = _after("prox_ltl", MUS[0], quick)["a"]
    for method in LOOPS:
        a = _after(method, case.x or 1.0, quick)["a"]
        error = np.linalg.norm(a - reference, axis=1) / np.linalg.norm(reference, axis=1)
        yield method, "difference", [float(np.median(error))]
        yield method, "worst difference", [float(error.max())]


def _loses_digits(figures: Figures) -> Verdict:
    """Decades that LCABA's error grows by with each step of mu from 1e5 on: more and more, two in all."""
    at = {c.x: x for c in pick(figures, None) if c.x and (x := figures.of(c, "lcaba")) is not None}
    steps = {f"to mu {b:.0e}": log10(at[b] / at[a]) for a, b in pairwise(sorted(x for x in at if x >= MU))}
    if not steps or max(at) < 1e10:
        return NOT_MEASURED
    return every(
        lambda _: within(steps, 0.0, inf, "decades lost, each step:"),
        lambda _: within({"in all": sum(steps.values())}, 2.0, inf, "in all:"),
    )(figures)


FIG11 = Study(
    id="lcaba_proxbbo/fig11",
    title="Relative error of accelerations against mu, two hands that hold a cube",
    where="fig. 11",
    cases=tuple(Case("AH2-cube", f"mu {mu:.0e}", TWO_HANDS, x=mu, quick=mu in (1e5, 1e11)) for mu in MUS),
    names=LOOPS,
    ask=_stability,
    measure="difference",
    unit="relative, median",
    axis="mu",
    caveat=f"{NO_NUMBERS}; 1000 random closed positions of ours with 10 control inputs each (quick: 20)",
    relations=(
        Relation("LCABA deviates more and more as mu grows", "VI-D", _loses_digits),
        *(
            Relation(
                f"{m} is stable up to mu = 1e11 (here: 1e-5)",
                "VI-D",
                value(m, high=1e-5, cases=lambda c: (c.x or 0) >= 1e5),
            )
            for m in ("prox_bbo", "prox_ltl")
        ),
        Relation(
            "1e5 to 1e7 are a good choice for LCABA (error at most 1e-5)",
            "VI-D",
            value("lcaba", high=1e-5, cases=lambda c: c.x in (1e5, 1e7)),
        ),
    ),
)

PAPER = Paper(
    "lcaba_proxbbo",
    "Sathya 2025: LCABA, proxBBO",
    "Sathya, Carpentier: Constrained articulated body algorithms for closed-loop mechanisms, 2025",
    "Intel Core Ultra 7 165H; C++ on Pinocchio, Clang 19",
    (TABLE2, FIG6, FIG7, FIG8, FIG9, FIG10, FIG11),
)
