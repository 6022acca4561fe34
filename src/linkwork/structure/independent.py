"""The independent joints of a cluster: their number follows from the rank of its rows.

Ranks and zero entries are found in a few sampled closed configurations, once for a model; they are those of the
mechanism everywhere but in singular postures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.local import local_jacobian
from linkwork.constraints.rows import evaluated, jacobian, position_error, squared_row_bounds
from linkwork.errors import ModelError, listing
from linkwork.model.memo import cached
from linkwork.model.model import Model
from linkwork.model.motion import Motion

ZERO = 1e-9
"""Entries and singular values of rows below this, relative to the largest in any sample, count as zero."""

DISTANCES = 0.0, 0.2, 0.4, 0.4
"""How far from neutral (rad, m) sampled configurations are before their loops are closed."""

IDLE = 8
"""Steps of Gauss-Newton in which the gap is not halved, after which it stays open."""

OPENED = 0.1
"""How far joints are moved (rad, m) to open loops."""


class Choice(NamedTuple):
    """Places of independent and dependent degrees of freedom in a cluster, and the structure of its rows.

    The dependent ones fall apart into `blocks`: the rows that determine them, and places in `dependent`. `size` is that
    of the largest entry that the rows can have.
    """

    independent: tuple[int, ...]
    dependent: tuple[int, ...]
    blocks: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    size: float


def samples(model: Model, constraints: Sequence[int]) -> list[Motion]:
    """The model at rest in some configurations in which these constraints are closed."""
    return at_rest(model, closed_positions(model, constraints))


def at_rest(model: Model, positions: Iterable[np.ndarray]) -> list[Motion]:
    """The model at rest in these configurations."""
    return [Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY) for q in positions]


@cached
def overconstrained(model: Model) -> bool:
    """Whether rows that depend on each other in closed loops become independent where these drift open.

    So are planar four-bars that ball joints close, or Bricard's linkage: they move because of their measures.
    """
    closed = samples(model, range(len(model.constraints)))
    most, rank = (max(map(_rank, postures)) for postures in (map(_opened, closed), closed))
    return most > rank


def _rank(at: Motion) -> int:
    """The rank of all rows."""
    J = jacobian(at)
    return int(np.linalg.matrix_rank(J, tol=ZERO * max(np.abs(J).max(initial=0.0), 1e-300)))


def choose(
    model: Model, bodies: Sequence[int], constraints: Sequence[int], samples: list[Motion], names: bool
) -> Choice:
    """Independent joints of a cluster; named ones are taken, or preferred where that is possible."""
    t = model.topology
    dofs = [k for i in bodies for k in range(t.v_slices[i].start, t.v_slices[i].stop)]
    Ks = [local_jacobian(at, bodies, constraints) for at in samples]
    opened = [local_jacobian(_opened(at), bodies, constraints) for at in samples]
    pattern = np.max([np.abs(K) for K in (*Ks, *opened)], axis=0)
    least = ZERO * max(pattern.max(initial=0.0), 1e-300)
    ranks = [int(np.linalg.matrix_rank(K, tol=least)) for K in Ks]
    rank = max(ranks)
    K = Ks[ranks.index(rank)]
    named = [n for n, k in enumerate(dofs) if model.links[t.dof_link[k]].joint_name in model.independent]
    dependent = [n for n in range(len(dofs)) if n not in named]
    if not named or not (names or _follow(K, rank, dependent, least)):
        dependent = _most_dependent(model, dofs, K, rank, least)
    elif not _follow(K, rank, dependent, least):
        raise _misnamed(model, dofs, constraints, rank, named)
    independent = tuple(n for n in range(len(dofs)) if n not in dependent)
    blocks = _blocks(pattern[:, dependent] > least / max(len(pattern), 1))  # a column above it has an entry above that
    return Choice(independent, tuple(dependent), blocks, _largest_entry(samples, constraints))


def _opened(at: Motion) -> Motion:
    """A configuration nearby in which the loops are open.

    States are closed to some tolerance only, and drift: an entry of the rows that vanishes in closed loops alone is as
    large there as the loops are open, and no zero.
    """
    step = OPENED * np.random.default_rng(1).normal(size=at.model.nv)
    return Motion(at.model, at.model.integrate(at.q[:, 0], step)[:, None], at.v, NUMPY)


def _largest_entry(samples: list[Motion], constraints: Sequence[int]) -> float:
    """How large entries of these constraints' rows can be."""
    found = [squared_row_bounds(at, evaluated(at, n)).max(initial=0.0) for at in samples for n in constraints]
    return float(np.sqrt(max(found, default=0.0)))


def _most_dependent(model: Model, dofs: Sequence[int], K: np.ndarray, rank: int, least: float) -> list[int]:
    """Dependent joints: without motors first, then far from the base; rows must determine each well."""
    t = model.topology
    order = sorted(range(len(dofs)), key=lambda n: (model.links[t.dof_link[dofs[n]]].actuated, -n))
    for enough in (*(share * np.abs(K).max(initial=0.0) for share in (0.3, 1e-2, 1e-4)), least):
        basis, chosen = np.zeros((K.shape[0], 0)), list[int]()
        for n in order:
            left = K[:, n] - basis @ (basis.T @ K[:, n])
            size = float(np.linalg.norm(left))
            if len(chosen) < rank and size > enough:
                chosen.append(n)
                basis = np.column_stack([basis, left / size])
        if len(chosen) == rank:
            break
    return sorted(chosen)


def _follow(K: np.ndarray, rank: int, dependent: list[int], least: float) -> bool:
    """Whether the rows determine these joints by the others: singular values above the least that counts."""
    return len(dependent) == rank and int(np.linalg.matrix_rank(K[:, dependent], tol=least)) == rank


def _misnamed(model: Model, dofs: Sequence[int], constraints: Sequence[int], rank: int, named: list[int]) -> ModelError:
    """The error for independent joints that are too many, too few, or do not determine the others."""
    joints = [model.links[model.topology.dof_link[k]].joint_name for k in dofs]
    return ModelError(
        f"the loops {listing(model.constraints[n].name for n in constraints)} leave {len(dofs) - rank} of the "
        f"{len(dofs)} degrees of freedom of {listing(dict.fromkeys(joints))} independent, and "
        f"{listing(joints[n] for n in named)} cannot be these: the others do not follow from them. Name others with "
        "model.with_independent(...)"
    )


def _blocks(pattern: np.ndarray) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Rows and columns that nonzero entries connect; rows of zeros are in no block."""
    left, out = set(range(pattern.shape[1])), []
    while left:
        columns, rows = {min(left)}, set[int]()
        while True:
            rows = {int(r) for r in np.flatnonzero(pattern[:, sorted(columns)].any(axis=1))}
            wider = {int(n) for n in np.flatnonzero(pattern[sorted(rows)].any(axis=0))} | columns
            if wider == columns:
                break
            columns = wider
        left -= columns
        out.append((tuple(sorted(rows)), tuple(sorted(columns))))
    return tuple(out)


def closed_positions(model: Model, constraints: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Positions that close these constraints, by Gauss-Newton; the first is kept even if open."""
    return near_neutral(model, constraints), *away_from_neutral(model, constraints)


def near_neutral(model: Model, constraints: Sequence[int]) -> np.ndarray:
    """The first of these positions."""
    return _closed(model, tuple(constraints), 0)[0]


def away_from_neutral(model: Model, constraints: Sequence[int]) -> Iterator[np.ndarray]:
    """The others, all closed, one by one: each is searched when it is asked for."""
    for start in range(1, len(DISTANCES)):
        q, closed = _closed(model, tuple(constraints), start)
        if closed:
            yield q


@cached
def _closed(model: Model, constraints: tuple[int, ...], start: int) -> tuple[np.ndarray, bool]:
    """A position from one of the starts, and whether it closes the constraints."""
    model = replace(model, constraints=tuple(model.constraints[n] for n in constraints))
    away = np.random.default_rng(0).normal(size=(start + 1, model.nv))[start]
    q, best, idle = model.integrate(model.neutral(), DISTANCES[start] * away), np.inf, 0
    for _ in range(30 if model.constraints else 0):
        motion = Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY)
        phi = position_error(motion)
        gap = float(np.abs(phi).max(initial=0.0))
        best, idle = (gap, 0) if gap < best / 2 else (best, idle + 1)
        if gap < 1e-10 or idle == IDLE:
            return q, gap < 1e-10
        q = model.integrate(q, -(np.linalg.pinv(jacobian(motion), rcond=ZERO) @ phi)[:, 0])
    return q, not model.constraints
