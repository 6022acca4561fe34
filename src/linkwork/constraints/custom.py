"""Any relation between joint positions, written as a Python function that is differentiated while it runs.

phi(q) = 0,   J v = (dphi/dq) qdot,   drift = d/dt (dphi/dq qdot) at vdot = 0
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwork.backends.jets import JETS, TIME, Jet
from linkwork.backends.numpy_ import NUMPY
from linkwork.backends.ops import Array, Ops
from linkwork.checks import FUNCTION, NAME, NAMES, checked_class
from linkwork.constraints.base import STABILISATION, Constraint, Rows, Stabilisation
from linkwork.errors import InputError, MissingExtra, ModelError
from linkwork.joints import Joint, Revolute

if TYPE_CHECKING:
    from linkwork.model import Model
    from linkwork.model.motion import Motion


@checked_class(phi=FUNCTION, joints=NAMES, name=NAME, stabilisation=STABILISATION)
@dataclass(frozen=True, eq=False, repr=False)
class Custom(Constraint):
    """phi(*positions) = 0: a function of the positions of `joints`; returns one number, or several as a list or array.

    >>> Custom(lambda a, b: np.sin(a) - b, joints=("crank", "rod"))

    A position is a number for a joint with one coordinate, else an array of shape (nq,) with quaternions as [x y z w].
    phi is plain arithmetic and NumPy's functions (sqrt, exp, log, hypot, arctan2, sin, arcsin, sinh, ...; `@`, np.dot,
    np.linalg.norm of arrays); it cannot branch on values. It may be written with CasADi's functions instead, of
    columns; that needs the extra `casadi`.
    """

    phi: Callable[..., Any]
    joints: Sequence[str]
    name: str = "custom"
    stabilisation: Stabilisation | None = None
    _kinds: tuple[Joint, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.joints:
            raise InputError("Custom needs the names of the joints that phi depends on, in the order of its arguments")
        object.__setattr__(self, "joints", tuple(self.joints))

    @property
    def rows(self) -> int:
        return _examined(self.phi, self._kinds or (Revolute(),) * len(self.joints)).rows

    def check(self, model: Model) -> None:
        kinds = tuple(model.links[model.joint(j)].joint for j in self.joints)
        object.__setattr__(self, "_kinds", kinds)  # for `rows`, which has no model
        try:
            _examined(self.phi, kinds)
        except MissingExtra:
            raise
        except Exception as problem:
            raise ModelError(f"constraint '{self.name}': phi cannot be traced: {problem}") from problem

    def touches(self, model: Model) -> tuple[int, ...]:
        moved = [model.joint(j) for j in self.joints]
        return tuple(dict.fromkeys(l for i in moved for l in (i, model.links[i].parent)))

    def renamed(self, new: Callable[[str], str]) -> Custom:
        return replace(self, joints=tuple(map(new, self.joints)), name=new(self.name))

    def _evaluated(self, motion: Motion) -> tuple[Array, ...]:
        """phi, J and the drift."""
        moved = [motion.model.joint(j) for j in self.joints]
        kinds, xp = tuple(motion.model.links[i].joint for i in moved), motion.xp
        q, v = [motion.joint_q(i) for i in moved], [motion.joint_v(i) for i in moved]
        function = _examined(self.phi, kinds).casadi
        if function is None:
            return _differentiated(self.phi, kinds, q, v, xp)
        return xp.call(function, xp.vstack(q), xp.vstack(v))

    def evaluate(self, motion: Motion) -> Rows:
        _, G, drift = self._evaluated(motion)
        joints, start = {}, 0
        for j in self.joints:
            i = motion.model.joint(j)
            stop = start + motion.model.links[i].joint.nv
            joints[i] = G[:, start:stop]
            start = stop
        return Rows({}, joints, drift)

    def position_error(self, motion: Motion) -> Array:
        return self._evaluated(motion)[0]


class _Examined(NamedTuple):
    """How many numbers a phi returns, and the CasADi function (q, v) -> phi, J, drift if it is written in CasADi."""

    rows: int
    casadi: Any = None


@lru_cache(maxsize=256)
def _examined(phi: Callable[..., Any], kinds: tuple[Joint, ...]) -> _Examined:
    """Run phi once on jets; if that fails and CasADi is in use, on CasADi's symbols."""
    q, v = ([NUMPY.constant(np.linspace(0.3, 0.6, n)) for n in sizes] for sizes in zip(*((k.nq, k.nv) for k in kinds)))
    try:
        return _Examined(len(_differentiated(phi, kinds, q, v, NUMPY)[0]))
    except ImportError as problem:
        if problem.name != "casadi":
            raise
        raise MissingExtra("casadi", "casadi", "a Custom relation that imports CasADi") from None
    except Exception:
        if "casadi" not in sys.modules:
            raise
        function = _in_casadi(phi, kinds)
        return _Examined(function.size1_out(0), function)


def _differentiated(
    phi: Callable[..., Any], kinds: Sequence[Joint], q: Sequence[Array], v: Sequence[Array], xp: Ops
) -> tuple[Array, Array, Array]:
    """phi, J and the drift, from one run of phi on jets with a direction for every joint velocity, and time."""
    arguments, first = [], 0
    with np.errstate(all="ignore"):
        for kind, qi, vi in zip(kinds, q, v, strict=True):
            columns = [kind.rate(qi, xp.constant(e), xp) for e in np.eye(kind.nv)]  # dq/dv: rates are linear in v
            arguments.append(_moving(kind, qi, vi, {first + k: c for k, c in enumerate(columns)}, xp))
            first += kind.nv
        found = phi(*(a[0] if len(a) == 1 else a for a in arguments))
        jets = [x if isinstance(x, Jet) else Jet(xp, xp.constant([[float(x)]])[0, 0]) for x in np.ravel(found)]
        if not jets:
            raise TypeError("it returns no number")
        zero = xp.zeros(1)[0, 0]
        J = xp.matrix([[jet.d.get(k, zero) for k in range(first)] for jet in jets])
        drift = xp.matrix([[zero if jet.dd is None else jet.dd] for jet in jets])
        return xp.matrix([[jet.x] for jet in jets]), J, drift


def _moving(kind: Joint, q: Array, v: Array, columns: Mapping[int, Array], xp: Ops) -> np.ndarray:
    """A joint's position as an array of jets: qdot = rate(q, v), and qddot from the derivative of that."""

    qdot = kind.rate(q, v, xp)
    at = np.array([[Jet(xp, q[e, 0], {TIME: qdot[e, 0]})] for e in range(kind.nq)]).reshape(kind.nq, 1)
    speed = np.array([[Jet(xp, v[k, 0])] for k in range(kind.nv)]).reshape(kind.nv, 1)
    bent = kind.rate(at, speed, JETS)[:, 0]
    out = np.empty(kind.nq, dtype=object)
    for e, rate in enumerate(bent):
        d = {k: column[e, 0] for k, column in {**columns, TIME: qdot}.items() if not xp.is_zero(column[e, 0])}
        out[e] = Jet(xp, q[e, 0], d, rate.d.get(TIME) if isinstance(rate, Jet) else None)
    return out


def _in_casadi(phi: Callable[..., Any], kinds: tuple[Joint, ...]) -> Any:
    """The CasADi function (q, v) -> phi, J, drift."""
    from linkwork.backends.casadi_ import CASADI, casadi

    q = [casadi.SX.sym(f"q{i}", k.nq) for i, k in enumerate(kinds)]
    v = [casadi.SX.sym(f"v{i}", k.nv) for i, k in enumerate(kinds)]
    all_q, all_v = casadi.vertcat(*q), casadi.vertcat(*v)
    value = casadi.SX(phi(*q))
    value = casadi.densify(value.reshape((value.numel(), 1)))
    qdot = casadi.vertcat(*(k.rate(qi, vi, CASADI) for k, qi, vi in zip(kinds, q, v, strict=True)))
    rate = casadi.jtimes(value, all_q, qdot)
    J, drift = casadi.jacobian(rate, all_v), casadi.jtimes(rate, all_q, qdot)
    return casadi.Function("custom", [all_q, all_v], [value, casadi.densify(J), casadi.densify(drift)])
