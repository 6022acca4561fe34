"""Sathya, Bruyninckx, Decre and Pipeleers.

Constrained dynamics as an LQR problem (PV, PV-early, PV-soft).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import linkwork as lw
from linkwork.algorithms.common.articulated import articulated
from linkwork.algorithms.common.propagators import propagated, single_links
from linkwork.algorithms.delassus.ltl import joint_columns, ltl
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL
from linkwork.constraints.rows import constraint_rows
from linkwork.errors import SingularError
from linkwork.model import Model, Motion
from linkwork_bench.papers import published
from linkwork_bench.papers.experiment import (
    NO_NUMBERS,
    OTHER_MACHINE,
    Case,
    Counted,
    Counts,
    Figures,
    Finding,
    Paper,
    Study,
    Times,
    random_states,
)
from linkwork_bench.papers.mechanisms import (
    ATLAS_LIMBS,
    GO1_FEET,
    TALOS_LIMBS,
    accelerations,
    delassus,
    forward,
    free,
    held,
    held_by_rows,
    of_position,
    osim,
    soft_accelerations,
    tube_chain,
    tube_ladder,
    tube_stem,
)
from linkwork_bench.papers.relations import (
    NOT_MEASURED,
    Judge,
    Relation,
    Verdict,
    crossing,
    every,
    exponent,
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

R = 1e-6
"""Softness of soft rows: the paper's weight 1e6."""
IIWA_TIP = "lbr_iiwa_link_7"


# operation counts: figures 2a to 2d


def _inertias(m: Motion) -> list[object]:
    """What of articulated inertias the later passes use: U and 1/d of every joint."""
    art = articulated(m)
    return [x for dofs in art.dofs for dof in dofs for x in (dof.V, dof.d_inv)]


def _propagated(m: Motion) -> list[object]:
    """The rows at all links up to the base as well: K^A."""
    art = articulated(m)
    rows = [propagated(art, link, KT) for link, KT in single_links(m, "pv")]
    return [
        *_inertias(m),
        *(KT for c in rows for KT in c.KT.values()),
        *(e for c in rows for es in c.eT.values() for e in es),
    ]


def _factor(m: Motion) -> list[object]:
    f = LTL(crba(m), m.model.topology.dof_parent, m.xp)
    return [*(x for row in f.L for x in (row.values() if isinstance(row, dict) else row)), *f.pivots]


def _jacobian(m: Motion) -> list[object]:
    return [*_factor(m), *(x for r in constraint_rows(m) for x in joint_columns(m, r).values())]


PROPAGATED = {
    "articulated inertias": of_position("inertias", _inertias),
    "rows to the base": of_position("propagated", _propagated),
}
PARTS = {
    "pv": {**PROPAGATED, "inverse OSIM": delassus("pv"), "factor and solve": osim("pv")},
    "efpa": {**PROPAGATED, "inverse OSIM": delassus("efpa"), "factor and solve": osim("efpa")},
    "ltl": {
        "mass matrix and its factor": of_position("factor", _factor),
        "Jacobian": of_position("jacobian", _jacobian),
        "inverse OSIM": of_position("ltl", lambda m: [ltl(m)]),
        "factor and solve": osim("ltl"),
    },
}
OSIM_WAYS = {m: osim(m) for m in ("pv", "pv_fast", "efpa", "ltl", "kjr")}
SMALL = {m: OSIM_WAYS[m] for m in ("pv", "efpa", "ltl", "kjr")}
LARGE_CASES = ("F", "2F", "2F+H", "2F+2H")


def _osim_cases(name: str, file: str, links: tuple[str, ...], labels: tuple[str, ...], rows: int) -> tuple[Case, ...]:
    quick = (labels[0], labels[-1])
    return tuple(
        Case(name, label, partial(held_by_rows, file, links[: k + 1], rows), quick=label in quick)
        for k, label in enumerate(labels)
    )


def _limbs(case: Case) -> int:
    """How many limbs have rows."""
    return sum(int(part[0]) if part[0].isdigit() else 1 for part in case.case.split("+"))


def _rises(figures: Figures, over: str, under: str) -> Verdict:
    """The least step of over / under from one limb to the next."""
    known = {_limbs(c): a / b for c in figures.measured if (a := figures.of(c, over)) and (b := figures.of(c, under))}
    return within({f"limb {k}": known[k] - known[k - 1] for k in known if k - 1 in known}, 0.0, np.inf, "steps")


FOOTED = (
    Relation("PV-OSIM needs fewer operations than EFPA", "IX-B", ratio("pv", "efpa", high=1.0)),
    Relation(
        "KJR is significantly slower than EFPA (here: by 20 % and more)",
        "IX-B",
        ratio("kjr", "efpa", low=1.2),
        why="with rows on one limb there are no pairs: KJR moves a symmetric matrix out once, EFPA moves K in and "
        "Omega K^T out; KJR falls behind with the number of pairs, by 20 % and more from three limbs on",
        proof=every(
            said("three and four limbs", ratio("kjr", "efpa", low=1.2, cases=lambda c: _limbs(c) > 2)),
            said("KJR over EFPA rises with every limb", lambda f: _rises(f, "kjr", "efpa")),
        ),
    ),
    Relation(
        "PV-OSIM-fast is the fastest on floating bases",
        "IX-B",
        fastest("pv_fast", ("pv", "efpa", "ltl", "kjr")),
    ),
)
HUMANOID = (
    *FOOTED,
    Relation("LTL is the slowest on humanoids (KJR aside)", "IX-B", slowest("ltl", ("pv", "pv_fast", "efpa"))),
    Relation(
        "PV-OSIM-fast is nearly 2x faster than LTL on humanoids (here: 1.6 to 2.6)",
        "IX-B",
        ratio("ltl", "pv_fast", 1.6, 2.6),
    ),
)


def _without_jacobian(method: str, low: float, high: float, cases: tuple[str, ...]) -> Judge:
    """LTL without its Jacobian over another method."""

    def judge(figures: Figures) -> Verdict:
        found = {}
        for c in pick(figures, lambda c: c.case in cases):
            whole, J, other = figures.of(c, "ltl"), figures.of(c, "ltl", "part: Jacobian"), figures.of(c, method)
            if whole is not None and J is not None and other:
                found[c.name] = (whole - J) / other
        return within(found, low, high)

    return judge


FIG2A = Counts(
    id="pv_lqr/fig2a",
    title="OSIM of Atlas: operations, factor and one solve included",
    where="fig. 2a",
    cases=_osim_cases("Atlas", "atlas_v4", ATLAS_LIMBS, LARGE_CASES, 6),
    ways=OSIM_WAYS,
    parts=PARTS,
    caveat=NO_NUMBERS,
    relations=(
        *HUMANOID,
        Relation(
            "with its Jacobian for free, LTL beats EFPA for 18 and 24 rows",
            "IX-B",
            _without_jacobian("efpa", 0.0, 1.0, ("2F+H", "2F+2H")),
        ),
        Relation("... but not PV-OSIM", "IX-B", _without_jacobian("pv", 1.0, 9.9, ("2F+H", "2F+2H"))),
    ),
)
FIG2B = Counts(
    id="pv_lqr/fig2b",
    title="OSIM of Talos: operations, factor and one solve included",
    where="fig. 2b",
    cases=_osim_cases("Talos", "talos_full_v2", TALOS_LIMBS, LARGE_CASES, 6),
    ways=OSIM_WAYS,
    parts=PARTS,
    caveat=NO_NUMBERS,
    relations=HUMANOID,
)
FIG2C = Counts(
    id="pv_lqr/fig2c",
    title="OSIM of Go1: operations, factor and one solve included",
    where="fig. 2c",
    cases=_osim_cases("Go1", "go1", GO1_FEET, ("F3", "2F3", "3F3", "4F3"), 3),
    ways=OSIM_WAYS,
    parts=PARTS,
    caveat=NO_NUMBERS,
    relations=(
        *FOOTED,
        Relation("PV-OSIM is slightly below LTL (here: by up to 20 %)", "IX-B", ratio("pv", "ltl", 0.8, 1.0)),
    ),
)
FIG2D = Counts(
    id="pv_lqr/fig2d",
    title="OSIM of the iiwa: operations, factor and one solve included",
    where="fig. 2d",
    cases=(
        Case("Iiwa", "H3", partial(held_by_rows, "iiwa", (IIWA_TIP,), 3)),
        Case("Iiwa", "H", partial(held_by_rows, "iiwa", (IIWA_TIP,), 6)),
        Case("Iiwa", "weld", partial(held, "iiwa", (IIWA_TIP,), 6)),
    ),
    ways=SMALL,
    parts=PARTS,
    caveat=NO_NUMBERS,
    relations=(
        Relation("PV-OSIM needs fewer operations than EFPA", "IX-B", ratio("pv", "efpa", high=1.0)),
        Relation(
            "LTL is the fastest for the iiwa",
            "IX-B",
            fastest("ltl", ("pv", "efpa", "kjr"), cases=("Iiwa H3", "Iiwa H")),
            why="on seven joints the Jacobian decides, which `pv` does not need: with J given `ltl` is the fastest "
            "by 15 % and more, with random rows as with a weld",
            proof=said("J given", _without_jacobian("pv", 0.0, 0.85, ("H3", "H", "weld"))),
        ),
    ),
)


# figure 2f: PV-OSIM against EFPA on long stems

STEMS = (8, 32, 64)
SHORT_STEMS = (2, 4, 8, 16)
BRANCHES = (1, 4, 8, 9, 10)
DENSE = "10 branches of 1, random K"
FORMS: dict[str, Callable[[Model], Counted]] = {
    **{m: delassus(m) for m in ("pv", "efpa")},
    "pv (paper's form)": published.of(published.pv),
    "efpa (paper's form)": published.efpa_unshared,
}
THEIRS = ("efpa (paper's form)", "pv (paper's form)")


def _stem_case(n: int, branches: int, links: int = 7, rows: int = 0) -> Case:
    label = f"{branches} branches" + ("" if links == 7 else f" of {links}") + (", random K" if rows else "")
    return Case(label, f"stem {n}", partial(tube_stem, n, branches, links, rows), x=n, quick=n <= 8 and branches <= 4)


FIG2F = Counts(
    id="pv_lqr/fig2f",
    title="PV-OSIM and EFPA on a stem with branches at both ends",
    where="fig. 2f",
    cases=(
        *(_stem_case(n, b) for b in BRANCHES for n in STEMS),
        *(_stem_case(n, 10, 1) for n in SHORT_STEMS),
        *(_stem_case(n, 10, 1, 6) for n in SHORT_STEMS),
    ),
    ways=FORMS,
    axis="links of the stem",
    caveat=f"{NO_NUMBERS}; the links are those of the authors' script, with axes 1 rad and 60 degrees apart. The "
    "paper's form moves frames by 6 x 6 matrices, for EFPA's way out anew for each constraint; ours moves them by a "
    "rotation and a shift, which costs EFPA half, so that it is ahead earlier",
    relations=(
        Relation(
            "EFPA needs more for up to 8 branches, however long the stem (paper's form)",
            "IX-B",
            ratio(*THEIRS, low=1.0, cases=("1 branches", "4 branches", "8 branches")),
        ),
        Relation(
            "10 branches of 7 links: EFPA is better from 54 stem links on (here: 40 to 70; paper's form)",
            "IX-B",
            crossing(*THEIRS, 40, 70, cases=("10 branches",)),
        ),
        Relation(
            "10 branches of one link: EFPA is better from 7 stem links on (here: 4 to 10; paper's form)",
            "IX-B",
            crossing(*THEIRS, 4, 10, cases=("10 branches of 1",)),
            why="a weld (K = 1) one joint from the stem leaves K mostly zeros where far branches meet, so that EFPA's "
            "products are cheap from the start; with a full K it is better from so many links on as in the paper",
            proof=said("random K", crossing(*THEIRS, 4, 10, cases=(DENSE,))),
        ),
    ),
)


# figure 3: accuracy of the soft Gauss principle on Talos, feet and hands held

WEIGHTS = tuple(10.0**k for k in range(2, 13, 2))
HARD, SOFT = ("pv", "pv_early", "ltl"), ("pv_soft", "ltl_soft")


def _accuracy(case: Case, quick: bool) -> Iterator[Finding]:
    """Norms of J a - k and of a - a(pv), by posture."""
    model, weight = case.make(), case.x
    states = random_states(model, 50 if quick else 1000)
    state = (states["q"], states["v"], states["tau"])
    J, k = _rows_of(model, states)
    exact = np.asarray(lw.forward_dynamics(model, method="pv")(*state)[0])
    for method in HARD if weight is None else SOFT:
        softness = None if weight is None else 1 / weight
        try:
            a = np.asarray(lw.forward_dynamics(model, method=method, R=softness)(*state)[0])
        except SingularError:
            continue
        residual = np.linalg.norm(np.einsum("bij,bj->bi", J, a) - k, axis=1)
        yield method, "residual", residual.tolist()
        yield method, "worst residual", [float(residual.max())]
        yield method, "difference", np.linalg.norm(a - exact, axis=1).tolist()


def _rows_of(model: Model, states: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    from linkwork.algorithms.constrained.kkt import joint_space
    from linkwork.backends import get

    found = [
        joint_space(Motion(model, q[:, None], v[:, None], get("numpy")))
        for q, v in zip(states["q"], states["v"], strict=True)
    ]
    return np.array([J for J, _ in found]), np.array([k[:, 0] for _, k in found])


def _turns_up(figures: Figures, method: str) -> Verdict:
    """The difference to the hard solution is larger at the largest weight than at its least."""
    curve = {c.x: y for c in pick(figures, None) if c.x and (y := figures.of(c, method, "difference")) is not None}
    if len(curve) < 3 or max(curve) < 1e10:
        return NOT_MEASURED
    return within({"at the largest weight / least": curve[max(curve)] / min(curve.values())}, 1.5, np.inf)


TALOS_HELD = partial(held, "talos_full_v2", TALOS_LIMBS)
FIG3 = Study(
    id="pv_lqr/fig3",
    title="Accuracy of soft constraints on Talos 2F+2H: |J a - k| and |a - a of PV|",
    where="fig. 3",
    cases=(
        Case("Talos 2F+2H", "hard", TALOS_HELD),
        *(Case("Talos 2F+2H", f"weight {w:.0e}", TALOS_HELD, x=w, quick=w in (1e4, 1e8)) for w in WEIGHTS),
    ),
    names=(*HARD, *SOFT),
    ask=_accuracy,
    measure="residual",
    unit="m/s^2",
    axis="weight of soft rows",
    caveat=f"{NO_NUMBERS}; welds here, and our own random postures",
    relations=(
        Relation(
            "hard solvers satisfy the constraints to high accuracy (here: 1e-6 in every posture)",
            "IX-C-3",
            every(*(value(m, high=1e-6, measure="worst residual") for m in HARD)),
        ),
        Relation(
            "residuals of soft solvers fall with the weight (here: like 1/weight, up to 1e8)",
            "IX-C-3",
            every(*(exponent(m, -1.1, -0.9, cases=lambda c: c.x is not None and c.x <= 1e8) for m in SOFT)),
        ),
        Relation(
            "both soft solvers satisfy the constraints equally well (within 10 %, up to 1e8)",
            "IX-C-3",
            ratio("pv_soft", "ltl_soft", 0.9, 1.1, cases=lambda c: c.x is not None and c.x <= 1e8),
        ),
        Relation(
            "above 1e8 the accelerations diverge from those of hard solvers",
            "IX-C-3",
            every(*(partial(_turns_up, method=m) for m in SOFT)),
        ),
        Relation(
            "PV-s is more stable than LTL-s at high weights",
            "IX-C-3",
            ratio("pv_soft", "ltl_soft", high=1.0, measure="difference", cases=lambda c: c.x is not None and c.x > 1e9),
        ),
    ),
)


# times: table II, figures 4a and 4c

FORWARD = {
    "pv": forward("pv"),
    "pv_early": forward("pv_early"),
    "ltl": forward("ltl"),
    "pv_soft": forward("pv_soft", R=R),
    "ltl_soft": forward("ltl_soft", R=R),
}
SOFTLY = partial(soft_accelerations, R=R)
COLUMNS = ("pv", "pv_early", "ltl", "Pinocchio", "pv_soft", "ltl_soft", "MuJoCo")
TABLE2_FIGURES = {
    "Iiwa 0D": (0.55, 0.55, 0.63, 2.15, 0.55, 0.63, 3.11),
    "Iiwa H3": (0.75, 0.61, 0.83, 2.73, 0.61, 0.80, 4.45),
    "Iiwa H": (1.01, 1.09, 1.08, 3.53, 0.63, 0.89, 4.88),
    "Go1 0D": (1.65, 1.67, 1.74, 4.68, 1.64, 1.74, 7.10),
    "Go1 F3": (1.88, 1.81, 1.96, 5.61, 1.70, 1.84, 11.2),
    "Go1 2F3": (2.10, 1.98, 2.20, 6.40, 1.76, 1.98, 12.0),
    "Go1 3F3": (2.32, 2.14, 2.48, 7.33, 1.82, 2.16, 12.8),
    "Go1 4F3": (2.53, 2.33, 2.85, 8.20, 1.90, 2.33, 13.5),
    "Atlas 0D": (3.44, 3.47, 4.64, 12.3, 3.47, 4.64, 15.9),
    "Atlas F": (4.59, 3.94, 5.88, 15.4, 3.61, 5.58, 31.5),
    "Atlas 2F": (6.09, 4.40, 7.52, 18.5, 3.73, 6.61, 34.2),
    "Atlas 2F+H": (7.37, 5.03, 8.69, 22.3, 3.76, 6.93, 36.5),
    "Atlas 2F+2H": (8.27, 5.52, 11.8, 26.5, 3.82, 7.77, 38.8),
    "Talos 0D": (4.92, 4.97, 8.14, 17.1, 4.96, 8.28, 23.6),
    "Talos F": (5.63, 5.48, 9.25, 21.1, 4.96, 8.65, 51.3),
    "Talos 2F": (6.72, 6.45, 10.9, 25.2, 4.99, 9.21, 54.3),
    "Talos 2F+H": (8.40, 7.06, 13.4, 30.0, 5.08, 10.6, 57.0),
    "Talos 2F+2H": (10.13, 7.40, 15.4, 34.7, 5.11, 11.0, 59.4),
}
"""Microseconds; the last row is hard to read in our copy: 10.13, 7.40, 15.4, 34.7, 5.11, 11.0, 59.4."""
ROBOTS = {
    "Iiwa": ("iiwa", (IIWA_TIP,), {"H3": (1, 3), "H": (1, 6)}),
    "Go1": ("go1", GO1_FEET, {"F3": (1, 3), "2F3": (2, 3), "3F3": (3, 3), "4F3": (4, 3)}),
    "Atlas": ("atlas_v4", ATLAS_LIMBS, {"F": (1, 6), "2F": (2, 6), "2F+H": (3, 6), "2F+2H": (4, 6)}),
    "Talos": ("talos_full_v2", TALOS_LIMBS, {"F": (1, 6), "2F": (2, 6), "2F+H": (3, 6), "2F+2H": (4, 6)}),
}


def _table2_cases() -> Iterator[Case]:
    for name, (file, links, labels) in ROBOTS.items():
        yield Case(name, "0D", partial(held, file, ()), quick=name == "Iiwa")
        for label, (count, rows) in labels.items():
            yield Case(
                name,
                label,
                partial(held_by_rows, file, links[:count], rows),
                quick=label in ("H", "4F3", "2F+2H"),
                twin=partial(held, file, links[:count], rows),
            )


def _added_per_limb(figures: Figures) -> Verdict:
    """Operations that soft rows add to unconstrained dynamics, for each limb that is held."""
    found = {}
    for c in pick(figures, HELD):
        soft, free = figures.operations(c, "pv_soft"), figures.operations(c, "aba")
        if soft is not None and free is not None:
            found[c.name] = (soft - free) / _limbs(c)
    return within(found, 0.0, 800.0, "operations")


def HELD(case: Case) -> bool:
    """Whether a case has rows."""
    return case.case != "0D"


def _humanoid(case: Case) -> bool:
    return case.robot in ("Atlas", "Talos") and HELD(case)


HEAVY = ("Atlas 2F+2H", "Talos 2F+2H")
IN_OPERATIONS = (
    "in operations it does. Its kernel can iterate where rows are singular, which costs time even where it never does: "
    "without any rows, with the same operations, it takes longer than `pv`"
)
WITHOUT_ROWS = said(
    "no rows, batches", ratio("pv_early", "pv", low=1.03, cases=lambda c: c.case == "0D", measure="batch")
)
"""What a kernel that can iterate costs where there is nothing to solve."""
TABLE2 = Times(
    id="pv_lqr/table2",
    title="Constrained dynamics: one state, us",
    where="table II",
    cases=tuple(_table2_cases()),
    ways={**FORWARD, "aba": free},
    reference=accelerations,
    references={"pv_soft": SOFTLY, "ltl_soft": SOFTLY},
    unchecked=frozenset({"aba"}),
    compete=True,
    published={case: dict(zip(COLUMNS, row, strict=True)) for case, row in TABLE2_FIGURES.items()},
    caveat=f"{OTHER_MACHINE} (i7-8850H, 2.6 GHz, no turbo); rows are random as in the paper, for the peers welds and "
    "points; Go1 and Talos files may differ from the authors'; `aba` is the same robot without rows",
    relations=(
        Relation(
            "PV is as fast as LTL or faster everywhere (here: at most 5 % slower)",
            "IX-C-1",
            ratio("pv", "ltl", high=1.05),
            why="on the iiwa, for one state: both need as many operations (within 6 %), but those of PV wait for each "
            "other, and LTL's rows of a matrix do not. In batches, where other states fill the gaps, PV is level",
            proof=every(
                said("cycles that wait, iiwa", ratio("pv", "ltl", low=1.1, cases=("Iiwa",), measure="chain")),
                operations("pv", "ltl", 0.94, 1.06, cases=("Iiwa",)),
                said("batches, all robots", ratio("pv", "ltl", high=1.1, measure="batch")),
            ),
        ),
        Relation(
            "PV-e beats PV for Atlas and Talos",
            "IX-C-1",
            ratio("pv_early", "pv", high=1.0, cases=_humanoid),
            why=IN_OPERATIONS,
            proof=every(operations("pv_early", "pv", high=0.999, cases=_humanoid), WITHOUT_ROWS),
        ),
        Relation(
            "PV-e needs nearly 50 % less than LTL on large robots with many rows (here: 40 to 70 %)",
            "IX-C-1",
            ratio("pv_early", "ltl", 0.3, 0.6, cases=HEAVY),
        ),
        Relation(
            "PV-e needs nearly 30 % less than PV there (here: 20 to 40 %)",
            "IX-C-1",
            ratio("pv_early", "pv", 0.6, 0.8, cases=HEAVY),
        ),
        Relation(
            "PV-s is nearly twice as fast as LTL-s there (here: 1.5 to 2.5)",
            "IX-C-2",
            ratio("ltl_soft", "pv_soft", 1.5, 2.5, cases=HEAVY),
            why="more than that: LTL-s needs up to 2.4 times the operations",
            proof=operations("ltl_soft", "pv_soft", 2.2, 2.6, cases=HEAVY),
        ),
        Relation(
            "PV-s is nearly thrice as fast as LTL there (here: 2 to 4)",
            "IX-C-2",
            ratio("ltl", "pv_soft", 2.0, 4.0, cases=HEAVY),
        ),
        Relation(
            "PV-s costs nearly what unconstrained dynamics do (here: within 25 %)",
            "IX-C-2",
            ratio("pv_soft", "aba", high=1.25, cases=HELD),
            why="a held limb adds up to 700 operations on every robot, because its penalty fills the zeros of the "
            "limb's inertia: with one limb it is within 25 % everywhere, with four limbs of Atlas above it",
            proof=every(
                said("one limb", ratio("pv_soft", "aba", high=1.25, cases=lambda c: HELD(c) and _limbs(c) == 1)),
                said("added by each held limb", _added_per_limb),
            ),
        ),
    ),
)


SCALING = {
    "pv": forward("pv"),
    "pv_early": forward("pv_early"),
    "pv_soft": forward("pv_soft", R=R),
    "ltl": forward("ltl"),
    "ltl_soft": forward("ltl_soft", R=R),
}
FIG4A = Counts(
    id="pv_lqr/fig4a",
    title="Chains with a welded tip: operations",
    where="fig. 4a",
    cases=tuple(Case("chain", f"{n} links", partial(tube_chain, n), x=n, quick=n <= 24) for n in (6, 12, 24, 50, 100)),
    ways=SCALING,
    axis="links",
    caveat=f"the paper times compiled C, we count operations; {NO_NUMBERS}",
    relations=(
        *(
            Relation(f"{label} grows linearly (power at most 1.1)", "IX-D", growth(m, high=1.1))
            for m, label in (("pv", "PV"), ("pv_early", "PV-e"), ("pv_soft", "PV-s"))
        ),
        *(
            Relation(f"{label} grows faster (power at least 1.3)", "IX-D", growth(m, low=1.3))
            for m, label in (("ltl", "LTL"), ("ltl_soft", "LTL-s"))
        ),
    ),
)


def _against(peers: tuple[str, ...], method: str) -> Judge:
    """The fastest of these builds over a method of ours: at least one."""

    def judge(figures: Figures) -> Verdict:
        found = {}
        for c in figures.measured:
            theirs = [r.us for r in figures.records if r.role in peers and r.samples and r.case == c.case]
            if theirs and (ours := figures.of(c, method)):
                found[c.name] = min(theirs) / ours
        return within(found, 1.0, np.inf)

    return judge


FIG4A_TIMES = Times(
    id="pv_lqr/fig4a_times",
    title="Chains with a welded tip beside Pinocchio and MuJoCo: one state, us",
    where="fig. 4a",
    cases=tuple(Case("chain", f"{n} links", partial(tube_chain, n), x=n, quick=n <= 12) for n in (6, 12, 24, 50)),
    ways={m: SCALING[m] for m in ("pv", "pv_soft", "ltl")},
    reference=accelerations,
    references={"pv_soft": partial(soft_accelerations, R=R)},
    compete=True,
    yardstick="constraintDynamics",
    measures=("latency",),
    axis="links",
    caveat=f"{NO_NUMBERS}; Pinocchio's is its LTL solver, constraintDynamics; MuJoCo's is mj_forward with a weld as "
    "hard as it takes one",
    relations=(
        Relation("PV is faster than Pinocchio's LTL solver", "IX-D", _against(("best", "wheel", "python"), "pv")),
    ),
)
FIG4C = Counts(
    id="pv_lqr/fig4c",
    title="Ladders, rows proportional to links: operations",
    where="fig. 4c",
    cases=tuple(Case("ladder", f"{n} rungs", partial(tube_ladder, n), x=n, quick=n <= 4) for n in (1, 2, 4, 8)),
    ways=SCALING,
    axis="rungs",
    caveat=f"the paper times compiled C, we count operations; {NO_NUMBERS}",
    relations=(
        *(
            Relation(f"{label} grows linearly (power at most 1.1)", "IX-D", growth(m, high=1.1))
            for m, label in (("pv_early", "PV-e"), ("pv_soft", "PV-s"))
        ),
        *(
            Relation(f"{label} scales badly (power at least 1.3)", "IX-D", growth(m, low=1.3))
            for m, label in (("pv", "PV"), ("ltl", "LTL"), ("ltl_soft", "LTL-s"))
        ),
    ),
)

PAPER = Paper(
    "pv_lqr",
    "Sathya 2023: PV",
    "Sathya, Bruyninckx, Decre, Pipeleers: Efficient constrained dynamics algorithms based on an equivalent LQR "
    "formulation using Gauss' principle of least constraint, 2023",
    "Intel i7-8850H, 2.6 GHz, turbo off; C code generated by CasADi",
    (FIG2A, FIG2B, FIG2C, FIG2D, FIG2F, FIG3, FIG4A, FIG4A_TIMES, FIG4C, TABLE2),
)
