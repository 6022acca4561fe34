"""What the articulated body recursion needs of each node of a cluster tree: a joint with its body, or a cluster.

A cluster on its output body is a small mechanism. With IA of its bodies (all behind them included), the composite
rigid body algorithm gives the inertia H that its joints feel, the forces F on the output body that they cause, and the
inertia Ic that the output body feels when they rest. Joints follow vdot = G yddot + g, which leaves

    D = G^T (H + armature) G,   U = F G,    then one independent velocity after the other, the last first:
    Ic <- Ic - U_k U_k^T / d_k,    U_j <- U_j - l_kj U_k,   D_ij <- D_ij - l_ki D_kj,    l_kj = D_kj / d_k .

chignoli2023_clusters, eqs. 17-26 and algorithm 1, whose cluster subspace S_k is not formed: its products are those of
H, F and G. A joint without loops is eliminated in its own frame, as in algorithms/tree/articulated.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from linkwork.algorithms.tree.articulated import Dof, eliminate
from linkwork.backends.ops import Array
from linkwork.constraints.clusters import Cluster, Embedding
from linkwork.model import Motion
from linkwork.spatial import ArticulatedInertia, RigidInertia

Inertia = RigidInertia | ArticulatedInertia


class Node(Protocol):
    """One step of the recursion over a cluster tree. Columns of forces and accelerations go through together."""

    cluster: Cluster
    Ia: ArticulatedInertia
    """The inertia that the output body feels."""

    def drive(self, tau: Array, p: dict[int, Array]) -> tuple[list[Array], Array]:
        """Joint forces and link forces p: the force u left to move each freedom, and the output body's share of p."""
        ...

    def accelerate(self, u: list[Array], a: Array) -> tuple[Array, dict[int, Array]]:
        """From the output body's acceleration: vdot of the cluster's joints, accelerations of its bodies."""
        ...

    def carry(self, F: dict[int, Array], Q: dict[int, Array]) -> tuple[list[Array], Array, Array]:
        """Forces F on bodies and Q on joints: what pushes each freedom, what the output body feels, and their power.

        The power is that of accelerations which velocities alone cause, with the output body at rest.
        """
        ...

    def respond(self, e: list[Array], A: Array) -> dict[int, Array]:
        """Accelerations of the bodies that such pushes and the output body's accelerations A cause."""
        ...


@dataclass(frozen=True)
class Single:
    """A joint without loops, and its body."""

    motion: Motion
    cluster: Cluster
    dofs: list[Dof]
    Ia_body: ArticulatedInertia
    Ia: ArticulatedInertia

    @property
    def body(self) -> int:
        return self.cluster.bodies[0]

    @property
    def pivots(self) -> list[Array]:
        return [dof.d_inv for dof in self.dofs]

    def drive(self, tau: Array, p: dict[int, Array]) -> tuple[list[Array], Array]:
        i, pa = self.body, p[self.body]
        u: list[Array] = []
        for k, dof in reversed(list(enumerate(self.dofs))):
            u.insert(0, tau[k : k + 1, :] - dof.s.T @ pa)
            pa = pa + dof.V @ u[0]
        if not self.cluster.output:
            return u, self.motion.xp.zeros(6)
        return u, self.motion.X[i].T @ (pa + self.Ia_body @ self.motion.c[i])

    def accelerate(self, u: list[Array], a: Array) -> tuple[Array, dict[int, Array]]:
        i, vdot = self.body, [self.motion.xp.zeros(0)]
        a = self.motion.X[i] @ a + self.motion.c[i]
        for dof, uk in zip(self.dofs, u, strict=True):
            vdot.append(dof.d_inv * (uk - dof.U.T @ a))
            a = a + dof.s @ vdot[-1]
        return self.motion.xp.vstack(vdot), {i: a}

    def carry(self, F: dict[int, Array], Q: dict[int, Array]) -> tuple[list[Array], Array, Array]:
        i, e = self.body, list[Array]()
        f = F[i] if i in F else self.motion.xp.zeros(6, Q[i].shape[1])
        for k, dof in reversed(list(enumerate(self.dofs))):
            push = dof.s.T @ f
            e.insert(0, push + Q[i][k : k + 1, :] if i in Q else push)
            f = f - dof.V @ e[0]
        return e, self.motion.X[i].T @ f, f.T @ self.motion.c[i]

    def respond(self, e: list[Array], A: Array) -> dict[int, Array]:
        A = self.motion.X[self.body] @ A
        for dof, eT in zip(self.dofs, e, strict=True):
            A = A + dof.s @ (dof.d_inv * eT - dof.V.T @ A)
        return {self.body: A}


@dataclass(frozen=True)
class Pivot:
    """An independent velocity when it was eliminated: U, V = U / d, 1 / d, and l_kj for those that follow."""

    U: Array
    V: Array
    d_inv: Array
    l: list[Array]


@dataclass(frozen=True)
class Loop:
    """A cluster whose joints constraints tie together."""

    motion: Motion
    cluster: Cluster
    embedding: Embedding
    IA: dict[int, Inertia]
    freedoms: list[Pivot]
    Ia: ArticulatedInertia

    @property
    def pivots(self) -> list[Array]:
        return [f.d_inv for f in self.freedoms]

    def drive(self, tau: Array, p: dict[int, Array]) -> tuple[list[Array], Array]:
        rest = self.rest()
        f = {i: self.IA[i] @ rest[i] + p[i] for i in self.cluster.bodies}
        Q, out = self.felt(f)
        e, at_output = self.pass_freedoms(self.embedding.G.T @ (Q + self.armature() @ self.embedding.g - tau), out)
        return [-x for x in e], at_output

    def accelerate(self, u: list[Array], a: Array) -> tuple[Array, dict[int, Array]]:
        y: list[Array] = []
        for f, uk in zip(self.freedoms, u, strict=True):
            yk = f.d_inv * (uk - f.U.T @ a)
            for l, done in zip(f.l, y, strict=True):
                yk = yk - l * done
            y.append(yk)
        vdot = self.embedding.G @ self.motion.xp.vstack([self.motion.xp.zeros(0), *y]) + self.embedding.g
        return vdot, self.moved(a, vdot, drift=True)

    def carry(self, F: dict[int, Array], Q: dict[int, Array]) -> tuple[list[Array], Array, Array]:
        columns = next(iter((F or Q).values())).shape[1]
        zero, rest = self.motion.xp.zeros(6, columns), self.rest()
        felt, out = self.felt({i: F.get(i, zero) for i in self.cluster.bodies}, Q)
        push, beyond = self.pass_freedoms(self.embedding.G.T @ felt, out)
        power = sum((f.T @ rest[i] for i, f in F.items()), self.motion.xp.zeros(columns))
        g = self.by_joint(self.embedding.g)
        return push, beyond, sum((f.T @ g[i] for i, f in Q.items()), power)

    def respond(self, e: list[Array], A: Array) -> dict[int, Array]:
        y: list[Array] = []
        for f, eT in zip(self.freedoms, e, strict=True):
            yk = f.d_inv * eT - f.V.T @ A
            for l, done in zip(f.l, y, strict=True):
                yk = yk - l * done
            y.append(yk)
        return self.moved(A, self.embedding.G @ self.motion.xp.vstack([self.motion.xp.zeros(0, A.shape[1]), *y]))

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
        import numpy as np

        return self.motion.xp.constant(np.diag(np.concatenate(
            [self.motion.model.links[i].armature for i in self.cluster.bodies] + [np.zeros(0)])))

    def moved(self, a: Array, vdot: Array, drift: bool = False) -> dict[int, Array]:
        """Base to tips within the cluster: accelerations of its bodies, with or without velocity products."""
        motion, t = self.motion, self.motion.model.topology
        out, joint = {self.cluster.output: a}, self.by_joint(vdot)
        for i in self.cluster.bodies:
            out[i] = motion.X[i] @ out[t.parent[i]] + motion.S[i] @ joint[i]
            if drift:
                out[i] = out[i] + motion.c[i]
        return out

    def felt(self, f: dict[int, Array], Q: dict[int, Array] | None = None) -> tuple[Array, Array]:
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


def add(A: Inertia, B: Inertia) -> Inertia:
    """The sum, rigid as long as both are."""
    if isinstance(A, RigidInertia) and isinstance(B, RigidInertia):
        return A + B
    return articulated(A) + articulated(B)


def articulated(A: Inertia) -> ArticulatedInertia:
    return A.articulated() if isinstance(A, RigidInertia) else A


def single(motion: Motion, cluster: Cluster, IA: Inertia) -> Single:
    i = cluster.bodies[0]
    Ia, dofs = eliminate(motion, i, articulated(IA))
    at_output = motion.X[i].congruence(Ia) if cluster.output else Ia
    return Single(motion, cluster, dofs, Ia, at_output)


def loop(motion: Motion, cluster: Cluster, e: Embedding, IA: dict[int, Inertia]) -> Loop:
    """The cluster's composite inertias, then its independent velocities one at a time, the last first."""
    xp, t = motion.xp, motion.model.topology
    bodies, Ic, at_output = cluster.bodies, dict(IA), list[Inertia]()
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
    G = e.G
    D, U = xp.symmetric(G.T @ (full @ G)), xp.hstack([F[i] for i in bodies]) @ G
    rest = at_output[0] if at_output else motion.I[0]
    for more in at_output[1:]:
        rest = add(rest, more)
    Ia, freedoms = articulated(rest), list[Pivot]()
    n = len(cluster.independent)
    d = [[D[i, j] for j in range(n)] for i in range(n)]
    Us = [U[:, k : k + 1] for k in range(n)]
    for k in reversed(range(n)):
        d_inv = 1 / d[k][k]
        l = [d[k][j] * d_inv for j in range(k)]
        f = Pivot(Us[k], Us[k] * d_inv, d_inv, l)
        for i in range(k):
            Us[i] = Us[i] - l[i] * Us[k]
            for j in range(i + 1):
                d[i][j] = d[i][j] - l[i] * d[k][j]
                d[j][i] = d[i][j]
        if cluster.output:
            Ia = Ia.minus(f.U, f.V)
        freedoms.insert(0, f)
    return Loop(motion, cluster, e, dict(IA), freedoms, Ia)
