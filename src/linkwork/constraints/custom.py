"""Any relation between joint positions, written as a Python function; CasADi differentiates it.

phi(q) = 0,   J v = (dphi/dq) qdot,   drift = d/dt (dphi/dq qdot) at vdot = 0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from linkwork.backends.ops import Array
from linkwork.checks import FUNCTION, NAME, NAMES, checked_class
from linkwork.constraints.base import STABILISATION, Constraint, Rows, Stabilisation
from linkwork.errors import InputError, ModelError

if TYPE_CHECKING:
    from linkwork.joints import Joint
    from linkwork.model import Model
    from linkwork.model.motion import Motion


@checked_class(phi=FUNCTION, joints=NAMES, name=NAME, stabilisation=STABILISATION)
@dataclass(frozen=True, eq=False, repr=False)
class Custom(Constraint):
    """phi(*positions) = 0, a CasADi column per joint in `joints`; returns one number or a column.

    Examples:
        >>> import casadi
        >>> rule = lw.Custom(lambda a, b: casadi.sin(a) - b, joints=("link1_joint", "link2_joint"))
        >>> lw.constraint_error(chain(2).with_constraints(rule))([0.0, 0.5], [0.0, 0.0]).phi
        array([-0.5])
    """

    phi: Callable[..., Any]
    joints: Sequence[str]
    name: str = "custom"
    stabilisation: Stabilisation | None = None
    _sizes: tuple[int, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.joints:
            raise InputError("Custom needs the names of the joints that phi depends on, in the order of its arguments")
        object.__setattr__(self, "joints", tuple(self.joints))
        object.__setattr__(self, "_sizes", (1,) * len(self.joints))

    @property
    def rows(self) -> int:
        import casadi

        probe = self.phi(*(casadi.SX.sym(j, n) for j, n in zip(self.joints, self._sizes, strict=True)))
        return int(casadi.SX(probe).numel())

    def check(self, model: Model) -> None:
        kinds = tuple(model.links[model.joint(j)].joint for j in self.joints)
        object.__setattr__(self, "_sizes", tuple(k.nq for k in kinds))  # for `rows`, which has no model
        try:
            _derivatives(self.phi, kinds)
        except Exception as problem:
            raise ModelError(f"constraint '{self.name}': phi cannot be traced by CasADi: {problem}") from problem

    def touches(self, model: Model) -> tuple[int, ...]:
        moved = [model.joint(j) for j in self.joints]
        return tuple(dict.fromkeys(l for i in moved for l in (i, model.links[i].parent)))

    def renamed(self, new: Callable[[str], str]) -> Custom:
        return replace(self, joints=tuple(map(new, self.joints)), name=new(self.name))

    def _evaluated(self, motion: Motion) -> tuple[Array, ...]:
        moved = [motion.model.joint(j) for j in self.joints]
        function = _derivatives(self.phi, tuple(motion.model.links[i].joint for i in moved))
        q = motion.xp.vstack([motion.joint_q(i) for i in moved])
        v = motion.xp.vstack([motion.joint_v(i) for i in moved])
        return motion.xp.call(function, q, v)

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


@lru_cache(maxsize=256)
def _derivatives(phi: Callable[..., Any], kinds: tuple[Joint, ...]) -> Any:
    """The CasADi function (q, v) -> phi, J, drift."""
    import casadi

    from linkwork.backends.casadi_ import CASADI

    q = [casadi.SX.sym(f"q{i}", k.nq) for i, k in enumerate(kinds)]
    v = [casadi.SX.sym(f"v{i}", k.nv) for i, k in enumerate(kinds)]
    all_q, all_v = casadi.vertcat(*q), casadi.vertcat(*v)
    value = casadi.SX(phi(*q))
    value = casadi.densify(value.reshape((value.numel(), 1)))
    qdot = casadi.vertcat(*(k.rate(qi, vi, CASADI) for k, qi, vi in zip(kinds, q, v, strict=True)))
    rate = casadi.jtimes(value, all_q, qdot)
    J, drift = casadi.jacobian(rate, all_v), casadi.jtimes(rate, all_q, qdot)
    return casadi.Function("custom", [all_q, all_v], [value, casadi.densify(J), casadi.densify(drift)])
