"""The jump of the velocity when constraints become active at once: touchdown, impact.

    M (v+ - v) = J^T Lambda,     J v+ = -e J v

is forward dynamics without forces, gravity and velocity products, with k = -(1 + e) J v: every solver can do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from linkwork.backends.ops import Array
from linkwork.constraints import Constraint, Rows, Stabilisation
from linkwork.constraints.rows import evaluated, rows_velocity
from linkwork.model import Model, Motion


@dataclass(frozen=True, eq=False, repr=False)
class WithTargets(Constraint):
    """The rows of a constraint in some state, with a target as their right-hand side."""

    constraint: Constraint
    at: Motion
    target: Array
    stabilisation: Stabilisation | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.constraint.name

    @property
    def rows(self) -> int:
        return self.constraint.rows

    @property
    def original(self) -> Constraint:
        return self.constraint

    @property
    def source(self) -> Model:
        return self.at.model

    def touches(self, model: Model) -> tuple[int, ...]:
        return self.constraint.touches(model)

    def evaluate(self, motion: Motion) -> Rows:
        rows = self.constraint.evaluate(self.at)
        return Rows(rows.links, rows.joints, -self.target, rows.relative)


def with_targets(motion: Motion, targets: Sequence[Array]) -> Motion:
    """The state whose forward dynamics without joint forces are the smallest d with J d = target."""
    model = motion.model
    rows = tuple(WithTargets(c, motion, k) for c, k in zip(model.constraints, targets, strict=True))
    at_rest = replace(model, constraints=rows, gravity=0 * model.gravity)
    given = replace(motion.given, gravity=None, targets=None)
    return Motion(at_rest, motion.q, motion.xp.zeros(model.nv), motion.xp, given)


def impact(motion: Motion, restitution: float) -> Motion:
    """The state whose forward dynamics without joint forces are the velocity jump and the impulses."""
    rates = [rows_velocity(motion, evaluated(motion, n)) for n in range(len(motion.model.constraints))]
    return with_targets(motion, [-(1 + restitution) * rate for rate in rates])
