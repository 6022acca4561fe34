"""All coordinates from independent ones: phi(q) = 0 solved for the dependent joints; v = G ydot."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwork.algorithms.common.embedding import embeddings
from linkwork.backends.numpy_ import NUMPY
from linkwork.checks import ARRAY, POSITION, checked, optional
from linkwork.closure.assembly import assemble
from linkwork.constraints.local import local_rows
from linkwork.errors import InputError, SingularError, listing
from linkwork.model import Model, Motion
from linkwork.model.model import MODEL
from linkwork.structure.clusters import ClusterTree, clusters

SINGULAR = 1e-7
"""Rows whose smallest singular value is below this, relative to the largest, determine nothing."""


class Expanded(NamedTuple):
    """Positions and velocities of all joints."""

    q: np.ndarray
    v: np.ndarray


@checked(model=MODEL, y=ARRAY, ydot=optional(ARRAY), guess=optional(POSITION))
def expand(model: Model, y: object, ydot: object = None, *, guess: object = None) -> Expanded:
    """All positions and velocities from those of the independent joints.

    `lw.clusters(model).independent` names them. `y` and `ydot` (default: zero) have shapes (ny,) and (nydot,), or
    (batch, ...): a batch is a motion, each state starts from the previous one. Dependent joints start from `guess` (a
    full position: the last state; default neutral), which decides between the ways in which a linkage can be closed.
    AssemblyError where it cannot be closed for this `y`, SingularError where dependent velocities do not follow from
    `ydot`. Quaternions are [x y z w].

    Examples:
        >>> model = geared_chain(2)
        >>> state = lw.expand(model, np.array([0.1, 0.2]), np.array([1.0, 0.0]))
        >>> len(state[0])
        4
    """
    tree = clusters(model)
    at = np.array(y, dtype=float)
    batch = at.shape[:-1]
    rate: np.ndarray = np.zeros((*batch, len(tree.velocities))) if ydot is None else np.array(ydot, dtype=float)
    if at.ndim not in (1, 2) or at.shape[-1] != len(tree.positions) or rate.shape != (*batch, len(tree.velocities)):
        raise InputError(
            f"y and ydot have shapes {at.shape} and {rate.shape}; the independent joints of "
            f"'{model.name}' need ({len(tree.positions)},) and ({len(tree.velocities)},), or a batch"
        )
    start = model.neutral() if guess is None else np.array(guess, dtype=float)
    if at.ndim == 1:
        return _expanded(model, tree, at, rate, start, attempts=1 if guess is not None else 10)
    states: list[Expanded] = []
    for n in range(len(at)):
        last = states[-1].q if states else start
        states.append(_expanded(model, tree, at[n], rate[n], last, attempts=1 if states or guess is not None else 10))
    return Expanded(
        np.array([s.q for s in states]).reshape(*batch, model.nq),
        np.array([s.v for s in states]).reshape(*batch, model.nv),
    )


def _expanded(
    model: Model, tree: ClusterTree, y: np.ndarray, ydot: np.ndarray, start: np.ndarray, attempts: int
) -> Expanded:
    q = start.copy()
    q[tree.positions] = y
    inside = [model.constraints[n].name for c in tree.clusters for n in c.constraints]
    if inside:
        q = assemble(model, q, locked=tree.independent, only=inside, attempts=attempts)
    motion = Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY)
    for c in tree.clusters:
        if not c.dependent:
            continue
        KD = local_rows(motion, c.bodies, c.constraints)[0][:, c.dependent]
        s = np.linalg.svd(KD, compute_uv=False)
        if s[-1] <= SINGULAR * s[0]:
            names = [model.links[model.topology.dof_link[c.dofs[k]]].joint_name for k in range(len(c.dofs))]
            raise SingularError(
                f"'{model.name}': in this posture the velocities of {listing(names[k] for k in c.dependent)} do not "
                f"follow from those of {listing(names[k] for k in c.independent)}; choose other independent joints "
                "with model.with_independent(...), or keep away from this posture"
            )
    G, _ = embeddings(motion, tree)
    return Expanded(q, np.asarray(G @ ydot))
