"""Delassus matrix by the PV recursion that propagates at most six rows over long paths.

Where more than six rows meet on a link, the link's own six motions can be propagated in their place, as if the link
itself were constrained with K = 1. With Omega what `pv` then finds for those six rows, and K what the rows were on the
link,

    Lambda^-1_cd = L_cd + K_c Omega K_d^T   on the same link,      Lambda^-1_cx = K_c Omega_x   with any other row x .

PV-OSIMr: sathya2023_pv_osimr, algorithm 3. O(n + m^2), the lowest possible. Rows on single links; any number on one
link counts as a meeting. Departs from the paper: pairs on different links are expanded from the base outwards, Omega_x
first, rather than by moving every K to every meeting; and rows are replaced only where that saves operations (the
paper's IV-E finds `pv` better where the path is short). What saves is counted when traced: where
structure/row_compression.py says, at all meetings as published, nowhere (that is `pv`), or `efpa`, whose products are
fewest for many short branches at the base.
"""

from __future__ import annotations

from functools import partial

from linkwork.algorithms.common.articulated import articulated
from linkwork.algorithms.common.blocks import Blocks
from linkwork.algorithms.common.dual import Dual
from linkwork.algorithms.common.propagators import single_links
from linkwork.algorithms.delassus.efpa import efpa
from linkwork.backends.ops import Array, Ops
from linkwork.model import Motion
from linkwork.structure.row_compression import crowds, meetings

Held = dict[int, Array]
"""K^T by constraint, on some link."""


def pv_r(motion: Motion) -> Array:
    """J M^-1 J^T, m x m."""
    t, ends = motion.model.topology, single_links(motion, "pv_r")
    links, sizes = [link for link, _ in ends], [KT.shape[1] for _, KT in ends]
    crowded = frozenset(crowds(t, links, sizes))
    places = dict.fromkeys((meetings(t, links, sizes), crowded, frozenset[int]()))
    ways = [partial(replaced, motion, where) for where in places]
    return motion.xp.fewest([*ways, partial(efpa, motion)] if crowded else ways)


def replaced(motion: Motion, crowded: frozenset[int]) -> Array:
    """The same, with the motions of these links in place of the rows that meet there."""
    t, xp, m = motion.model.topology, motion.xp, len(motion.model.constraints)
    art, ends = articulated(motion), single_links(motion, "pv_r")
    dual = Dual(art, {}, {}, [xp.zeros(KT.shape[1]) for _, KT in ends])
    for c, (link, KT) in enumerate(ends):
        dual.KT.setdefault(link, {})[c] = KT

    # pass 2, tips to base: `pv`, with the link itself in place of many rows
    met: list[tuple[int, Held]] = []
    for i in reversed(t.links):
        held = dual.KT.pop(i, {})
        if i in crowded:
            met.append((len(dual.l), held))
            held = {len(dual.l): xp.eye(6)}
            dual.l.append(xp.zeros(6))
        for k in reversed(range(len(art.dofs[i]))):
            dual.pass_dof(i, k, held, xp.zeros(1), {})
        at_parent = dual.KT.setdefault(t.parent[i], {})
        at_parent.update({c: motion.X[i].T @ KT for c, KT in held.items()})

    # pass 3, base to tips: from the links back to the rows that met there
    inside = {c for _, members in met for c in members}
    known = {(c, d): L for (c, d), L in dual.L.items() if c not in inside and d not in inside}
    for link, members in reversed(met):
        known = expanded(motion, link, members, known, dual.L)
    return Blocks([KT.shape[1] for _, KT in ends], {(c, d): L for (c, d), L in known.items() if d < m}, xp).matrix()


def expanded(
    motion: Motion, link: int, members: Held, known: dict[tuple[int, int], Array], L: dict[tuple[int, int], Array]
) -> dict[tuple[int, int], Array]:
    """The known blocks, with those of the link's six rows replaced by those of the rows that met on it."""
    out = {pair: block for pair, block in known.items() if link not in pair}
    toward = {
        (d if c == link else c): (block if c == link else block.T) for (c, d), block in known.items() if link in (c, d)
    }
    for x, block in toward.items():
        for c, KT in members.items():
            if x != link:
                out[min(c, x), max(c, x)] = KT.T @ block if c < x else block.T @ KT
    moved = {c: toward[link] @ KT for c, KT in members.items()}
    entries = {c: _entries(KT, motion.xp) for c, KT in members.items()}
    for c, KT in members.items():
        for d in (d for d in members if d >= c):
            # Omega K^T has no zeros: the sparser of both K is the other factor
            product = (members[d].T @ moved[c]).T if entries[d] < entries[c] else KT.T @ moved[d]
            product = motion.xp.symmetric(product) if c == d else product
            out[c, d] = L[c, d] + product if (c, d) in L else product
    return out


def _entries(K: Array, xp: Ops) -> int:
    """How many entries are not zero."""
    rows, columns = K.shape
    return sum(not xp.is_zero(K[i : i + 1, j : j + 1]) for i in range(rows) for j in range(columns))
