"""The table of methods: task, source, cost, requirements and treatment of constraints of each.

This table drives the factories, the planner, error messages, the command line, the documentation and the test grid:
adding a method means one file and one entry here. Rules elsewhere are about traits of methods (method.py), never about
names.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.algorithms.common.iteration import Prox
from linkwork.algorithms.method import DELASSUS, FD, Method
from linkwork.errors import InputError, UnsupportedError, listing, not_found
from linkwork.structure.constraint_treatment import BASE, COUPLINGS, JOINTS, LOOPS, ROOTS, Ways

if TYPE_CHECKING:
    from linkwork.model import Model

__all__ = ["DELASSUS", "FD", "METHODS", "Method", "able", "check_modes", "methods", "named"]

FEATHERSTONE, PV_LQR, OSIMR = "Featherstone 2008", "sathya2023_pv_lqr", "sathya2023_pv_osimr"
SPARSE, LCABA = "carpentier2021_proximal_sparse", "sathya2025_lcaba_proxbbo"
CLUSTERS = "chignoli2023_clusters"
TO_LINKS, TO_MEETINGS, TO_BASE = 1e7, 1e6, 1e10
"""Penalties on links (and on rows that a joint does not move, which are inertia, too), on rows that are eliminated
where they meet, and on rows that are all eliminated at the base. Forces lose as many digits as the penalty has."""

AT_ONCE, JOINT_BY_JOINT = (replace(Prox(TO_BASE).single, tolerance=t) for t in (5e-7, 2e-6))
"""In float32: methods that solve for all rows at once can tell errors from rounding down to 4 roundings, those that
solve joint by joint down to 16."""

PENALISED, AT_ROOTS, AT_BASE = Ways(penalises=True), Ways(propagates=ROOTS), Ways(propagates=BASE)
CLUSTERED, CLUSTERED_AT_BASE = Ways(LOOPS), Ways(LOOPS, propagates=BASE)
LINK, ANY = "link", "any"


def entry(
    task: str,
    folder: str,
    name: str,
    summary: str,
    source: str,
    cost: str,
    rows: str = "none",
    ways: Ways | None = None,
    *,
    function: str = "",
    **traits: Any,
) -> Method:
    """A method; its function is that of its name in the file of its name, unless `function` says another."""
    return Method(name, task, f"{folder}.{function or f'{name}:{name}'}", summary, source, cost, rows, ways, **traits)


def proximal(folder: str, *words: Any, mu: float, iterations: float, modes: bool = True, **traits: Any) -> Method:
    """A method of forward dynamics with a proximal term: rows may be redundant, and most can be switched."""
    prox = Prox(mu)
    return entry(FD, folder, *words, redundant=True, modes=modes, prox=prox, iterations=iterations, **traits)


inverse, forward, delassus = (partial(entry, task) for task in ("inverse_dynamics", FD, DELASSUS))

# fmt: off
METHODS: tuple[Method, ...] = (
    # folder, name, what it does, source, cost; then rows, treatment of constraints, further traits
    inverse("tree", "rnea", "recursive Newton-Euler", FEATHERSTONE, "O(n)"),
    entry("mass_matrix", "tree", "crba", "composite rigid bodies", FEATHERSTONE, "O(n d)", ANY),
    inverse("clusters", "c_rnea", "forces of the independent joints of local loops", f"{CLUSTERS} VI", "O(n)",
            "loops", CLUSTERED),
    inverse("clusters", "projected_rnea", "all joint forces, then projected", f"{CLUSTERS} II-C", "O(n^2)",
            "loops", CLUSTERED),
    forward("tree", "aba", "articulated bodies", FEATHERSTONE, "O(n)", ways=Ways()),
    forward("tree", "crba_ltl", "sparse factor of the mass matrix", "Featherstone 2005", "O(n d^2)",
            function="ltl:crba_ltl"),
    proximal("constrained", "constrained_aba", "penalties inside articulated bodies",
             f"{LCABA} Alg. 1 without loops", "O(n+m)", LINK, PENALISED, mu=TO_LINKS, iterations=2.3),
    proximal("constrained", "pv_early", "multipliers eliminated joint by joint", f"{PV_LQR} VIII", "O(n+m)",
             LINK, Ways(propagates=JOINTS), mu=TO_LINKS, iterations=1.05, modes=False, damps="singular",
             single=JOINT_BY_JOINT),
    proximal("constrained", "lcaba", "closed loops inside articulated bodies", f"{LCABA} Alg. 1-3", "best O(n+m)",
             ANY, PENALISED, mu=TO_LINKS, iterations=3.3),
    proximal("constrained", "prox_bbo", "multipliers eliminated at loop roots, proximal", f"{LCABA} Alg. 4-6",
             "best O(n+m)", ANY, AT_ROOTS, mu=TO_MEETINGS, iterations=2.2, direct="bbo"),
    proximal("constrained", "mixed", "each constraint penalised or propagated (couplings: or embedded)",
             f"{LCABA} VII-D", "best O(n+m)",
             ANY, Ways(COUPLINGS, penalises=True, propagates=ROOTS, chooses=True), mu=TO_LINKS, iterations=2.5),
    forward("constrained", "bbo", "multipliers eliminated at loop roots", f"{LCABA} Alg. 4", "best O(n+m)",
            ANY, AT_ROOTS),
    proximal("constrained", "prox_pv", "PV with a proximal term", f"{LCABA} refs. 11, 12", "O(n+m^2 d+m^3)",
             ANY, AT_BASE, mu=TO_BASE, iterations=2.2, direct="pv", single=AT_ONCE),
    forward("constrained", "pv", "multipliers eliminated at the base", f"{PV_LQR} Alg. 1", "O(n+m^2 d+m^3)",
            ANY, AT_BASE),
    forward("constrained", "pv_soft", "soft Gauss' principle", f"{PV_LQR} VI", "O(n+m)",
            LINK, PENALISED, redundant=True, modes=True, soft=True),
    forward("constrained", "lcaba_soft", "soft loops inside articulated bodies", f"{PV_LQR} VI with {LCABA} Alg. 1",
            "best O(n+m)", ANY, PENALISED, redundant=True, soft=True, modes=True),
    forward("constrained", "bbo_soft", "soft rows eliminated at loop roots", f"{LCABA} Alg. 4 with R", "best O(n+m)",
            ANY, AT_ROOTS, redundant=True, soft=True, modes=True),
    proximal("constrained", "prox_ltl", "sparse factor of the damped KKT matrix", f"{SPARSE} Alg. 1",
             "O((n+m)(d+m)^2)", ANY, mu=TO_BASE, iterations=2.2, direct="ltl", single=AT_ONCE),
    forward("constrained", "ltl", "sparse factor of the mass matrix, then the rows", f"{PV_LQR} II-C",
            "O(n d^2+m^2 d+d^2 m)", ANY),
    forward("constrained", "ltl_soft", "soft rows in joint space", f"{PV_LQR} VI", "O(n d^2+m d^2)",
            ANY, redundant=True, modes=True, soft=True),
    proximal("constrained", "prox_ltl_soft", "penalties on the mass matrix, iterated", f"{LCABA} III-E",
             "O(n d^2+m d^2)", ANY, PENALISED, mu=TO_LINKS, iterations=2.3, reference=True),
    forward("clusters", "c_aba", "local loops as clusters in articulated bodies, contacts by PV",
            f"{CLUSTERS} Alg. 1", "O(N l^3+m^2 d+m^3)", ANY, CLUSTERED_AT_BASE),
    proximal("clusters", "c_lcaba", "local loops as clusters, contacts and long loops by penalties",
             f"{CLUSTERS} with {LCABA} Alg. 1-3", "best O(N l^3+m)",
             ANY, Ways(LOOPS, penalises=True), mu=TO_LINKS, iterations=2.5),
    proximal("clusters", "c_prox_bbo", "local loops as clusters, contacts and long loops propagated to their roots",
             f"{CLUSTERS} with {LCABA} Alg. 4-6", "best O(N l^3+m)",
             ANY, Ways(LOOPS, propagates=ROOTS), mu=TO_MEETINGS, iterations=2.2),
    proximal("constrained", "c_mixed", "each constraint embedded, penalised or propagated",
             f"{CLUSTERS} with {LCABA} VII-D", "best O(N l^3+m)",
             ANY, Ways(LOOPS, penalises=True, propagates=ROOTS, chooses=True), function="mixed:c_mixed", mu=TO_LINKS,
             iterations=2.5),
    forward("clusters", "projection", "local loops by independent velocities, dense", f"{CLUSTERS} II-D", "O(n^3)",
            ANY, CLUSTERED, reference=True),
    forward("clusters", "lagrange", "Lagrange multipliers, dense rows", f"{CLUSTERS} II-D", "O(n d^2+m d^2+m^3)",
            ANY, reference=True),
    forward("constrained", "kkt", "dense linear algebra, by singular values", "", "O((n+m)^3)",
            ANY, redundant=True, reference=True, least_squares=True),
    delassus("delassus", "pv", "rows propagated to the base", f"{PV_LQR} Alg. 2", "O(n+m^2 d)", ANY, AT_BASE),
    delassus("delassus", "pv_r", "at most six rows propagated over long paths", f"{OSIMR} Alg. 3", "O(n+m^2)",
             LINK, AT_BASE),
    delassus("delassus", "pv_fast", "an operator: no matrix is formed, unless that takes fewer operations",
             f"{PV_LQR} VII-B", "O(n+m^2 d+m^3/r^2)", LINK, AT_BASE, operator=True),
    delassus("delassus", "efpa", "extended force propagators", f"{OSIMR} Alg. 2", "O(n+m d+m^2)", LINK),
    delassus("delassus", "kjr", "inverse inertias along paths", f"{PV_LQR} VII-C", "O(n+m^2 d)", LINK),
    delassus("delassus", "ltl", "sparse factor of the mass matrix", f"{OSIMR} II-A", "O(n d^2+m^2 d+d^2 m)",
             ANY),
    delassus("delassus", "kkt_cholesky", "extracted from the KKT factor", f"{SPARSE} IV-E", "O((n+m)(d+m)^2)",
             ANY),
    delassus("clusters", "c_efpa", "contacts, with local loops resolved in clusters", f"{CLUSTERS} VIII",
             "O(N l^3+m d+m^2)", "clusters", CLUSTERED),
    delassus("clusters", "c_efpa_published", "the same with all accelerations propagated back", f"{CLUSTERS} VIII",
             "O(N l^3+m d+m^2)", "clusters", CLUSTERED, function="c_efpa:c_efpa_published", reference=True),
    delassus("clusters", "c_pv", "contacts propagated to the base through clusters",
             f"{CLUSTERS} with {PV_LQR} Alg. 2", "O(N l^3+m^2 d)", ANY, CLUSTERED_AT_BASE),
    delassus("clusters", "c_pv_r", "at most six rows propagated over long paths of clusters",
             f"{CLUSTERS} with {OSIMR} Alg. 3", "O(N l^3+m^2)", "clusters", CLUSTERED_AT_BASE),
    delassus("clusters", "projected_efpa", "contacts, with local loops resolved by projection", f"{CLUSTERS} II-E",
             "O(n d^2+m^2 d)", ANY, CLUSTERED),
    delassus("clusters", "projection", "contacts, with local loops resolved by projection, dense factor",
             f"{CLUSTERS} II-E", "O(n^3+m n^2)", ANY, CLUSTERED, function="projected_efpa:projected_dense"),
    delassus("delassus", "dense", "dense linear algebra", "", "O((n+m)^3)", ANY, reference=True),
)
# fmt: on


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
