"""Carpentier, Budhiraja and Mansard, figures 10 and 11.

Task-space inverse dynamics with a reference centre of mass.

Robots stand on their limbs; rows for contacts and for the centre of mass give accelerations (`prox_ltl`), inverse
dynamics with the contacts alone the torques, and these move the robot. See examples/14_centre_of_mass.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import linkwork as lw
from linkwork_bench.papers.experiment import Case, Finding, Study
from linkwork_bench.papers.relations import Relation, value

STEP, DURATION = 2e-3, 1.0
SHIFT = (0.01, 0.02, -0.02)
"""The way of the centre of mass, m."""


def _tracked(case: Case, quick: bool) -> Iterator[Finding]:
    """How far the centre of mass is from its reference in the end, and how far contacts have opened."""
    loose = case.make()
    held = (replace(c, stabilisation=lw.Stabilisation()) for c in loose.constraints)  # type: ignore[type-var]
    model = loose.without_constraints().with_constraints(*held)
    q, v = model.neutral(), np.zeros(model.nv)
    where = lw.constraint_error(model.without_constraints().with_constraints(lw.CentreOfMass()))
    reference = where(q, v).phi + SHIFT
    task = lw.CentreOfMass(tuple(reference), stabilisation=lw.Stabilisation(period=0.5))
    wanted = lw.forward_dynamics(model.with_constraints(task), method="prox_ltl")
    forces = lw.inverse_dynamics(model.without_constraints())
    torques, motion = lw.constrained_inverse_dynamics(model), lw.forward_dynamics(model, method="prox_ltl")
    start = q
    for _ in range(round((0.2 if quick else DURATION) / STEP)):
        back = -100 * model.difference(start, q) - 20 * v
        back[:6] = -20 * v[:6]
        tau = torques(q, v, wanted(q, v, forces(q, v, back).tau).a).tau
        v = v + STEP * motion(q, v, tau).a
        q = model.integrate(q, STEP * v)
    gap = lw.constraint_error(model)(q, v).phi
    yield "prox_ltl", "distance", [float(np.linalg.norm(where(q, v).phi - reference))]
    yield "prox_ltl", "gap", [float(np.abs(gap).max(initial=0))]


def tasks(cases: tuple[Case, ...]) -> Study:
    """The experiment on these standing robots."""
    return Study(
        id="proximal_sparse/tasks",
        title="Task-space inverse dynamics: distance of the centre of mass from its reference after a second",
        where="figs. 10, 11",
        cases=cases,
        names=("prox_ltl",),
        ask=_tracked,
        measure="distance",
        unit="m",
        caveat="the paper shows pictures of motions and no numbers; the references here are shifts of 3 cm",
        relations=(
            Relation(
                "the centre of mass follows its reference (a tenth of its way is left)",
                "V-E",
                value("prox_ltl", high=0.1 * float(np.linalg.norm(SHIFT))),
            ),
            Relation("contacts hold (opened by at most 1 mm)", "V-E", value("prox_ltl", high=1e-3, measure="gap")),
        ),
    )
