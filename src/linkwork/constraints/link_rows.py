"""Rows given directly over links: numbers on spatial accelerations, and the centre of mass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linkwork.backends.ops import Array
from linkwork.checks import ARRAY, NAME, NUMBERS, array, checked_class, mapping
from linkwork.constraints.base import Constraint, Rows
from linkwork.constraints.closure import spatial_excess
from linkwork.constraints.stabilisation import STABILISATION, Stabilisation
from linkwork.errors import InputError, UnsupportedError
from linkwork.spatial import angular
from linkwork.value_objects import read_only

if TYPE_CHECKING:
    from linkwork.model import Model
    from linkwork.model.motion import Motion


MAX_DEPENDENT, MAX_BLOCKS = 24, 200
"""Limits of dependent rows, and of rows times links: each is code in a kernel; thousands compile for minutes."""


@checked_class(
    K=mapping(ARRAY, "a dictionary from names of links to matrices"), k=NUMBERS, name=NAME, stabilisation=STABILISATION
)
@dataclass(frozen=True, eq=False, repr=False)
class LinkRows(Constraint):
    """sum_l K_l A_l = k for numbers K_l (m x 6) and spatial link accelerations A_l.

    As in the papers' benchmarks. Such rows have no position error, so they cannot be stabilised.

    Examples:
        >>> rows = lw.LinkRows({"link3": np.eye(6)[:2]}, k=np.zeros(2))
        >>> lw.constraint_jacobian(chain(3).with_constraints(rows))(np.zeros(3)).J.shape
        (2, 3)
    """

    K: Mapping[str, Sequence[Sequence[float]]]
    k: Sequence[float] = ()
    name: str = "rows"
    stabilisation: Stabilisation | None = None

    def __post_init__(self) -> None:
        K = {l: np.asarray(block, dtype=float) for l, block in self.K.items()}
        sizes = {block.shape for block in K.values()}
        if len(sizes) != 1 or any(len(s) != 2 or s[1] != 6 for s in sizes):
            raise InputError("LinkRows needs one m x 6 matrix for each link, all with the same m")
        if self.stabilisation is not None:
            raise InputError("LinkRows have no position error, so they cannot be stabilised")
        m = next(iter(sizes))[0]
        limit = min(6 * len(K) + MAX_DEPENDENT, max(6, MAX_BLOCKS // len(K)))
        if m > limit:
            raise InputError(
                f"{m} rows over {len(K)} links, of which at most {6 * len(K)} are independent; LinkRows "
                f"takes {limit} over so many links: give independent ones (numpy.linalg.qr of all K side "
                "by side), and rows of fewer links as LinkRows of their own"
            )
        k = np.zeros(m) if len(self.k) == 0 else np.asarray(self.k, dtype=float)
        if k.shape != (m,):
            raise InputError(f"k has shape {k.shape}; these rows need ({m},)")
        object.__setattr__(self, "K", read_only(K))
        object.__setattr__(self, "k", read_only(k))

    @property
    def rows(self) -> int:
        return len(self.k)

    @property
    def coefficients(self) -> np.ndarray:
        """K of one link above that of the next, in the order given."""
        return np.vstack([np.asarray(K) for K in self.K.values()])

    def check(self, model: Model) -> None:
        for l in self.K:
            model.link(l)

    def touches(self, model: Model) -> tuple[int, ...]:
        return tuple(model.link(l) for l in self.K)

    def renamed(self, new: Callable[[str], str]) -> LinkRows:
        return replace(self, K={new(l): K for l, K in self.K.items()}, name=new(self.name))

    def evaluate(self, motion: Motion) -> Rows:
        xp = motion.xp
        given = motion.given.link_rows.get(self.name, {})
        links = {motion.model.link(l): given[l] if l in given else xp.constant(K) for l, K in self.K.items()}
        drift = -xp.constant(self.k)
        for l, K in links.items():
            drift = drift - K @ spatial_excess(motion, l)
        return Rows(links, {}, drift, relative=False)

    def position_error(self, motion: Motion) -> Array:
        return motion.xp.zeros(self.rows)


@checked_class(target=array(3), name=NAME, stabilisation=STABILISATION)
@dataclass(frozen=True, eq=False, repr=False)
class CentreOfMass(Constraint):
    """The centre of mass stays at `target` (world axes): three rows over every link.

    Examples:
        >>> model = quadruped().with_constraints(lw.CentreOfMass())
        >>> lw.constraint_jacobian(model)(standing(model)).J.shape
        (3, 18)
    """

    target: Sequence[float] = (0.0, 0.0, 0.0)
    name: str = "centre of mass"
    stabilisation: Stabilisation | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", tuple(float(x) for x in self.target))

    rows = 3

    def check(self, model: Model) -> None:
        if model.mass <= 0:
            raise InputError("a model without mass has no centre of mass")

    def touches(self, model: Model) -> tuple[int, ...]:
        bodies = ((i, model.links[i].inertia) for i in model.topology.links)
        return tuple(i for i, body in bodies if body.mass > 0 or body.first_moment.any())

    def renamed(self, new: Callable[[str], str]) -> CentreOfMass:
        raise UnsupportedError(
            f"'{self.name}' is about all links of its model and would be about others in a larger "
            "one; combine without it and add it then"
        )

    def evaluate(self, motion: Motion) -> Rows:
        """K_l = R_l [m_l  -h_l^] / m."""
        xp, links, drift = motion.xp, {}, motion.xp.zeros(3)
        for l in self.touches(motion.model):
            body, (R, _), w = motion.model.links[l].inertia, motion.poses[l], angular(motion.V[l])
            share, h = body.mass / motion.model.mass, xp.constant(body.first_moment / motion.model.mass)
            links[l] = xp.vstack([share * R.T, xp.cross(h, R.T)]).T
            drift = drift + R @ xp.cross(w, xp.cross(w, h))
        return Rows(links, {}, drift, relative=False)

    def position_error(self, motion: Motion) -> Array:
        xp, bodies = motion.xp, [l.inertia for l in motion.model.links]
        total = xp.constant(bodies[0].first_moment / motion.model.mass - np.asarray(self.target, dtype=float))
        for l in self.touches(motion.model):
            (R, p), h = motion.poses[l], xp.constant(bodies[l].first_moment / motion.model.mass)
            total = total + (bodies[l].mass / motion.model.mass * p + R @ h)
        return total
