"""Overconstrained loops that drift open until rows that were redundant no longer are.

Rows that depend on each other while loops are closed come into conflict as these open. A step leaves such directions
out, as long as their singular values are rounding; where loops have opened further, the rows hold the mechanism in
them, and a step neither leaves them out nor solves them. Errors of rows do not tell that, singular values do.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwork.constraints.row_inertia import units
from linkwork.constraints.rows import jacobian
from linkwork.errors import OpenLoopWarning, users_level
from linkwork.functions.kinematics import constraint_error, constraint_jacobian, mass_matrix
from linkwork.lazy import cached_property
from linkwork.model import Model
from linkwork.model.memo import cached
from linkwork.structure.independent import samples

LOOKS = 2
"""How many of the records of a motion are looked at, the last among them."""

OPENED = 2e-5
"""How far joints would have to move (rad, or lengths of the mechanism) to open closed loops as far as a loop that is
looked at: below that, singular values of redundant rows are rounding (6e-5 m of Bricard's half a metre)."""

UNDECIDED = 1e-7, 1e-3
"""Singular values of rows, in units of effective inertia, that steps neither leave out nor solve in three iterations
with their penalty, 3e6: of Bricard's linkages above 2e-7 accelerations are 1e-6 off, and above 1e-6 up to 120 %."""


@dataclass(frozen=True)
class LoopDrift:
    """Tells motions of an overconstrained mechanism whose loops are open too far."""

    model: Model
    backend: str = "kernel"

    def __call__(self, q: np.ndarray, held: np.ndarray | None = None) -> np.ndarray:
        """Which of the motions q (B, N, nq) drifted; `held` (B, rows) are the rows that are switched on."""
        records = sorted({round(n * (q.shape[1] - 1) / LOOKS) for n in range(1, LOOKS + 1)})
        at = q[:, records].reshape(-1, q.shape[-1]).astype(float)
        phi = self._error(at, np.zeros((len(at), self.model.nv))).phi
        on = np.ones(phi.shape) if held is None else np.repeat(held, len(records), axis=0)
        out = np.zeros(len(at), dtype=bool)
        looked = np.flatnonzero((np.abs(phi) * on > OPENED * _per_joint(self.model)).any(axis=-1))
        if looked.size:
            s = self._singular_values(at[looked], on[looked])
            out[looked] = ((s > UNDECIDED[0]) & (s < UNDECIDED[1])).any(axis=-1)
        return np.logical_or.reduce(out.reshape(len(q), -1), axis=-1)  # type: ignore[no-any-return]

    @cached_property
    def _error(self) -> Any:
        return constraint_error(self.model, backend=self.backend)

    @cached_property
    def _dense(self) -> tuple[Any, Any]:
        return mass_matrix(self.model, backend=self.backend), constraint_jacobian(self.model, backend=self.backend)

    def _singular_values(self, q: np.ndarray, on: np.ndarray) -> np.ndarray:
        """Those of the rows that are on, in units of effective inertia."""
        (M,), (J,) = (f(q) for f in self._dense)
        unit = np.sqrt(np.repeat(units(self.model), [c.rows for c in self.model.constraints]))
        try:
            L = np.linalg.cholesky(M)
        except np.linalg.LinAlgError:
            return np.zeros((len(q), 0))  # no motion: it has failed already
        W = np.linalg.solve(L, np.swapaxes(J * (unit * on)[..., None], -1, -2))
        return np.linalg.svd(W, compute_uv=False)


def warn_of_drift(function: str, which: np.ndarray) -> None:
    """Warn, once per place in the user's code as Python does, of motions whose loops have drifted open."""
    where = f" in {np.count_nonzero(which)} of {len(which)} states" if len(which) > 1 else ""
    warnings.warn(
        f"{function}: the loops of an overconstrained mechanism have drifted open{where}, so that rows which were "
        "redundant hold it, or nearly do, and accelerations may be off. Take stabilisation=True, lw.simulate with "
        "projection=True, integrator='rk4', or a shorter dt",
        OpenLoopWarning,
        stacklevel=users_level(),
    )


@cached
def _per_joint(model: Model) -> np.ndarray:
    """How far each row moves with its fastest joint, by one rad, or by the mechanism's length."""
    unit = np.where(model.sliding, max(model.reach), 1.0)
    found = [np.abs(jacobian(at) * unit).max(axis=1) for at in samples(model, range(len(model.constraints)))]
    return np.max(found, axis=0)  # type: ignore[no-any-return]
