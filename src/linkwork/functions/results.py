"""The results of functions: one class for each task, the same for all methods.

Machine code makes them directly for one state (kernels/codegen/python_calls.py), so they are tuples, or have
`__slots__`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from linkwork.functions.dense_judge import Rows


class MassMatrixResult(NamedTuple):
    """`M` (nv, nv)."""

    M: np.ndarray


class MassEntriesResult(NamedTuple):
    """`entries`: those of M at the places that `mass_pattern` gives."""

    entries: np.ndarray


class InverseDynamicsResult(NamedTuple):
    """`tau` (nv,): joint forces."""

    tau: np.ndarray


class ActuationResult(NamedTuple):
    """`tau` (nv,): joint forces of actuators; `act_rate` (na,): rates of their activations."""

    tau: np.ndarray
    act_rate: np.ndarray


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


class ForwardDynamicsDerivatives(NamedTuple):
    """The solution `a` (nv,), `lam` (m,), and its Jacobians: nv and m rows, nv columns each.

    By q in tangent space.
    """

    a: np.ndarray
    lam: np.ndarray
    da_dq: np.ndarray
    da_dv: np.ndarray
    da_dtau: np.ndarray
    dlam_dq: np.ndarray
    dlam_dv: np.ndarray
    dlam_dtau: np.ndarray


class InverseDynamicsDerivatives(NamedTuple):
    """`dtau_dq`, `dtau_dv` and `dtau_da` = M, nv x nv each; by q in tangent space."""

    dtau_dq: np.ndarray
    dtau_dv: np.ndarray
    dtau_da: np.ndarray


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


class FrameVelocityResult(NamedTuple):
    """`velocities` (F, 6), or (6,) of one frame: [linear; angular]."""

    velocities: np.ndarray


class FrameAccelerationResult(NamedTuple):
    """`accelerations` (F, 6), or (6,) of one frame: [linear; angular]."""

    accelerations: np.ndarray


class FrameJacobianResult(NamedTuple):
    """`J` (F, 6, nv), or (6, nv) of one frame."""

    J: np.ndarray


class CentreOfMassResult(NamedTuple):
    """`com` (3,) in the world, and its Jacobian `com_J` (3, nv)."""

    com: np.ndarray
    com_J: np.ndarray


class CentroidalMomentumResult(NamedTuple):
    """`h` (6,), its matrix `A` (6, nv) with h = A v, and `Adot_v` (6,) with dh/dt = A a + Adot_v."""

    h: np.ndarray
    A: np.ndarray
    Adot_v: np.ndarray


class EnergyResult(NamedTuple):
    """`kinetic_energy` and `potential_energy`, in joules."""

    kinetic_energy: np.ndarray
    potential_energy: np.ndarray


class CoriolisMatrixResult(NamedTuple):
    """`C` (nv, nv)."""

    C: np.ndarray


class GravityForcesResult(NamedTuple):
    """`g` (nv,)."""

    g: np.ndarray


class BiasForcesResult(NamedTuple):
    """`c` (nv,)."""

    c: np.ndarray


class InverseMassMatrixResult(NamedTuple):
    """`Minv` (nv, nv)."""

    Minv: np.ndarray


class RegressorResult(NamedTuple):
    """`Y` (nv, p): joint forces, or momenta, are Y pi."""

    Y: np.ndarray


class RegressorEntriesResult(NamedTuple):
    """`entries`: those of Y at the places that `regressor_pattern` gives."""

    entries: np.ndarray


class EnergyRegressorResult(NamedTuple):
    """`kinetic` and `potential` (p,): energies are kinetic pi and potential pi."""

    kinetic: np.ndarray
    potential: np.ndarray


class IKResult(NamedTuple):
    """`q` (nq,) with quaternions [x y z w], largest `error` (m, rad), `converged`, `iterations`.

    For a batch of targets or starts each has that axis first.
    """

    q: np.ndarray
    error: np.ndarray
    converged: np.ndarray
    iterations: np.ndarray


@cache
def terms_result(names: tuple[str, ...]) -> Any:
    """The class of results with these terms: one for all functions that have them, in this order."""
    fields = namedtuple("TermsResult", names)  # type: ignore[misc]
    own = {"__slots__": (), "__reduce__": lambda self: (_terms, (names, tuple(self)))}
    return type("TermsResult", (fields,), own)


def _terms(names: tuple[str, ...], values: tuple[np.ndarray, ...]) -> Any:
    """Such a result, from a pickle."""
    return terms_result(names)(*values)


class OperationalSpaceMatrixResult(NamedTuple):
    """`matrix` (m, m): Lambda."""

    matrix: np.ndarray


class OperationalSpaceFactorResult(NamedTuple):
    """`factor` (m (m + 1) / 2,): the lower triangle of C by rows, C C^T = Lambda^-1."""

    factor: np.ndarray


class KKTResult(NamedTuple):
    """`x` (nv,) and the multipliers `lam` (m,)."""

    x: np.ndarray
    lam: np.ndarray


class Solution:
    """Arrays by name, as in `a, lam = result`, and how they were found.

    A method that iterates reports that with its results. A direct one takes one iteration; its `residual` is computed
    when first read, from the inputs of the call: read it before you change these in place.
    """

    __slots__ = ("_active", "_link_rows", "_q", "_report", "_rows", "_softness", "_targets", "_v")
    _fields: ClassVar[tuple[str, ...]]
    _report: np.ndarray  # (..., 3): solver iterations, residual, and 1, or NaN if that is too large
    _rows: Rows
    _q: np.ndarray
    _v: np.ndarray
    _active: np.ndarray
    _targets: np.ndarray
    _link_rows: np.ndarray
    _softness: np.ndarray

    def __init__(self, *arrays: np.ndarray) -> None:
        for name, x in zip((*self._fields, "_report"), arrays, strict=False):
            setattr(self, name, x)

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
            inputs = {n: getattr(self, f"_{n}", None) for n in ("active", "targets", "softness", "link_rows")}
            return self._rows.residual(self._q, self._v, self[0], self[1], **inputs)
        return np.zeros(self[0].shape[:-1])

    @property
    def converged(self) -> np.ndarray:
        """Whether the residual is within `Prox.tolerance` of the rows' terms; always True for direct methods."""
        if hasattr(self, "_report"):
            return np.asarray(self._report[..., 2] == 1)
        return np.ones(self[0].shape[:-1], dtype=bool)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter([getattr(self, name) for name in self._fields])

    def __len__(self) -> int:
        return len(self._fields)

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


class StepResult(Solution):
    """`q`, `v` after the step, contact `forces`, `impulses`, and how they were found.

    `forces` has three numbers per contact, in world axes; `impulses` are what the next step starts from; `residual` is
    the largest violation of a law of contact, m/s.
    """

    __slots__ = ("forces", "impulses", "q", "v")
    _fields: ClassVar[tuple[str, ...]] = ("q", "v", "forces", "impulses")
    q: np.ndarray
    v: np.ndarray
    forces: np.ndarray
    impulses: np.ndarray


class ContactResidualsResult(NamedTuple):
    """`complementarity`, `cone`, `dissipation` (m/s, one per contact): what it leaves of each law."""

    complementarity: np.ndarray
    cone: np.ndarray
    dissipation: np.ndarray


class ActivatedStepResult(StepResult):
    """A `StepResult` with the activations `act` (na,) after the step, of actuators that have a state."""

    __slots__ = ("act",)
    _fields = (*StepResult._fields, "act")
    act: np.ndarray
