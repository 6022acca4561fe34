"""Contacts of a model's links with each other and with shapes of the world, from their shapes.

Which shapes may touch is MuJoCo's rule for geoms of one MJCF file: their kinds meet, no joint-less chain makes their
bodies one, neither carries the other (unless it is part of the world), no <exclude> names both. For other formats it is
all but those of links that a joint joins.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from linkwork.checks import NAMES, NOT_NEGATIVE, checked, optional
from linkwork.constraints import Closure
from linkwork.constraints.collisions import Ball, Body, Pair, Rod, touching
from linkwork.errors import InputError, listing, users_level
from linkwork.functions.kinematics import forward_kinematics
from linkwork.io.xml import LoadWarning
from linkwork.joints import Fixed, Free, Planar, Prismatic
from linkwork.model import Model
from linkwork.model.body import Placement
from linkwork.model.model import MODEL, WORLD
from linkwork.model.visual import Collider, HalfSpace, Heights, Partner
from linkwork.simulation.ground.contact_points import FRICTION, body_of

SAMPLES = 4000
"""Random postures in which `near` measures distances, besides the neutral one."""

AT_LIMITS = 0.5
"""The share of joints that are at a limit in every other of these: there links touch each other."""


@checked(
    model=MODEL,
    links=optional(NAMES),
    others=optional(NAMES),
    friction=optional(NOT_NEGATIVE),
    near=optional(NOT_NEGATIVE),
)
def self_contacts(
    model: Model,
    links: Sequence[str] | None = None,
    others: Sequence[str] | None = None,
    *,
    friction: float | None = None,
    near: float | None = None,
) -> list[Pair]:
    """The candidates of contact between a model's own shapes: self-collision, and fixed obstacles.

    Of `lw.contacts(model) + lw.self_contacts(model)` the first are those with the ground, and the <pair> elements of
    MJCF; these are all others. `links` and `others` are names of links or of frames that were links (all by default,
    and "world"): one shape of each pair is on one of `links`, the other one on one of `others`. `friction` replaces
    what the shapes' file says.

    - Geoms of an MJCF file touch as in MuJoCo: one's contype has a bit in common with the other's conaffinity; not
      those of one body, of bodies welded to each other, of parent and child (but for parents welded to the world), or
      of an <exclude>. Friction, condim, priority and margin are mixed as there.
    - In other formats, all links touch each other but neighbours: links that a joint joins, directly, by links without
      mass and shapes, or as a closed loop. <self_collide> of SDF files is obeyed where a file has it. Friction is the
      smaller one.

    Spheres, capsules and boxes are taken; one warning counts other shapes that would have touched something, of which
    meshes can by `lw.mesh_pairs`. Pairs whose distance no joint changes, in the three postures that `lw.step` looks at
    before it takes a pair, are left out. There may be hundreds: with `near`, in metres, shapes are left out that stay
    farther from each other than that in 4000 random postures within joint limits. It is a sample, with loops open, and
    no proof; shapes that a free, planar or unlimited sliding joint can bring anywhere always stay.

    Examples:
        >>> from linkwork.model.visual import Collider, Ellipsoid
        >>> b = lw.Builder("marbles")
        >>> for name in ("one", "two"):
        ...     b.link(name, joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), 1e-3 * np.eye(3)))
        ...     b.collider(name, Collider(Ellipsoid((0.1, 0.1, 0.1)), name="glass", friction=0.3))
        >>> [(c.name, c.friction) for c in lw.self_contacts(b.build())]
        [('one/glass-two/glass/0', 0.3)]
    """
    wanted = [None if names is None else {model.frame(n).link for n in names} for names in (links, others)]
    left_out, out = dict[tuple[int, int], str](), list[Pair]()
    candidates = [(x, y, how) for x, y, how in touching_shapes(model) if _asked(wanted, x.link, y.link)]
    if near is not None:
        candidates = _near(model, candidates, near)
    for x, y, how in candidates:
        left_out |= {(s.link, s.number): _kind(s.collider) for s in (x, y) if s.body is None}
        if x.body is not None and y.body is not None:
            mu = how.friction if friction is None else friction
            out += _pairs(model, (x, x.body), (y, y.body), replace(how, friction=mu))
    if left_out:
        counted = listing(f"{kind} x {n}" for kind, n in sorted(Counter(left_out.values()).items()))
        said = f"self_contacts: left out are {counted}, which could touch others: spheres, capsules and boxes are taken"
        said += "; meshes touch by lw.mesh_pairs and lw.mesh_bodies" if "mesh" in left_out.values() else ""
        warnings.warn(LoadWarning(said), stacklevel=users_level())
    return out


class Solid(NamedTuple):
    """A shape of a link: its number among these, and itself as a body, if it is one that can touch."""

    link: int
    number: int
    collider: Collider
    body: Body | None


def touching_shapes(model: Model) -> Iterator[tuple[Solid, Solid, Partner]]:
    """The shapes that may touch each other by the rules of their files, and how; not those of a <pair>."""
    solids = [
        Solid(i, k, c, body_of(model, i, c))
        for i in range(len(model.links))
        for k, c in enumerate(model.links[i].colliders)
        if not isinstance(c.shape, HalfSpace | Heights)
    ]
    paired = {(c.filter, frozenset((c.name, how.name))) for _, _, c, _ in solids for how in c.partners}
    pieces, joined = _pieces(model), _joined(model)
    for x, y in combinations(solids, 2):
        one, other = x.collider, y.collider
        if pieces[x.link] == pieces[y.link] or not (one.kind & other.meets or other.kind & one.meets):
            continue
        if one.filter is not None and one.filter == other.filter:
            if one.filter.apart(one.body, other.body) or (one.filter, frozenset((one.name, other.name))) in paired:
                continue
        elif WORLD not in (one.body, other.body) and (pieces[x.link], pieces[y.link]) in joined:
            continue
        yield x, y, _mixed(one, other)


def _mixed(one: Collider, other: Collider) -> Partner:
    if one.figures is not None and other.figures is not None:
        return one.figures.mixed(other.figures)
    given = [c.friction for c in (one, other) if c.friction is not None]
    return Partner("", min(given, default=FRICTION), 0.0, 0.0, 0.0)


def _pieces(model: Model) -> list[int]:
    """By link, the first of the links that no joint separates from it."""
    out = [0]
    for link in model.links[1:]:
        out.append(out[link.parent] if isinstance(link.joint, Fixed) else len(out))
    return out


def _joined(model: Model) -> set[tuple[int, int]]:
    """Pieces that a joint of the tree or a closed loop joins, in both orders."""
    pieces, edges = _pieces(model), list[tuple[int, int]]()
    bare = set(pieces) - {0}
    for i, link in enumerate(model.links):
        if link.inertia.mass > 0 or link.colliders:
            bare.discard(pieces[i])
    for i in {*pieces} - {0}:
        link = model.links[i]
        above = pieces[link.parent]
        while above in bare:
            above = pieces[model.links[above].parent]
        if above or not isinstance(link.joint, Free | Planar):
            edges.append((i, above))
    for c in model.constraints:
        if isinstance(c, Closure) and c.joint != "fixed":
            a, b = (pieces[link] for link in c.touches(model))
            edges.append((a, b))
    return {*edges, *((b, a) for a, b in edges)}


def _asked(wanted: Sequence[set[int] | None], i: int, j: int) -> bool:
    """Whether one link is among the first set, and the other among the second; None is all."""
    first, second = wanted
    return any((first is None or a in first) and (second is None or b in second) for a, b in ((i, j), (j, i)))


def _kind(collider: Collider) -> str:
    return type(collider.shape).__name__.lower().removesuffix("file")


def _pairs(model: Model, x: tuple[Solid, Body], y: tuple[Solid, Body], how: Partner) -> Iterator[Pair]:
    """The contacts of two shapes, but for those whose distance no joint changes."""
    (one, a), (other, b) = x, y
    names = {id(body): f"{body.frame}/{s.collider.name or s.number}" for s, body in ((one, a), (other, b))}
    for c in touching(a, b, how.friction, torsion=how.torsion, rolling=how.rolling):
        name = f"{names[id(c.a)]}-{names[id(c.b)]}/{c.name.rpartition('/')[2]}"
        pair = replace(c, margin=how.margin, name=name)
        try:
            pair.check(model)
        except InputError:
            continue
        yield pair


# which shapes come near each other


def _near(
    model: Model, candidates: list[tuple[Solid, Solid, Partner]], near: float
) -> list[tuple[Solid, Solid, Partner]]:
    """Those nearer to each other than that in some posture, and those that can go anywhere.

    Distances are those of capsules around them.
    """
    shut = [k for k, (x, y, _) in enumerate(candidates) if x.body and y.body and not _roams(model, x.link, y.link)]
    if not shut:
        return candidates
    poses = forward_kinematics(model, ["world", *(link.name for link in model.links[1:])])(_postures(model))
    around = {(s.link, s.number): _capsule(model, s) for k in shut for s in candidates[k][:2]}
    ends = {
        (i, number): np.einsum("nij,ej->nei", poses.rotations[:, i], line) + poses.positions[:, i, None]
        for (i, number), (line, _) in around.items()
    }
    far = set()
    for k in shut:
        one, other = ((s.link, s.number) for s in candidates[k][:2])
        if segment_distances(ends[one], ends[other]).min() > near + around[one][1] + around[other][1]:
            far.add(k)
    return [x for k, x in enumerate(candidates) if k not in far]


def _postures(model: Model) -> np.ndarray:
    """The neutral one and random ones; in every other of these, some joints are at a limit."""
    rng = np.random.default_rng(0)
    q = model.random_q(rng, batch=SAMPLES)
    for i in model.topology.links:
        bounds = model.links[i].limits.lower, model.links[i].limits.upper
        if model.links[i].joint.nq == 1 and np.isfinite(bounds).all():
            at = np.flatnonzero(rng.random(SAMPLES // 2) < AT_LIMITS)
            q[2 * at, model.topology.q_slices[i].start] = rng.choice(bounds, len(at))
    return np.vstack([model.neutral(), q])


def _roams(model: Model, i: int, j: int) -> bool:
    """Whether a joint between two links can take one of them anywhere."""
    for k in {*model.topology.supports[i]} ^ {*model.topology.supports[j]}:
        joint, limits = model.links[k].joint, model.links[k].limits
        slides = isinstance(joint, Prismatic) and not np.isfinite([limits.lower, limits.upper]).all()
        if slides or isinstance(joint, Free | Planar):
            return True
    return False


def _capsule(model: Model, solid: Solid) -> tuple[np.ndarray, float]:
    """A capsule around a shape: the ends of its line on the link, and its radius."""
    body = solid.body
    assert body is not None
    X, radius = model.frame(body.frame).placement, 0.0
    if isinstance(body, Ball):
        ends, radius = [body.offset, body.offset], body.radius
    elif isinstance(body, Rod):
        ends, radius = [body.start, body.end], body.radius
    else:
        on, half = body.placement or Placement(), np.asarray(body.size, dtype=float) / 2
        longest = int(np.argmax(half))
        radius = float(np.linalg.norm(np.delete(half, longest)))
        ends = [on.p + side * half[longest] * on.R[:, longest] for side in (-1.0, 1.0)]
    return np.array(ends, dtype=float) @ X.R.T + X.p, radius


def segment_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The distances of segments with these ends (n, 2, 3).

    Lines that are not parallel have their own nearest points; unless these are within both segments an end is nearest.
    """
    d, e, r = a[:, 1] - a[:, 0], b[:, 1] - b[:, 0], a[:, 0] - b[:, 0]
    least = np.full(len(a), np.inf)
    for end in (0, 1):
        least = np.minimum(least, _from_point(a[:, end], b[:, 0], e))
        least = np.minimum(least, _from_point(b[:, end], a[:, 0], d))
    n = np.cross(d, e)
    square = np.einsum("ni,ni->n", n, n)
    skew = square > 1e-12 * np.einsum("ni,ni->n", d, d) * np.einsum("ni,ni->n", e, e)
    over = np.where(skew, square, 1.0)
    s = -np.einsum("ni,ni->n", np.cross(r, e), n) / over
    t = -np.einsum("ni,ni->n", np.cross(r, d), n) / over
    inside = skew & (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1)
    return np.where(inside, np.minimum(least, np.abs(np.einsum("ni,ni->n", r, n)) / np.sqrt(over)), least)


def _from_point(x: np.ndarray, start: np.ndarray, along: np.ndarray) -> np.ndarray:
    """The distances of points (n, 3) from segments."""
    square = np.einsum("ni,ni->n", along, along)
    s = np.einsum("ni,ni->n", x - start, along) / np.where(square > 0, square, 1.0)
    return np.asarray(np.linalg.norm(x - start - np.clip(s, 0.0, 1.0)[:, None] * along, axis=1))
