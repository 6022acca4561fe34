"""Link frames with few operations: candidates for each link, and dynamic programming over the tree.

Candidates sit on the joint's axis: where the link's own frame is, at feet of common normals with the axes of its
neighbours (Denavit and Hartenberg's choice) and beside what else it carries; turned towards these, or as they are. A
joint's cost depends on the frames of two links, so the best ones follow from the tips to the base. Translations cost
most: the gain is that they are in few joints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linkwork.joints import Cylindrical, Helical, Joint, Prismatic, Revolute, Universal
from linkwork.model import Model, Placement
from linkwork.model.body import Moments
from linkwork.model.memo import cached
from linkwork.rewrite.inertia_lumping import shared_moments
from linkwork.spatial.inertia import OTHER_AXES
from linkwork.spatial.transforms import is_permutation

ROUNDING = 64 * float(np.finfo(float).eps)
"""Counts as zero relative to one, after the few operations that make a placement."""

TRANSLATION = (0.0, 50.0, 78.0, 100.0)
"""Operations that a translation with so many entries adds to a forward dynamics, measured on chains."""
TURN, MERGED, ROTATION = 75.0, 1.0, 200.0
"""Operations that a constant turn about a coordinate axis adds; one about the joint's axis; any other rotation."""
TILTED = 14.0
"""Operations for each further entry of a translation in axes that a constant turn has tilted."""
FIRST_MOMENT, PRODUCT = 12.0, 5.0
"""Operations for an entry of h across the joint's axis, and for one off the diagonal of I."""
SLANT = 0.05
"""The sine below which two lines count as parallel: their closest points are far away."""
HELD, ARM = 150.0, 15.0
"""Operations for constraint rows in axes other than the link's, permutations apart; for an entry of their origin."""


@dataclass(frozen=True)
class Choice:
    """A candidate frame of a link, its cost with the best frames of all links behind, and those frames."""

    W: Placement
    cost: float
    behind: dict[int, Placement]


def choose(model: Model, free_base: bool = False) -> list[Placement]:
    """The candidate with the least cost for each link, by dynamic programming from the tips to the base.

    With `free_base` the frame of link 1 on a free joint may be shifted too: then q, v, a, tau must be converted.
    """
    best = _choices(model)
    out = [Placement()] * len(model.links)
    for root in model.topology.children[0]:
        # only gravity is propagated through the joint at the world
        at_root = _choices_of(model, root, _held(model)[root], best, free_base) if free_base else best[root]
        for i, W in min(at_root, key=lambda c: c.cost).behind.items():
            out[i] = W
    return out


@cached
def _choices(model: Model) -> dict[int, list[Choice]]:
    """The candidates of every link, with the best of all links behind it."""
    held = _held(model)
    best: dict[int, list[Choice]] = {}
    for i in reversed(model.topology.links):
        best[i] = _choices_of(model, i, held[i], best)
    return best


def _choices_of(
    model: Model, i: int, held: Sequence[Placement], best: Mapping[int, Sequence[Choice]], free_base: bool = False
) -> list[Choice]:
    """The candidates of link i, from those of its children."""
    made = []
    for W in candidates(model, i, held, free_base):
        cost, behind = own_cost(model, i, W, held), {i: W}
        for child in model.topology.children[i]:
            costs = [c.cost + joint_cost(model, child, W, c.W) for c in best[child]]
            n = int(np.argmin(costs))
            cost += costs[n]
            behind |= best[child][n].behind
        made.append(Choice(W, cost, behind))
    return made


def _held(model: Model) -> list[list[Placement]]:
    """By link, the frames in which constraints hold it."""
    out: list[list[Placement]] = [[] for _ in model.links]
    for c in model.constraints:
        for name in {getattr(c, "a", None), getattr(c, "b", None)} - {None}:
            f = model.frame(str(name))
            out[f.link].append(f.placement)
    return out


def axis_of(model: Model, i: int) -> np.ndarray | None:
    """The axis of the joint of link i, if it has one along which frames may be moved."""
    joint = model.links[i].joint
    return joint.axis if isinstance(joint, (Revolute, Prismatic, Helical, Cylindrical)) else None


def candidates(model: Model, i: int, held: Sequence[Placement], free_base: bool = False) -> list[Placement]:
    """Frames for link i in its own, its present one first (with a coordinate along the joint's axis)."""
    link = model.links[i]
    if free_base and i == 1 and link.joint.kind == "free":
        joints = [model.links[j].placement.p for j in model.topology.children[i]]
        return [Placement(p=p) for p in _distinct([np.zeros(3), *joints])]
    if link.joint.kind == "fixed" and link.parent:
        return [Placement(), link.placement.inverse()]
    if isinstance(link.joint, Universal) and abs(link.joint.axis @ link.joint.second) < 1e-12:
        a, b = link.joint.axis, link.joint.second  # both become coordinate axes of the turned frame
        return [Placement(np.column_stack([a, b, np.cross(a, b)]))]
    u = axis_of(model, i)
    if u is None:
        return [Placement()]
    origins = _distinct([np.zeros(3), *_origins(model, i, u, held)])
    axes = _axes(u, [*_directions(model, i, held)])
    return [Placement(R, p) for R in axes for p in origins]


def _origins(model: Model, i: int, u: np.ndarray, held: Sequence[Placement]) -> Iterator[np.ndarray]:
    """Points on the joint's axis near which something else is: parent, children, constraints."""
    link, back = model.links[i], model.links[i].placement.inverse()
    before = axis_of(model, link.parent)
    ways = link.placement.R @ u
    for k in np.flatnonzero(np.abs(ways) > SLANT):
        yield -link.placement.p[k] / ways[k] * u
    if before is not None:
        yield foot(u, back.p, back.R @ before)
    for child in model.topology.children[i]:
        place, axis = model.links[child].placement, axis_of(model, child)
        yield (place.p @ u) * u
        if axis is not None:
            yield foot(u, place.p, place.R @ axis)
    for place in held:
        yield (place.p @ u) * u


def foot(u: np.ndarray, point: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Where the common normal of a line through the origin and another one meets the first."""
    n = np.cross(u, direction)
    if n @ n < SLANT**2:
        return np.asarray((point @ u) * u)
    return float(np.linalg.det([point, direction, n]) / (n @ n)) * u


def _directions(model: Model, i: int, held: Sequence[Placement]) -> Iterator[np.ndarray]:
    """Directions that an axis across the joint's may take."""
    for child in model.topology.children[i]:
        place, axis = model.links[child].placement, axis_of(model, child)
        if axis is not None:
            yield place.R @ axis
        yield place.p
    for place in held:
        yield from place.R.T
    yield model.links[i].inertia.first_moment


def _distinct(points: Sequence[np.ndarray]) -> list[np.ndarray]:
    out: list[np.ndarray] = []
    for p in points:
        if all(np.abs(p - x).max() > ROUNDING * max(1.0, float(np.abs(x).max())) for x in out):
            out.append(p)
    return out


def _axes(u: np.ndarray, directions: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Axes of which one lies along u: the present ones if one does, and others turned to a direction."""
    k = int(np.argmax(np.abs(u))) if np.count_nonzero(u) == 1 else 2
    i, j = OTHER_AXES[k]
    out: list[np.ndarray] = [np.eye(3)] if np.count_nonzero(u) == 1 else []
    along = np.sign(u[k]) * u if out else u
    for d in [*directions, *(np.eye(3) if not out else ())]:
        across = d - (d @ u) * u
        length = float(np.linalg.norm(across))
        if length <= 1e-9 * max(float(np.linalg.norm(d)), 1e-300):
            continue
        R = np.zeros((3, 3))
        R[:, k], R[:, i] = along, across / length
        R[:, j] = np.cross(R[:, k], R[:, i])
        if not any(is_permutation(x.T @ R) for x in out):
            out.append(R)
    return out


def joint_cost(model: Model, i: int, Wp: Placement, W: Placement) -> float:
    """Operations for the moves from the parent of link i to it."""
    link = model.links[i]
    R, p = between(Wp, link.placement, W)
    turns = rotation_cost(R, link.joint, W.R)
    entries = int(np.count_nonzero(p))
    cost = TRANSLATION[entries] + turns + (TILTED * (entries - 1) if entries and turns >= TURN else 0.0)
    return cost * _share(model, i)


def _share(model: Model, i: int) -> float:
    """The share of a full transformation that is needed at the joint of link i."""
    parent = model.links[model.links[i].parent]
    body = model.links[i].inertia
    if not model.topology.children[i] and not body.first_moment.any() and np.count_nonzero(body.I) <= 1:
        return 0.1
    return 0.3 if parent.parent == 0 and parent.joint.nv == 1 else 1.0


def rotation_cost(R: np.ndarray, joint: Joint, axes: np.ndarray) -> float:
    """By Euler angles about the joint's axis, one across, and the joint's axis; `axes` are the link's."""
    if is_permutation(R):
        return 0.0
    if not isinstance(joint, (Revolute, Helical, Cylindrical)):
        return ROTATION
    along = np.abs(axes.T @ joint.axis)
    k = int(np.argmax(along))
    if along[k] < 1 - 1e-12:
        return ROTATION
    i, j = OTHER_AXES[k]
    large: list[list[bool]] = [[abs(x) > 1e-12 for x in row] for row in R.tolist()]
    if not (large[i][k] or large[j][k]):
        return MERGED
    before, after = large[i][k] and large[j][k], large[k][i] and large[k][j]
    return TURN * (large[k][k] + before) + MERGED * after


def own_cost(model: Model, i: int, W: Placement, held: Sequence[Placement]) -> float:
    """Operations for the link's own inertia and for the constraints that hold it."""
    link, back = model.links[i], W.inverse()
    body = Moments.of(link.inertia).moved(back)
    rest = body + -shared_moments(turned(link.joint, W.R), body)
    weight = 1.0 if model.topology.children[i] else 2.0
    small = 1e-12 * max(float(np.abs(body.I).max()), 1e-300)
    h = np.count_nonzero(np.abs(rest.h) > 1e-12 * max(float(np.abs(body.h).max()), 1e-300))
    products = sum(abs(rest.I[a, b]) > small for a, b in ((0, 1), (0, 2), (1, 2)))
    cost = float(weight * (FIRST_MOMENT * h + PRODUCT * products))
    for place in held:
        R, p = between(W, place, Placement())
        cost += (0.0 if is_permutation(R) else HELD) + ARM * int(np.count_nonzero(p))
    return cost


def between(parent: Placement, placement: Placement, child: Placement) -> tuple[np.ndarray, np.ndarray]:
    """parent^-1 placement child, with entries of the origin that differ from zero by rounding made zero."""
    p = parent.R.T @ (placement.p + placement.R @ child.p - parent.p)
    scale = max(map(abs, (*placement.p.tolist(), *child.p.tolist(), *parent.p.tolist())))
    p[np.abs(p) <= ROUNDING * scale] = 0.0
    return parent.R.T @ placement.R @ child.R, p


def turned(joint: Joint, R: np.ndarray) -> Joint:
    """The joint in new axes R."""
    if isinstance(joint, (Revolute, Prismatic, Cylindrical)):
        return type(joint)(R.T @ joint.axis)
    if isinstance(joint, Universal):
        return Universal(R.T @ joint.axis, R.T @ joint.second)
    return Helical(R.T @ joint.axis, joint.pitch) if isinstance(joint, Helical) else joint
