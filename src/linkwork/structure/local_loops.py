"""Local loops: constraints over the joints of a few bodies, grouped by shared bodies.

A gear, belt, differential or linkage ties the joints of a few bodies together. These bodies, and all between them and
the last body that carries them all (the output body), are one cluster; a loop that overlaps another joins its cluster.
Closures with the world and rows without positions are not local: they, loops through free joints, and loops that would
make a cluster of more than LONG bodies stay outside.
"""

from __future__ import annotations

from collections.abc import Collection

from linkwork.constraints.base import Constraint
from linkwork.constraints.coupling import Coupling
from linkwork.constraints.custom import Custom
from linkwork.constraints.link_rows import CentreOfMass, LinkRows
from linkwork.model.model import Model

LONG = 12
"""A loop over more bodies than this, or one that makes a cluster of more, is no local one."""


def local_loops(model: Model, among: Collection[int] | None = None) -> list[tuple[set[int], set[int]]]:
    """Bodies and constraints of each cluster: from couplings first, then from loops, short ones first.

    A loop that would make a cluster of more than LONG bodies stays outside: arms with rotors that hold each other.
    Constraints that are not `among` some, if these are given, stay outside, too.
    """
    spans = {
        n: bodies
        for n, c in enumerate(model.constraints)
        if (among is None or n in among) and (bodies := _spanned(model, c))
    }
    merged: list[tuple[set[int], set[int]]] = []
    coupling = {n: isinstance(model.constraints[n], Coupling | Custom) for n in spans}
    for n in sorted(spans, key=lambda n: (not coupling[n], len(spans[n]), n)):
        met = [m for m in merged if m[0] & spans[n]]
        bodies = spans[n].union(*(m[0] for m in met))
        if coupling[n] or len(bodies) <= LONG:
            merged = [*(m for m in merged if m not in met), (bodies, {n}.union(*(m[1] for m in met)))]
    return merged


def _spanned(model: Model, c: Constraint) -> set[int]:
    """The bodies of a local loop behind the last one that carries them all; none if it is not local."""
    t = model.topology
    if isinstance(c, LinkRows | CentreOfMass):
        return set()
    if isinstance(c, Coupling | Custom):
        ends = c.links(model) if isinstance(c, Coupling) else [model.joint(n) for n in c.joints]
        root = t.common_ancestor(*(t.parent[i] for i in ends))
    else:
        ends = [l for l in c.touches(model) if l]
        if 0 in c.touches(model):
            return set()
        root = t.common_ancestor(*ends)
    bodies = {i for e in ends for i in t.supports[e][t.depth[root] :]}
    floats = any(model.links[i].joint.kind == "free" for i in bodies)
    stiff = all(model.links[i].joint.nv == 0 for i in bodies)
    return set() if floats or stiff or len(bodies) > LONG else bodies


def never_singular(c: Constraint) -> bool:
    """Whether a cluster can resolve this constraint in every posture."""
    return isinstance(c, Coupling) and c.has_fixed_ratios
