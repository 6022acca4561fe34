"""Which joints without motors are held by rows, independently of each other, in usual postures.

Derivatives of inverse dynamics factor their columns. Where these are others, they say so (NaN), and singular values
decide: as in independent_rows.py, this is a question of speed alone.
"""

from __future__ import annotations

import numpy as np

from linkwork.backends import get
from linkwork.constraints.rows import jacobian
from linkwork.model import Model, Motion
from linkwork.planner.iterations import samples

POSTURES, APART = 6, 1e-5
"""How many postures are looked at; the least part of a column, relative to it, that no other has, in most of them."""

ROUNDING = 1e-9
"""The size of a column, relative to all, that may be rounding."""


def held_joints(model: Model, actuated: np.ndarray) -> np.ndarray:
    """Which degrees of freedom (nv) these are: by the largest parts first."""
    rng = np.random.default_rng(1)
    found = samples(model).get("q", np.stack([model.random_q(rng) for _ in range(POSTURES)]))[:POSTURES]
    J = np.stack([jacobian(Motion(model, q[:, None], np.zeros((model.nv, 1)), get("numpy"))) for q in found])
    held, rest = np.zeros(model.nv, bool), np.where(actuated, 0.0, J)
    size = (rest**2).sum(1) + (ROUNDING**2 * (rest**2).sum((1, 2)))[:, None]
    while held.sum() < model.rows:
        part = (rest**2).sum(1)
        share = np.median(part / np.where(size > 0, size, 1.0), 0)
        k = int(np.argmax(share))
        if share[k] < APART**2:
            break
        held[k] = True
        unit = rest[:, :, k] / np.sqrt(np.where(part[:, k] > 0, part[:, k], 1.0))[:, None]
        rest = rest - unit[:, :, None] * (unit[:, None, :] @ rest)
        rest[:, :, k] = 0
    return held
