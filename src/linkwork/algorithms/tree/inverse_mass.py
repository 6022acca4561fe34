"""The inverse of the mass matrix, from its branch-sparse factorisation.

    M = L^T D L,    W = L^-1,    M^-1 = W D^-1 W^T

W has the pattern of L, so an entry of M^-1 is a sum over the degrees of freedom that support both: for two limbs of a
robot these are the six of its base. Featherstone 2005 (see ltl.py). O(n d^2) for W, O(n^2 b) for the product, b the
mean number of common supports.
"""

from __future__ import annotations

from linkwork.algorithms.common.least_inertia import holding
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL
from linkwork.backends.ops import Array
from linkwork.model import Motion


def inverse_mass_matrix(motion: Motion) -> Array:
    """M^-1, nv x nv."""
    return LTL(crba(motion), motion.model.topology.dof_parent, motion.xp, held=holding(motion)).inverse()
