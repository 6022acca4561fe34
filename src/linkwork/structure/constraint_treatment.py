"""Which constraints are embedded, penalised or propagated: when their multipliers are eliminated.

With a proximal term, the multipliers of a constraint can be eliminated at any time. If that is first (primal), its
links are coupled by 6 x 6 blocks until one of them is eliminated, as in `lcaba`. If its links are eliminated first
(dual), its rows are propagated to their ancestors, as in `prox_bbo`, and solved at the first link that alone holds
them: the root of a loop. And those of a local loop can be eliminated together with its joints, in a cluster, as in
`c_aba`. Which is least work depends on the number of rows, the length of their path and what else is coupled along
it, so a search simulates the elimination for each choice. A constraint on one link is best penalised there; unless
an embedded linkage carries the link, because through its inverse a penalty loses digits near singular postures (on
Digit 7e-2 off in the worst of the benchmark's configurations): such mixtures are not considered.

sathya2025_lcaba_proxbbo VII-D describes its two algorithms as such orders and leaves mixing them to future work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.rows import constraint_rows, holders
from linkwork.model import Model, Motion
from linkwork.model.memo import cached
from linkwork.model.topology import Topology
from linkwork.structure.clusters import Cluster, ClusterTree, clusters, links_alone
from linkwork.structure.elimination import Elimination, eliminate, loop_roots, ordered
from linkwork.structure.local_loops import local_loops, never_singular
from linkwork.structure.work import CHECK, VECTOR, eliminating, embedding, moving, penalising, solving

PENALISED, PROPAGATED, EMBEDDED = "penalised", "propagated", "embedded"
NOTHING, COUPLINGS, LOOPS = "nothing", "couplings", "loops"
ROOTS, BASE, JOINTS = "roots", "base", "joints"


@dataclass(frozen=True)
class Ways:
    """What a method does with constraints.

    `embeds`: the local loops that clusters resolve: "nothing", "couplings" that are never singular, or all "loops".
    `penalises`, `propagates`: what it does with the others. Propagated rows are eliminated at the "roots" of their
    loops, at the "base", or by the "joints" that move them. `chooses`: each constraint is treated in the way with the
    least work.
    """

    embeds: str = NOTHING
    penalises: bool = False
    propagates: str = ""
    chooses: bool = False

    def switched(self) -> Ways:
        """The same where constraints are switched at run time: only what must be is embedded."""
        return replace(self, embeds=NOTHING) if self.chooses and self.embeds == COUPLINGS else self


@dataclass(frozen=True)
class Mixture:
    """The treatment of a model's constraints, and nodes in their order of elimination.

    `penalised` constraints, and the link at which each propagated one ends (`ends`). Each node comes with its
    neighbours when it is eliminated; the constraints of nodes are embedded. `strained` are penalised constraints that
    hold links in or behind an embedded linkage. `work` is about the number of operations, or None where there is no
    estimate.
    """

    penalised: frozenset[int]
    ends: dict[int, int]
    order: tuple[tuple[Cluster, tuple[int, ...]], ...]
    work: float | None = None
    strained: frozenset[int] = frozenset()

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

    def same(self, other: Mixture) -> bool:
        """Whether both treat all constraints in the same way."""
        return (self.penalised, self.embedded, self.ends) == (other.penalised, other.embedded, other.ends)

    @property
    def couples(self) -> bool:
        """Whether penalties couple links."""
        return any(near for _, near in self.order)


def chosen(model: Model, embed: str = NOTHING) -> Mixture:
    """The mixture of all ways with the least work; `embed` says what clusters may resolve (see `Ways`)."""
    return treated(model, Ways(embed, penalises=True, propagates=ROOTS, chooses=True))


@cached
def treated(model: Model, ways: Ways) -> Mixture:
    """The constraints of a model that are embedded, penalised and propagated; for any state."""
    return _treated(model, ways)


def tree_of(model: Model, embedded: Collection[int]) -> ClusterTree:
    """The cluster tree that embeds these constraints; every link by itself if there are none."""
    return clusters(model, embedded) if embedded else links_alone(model)


@dataclass(frozen=True)
class _Shape:
    """By constraint: links that it holds, its rows and the links in them; and all linkages and cams."""

    held: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    links: tuple[int, ...]
    linkages: frozenset[int]


@cached
def _shape(model: Model) -> _Shape:
    rows = constraint_rows(Motion(model, model.neutral()[:, None], np.zeros((model.nv, 1)), NUMPY))
    return _Shape(
        tuple(holders(model, r) for r in rows),
        tuple(r.k.shape[0] for r in rows),
        tuple(len(r.links) for r in rows),
        frozenset(n for n, c in enumerate(model.constraints) if not never_singular(c)),
    )


def _treated(model: Model, ways: Ways) -> Mixture:
    shape = _shape(model)
    local = {n for _, group in local_loops(model) for n in group} if ways.embeds != NOTHING else set()
    embedded = local if ways.embeds == LOOPS else local - shape.linkages
    if ways.chooses:
        options = [_options(ways, links) for links in shape.links]
        for n in embedded:
            options[n].append(EMBEDDED)
        return mixture(
            model.topology, shape.held, shape.sizes, options, lambda e: tree_of(model, e).clusters, shape.linkages
        )
    tree = tree_of(model, embedded)
    penalised = frozenset(tree.outer) if ways.penalises else frozenset[int]()
    made = play(model.topology, shape.held, shape.sizes, tree.clusters, penalised, linkages=shape.linkages)
    if ways.penalises:
        return made
    if ways.propagates != ROOTS:
        return replace(made, ends=dict.fromkeys(tree.outer, 0), work=None)
    held, sizes = [shape.held[c] for c in tree.outer], [shape.sizes[c] for c in tree.outer]
    ends = dict(zip(tree.outer, loop_roots(model, held, sizes, tree.clusters), strict=True))
    # most entries of rows over joints are zero where they are penalised, and none where they are propagated
    return replace(made, ends=ends, work=made.work if all(shape.links[c] for c in ends) else None)


def _options(ways: Ways, links: int) -> list[str]:
    """The treatments of a constraint over so many links besides embedding.

    Couplings of joints are never propagated: the blocks by which they couple links are nearly empty. Rows over one link
    are, where linkages may be embedded that penalties must not pass through.
    """
    return [PENALISED, PROPAGATED] if links > 1 or (links and ways.embeds == LOOPS) else [PENALISED]


def mixture(
    topology: Topology,
    held: Sequence[Collection[int]],
    sizes: Sequence[int],
    options: Sequence[Sequence[str]],
    nodes: Callable[[frozenset[int]], Sequence[Cluster]],
    linkages: frozenset[int] = frozenset(),
) -> Mixture:
    """The least work found by changing one constraint after the other, from uniform treatments.

    `held` lists the links that each constraint holds, `sizes` its rows, `options` what can be done with it; `nodes`
    gives those of the tree that embeds some constraints. `linkages` are constraints through which, once embedded, no
    penalties pass. The search eliminates nodes by minimum degree, the result in the best order found.
    """

    def played(way: Sequence[str], order: Callable[..., Elimination] = eliminate) -> Mixture:
        embedded, penalised = (frozenset(c for c, w in enumerate(way) if w == x) for x in (EMBEDDED, PENALISED))
        return play(topology, held, sizes, nodes(embedded), penalised, order, linkages)

    @cache
    def cost(*way: str) -> tuple[bool, int, float]:
        """Loops that make a cluster too large count first, then strained penalties, then the work."""
        made = played(way)
        return len(made.embedded) < way.count(EMBEDDED), len(made.strained), made.work or 0.0

    found = []
    for first in ((PENALISED,), (PROPAGATED,), (EMBEDDED, PENALISED), (EMBEDDED, PROPAGATED)):
        best = [next((w for w in first if w in able), able[0]) for able in options]
        for c, able in enumerate(options):
            best = min(([*best[:c], w, *best[c + 1 :]] for w in able), key=lambda way: cost(*way))
        found.append(best)
    return played(min(found, key=lambda way: cost(*way)), ordered)


def play(
    topology: Topology,
    held: Sequence[Collection[int]],
    sizes: Sequence[int],
    nodes: Sequence[Cluster],
    penalised: frozenset[int],
    order: Callable[..., Elimination] = ordered,
    linkages: frozenset[int] = frozenset(),
) -> Mixture:
    """Eliminate all nodes and all rows that are not penalised, and add up the work (work.py)."""
    leaving = order(topology, [set(held[c]) - {0} for c in sorted(penalised)], nodes=nodes)
    embedded = {c for node in nodes for c in node.constraints}
    at = {c: set(links) if len(set(links)) > 1 else {*links, 0} for c, links in enumerate(held)}
    at = {c: links for c, links in at.items() if c not in penalised | embedded}
    coupled = [set(held[c]) - {0} for c in penalised]
    mates: dict[int, set[int]] = {c: set() for c in at}
    ends, by_first = dict[int, int](), {n.bodies[0]: n for n in nodes}
    work = sum(penalising(len(set(held[c])), sizes[c]) for c in penalised)
    if embedded & linkages:
        work += CHECK * len(topology.links)

    def solve_at(i: int) -> None:
        """Eliminate rows that link i alone holds; it holds the others that they are coupled with from now on."""
        nonlocal work
        while here := [c for c, links in at.items() if links == {i}]:
            others = set[int]().union(*(mates[c] for c in here)).difference(here)
            work += solving(sum(sizes[c] for c in here), sum(sizes[c] for c in others))
            for c in here:
                ends[c] = i
                del at[c]
            for c in others:
                at[c].add(i)
                mates[c] = (mates[c] | others).difference(here, {c})

    for first in leaving.order:
        node, near = by_first[first], leaving.neighbours[first]
        for i in reversed(node.bodies):
            solve_at(i)
        passing = [c for c, links in at.items() if links.intersection(node.bodies)]
        rows = sum(sizes[c] for c in passing)
        work += eliminating(len(node.independent), VECTOR * (1 + len(near)) + rows)
        work += moving(len(node.bodies), len(near), rows)
        work += embedding(node, len(near), [len(links.intersection(node.bodies)) for links in coupled])
        for links in coupled:
            if links.intersection(node.bodies):
                links.difference_update(node.bodies)
                links.update({node.output, *near} - {0})
        for c in passing:
            at[c] = at[c].difference(node.bodies) | {node.output, *near}
            mates[c] |= set(passing) - {c}
    solve_at(0)
    inside = {i for node in nodes if linkages.intersection(node.constraints) for i in node.bodies}
    strained = frozenset(c for c in penalised if inside.intersection(_carriers(topology, held[c])))
    steps = tuple((by_first[i], leaving.neighbours[i]) for i in leaving.order)
    return Mixture(penalised, ends, steps, work, strained)


def _carriers(topology: Topology, links: Collection[int]) -> set[int]:
    """These links and all that carry them."""
    return set[int]().union(*(topology.supports[i] for i in links))
