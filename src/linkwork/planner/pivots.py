"""Which constraints are penalised and which are carried: primal or dual elimination, constraint by constraint.

With a proximal term, the multipliers of a constraint can leave at any time. If they leave first (primal), its links
are coupled by 6 x 6 blocks until one of them leaves, as in `lcaba`. If its links leave first (dual), its rows travel
with them, as in `prox_bbo`, and go at the first link that alone holds them: the root of a loop. Whether blocks or rows
are less work depends on how many rows there are, how far they travel and what else is coupled on the way, so a search
compares the work of both, playing the elimination through. A constraint on one link is best penalised there and then.

sathya2025_lcaba_proxbbo VII-D sees its two algorithms as such orders and leaves mixing them for the future.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.clusters import Cluster, links_alone
from linkwork.constraints.rows import constraint_rows, holders
from linkwork.model import Model, Motion
from linkwork.model.memo import once
from linkwork.model.topology import Topology
from linkwork.planner.elimination import Elimination, eliminate, ordered

SOLVES = 3
"""Solves that an iteration usually takes, the first included."""


@dataclass(frozen=True)
class Mixture:
    """Which constraints are penalised, the link at which each of the others goes, and nodes as they leave.

    Each node comes with its neighbours then. `work` is about the number of operations; `without` is what it would be if
    all were penalised.
    """

    penalised: frozenset[int]
    ends: dict[int, int]
    order: tuple[tuple[Cluster, tuple[int, ...]], ...]
    work: float = 0.0
    without: float = 0.0

    @property
    def mixes(self) -> bool:
        """Whether some are penalised and some are carried."""
        return bool(self.penalised) and bool(self.ends)

    @property
    def couples(self) -> bool:
        """Whether penalties couple links."""
        return any(near for _, near in self.order)


def chosen(model: Model) -> Mixture:
    """What is penalised and what is carried for a model; that does not depend on its state.

    Couplings of joints are penalised: the blocks by which they couple links are nearly empty.
    """
    return once(_CHOSEN, model, _chosen)


def _chosen(model: Model) -> Mixture:
    motion = Motion(model, model.neutral()[:, None], np.zeros((model.nv, 1)), NUMPY)
    rows = constraint_rows(motion)
    held, sizes = [holders(model, r) for r in rows], [r.k.shape[0] for r in rows]
    loops = [c for c, r in enumerate(rows) if len(r.links) > 1]
    return mixture(model.topology, held, sizes, loops, links_alone(model).clusters)


def mixture(topology: Topology, held: Sequence[Collection[int]], sizes: Sequence[int], loops: Sequence[int],
            nodes: Sequence[Cluster]) -> Mixture:
    """The cheapest found by changing one of `loops` after the other, from all of them penalised and from all carried.

    `held` lists the links that each constraint holds, `sizes` its rows. Those that are no loops are penalised. On the
    way links leave by minimum degree, in the end in the best order that is found.
    """
    def work(penalised: frozenset[int]) -> float:
        return play(topology, held, sizes, nodes, penalised, eliminate).work

    everything, found = frozenset(range(len(held))), list[frozenset[int]]()
    for best in (everything, everything.difference(loops)):
        for c in loops:
            best = min(best, best ^ {c}, key=work)
        found.append(best)
    return replace(play(topology, held, sizes, nodes, min(found, key=work)), without=work(everything))


def play(topology: Topology, held: Sequence[Collection[int]], sizes: Sequence[int], nodes: Sequence[Cluster],
         penalised: frozenset[int], leaving: Callable[..., Elimination] = ordered) -> Mixture:
    """Let all nodes leave and all rows that are not penalised go, and add up the work: about the operations of SOLVES.

    Of a node with w numbers in the accelerations that feel it and r rows that pass, (w + r)^2 for each freedom.
    """
    order = leaving(topology, [set(held[c]) - {0} for c in sorted(penalised)], nodes=nodes)
    at = {c: set(links) for c, links in enumerate(held) if c not in penalised}
    mates: dict[int, set[int]] = {c: set() for c in at}
    ends, by_first = dict[int, int](), {n.bodies[0]: n for n in nodes}
    work = 0.0
    # K^T K of a point; that of a closure in all six directions is mostly known, because its K is a transform
    work += sum(len(set(held[c])) ** 2 * sizes[c] * (12 if sizes[c] == 6 else 36) for c in penalised)
    work += sum(len(set(held[c])) * sizes[c] * 24 * SOLVES for c in penalised)

    def go(i: int) -> None:
        """Rows that link i alone holds go; others that they are coupled with are held by it from now on."""
        nonlocal work
        while here := [c for c, links in at.items() if links == {i}]:
            others = set[int]().union(*(mates[c] for c in here)).difference(here)
            rows, rest = sum(sizes[c] for c in here), sum(sizes[c] for c in others)
            work += rows**3 / 3 + 2 * rows**2 * (6 + rest) + rows * (6 + rest) ** 2
            work += SOLVES * (2 * rows**2 + 4 * rows * (6 + rest))
            for c in here:
                ends[c] = i
                del at[c]
            for c in others:
                at[c].add(i)
                mates[c] = (mates[c] | others).difference(here, {c})

    for first in order.order:
        node, near = by_first[first], order.neighbours[first]
        for i in reversed(node.bodies):
            go(i)
        passing = [c for c, links in at.items() if links.intersection(node.bodies)]
        width, rows = 6 * (1 + len(near)), sum(sizes[c] for c in passing)
        work += len(node.independent) * (1.2 * (width + rows) ** 2 + SOLVES * 4 * (width + rows))
        work += len(node.bodies) * 24 * (5 + 6 * len(near) + rows + 2 * SOLVES)
        for c in passing:
            at[c] = at[c].difference(node.bodies) | {node.output, *near}
            mates[c] |= set(passing) - {c}
    go(0)
    return Mixture(penalised, ends, tuple((by_first[i], order.neighbours[i]) for i in order.order), work)


_CHOSEN: dict[int, Mixture] = {}
"""By the id of models that are in use."""
