"""The links that support constrained ones: all that multipliers act through.

A change of multipliers changes the forces left on their joints, and no others. So a sweep over changes
(sathya2025_lcaba_proxbbo, algorithms 2 and 5) needs only these links; accelerations of the links on their `border`
are enough to find those of all others, once, in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from linkwork.algorithms.common.nodes import Node
from linkwork.backends.ops import Array
from linkwork.model import Model, Motion
from linkwork.structure.clusters import Cluster

N = TypeVar("N", bound=Node)

Known = Mapping[int, tuple[Array, Array]]
"""Accelerations of the joint, and of the link if it is on the border (else None), by link."""


@dataclass(frozen=True)
class Supports:
    """The links that support constrained ones, these included; those on the `border` also carry others."""

    model: Model
    links: tuple[int, ...]
    border: tuple[int, ...]

    def parted(self, nodes: Sequence[N]) -> tuple[list[N], list[N]]:
        """Those of some nodes that are supports, and the others."""
        own = [node for node in nodes if node.cluster.bodies[0] in self.links]
        return own, [node for node in nodes if node.cluster.bodies[0] not in self.links]

    def pack(self, motion: Motion, vdot: Array, a: Sequence[Array]) -> Array:
        """Accelerations of the supports' joints, then of the links on the border, as one column."""
        at = self.model.topology.v_slices
        parts = [vdot[at[i], :] for i in self.links] + [a[i] for i in self.border]
        return motion.xp.vstack([motion.xp.zeros(0), *parts])

    def unpack(self, found: Array) -> tuple[Known, Array]:
        """What was packed, by link, and the rest of the column."""
        at, a, vdot = self.model.topology.v_slices, dict[int, Array](), dict[int, Array]()
        for i in self.links:
            size = at[i].stop - at[i].start
            vdot[i], found = found[0:size, :], found[size:, :]
        for i in self.border:
            a[i], found = found[0:6, :], found[6:, :]
        return {i: (vdot[i], a.get(i)) for i in self.links}, found


def supporting(model: Model, held: Iterable[int], nodes: Sequence[Cluster] | None = None) -> Supports:
    """The supports of links that constraints hold; with `nodes`, of a cluster either all bodies or none."""
    t, links = model.topology, set[int]()
    together = {i: c.bodies for c in nodes or () for i in c.bodies}
    for l in held:
        for i in t.supports[l]:
            links.update(together.get(i, (i,)))
    border = sorted({t.parent[i] for i in t.links if i not in links and t.parent[i] in links})
    return Supports(model, tuple(sorted(links)), tuple(border))
