"""What the articulated body recursion needs of each node of a cluster tree: a joint with its body, or a cluster.

A cluster on its output body is a small mechanism. With IA of its bodies (all behind them included), the composite
rigid body algorithm gives the inertia H that its joints feel, the forces F on the output body that they cause, and the
inertia Ic that the output body feels when they rest. Joints follow vdot = G yddot + g, which leaves

    D = G^T (H + armature) G,   U = F G,    then one independent velocity after the other, the last first:
    Ic <- Ic - U_k U_k^T / d_k,    U_j <- U_j - l_kj U_k,   D_ij <- D_ij - l_ki D_kj,    l_kj = D_kj / d_k .

chignoli2023_clusters, eqs. 17-26 and algorithm 1, whose cluster subspace S_k is not formed: its products are those of
H, F and G. A joint without loops is eliminated in its own frame, as in algorithms/common/articulated.py.

Neighbours are links that penalised constraints couple with the node's bodies (hessian.py). They feel its freedoms by
U_n as its output body does, and are coupled with that when the node has left: sathya2025_lcaba_proxbbo, eqs. 30-35.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from linkwork.algorithms.common.articulated import Dof, degree_of_freedom
from linkwork.algorithms.common.hessian import Hessian, Inertia, add, articulated
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.spatial import ArticulatedInertia
from linkwork.structure.clusters import Cluster, Embedding


class Node(Protocol):
    """One step of the recursion over a cluster tree. Columns of forces and accelerations go through together."""

    cluster: Cluster

    def drive(self, tau: Array, p: list[Array]) -> tuple[list[Array], dict[int, Array]]:
        """Joint forces and link forces p: the force u left to move each freedom, and by link what is added to p."""
        ...

    def accelerate(self, u: list[Array], a: list[Array]) -> tuple[Array, dict[int, Array]]:
        """From the accelerations of output body and neighbours: vdot of its joints, accelerations of its bodies."""
        ...

    def carry(self, F: dict[int, Array], Q: dict[int, Array]) -> tuple[list[Array], dict[int, Array], Array]:
        """Forces F on bodies and Q on joints: what pushes freedoms, what output body and neighbours feel, and power.

        The power is that of accelerations which velocities alone cause, with the output body at rest.
        """
        ...

    def respond(self, e: list[Array], A: Array) -> dict[int, Array]:
        """Accelerations of the bodies that such pushes and the output body's accelerations A cause."""
        ...


@dataclass(frozen=True)
class Single:
    """A joint without loops, and its body; by degree of freedom U_n of neighbours, and what couples these with it."""

    motion: Motion
    cluster: Cluster
    dofs: list[Dof]
    felt: list[dict[int, Array]]
    Ia: ArticulatedInertia
    coupled: dict[int, Array]

    @property
    def body(self) -> int:
        return self.cluster.bodies[0]

    @property
    def pivots(self) -> list[Array]:
        return [dof.d_inv for dof in self.dofs]

    def drive(self, tau: Array, p: list[Array]) -> tuple[list[Array], dict[int, Array]]:
        i, output, motion = self.body, self.cluster.output, self.motion
        pa, u, passed = p[i], list[Array](), dict[int, Array]()
        for k, dof in reversed(list(enumerate(self.dofs))):
            u.insert(0, tau[k : k + 1, :] - dof.s.T @ pa)
            pa = pa + dof.V @ u[0]
            for n, Un in self.felt[k].items():
                accumulate(passed, n, Un @ (dof.d_inv * u[0]))
        known = motion.c[i] if output else motion.X[i] @ motion.a0 + motion.c[i]
        for n, C in self.coupled.items():
            accumulate(passed, n, C @ known)
        if output:
            accumulate(passed, output, motion.X[i].T @ (pa + self.Ia @ motion.c[i]))
        return u, passed

    def accelerate(self, u: list[Array], a: list[Array]) -> tuple[Array, dict[int, Array]]:
        i, vdot = self.body, [self.motion.xp.zeros(0)]
        own = self.motion.X[i] @ a[self.cluster.output] + self.motion.c[i]
        for dof, felt, uk in zip(self.dofs, self.felt, u, strict=True):
            pull = sum((Un.T @ a[n] for n, Un in felt.items()), dof.U.T @ own)
            vdot.append(dof.d_inv * (uk - pull))
            own = own + dof.s @ vdot[-1]
        return self.motion.xp.vstack(vdot), {i: own}

    def carry(self, F: dict[int, Array], Q: dict[int, Array]) -> tuple[list[Array], dict[int, Array], Array]:
        i, e, passed = self.body, list[Array](), dict[int, Array]()
        f = F[i] if i in F else self.motion.xp.zeros(6, Q[i].shape[1])
        for k, dof in reversed(list(enumerate(self.dofs))):
            push = dof.s.T @ f
            e.insert(0, push + Q[i][k : k + 1, :] if i in Q else push)
            f = f - dof.V @ e[0]
            for n, Un in self.felt[k].items():
                accumulate(passed, n, -(Un @ (dof.d_inv * e[0])))
        accumulate(passed, self.cluster.output, self.motion.X[i].T @ f)
        return e, passed, f.T @ self.motion.c[i]

    def respond(self, e: list[Array], A: Array) -> dict[int, Array]:
        A = self.motion.X[self.body] @ A
        for dof, eT in zip(self.dofs, e, strict=True):
            A = A + dof.s @ (dof.d_inv * eT - dof.V.T @ A)
        return {self.body: A}


@dataclass(frozen=True)
class Pivot:
    """An independent velocity when it was eliminated: U, V = U / d, 1 / d, l_kj of those that follow, neighbours' U."""

    U: Array
    V: Array
    d_inv: Array
    l: list[Array]
    felt: dict[int, Array]


@dataclass(frozen=True)
class Loop:
    """A cluster whose joints constraints tie together.

    `pairs` are the blocks H_ni of neighbours n, or other bodies n of the cluster, with its bodies i; `coupled` what is
    left between neighbours and output body.
    """

    motion: Motion
    cluster: Cluster
    embedding: Embedding
    IA: dict[int, Inertia]
    pairs: dict[tuple[int, int], Array]
    freedoms: list[Pivot] = field(default_factory=list)
    coupled: dict[int, Array] = field(default_factory=dict)

    @property
    def pivots(self) -> list[Array]:
        return [f.d_inv for f in self.freedoms]

    def drive(self, tau: Array, p: list[Array]) -> tuple[list[Array], dict[int, Array]]:
        rest, passed = self.rest(), dict[int, Array]()
        f = {i: self.IA[i] @ rest[i] + p[i] for i in self.cluster.bodies}
        for (n, i), B in self.pairs.items():
            accumulate(f if n in f else passed, n, B @ rest[i])
        Q, out = self.feel(f)
        e, at_output = self.pass_freedoms(self.embedding.G.T @ (Q + self.armature() @ self.embedding.g - tau), out)
        for x, ek in zip(self.freedoms, e, strict=True):
            for n, Un in x.felt.items():
                accumulate(passed, n, -(Un @ (x.d_inv * ek)))
        if self.cluster.output:
            accumulate(passed, self.cluster.output, at_output)
        else:
            for n, C in self.coupled.items():
                accumulate(passed, n, C @ self.motion.a0)
        return [-x for x in e], passed

    def accelerate(self, u: list[Array], a: list[Array]) -> tuple[Array, dict[int, Array]]:
        y: list[Array] = []
        for f, uk in zip(self.freedoms, u, strict=True):
            pull = sum((Un.T @ a[n] for n, Un in f.felt.items()), f.U.T @ a[self.cluster.output])
            yk = f.d_inv * (uk - pull)
            for l, done in zip(f.l, y, strict=True):
                yk = yk - l * done
            y.append(yk)
        vdot = self.embedding.G @ self.motion.xp.vstack([self.motion.xp.zeros(0), *y]) + self.embedding.g
        return vdot, self.moved(a[self.cluster.output], vdot, drift=True)

    def carry(self, F: dict[int, Array], Q: dict[int, Array]) -> tuple[list[Array], dict[int, Array], Array]:
        columns = next(iter((F or Q).values())).shape[1]
        zero, rest = self.motion.xp.zeros(6, columns), self.rest()
        felt, out = self.feel({i: F.get(i, zero) for i in self.cluster.bodies}, Q)
        push, beyond = self.pass_freedoms(self.embedding.G.T @ felt, out)
        passed = {self.cluster.output: beyond}
        for x, ek in zip(self.freedoms, push, strict=True):
            for n, Un in x.felt.items():
                accumulate(passed, n, -(Un @ (x.d_inv * ek)))
        power = sum((f.T @ rest[i] for i, f in F.items()), self.motion.xp.zeros(columns))
        g = self.by_joint(self.embedding.g)
        return push, passed, sum((f.T @ g[i] for i, f in Q.items()), power)

    def respond(self, e: list[Array], A: Array) -> dict[int, Array]:
        y: list[Array] = []
        for f, eT in zip(self.freedoms, e, strict=True):
            yk = f.d_inv * eT - f.V.T @ A
            for l, done in zip(f.l, y, strict=True):
                yk = yk - l * done
            y.append(yk)
        return self.moved(A, self.embedding.G @ self.motion.xp.vstack([self.motion.xp.zeros(0, A.shape[1]), *y]))

    def needed(self, a: list[Array], p: list[Array]) -> dict[int, Array]:
        """The force that each body and all behind it needs: what its joint transmits, before its own children's."""
        f = {i: self.IA[i] @ a[i] + p[i] for i in self.cluster.bodies}
        for (n, i), B in self.pairs.items():
            if n in f:
                f[n] = f[n] + B @ a[i]
            else:
                f[i] = f[i] + B.T @ a[n]
        return f

    def rest(self) -> dict[int, Array]:
        """Accelerations of the bodies that velocities alone cause on a resting output body."""
        return self.moved(self.motion.xp.zeros(6), self.embedding.g, drift=True)

    def by_joint(self, x: Array) -> dict[int, Array]:
        """A column over the cluster's degrees of freedom, cut into joints."""
        out, start = {}, 0
        for i in self.cluster.bodies:
            stop = start + self.motion.model.links[i].joint.nv
            out[i], start = x[start:stop, :], stop
        return out

    def armature(self) -> Array:
        """The rotor inertias of the cluster's joints, as a diagonal matrix."""
        return self.motion.xp.constant(
            np.diag(np.concatenate([self.motion.model.links[i].armature for i in self.cluster.bodies] + [np.zeros(0)]))
        )

    def moved(self, a: Array, vdot: Array, drift: bool = False) -> dict[int, Array]:
        """Base to tips within the cluster: accelerations of its bodies, with or without velocity products."""
        motion, t = self.motion, self.motion.model.topology
        out, joint = {self.cluster.output: a}, self.by_joint(vdot)
        for i in self.cluster.bodies:
            out[i] = motion.X[i] @ out[t.parent[i]] + motion.S[i] @ joint[i]
            if drift:
                out[i] = out[i] + motion.c[i]
        return out

    def feel(self, f: dict[int, Array], Q: dict[int, Array] | None = None) -> tuple[Array, Array]:
        """Tips to base within the cluster: what joints and output body feel of forces on bodies (and joints)."""
        motion, t, f = self.motion, self.motion.model.topology, dict(f)
        columns = next(iter(f.values())).shape[1]
        felt, out = {}, motion.xp.zeros(6, columns)
        for i in reversed(self.cluster.bodies):
            felt[i] = motion.S[i].T @ f[i]
            if Q and i in Q:
                felt[i] = felt[i] + Q[i]
            if (p := t.parent[i]) in f:
                f[p] = f[p] + motion.X[i].T @ f[i]
            else:
                out = out + motion.X[i].T @ f[i]
        return motion.xp.vstack([motion.xp.zeros(0, columns), *(felt[i] for i in self.cluster.bodies)]), out

    def pass_freedoms(self, e: Array, F: Array) -> tuple[list[Array], Array]:
        """Eliminate the independent velocities from forces on them and on the output body."""
        left = [e[k : k + 1, :] for k in range(len(self.freedoms))]
        for k, f in reversed(list(enumerate(self.freedoms))):
            F = F - f.V @ left[k]
            for j, l in enumerate(f.l):
                left[j] = left[j] - l * left[k]
        return left, F


def accumulate(sums: dict[int, Array], n: int, x: Array) -> None:
    sums[n] = sums[n] + x if n in sums else x


def single(motion: Motion, cluster: Cluster, H: Hessian, near: tuple[int, ...] = ()) -> Single:
    """Eliminate a joint in its link's frame, the last degree of freedom first, and hand the rest to its parent."""
    (i,), output, X = cluster.bodies, cluster.output, motion.X[cluster.bodies[0]]
    dofs, felt = list[Dof](), list[dict[int, Array]]()
    Ia, coupled = articulated(H.own[i]), {n: H.take(n, i) for n in near}
    for k in reversed(range(motion.model.links[i].joint.nv)):
        dof = degree_of_freedom(motion, i, k, Ia)
        U = {n: C @ dof.s for n, C in coupled.items()}
        Ia = Ia.minus(dof.U, dof.V)
        coupled = {n: C - U[n] @ dof.V.T for n, C in coupled.items()}
        H.pass_dof(U, dof.d_inv)
        dofs.insert(0, dof)
        felt.insert(0, U)
    if output:
        for n, C in coupled.items():
            moved = (X.T @ C.T).T
            H.add(n, output, moved + moved.T if n == output else moved)
        H.own[output] = add(H.own[output], X.congruence(Ia))
    return Single(motion, cluster, dofs, felt, Ia, coupled)


def loop(motion: Motion, cluster: Cluster, e: Embedding, H: Hessian, near: tuple[int, ...] = ()) -> Loop:
    """A cluster's inertias, then its independent velocities one at a time, the last first."""
    output, n = cluster.output, len(cluster.independent)
    bare, D, U, rest, Us, coupled = gathered(motion, cluster, e, H, near)
    Ia, freedoms = articulated(rest), list[Pivot]()
    d = [[D[i, j] for j in range(n)] for i in range(n)]
    for k in reversed(range(n)):
        d_inv = 1 / d[k][k]
        l = [d[k][j] * d_inv for j in range(k)]
        f = Pivot(U[k], U[k] * d_inv, d_inv, l, {m: Um[k] for m, Um in Us.items()})
        for i in range(k):
            for each in (U, *Us.values()):
                each[i] = each[i] - l[i] * each[k]
            for j in range(i + 1):
                d[i][j] = d[i][j] - l[i] * d[k][j]
                d[j][i] = d[i][j]
        if output:
            Ia = Ia.minus(f.U, f.V)
        H.pass_dof(f.felt, d_inv)
        coupled = {m: C - f.felt[m] @ f.V.T for m, C in coupled.items()}
        freedoms.insert(0, f)
    if output:
        for m, C in coupled.items():
            H.add(m, output, C)
        H.own[output] = add(H.own[output], Ia)
    return replace(bare, freedoms=freedoms, coupled=coupled)


Gathered = tuple[Loop, Array, list[Array], Inertia, dict[int, list[Array]], dict[int, Array]]


def gathered(motion: Motion, cluster: Cluster, e: Embedding, H: Hessian, near: tuple[int, ...]) -> Gathered:
    """The cluster, D, columns of U, Ic, and for each neighbour columns of U_n and what couples it with the output."""
    xp, bodies = motion.xp, cluster.bodies
    IA = {i: H.own[i] for i in bodies}
    D, F, Ic = composite(motion, cluster, IA)
    D, U = xp.symmetric(e.G.T @ (D @ e.G)), F @ e.G
    inside = {(i, j): H.block(i, j) for i in bodies for j in bodies if i != j and H.coupled(i, j)}
    pairs = {(m, i): H.take(m, i) for m in near for i in bodies if H.coupled(m, i)}
    bare = Loop(motion, cluster, e, IA, {**inside, **pairs})
    zero, Us, coupled = xp.zeros(6, 6), dict[int, list[Array]](), dict[int, Array]()
    if inside:
        # forces between bodies when the output body moves by unit accelerations, and each freedom does
        still, none = xp.zeros(e.G.shape[0], 6), xp.zeros(6, e.G.shape[1])
        a = {
            i: xp.hstack([x, y])
            for i, x, y in zip(
                bodies,
                list(bare.moved(xp.eye(6), still).values())[1:],
                list(bare.moved(none, e.G).values())[1:],
                strict=True,
            )
        }
        f = {i: sum((B @ a[j] for (m, j), B in inside.items() if m == i), 0 * a[i]) for i in bodies}
        Q, out = bare.feel(f)
        D, U = D + xp.symmetric(e.G.T @ Q[:, 6:]), U + out[:, 6:]
        Ic = add(Ic, inertia(out[:, 0:6], motion))
    for m in near:
        Q, out = bare.feel({i: pairs[m, i].T if (m, i) in pairs else zero for i in bodies})
        Um, C = (e.G.T @ Q).T, out.T
        if m == cluster.output:
            U, Ic = U + Um, add(Ic, inertia(C + C.T, motion))
        else:
            Us[m], coupled[m] = [Um[:, k : k + 1] for k in range(Um.shape[1])], C
    for i, j in inside:
        if i < j:
            H.take(i, j)
    return bare, D, [U[:, k : k + 1] for k in range(U.shape[1])], Ic, Us, coupled


def inertia(B: Array, motion: Motion) -> ArticulatedInertia:
    """A symmetric 6 x 6 matrix as an inertia."""
    xp = motion.xp
    return ArticulatedInertia(xp.symmetric(B[0:3, 0:3]), B[0:3, 3:6], xp.symmetric(B[3:6, 3:6]), xp)


def composite(motion: Motion, cluster: Cluster, IA: dict[int, Inertia]) -> tuple[Array, Array, Inertia]:
    """Composite rigid bodies: H of the cluster's joints, forces F on the output body, and Ic of all at rest on it."""
    xp, t, bodies = motion.xp, motion.model.topology, cluster.bodies
    Ic, at_output = dict(IA), list[Inertia]()
    H: dict[tuple[int, int], Array] = {}
    F: dict[int, Array] = {}
    for i in reversed(bodies):
        force, j = Ic[i] @ motion.S[i], i
        H[i, i] = xp.symmetric(motion.S[i].T @ force) + motion.armature(i)
        while (p := t.parent[j]) in IA:
            force, j = motion.X[j].T @ force, p
            H[i, p] = force.T @ motion.S[p]
            H[p, i] = H[i, p].T
        F[i] = motion.X[j].T @ force
        if (p := t.parent[i]) in IA:
            Ic[p] = add(Ic[p], motion.X[i].congruence(Ic[i]))  # type: ignore[type-var]
        elif p:
            at_output.append(motion.X[i].congruence(Ic[i]))  # type: ignore[type-var]
    nv = {i: motion.model.links[i].joint.nv for i in bodies}
    full = xp.vstack([xp.hstack([H[i, j] if (i, j) in H else xp.zeros(nv[i], nv[j]) for j in bodies]) for i in bodies])
    rest = at_output[0] if at_output else motion.I[0]
    for more in at_output[1:]:
        rest = add(rest, more)
    return full, xp.hstack([F[i] for i in bodies]), rest
