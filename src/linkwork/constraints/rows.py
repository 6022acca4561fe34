"""The rows of a model's constraints with right-hand sides, their Jacobians and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkwork.backends.ops import Array
from linkwork.constraints.base import Constraint, Rows

if TYPE_CHECKING:
    from linkwork.model.model import Model
    from linkwork.model.motion import Motion


@dataclass(frozen=True)
class ConstraintRows:
    """sum_l K_l a_l + sum_i G_i vdot_i = k over moving links, with `a_l` as the recursions have it.

    That is: classical, and with the world accelerating by -g, so that gravity is in every link. `relative` rows do not
    depend on an acceleration that all their links have in common: no joint that carries all of them is in the rows.
    """

    links: dict[int, Array]
    joints: dict[int, Array]
    k: Array
    relative: bool = False


def evaluated(motion: Motion, n: int) -> Rows:
    """The rows of the model's n-th constraint in this state, evaluated once."""
    known: dict[Any, Rows] = motion.evaluated
    if n not in known:
        known[n] = motion.model.constraints[n].evaluate(motion)
    return known[n]


def constraint_rows(motion: Motion, which: Sequence[int] | None = None, relative: bool = False) -> list[ConstraintRows]:
    """The rows of the model's constraints, or of some, in this state; `relative` where there are such."""
    out = []
    for n in range(len(motion.model.constraints)) if which is None else which:
        c = motion.model.constraints[n]
        rows = c.evaluate_relative(motion) if relative else evaluated(motion, n)
        k = -rows.drift
        if c.stabilisation is not None:
            k = k - pulled(motion, c, rows)
        if 0 in rows.links or not rows.relative:
            for l, K in rows.links.items():
                if l:
                    k = k - K[:, 0:3] @ motion.gravity[l]
        for l, K in rows.links.items():
            k = k - K[:, 0:3] @ motion.known[l]
        if motion.given.targets is not None:
            k = k + motion.given.targets[slice(*motion.model.row_span(n)), :]
        moving = {l: K for l, K in rows.links.items() if l}
        out.append(ConstraintRows(moving, dict(rows.joints), k, rows.relative and 0 not in rows.links))
    return out


def pulled(motion: Motion, c: Constraint, rows: Rows) -> Array:
    """What the stabilisation of a constraint adds to its rows."""
    assert c.stabilisation is not None
    return c.stabilisation.pull(rows_velocity(motion, rows), curvature(motion, rows), c.position_error(motion))


def curvature(motion: Motion, rows: Rows) -> Array:
    """d/dt (J v) at constant joint velocities: of the rows, and of the links that these move."""
    t, xp = motion.model.topology, motion.xp
    moving = [l for l in rows.links if l]
    root = t.common_ancestor(*moving) if rows.relative and moving and moving == [*rows.links] else 0
    rest, total = {root: xp.zeros(6)}, rows.drift
    for l, K in rows.links.items():
        total = total + K[:, 0:3] @ motion.known[l]
        for i in t.supports[l][t.depth[root] :] if l else ():
            if i not in rest:
                rest[i] = motion.X[i] @ rest[t.parent[i]] + motion.c[i]
        total = total + K @ rest[l] if l else total
    return total


def jacobian(motion: Motion) -> Array:
    """J, m x nv: the constraint rows as functions of the joint velocities, J v = 0 when satisfied."""
    xp = motion.xp
    blocks = [
        rows_jacobian(motion, {l: K for l, K in r.links.items() if l}, dict(r.joints))
        for r in (evaluated(motion, n) for n in range(len(motion.model.constraints)))
    ]
    return xp.vstack(blocks) if blocks else xp.zeros(0, motion.model.nv)


def rows_jacobian(motion: Motion, links: dict[int, Array], joints: dict[int, Array]) -> Array:
    """The rows as one matrix over all joint velocities, m x nv."""
    t, xp = motion.model.topology, motion.xp
    m = next(iter((links or joints).values())).shape[0]
    J = jacobian_blocks(motion, links, joints)
    sizes = {i: t.v_slices[i].stop - t.v_slices[i].start for i in t.links}
    return xp.hstack([xp.zeros(m, 0), *(J[i] if i in J else xp.zeros(m, n) for i, n in sizes.items() if n)])


def squared_row_bounds(motion: Motion, rows: Rows | ConstraintRows) -> Array:
    """Upper bounds, m x 1, of the squared sizes of rows over joint velocities.

    They are reached if every joint moves the links along the rows' directions. A row below rounding of its bound is
    zero: no joint lies between its links, or all that do move them at right angles to its direction, which is known to
    rounding only.
    """
    xp, ones = motion.xp, motion.xp.constant([1.0] * motion.model.nv)
    total = xp.zeros(next(iter((rows.links or rows.joints).values())).shape[0])
    for l, K in rows.links.items():
        if l:
            # a trace takes fewer operations link by link
            J = motion.jacobians[l] if xp.dense else rows_jacobian(motion, {l: xp.eye(6)}, {})
            squares, moved, three = K * K, (J * J) @ ones, xp.constant([1.0] * 3)
            (along, about), (shift, turn) = ([x[:, 0:3] @ three, x[:, 3:6] @ three] for x in (squares, moved.T))
            total = total + along @ shift + (about + motion.model.reach[l] ** 2 * along) @ turn
    for i, G in rows.joints.items():
        J = rows_jacobian(motion, {}, {i: G})
        total = total + (J * J) @ ones
    return total


def uncancelled(motion: Motion, l: int, K: Array) -> Array:
    """The squares of rows over link l's acceleration, without cancellation: (p x d)^2 <= p^2 d^2."""
    squares, reach = K * K, motion.model.reach[l]
    along = squares[:, 0:1] + squares[:, 1:2] + squares[:, 2:3]
    return motion.xp.hstack([squares[:, 0:3], *(squares[:, i : i + 1] + reach**2 * along for i in (3, 4, 5))])


def jacobian_blocks(
    motion: Motion, links: dict[int, Array], joints: dict[int, Array], relative: bool = False
) -> dict[int, Array]:
    """The rows over the velocities of the joints in their support, m x nv_i by link.

    The rows' forces K^T are propagated from link to link to the base; each joint on the path gets S^T of them. Forces
    of relative rows cancel at the last link that carries all their links.
    """
    t = motion.model.topology
    root = t.common_ancestor(*links) if relative and links else 0
    KT, J = {l: K.T for l, K in links.items()}, dict(joints)
    for i in reversed(t.links[root:]):
        if i not in KT:
            continue
        if t.v_slices[i].stop > t.v_slices[i].start:
            G = KT[i].T @ motion.S[i]
            J[i] = J[i] + G if i in J else G
        if (p := t.parent[i]) != root:
            KT[p] = KT[p] + motion.X[i].T @ KT[i] if p in KT else motion.X[i].T @ KT[i]
    return J


def velocity_error(motion: Motion) -> Array:
    """J v of all constraints, m x 1."""
    parts = [rows_velocity(motion, evaluated(motion, n)) for n in range(len(motion.model.constraints))]
    return motion.xp.vstack(parts) if parts else motion.xp.zeros(0)


def position_error(motion: Motion) -> Array:
    """phi(q) of all constraints, m x 1."""
    parts = [c.position_error(motion) for c in motion.model.constraints]
    return motion.xp.vstack(parts) if parts else motion.xp.zeros(0)


def rows_velocity(motion: Motion, rows: Rows) -> Array:
    """J v of some rows."""
    total = motion.xp.zeros(rows.drift.shape[0])
    for l, K in rows.links.items():
        total = total + K @ motion.V[l]
    for i, G in rows.joints.items():
        total = total + G @ motion.joint_v(i)
    return total


def holders(model: Model, r: ConstraintRows) -> tuple[int, ...]:
    """The links that rows hold; for a joint these are its link and that link's parent."""
    return (*r.links, *(l for i in r.joints for l in (i, model.topology.parent[i])))
