"""Delassus algorithms as the papers write them: frames are moved by products with 6 x 6 matrices.

Ours move by a rotation and a shift, turn about one axis where the joint does, and `pv_r` replaces rows where it pays.
Counting both forms shows which of the papers' relations are of the algorithm and which are of its implementation.

    pv      sathya2023_pv_osimr, algorithm 1        efpa    algorithm 2
    pv_r    algorithm 3: at every meeting           ltl     II-A: M = L^T L, Y = J L^-1, Y Y^T

Written for robots whose joints have one freedom but for a free base, as in both papers. An expression graph of CasADi
does not share equal expressions: where a paper's formula has P^T X for each constraint, its count does, too
(`efpa_unshared`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from linkwork.algorithms.common.blocks import Blocks
from linkwork.algorithms.common.propagators import single_links
from linkwork.backends.ops import Array
from linkwork.functions.function import Function
from linkwork.lazy import cached_property
from linkwork.model import Model, Motion
from linkwork_bench.papers.experiment import Tally
from linkwork_bench.papers.mechanisms import of_position

Pair = tuple[int, int]
Key = tuple[str, int]
"""What is propagated: ("row", constraint) or ("link", link)."""


@dataclass(frozen=True)
class Matrices:
    """Everything as 6 x 6 matrices: X, articulated inertias, P^T X, and the base's inverse inertia."""

    motion: Motion

    @cached_property
    def X(self) -> list[Array]:
        return [X @ self.motion.xp.eye(6) for X in self.motion.X]

    @cached_property
    def IA(self) -> list[Array]:
        """IA_p = I_p + sum X^T (IA - U U^T / d) X."""
        t, xp = self.motion.model.topology, self.motion.xp
        IA = [I.articulated().matrix() for I in self.motion.I]
        for i in reversed(t.links):
            if t.parent[i]:
                U, d = self._U(IA, i)
                IA[t.parent[i]] = IA[t.parent[i]] + xp.symmetric(
                    self.X[i].T @ (xp.symmetric(IA[i] - (U / d) @ U.T) @ self.X[i])
                )
        return IA

    def _U(self, IA: list[Array], i: int) -> tuple[Array, Array]:
        U = IA[i] @ self.motion.S[i]
        return U, (self.motion.S[i].T @ U + self.motion.armature(i))[0, 0]

    @cached_property
    def U(self) -> dict[int, tuple[Array, Array]]:
        """U = IA S and d = S^T U of each link with one freedom."""
        return {i: self._U(self.IA, i) for i in self.motion.model.topology.links if self.single(i)}

    def single(self, i: int) -> bool:
        return bool(self.motion.S[i].shape[1] == 1)

    def back(self, i: int, K: Array) -> Array:
        """Rows at link i as its parent sees them: (K - (K S / d) U^T) X."""
        U, d = self.U[i]
        return (K - (K @ self.motion.S[i] / d) @ U.T) @ self.X[i]

    @cached_property
    def PX(self) -> dict[int, Array]:
        """P^T X of each link with one freedom, with P^T = 1 - S U^T / d."""
        return {i: (self.motion.xp.eye(6) - (self.motion.S[i] / d) @ U.T) @ self.X[i] for i, (U, d) in self.U.items()}

    def inertia(self, i: int) -> Array:
        """S S^T / d: the inverse inertia of joint i; of a free base that of all it carries."""
        if self.single(i):
            return (self.motion.S[i] / self.U[i][1]) @ self.motion.S[i].T
        return self.motion.xp.symmetric(self.motion.xp.factor_spd(self.IA[i]).solve(self.motion.xp.eye(6)))

    @cached_property
    def ends(self) -> list[tuple[int, Array]]:
        """Link and K of each constraint."""
        return [(link, KT.T) for link, KT in single_links(self.motion, "the papers' form")]

    def blocks(self, blocks: Mapping[Pair, Array]) -> Array:
        xp = self.motion.xp
        upper = {(c, d): xp.symmetric(B) if c == d else B for (c, d), B in blocks.items() if c <= d}
        return Blocks([K.shape[0] for _, K in self.ends], upper, xp).matrix()


def pv(motion: Motion) -> Array:
    """L_p = L_i + (K S)(K S)^T / d, K_p = (K - (K S / d) U^T) X; at a free base L + K IA^-1 K^T."""
    m, t, xp = Matrices(motion), motion.model.topology, motion.xp
    held: dict[int, dict[int, Array]] = {}
    for c, (link, K) in enumerate(m.ends):
        held.setdefault(link, {})[c] = K
    L: dict[Pair, Array] = {}
    for i in reversed(t.links):
        rows = held.get(i, {})
        if not m.single(i):
            moved = {c: m.inertia(i) @ K.T for c, K in rows.items()}
            new = {(c, d): K @ moved[d] for c, K in rows.items() for d in rows if c <= d}
        else:
            FS = {c: K @ motion.S[i] for c, K in rows.items()}
            new = {(c, d): (FS[c] / m.U[i][1]) @ FS[d].T for c in rows for d in rows if c <= d}
            held.setdefault(t.parent[i], {}).update({c: m.back(i, K) for c, K in rows.items()})
        for pair, block in new.items():
            block = xp.symmetric(block) if pair[0] == pair[1] else block
            L[pair] = L[pair] + block if pair in L else block
    return m.blocks(L)


def efpa(motion: Motion) -> Array:
    """K to the base; Omega_i K_i^T = S S^T K_i^T / d + (P^T X) Omega_p K_p^T and back.

    Pairs where they meet.
    """
    m, t = Matrices(motion), motion.model.topology
    at: list[dict[int, Array]] = []
    seen: list[dict[int, Array]] = []
    for link, K in m.ends:
        path, rows = t.supports[link], {link: K}
        for i in reversed(path):
            if t.parent[i]:
                rows[t.parent[i]] = m.back(i, rows[i])
        A: dict[int, Array] = {}
        for i in path:
            A[i] = m.inertia(i) @ rows[i].T
            if t.parent[i]:
                A[i] = A[i] + m.PX[i] @ A[t.parent[i]]
        at.append(rows)
        seen.append(A)
    meets = {(c, d): t.common_ancestor(m.ends[c][0], m.ends[d][0]) for c in range(len(at)) for d in range(c, len(at))}
    return m.blocks({(c, d): at[c][meet] @ seen[d][meet] for (c, d), meet in meets.items() if meet})


def pv_r(motion: Motion) -> Array:
    """PV with the motions of a link in place of all rows that meet on it; Omega of these links.

    Rows expanded again.
    """
    m, t, xp = Matrices(motion), motion.model.topology, motion.xp
    arriving: dict[int, dict[Key, tuple[Array, Array]]] = {}
    for c, (link, K) in enumerate(m.ends):
        arriving.setdefault(link, {})["row", c] = K, xp.zeros(K.shape[0], K.shape[0])
    met: dict[int, dict[Key, tuple[Array, Array]]] = {}
    last: dict[Key, tuple[Array, Array]] = {}
    for i in reversed(t.links):
        rows = arriving.get(i, {})
        if not rows:
            continue
        if len(rows) > 1 or not m.single(i) or any(K.shape[0] > 6 for K, _ in rows.values()):
            met[i] = rows
            rows = {("link", i): (xp.eye(6), xp.zeros(6, 6))}
        if not m.single(i):
            last["link", i] = xp.eye(6), m.inertia(i)
            continue
        ((key, (K, L)),) = rows.items()
        FS, d = K @ motion.S[i], m.U[i][1]
        L = xp.symmetric(L + (FS / d) @ FS.T)
        if t.parent[i]:
            arriving.setdefault(t.parent[i], {})[key] = m.back(i, K), L
        else:
            last[key] = K, L
    # base to tips: Omega of the links where rows met, and each constraint's own block
    inside = {key: i for i, members in met.items() for key in members}
    Omega = {key: L for key, (_, L) in last.items()}
    for i in sorted(met):
        for key, (K, L) in met[i].items():
            Omega[key] = xp.symmetric(L + K @ Omega["link", i] @ K.T)
    blocks = {(c, c): Omega["row", c] for c in range(len(m.ends))}
    # rows at every link where they meet others
    at: list[dict[int, Array]] = []
    for c in range(len(m.ends)):
        here: Key = ("row", c)
        seen: dict[int, Array] = {}
        while here in inside:
            i = inside[here]
            K = met[i][here][0]
            seen[i] = K if here[0] == "row" else seen[here[1]] @ K
            here = ("link", i)
        at.append(seen)
    for c, first in enumerate(at):
        moved: dict[int, Array] = {}
        for d in range(c + 1, len(at)):
            common = [i for i in first if i in at[d]]
            if common:
                meet = max(common, key=lambda i: t.depth[i])
                moved.setdefault(meet, first[meet] @ Omega["link", meet])
                blocks[c, d] = moved[meet] @ at[d][meet].T
    return m.blocks(blocks)


def ltl(motion: Motion) -> Array:
    """M = L^T L by composite inertias, Y = J L^-1, Y Y^T; sparse as the tree is, with square roots."""
    m, t, xp = Matrices(motion), motion.model.topology, motion.xp
    first = [s.start for s in t.v_slices]
    Ic = [I.articulated().matrix() for I in motion.I]
    M: dict[Pair, Array] = {}
    for i in reversed(t.links):
        F = Ic[i] @ motion.S[i]
        _store(M, first[i], first[i], motion.S[i].T @ F + motion.armature(i))
        if t.parent[i]:
            Ic[t.parent[i]] = Ic[t.parent[i]] + xp.symmetric(m.X[i].T @ (Ic[i] @ m.X[i]))
        for child, j in zip(reversed(t.supports[i]), reversed(t.supports[i][:-1]), strict=False):
            F = m.X[child].T @ F
            _store(M, first[i], first[j], F.T @ motion.S[j])
    J: list[dict[int, Array]] = []
    for link, K in m.ends:
        columns: dict[int, Array] = {}
        for i in reversed(t.supports[link]):
            G = K @ motion.S[i]
            columns.update({first[i] + k: G[:, k : k + 1] for k in range(G.shape[1])})
            K = K @ m.X[i] if t.parent[i] else K
        J.append(columns)

    parent = t.dof_parent
    L: dict[Pair, Array] = {}
    for k in reversed(range(motion.model.nv)):
        above = _above(parent, k)
        L[k, k] = xp.sqrt(M[k, k])
        for i in above:
            L[k, i] = M[k, i] / L[k, k]
        for i in above:
            for j in [i, *_above(parent, i)]:
                M[i, j] = M[i, j] - L[k, i] * L[k, j]
        for columns in J:
            if k in columns:
                columns[k] = columns[k] / L[k, k]
                for i in above:
                    columns[i] = columns[i] - columns[k] * L[k, i]
    blocks = {}
    for c, Y in enumerate(J):
        for d in range(c, len(J)):
            shared = [k for k in Y if k in J[d]]
            if shared:
                blocks[c, d] = xp.hstack([Y[k] for k in shared]) @ xp.hstack([J[d][k] for k in shared]).T
    return m.blocks(blocks)


def _store(M: dict[Pair, Array], row: int, column: int, block: Array) -> None:
    M.update({(row + a, column + b): block[a, b] for a in range(block.shape[0]) for b in range(block.shape[1])})


def _above(parent: Any, k: int) -> list[int]:
    """The degrees of freedom that carry k, nearest first."""
    out = []
    while (k := parent[k]) >= 0:
        out.append(k)
    return out


def efpa_unshared(model: Model) -> Tally:
    """EFPA's count with P^T X computed anew for each constraint that a link supports."""
    t, ends = model.topology, [next(l for l in c.touches(model) if l) for c in model.constraints]
    carried = {i: sum(i in t.supports[e] for e in ends) for i in t.links}

    def propagators(only: int) -> Callable[[Motion], list[Array]]:
        """X and U of all links, and P^T X of those that support so many constraints."""

        def compute(motion: Motion) -> list[Array]:
            m = Matrices(motion)
            known = [x for i, (U, d) in m.U.items() for x in (m.X[i], U, U / d)]
            return known + [m.PX[i] for i in m.PX if carried[i] == only]

        return compute

    none = of_position("none", propagators(0))(model).operations
    again = sum(
        (k - 1) * (of_position("some", propagators(k))(model).operations - none)
        for k in sorted(set(carried.values()))
        if k > 1
    )
    return Tally(of(efpa)(model).operations + again)


def of(compute: Callable[[Motion], Array]) -> Callable[[Model], Function]:
    """A function of q, as the published algorithms are."""

    def way(model: Model) -> Function:
        def body(xp: Any, x: Mapping[str, Any]) -> dict[str, Any]:
            return {"delassus": compute(Motion(model, x["q"], xp.zeros(model.nv), xp))}

        return Function(f"published_{compute.__name__}", model, {"q": model.nq}, body, method=compute.__name__)

    return way
