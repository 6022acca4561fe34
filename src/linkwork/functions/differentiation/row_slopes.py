"""Derivatives of constraint rows, by forward differentiation of what they trace.

Rows are functions of velocities, accelerations and poses of a few links, whose derivatives are known from the tree
(`rnea_derivatives`), and these are the seeds: a contact, a rod, a custom relation and a stabilisation are all
differentiated in the few operations between a link and a row. With x = [v; w] the change of a link's velocity, y = dA +
V x x that of its spatial acceleration (both for a change of q, or for one of v), and s = [v_s; w_s] its change of
place, all in link coordinates:

    dV = x,    da = [y_lin + 2 w_x x v;  y_ang - w x w_x]  (classical),    dg = g x w_s,    dR = R w_s^,    dp = R v_s

Accelerations of joints are fixed, but for those of free bases (`of_base`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from linkwork.algorithms.derivatives.base_frame_motion import Rooted
from linkwork.algorithms.derivatives.forward_derivatives import RowSlopes
from linkwork.algorithms.derivatives.rnea_derivatives import RneaDerivatives
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows
from linkwork.kernels.programs.differentiate import Tangent, tangents
from linkwork.kernels.programs.matrices import Matrix
from linkwork.kernels.programs.value_numbering import ZERO
from linkwork.model import Motion
from linkwork.spatial import angular, linear, skew


def row_slopes(
    rooted: Rooted,
    rows: list[ConstraintRows],
    d: RneaDerivatives,
    vdot: Array,
    lam: Sequence[Array],
    v: Array | None = None,
) -> RowSlopes:
    """The derivatives of traced rows for fixed multipliers, and accelerations as above.

    `v` are the velocities to differentiate by, if the motion has others (impacts).
    """
    motion, xp = rooted.motion, rooted.xp
    a = motion.accelerations(vdot)
    residual = [xp.zeros(0)]
    links: dict[int, Any] = {}
    joints: dict[int, Any] = {}
    for r, part in zip(rows, lam, strict=True):
        total = -r.k
        for l, K in r.links.items():
            total = total + K @ a[l]
            links[l] = links[l] + K.T @ part if l in links else K.T @ part
        for i, G in r.joints.items():
            total = total + G @ vdot[motion.model.topology.v_slices[i], :]
            joints[i] = joints[i] + G.T @ part if i in joints else G.T @ part
        residual.append(total)
    seeds = Seeds(rooted, d, a, motion.v if v is None else v)
    for constraint in motion.model.constraints:
        touched = sorted(set(constraint.original.touches(motion.model)))
        for l in touched:
            seeds.of_link(l)
        # poses of many links (centre of mass) are differentiated by the general chain
        for one, other in combinations(sorted({0, *touched}), 2) if len(touched) <= MANY else ():
            seeds.of_pose(other, one)
            seeds.of_pose(one, other)
    seeds.fixed(vdot, *lam)
    seeds.of_bases(vdot)
    whole = xp.vstack(residual)
    n = motion.model.nv
    found = seeds.differentiated([whole, *links.values(), *joints.values()])
    by_q, by_v = found[0][:, 0:n], found[0][:, n:]
    forces = dict(zip(links, (x[:, 0:n] for x in found[1:]), strict=False))
    torques = dict(zip(joints, (x[:, 0:n] for x in found[1 + len(links) :]), strict=True))
    return RowSlopes(
        (by_q, by_v),
        {l: x for l, x in forces.items() if not xp.is_zero(x)},
        {i: x for i, x in torques.items() if not xp.is_zero(x)},
    )


MANY = 4
"""The most links of a constraint whose relative poses get derivatives of their own."""


def configuration_seeds(motion: Motion, q: Array) -> dict[int, Tangent]:
    """The derivatives of the entries of q by the nv columns of the chart of `integrate`.

    The joints' rates.
    """
    t, xp, seeds = motion.model.topology, motion.xp, dict[int, Tangent]()
    for i in t.links:
        joint, place, columns = motion.model.links[i].joint, t.q_slices[i], t.v_slices[i]
        for k in range(joint.nv):
            rate = joint.rate(q[place, :], xp.eye(joint.nv)[:, k : k + 1], xp)
            put(seeds, q[place, :], columns.start + k, rate)
    return seeds


def put(seeds: dict[int, Tangent], value: Matrix, column: int, slope: Matrix) -> None:
    """Note the derivatives of the entries of `value` by one column."""
    for x, dx in zip(value.refs, slope.refs, strict=True):
        if value.values.value(x) is None:
            entry = seeds.setdefault(x >> 1, {})
            if dx != ZERO:
                entry[column] = value.values.neg(dx) if x & 1 else dx


class Seeds:
    """Values with known derivatives by q (columns 0 to nv) and v (nv to 2 nv)."""

    def __init__(self, rooted: Rooted, d: RneaDerivatives, a: list[Array], v: Array) -> None:
        self.rooted, self.motion, self.xp, self.d, self.a = rooted, rooted.motion, rooted.xp, d, a
        self.table: dict[int, Tangent] = {}
        self.inputs = configuration_seeds(self.motion, self.motion.q)
        for k in range(self.motion.model.nv):
            put(self.inputs, v[k : k + 1, :], self.motion.model.nv + k, self.xp.eye(1))

    def fixed(self, *values: Matrix) -> None:
        """These do not change."""
        for value in values:
            for x in value.refs:
                if value.values.value(x) is None:
                    self.inputs[x >> 1] = {}

    def of_bases(self, vdot: Matrix) -> None:
        """The accelerations of free bases, which take what is known of their columns."""
        t, n = self.motion.model.topology, self.motion.model.nv
        for i, (by_q, by_v) in self.d.of_base.items():
            for offset, known in ((0, by_q), (n, by_v)):
                for k in range(known.shape[1]):
                    put(self.inputs, vdot[t.v_slices[i], :], offset + t.v_slices[i].start + k, -known[:, k : k + 1])

    def of_link(self, l: int) -> None:
        """The velocity, acceleration and gravity of a link, by all joints that carry it."""
        if not l:
            return
        m, r, xp, n = self.motion, self.rooted, self.xp, self.motion.model.nv
        V, a, g = m.V[l], self.a[l], m.gravity[l]
        v, w = linear(V), angular(V)
        for value in (V, a, g):
            self._known(value)
        for j in m.model.topology.supports[l]:
            S = r.to_link(l, r.S[j])
            by_q, by_v = r.to_link(l, self.d.Psid[j]), S
            changes = [(0, by_q, r.to_link(l, self.d.Psidd[j])), (n, by_v, r.to_link(l, self.d.Sdot[j]))]
            first = m.model.topology.v_slices[j].start
            for k in range(S.shape[1]):
                put(self.table, g, first + k, xp.cross(g, angular(S)[:, k : k + 1]))
                for offset, X, Y in changes:
                    x, y = X[:, k : k + 1], Y[:, k : k + 1]
                    turn = xp.cross(angular(x), v)
                    da = xp.vstack([linear(y) + turn + turn, angular(y) - xp.cross(w, angular(x))])
                    put(self.table, V, offset + first + k, x)
                    put(self.table, a, offset + first + k, da)

    def of_pose(self, l: int, other: int) -> None:
        """Axes and origin of a link in the frame of another."""
        m, r, xp, t = self.motion, self.rooted, self.xp, self.motion.model.topology
        R, p = m.relative_pose(l, other)
        self._known(R)
        self._known(p)
        both = set(t.supports[l]) & set(t.supports[other])
        for link, sign in ((l, 1), (other, -1)):
            for j in [j for j in t.supports[link] if j not in both]:
                S = r.to_link(link, r.S[j])
                for k in range(S.shape[1]):
                    s, column = S[:, k : k + 1], t.v_slices[j].start + k
                    turn = skew(angular(s), xp)
                    if sign > 0:
                        dR, dp = R @ turn, R @ linear(s)
                    else:
                        dR, dp = -(turn @ R), -linear(s) - xp.cross(angular(s), p)
                    put(self.table, R, column, dR)
                    put(self.table, p, column, dp)

    def _known(self, value: Matrix) -> None:
        for x in value.refs:
            if value.values.value(x) is None:
                self.table.setdefault(x >> 1, {})

    def differentiated(self, wanted: Sequence[Matrix]) -> list[Matrix]:
        """The derivatives of columns, n x 2 nv each."""
        values = wanted[0].values
        found = tangents(values, [x >> 1 for value in wanted for x in value.refs], {**self.table, **self.inputs})
        width = 2 * self.motion.model.nv
        out = []
        for value in wanted:
            refs = []
            for x in value.refs:
                tangent: Mapping[int, int] = found.get(x >> 1, {})
                refs += [(values.neg(d) if x & 1 else d) for d in (tangent.get(c, ZERO) for c in range(width))]
            out.append(Matrix(values, (len(value.refs), width), refs))
        return out
