"""Chignoli, Adrian, Kim and Wensing: recursive algorithms for systems with kinematic loops (clusters)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

import linkwork as lw
from linkwork.functions.function import Function
from linkwork.model import BodyInertia, Model, Placement
from linkwork.robots.mechanisms import belt_chain, geared_chain
from linkwork.robots.tello import tello
from linkwork_bench.inputs import SEED
from linkwork_bench.papers.experiment import (
    NO_NUMBERS,
    OTHER_MACHINE,
    Case,
    Counts,
    Finding,
    Paper,
    Study,
    Times,
)
from linkwork_bench.papers.mechanisms import accelerations, delassus, forward
from linkwork_bench.papers.relations import Judge, Relation, elsewhere, every, growth, operations, ratio, said, value
from linkwork_bench.rotors import torque_errors

NAMES = ("GT chain 12", "PBT chain 12", "Mini Cheetah", "MIT Humanoid", "Tello", "JVRC-1")
MAKERS: dict[str, Callable[[], Model]] = {
    "GT chain 12": partial(geared_chain, 12),
    "PBT chain 12": partial(belt_chain, 12),
    "Mini Cheetah": partial(lw.load, "mini_cheetah"),
    "MIT Humanoid": partial(lw.load, "mit_humanoid"),
    "Tello": tello,
    "JVRC-1": partial(lw.load, "jvrc1_humanoid"),
}
FEET = {
    "GT chain 12": ("tip",),
    "PBT chain 12": ("tip",),
    "Tello": ("left-foot", "right-foot"),
    "Mini Cheetah": tuple(f"{leg}_knee_link" for leg in ("FL", "FR", "HL", "HR")),
    "MIT Humanoid": ("left_ankle_link", "right_ankle_link"),
    "JVRC-1": ("left-ankle-roll", "right-ankle-roll"),
}
QUICK = ("GT chain 12", "Mini Cheetah")
GEARED = tuple(n for n in NAMES if n != "Tello")
RELATIVE = f"{OTHER_MACHINE} (M1 Pro): per cent of time more or less than the first method"
FOLDED = (
    "rotors that are symmetric about their axes cost C-RNEA, C-ABA and C-EFPA next to nothing here, because a trace "
    "leaves zeros out, so that an approximation has little left to save. With rotors that are not, it saves 30 % "
    "and more"
)


def _cases(make: Callable[[str], Callable[[], Model]] = MAKERS.__getitem__) -> tuple[Case, ...]:
    return tuple(Case(name, "", make(name), quick=name in QUICK) for name in NAMES)


def _published(rows: Mapping[str, tuple[float, ...]]) -> dict[str, dict[str, float]]:
    """Per cent above the first method, by robot, from the paper's rows by method."""
    return {name: {method: row[k] for method, row in rows.items()} for k, name in enumerate(NAMES)}


def _reduced(model: Model) -> Model:
    """Without rotors, their reflected inertia on the joints."""
    return lw.approximate(model)


def _tau(model: Model, states: Mapping[str, np.ndarray]) -> np.ndarray:
    solve = lw.inverse_dynamics(model, method="projected_rnea", backend="numpy")
    return np.asarray(solve(states["q"], states["v"], states["a"])[0])


def _matrix(model: Model, states: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.asarray(lw.delassus(model, method="projected_efpa", backend="numpy")(states["q"])[0])


def _inverse(method: str) -> Callable[[Model], Function]:
    return partial(lw.inverse_dynamics, method=method, frames="given")


def _unsymmetric(model: Model) -> Model:
    """The same robot with rotors of no symmetry, in frames of no special kind.

    Nothing about them folds away.
    """
    t, links, rng = model.topology, list(model.links), np.random.default_rng(SEED)
    independent = set(lw.clusters(model).velocities)
    for i in t.links:
        dofs = range(t.v_slices[i].start, t.v_slices[i].stop)
        if len(dofs) != 1 or dofs[0] in independent or t.children[i]:
            continue
        skew = rng.normal(size=(3, 3)) / 50
        about = (np.trace(links[i].inertia.about_origin) + 1e-3) * (np.eye(3) + skew + skew.T)
        body = BodyInertia(links[i].inertia.mass, rng.normal(size=3) / 100, about)
        place = links[i].placement @ Placement.at((0.01, 0.02, 0.03), (0.3, 0.4, 0.5))
        links[i] = replace(links[i], inertia=body, placement=place)
    return replace(model, links=tuple(links))


def _on_unsymmetric(way: Callable[[Model], Function]) -> Callable[[Model], Function]:
    return lambda model: way(_unsymmetric(model))


def _times(over: str, under: str, low: float, high: float, cases: tuple[str, ...] = NAMES) -> Judge:
    """Per cent that one method takes more than the other."""
    return ratio(over, under, 1 + low / 100, 1 + high / 100, cases=cases)


def _on_feet(model: Model) -> Model:
    """With welds at its tip or feet."""
    names = {*model.frames, *(link.name for link in model.links)}
    feet = next(feet for feet in FEET.values() if names.issuperset(feet))
    return model.with_constraints(*(lw.surface(f) for f in feet))


ROTORS = Counts(
    id="clusters/rotors",
    title="Rotors without symmetry: operations of the same algorithms",
    where="tables II to IV (the cause of differences)",
    cases=_cases(),
    ways={
        "c_rnea": _inverse("c_rnea"),
        "c_rnea, no symmetry": _on_unsymmetric(_inverse("c_rnea")),
        "projected_rnea, no symmetry": _on_unsymmetric(_inverse("projected_rnea")),
        "rnea": lambda m: lw.inverse_dynamics(_reduced(m), frames="given"),
        "c_aba": forward("c_aba"),
        "c_aba, no symmetry": _on_unsymmetric(forward("c_aba")),
        "projection, no symmetry": _on_unsymmetric(forward("projection")),
        "aba": lambda m: forward("aba")(_reduced(m)),
        "c_efpa": lambda m: delassus("c_efpa")(_on_feet(m)),
        "c_efpa, no symmetry": lambda m: delassus("c_efpa")(_on_feet(_unsymmetric(m))),
        "efpa": lambda m: delassus("c_efpa")(_reduced(_on_feet(m))),
    },
    caveat="not in the paper: its library knows nothing of zeros, so every rotor costs it what these rotors cost us",
)
TABLE2 = Times(
    id="clusters/table2",
    title="Inverse dynamics: time against C-RNEA, %",
    where="table II, fig. 9",
    cases=_cases(),
    ways={
        "c_rnea": _inverse("c_rnea"),
        "approximate": lambda m: lw.inverse_dynamics(_reduced(m), frames="given"),
        "projected_rnea": _inverse("projected_rnea"),
    },
    reference=_tau,
    unchecked=frozenset({"approximate"}),
    measures=("latency",),
    relative_to="c_rnea",
    unit="%",
    published=_published(
        {
            "approximate": (-40.3, -36.2, -41.0, -42.0, -59.6, -37.7),
            "projected_rnea": (38.0, 37.8, 36.7, 35.9, 22.4, 36.6),
        }
    ),
    caveat=f"{RELATIVE}. Tello has no approximation here: its differentials are not gears",
    relations=(
        Relation(
            "C-RNEA is faster than projected RNEA on all robots",
            "IX-A-1",
            ratio("projected_rnea", "c_rnea", 1.0),
            why="JVRC-1's rotors are not symmetric about their axes, so that `c_rnea` has to turn them too: 5 % "
            "fewer operations are left",
            proof=operations("projected_rnea", "c_rnea", 1.03, 1.08, cases=("JVRC-1",)),
        ),
        Relation(
            "projected RNEA is 22 to 38 % slower (here: 15 to 45 %)",
            "IX-A-1",
            _times("projected_rnea", "c_rnea", 15, 45),
            why="what C-RNEA saves here are rotors that need not turn: it depends on how many are symmetric. On JVRC-1 "
            "they are not; with no symmetry at all both methods have the same operations, because products with the "
            "zeros of G are free in a trace",
            proof=elsewhere(
                ROTORS,
                said(
                    "no symmetry, gears and belts",
                    ratio("projected_rnea, no symmetry", "c_rnea, no symmetry", 1.0, 1.02, cases=GEARED),
                ),
            ),
        ),
        Relation(
            "the approximation is 36 to 60 % faster (here: 30 to 65 %)",
            "IX-A-1",
            _times("approximate", "c_rnea", -65, -30, GEARED),
            why=FOLDED,
            proof=elsewhere(ROTORS, said("no symmetry", ratio("rnea", "c_rnea, no symmetry", 0.3, 0.7, cases=GEARED))),
        ),
    ),
)
TABLE3 = Times(
    id="clusters/table3",
    title="Forward dynamics: time against C-ABA, %",
    where="table III, fig. 10",
    cases=_cases(),
    ways={
        "c_aba": forward("c_aba"),
        "approximate": lambda m: forward("aba")(_reduced(m)),
        "projection": forward("projection"),
        "lagrange": forward("lagrange"),
    },
    reference=accelerations,
    unchecked=frozenset({"approximate"}),
    measures=("latency",),
    relative_to="c_aba",
    unit="%",
    published=_published(
        {
            "approximate": (-34.1, -34.6, -35.3, -38.6, -49.4, -38.4),
            "projection": (86.8, 73.5, 21.0, 32.5, 22.2, 87.3),
            "lagrange": (133.1, 119.8, 76.3, 106.2, 82.7, 212.8),
        }
    ),
    caveat=f"{RELATIVE}. Tello has no approximation here",
    relations=(
        Relation(
            "C-ABA beats projection and Lagrange multipliers on all robots",
            "IX-A-2",
            every(ratio("projection", "c_aba", 1.0), ratio("lagrange", "c_aba", 1.0)),
        ),
        Relation(
            "projection is 21 to 87 % slower (here: 15 to 100 %)",
            "IX-A-2",
            _times("projection", "c_aba", 15, 100),
            why="C-ABA gains more on JVRC-1, whose tree is the deepest: projection needs 2.5 times its operations "
            "there, and less than twice without the rotors' symmetry",
            proof=every(
                operations("projection", "c_aba", 2.0, 3.0, cases=("JVRC-1",)),
                elsewhere(
                    ROTORS,
                    said(
                        "no symmetry",
                        ratio("projection, no symmetry", "c_aba, no symmetry", 1.0, 2.0, cases=("JVRC-1",)),
                    ),
                ),
            ),
        ),
        Relation(
            "Lagrange multipliers are 76 to 212 % slower (here: 60 to 240 %)",
            "IX-A-2",
            _times("lagrange", "c_aba", 60, 240),
            why="on geared robots they are; on Tello C-ABA, whose clusters are differentials there, solves for the "
            "rods and certifies what it found, and needs two thirds of the operations of Lagrange multipliers",
            proof=every(
                said("geared robots", _times("lagrange", "c_aba", 60, 240, GEARED)),
                operations("c_aba", "lagrange", 0.6, 0.7, cases=("Tello",)),
            ),
        ),
        Relation(
            "the approximation is 34 to 49 % faster (here: 25 to 55 %)",
            "IX-A-2",
            _times("approximate", "c_aba", -55, -25, GEARED),
            why=FOLDED,
            proof=elsewhere(ROTORS, said("no symmetry", ratio("aba", "c_aba, no symmetry", 0.3, 0.7, cases=GEARED))),
        ),
    ),
)


def _standing(name: str) -> Callable[[], Model]:
    def make() -> Model:
        return MAKERS[name]().with_constraints(*(lw.surface(f) for f in FEET[name]))

    return make


TABLE4 = Times(
    id="clusters/table4",
    title="Inverse OSIM of the feet: time against C-EFPA, %",
    where="table IV, fig. 12",
    cases=_cases(_standing),
    ways={
        "c_efpa": delassus("c_efpa"),
        "approximate": lambda m: delassus("c_efpa")(_reduced(m)),
        "projected_efpa": delassus("projected_efpa"),
    },
    reference=_matrix,
    unchecked=frozenset({"approximate"}),
    measures=("latency",),
    relative_to="c_efpa",
    unit="%",
    published=_published(
        {
            "approximate": (-35.7, -52.1, -28.6, -37.4, -51.4, -22.54),
            "projected_efpa": (51.8, 6.3, 19.0, 23.2, 7.8, 107.4),
        }
    ),
    caveat=f"{RELATIVE}. Rows: a weld at the chain's tip or at each foot; Tello has no approximation here",
    relations=(
        Relation(
            "C-EFPA beats projection on all robots",
            "IX-A-3",
            ratio("projected_efpa", "c_efpa", 1.0),
            why="on Mini Cheetah, whose legs have three joints, a sparse factor of the projected mass matrix has as "
            "many operations (within 2 %), as `ltl` has on plain trees",
            proof=operations("projected_efpa", "c_efpa", 0.98, 1.02, cases=("Mini Cheetah",)),
        ),
        Relation(
            "projection is 6 to 107 % slower (here: 0 to 120 %)",
            "IX-A-3",
            _times("projected_efpa", "c_efpa", 0, 120),
            why="on Mini Cheetah it is level: see above",
            proof=operations("projected_efpa", "c_efpa", 0.98, 1.02, cases=("Mini Cheetah",)),
        ),
        Relation(
            "the approximation is 23 to 52 % faster (here: 15 to 60 %)",
            "table IV",
            _times("approximate", "c_efpa", -60, -15, GEARED),
            why=FOLDED,
            proof=elsewhere(ROTORS, said("no symmetry", ratio("efpa", "c_efpa, no symmetry", 0.3, 0.85, cases=GEARED))),
        ),
    ),
)

SIZES = (4, 8, 12, 16, 20, 24)
EXACT = {"c_aba": forward("c_aba"), "projection": forward("projection"), "lagrange": forward("lagrange")}


def _chains(name: str, make: Callable[[int], Model], sizes: tuple[int, ...] = SIZES) -> tuple[Case, ...]:
    return tuple(Case(name, f"{n} links", partial(make, n), x=n, quick=n <= 16) for n in sizes)


FIG11 = Counts(
    id="clusters/fig11",
    title="Chains with gears and with belts, forward dynamics: operations",
    where="fig. 11",
    cases=(*_chains("gears", geared_chain), *_chains("belts", belt_chain)),
    ways=EXACT,
    axis="links",
    caveat=f"the paper times its C++, we count operations; {NO_NUMBERS}",
    relations=(
        Relation("C-ABA grows linearly (power at most 1.1)", "IX-A-2", growth("c_aba", high=1.1)),
        Relation(
            "projection grows faster, cubically in the end (power at least 1.5 up to 24 links)",
            "IX-A-2",
            growth("projection", low=1.5),
        ),
        Relation(
            "Lagrange multipliers grow faster, cubically in the end (power at least 1.3)",
            "IX-A-2",
            growth("lagrange", low=1.3),
        ),
    ),
)


def _tip_held(n: int) -> Model:
    return belt_chain(n).with_constraints(lw.surface("tip"))


FIG13 = Counts(
    id="clusters/fig13",
    title="Chains with belts, inverse OSIM of the tip: operations",
    where="fig. 13",
    cases=_chains("belts", _tip_held),
    ways={m: delassus(m) for m in ("c_efpa", "projected_efpa")},
    axis="links",
    caveat=f"the paper times its C++, we count operations; {NO_NUMBERS}",
    relations=(
        Relation("C-EFPA grows linearly (power at most 1.1)", "IX-A-3", growth("c_efpa", high=1.1)),
        Relation(
            "projection grows faster, cubically in the end (power at least 1.3)",
            "IX-A-3",
            growth("projected_efpa", low=1.3),
        ),
        Relation(
            "C-EFPA is ahead on long chains",
            "IX-A-3",
            ratio("c_efpa", "projected_efpa", high=1.0, cases=lambda c: (c.x or 0) >= 24),
        ),
    ),
)


def _torques(case: Case, quick: bool) -> Iterator[Finding]:
    found = {e.joint: e for e in torque_errors(case.make(), steps=100 if quick else 1000)}
    for joint, e in found.items():
        label = {"hipy_to_knee_link": "knee", "knee_to_ankle": "ankle"}.get(joint, joint)
        yield "unconstrained", f"{label} rms", [e.unconstrained]
        yield "approximate", f"{label} rms", [e.diagonal]
        yield "unconstrained", f"{label} %", [100 * e.unconstrained / e.peak]
        yield "approximate", f"{label} %", [100 * e.diagonal / e.peak]


FIG14 = Study(
    id="clusters/fig14",
    title="Torque of the MIT Humanoid's leg on sinusoids: root mean square error",
    where="fig. 14",
    cases=(Case("MIT Humanoid leg", "", partial(lw.load, "mit_humanoid_leg")),),
    names=("unconstrained", "approximate"),
    ask=_torques,
    measure="knee rms",
    unit="N m",
    published={"MIT Humanoid leg": {"unconstrained": 4.31, "approximate": 1.04}},
    caveat="the paper calls the joint the ankle; with its published file these are the figures of the knee",
    relations=(
        Relation("4.31 N m without rotors (to 0.01)", "IX-B", value("unconstrained", 4.30, 4.32)),
        Relation("1.04 N m with their reflected inertia (to 0.01)", "IX-B", value("approximate", 1.03, 1.05)),
        Relation("39.2 % of the largest torque (to 1 %)", "IX-B", value("unconstrained", 38.2, 40.2, measure="knee %")),
        Relation("9.5 % of the largest torque (to 0.5 %)", "IX-B", value("approximate", 9.0, 10.0, measure="knee %")),
        Relation(
            "these are figures of the ankle",
            "IX-B",
            value("unconstrained", 4.30, 4.32, measure="ankle rms"),
            why="they are the knee's, which carries both belts; the paper's text seems to have the name wrong",
            proof=said("knee", value("unconstrained", 4.30, 4.32, measure="knee rms")),
        ),
    ),
)

PAPER = Paper(
    "clusters",
    "Chignoli 2023: clusters",
    "Chignoli, Adrian, Kim, Wensing: Recursive rigid-body dynamics algorithms for systems with kinematic loops, 2023",
    "Apple M1 Pro; C++ with Eigen, Clang 14",
    (ROTORS, TABLE2, TABLE3, TABLE4, FIG11, FIG13, FIG14),
)
