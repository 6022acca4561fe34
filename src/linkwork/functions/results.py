"""The results of functions: one class for each task, the same for all methods.

Machine code makes them directly for one state (kernels/objects.py), so they are tuples, or have `__slots__`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from linkwork.functions.judge import Rows


class MassMatrixResult(NamedTuple):
    """`M` (nv, nv)."""

    M: np.ndarray


class MassEntriesResult(NamedTuple):
    """`entries`: those of M at the places that `mass_pattern` gives."""

    entries: np.ndarray


class InverseDynamicsResult(NamedTuple):
    """`tau` (nv,): joint forces."""

    tau: np.ndarray


class ConstrainedInverseDynamicsResult(NamedTuple):
    """`tau` (nv,), constraint forces `lam` (m,), and the relative error `residual` of M a + c."""

    tau: np.ndarray
    lam: np.ndarray
    residual: np.ndarray


class ConstraintJacobianResult(NamedTuple):
    """`J` (m, nv)."""

    J: np.ndarray


class ConstraintErrorResult(NamedTuple):
    """`phi` (m,): position errors; `rate` (m,): J v."""

    phi: np.ndarray
    rate: np.ndarray


class ForwardKinematicsResult(NamedTuple):
    """`positions` (F, 3) and `rotations` (F, 3, 3) in the world."""

    positions: np.ndarray
    rotations: np.ndarray


class DelassusResult(NamedTuple):
    """`matrix` (m, m): J M^-1 J^T."""

    matrix: np.ndarray


class DelassusOperatorResult(NamedTuple):
    """`solved` (m,): Lambda b; `multiplied` (m,): Lambda^-1 b."""

    solved: np.ndarray
    multiplied: np.ndarray


class OperationalSpaceInertiaResult(NamedTuple):
    """`force` (m,): Lambda b."""

    force: np.ndarray


class Solution:
    """Two arrays by name, as in `a, lam = result`, and how they were found.

    A method that iterates reports that with its results. A direct one takes one iteration; its `residual` is computed
    when first read, from the inputs of the call: read it before you change these in place.
    """

    __slots__ = ("_active", "_q", "_report", "_rows", "_softness", "_targets", "_v")
    _fields: ClassVar[tuple[str, str]]
    _report: np.ndarray  # (..., 3): solver iterations, residual, and 1, or NaN if that is too large
    _rows: Rows
    _q: np.ndarray
    _v: np.ndarray
    _active: np.ndarray
    _targets: np.ndarray
    _softness: np.ndarray

    def __init__(self, first: np.ndarray, second: np.ndarray, report: np.ndarray | None = None) -> None:
        for name, x in zip(self._fields, (first, second), strict=True):
            setattr(self, name, x)
        if report is not None:
            self._report = report

    @property
    def iterations(self) -> np.ndarray:
        """Solver iterations, for each state."""
        if hasattr(self, "_report"):
            return np.asarray(self._report[..., 0].astype(int))
        return np.ones(self[0].shape[:-1], dtype=int)

    @property
    def residual(self) -> np.ndarray:
        """The largest |J a - k| of any row, for each state; with softness, the largest |J a + R lam - k|."""
        if hasattr(self, "_report"):
            return self._report[..., 1]
        if hasattr(self, "_rows"):
            active, targets, softness = (getattr(self, n, None) for n in ("_active", "_targets", "_softness"))
            return self._rows.residual(self._q, self._v, active, self[0], self[1], targets, softness)
        return np.zeros(self[0].shape[:-1])

    @property
    def converged(self) -> np.ndarray:
        """Whether the residual is within `Prox.tolerance` of the rows' terms; always True for direct methods."""
        if hasattr(self, "_report"):
            return np.asarray(self._report[..., 2] == 1)
        return np.ones(self[0].shape[:-1], dtype=bool)

    def __iter__(self) -> Iterator[np.ndarray]:
        first, second = self._fields
        return iter((getattr(self, first), getattr(self, second)))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, k: int) -> np.ndarray:
        return getattr(self, self._fields[k])  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        report = np.stack([self.iterations, self.residual, np.where(self.converged, 1.0, np.nan)], axis=-1)
        return type(self), (*self, report)

    def __repr__(self) -> str:
        names = (*self._fields, "iterations", "residual", "converged")
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"


class ForwardDynamicsResult(Solution):
    """Accelerations `a` (nv,), constraint forces `lam` (m,), `iterations`, `residual`, `converged`."""

    __slots__ = ("a", "lam")
    _fields = ("a", "lam")
    a: np.ndarray
    lam: np.ndarray


class ImpulseResult(Solution):
    """Velocities `v_after` (nv,), the constraints' `impulse` (m,), `iterations`, `residual`, `converged`."""

    __slots__ = ("impulse", "v_after")
    _fields = ("v_after", "impulse")
    v_after: np.ndarray
    impulse: np.ndarray
