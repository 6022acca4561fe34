"""The interface of a node: a joint with its body (link_node.py), or a cluster (cluster_node.py).

The articulated body recursion eliminates the freedoms of one node after the other. A node's output body is the one that
it hangs on; its neighbours are links that penalised constraints couple with its bodies (hessian.py). Its freedoms
act on them by U_n as on the output body, and eliminating the node couples them with that:
sathya2025_lcaba_proxbbo, eqs. 30-35.
"""

from __future__ import annotations

from typing import Protocol

from linkwork.algorithms.common.hessian import Inertia
from linkwork.backends.ops import Array
from linkwork.structure.clusters import Cluster


class Node(Protocol):
    """An eliminated node. Columns of forces and accelerations go through together."""

    @property
    def cluster(self) -> Cluster:
        """Its bodies, output body and constraints."""
        ...

    @property
    def pivots(self) -> list[Array]:
        """1 / d of each freedom."""
        ...

    @property
    def felt(self) -> list[dict[int, Array]]:
        """U_n (6 x 1) of each freedom by neighbour."""
        ...

    def remains(self) -> tuple[Inertia, dict[int, Array]]:
        """What the output body gets: inertia, and blocks (6 x 6) that couple it with neighbours."""
        ...

    def drive(self, tau: Array, p: list[Array]) -> tuple[list[Array], dict[int, Array]]:
        """From joint forces and link forces p: the force u left on each freedom, and additions to p by link."""
        ...

    def accelerate(self, u: list[Array], a: list[Array]) -> tuple[Array, dict[int, Array]]:
        """From accelerations of output body and neighbours: vdot of its joints, accelerations of its bodies."""
        ...

    def propagate(self, F: dict[int, Array], Q: dict[int, Array]) -> tuple[list[Array], dict[int, Array], Array]:
        """Propagate forces F on bodies and Q on joints: pushes on freedoms, forces passed on, and power.

        Forces are passed on to output body and neighbours; the power is that of accelerations which velocities alone
        cause, with the output body at rest.
        """
        ...

    def respond(self, e: list[Array], A: Array) -> dict[int, Array]:
        """Accelerations of the bodies that such pushes and the output body's accelerations A cause."""
        ...


def accumulate(sums: dict[int, Array], n: int, x: Array) -> None:
    """Add x to the sum of key n."""
    sums[n] = sums[n] + x if n in sums else x
