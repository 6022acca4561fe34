"""A four-bar linkage swings for two seconds.

Energy, and how far its loop opens, with and without help.
"""

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import four_bar

model = four_bar(ground=1.1, crank=0.5, coupler=1.2, rocker=0.75)
mass = np.array([l.inertia.mass for l in model.links[1:]])
com = np.array([l.inertia.com for l in model.links[1:]])
mm, fk, error = lw.mass_matrix(model), lw.forward_kinematics(model), lw.constraint_error(model)


def energy(q, v):
    positions, rotations = fk(q)
    heights = (positions + np.einsum("tlij,lj->tli", rotations, com))[..., 2]
    return np.einsum("ti,tij,tj->t", v, mm(q).M, v) / 2 + 9.81 * heights @ mass


for integrator in ("semi_implicit", "midpoint", "rk4"):
    for options in ({}, {"stabilisation": True}, {"projection": True}):
        run = lw.simulate(model, model.neutral(), duration=2.0, integrator=integrator, **options)
        E, gap = energy(run.q, run.v), np.abs(error(run.q, run.v).phi).max()
        how = next(iter(options), "as it is")
        print(f"{integrator:14s} {how:14s} energy within {np.ptp(E):.1e} J, loop within {gap:.1e} m")
