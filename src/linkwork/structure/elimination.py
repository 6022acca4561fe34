"""The order in which a recursion eliminates links, and the links that this couples.

Symbolic, computed once per mechanism. Links are eliminated from the tips of the spanning tree. The other links of its
constraints are a link's neighbours. When it is eliminated, they become neighbours of each other and of
its parent. The number of neighbours decides the cost, so of all tips the one with the fewest comes first (minimum
degree; ties: the highest), unless a short search finds a better order. sathya2025_lcaba_proxbbo section IV-A. What is
eliminated at once may also be a cluster of links, by the name of its first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints import jacobian
from linkwork.model import Model, Motion
from linkwork.model.memo import cached
from linkwork.model.topology import Topology
from linkwork.structure.clusters import Cluster


@dataclass(frozen=True)
class Elimination:
    """Links in the order in which they are eliminated, and the neighbours of each at that moment."""

    order: tuple[int, ...]
    neighbours: dict[int, tuple[int, ...]]

    @property
    def most_neighbours(self) -> int:
        """m_c: the highest number of neighbours of any link."""
        return max((len(n) for n in self.neighbours.values()), default=0)

    @property
    def fill(self) -> int:
        """6 x 6 blocks that are updated by couplings, in all eliminations together."""
        return sum(len(n) * (len(n) + 1) // 2 for n in self.neighbours.values())


def eliminate(
    topology: Topology,
    coupled: Iterable[Collection[int]],
    choose: Callable[[Sequence[int], dict[int, set[int]]], int] | None = None,
    nodes: Sequence[Cluster] | None = None,
) -> Elimination:
    """Simulate the elimination; `coupled` lists the moving links of each constraint.

    `nodes`, clusters or single links, are eliminated at once; without them, each link by itself.
    """
    bodies = None if nodes is None else tuple(c.bodies for c in nodes)
    return _Game(topology.parent, bodies).play(coupled, choose or _fewest_neighbours)


class _Game:
    """The tree of nodes: those of several links are eliminated at once, under the name of their first."""

    def __init__(self, parent: Sequence[int], nodes: Sequence[tuple[int, ...]] | None) -> None:
        self.bodies = {i: (i,) for i in range(1, len(parent))} if nodes is None else {b[0]: b for b in nodes}
        self.carrier = {i: parent[i] for i in self.bodies}
        self.owner = {l: i for i, links in self.bodies.items() for l in links}
        self.children: dict[int, set[int]] = {i: set() for i in self.bodies}
        for i in self.bodies:
            if self.carrier[i]:
                self.children[self.owner[self.carrier[i]]].add(i)
        self.tips = [i for i in self.bodies if not self.children[i]]

    def neighbours(self, near: dict[int, set[int]], i: int) -> set[int]:
        """The links that a node is coupled with."""
        return set[int]().union(*(near.get(l, set()) for l in self.bodies[i])).difference(self.bodies[i])

    def play(
        self, coupled: Iterable[Collection[int]], choose: Callable[[Sequence[int], dict[int, set[int]]], int]
    ) -> Elimination:
        """Eliminate all, each time the one that is chosen among the tips."""
        near, tips, order = couplings(coupled), list(self.tips), list[int]()
        left = {i: len(children) for i, children in self.children.items()}
        neighbours: dict[int, tuple[int, ...]] = {}
        while tips:
            i = choose(tips, near)
            tips.remove(i)
            order.append(i)
            neighbours[i] = eliminated(near, self.bodies[i], self.carrier[i])
            if p := self.owner.get(self.carrier[i]):
                left[p] -= 1
                if not left[p]:
                    tips.append(p)
        return Elimination(tuple(order), neighbours)


def couplings(coupled: Iterable[Collection[int]]) -> dict[int, set[int]]:
    """The neighbours of each link before any is eliminated."""
    near: dict[int, set[int]] = {}
    for links in coupled:
        for a, b in combinations(set(links), 2):
            near.setdefault(a, set()).add(b)
            near.setdefault(b, set()).add(a)
    return near


def eliminated(near: dict[int, set[int]], links: Collection[int], parent: int) -> tuple[int, ...]:
    """Eliminate some links: this couples their neighbours, and their parent unless that is the world."""
    left = set[int]().union(*(near.pop(i, set()) for i in links)).difference(links)
    for n in left:
        near[n].difference_update(links)
    group = left | {parent} if parent and left else left
    for a, b in combinations(group, 2):
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    return tuple(sorted(left))


def _fewest_neighbours(tips: Sequence[int], near: dict[int, set[int]]) -> int:
    return min(tips, key=lambda i: (len(near.get(i, ())), -i))


def ordered(
    topology: Topology,
    coupled: Iterable[Collection[int]],
    nodes: Sequence[Cluster] | None = None,
    steps: int | None = None,
) -> Elimination:
    """The order with the least fill that a search of `steps` finds; it starts from minimum degree.

    For the robots and mechanisms of the benchmarks it finds none better than minimum degree; of random trees with two
    to five loops one in six has a better order, with up to a third less fill.
    """
    bodies = None if nodes is None else tuple(c.bodies for c in nodes)
    return _ordered(topology.parent, tuple(tuple(sorted(set(links))) for links in coupled), bodies, steps or SEARCHED)[
        0
    ]


def best_order(topology: Topology, coupled: Iterable[Collection[int]], limit: int = 200_000) -> Elimination | None:
    """The order with the least fill of all; None if that takes a search of more than `limit` steps."""
    found, proven = _ordered(topology.parent, tuple(tuple(sorted(set(links))) for links in coupled), None, limit)
    return found if proven else None


SEARCHED = 2000
"""Steps that the search for an order may take; some ten milliseconds."""


@lru_cache(maxsize=256)
def _ordered(
    parent: tuple[int, ...], coupled: tuple[tuple[int, ...], ...], nodes: tuple[tuple[int, ...], ...] | None, limit: int
) -> tuple[Elimination, bool]:
    """Branch and bound over orders; also whether it came to its end.

    Which links are coupled after some are eliminated does not depend on their order, so a set of eliminated links is
    searched again only if it was reached with less fill. A tip without neighbours couples nothing: eliminating it is
    never worse.
    """
    game = _Game(parent, nodes)
    best = game.play(coupled, _fewest_neighbours)
    reached: dict[frozenset[int], int] = {}
    steps = 0

    def search(near: dict[int, set[int]], tips: frozenset[int], done: tuple[int, ...], cost: int) -> None:
        nonlocal best, steps
        gone = frozenset(done)
        if steps >= limit or cost >= best.fill or reached.get(gone, cost + 1) <= cost:
            return
        reached[gone] = cost
        steps += 1
        if not tips:
            best = game.play(coupled, lambda tips, near: min(tips, key=done.index))
            return
        degree = {i: len(game.neighbours(near, i)) for i in tips}
        lonely = [i for i in tips if not degree[i]]
        for i in [max(lonely)] if lonely else sorted(tips, key=lambda i: (degree[i], -i)):
            after = {k: set(v) for k, v in near.items()}
            n = len(eliminated(after, game.bodies[i], game.carrier[i]))
            p = game.owner.get(game.carrier[i])
            free = {p} if p and game.children[p] <= gone | {i} else set[int]()
            search(after, (tips - {i}) | free, (*done, i), cost + n * (n + 1) // 2)

    search(couplings(coupled), frozenset(game.tips), (), 0)
    return best, steps < limit


def coupled_links(model: Model) -> list[tuple[int, ...]]:
    """The moving links of each constraint."""
    return [tuple(dict.fromkeys(l for l in c.touches(model) if l)) for c in model.constraints]


def picture(model: Model, order: Elimination) -> str:
    """The elimination as text: links in their order, each with its parent and neighbours."""
    name = [l.name for l in model.links]
    width = max(len(n) for n in name)
    lines = []
    for step, i in enumerate(order.order, 1):
        near = order.neighbours[i]
        arrow = f" ~ {', '.join(name[n] for n in near)}" if near else ""
        lines.append(f"{step:4d}  {name[i]:{width}s} -> {name[model.topology.parent[i]]}{arrow}")
    return "\n".join(lines)


def loop_roots(
    model: Model, coupled: Sequence[Collection[int]], sizes: Sequence[int], nodes: Sequence[Cluster] | None = None
) -> tuple[int, ...]:
    """The link at which the multipliers of each constraint can be eliminated; `sizes` are its rows.

    That is the last link that carries all links of it, where rows are propagated from link to link, or with `nodes`
    from each to the link that carries its node. For constraints with the world it is the world; or a free base where
    several limbs hold them, and have the joints to move them while the base is at rest.
    """
    t = model.topology
    carrier = dict(enumerate(t.parent)) if nodes is None else {i: c.output for c in nodes for i in c.bodies}
    ends = [_last_common(carrier, links) if len(set(links)) > 1 else 0 for links in coupled]
    outside = [c for c, end in enumerate(ends) if end == 0]
    limbs = {t.supports[i][1:2] for c in outside for i in coupled[c]}
    if len(limbs) > 1 and not needs_base(model, [coupled[c] for c in outside], [sizes[c] for c in outside], nodes):
        for c in outside:
            ends[c] = 1
    return tuple(ends)


def _last_common(carrier: Mapping[int, int], links: Collection[int]) -> int:
    """The last link through which rows on all these links are propagated."""
    shared: set[int] | None = None
    for link in links:
        through = {0}
        while link:
            through.add(link)
            link = carrier[link]
        shared = through if shared is None else shared & through
    return max(shared or {0})


def needs_base(
    model: Model, coupled: Sequence[Collection[int]], sizes: Sequence[int], nodes: Sequence[Cluster] | None = None
) -> str | None:
    """Why constraints cannot be solved with a free base at rest; None if they can in regular postures.

    From the tips to the base each degree of freedom can move one row of those that it carries, and a link at most six
    of those that no joint behind it moves; rows without a joint of their limb can only be moved by the base.
    That counts joints; whether they move the rows (a knee does not move a point on its axis) is tested in a random
    posture.
    """
    t, links = model.topology, model.links
    if len(t.children[0]) != 1 or links[1].joint.kind != "free":
        return "it needs a free base that carries all other links"
    waiting = [0] * len(links)
    for held, rows in zip(coupled, sizes, strict=True):
        waiting[max(held, key=lambda i: t.depth[i])] += rows
        if len({t.supports[i][:2] for i in held}) > 1:
            return "a constraint joins several limbs of the base"
    steps = (
        [((i,), links[i].joint.nv) for i in t.links]
        if nodes is None
        else [(c.bodies, len(c.independent)) for c in nodes]
    )
    for bodies, freedoms in reversed(steps[1:]):
        for i in bodies:
            if waiting[i] > 6:
                return f"{waiting[i]} rows depend on the six motions of link '{links[i].name}'"
        waiting[t.parent[bodies[0]]] += max(0, sum(waiting[i] for i in bodies) - freedoms)
    if waiting[1]:
        return f"{waiting[1]} rows can only be moved by the base"
    return None if _joints_suffice(model) else "some rows do not move with the joints that carry them"


@cached
def _joints_suffice(model: Model) -> bool:
    """Whether joints alone move as many of the rows with the world as joints and base, in some posture."""
    q, ends = model.random_q(np.random.default_rng(0)), np.cumsum([0, *(c.rows for c in model.constraints)])
    plain = replace(model, constraints=tuple(c.original for c in model.constraints))
    J = jacobian(Motion(plain, q[:, None], np.zeros((model.nv, 1)), NUMPY))
    out = [k for n, c in enumerate(model.constraints) if 0 in c.touches(model) for k in range(ends[n], ends[n + 1])]
    ranks = [np.linalg.matrix_rank(J[out][:, first:], tol=1e-9) if out else 0 for first in (0, 6)]
    return bool(ranks[0] == ranks[1])
