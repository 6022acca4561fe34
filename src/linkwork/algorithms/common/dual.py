"""Rows propagated from their links to the base, joint by joint: the dual part of the PV recursion.

After the joints behind it are eliminated, the constraints depend on the acceleration a_i of a link by

    L lam = l - K_i a_i ,

and eliminating a degree of freedom of joint i as well, with e = K_i s + G, changes that to
(sathya2023_pv_lqr eqs. 20c-e and 42c-e)

    K <- K - e U^T / d,    l <- l - e u / d,    L <- L + e e^T / d,     then  l <- l - K c_i,  K_p = K X .

Only blocks of coupled constraints are stored; a row may hold any number of links and joints.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from linkwork.algorithms.common.articulated import Articulated
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows


@dataclass
class Dual:
    """The constraints as some links see them: K^T by link and constraint; L, l by constraint; e^T by dof."""

    art: Articulated
    KT: dict[int, dict[int, Array]]
    L: dict[tuple[int, int], Array]
    l: list[Array]
    eT: dict[tuple[int, int], dict[int, Array]] = field(default_factory=dict)

    def matrix(self, which: list[int]) -> Array:
        """L of some constraints as one symmetric matrix."""
        xp = self.art.motion.xp

        def block(c: int, d: int) -> Array:
            if (c, d) in self.L:
                return self.L[c, d]
            return self.L[d, c].T if (d, c) in self.L else xp.zeros(self.l[c].shape[0], self.l[d].shape[0])

        return xp.vstack(
            [
                xp.zeros(0, sum(self.l[d].shape[0] for d in which)),
                *(xp.hstack([block(c, d) for d in which]) for c in which),
            ]
        )

    def groups(self) -> list[list[int]]:
        """The constraints, grouped by what L couples."""
        group = list(range(len(self.l)))
        for c, d in self.L:
            if group[c] != group[d]:
                new, old = sorted((group[c], group[d]))
                group = [new if g == old else g for g in group]
        return [[c for c, g in enumerate(group) if g == k] for k in sorted(set(group))]

    def right_side(self, which: list[int]) -> Array:
        """l - K_0 a_0 of some constraints that were propagated to the world."""
        motion, at_world = self.art.motion, self.KT.get(0, {})
        parts = [self.l[c] - at_world[c].T @ motion.a0 if c in at_world else self.l[c] for c in which]
        return motion.xp.vstack([motion.xp.zeros(0), *parts])

    def add_forces(self, u: list[list[Array]], lam: list[Array]) -> list[list[Array]]:
        """The forces left to move the joints, with what the constraints add: u + e^T lam."""
        out = [list(x) for x in u]
        for (i, k), blocks in self.eT.items():
            for c, eT in blocks.items():
                out[i][k] = out[i][k] + eT @ lam[c]
        return out

    def pass_dof(self, i: int, k: int, held: dict[int, Array], u: Array, G: dict[int, Array]) -> None:
        """Eliminate degree of freedom k of joint i from the constraints `held` by link i."""
        dof, xp = self.art.dofs[i][k], self.art.motion.xp
        eT = {c: dof.s.T @ KT for c, KT in held.items()}
        for c, row in G.items():
            eT[c] = eT[c] + row if c in eT else row
        self.eT[i, k] = eT
        for c, e in eT.items():
            scaled = dof.d_inv * e
            self.l[c] = self.l[c] - scaled.T @ u
            for d in eT:
                if d >= c:
                    new = xp.symmetric(scaled.T @ e) if c == d else scaled.T @ eT[d]
                    self.L[c, d] = self.L[c, d] + new if (c, d) in self.L else new
            held[c] = held[c] - dof.V @ e if c in held else -(dof.V @ e)


def to_base(art: Articulated, rows: list[ConstraintRows], u: list[list[Array]], stop: int = 0) -> Dual:
    """Propagate all constraints to link `stop`: the world, or a link that supports all others."""
    motion, t, xp = art.motion, art.motion.model.topology, art.motion.xp
    dual = Dual(art, {}, {}, [r.k for r in rows])
    for c, r in enumerate(rows):
        dual.L[c, c] = xp.zeros(r.k.shape[0], r.k.shape[0])
        for i, K in r.links.items():
            dual.KT.setdefault(i, {})[c] = K.T
    for i in reversed(t.links[stop:]):
        held = dual.KT.pop(i, {})
        for k in reversed(range(len(art.dofs[i]))):
            G = {c: r.joints[i][:, k : k + 1].T for c, r in enumerate(rows) if i in r.joints}
            dual.pass_dof(i, k, held, u[i][k], G)
        at_parent = dual.KT.setdefault(t.parent[i], {})
        for c, KT in held.items():
            dual.l[c] = dual.l[c] - KT.T @ motion.c[i]
            KT = motion.X[i].T @ KT
            at_parent[c] = at_parent[c] + KT if c in at_parent else KT
    return dual
