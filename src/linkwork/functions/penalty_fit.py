"""The penalty of a method on a model: less than usual where forces would lose too many digits by it.

Methods that penalise rows solve with M + mu J^T U J. Rounding of that matrix, eps mu U of what rows feel, is missing in
the equation of motion, M a + c = tau + J^T lam, and no iteration finds it, because iterations look at the rows. As
accelerations, M^-1 of what is missing, that is 1e-9 and less of those of a usual robot. It is more by mass ratios, by
levers or by gears, if a light link with penalised rows carries heavy ones, or a body is far away from its frame. How
much more is measured in a few states; with a smaller penalty it is less in proportion, and an iteration is added.

Forces lam + mu U (k - sum K_l a_l) have the rounding of that sum, too, whose terms contain gravity, and each link gets
it on its own: as accelerations that is the sum of |M^-1 J_l^T K_l^T| mu U eps |terms|, at most 8e-9 on usual robots,
and more for rows with a short lever, whose U is large, or between light links that accelerate much. What is measured in
two states is rounding, and may be a hundredth of that in others, so that the largest of both counts, and of what is
predicted in a few states more: it varies by a factor of 300 where a mechanism has one way to move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from linkwork.algorithms import registry
from linkwork.algorithms.common.activation import over_links
from linkwork.algorithms.common.iteration import Prox, run
from linkwork.algorithms.constrained.kkt import joint_space, kkt
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.row_inertia import units
from linkwork.constraints.rows import constraint_rows, jacobian_blocks
from linkwork.functions.solver import Solver
from linkwork.model import Model, Motion
from linkwork.model.digest import digest
from linkwork.model.joint_forces import joint_forces
from linkwork.model.memo import cached
from linkwork.rewrite.rewritten import Rewritten
from linkwork.structure.constraint_treatment import treated
from linkwork.structure.independent import away_from_neutral

EPS = float(np.finfo(float).eps)

STATES = 2
"""Random states in which it is measured. Loops may be open there, the equation of motion holds nevertheless; but where
loops that are embedded are open there are no numbers, so methods that embed linkages get closed ones."""

PREDICTED = 4
"""Random states in which the rounding of the rows' terms is predicted, which needs no solution by the method."""

LOST, LEFT = 2e-8, 1e-9
"""Where more than the first is missing, relative to accelerations, the penalty is chosen for the second."""

THROUGH = 0.03
"""The largest share of the usual penalty where penalties pass through embedded linkages. What is missing there is no
measure: on Digit with a box it is 1e-10 in most states, 7e-8 in some and 6e-7 in a few; with a tenth of the penalty
forces of a mechanism of eight links were 3e-6 off (fuzzing, seed 31001445)."""

WEAK = 3e-10
"""The same for methods that penalise singular rows only. Rows that a joint hardly moves become inertia as penalties do,
and how hardly depends on the posture: 1e-8 in one random state is 3e-4 in another. Usual robots have 3e-11."""

LEAST = 1e-4
"""The least share of the usual penalty, so that nearly singular rows still converge."""

EMBEDDED = 1e-2
"""The same for methods that embed linkages: a closed state near a linkage's singularity loses digits at any penalty and
is reported, and must not slow down all others (Tello takes 11 solver iterations with this share, 6 with the whole)."""


def fitted(prox: Prox, model: Model, method: registry.Method) -> Prox:
    """The same with the penalty that this model takes, for a method that penalises rows."""
    if method.soft or not model.constraints or not (method.damps == "singular" or _penalises(model, method)):
        return prox
    share = _share(model, method.name)
    return prox if share == 1.0 else replace(prox, mu=prox.mu * share)


def _penalises(model: Model, method: registry.Method) -> bool:
    """Whether a method penalises rows of this model, also if constraints are switched at run time."""
    ways = method.ways
    return ways is not None and ways.penalises and any(treated(model, w).penalised for w in (ways, ways.switched()))


@cached
def _share(model: Model, name: str) -> float:
    """The share of the usual penalty, by measurement; later processes find it in the cache."""
    from linkwork.kernels.cache import result_cache as notes

    method = registry.methods("forward_dynamics")[name]
    content = digest("penalty", model, method, STATES, PREDICTED, LOST, LEFT, THROUGH, WEAK, LEAST, EMBEDDED)
    found = (notes.get(content) or {}).get("share")
    if isinstance(found, float) and LEAST <= found <= 1:
        return found
    return float(notes.put(content, {"share": _measured(model, method)})["share"])


def _measured(model: Model, method: registry.Method) -> float:
    with np.errstate(all="ignore"):
        missing = max(_missing(model, method, seed) for seed in range(STATES))
        if method.damps == "singular":
            return 1.0 if missing <= WEAK else LEAST
        missing = max(missing, *(_explained(model, method, seed) for seed in range(PREDICTED)))
    through = method.local and method.ways is not None and bool(treated(model, method.ways).strained)
    most = THROUGH if through else 1.0
    return most if missing <= LOST else min(most, max(LEFT / missing, EMBEDDED if method.local else LEAST))


def _missing(model: Model, method: registry.Method, seed: int) -> float:
    """|M^-1 (M a + c - tau - J^T lam)| relative to accelerations, in a random state.

    0 if it has no solution.
    """
    assert method.prox is not None
    try:
        at = _sample(model, _embeds(model, method), seed)
        iteration = Solver(method, Rewritten(model))(NUMPY, at.q, at.v, at.tau, mu=np.array(method.prox.mu)).iteration
        assert iteration is not None
        a, lam, *_ = run(iteration, method.prox)
        off = np.linalg.solve(at.M, rnea(at.motion, a) - at.applied - at.JT @ lam)
    except np.linalg.LinAlgError:
        return 0.0
    return _relative(np.abs(off / at.length).max(initial=0.0), a, at)


def _explained(model: Model, method: registry.Method, seed: int) -> float:
    """By how much rounding of the rows' terms moves accelerations, in a random state with open loops."""
    assert method.prox is not None
    try:
        at = _sample(model, False, seed)
    except np.linalg.LinAlgError:
        return 0.0
    return _relative(method.prox.mu * at.rounding, at.a, at)


def _relative(off: float, a: np.ndarray, at: Sample) -> float:
    """Relative to the larger of accelerations with and without rows; 0 if there are none."""
    most = np.abs(np.hstack([a, at.free]) / at.length).max(initial=0.0)
    found = off / most if most > 0 else 0.0
    return float(found) if np.isfinite(found) else 0.0


def _embeds(model: Model, method: registry.Method) -> bool:
    """Whether a method embeds loops of this model; otherwise it penalises as any other method does."""
    return method.local and (method.ways is None or bool(treated(model, method.ways).embedded))


class Sample(NamedTuple):
    """A state with joint forces, and what all methods need of it.

    `applied` are these forces and those of springs, `a` and `free` the accelerations with and without rows. `length` is
    the unit of each velocity: the mechanism's reach for slides. `rounding` of all rows' terms moves accelerations by so
    much, in these units, for each unit of a penalty.
    """

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    length: np.ndarray
    motion: Motion
    M: np.ndarray
    JT: np.ndarray
    applied: np.ndarray
    a: np.ndarray
    free: np.ndarray
    rounding: float


@cached
def _sample(model: Model, closed: bool, seed: int) -> Sample:
    """A random state, the same for all methods; `closed` for those that embed linkages.

    LinAlgError if its mass matrix is singular.
    """
    rng, length = np.random.default_rng(seed), np.where(model.sliding, max(model.reach) or 1.0, 1.0)[:, None]
    q = _position(model, closed, rng, seed)[:, None]
    v = rng.normal(size=(model.nv, 1)) * length
    motion = Rewritten(model).motion(q, v, NUMPY)
    M = crba(motion)
    tau = np.diagonal(M)[:, None] * rng.normal(size=v.shape) * length
    passive = joint_forces(model, q, v, NUMPY)
    applied = tau if passive is None else tau + passive
    JT = joint_space(motion)[0].T
    free, a = np.linalg.solve(M, applied - rnea(motion, None)), kkt(motion, applied)[0]
    pushes = [(np.linalg.solve(M, push), terms) for push, terms in _pushes(motion, a)]
    lost = sum((np.abs(moved) @ (EPS * terms) for moved, terms in pushes), np.zeros_like(a))
    rounding = float((lost / length).max(initial=0.0))
    return Sample(q, v, tau, length, motion, M, JT, applied, a, free, rounding)


def _pushes(motion: Motion, a: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each constraint and link that it is on, J_l^T K_l^T, and U times the absolute terms of its rows.

    Rows over joints are those over links that methods make of them.
    """
    links, at = motion.accelerations(a), motion.model.topology.v_slices
    for rows, unit in zip(constraint_rows(motion), units(motion.model), strict=True):
        r = over_links(motion, rows)
        terms = np.abs(r.k) + sum(np.abs(K) @ np.abs(links[l]) for l, K in r.links.items())
        for l, K in r.links.items():
            push = np.zeros((len(a), len(r.k)))
            for i, block in jacobian_blocks(motion, {l: K}, {}).items():
                push[at[i]] = block.T
            yield push, unit * terms


def _position(model: Model, closed: bool, rng: np.random.Generator, seed: int) -> np.ndarray:
    """A random configuration; a closed one where such are found and asked for."""
    every = away_from_neutral(model, range(len(model.constraints))) if closed else iter(())
    found = list(islice(every, seed + 1))
    return found[seed % len(found)] if found else model.random_q(rng)
