"""Clusters: bodies grouped by their local loops, so that a mechanism with loops becomes a tree again.

The bodies of a local loop (local_loops.py), and of all that overlap with it, are a cluster; therefore every cluster
hangs on one body, its output body. (chignoli2023_clusters, section IV, lets a cluster hang on several bodies of the
cluster before it; here the two are one.) The joints of a cluster have as many independent velocities as its
loops allow (independent.py); algorithms/common/embedding.py has the equations.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from weakref import ref

import numpy as np

from linkwork.checks import checked, optional, several, whole
from linkwork.errors import InputError, ModelError
from linkwork.lazy import cached_property
from linkwork.model.link import Link
from linkwork.model.memo import cached
from linkwork.model.model import MODEL, Model
from linkwork.model.motion import Motion
from linkwork.structure.independent import at_rest, choose, closed_positions
from linkwork.structure.local_loops import local_loops
from linkwork.structure.rotor_lumping import rotors, spinning_only


@dataclass(frozen=True)
class Cluster:
    """Some bodies, the body that carries them, and the constraints (by index) over their joints.

    `dofs` are the degrees of freedom of its joints, in the model's numbering; `independent` and `dependent` are places
    in `dofs`. The dependent ones fall apart into `blocks`: places in `dependent`, and the rows that determine them.
    `size` is that of the largest entry of its rows.
    """

    bodies: tuple[int, ...]
    output: int
    constraints: tuple[int, ...] = ()
    dofs: tuple[int, ...] = ()
    independent: tuple[int, ...] = ()
    dependent: tuple[int, ...] = ()
    blocks: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()
    size: float = 0.0


@dataclass(frozen=True)
class ClusterTree:
    """A model as a tree of clusters, each after its parent; `outer` constraints are in none of them.

    `rotors` are bodies on whose joint angle the dynamics do not depend; `links` are the model's, with all of a rotor
    but its spin moved to the link that carries it (rotor_lumping.py).
    """

    model: Model
    clusters: tuple[Cluster, ...]
    outer: tuple[int, ...]
    rotors: tuple[int, ...]
    links: tuple[Link, ...]

    @cached_property
    def velocities(self) -> np.ndarray:
        """The places of the independent velocities ydot in v."""
        return np.array(sorted(c.dofs[k] for c in self.clusters for k in c.independent), dtype=int)

    @cached_property
    def independent(self) -> tuple[str, ...]:
        """The joints, some of whose velocities are independent, in the model's order."""
        t = self.model.topology
        return tuple(self.model.links[i].joint_name for i in dict.fromkeys(t.dof_link[k] for k in self.velocities))

    @cached_property
    def positions(self) -> np.ndarray:
        """The places of the independent positions y in q; a joint is independent as a whole or not at all."""
        t, chosen = self.model.topology, set(self.velocities)
        out: list[int] = []
        for name in self.independent:
            i = self.model.joint(name)
            if not chosen.issuperset(range(t.v_slices[i].start, t.v_slices[i].stop)):
                raise ModelError(
                    f"joint '{name}' is independent in part only, so its position cannot be given; name "
                    "other joints with model.with_independent(...)"
                )
            out += range(t.q_slices[i].start, t.q_slices[i].stop)
        return np.array(out, dtype=int)

    def describe(self) -> str:
        """One line for each cluster of several bodies."""
        name = [l.name for l in self.model.links]
        lines = [
            f"{', '.join(name[i] for i in c.bodies)} on {name[c.output]}: {len(c.independent)} of {len(c.dofs)}"
            for c in self.clusters
            if c.constraints
        ]
        return "\n".join(lines)


@cached
def _groups(model: Model) -> Groups:
    return Groups(model)


@checked(model=MODEL, embed=optional(several(whole(), "numbers of constraints")))
def clusters(model: Model, embed: Collection[int] | None = None) -> ClusterTree:
    """The cluster tree of a model: which bodies are in which cluster, and which joints are independent.

    Joints named by `model.with_independent(...)` (or by a URDF+ file) are independent; a cluster without any such name
    takes joints with motors, and those that determine the others best. ModelError if the named ones are too many, too
    few, or leave others undetermined.

    `embed` lists the constraints that clusters may resolve, if not all local loops shall be; then named joints
    are independent where that is possible.

    Examples:
        >>> found = lw.clusters(geared_chain(2))
        >>> len(found.clusters), found.independent
        (2, ('link1_joint', 'link2_joint'))
    """
    if embed is not None and max(embed, default=-1) >= len(model.constraints):
        raise InputError(f"embed names constraint {max(embed)}; '{model.name}' has {len(model.constraints)}, from 0 on")
    # rows that stand for those of another model have its clusters
    source = (model.constraints[0].source if model.constraints else None) or model
    return replace(_groups(source).tree(embed), model=model)


def links_alone(model: Model) -> ClusterTree:
    """The tree without clusters: every link by itself, and all constraints outside."""
    t = model.topology
    links = tuple(_alone(model, i) for i in t.links)
    return ClusterTree(model, links, tuple(range(len(model.constraints))), (), model.links)


def _alone(model: Model, i: int) -> Cluster:
    at = model.topology.v_slices[i]
    return Cluster(
        (i,), model.topology.parent[i], (), tuple(range(at.start, at.stop)), tuple(range(at.stop - at.start))
    )


class Groups:
    """The clusters of a model, each solved once, however many of its local loops a tree embeds."""

    def __init__(self, model: Model) -> None:
        self.model, self.source = replace(model), ref(model)  # a copy: the model's memo must not hold the model
        self.solved: dict[tuple[tuple[int, ...], bool], Cluster] = {}
        self.trees: dict[frozenset[int] | None, ClusterTree] = {}

    @cached_property
    def samples(self) -> list[Motion]:
        """Some configurations in which all local loops are closed."""
        which = sorted(n for _, owners in local_loops(self.model) for n in owners)
        return at_rest(self.model, closed_positions(self.source() or self.model, which))

    def tree(self, embed: Collection[int] | None) -> ClusterTree:
        """The tree whose clusters embed these constraints, or all local loops."""
        key = None if embed is None else frozenset(embed)
        if key not in self.trees:
            self.trees[key] = self._built(key)
        return self.trees[key]

    def _built(self, embed: frozenset[int] | None) -> ClusterTree:
        model, t, merged = self.model, self.model.topology, local_loops(self.model, embed)
        inside = {n for _, owners in merged for n in owners}
        found = [self._cluster(tuple(sorted(b)), tuple(sorted(o)), embed is None) for b, o in merged]
        found += [_alone(model, i) for i in set(t.links) - {i for c in found for i in c.bodies}]
        outer = tuple(n for n in range(len(model.constraints)) if n not in inside)
        order, free = tuple(sorted(found, key=lambda c: c.bodies[0])), rotors(model, outer)
        return ClusterTree(replace(model, constraints=()), order, outer, free, spinning_only(model, free))

    def _cluster(self, bodies: tuple[int, ...], constraints: tuple[int, ...], names: bool) -> Cluster:
        """Names decide in the tree of all local loops; in others they may be too few."""
        key, t = (constraints, names), self.model.topology
        if key not in self.solved:
            dofs = tuple(k for i in bodies for k in range(t.v_slices[i].start, t.v_slices[i].stop))
            found = choose(self.model, bodies, constraints, self.samples, names)
            self.solved[key] = Cluster(bodies, t.parent[bodies[0]], constraints, dofs, *found)
        return self.solved[key]
