"""Any relation between joint positions: a Python function that is differentiated while it runs.

phi(q) = 0,   J v = (dphi/dq) qdot,   drift = d/dt (dphi/dq qdot) at vdot = 0
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwork.backends.jets import JETS, TIME, Jet
from linkwork.backends.numpy_ import NUMPY
from linkwork.backends.ops import Array, Ops
from linkwork.checks import FUNCTION, NAME, NAMES, checked_class
from linkwork.constraints.base import Constraint, Rows
from linkwork.constraints.stabilisation import STABILISATION, Stabilisation
from linkwork.errors import InputError, MissingExtra, ModelError
from linkwork.joints import Joint, Revolute

if TYPE_CHECKING:
    from linkwork.model import Model
    from linkwork.model.motion import Motion


@checked_class(phi=FUNCTION, joints=NAMES, name=NAME, stabilisation=STABILISATION)
@dataclass(frozen=True, eq=False, repr=False)
class Custom(Constraint):
    """phi(*positions) = 0, a function of the positions of `joints`.

    It returns one number, or several as a list or an array.

    A position is a number for a joint with one coordinate, else an array of shape (nq,) with quaternions as [x y z w].
    phi is plain arithmetic and NumPy's functions (sqrt, exp, log, hypot, arctan2, sin, arcsin, sinh, ...; `@`, np.dot,
    np.linalg.norm of arrays); it cannot branch on values. It may be written with CasADi's functions instead, of
    columns; that needs the extra `casadi`.

    Examples:
        >>> rule = lw.Custom(lambda a, b: np.sin(a) - b, joints=("link1_joint", "link2_joint"))
        >>> lw.constraint_error(chain(2).with_constraints(rule))([0.0, 0.5], [0.0, 0.0]).phi
        array([-0.5])
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
    """How many numbers a phi returns; if it is written in CasADi, its (q, v) -> phi, J, drift."""

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
    except Exception as problem:
        function = _in_casadi(phi, kinds, problem) if "casadi" in sys.modules else None
        if function is None:
            raise
        return _Examined(function.size1_out(0), function)


def _differentiated(
    phi: Callable[..., Any], kinds: Sequence[Joint], q: Sequence[Array], v: Sequence[Array], xp: Ops
) -> tuple[Array, Array, Array]:
    """phi, J = (dphi/dq) (dq/dv) and the drift, from one run of phi on jets that move along v."""
    with np.errstate(all="ignore"):
        starts = np.cumsum([0, *(kind.nq for kind in kinds)]).tolist()
        moving = [_moving(kind, qi, vi, first, xp) for kind, qi, vi, first in zip(kinds, q, v, starts, strict=False)]
        found = phi(*(x[0] if len(x) == 1 else x for x in moving))
        jets = [x if isinstance(x, Jet) else Jet(xp, xp.constant([[float(x)]])[0, 0]) for x in np.ravel(found)]
        if not jets:
            raise TypeError("it returns no number")
        zero, J = xp.zeros(1)[0, 0], [xp.zeros(len(jets), 0)]
        for kind, qi, first in zip(kinds, q, starts, strict=False):
            by_q = xp.matrix([[jet.d.get(first + e, zero) for e in range(kind.nq)] for jet in jets])
            J += [by_q @ kind.rate(qi, xp.constant(e), xp) for e in np.eye(kind.nv)]  # rates are linear in v
        drift = xp.matrix([[zero if jet.dd is None else jet.dd] for jet in jets])
        return xp.matrix([[jet.x] for jet in jets]), xp.hstack(J), drift


def _moving(kind: Joint, q: Array, v: Array, first: int, xp: Ops) -> np.ndarray:
    """A joint's position as jets, a direction for each entry; qddot is the derivative of rate(q, v)."""
    qdot = kind.rate(q, v, xp)
    at = np.array([[Jet(xp, q[e, 0], {TIME: qdot[e, 0]})] for e in range(kind.nq)]).reshape(kind.nq, 1)
    speed = np.array([[Jet(xp, v[k, 0])] for k in range(kind.nv)]).reshape(kind.nv, 1)
    one, out = xp.eye(1)[0, 0], np.empty(kind.nq, dtype=object)
    for e, rate in enumerate(kind.rate(at, speed, JETS)[:, 0]):
        d = {first + e: one} if xp.is_zero(qdot[e, 0]) else {first + e: one, TIME: qdot[e, 0]}
        out[e] = Jet(xp, q[e, 0], d, rate.d.get(TIME) if isinstance(rate, Jet) else None)
    return out


def _in_casadi(phi: Callable[..., Any], kinds: tuple[Joint, ...], problem: Exception) -> Any:
    """The CasADi function (q, v) -> phi, J, drift; None if phi does not return what is CasADi's."""
    from linkwork.backends.casadi_ import CASADI, casadi

    q = [casadi.SX.sym(f"q{i}", k.nq) for i, k in enumerate(kinds)]
    v = [casadi.SX.sym(f"v{i}", k.nv) for i, k in enumerate(kinds)]
    all_q, all_v = casadi.vertcat(*q), casadi.vertcat(*v)
    try:
        found = phi(*q)
    except Exception as theirs:
        raise type(problem)(f"{problem}; by CasADi: {theirs}") from None
    if not any(isinstance(x, casadi.SX | casadi.DM) for x in (found if isinstance(found, list | tuple) else [found])):
        return None
    value = casadi.SX(casadi.vertcat(*found) if isinstance(found, list | tuple) else found)
    value = casadi.densify(value.reshape((value.numel(), 1)))
    qdot = casadi.vertcat(*(k.rate(qi, vi, CASADI) for k, qi, vi in zip(kinds, q, v, strict=True)))
    rate = casadi.jtimes(value, all_q, qdot)
    J, drift = casadi.jacobian(rate, all_v), casadi.jtimes(rate, all_q, qdot)
    return casadi.Function("custom", [all_q, all_v], [value, casadi.densify(J), casadi.densify(drift)])
