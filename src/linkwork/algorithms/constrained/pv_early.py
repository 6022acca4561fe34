"""Constrained forward dynamics by `pv` with early elimination of the multipliers: O(n + m).

Whenever a degree of freedom is eliminated, L gains rank one, e e^T / d. A Householder reflection Q turns e into one entry,
and the multiplier of that row is eliminated on the spot: lam1 = (l1 - K1 a) / s with s = |e|^2 / d. The row becomes
inertia, IA + K1^T K1 / s, and leaves; at most six rows ever travel, and none reach far beyond their own limb.

sathya2023_pv_lqr section VIII. Departures: joints with several degrees of freedom pass one at a time; sign(0) = +1, so
no pivoting (remark 7); more than six rows on a link are compressed by QR (remark 9: least squares); and where a joint
cannot move a row, s = 0, the row goes on as a penalty of weight `mu`, which the iteration makes exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwork.algorithms.constrained.constrained_aba import split
from linkwork.algorithms.constrained.weights import largest
from linkwork.algorithms.iteration import Iteration
from linkwork.algorithms.tree.articulated import Articulated, Dof, meet
from linkwork.backends.ops import Array
from linkwork.constraints.rows import constraint_rows
from linkwork.model import Motion
from linkwork.spatial import ArticulatedInertia
