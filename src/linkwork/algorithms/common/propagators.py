"""Rows on single links, propagated to the base and back: what the propagation methods share."""

from __future__ import annotations

from dataclasses import dataclass

from linkwork.algorithms.common.activation import over_links
from linkwork.algorithms.common.articulated import Articulated
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.errors import UnsupportedError
from linkwork.model import Motion


@dataclass(frozen=True)
class Propagated:
    """A constraint's K^T (6 x m_c) at each link that supports it, and s^T K^T at their freedoms."""

    link: int
    KT: dict[int, Array]
    eT: dict[int, list[Array]]


def propagated(art: Articulated, link: int, KT: Array) -> Propagated:
    """Propagate a constraint from its link to the base: K_p^T = P_i K_i^T."""
    motion = art.motion
    at_links: dict[int, Array] = {}
    at_dofs: dict[int, list[Array]] = {}
    for i in reversed(motion.model.topology.supports[link]):
        at_links[i], at_dofs[i] = KT, []
        for dof in reversed(art.dofs[i]):
            at_dofs[i].insert(0, dof.s.T @ KT)
            KT = KT - dof.V @ at_dofs[i][0]
        KT = motion.X[i].T @ KT
    return Propagated(link, at_links, at_dofs)


def single_links(motion: Motion, method: str) -> list[tuple[int, Array]]:
    """Link and K^T of each constraint; a typed error if a constraint holds more than one link.

    Rows over a joint that hangs on the world are rows over its link.
    """
    out = []
    for c, r in zip(motion.model.constraints, constraint_rows(motion), strict=True):
        links = over_links(motion, r).links
        if len(links) != 1:
            raise UnsupportedError(
                f"'{method}' takes rows on single links, and '{c.name}' holds several. "
                "Methods that take any rows: 'pv', 'ltl', 'kkt_cholesky', 'dense'"
            )
        ((link, K),) = links.items()
        out.append((link, K.T))
    return out
