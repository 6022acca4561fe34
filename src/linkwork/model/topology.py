"""The topology of the tree: parents, subtrees, and the place of each joint's coordinates."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from linkwork.lazy import cached_property
from linkwork.value_objects import Value


class Topology(Value):
    """Links are numbered with `parent[i] < i`; link 0 is the world and its own parent."""

    def __init__(self, parent: Sequence[int], nq: Sequence[int], nv: Sequence[int]) -> None:
        self.parent = tuple(parent)
        self.q_slices = _slices(nq)
        self.v_slices = _slices(nv)
        self.nq, self.nv = sum(nq), sum(nv)

    def __repr__(self) -> str:
        return f"Topology({len(self.links)} links, nq={self.nq}, nv={self.nv}, depth {max(self.depth)})"

    @property
    def links(self) -> range:
        """Every moving link, from the base to the tips."""
        return range(1, len(self.parent))

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        out: list[list[int]] = [[] for _ in self.parent]
        for i in self.links:
            out[self.parent[i]].append(i)
        return tuple(map(tuple, out))

    @cached_property
    def supports(self) -> tuple[tuple[int, ...], ...]:
        """For each link its ancestors, from the base to itself, without the world."""
        out: list[tuple[int, ...]] = [()]
        for i in self.links:
            out.append((*out[self.parent[i]], i))
        return tuple(out)

    @cached_property
    def depth(self) -> tuple[int, ...]:
        return tuple(len(s) for s in self.supports)

    @cached_property
    def subtrees(self) -> tuple[tuple[int, ...], ...]:
        """For each link its subtree: itself and all links that it carries."""
        out: list[list[int]] = [[i] for i in range(len(self.parent))]
        for i in reversed(self.links):
            out[self.parent[i]].extend(out[i])
        return tuple(tuple(sorted(s)) for s in out)

    def common_ancestor(self, *links: int) -> int:
        """The last common ancestor of `links`; 0 if it is the world."""
        shared = {0, *self.supports[links[0]]}.intersection(*((0, *self.supports[l]) for l in links[1:]))
        return max(shared)

    @cached_property
    def dof_parent(self) -> tuple[int, ...]:
        """For each degree of freedom the one before it on the way to the base, or -1 (Featherstone's lambda)."""
        out = []
        for i in self.links:
            p = self.parent[i]
            while p and self.v_slices[p].stop == self.v_slices[p].start:
                p = self.parent[p]
            previous = self.v_slices[p].stop - 1 if p else -1
            for k in range(self.v_slices[i].start, self.v_slices[i].stop):
                out.append(previous)
                previous = k
        return tuple(out)

    @cached_property
    def dof_link(self) -> tuple[int, ...]:
        """For each degree of freedom the link that its joint moves."""
        return tuple(i for i in self.links for _ in range(self.v_slices[i].start, self.v_slices[i].stop))


def _slices(sizes: Sequence[int]) -> tuple[slice, ...]:
    ends = [0]
    for n in sizes:
        ends.append(ends[-1] + n)
    return tuple(slice(a, b) for a, b in itertools.pairwise(ends))
