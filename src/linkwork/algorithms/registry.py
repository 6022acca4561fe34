"""The table of methods: task, source, cost, requirements and treatment of constraints of each.

This table drives the factories, the planner, error messages, the command line, the documentation and the test grid:
adding a method means one file and one entry here. Rules elsewhere are about traits of methods, never about names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.algorithms.common.iteration import Prox
from linkwork.errors import InputError, UnsupportedError, listing, not_found
from linkwork.structure.local_loops import local_loops
from linkwork.structure.pivots import BASE, COUPLINGS, JOINTS, LOOPS, NOTHING, ROOTS, Ways, treated

if TYPE_CHECKING:
    from linkwork.model import Model


@dataclass(frozen=True)
class Method:
    """One algorithm and its traits. `function` is "module:name" below linkwork.algorithms.

    - `rows`: which constraints it takes: "none"; "link", rows over one moving link each (contacts); "any", rows over
      several links and joints (closed loops, couplings, centre of mass); "loops", local loops and couplings only;
      "clusters", these and contacts.
    - `ways`: which of them it embeds, penalises and propagates (structure/pivots.py); None if it solves for all of them
      at once, in joint space.
    - `redundant`: rows may depend on each other and postures may be singular; otherwise rows must be independent.
    - `soft`: takes a softness R per row. `modes`: constraints can be switched at run time.
    - `prox`: the default of a method that iterates, and `iterations` how many solver iterations it usually takes with
      that. `single`: its default in float32, if that is not `prox.single`.
    - `damps`: where its proximal term acts: on "all" rows, or only on those that no joint moves ("singular").
    - `direct`: the method without the proximal term, which takes fewer operations for independent rows.
    - `operator`: it solves and multiplies, and never forms the matrix.
    - `reference`: a reference implementation, which the planner does not take.
    """

    name: str
    task: str
    function: str
    summary: str
    source: str
    cost: str
    rows: str = "none"
    ways: Ways | None = None
    redundant: bool = False
    soft: bool = False
    modes: bool = False
    prox: Prox | None = None
    iterations: float = 1.0
    single: Prox | None = None
    damps: str = "all"
    direct: str = ""
    operator: bool = False
    reference: bool = False

    @property
    def local(self) -> bool:
        """Whether it embeds linkages: they must not be singular for the joints chosen as independent."""
        return self.ways is not None and self.ways.embeds == LOOPS

    @property
    def outer_only(self) -> bool:
        """Whether it returns only the rows outside clusters."""
        return self.task == DELASSUS and self.local

    @property
    def treatment(self) -> str:
        """What it does with constraints, in a few words."""
        w, said = self.ways, list[str]()
        if w is None:
            return "joint space"
        if w.embeds != NOTHING:
            said.append(f"embeds {'local loops' if w.embeds == LOOPS else w.embeds}")
        if w.penalises:
            said.append("penalises")
        if w.propagates:
            said.append(f"propagates to {w.propagates}")
        return ", ".join(said) + (" (whichever is less work)" if w.chooses else "")

    def facts(self) -> dict[str, str]:
        """The method in words, by column: for tables of all methods."""
        solves = self.rows != "none" and self.task == FD
        return {
            "task": self.task.replace("_", " "),
            "method": self.name,
            "what it does": self.summary + (" (reference implementation)" if self.reference else ""),
            "source": self.source,
            "cost": self.cost,
            "takes": TAKES[self.rows],
            "treatment of constraints": self.treatment if self.ways or solves or self.task == DELASSUS else "",
            "redundant rows": ("yes" if self.redundant else "no") if solves else "",
            "run-time modes": ("yes" if self.modes else "no") if solves else "",
        }

    def load(self) -> Callable[..., Any]:
        module, name = self.function.split(":")
        return getattr(import_module(f"linkwork.algorithms.{module}"), name)  # type: ignore[no-any-return]

    def prox_for(self, dtype: str) -> Prox | None:
        """The default of a method that iterates, for numbers of this precision."""
        if self.prox is None or dtype != "float32":
            return self.prox
        return self.single or self.prox.single

    def locked(self, model: Model) -> tuple[int, ...]:
        """The constraints that `modes` cannot switch: those that clusters embed."""
        if not self.modes or self.ways is None or self.ways.switched().embeds == NOTHING:
            return ()
        return tuple(sorted(treated(model, self.ways.switched()).embedded))

    def refusal(self, model: Model, soft: bool = False, modes: bool = False) -> str | None:
        """Why this method cannot handle the model, or None if it can."""
        if model.constraints and self.rows == "none":
            return f"it ignores constraints, and '{model.name}' has {len(model.constraints)}"
        if self.rows == "link":
            for c in model.constraints:
                if sum(l > 0 for l in c.touches(model)) > 1:
                    return f"constraint '{c.name}' ties several moving links together, and it takes rows over one each"
        if self.rows in ("loops", "clusters"):
            local = {n for _, constraints in local_loops(model) for n in constraints}
            for n, c in enumerate(model.constraints):
                ties = sum(l > 0 for l in c.touches(model))
                if n not in local and (self.rows == "loops" or ties > 1):
                    return f"constraint '{c.name}' is neither a coupling nor a local loop"
        if soft and not self.soft:
            return "it has no soft rows, and a softness R is given"
        if self.soft and not soft:
            return "its rows are soft, and no softness R is given"
        if modes and not self.modes:
            return "it cannot switch constraints at run time"
        return None


FEATHERSTONE, PV_LQR, OSIMR = "Featherstone 2008", "sathya2023_pv_lqr", "sathya2023_pv_osimr"
SPARSE, LCABA = "carpentier2021_proximal_sparse", "sathya2025_lcaba_proxbbo"
CLUSTERS = "chignoli2023_clusters"
FD, DELASSUS = "forward_dynamics", "delassus"
TAKES = {
    "none": "no constraints",
    "link": "contacts",
    "any": "contacts, loops, couplings",
    "loops": "local loops, couplings",
    "clusters": "contacts, local loops, couplings",
}
"""The constraints that a method takes, in words."""
PENALISED, MEETING, AT_BASE, UNMOVED = 1e7, 1e6, 1e10, 1e8
"""Penalties on links, on rows that are eliminated where they meet, on rows that are all eliminated at the base, and on
rows that a joint does not move, whose forces lose as many digits as the penalty has."""

AT_ONCE, JOINT_BY_JOINT = (replace(Prox(AT_BASE).single, tolerance=t) for t in (5e-7, 2e-6))
"""In float32: methods that solve for all rows at once can tell errors from rounding down to 4 roundings, those that
solve joint by joint down to 16."""

PENALTIES, TO_ROOTS, TO_BASE = Ways(penalises=True), Ways(propagates=ROOTS), Ways(propagates=BASE)
CLUSTERS_ONLY = Ways(LOOPS)

METHODS: tuple[Method, ...] = (
    Method("rnea", "inverse_dynamics", "tree.rnea:rnea", "recursive Newton-Euler", FEATHERSTONE, "O(n)"),
    Method("crba", "mass_matrix", "tree.crba:crba", "composite rigid bodies", FEATHERSTONE, "O(n d)", "any"),
    Method(
        "c_rnea",
        "inverse_dynamics",
        "clusters.c_rnea:c_rnea",
        "forces of the independent joints of local loops",
        f"{CLUSTERS} VI",
        "O(n)",
        "loops",
        CLUSTERS_ONLY,
    ),
    Method(
        "projected_rnea",
        "inverse_dynamics",
        "clusters.projected_rnea:projected_rnea",
        "all joint forces, then projected",
        f"{CLUSTERS} II-C",
        "O(n^2)",
        "loops",
        CLUSTERS_ONLY,
    ),
    Method("aba", FD, "tree.aba:aba", "articulated bodies", FEATHERSTONE, "O(n)", ways=Ways()),
    Method("crba_ltl", FD, "tree.ltl:crba_ltl", "sparse factor of the mass matrix", "Featherstone 2005", "O(n d^2)"),
    Method(
        "constrained_aba",
        FD,
        "constrained.constrained_aba:constrained_aba",
        "penalties inside articulated bodies",
        f"{LCABA} Alg. 1 without loops",
        "O(n+m)",
        "link",
        PENALTIES,
        redundant=True,
        modes=True,
        prox=Prox(PENALISED),
        iterations=2.3,
    ),
    Method(
        "pv_early",
        FD,
        "constrained.pv_early:pv_early",
        "multipliers eliminated joint by joint",
        f"{PV_LQR} VIII",
        "O(n+m)",
        "link",
        Ways(propagates=JOINTS),
        redundant=True,
        prox=Prox(UNMOVED),
        iterations=1.5,
        single=JOINT_BY_JOINT,
        damps="singular",
    ),
    Method(
        "lcaba",
        FD,
        "constrained.lcaba:lcaba",
        "closed loops inside articulated bodies",
        f"{LCABA} Alg. 1-3",
        "best O(n+m)",
        "any",
        PENALTIES,
        redundant=True,
        modes=True,
        prox=Prox(PENALISED),
        iterations=3.3,
    ),
    Method(
        "prox_bbo",
        FD,
        "constrained.prox_bbo:prox_bbo",
        "multipliers eliminated at loop roots, proximal",
        f"{LCABA} Alg. 4-6",
        "best O(n+m)",
        "any",
        TO_ROOTS,
        redundant=True,
        modes=True,
        direct="bbo",
        prox=Prox(MEETING),
        iterations=2.2,
    ),
    Method(
        "mixed",
        FD,
        "constrained.mixed:mixed",
        "each constraint penalised or propagated (couplings: or embedded)",
        f"{LCABA} VII-D",
        "best O(n+m)",
        "any",
        Ways(COUPLINGS, penalises=True, propagates=ROOTS, chooses=True),
        redundant=True,
        modes=True,
        prox=Prox(PENALISED),
        iterations=2.5,
    ),
    Method(
        "bbo",
        FD,
        "constrained.bbo:bbo",
        "multipliers eliminated at loop roots",
        f"{LCABA} Alg. 4",
        "best O(n+m)",
        "any",
        TO_ROOTS,
    ),
    Method(
        "prox_pv",
        FD,
        "constrained.prox_pv:prox_pv",
        "PV with a proximal term",
        f"{LCABA} refs. 11, 12",
        "O(n+m^2 d+m^3)",
        "any",
        TO_BASE,
        redundant=True,
        modes=True,
        direct="pv",
        prox=Prox(AT_BASE),
        iterations=2.2,
        single=AT_ONCE,
    ),
    Method(
        "pv",
        FD,
        "constrained.pv:pv",
        "multipliers eliminated at the base",
        f"{PV_LQR} Alg. 1",
        "O(n+m^2 d+m^3)",
        "any",
        TO_BASE,
    ),
    Method(
        "pv_soft",
        FD,
        "constrained.pv_soft:pv_soft",
        "soft Gauss' principle",
        f"{PV_LQR} VI",
        "O(n+m)",
        "link",
        PENALTIES,
        redundant=True,
        soft=True,
        modes=True,
    ),
    Method(
        "prox_ltl",
        FD,
        "constrained.prox_ltl:prox_ltl",
        "sparse factor of the damped KKT matrix",
        f"{SPARSE} Alg. 1",
        "O((n+m)(d+m)^2)",
        "any",
        redundant=True,
        modes=True,
        direct="ltl",
        prox=Prox(AT_BASE),
        iterations=2.2,
        single=AT_ONCE,
    ),
    Method(
        "ltl",
        FD,
        "constrained.ltl:ltl",
        "sparse factor of the mass matrix, then the rows",
        f"{PV_LQR} II-C",
        "O(n d^2+m^2 d+d^2 m)",
        "any",
    ),
    Method(
        "ltl_soft",
        FD,
        "constrained.ltl_soft:ltl_soft",
        "soft rows in joint space",
        f"{PV_LQR} VI",
        "O(n d^2+m d^2)",
        "any",
        redundant=True,
        soft=True,
        modes=True,
    ),
    Method(
        "prox_ltl_soft",
        FD,
        "constrained.prox_ltl_soft:prox_ltl_soft",
        "penalties on the mass matrix, iterated",
        f"{LCABA} III-E",
        "O(n d^2+m d^2)",
        "any",
        redundant=True,
        modes=True,
        prox=Prox(PENALISED),
        iterations=2.3,
        reference=True,
    ),
    Method(
        "c_aba",
        FD,
        "clusters.c_aba:c_aba",
        "local loops as clusters in articulated bodies, contacts by PV",
        f"{CLUSTERS} Alg. 1",
        "O(N l^3+m^2 d+m^3)",
        "any",
        Ways(LOOPS, propagates=BASE),
    ),
    Method(
        "c_lcaba",
        FD,
        "clusters.c_lcaba:c_lcaba",
        "local loops as clusters, contacts and long loops by penalties",
        f"{CLUSTERS} with {LCABA} Alg. 1-3",
        "best O(N l^3+m)",
        "any",
        Ways(LOOPS, penalises=True),
        redundant=True,
        modes=True,
        prox=Prox(PENALISED),
        iterations=2.5,
    ),
    Method(
        "c_prox_bbo",
        FD,
        "clusters.c_prox_bbo:c_prox_bbo",
        "local loops as clusters, contacts and long loops propagated to their roots",
        f"{CLUSTERS} with {LCABA} Alg. 4-6",
        "best O(N l^3+m)",
        "any",
        Ways(LOOPS, propagates=ROOTS),
        redundant=True,
        modes=True,
        prox=Prox(MEETING),
        iterations=2.2,
    ),
    Method(
        "c_mixed",
        FD,
        "constrained.mixed:c_mixed",
        "each constraint embedded, penalised or propagated",
        f"{CLUSTERS} with {LCABA} VII-D",
        "best O(N l^3+m)",
        "any",
        Ways(LOOPS, penalises=True, propagates=ROOTS, chooses=True),
        redundant=True,
        modes=True,
        prox=Prox(PENALISED),
        iterations=2.5,
    ),
    Method(
        "projection",
        FD,
        "clusters.projection:projection",
        "local loops by independent velocities, dense",
        f"{CLUSTERS} II-D",
        "O(n^3)",
        "any",
        CLUSTERS_ONLY,
        reference=True,
    ),
    Method(
        "lagrange",
        FD,
        "clusters.lagrange:lagrange",
        "Lagrange multipliers, dense rows",
        f"{CLUSTERS} II-D",
        "O(n d^2+m d^2+m^3)",
        "any",
        reference=True,
    ),
    Method(
        "kkt",
        FD,
        "constrained.kkt:kkt",
        "dense linear algebra, by singular values",
        "",
        "O((n+m)^3)",
        "any",
        redundant=True,
        reference=True,
    ),
    Method(
        "pv",
        DELASSUS,
        "delassus.pv:pv",
        "rows propagated to the base",
        f"{PV_LQR} Alg. 2",
        "O(n+m^2 d)",
        "any",
        TO_BASE,
    ),
    Method(
        "pv_r",
        DELASSUS,
        "delassus.pv_r:pv_r",
        "at most six rows propagated over long paths",
        f"{OSIMR} Alg. 3",
        "O(n+m^2)",
        "link",
        TO_BASE,
    ),
    Method(
        "pv_fast",
        DELASSUS,
        "delassus.pv_fast:pv_fast",
        "an operator: the matrix is never formed",
        f"{PV_LQR} VII-B",
        "O(n+m^2 d+m^3/r^2)",
        "link",
        TO_BASE,
        operator=True,
    ),
    Method(
        "efpa", DELASSUS, "delassus.efpa:efpa", "extended force propagators", f"{OSIMR} Alg. 2", "O(n+m d+m^2)", "link"
    ),
    Method(
        "kjr", DELASSUS, "delassus.kjr:kjr", "inverse inertias along paths", f"{PV_LQR} VII-C", "O(n+m^2 d)", "link"
    ),
    Method(
        "ltl",
        DELASSUS,
        "delassus.ltl:ltl",
        "sparse factor of the mass matrix",
        f"{OSIMR} II-A",
        "O(n d^2+m^2 d+d^2 m)",
        "any",
    ),
    Method(
        "kkt_cholesky",
        DELASSUS,
        "delassus.kkt_cholesky:kkt_cholesky",
        "extracted from the KKT factor",
        f"{SPARSE} IV-E",
        "O((n+m)(d+m)^2)",
        "any",
    ),
    Method(
        "c_efpa",
        DELASSUS,
        "clusters.c_efpa:c_efpa",
        "contacts, with local loops resolved in clusters",
        f"{CLUSTERS} VIII",
        "O(N l^3+m d+m^2)",
        "clusters",
        CLUSTERS_ONLY,
    ),
    Method(
        "c_pv",
        DELASSUS,
        "clusters.c_pv:c_pv",
        "contacts propagated to the base through clusters",
        f"{CLUSTERS} with {PV_LQR} Alg. 2",
        "O(N l^3+m^2 d)",
        "any",
        Ways(LOOPS, propagates=BASE),
    ),
    Method(
        "projected_efpa",
        DELASSUS,
        "clusters.projected_efpa:projected_efpa",
        "contacts, with local loops resolved by projection",
        f"{CLUSTERS} II-E",
        "O(n d^2+m^2 d)",
        "any",
        CLUSTERS_ONLY,
    ),
    Method(
        "projection",
        DELASSUS,
        "clusters.projected_efpa:projected_dense",
        "contacts, with local loops resolved by projection, dense factor",
        f"{CLUSTERS} II-E",
        "O(n^3+m n^2)",
        "any",
        CLUSTERS_ONLY,
    ),
    Method("dense", DELASSUS, "delassus.dense:dense", "dense linear algebra", "", "O((n+m)^3)", "any", reference=True),
)


def methods(task: str) -> dict[str, Method]:
    """The methods for a task, by name."""
    return {m.name: m for m in METHODS if m.task == task}


def check_modes(task: str, name: str, model: Model, active: np.ndarray) -> None:
    """Refuse weights other than 1 of constraints that the method cannot switch."""
    wrong = [n for n in methods(task)[name].locked(model) if np.any(active[..., n] != 1)]
    if wrong:
        able = listing(
            (
                m.name
                for m in methods(task).values()
                if m.modes and not m.soft and not m.locked(model) and m.refusal(model, modes=True) is None
            ),
            limit=30,
        )
        which = listing(model.constraints[n].name for n in wrong)
        raise InputError(
            f"active: method '{name}' embeds {which}, and what is embedded cannot be switched off: its "
            f"weight must be 1. Methods that can: {able}"
        )


def able(task: str, model: Model, *, soft: bool = False, modes: bool = False) -> list[Method]:
    """The methods that can handle the model; a typed error if none can."""
    found = [m for m in methods(task).values() if m.refusal(model, soft, modes) is None]
    if not found:
        raise UnsupportedError(
            f"no method of {task.replace('_', ' ')} can handle this model: "
            + listing(f"{m.name}: {m.refusal(model, soft, modes)}" for m in methods(task).values())
        )
    return found


def named(task: str, name: str, model: Model, *, soft: bool = False, modes: bool = False) -> Method:
    """The method called `name`; a typed error if it cannot handle the model, which says what can."""
    known = methods(task)
    if name not in known:
        raise not_found(f"{task.replace('_', ' ')} method", name, known)
    refusal = known[name].refusal(model, soft, modes)
    if refusal is not None:
        valid = listing((m.name for m in able(task, model, soft=soft, modes=modes)), limit=30)
        raise UnsupportedError(f"method '{name}' cannot handle this model: {refusal}. Methods that can: {valid}")
    return known[name]
