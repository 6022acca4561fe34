"""Which constraints are embedded, penalised or carried: when their multipliers leave, constraint by constraint.

With a proximal term, the multipliers of a constraint can leave at any time. If they leave first (primal), its links
are coupled by 6 x 6 blocks until one of them leaves, as in `lcaba`. If its links leave first (dual), its rows travel
with them, as in `prox_bbo`, and go at the first link that alone holds them: the root of a loop. And those of a local
loop can leave together with its joints, in a cluster, as in `c_aba`. What is least work depends on how many rows there
are, how far they travel and what else is coupled on the way, so a search compares, playing the elimination through. A
constraint on one link is best penalised there and then.

sathya2025_lcaba_proxbbo VII-D sees its two algorithms as such orders and leaves mixing them for the future.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.rows import constraint_rows, holders
from linkwork.model import Model, Motion
from linkwork.model.memo import remembered
from linkwork.model.topology import Topology
from linkwork.structure.clusters import Cluster, ClusterTree, clusters, links_alone
from linkwork.structure.elimination import Elimination, eliminate, ordered
from linkwork.structure.local_loops import local_loops, never_singular

SOLVES = 3
"""Solves that an iteration usually takes, the first included."""

PENALISED, CARRIED, EMBEDDED = "penalised", "carried", "embedded"


@dataclass(frozen=True)
class Mixture:
    """Which constraints are penalised, the link at which each of the carried ones goes, and nodes as they leave.

    Each node comes with its neighbours then; the constraints of nodes are embedded. `work` is about the number of
    operations; `without` is what it would be if all were penalised.
    """

    penalised: frozenset[int]
    ends: dict[int, int]
    order: tuple[tuple[Cluster, tuple[int, ...]], ...]
    work: float = 0.0
    without: float = 0.0

    @property
    def embedded(self) -> frozenset[int]:
        """The constraints that clusters resolve."""
        return frozenset(c for node, _ in self.order for c in node.constraints)

    def among(self, outer: Sequence[int]) -> Mixture:
        """The same with constraints by their places in `outer`, which has those that are not embedded."""
        place = {c: n for n, c in enumerate(outer)}
        return replace(
            self,
            penalised=frozenset(place[c] for c in self.penalised),
            ends={place[c]: i for c, i in self.ends.items()},
        )

    @property
    def mixes(self) -> bool:
        """Whether not all are treated alike."""
        return sum(map(bool, (self.penalised, self.ends, self.embedded))) > 1

    @property
    def couples(self) -> bool:
        """Whether penalties couple links."""
        return any(near for _, near in self.order)


@remembered
def chosen(model: Model, embed: str = "nothing") -> Mixture:
    """What is embedded, penalised and carried for a model; that does not depend on its state.

    `embed` says what clusters may resolve: "nothing", "couplings" that are never singular, or all local "loops".
    """
    return _chosen(model, embed)


def tree_of(model: Model, embedded: Collection[int]) -> ClusterTree:
    """The cluster tree that embeds these constraints; every link by itself if there are none."""
    return clusters(model, embedded) if embedded else links_alone(model)


def _chosen(model: Model, embed: str) -> Mixture:
    motion = Motion(model, model.neutral()[:, None], np.zeros((model.nv, 1)), NUMPY)
    rows = constraint_rows(motion)
    held, sizes = [holders(model, r) for r in rows], [r.k.shape[0] for r in rows]
    # couplings of joints are never carried: the blocks by which they couple links are nearly empty
    ways = [[PENALISED, CARRIED] if len(r.links) > 1 else [PENALISED] for r in rows]
    for n in (n for _, group in local_loops(model) for n in group if embed != "nothing"):
        if embed == "loops" or never_singular(model.constraints[n]):
            ways[n].append(EMBEDDED)
    return mixture(model.topology, held, sizes, ways, lambda embedded: tree_of(model, embedded).clusters)


def mixture(
    topology: Topology,
    held: Sequence[Collection[int]],
    sizes: Sequence[int],
    ways: Sequence[Sequence[str]],
    nodes: Callable[[frozenset[int]], Sequence[Cluster]],
) -> Mixture:
    """The cheapest found by changing one constraint after the other, from all penalised, all carried and all embedded.

    `held` lists the links that each constraint holds, `sizes` its rows, `ways` what can be done with it, and `nodes`
    gives those of the tree that embeds some constraints. On the way nodes leave by minimum degree, in the end in the
    best order that is found.
    """

    def played(way: Sequence[str], leaving: Callable[..., Elimination] = eliminate) -> Mixture:
        embedded, penalised = (frozenset(c for c, w in enumerate(way) if w == x) for x in (EMBEDDED, PENALISED))
        return play(topology, held, sizes, nodes(embedded), penalised, leaving)

    @cache
    def work(*way: str) -> float:
        made = played(way)
        complete = len(made.embedded) == way.count(EMBEDDED)
        return made.work if complete else float("inf")  # a loop that makes a cluster too large stays outside

    found = []
    for first in (PENALISED, CARRIED, EMBEDDED):
        best = [first if first in able else able[0] for able in ways]
        for c, able in enumerate(ways):
            best = min(([*best[:c], w, *best[c + 1 :]] for w in able), key=lambda way: work(*way))
        found.append(best)
    best = min(found, key=lambda way: work(*way))
    return replace(played(best, ordered), without=work(*(PENALISED for _ in ways)))


def play(
    topology: Topology,
    held: Sequence[Collection[int]],
    sizes: Sequence[int],
    nodes: Sequence[Cluster],
    penalised: frozenset[int],
    leaving: Callable[..., Elimination] = ordered,
) -> Mixture:
    """Let all nodes leave and all rows that are not penalised go, and add up the work: about the operations of SOLVES.

    Of a node with w numbers in the accelerations that feel it and r rows that pass, (w + r)^2 for each freedom.
    """
    order = leaving(topology, [set(held[c]) - {0} for c in sorted(penalised)], nodes=nodes)
    embedded = {c for node in nodes for c in node.constraints}
    at = {c: set(links) for c, links in enumerate(held) if c not in penalised | embedded}
    coupled = [set(held[c]) - {0} for c in penalised]
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
        work += _within(node, len(near), [len(links.intersection(node.bodies)) for links in coupled])
        for links in coupled:
            if links.intersection(node.bodies):
                links.difference_update(node.bodies)
                links.update({node.output, *near} - {0})
        for c in passing:
            at[c] = at[c].difference(node.bodies) | {node.output, *near}
            mates[c] |= set(passing) - {c}
    go(0)
    return Mixture(penalised, ends, tuple((by_first[i], order.neighbours[i]) for i in order.order), work)


def _within(node: Cluster, near: int, held: Sequence[int]) -> float:
    """About the operations that linkages in a cluster take: inverses of their rows, inertias of their joints projected.

    And more if penalties couple its bodies, with each other (of which they hold so many) or with neighbours.
    """
    dofs, free = len(node.dofs), len(node.independent)
    work = sum(
        2.0 * len(rows) * len(dependent) ** 2 + dofs**2 * (6 + free) for rows, dependent in node.blocks if len(rows) > 1
    )
    pairs = near + sum(n * (n - 1) for n in held)
    return work + (6 + free) * (48 * len(node.bodies) + 72 * pairs) if node.constraints and pairs else work
