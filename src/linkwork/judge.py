"""A second opinion where a direct method finds a pivot that could be rounding: are the rows independent after all?

Pivots depend on the order of elimination. A leg that is stretched cannot move its foot in all directions while the hip
rests, and yet the hip moves. So where a method meets a pivot that it does not trust, the rows are looked at all
together, by singular values: independent ones have their solution, others are an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from linkwork.algorithms.constrained.kkt import joint_space
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends import get
from linkwork.model import Model, Motion

INDEPENDENT = 1e-7
"""Rows of length one, in the norm of M^-1, are independent if their singular values are above this."""

State = Mapping[str, np.ndarray]
Solved = tuple[np.ndarray, ...] | None


def judge(model: Model, at: Callable[[Motion], Motion] | None = None) -> Callable[[State], Solved]:
    """The function from a state to accelerations and forces, or to None; `at` makes the problem of a motion of the
    model."""

    def solved(x: State) -> Solved:
        column = {n: np.asarray(values, dtype=float)[:, None] for n, values in x.items()}
        motion = Motion(model, column["q"], column["v"], get("numpy"))
        problem, tau = motion if at is None else at(motion), column.get("tau", 0 * column["v"])
        found = independent(problem, tau, column.get("fext"))
        if found is None:
            return None
        a, lam = found
        return (a if at is None else column["v"] + a)[:, 0], lam[:, 0]

    return solved


def independent(motion: Motion, tau: np.ndarray, fext: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
    """min |vdot - free|_M with J vdot = k for independent rows: y = W^+ (k - J free), W = J L^-T, rows of length
    one."""
    try:
        L = np.linalg.cholesky(crba(motion))
        J, k = joint_space(motion)
        W = np.linalg.solve(L, J.T).T
        length = np.linalg.norm(W, axis=1, keepdims=True)
        if not length.all():
            return None
        u, s, vt = np.linalg.svd(W / length, full_matrices=False)
        if len(s) < len(k) or s.min(initial=1.0) <= INDEPENDENT * s.max(initial=0.0):
            return None
        free = np.linalg.solve(L.T, np.linalg.solve(L, tau - rnea(motion, None, fext)))
        along = u.T @ ((k - J @ free) / length) / s[:, None]
        return free + np.linalg.solve(L.T, vt.T @ along), u @ (along / s[:, None]) / length
    except np.linalg.LinAlgError:
        return None
