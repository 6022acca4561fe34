"""Constraints carried from the links they hold to the base, joint by joint: the dual part of the PV recursion.

After the joints behind it are eliminated, the acceleration a_i of a link leaves the constraints with

    L lam = l - K_i a_i ,

and eliminating joint i as well, with E = K_i S_i + G_i, changes that to (sathya2023_pv_lqr eqs. 20c-e and 42c-e)

    K_p = K_i (1 - S D^-1 U^T) X,    l <- l - K_i c_i - E D^-1 (u - U^T c_i),    L <- L + E D^-1 E^T .

Blocks are kept per constraint, so what no joint couples stays apart; a row may hold any number of links and joints.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from linkwork.algorithms.tree.articulated import Articulated
from linkwork.backends.ops import Array
from linkwork.constraints.rows import ConstraintRows


@dataclass
class Dual:
    """The constraints as some links see them: K^T by link and constraint, and L, l by constraint."""

    KT: dict[int, dict[int, Array]]
    L: dict[tuple[int, int], Array]
    l: list[Array]
    ET: dict[int, dict[int, Array]] = field(default_factory=dict)

    def matrix(self, which: list[int], art: Articulated) -> Array:
        """L of some constraints as one symmetric matrix."""
        xp = art.motion.xp

        def block(c: int, d: int) -> Array:
            if (c, d) in self.L:
                return self.L[c, d]
            return self.L[d, c].T if (d, c) in self.L else xp.zeros(self.l[c].shape[0], self.l[d].shape[0])

        return xp.vstack([xp.hstack([block(c, d) for d in which]) for c in which])

    def groups(self) -> list[list[int]]:
        """The constraints, grouped by what L couples."""
        group = list(range(len(self.l)))
        for c, d in self.L:
            if group[c] != group[d]:
                new, old = sorted((group[c], group[d]))
                group = [new if g == old else g for g in group]
        return [[c for c, g in enumerate(group) if g == k] for k in sorted(set(group))]

    def add_forces(self, u: list[Array], lam: list[Array]) -> list[Array]:
        """The forces left to move the joints, with what the constraints add: u_i + E^T lam."""
        out = list(u)
        for i, blocks in self.ET.items():
            for c, ET in blocks.items():
                out[i] = out[i] + ET @ lam[c]
        return out


def to_base(art: Articulated, rows: list[ConstraintRows], u: list[Array], stop: int = 0) -> Dual:
    """Carry all constraints from the tips to link `stop`: the world, or a link that everything hangs on."""
    motion, t, xp = art.motion, art.motion.model.topology, art.motion.xp
    dual = Dual({}, {}, [r.k for r in rows])
    for c, r in enumerate(rows):
        dual.L[c, c] = xp.zeros(r.k.shape[0], r.k.shape[0])
        for i, K in r.links.items():
            dual.KT.setdefault(i, {})[c] = K.T
    for i in reversed(t.links[stop:]):
        held = dual.KT.pop(i, {})
        met = {c: motion.S[i].T @ KT for c, KT in held.items()}
        for c, r in enumerate(rows):
            if i in r.joints:
                met[c] = met[c] + r.joints[i].T if c in met else r.joints[i].T
        dual.ET[i] = met
        pushed = art.D[i].solve(u[i] - art.U[i].T @ motion.c[i])
        for c, ET in met.items():
            dual.l[c] = dual.l[c] - ET.T @ pushed
            W = art.D[i].solve(ET)
            for d in met:
                if d >= c:
                    cross = W.T @ met[d]
                    old = dual.L.get((c, d))
                    new = xp.symmetric(cross) if c == d else cross
                    dual.L[c, d] = new if old is None else old + new
        p = t.parent[i]
        for c in dict.fromkeys([*held, *met]):
            KT = -(art.V[i] @ met[c])
            if c in held:
                dual.l[c] = dual.l[c] - held[c].T @ motion.c[i]
                KT = held[c] + KT
            KT = motion.X[i].T @ KT
            at = dual.KT.setdefault(p, {})
            at[c] = at[c] + KT if c in at else KT
    return dual
