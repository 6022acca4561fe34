"""Clusters: bodies grouped by their local loops, so that a mechanism with loops becomes a tree again.

A gear, belt, differential or linkage ties the joints of a few bodies together. These bodies, and all between them and
the last body that carries them all (the output body), are a cluster. Its joints move by as many independent
velocities as the loops leave:

    K vdot = k  over the cluster's joints,      vdot = G yddot + g,      G = [1; -K_D^-1 K_I],   g = [0; K_D^-1 k]

with K cut into columns of independent (I) and dependent (D) joints. chignoli2023_clusters, sections II-B and IV. A loop
that overlaps another joins its cluster; therefore every cluster hangs on one body. (The paper lets a cluster hang on
several bodies of the cluster before it; here the two are one.) Closures with the world and rows without positions are
not local: they, loops through free joints, and loops that would make a cluster of more than LONG bodies stay outside.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.backends.ops import SINGULAR, Array, Ops, threshold
from linkwork.checks import checked, optional, several, whole
from linkwork.constraints.base import Constraint, Rows
from linkwork.constraints.coupling import Coupling
from linkwork.constraints.custom import Custom
from linkwork.constraints.link_rows import CentreOfMass, LinkRows
from linkwork.constraints.rows import jacobian, jacobian_blocks, levers, position_error, rows_velocity
from linkwork.errors import InputError, ModelError, listing
from linkwork.joints import Revolute
from linkwork.lazy import cached_property
from linkwork.model.body import BodyInertia
from linkwork.model.memo import remembered
from linkwork.model.model import MODEL, Link, Model
from linkwork.model.motion import Motion
from linkwork.spatial.rotations import rotation_about

LONG = 12
"""A loop over more bodies than this, or one that makes a cluster of more, is no local one."""

ZERO = 1e-9
"""Entries and singular values of rows below this, relative to the largest, count as zero."""


@dataclass(frozen=True)
class Cluster:
    """Some bodies, the body that carries them, and the constraints (by index) that tie their joints together.

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
class Embedding:
    """vdot = G yddot + g for one cluster's joints, and P = K_D^+, for which lam = P^T (forces on dependent joints)."""

    G: Array
    g: Array
    P: Array


@dataclass(frozen=True)
class ClusterTree:
    """A model as a tree of clusters, each after the one that carries it; `outer` constraints are in none of them.

    `still` are rotors: bodies that nothing tells from themselves turned about their joint's axis. `links` are the
    model's, with all of a rotor but its spin, J n n^T about the axis n, moved to the link that carries it.
    """

    model: Model
    clusters: tuple[Cluster, ...]
    outer: tuple[int, ...]
    still: tuple[int, ...]
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

    def maps(self, motion: Motion) -> tuple[Array, Array]:
        """G (nv x ny) and g (nv x 1) of all joints: v = G ydot, vdot = G yddot + g."""
        xp, nv = motion.xp, self.model.nv
        column = {int(v): n for n, v in enumerate(self.velocities)}
        G, g = [xp.zeros(1, len(column))] * nv, [xp.zeros(1)] * nv
        for c in self.clusters:
            e = embedding(motion, c)
            spread = np.zeros((len(c.independent), len(column)))
            for n, k in enumerate(c.independent):
                spread[n, column[c.dofs[k]]] = 1.0
            wide = e.G @ xp.constant(spread)
            for n, v in enumerate(c.dofs):
                G[v], g[v] = wide[n : n + 1, :], e.g[n : n + 1, :]
        return xp.vstack([xp.zeros(0, len(column)), *G]), xp.vstack([xp.zeros(0), *g])

    def stilled(self, motion: Motion) -> Motion:
        """The same motion with rotors that spin but are never turned, as part of what carries them: nobody can tell.

        A rotor's angular momentum is that of a body fixed to its carrier, and J qdot n.
        """
        if not self.still:
            return motion
        t, still = self.model.topology, set(self.still)
        parts = [
            motion.xp.zeros(t.q_slices[i].stop - t.q_slices[i].start) if i in still else motion.joint_q(i)
            for i in t.links
        ]
        return replace(motion, model=replace(motion.model, links=self.links), q=motion.xp.vstack(parts))

    def describe(self) -> str:
        """One line for each cluster of several bodies."""
        name = [l.name for l in self.model.links]
        lines = [
            f"{', '.join(name[i] for i in c.bodies)} on {name[c.output]}: {len(c.independent)} of {len(c.dofs)}"
            for c in self.clusters
            if c.constraints
        ]
        return "\n".join(lines)


def embedding(motion: Motion, cluster: Cluster) -> Embedding:
    """G, g and P of a cluster in this state; NaN where the dependent joints do not follow from the independent ones."""
    xp, n = motion.xp, len(cluster.independent)
    if not cluster.constraints:
        return Embedding(xp.eye(n), xp.zeros(n), xp.zeros(0, 0))
    K, k = local_rows(motion, cluster)
    pick = [K[:, j : j + 1] for j in range(len(cluster.dofs))]
    G = {j: xp.eye(n)[i : i + 1, :] for i, j in enumerate(cluster.independent)}
    g = {j: xp.zeros(1) for j in cluster.independent}
    P = [xp.zeros(1, K.shape[0])] * len(cluster.dependent)
    free = xp.hstack([xp.zeros(K.shape[0], 0), *(pick[j] for j in cluster.independent)])
    for rows, columns in cluster.blocks:
        KD = xp.hstack([pick[cluster.dependent[d]] for d in columns])
        inverse = left_inverse(take(KD, rows, xp), xp, cluster.size)
        GD, gD = -(inverse @ take(free, rows, xp)), inverse @ take(k, rows, xp)
        place = np.eye(K.shape[0])[list(rows)]
        for m, d in enumerate(columns):
            j = cluster.dependent[d]
            G[j], g[j] = GD[m : m + 1, :], gD[m : m + 1, :]
            P[d] = inverse[m : m + 1, :] @ xp.constant(place)
    order = range(len(cluster.dofs))
    return Embedding(
        xp.vstack([G[j] for j in order]), xp.vstack([g[j] for j in order]), xp.vstack([xp.zeros(0, K.shape[0]), *P])
    )


def local_rows(motion: Motion, cluster: Cluster) -> tuple[Array, Array]:
    """K and k of K vdot = k over the cluster's joints: the rows, less what they say of links whose joints rest."""
    t, xp, model = motion.model.topology, motion.xp, motion.model
    rest: dict[int, Array] = {cluster.output: xp.zeros(6)}
    for i in cluster.bodies:
        rest[i] = motion.X[i] @ rest[t.parent[i]] + motion.c[i]
    K, k = [xp.zeros(0, len(cluster.dofs))], [xp.zeros(0)]
    for index in cluster.constraints:
        c = model.constraints[index]
        rows = c.evaluate(motion)
        right = -rows.drift - stabilisation(motion, c, rows)
        for l, Kl in rows.links.items():
            right = right - Kl[:, 0:3] @ motion.known[l]
            if l in rest:
                right = right - Kl @ rest[l]
        J = jacobian_blocks(motion, {l: B for l, B in rows.links.items() if l}, dict(rows.joints), relative=True)
        m = right.shape[0]
        sizes = {i: t.v_slices[i].stop - t.v_slices[i].start for i in cluster.bodies}
        K.append(xp.hstack([J[i] if i in J else xp.zeros(m, s) for i, s in sizes.items() if s]))
        k.append(right)
    return xp.vstack(K), xp.vstack(k)


def stabilisation(motion: Motion, c: Constraint, rows: Rows) -> Array:
    """What pulls these rows back onto their constraint, or zero."""
    if c.stabilisation is None:
        return motion.xp.zeros(rows.drift.shape[0])
    return c.stabilisation.pull(rows_velocity(motion, rows), rows.drift, c.position_error(motion))


def take(A: Array, rows: Sequence[int], xp: Ops) -> Array:
    """Some rows of a matrix."""
    return xp.vstack([A[r : r + 1, :] for r in rows])


def left_inverse(A: Array, xp: Ops, size: float) -> Array:
    """P with P A = 1 for independent columns: by cofactors up to 3 x 3, which needs no pivot; else by least squares.

    NaN where columns depend on each other but for rounding, or are rounding of entries that can be as large as `size`.
    """
    n, least = A.shape[1], threshold(xp, SINGULAR)
    if A.shape[0] != n or n > 3:
        return xp.factor_spd(xp.symmetric(A.T @ A), xp.constant([(least * size) ** 2] * n)).solve(A.T)
    if n == 1:
        return 1 / xp.where((least * size) ** 2 >= A * A, float("nan"), A)
    if n == 2:
        adjugate = xp.matrix([[A[1, 1], -A[0, 1]], [-A[1, 0], A[0, 0]]])
    else:
        columns = [A[:, j : j + 1] for j in range(3)]
        adjugate = xp.vstack([xp.cross(columns[(j + 1) % 3], columns[(j + 2) % 3]).T for j in range(3)])
    determinant, lengths = (adjugate[0:1, :] @ A[:, 0:1])[0, 0], 1.0
    for j in range(n):
        square = (A[:, j : j + 1].T @ A[:, j : j + 1])[0, 0]
        lengths = lengths * xp.where(square > (least * size) ** 2, square, float("nan"))
    return adjugate / xp.where(determinant * determinant > least**2 * lengths, determinant, float("nan"))


@remembered
def _groups(model: Model) -> Groups:
    return Groups(model)


@checked(model=MODEL, embed=optional(several(whole(), "numbers of constraints")))
def clusters(model: Model, embed: Collection[int] | None = None) -> ClusterTree:
    """The cluster tree of a model: who moves with whom, and which joints are independent.

    Joints named by `model.with_independent(...)` (or by a URDF+ file) are independent; a cluster without any such name
    takes joints with motors, and those that determine the others best. ModelError if the named ones are too many, too
    few, or leave others undetermined.

    `embed` lists the constraints that clusters may resolve, if not all local loops shall be; names are wishes then.
    """
    if embed is not None and max(embed, default=-1) >= len(model.constraints):
        raise InputError(f"embed names constraint {max(embed)}; '{model.name}' has {len(model.constraints)}, from 0 on")
    at = getattr(model.constraints[0], "at", None) if model.constraints else None
    source: Model = model if at is None else at.model  # rows with a wish of their own have the clusters of their motion
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
        self.model = replace(model)  # a copy, which does not keep the model itself alive
        self.solved: dict[tuple[tuple[int, ...], bool], Cluster] = {}
        self.trees: dict[frozenset[int] | None, ClusterTree] = {}

    @cached_property
    def samples(self) -> list[Motion]:
        """Some states in which all local loops are closed."""
        inside = sorted(n for _, owners in local_loops(self.model) for n in owners)
        closed = closed_positions(replace(self.model, constraints=tuple(self.model.constraints[n] for n in inside)))
        return [Motion(self.model, q[:, None], np.zeros((self.model.nv, 1)), NUMPY) for q in closed]

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
        held = {
            l
            for n, c in enumerate(model.constraints)
            if n in outer or not isinstance(c, Coupling | Custom)
            for l in c.touches(model)
        }
        still = tuple(i for i in t.links if i not in held and not t.children[i] and _is_rotor(model, i))
        order = tuple(sorted(found, key=lambda c: c.bodies[0]))
        return ClusterTree(replace(model, constraints=()), order, outer, still, _lightened(model, still))

    def _cluster(self, bodies: tuple[int, ...], constraints: tuple[int, ...], names: bool) -> Cluster:
        """Names decide in the tree of all local loops; in others they may be too few."""
        key = (constraints, names)
        if key not in self.solved:
            self.solved[key] = _solved(self.model, bodies, constraints, self.samples, names)
        return self.solved[key]


def never_singular(c: Constraint) -> bool:
    """Whether a cluster can resolve this constraint in every posture."""
    return isinstance(c, Coupling) and c.has_fixed_ratios


def local_loops(model: Model, among: Collection[int] | None = None) -> list[tuple[set[int], set[int]]]:
    """Bodies and constraints of each cluster: couplings first, then loops that join what is there, short ones first.

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
    """The bodies of a local loop, from the last one that carries them all on; none if the constraint is not local."""
    t = model.topology
    if isinstance(c, LinkRows | CentreOfMass):
        return set()
    if isinstance(c, Coupling | Custom):
        names = (c.joint, *c.terms) if isinstance(c, Coupling) else tuple(c.joints)
        ends = [model.joint(n) for n in names]
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


def closed_positions(model: Model, distances: Sequence[float] = (0.0, 0.2, 0.4, 0.4)) -> list[np.ndarray]:
    """Closed positions so far from the neutral one, by Gauss and Newton's method; the first, closed or not."""
    rng, out = np.random.default_rng(0), list[np.ndarray]()
    for size in distances:
        q = model.integrate(model.neutral(), size * rng.normal(size=model.nv))
        for _ in range(30 if model.constraints else 0):
            motion = Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY)
            phi = position_error(motion)
            if np.abs(phi).max(initial=0.0) < 1e-10:
                break
            q = model.integrate(q, -(np.linalg.pinv(jacobian(motion), rcond=ZERO) @ phi)[:, 0])
        else:
            if model.constraints and out:
                continue
        out.append(q)
    return out


def _solved(
    model: Model, bodies: tuple[int, ...], constraints: tuple[int, ...], samples: list[Motion], names: bool
) -> Cluster:
    """The cluster with its independent and dependent degrees of freedom; `names` of independent joints may decide."""
    t = model.topology
    output = t.parent[bodies[0]]
    dofs = tuple(k for i in bodies for k in range(t.v_slices[i].start, t.v_slices[i].stop))
    bare = Cluster(bodies, output, constraints, dofs)
    Ks = [local_rows(at, bare)[0] for at in samples]
    ranks = [int(np.linalg.matrix_rank(K, tol=ZERO * max(np.abs(K).max(initial=0.0), 1e-300))) for K in Ks]
    rank = max(ranks)
    K = Ks[ranks.index(rank)]
    named = [n for n, k in enumerate(dofs) if model.links[t.dof_link[k]].joint_name in model.independent]
    dependent = [n for n in range(len(dofs)) if n not in named]
    if not named or not (names or _follow(K, rank, dependent)):
        dependent = _most_dependent(model, dofs, K, rank)
    elif not _follow(K, rank, dependent):
        raise _misnamed(model, bare, rank, named)
    independent = tuple(n for n in range(len(dofs)) if n not in dependent)
    pattern = np.max([np.abs(K) for K in Ks], axis=0)
    return replace(
        bare,
        independent=independent,
        dependent=tuple(dependent),
        size=_lever(samples, constraints),
        blocks=_blocks(pattern[:, dependent] > ZERO * max(pattern.max(initial=0.0), 1e-300)),
    )


def _lever(samples: list[Motion], constraints: tuple[int, ...]) -> float:
    """How large entries of these constraints' rows can be."""
    found = [levers(at, at.model.constraints[n].evaluate(at)).max(initial=0.0) for at in samples for n in constraints]
    return float(np.sqrt(max(found, default=0.0)))


def _most_dependent(model: Model, dofs: tuple[int, ...], K: np.ndarray, rank: int) -> list[int]:
    """Joints without motors first, then those further from the base; each must be determined well by the rows."""
    t = model.topology
    order = sorted(range(len(dofs)), key=lambda n: (model.links[t.dof_link[dofs[n]]].actuated, -n))
    for share in (0.3, 1e-2, 1e-4, ZERO):
        basis, chosen = np.zeros((K.shape[0], 0)), list[int]()
        for n in order:
            left = K[:, n] - basis @ (basis.T @ K[:, n])
            size = float(np.linalg.norm(left))
            if len(chosen) < rank and size > share * np.abs(K).max():
                chosen.append(n)
                basis = np.column_stack([basis, left / size])
        if len(chosen) == rank:
            break
    return sorted(chosen)


def _follow(K: np.ndarray, rank: int, dependent: list[int]) -> bool:
    """Whether the rows determine these joints by the others."""
    tolerance = ZERO * max(np.abs(K).max(initial=0.0), 1e-300)
    return len(dependent) == rank and int(np.linalg.matrix_rank(K[:, dependent], tol=tolerance)) == rank


def _misnamed(model: Model, c: Cluster, rank: int, named: list[int]) -> ModelError:
    """Independent joints that are too many, too few, or that leave the others undetermined."""
    joints = [model.links[model.topology.dof_link[k]].joint_name for k in c.dofs]
    return ModelError(
        f"the loops {listing(model.constraints[n].name for n in c.constraints)} leave {len(c.dofs) - rank} of the "
        f"{len(c.dofs)} degrees of freedom of {listing(dict.fromkeys(joints))} independent, and "
        f"{listing(joints[n] for n in named)} cannot be these: the others do not follow from them. Name others with "
        "model.with_independent(...)"
    )


def _blocks(pattern: np.ndarray) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Rows and columns that nonzero entries connect; rows of zeros are in no block."""
    left, out = set(range(pattern.shape[1])), []
    while left:
        columns, rows = {min(left)}, set[int]()
        while True:
            rows = {int(r) for r in np.flatnonzero(pattern[:, sorted(columns)].any(axis=1))}
            wider = {int(n) for n in np.flatnonzero(pattern[sorted(rows)].any(axis=0))} | columns
            if wider == columns:
                break
            columns = wider
        left -= columns
        out.append((tuple(sorted(rows)), tuple(sorted(columns))))
    return tuple(out)


def _is_rotor(model: Model, i: int) -> bool:
    """Whether a body is symmetric about the axis of the hinge that carries it."""
    joint, body = model.links[i].joint, model.links[i].inertia
    if not isinstance(joint, Revolute):
        return False
    R = np.asarray(rotation_about(joint.axis, np.cos(1.0), np.sin(1.0), NUMPY))
    I, h = body.about_origin, body.first_moment
    size = float(np.abs(I).max())
    return bool(
        np.abs(R @ I @ R.T - I).max() <= 1e-12 * size and float(np.linalg.norm(R @ h - h)) <= 1e-12 * (size + body.mass)
    )


def _lightened(model: Model, rotors: tuple[int, ...]) -> tuple[Link, ...]:
    """The links with rotors that only spin; the rest of these is fixed to what carries them."""
    links = list(model.links)
    for i in rotors:
        body, joint, parent = links[i].inertia, links[i].joint, links[i].parent
        assert isinstance(joint, Revolute)
        spin = float(joint.axis @ body.I @ joint.axis) * np.outer(joint.axis, joint.axis)
        rest = replace(body, I=body.I - spin).moved(links[i].placement)
        held = links[i].weightless.moved(links[i].placement)
        links[i] = replace(links[i], inertia=BodyInertia(0.0, np.zeros(3), spin), weightless=BodyInertia())
        if parent:
            links[parent] = replace(
                links[parent], inertia=links[parent].inertia + rest, weightless=links[parent].weightless + held
            )
    return tuple(links)
