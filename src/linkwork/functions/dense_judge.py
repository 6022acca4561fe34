"""A second solution by dense linear algebra, where a method reports that it found none.

Pivots depend on the order of elimination. A stretched leg cannot move its foot in all directions while the hip is at
rest, but the rows are independent if the hip moves. So where a direct method has a pivot near zero, singular values of
all rows decide: independent rows have their solution, others are an error. And where the planner's choice has not
converged, the dense solution, without directions in which rows are redundant, may meet the rows, or that of rows whose
rank is clear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from linkwork.algorithms.common.least_inertia import is_lost
from linkwork.algorithms.constrained.kkt import confirmed, joint_space, kkt, resolved
from linkwork.algorithms.registry import Method
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends import get
from linkwork.backends.triangular import cholesky, solve_lower, solve_upper
from linkwork.constraints.row_inertia import units
from linkwork.functions.softness import softness_vector
from linkwork.model import Model, Motion
from linkwork.model.joint_forces import joint_forces
from linkwork.rewrite.rewritten import Rewritten

INDEPENDENT, SINGLE = 1e-7, 1e-4
"""Rows of length one, in the norm of M^-1, are independent if their singular values are above this. In float32 a state
itself is rounded: rows that depend on each other have singular values of 1e-7 there, and another solution."""

DEPENDENT, SINGLE_DEPENDENT = 1e-12, 1e-6
"""Singular values of such rows below this are rounding. The rank is clear where none lies between this and the least
of independent rows."""

VANISHING = 1e-12
"""A row this much shorter than rows of its constraint usually are is rounding: no joint moves what it measures. A row
of 1/n of the usual length, scaled to length one, has n times this rounding: no smaller singular value counts."""

SAME = 1e-9
"""The largest difference of two methods' accelerations, in the norm of M: for light links it is larger, by the square
root of mass ratios."""

State = Mapping[str, np.ndarray]


class Problem(NamedTuple):
    """A motion under joint forces and forces on links, with the constraints `which` of a model.

    `kept` says which singular values count; `single` that the state has the digits of float32.
    """

    motion: Motion
    tau: np.ndarray
    fext: np.ndarray | None
    which: list[int]
    kept: Kept | float
    single: bool


class Verdict(NamedTuple):
    """Accelerations (or velocities after an impact), forces, the largest |J a - k| and its terms' size.

    The terms are those of accelerations with and without constraints. `weight` is the L^T of M = L L^T, `pushes` are
    L^-1 J^T, and `energy` is the largest of a^T M a, with and without.
    """

    a: np.ndarray
    lam: np.ndarray
    residual: float
    size: float
    weight: np.ndarray
    pushes: np.ndarray
    energy: float

    def confirms(self, a: np.ndarray, lam: np.ndarray) -> bool:
        """Whether other accelerations and forces J^T lam are the same, in the norms of M and M^-1."""
        off = self.weight @ (a - self.a), self.pushes @ (lam - self.lam)
        return all(bool(x @ x <= SAME**2 * self.energy) for x in off)


class Resolved:
    """The Delassus matrix of some constraints' rows, with all others resolved by singular values.

    Lambda^-1 = W (1 - V V^T) W^T,    W = J L^-T,   V a basis of the others' rows of it
    """

    def __init__(self, model: Model, which: Sequence[int]) -> None:
        self.model = model
        self.outer = np.repeat([n in which for n in range(len(model.constraints))], [c.rows for c in model.constraints])

    def independent(self, x: State) -> tuple[np.ndarray] | None:
        """The matrix, if the mass matrix is regular."""
        q = np.asarray(x["q"], dtype=float)[:, None]
        column = {n: np.asarray(values, dtype=float)[:, None] for n, values in x.items()}
        motion = Rewritten(self.model).motion(q, np.zeros((self.model.nv, 1)), get("numpy"), column)
        try:
            motion, M = resolved(motion)
            if is_lost(M):
                return None
            W = solve_lower(cholesky(M), joint_space(motion)[0].T).T.astype(float)
        except np.linalg.LinAlgError:
            return None
        unit = np.repeat(units(self.model), [c.rows for c in self.model.constraints])
        length = np.linalg.norm(W, axis=1, keepdims=True)
        is_row = (length > VANISHING / np.sqrt(unit)[:, None])[:, 0]
        loops, rows = (W / np.where(length > 0, length, 1.0))[~self.outer & is_row], W[self.outer]
        _, s, vt = np.linalg.svd(loops, full_matrices=False)
        least = SINGLE if np.asarray(x["q"]).dtype == np.float32 else INDEPENDENT
        unknown = _unknown(length, 1 / np.sqrt(unit)[:, None], ~self.outer & is_row)
        V = vt[s > max(least, unknown) * s.max(initial=0.0)]
        rows = rows - rows @ V.T @ V
        return (rows @ rows.T,)


class Judge:
    """Solves single states of a model; `at` makes another problem of a motion (impacts)."""

    def __init__(self, model: Model, at: Callable[[Motion], Motion] | None = None) -> None:
        self.model, self.at = model, at

    def independent(self, x: State) -> Verdict | None:
        """The solution, if the rows are independent."""
        return self._solved(x, _all_independent)

    def ranked(self, x: State) -> Verdict | None:
        """The solution, if the rank of the rows is clear."""
        return self._solved(x, _clear_rank)

    def redundant(self, x: State, least: float) -> Verdict | None:
        """The solution without directions of singular values below `least`, in units of effective inertia."""
        return self._solved(x, least)

    def _solved(self, x: State, kept: Kept | float) -> Verdict | None:
        column = {n: np.asarray(values, dtype=float)[:, None] for n, values in x.items()}
        on = np.ones(len(self.model.constraints)) if "active" not in x else np.asarray(x["active"])
        which = np.flatnonzero(on > 0).tolist()
        rows = np.repeat(on > 0, [c.rows for c in self.model.constraints])
        if "targets" in column:
            column["targets"] = column["targets"][rows]
        xp, within = get("numpy"), Rewritten(self._holding(which), source=self.model)
        motion = within.motion(column["q"], column["v"], xp, column)
        problem = motion if self.at is None else self.at(motion)
        tau = column.get("tau", 0 * column["v"])
        passive = None if self.at is not None else joint_forces(self.model, column["q"], column["v"], xp, column)
        try:
            applied, single = tau if passive is None else tau + passive, np.asarray(x["q"]).dtype == np.float32
            found = self._found(Problem(problem, applied, column.get("fext"), which, kept, single))
        except np.linalg.LinAlgError:
            return None
        if found is None:
            return None
        a, lam = found.a if self.at is None else column["v"][:, 0] + found.a, np.zeros(len(rows))
        pushes = np.zeros((len(a), len(rows)))
        lam[rows], pushes[:, rows] = found.lam, found.pushes
        return found._replace(a=a, lam=lam, pushes=pushes)

    def _holding(self, which: list[int]) -> Model:
        """The model with some of its constraints."""
        all_of_them = self.model.constraints
        if len(which) == len(all_of_them):
            return self.model
        return replace(self.model, constraints=tuple(all_of_them[n] for n in which))

    def _found(self, given: Problem) -> Verdict | None:
        return _dense(given, units(self.model, given.which))


class Reference(Judge):
    """The same for `kkt`, which has a solution for any rank; its trace does not find all of them."""

    def _found(self, given: Problem) -> Verdict:
        vdot, lam = kkt(given.motion, given.tau, given.fext)
        return Verdict(vdot[:, 0], lam[:, 0], 0.0, 0.0, np.eye(len(vdot)), np.zeros((len(vdot), len(lam))), 0.0)


def judge_of(model: Model, method: Method, at: Callable[[Motion], Motion] | None = None) -> Judge:
    """The judge for a method: by least squares if the method itself solves rows of any rank by them."""
    return (Reference if method.least_squares else Judge)(model, at)


Kept = Callable[[np.ndarray, bool, bool, float], np.ndarray | None]
"""Which singular values of rows of length one count, or None if that is not clear, in float32 if the first flag is set;
the second tells whether as many values as rows are there, and no row vanishes; the number is the rows' rounding."""


def _all_independent(s: np.ndarray, single: bool, whole: bool, unknown: float) -> np.ndarray | None:
    """All, if the rows are independent."""
    kept = s > max(SINGLE if single else INDEPENDENT, unknown) * s.max(initial=0.0)
    return kept if whole and kept.all() else None


def _clear_rank(s: np.ndarray, single: bool, whole: bool, unknown: float) -> np.ndarray | None:
    """Those that are not rounding, if no value may or may not be."""
    apart, rounding = (SINGLE, SINGLE_DEPENDENT) if single else (INDEPENDENT, DEPENDENT)
    kept, lost = s > max(apart, unknown) * s.max(initial=0.0), s <= rounding * s.max(initial=0.0)
    return kept if (kept | lost).all() else None


def _unknown(length: np.ndarray, usual: np.ndarray, which: np.ndarray) -> float:
    """The rounding of some rows after they are scaled to length one."""
    return float((VANISHING * usual[which] / length[which]).max(initial=0.0))


def _dense(given: Problem, inertias: list[float]) -> Verdict | None:
    """min |vdot - free|_M with J vdot = k: y = W^+ (k - J free), W = J L^-T with scaled rows.

    Rows are scaled to length one, or, where `kept` is the least singular value that counts, by effective inertias.
    """
    (_, tau, fext, _, kept, single), (motion, M) = given, resolved(given.motion)
    L = cholesky(M)
    J, k = joint_space(motion)
    W = solve_lower(L, J.T).T.astype(float)
    length = usual = 1 / np.sqrt(np.repeat(inertias, [c.rows for c in motion.model.constraints]))[:, None]
    if callable(kept):
        own = np.linalg.norm(W, axis=1, keepdims=True)
        moved = own > VANISHING * usual
        u, s, vt = np.linalg.svd(np.where(moved, W, 0.0) / (length := np.where(moved, own, usual)), full_matrices=False)
        which = kept(s, single, bool(moved.all()) and len(s) == len(k), _unknown(own, usual, moved[:, 0]))
    else:
        u, s, vt = np.linalg.svd(W / length, full_matrices=False)
        which = s > kept
    if which is None:
        return None
    u, s, vt = u[:, which], s[which, None], vt[which]
    free = solve_upper(L.T, solve_lower(L, tau - rnea(motion, None, fext)))
    along = u.T @ ((k - J @ free) / length) / s
    vdot, lam = free + solve_upper(L.T, vt.T @ along), u @ (along / s) / length
    vdot = confirmed(motion, M, vdot, tau + J.T @ lam, fext)
    size = float(np.linalg.norm(np.hstack([k, J * vdot.T, J * free.T]).astype(float)))
    energy = max(float(np.sum((L.T @ x) ** 2)) for x in (vdot, free))
    return Verdict(
        vdot[:, 0].astype(float),
        lam[:, 0].astype(float),
        float(np.abs(J @ vdot - k).max(initial=0.0)),
        size,
        L.T.astype(float),
        W.T,
        energy,
    )


class Rows:
    """The constraint rows of a model, for the residuals of results; `at` as for a `Judge`.

    `softness` is R by constraint: soft rows are met if J a + R lam = k.
    """

    def __init__(
        self,
        model: Model,
        at: Callable[[Motion], Motion] | None = None,
        softness: Sequence[np.ndarray] | None = None,
    ) -> None:
        self.model, self.at, self.softness = model, at, softness

    def residual(
        self,
        q: np.ndarray,
        v: np.ndarray,
        found: np.ndarray,
        forces: np.ndarray,
        active: np.ndarray | None = None,
        targets: np.ndarray | None = None,
        softness: np.ndarray | None = None,
        link_rows: np.ndarray | None = None,
    ) -> np.ndarray:
        """The largest |J a - k| of active rows in each state, for the accelerations or velocities `found`."""
        lead = found.shape[:-1]
        on = np.ones(len(self.model.constraints)) if active is None else active
        wanted = np.zeros(self.model.rows) if targets is None else targets
        own = np.zeros(self.model.rows) if self.softness is None else softness_vector(self.softness)
        K = np.zeros(0) if link_rows is None else np.reshape(link_rows, (*np.shape(link_rows)[:-2], -1))
        given = (q, v, on, found, forces, wanted, own if softness is None else softness, K)
        arrays = [np.atleast_1d(np.asarray(x, float)) for x in given]  # results keep bare numbers as they were given
        parts = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in arrays]
        each = [self._one(*(x[b] for x in parts)) for b in np.ndindex(lead)]
        return np.array(each, dtype=float).reshape(lead)

    def _one(
        self,
        q: np.ndarray,
        v: np.ndarray,
        on: np.ndarray,
        found: np.ndarray,
        forces: np.ndarray,
        targets: np.ndarray,
        softness: np.ndarray,
        K: np.ndarray,
    ) -> float:
        inputs = {"link_rows": K[:, None]} if len(K) else None
        motion = Rewritten(self.model).motion(q[:, None], v[:, None], get("numpy"), inputs)
        J, k = joint_space(motion if self.at is None else self.at(motion))
        left = J @ (found if self.at is None else found - v) - k[:, 0] - targets
        weight = np.repeat(on, [c.rows for c in self.model.constraints])
        held = weight > 0
        if self.softness is not None:
            left[held] += (softness * forces)[held] / weight[held]
        return float(np.abs(left[held]).max(initial=0.0))
