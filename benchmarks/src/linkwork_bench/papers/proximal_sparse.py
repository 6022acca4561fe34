"""Carpentier, Budhiraja and Mansard: proximal and sparse resolution of constrained dynamics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise, product

import numpy as np

import linkwork as lw
from linkwork.algorithms.constrained.kkt_factor import kkt_factor
from linkwork.constraints import Constraint
from linkwork.constraints.rows import constraint_rows
from linkwork.errors import SingularError
from linkwork.model import Model, Motion
from linkwork.robots.mechanisms import closed, four_bar
from linkwork.robots.scenarios import cassie
from linkwork_bench.convergence import residuals
from linkwork_bench.papers.centre_of_mass import tasks
from linkwork_bench.papers.experiment import (
    NO_NUMBERS,
    OTHER_MACHINE,
    Case,
    Counts,
    Figures,
    Finding,
    Paper,
    Study,
    Tally,
    Times,
    random_states,
)
from linkwork_bench.papers.mechanisms import accelerations, delassus, forward, held, kkt_pattern, of_position, robot
from linkwork_bench.papers.relations import Relation, Verdict, ratio, said, value, within

LIMBS = {
    "UR5": ("ur5", ("wrist_3_link",)),
    "Solo": ("solo12", ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")),
    "ANYmal": ("anymal_b", ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")),
    "iCub": ("icub_reduced", ("l_sole", "r_sole", "l_gripper", "r_gripper")),
    "Talos": (
        "talos_reduced",
        ("left_sole_link", "right_sole_link", "gripper_left_base_link", "gripper_right_base_link"),
    ),
}
POINTS = ("Solo", "ANYmal")


def _held(name: str, count: int, rows: int) -> Model:
    file, limbs = LIMBS[name]
    return held(file, limbs[:count], rows)


def _cases(names: tuple[str, ...], quick: tuple[str, ...]) -> tuple[Case, ...]:
    out = []
    for name in names:
        rows = 3 if name in POINTS else 6
        out.append(Case(name, "none", partial(_held, name, 0, rows), quick="none" in quick))
        if name == "UR5":
            out.append(Case(name, "1x3D", partial(_held, name, 1, 3), quick=False))
        top = 1 if name == "UR5" else 4
        for k in range(1, top + 1):
            out.append(Case(name, f"{k}x{rows}D", partial(_held, name, k, rows), quick=k == top and name in quick))
    return tuple(out)


# figure 2: linear convergence, faster for larger penalties

PENALTIES = (1e2, 1e4, 1e6)


def _twice_held() -> Model:
    """Talos on both feet and its left hand, every constraint twice."""
    once = _held("Talos", 3, 6).constraints
    again: list[Constraint] = [lw.surface(c.a, name=f"{c.name} again") for c in once]  # type: ignore[attr-defined]
    return robot("talos_reduced").with_constraints(*once, *again)


def _state(model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    s = random_states(model, 1)
    return s["q"][0], s["v"][0], s["tau"][0]


def _convergence(case: Case, quick: bool) -> Iterator[Finding]:
    model = case.make()
    state = _state(model)
    for mu in PENALTIES:
        found = residuals(model, "prox_ltl", state, mu, 4 if quick else 8)
        for k, x in enumerate(found, 1):
            yield f"mu {1 / mu:.0e}", f"residual {k}", [x]
        rates = [b / a for a, b in pairwise(found) if a > 1e-9 * found[0] and b > 1e-11]
        yield f"mu {1 / mu:.0e}", "rate", [rates[0] if rates else found[1] / found[0]]


def _rate_like_mu(figures: Figures) -> Verdict:
    """The first factor between residuals, over mu and one constant.

    The same for all mu within a factor of five.
    """
    found = []
    for case in figures.measured:
        for mu in PENALTIES:
            rate = figures.of(case, f"mu {1 / mu:.0e}", "rate")
            if rate is not None:
                found.append(rate * mu)
    spread = {"rate / mu, largest over smallest": max(found) / min(found)} if len(found) > 1 else {}
    return within(spread, 1.0, 5.0, "rate / mu, largest over smallest:")


FIG2 = Study(
    id="proximal_sparse/fig2",
    title="Residual |J a - k| after each proximal iteration, every row twice",
    where="fig. 2",
    cases=(Case("Talos", "2F+H twice", _twice_held),),
    names=tuple(f"mu {1 / m:.0e}" for m in PENALTIES),
    ask=_convergence,
    measure="rate",
    unit="residual after an iteration / before",
    caveat=f"{NO_NUMBERS}, and does not say of which problem",
    relations=(
        Relation(
            "the rate of convergence is linear in mu (here: rate / mu constant within a factor of 5)",
            "III-B",
            _rate_like_mu,
        ),
        Relation(
            "few iterations reach a tolerance close to machine precision (here: three to 1e-9 with mu 1e-6)",
            "III-B",
            value("mu 1e-06", high=1e-9, measure="residual 3"),
        ),
    ),
)


# figures 4 to 7: the sparse factor


def _eliminated(K: np.ndarray, order: Sequence[int] | None, last: int = 0) -> int:
    """Operations of the factorisation U D U^T in this order, fill-in included.

    Without an order, by least degree; the first `last` variables then come last.
    """
    K, left, count = K.copy(), set(range(len(K))), 0
    for step in range(len(K)):
        pivot = order[step] if order is not None else min(left, key=lambda k: (k < last, K[k, list(left)].sum(), k))
        left.remove(pivot)
        others = [k for k in left if K[pivot, k]]
        K[np.ix_(others, others)] = True
        count += len(others) + len(others) * (len(others) + 1)  # quotients; products and differences
    return count


def _sparse(model: Model) -> Tally:
    """Algorithm 1: joints from the tips to the base, then the rows."""
    return Tally(_eliminated(kkt_pattern(model), list(reversed(range(model.rows + model.nv)))))


def _generic(model: Model) -> Tally:
    """A sparse factorisation that knows nothing of trees.

    At each step the variable with the fewest neighbours.
    """
    return Tally(_eliminated(kkt_pattern(model), None))


def _generic_rows_last(model: Model) -> Tally:
    """The same, if rows have to come last, so that their block is the operational-space inertia."""
    return Tally(_eliminated(kkt_pattern(model), None, last=model.rows))


def _dense(model: Model) -> Tally:
    size = model.rows + model.nv
    return Tally(_eliminated(np.ones((size, size), bool), range(size)))


FIG4 = Counts(
    id="proximal_sparse/fig4",
    title="Sparse, generic sparse and dense factors of the KKT matrix: operations",
    where="figs. 4 and 5",
    cases=_cases(tuple(LIMBS), ("none", "UR5", "Solo", "Talos")),
    ways={"sparse": _sparse, "generic sparse": _generic, "rows last": _generic_rows_last, "dense": _dense},
    caveat="the paper times its C++ against Eigen's SimplicialLDLT and LDLT; here the operations of the factorisation "
    "alone are counted, with fill-in, in the order of algorithm 1, in one by least degree, and without zeros",
    relations=(
        Relation(
            "half the cost or less of a dense factor on legged robots",
            "V-B",
            ratio("sparse", "dense", high=0.5, cases=("Solo", "ANYmal", "iCub", "Talos")),
        ),
        Relation(
            "never more than a generic sparse factor",
            "fig. 5",
            ratio("sparse", "generic sparse", high=1.0),
            why="least degree takes rows first, as if M + J^T J / mu were factorised: that fills nothing in, but "
            "loses the digits of 1/mu and the operational-space inertia. If rows come last, as algorithm 1 has "
            "them, no order that a generic factorisation finds needs fewer operations",
            proof=said("rows last", ratio("sparse", "rows last", high=1.0)),
        ),
        Relation(
            "Talos without constraints: 74 % less (here: 64 to 84 %)",
            "V-B",
            ratio("sparse", "dense", 0.16, 0.36, cases=("Talos none",)),
        ),
        Relation(
            "UR5 without constraints: 45 % less (here: 35 to 55 %)",
            "V-B",
            ratio("sparse", "dense", 0.45, 0.65, cases=("UR5 none",)),
            why="an arm's mass matrix is full, and both factorisations have the same operations: what the paper gains "
            "is of the implementation (its footnote: Eigen's pivoting)",
            proof=said("the same operations", ratio("sparse", "dense", 1.0, 1.0, cases=("UR5 none",))),
        ),
    ),
)


def _osim(m: Motion) -> list[object]:
    rows = constraint_rows(m)
    return [kkt_factor(m, rows, [m.xp.zeros(r.k.shape[0]) + 1e-6 for r in rows]).osim]


FIG6 = Counts(
    id="proximal_sparse/fig6",
    title="OSIM and its inverse out of the KKT factor: operations in all",
    where="figs. 6 and 7",
    cases=tuple(c for c in _cases(tuple(LIMBS), ("UR5", "Solo", "Talos")) if c.case != "none"),
    ways={"inverse OSIM": delassus("kkt_cholesky"), "OSIM": of_position("osim", _osim)},
    caveat="the paper times the extraction alone (inverse: 4 us, OSIM: 7 us for Talos with 24 rows; no other numbers); "
    "ours counts all that it takes",
    relations=(Relation("the inverse OSIM is cheaper than the OSIM", "V-C", ratio("inverse OSIM", "OSIM", high=1.0)),),
)


# figure 8: constrained dynamics

FIG8 = Times(
    id="proximal_sparse/fig8",
    title="Constrained dynamics: one state, us",
    where="fig. 8",
    cases=_cases(tuple(LIMBS), ("Solo", "Talos")),
    ways={"prox_ltl": forward("prox_ltl"), "constrained_aba": forward("constrained_aba"), "pv": forward("pv")},
    reference=accelerations,
    compete=True,
    yardstick="constraintDynamics",
    measures=("latency",),
    caveat=f"{NO_NUMBERS}; {OTHER_MACHINE} (i7-7820HQ, 2.9 GHz, no turbo). Their yardstick, Pinocchio's older "
    "forwardDynamics, is slower than the constraintDynamics that came with this paper, which is what is measured here",
    relations=(
        Relation(
            "less than half of Pinocchio's time (there: of forwardDynamics; here: of constraintDynamics)",
            "V-D",
            lambda f: _against_pinocchio(f, 0.5),
        ),
    ),
)


def _against_pinocchio(figures: Figures, limit: float) -> Verdict:
    """Our proximal solver over the fastest of Pinocchio's."""
    found = {}
    for case in figures.measured:
        ours = figures.of(case, "prox_ltl")
        theirs = [
            r.us
            for r in figures.records
            if r.role in ("best", "wheel", "python")
            and "constraintDynamics" in r.method
            and r.samples
            and (r.robot, r.case) == (case.robot, case.case)
        ]
        if ours is not None and theirs:
            found[case.name] = ours / min(theirs)
    return within(found, 0.0, limit)


# V-F: every constraint twice


def _robustness(case: Case, quick: bool) -> Iterator[Finding]:
    model = case.make()
    q, v, tau = _state(model)
    try:
        a = np.asarray(lw.forward_dynamics(model, method="ltl", backend="numpy")(q, v, tau)[0])
        failed = 0.0 if np.isfinite(a).all() and np.abs(a).max() < 1e9 else 1.0
    except SingularError:
        failed = 1.0
    yield "mu 0 (ltl)", "fails", [failed]
    exact = accelerations(model, {"q": q[None], "v": v[None], "tau": tau[None]})[0]
    for method in ("prox_ltl", "prox_bbo", "lcaba") if not quick else ("prox_ltl",):
        found = np.asarray(lw.forward_dynamics(model, method=method, backend="numpy")(q, v, tau)[0])
        yield method, "error", [float(np.abs(found - exact).max() / np.abs(exact).max())]


ROBUST = Study(
    id="proximal_sparse/robustness",
    title="Talos 2F+H, every constraint twice: 36 rows of rank 18",
    where="V-F",
    cases=(Case("Talos", "2F+H twice", _twice_held),),
    names=("mu 0 (ltl)", "prox_ltl", "prox_bbo", "lcaba"),
    ask=_robustness,
    measure="error",
    unit="relative error of accelerations",
    caveat="the paper says only what works and what does not",
    relations=(
        Relation("without a proximal term there is no solution", "V-F", value("mu 0 (ltl)", 1.0, 1.0, measure="fails")),
        Relation("the proximal method finds it (here: to 1e-6)", "V-F", value("prox_ltl", high=1e-6)),
    ),
)


# simulations 9 to 12: the states at their ends


def _cassie_standing() -> Model:
    """Cassie with its loops, and each foot held at heel and toe where it is when assembled.

    24 rows, redundant.
    """
    model = cassie()
    q = lw.assemble(model, model.neutral())
    for side, (end, x) in product(("left", "right"), (("heel", -0.08), ("toe", 0.08))):
        model = model.with_frame(f"{side}-{end}", f"{side}-foot", lw.Placement.at((x, 0, 0)))
        model = closed(model, f"{side}-{end}", "world", cut="spherical", q=q, name=f"{side} {end}")
    return model


def _simulated(case: Case, quick: bool) -> Iterator[Finding]:
    """From rest, with damped motors: the position errors of constraints at the end."""
    model = case.make()
    q0 = lw.assemble(model, model.neutral())
    try:
        run = lw.simulate(
            model,
            q0,
            None,
            _control(model, q0),
            dt=STEP,
            duration=0.2 if quick else 1.0,
            stabilisation=True,
            every=100,
            progress=False,
        )
    except SingularError:
        yield "stabilised", "finite", [0.0]
        return
    error = lw.constraint_error(model, backend="numpy")(run.q[-1], run.v[-1])
    yield "stabilised", "gap", [float(np.abs(error.phi).max(initial=0))]
    yield "stabilised", "finite", [float(np.isfinite(run.q).all())]


STEP = 5e-4
SPRINGS = {"shin": 1500.0, "heel-spring": 1250.0}
"""Cassie's leaf springs, N m/rad; a robot with these is held up by its motors, the others sink with damped ones."""


def _control(model: Model, q0: np.ndarray) -> Callable[[float, np.ndarray, np.ndarray], np.ndarray] | None:
    """Forces of springs and motors; the linkage, which has none, swings freely."""
    links = [model.links[model.topology.dof_link[k]] for k in range(model.nv)]
    if len(links) <= 6:
        return None
    spring = np.array([SPRINGS.get(link.name.partition("-")[2], 0.0) for link in links])
    motor = np.array([float(link.actuated) for link in links])
    stiff = spring + (1000.0 * motor if spring.any() else 0.0)
    damping = np.sign(spring) + (10.0 if spring.any() else 1.0) * motor
    return lambda t, q, v: -stiff * model.difference(q0, q) - damping * v


def _standing(name: str, count: int, rows: int) -> Model:
    """Feet (and hands) held where they are at neutral q."""
    file, limbs = LIMBS[name]
    model = robot(file)
    for f in limbs[:count]:
        model = closed(model, f, "world", cut="fixed" if rows == 6 else "spherical", name=f"{f} held")
    return model


SIMULATIONS = Study(
    id="proximal_sparse/simulations",
    title="Simulated for a second: how far constraints have opened at the end",
    where="figs. 9 to 12",
    cases=(
        Case("4-bar", "3D loop", partial(four_bar, cut="spherical")),
        Case("Talos", "4x6D", partial(_standing, "Talos", 4, 6), quick=False),
        Case("ANYmal", "4x3D", partial(_standing, "ANYmal", 4, 3)),
        Case("Cassie", "loops, heels and toes", _cassie_standing, quick=False),
    ),
    names=("stabilised",),
    ask=_simulated,
    measure="gap",
    unit="m or rad",
    caveat="the paper shows pictures of controlled motions; here steps are of 0.5 ms, Cassie's motors hold it on its "
    "springs, others are damped (the linkage swings freely), and the final state is checked",
    relations=(
        Relation(
            "constraints hold throughout (gap at most 1e-4 after a second)", "V-E", value("stabilised", high=1e-4)
        ),
        Relation("states stay finite", "V-E", value("stabilised", 1.0, 1.0, measure="finite")),
    ),
)

TASKS = tasks(
    (
        Case("Talos", "4x6D", partial(_standing, "Talos", 4, 6), quick=False),
        Case("ANYmal", "4x3D", partial(_standing, "ANYmal", 4, 3), quick=False),
    )
)

PAPER = Paper(
    "proximal_sparse",
    "Carpentier 2021: proxLTL",
    "Carpentier, Budhiraja, Mansard: Proximal and sparse resolution of constrained dynamic equations, 2021",
    "Intel i7-7820HQ, 2.9 GHz, turbo off; C++ with Eigen, Clang 10",
    (FIG2, FIG4, FIG6, FIG8, ROBUST, SIMULATIONS, TASKS),
)
