"""The jump of the velocity when constraints set in at once: touchdown, impact.

    M (v+ - v) = J^T Lambda,     J v+ = -e J v

is forward dynamics without forces, gravity and velocity products, with k = -(1 + e) J v: every solver can do it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkwork.constraints import Constraint, Rows, Stabilisation
from linkwork.constraints.rows import rows_velocity
from linkwork.model import Model, Motion


@dataclass(frozen=True, eq=False)
class Impact(Constraint):
    """A constraint whose rows must jump from J v to -e J v."""

    constraint: Constraint
    before: Motion
    restitution: float
    stabilisation: Stabilisation | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.constraint.name

    @property
    def rows(self) -> int:
        return self.constraint.rows

    def touches(self, model: Model) -> tuple[int, ...]:
        return self.constraint.touches(model)

    def evaluate(self, motion: Motion) -> Rows:
        rows = self.constraint.evaluate(self.before)
        jump = (1 + self.restitution) * rows_velocity(self.before, rows)
        return Rows(rows.links, rows.joints, jump, rows.relative)


def impact(motion: Motion, restitution: float) -> Motion:
    """The state whose forward dynamics, without joint forces, are the jump of the velocity and the impulses."""
    model = motion.model
    jumping = tuple(Impact(c, motion, restitution) for c in model.constraints)
    still = replace(model, constraints=jumping, gravity=0 * model.gravity)
    return Motion(still, motion.q, motion.xp.zeros(model.nv), motion.xp)
