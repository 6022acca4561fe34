"""The solution of constrained dynamics and a few more with its matrix, by sweeps over links.

    [M, -J^T; J, R] [x; y] = [b; r],      M = L^T D L,    Y = L^-T J^T,    J M^-1 J^T = Y^T D^-1 Y

as in kkt_solution.py, but M is not formed: with V = U / d of articulated inertias (common/articulated.py; Featherstone,
Rigid Body Dynamics Algorithms, section 7.2), for forces f on links and b on joints,

    z = L^-T (b + J^T f):      z_i = b_i + S_i^T f_i,      f_p += X_i^T (f_i - V_i z_i)            tips to base
    x = L^-1 w:                x_i = w_i - V_i^T X_i a_p,      a_i = X_i a_p + S_i x_i             base to tips

For the few columns of products with derivatives that takes fewer operations than M and L where trees are deep: O(n) for
each, O(n + m d) to factor but for the rows, O(m^2 d + m^3). Shallow ones have M and L. Rows start as forces on links,
relative ones as forces on the joints between these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkwork.algorithms.common.articulated import articulated
from linkwork.algorithms.constrained.kkt_factor import RowsFactor
from linkwork.algorithms.constrained.ltl import joint_targets
from linkwork.algorithms.delassus.ltl import Columns, by_dof, joint_columns, through
from linkwork.algorithms.derivatives.kkt_solution import Implicit, keeping, regular, rows_inverse
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows, jacobian_blocks
from linkwork.model import Model, Motion


class Sweeps:
    """L^-T, D^-1 and L^-1 of the mass matrix; `pivots` are the entries of D^-1."""

    def __init__(self, motion: Motion) -> None:
        self.motion, self.dofs = motion, articulated(motion).dofs
        self.pivots = [dof.d_inv for i in motion.model.topology.links for dof in self.dofs[i]]

    def through(self, b: Mapping[int, Array], forces: Mapping[int, Array]) -> Columns:
        """L^-T (b + J^T f), tips to base: rows of z for all degrees of freedom that carry some of b and f."""
        t, f, z = self.motion.model.topology, dict(forces), dict(b)
        for i in reversed(t.links):
            for k, dof in reversed([*enumerate(self.dofs[i], t.v_slices[i].start)]):
                if i in f:
                    felt = dof.s.T @ f[i]
                    z[k] = z[k] + felt if k in z else felt
                if k in z:
                    held = dof.V @ z[k]
                    f[i] = f[i] - held if i in f else -held
            if i in f and (p := t.parent[i]):
                moved = self.motion.X[i].T @ f[i]
                f[p] = f[p] + moved if p in f else moved
        return z

    def solve_LT(self, b: Array, forces: Mapping[int, Array] | None = None) -> Array:
        """L^-T (b + J^T f), for columns."""
        z = self.through({k: b[k : k + 1, :] for k in range(b.shape[0])}, forces or {})
        return self.motion.xp.vstack([b[0:0, :], *(z[k] for k in range(b.shape[0]))])

    def solve_D(self, b: Array) -> Array:
        """D^-1 b."""
        return self.motion.xp.vstack([b[0:0, :], *(d * b[k : k + 1, :] for k, d in enumerate(self.pivots))])

    def solve_L(self, b: Array) -> Array:
        """L^-1 b, base to tips."""
        t, x, a = self.motion.model.topology, [b[0:0, :]], [self.motion.xp.zeros(6, b.shape[1])]
        for i in t.links:
            a.append(self.motion.X[i] @ a[t.parent[i]])
            for k, dof in enumerate(self.dofs[i], t.v_slices[i].start):
                x.append(b[k : k + 1, :] - dof.V.T @ a[i])
                a[i] = a[i] + dof.s @ x[-1]
        return self.motion.xp.vstack(x)


class JointSpace(LTL):
    """The same by the mass matrix and its factor."""

    def __init__(self, motion: Motion) -> None:
        super().__init__(crba(motion), motion.model.topology.dof_parent, motion.xp, held=keeping(motion))
        self.motion = motion

    def through(self, b: Mapping[int, Array], forces: Mapping[int, Array]) -> Columns:
        """L^-T (b + J^T f)."""
        felt = by_dof(self.motion, jacobian_blocks(self.motion, {l: f.T for l, f in forces.items()}, {}))
        return through(self, {k: sum((x[k] for x in (b, felt) if k in x), 0) for k in {**b, **felt}})

    def solve_LT(self, b: Array, forces: Mapping[int, Array] | None = None) -> Array:
        """L^-T (b + J^T f), for columns."""
        z = self.through({k: b[k : k + 1, :] for k in range(b.shape[0])}, forces or {})
        return self._column([z[k] for k in range(b.shape[0])], b)


SWEPT_FROM = 4.5
"""Degrees of freedom that carry another, in the mean, from which sweeps take fewer operations than M and L. A `vjp` has
1.10 times as many on a hand (1.5), 1.03 to 1.08 on arms (2.5 and 3), 0.97 on quadrupeds (5.5), 0.83 on iCub (10)."""


def is_deep(model: Model) -> bool:
    """Whether sweeps take fewer operations."""
    carriers = [0] * model.nv
    for k, p in enumerate(model.topology.dof_parent):
        carriers[k] = carriers[p] + 1 if p >= 0 else 0
    return sum(carriers) > SWEPT_FROM * model.nv


class Swept(Implicit):
    """Accelerations `a` and multipliers for forces on joints and links.

    `b` are those on joints, `forces` those on links, less what velocities need.

    With `weights` of accelerations and constraint forces, `adjoint` is (u, s) of [M, J^T; -J, R] [u; -s] = weights,
    found beside the solution: every number of the factor is read once for both (4 % of the time of a vjp). The solution
    is as exact as its derivatives are.
    """

    def __init__(
        self,
        motion: Motion,
        b: Array,
        forces: Mapping[int, Array],
        softness: Sequence[Array] | None = None,
        active: Array | None = None,
        weights: tuple[Array, Array] | None = None,
        vanishing: Sequence[int] | None = None,
    ) -> None:
        self._prepare(motion, active)
        xp, sweeps = motion.xp, Sweeps(motion) if is_deep(motion.model) else JointSpace(motion)
        Y = [sweeps.through(*_as_forces(motion, r)) for r in self.rows]
        none = [xp.zeros(r.k.shape[0]) for r in self.rows]
        self.joints, self.factor = sweeps, RowsFactor(Y, sweeps.pivots, none, xp)
        D, parent = self.factor.delassus, self.factor.row_parents
        self.W = rows_inverse(D, self.roots, parent, motion, softness, active, vanishing)
        self._regular = regular(sweeps.pivots, crba(motion), xp) if xp.single else 1.0
        k = joint_targets(motion, self.rows)
        if weights is not None:
            b, k = xp.hstack([b, weights[0]]), xp.hstack([k, -(weights[1] * self.roots)])
            forces = {i: xp.hstack([f, xp.zeros(6)]) for i, f in forces.items()}
        self._found(sweeps.solve_LT(b, forces), k)


def _as_forces(motion: Motion, r: ConstraintRows) -> tuple[Columns, dict[int, Array]]:
    """J^T of one constraint as forces on joints and on links."""
    if r.relative:
        return joint_columns(motion, r), {}
    first = {i: motion.model.topology.v_slices[i].start for i in r.joints}
    joints = {first[i] + k: G[:, k : k + 1].T for i, G in r.joints.items() for k in range(G.shape[1])}
    return joints, {l: K.T for l, K in r.links.items()}
