"""Delassus matrix of contacts with local loops resolved: cluster-based extended force propagators.

    Lambda^-1 = J G (G^T M G)^-1 G^T J^T  over the constraints that are in no cluster

chignoli2023_clusters, section VIII: forces K^T of each constraint propagated to the base through the clusters that
support it, the accelerations that they cause propagated back, and a pair of constraints coupled in the last cluster
that supports both. O(N l^3 + m d + m^2). Rows on single links.

Beyond the paper: accelerations are propagated back only through clusters that support MANY constraints, which keeps the
order. Elsewhere two constraints are coupled by the sum of e d^-1 e^T over the freedoms that both push by e, as in
`c_pv`: propagating back a constraint of six rows costs as much as coupling it with five others. `c_efpa_published`
propagates them back everywhere, as the paper does.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from linkwork.algorithms.common.activation import over_links
from linkwork.algorithms.common.blocks import Blocks
from linkwork.algorithms.common.certificates import determined
from linkwork.algorithms.common.recursion import Recursion, outer_rows, recursion
from linkwork.backends.ops import Array
from linkwork.errors import UnsupportedError
from linkwork.model import Motion
from linkwork.structure.clusters import clusters

MANY = 6
"""From so many constraints on, coupling them by the accelerations of their common body takes fewer operations."""


def c_efpa(motion: Motion) -> Array:
    """J G (G^T M G)^-1 G^T J^T, m x m over the rows that are in no cluster, in the model's order."""
    return _by_propagators(motion, MANY)


def c_efpa_published(motion: Motion) -> Array:
    """The same with accelerations propagated back to every constraint, however few meet."""
    return _by_propagators(motion, 1)


def _by_propagators(motion: Motion, many: int) -> Array:
    # passes 1 and 2, tips to base: articulated inertias of clusters, force propagators
    r = recursion(motion, clusters(motion.model))
    ends = single_bodies(r, "c_efpa")
    propagated = [_propagated(r, link, KT) for link, KT in ends]
    crowded = {n for n in range(len(r.nodes)) if sum(n in F.forces for F in propagated) >= many}

    # pass 3, base to tips: accelerations of bodies that support many constraints under the unit forces of each
    moved = [_accelerations(r, F, crowded) for F in propagated]

    # pass 4: pairs of constraints, and each with itself
    blocks = {}
    for c, F in enumerate(propagated):
        for d, E in enumerate(propagated[c:], c):
            if parts := _coupling(r, F, E, crowded, moved[d]):
                product = sum(parts[1:], parts[0])
                blocks[c, d] = motion.xp.symmetric(product) if c == d else product
    return Blocks([KT.shape[1] for _, KT in ends], blocks, motion.xp).matrix() + determined(motion, r.tree)[0, 0]


def single_bodies(r: Recursion, method: str) -> list[tuple[int, Array]]:
    """Link and K^T of each constraint that is in no cluster.

    A typed error if one holds more than one link.
    """
    rows = [over_links(r.motion, x).links for x in outer_rows(r.motion, r.tree)]
    for n, links in zip(r.tree.outer, rows, strict=True):
        if len(links) != 1:
            raise UnsupportedError(
                f"'{method}' takes rows on single links besides local loops, and "
                f"'{r.motion.model.constraints[n].name}' holds several. 'projected_efpa' takes any"
            )
    return [(link, K.T) for links in rows for link, K in links.items()]


@dataclass(frozen=True)
class Propagated:
    """A constraint's forces by node: the body they act on, K^T there, and the push on each freedom."""

    forces: dict[int, tuple[int, Array]]
    pushes: dict[int, list[Array]]


def _propagated(r: Recursion, link: int, KT: Array) -> Propagated:
    """Propagate a constraint's forces from its link to the base, node by node."""
    owner = {i: n for n, node in enumerate(r.nodes) for i in node.cluster.bodies}
    out = Propagated({}, {})
    while link:
        n = owner[link]
        out.forces[n] = (link, KT)
        out.pushes[n], passed, _ = r.nodes[n].propagate({link: KT}, {})
        link = r.nodes[n].cluster.output
        KT = passed[link]
    return out


def _accelerations(r: Recursion, F: Propagated, crowded: Set[int]) -> dict[int, Array]:
    """Accelerations of the bodies of crowded nodes, by link; these come first on paths from the base."""
    columns = next(iter(F.forces.values()))[1].shape[1]
    out = {0: r.motion.xp.zeros(6, columns)}
    for n in reversed(F.forces):
        if n in crowded:
            out |= r.nodes[n].respond(F.pushes[n], out[r.nodes[n].cluster.output])
    return out


def _coupling(r: Recursion, F: Propagated, E: Propagated, crowded: Set[int], moved: dict[int, Array]) -> list[Array]:
    """K Omega K^T at the last crowded node that supports both, and e d^-1 e^T of shared freedoms beyond."""
    shared = F.forces.keys() & E.forces.keys()
    parts = [
        (d_inv * e).T @ f
        for n in sorted(shared - crowded)
        for d_inv, e, f in zip(r.nodes[n].pivots, F.pushes[n], E.pushes[n], strict=True)
    ]
    if shared & crowded:
        link, KT = F.forces[min(shared & crowded)]  # nodes are numbered from the tips
        parts.append(KT.T @ moved[link])
    return parts
