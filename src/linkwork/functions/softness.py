"""Softness of constraint rows: they give way to forces, J a + R lam = k."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from linkwork.backends import Array, Ops
from linkwork.errors import InputError
from linkwork.model import Model

Softness = tuple[np.ndarray, ...]
"""One column per constraint."""


def softness_of(model: Model, R: object) -> Softness | None:
    """R, a number or one for each row, as one column per constraint."""
    if R is None:
        return None
    r = np.asarray(R, dtype=float)
    if r.shape not in ((), (model.rows,)) or not np.all((r > 0) & (r < np.inf)):
        raise InputError(f"R is a number above 0, or one for each of the {model.rows} rows")
    r = np.broadcast_to(r, (model.rows,))
    ends = np.cumsum([0, *(c.rows for c in model.constraints)])
    return tuple(r[a:b, None] for a, b in itertools.pairwise(ends))


def softness_vector(softness: Sequence[np.ndarray] | None) -> np.ndarray | None:
    """The same for all rows, (m,): the default of the input `softness`."""
    return None if softness is None else np.concatenate([np.zeros((0, 1)), *softness])[:, 0]


def felt_softness(
    model: Model, own: Sequence[np.ndarray] | None, given: Mapping[str, Array] | None, xp: Ops
) -> list[Array] | None:
    """R by constraint, m_c x 1, or None for hard rows: the input `softness` if `given`, or their own."""
    if own is None:
        return None
    if given and "softness" in given:
        return [given["softness"][slice(*model.row_span(n)), :] for n in range(len(own))]
    return [xp.constant(r) for r in own]
