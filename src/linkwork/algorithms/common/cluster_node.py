"""A cluster, eliminated from the recursion: one independent velocity after the other, the last first.

    vdot = G yddot + g,     Ic <- Ic - U_k U_k^T / d_k,    U_j <- U_j - l_kj U_k,   D_ij <- D_ij - l_ki D_kj,
                                                                                             l_kj = D_kj / d_k

chignoli2023_clusters, algorithm 1; D, U, Ic are those of cluster_inertia.py. Neighbours' U_n change as U does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkwork.algorithms.common.cluster_inertia import ClusterInertia, cluster_inertia
from linkwork.algorithms.common.cluster_sweeps import accelerations, armature, by_joint, forces
from linkwork.algorithms.common.embedding import Embedding
from linkwork.algorithms.common.hessian import Hessian, Inertia, articulated
from linkwork.algorithms.common.nodes import accumulate
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.structure.clusters import Cluster


@dataclass(frozen=True)
class Pivot:
    """An eliminated independent velocity: U, V = U / d, 1 / d, l_kj of those that follow, neighbours' U."""

    U: Array
    V: Array
    d_inv: Array
    l: list[Array]
    felt: dict[int, Array]


@dataclass(frozen=True)
class ClusterNode:
    """A cluster whose joints constraints tie together.

    `inertia` is what it was before its freedoms were eliminated, `Ia` what the output body gets of it then, `coupled`
    what is left between neighbours and output body.
    """

    motion: Motion
    cluster: Cluster
    embedding: Embedding
    inertia: ClusterInertia
    freedoms: list[Pivot]
    Ia: Inertia
    coupled: dict[int, Array]

    @property
    def pivots(self) -> list[Array]:
        return [f.d_inv for f in self.freedoms]

    @property
    def felt(self) -> list[dict[int, Array]]:
        return [f.felt for f in self.freedoms]

    @property
    def at_rest(self) -> ClusterNode:
        """The same without velocities and gravity: what forces add."""
        still = replace(self.embedding, g=self.motion.xp.zeros(self.embedding.g.shape[0]))
        return replace(self, motion=self.motion.at_rest, embedding=still)

    def remains(self) -> tuple[Inertia, dict[int, Array]]:
        return self.Ia, self.coupled

    def drive(self, tau: Array, p: list[Array]) -> tuple[list[Array], dict[int, Array]]:
        rest, passed = self._rest(), dict[int, Array]()
        f = {i: IA @ rest[i] + p[i] for i, IA in self.inertia.bodies.items()}
        for (n, i), B in self.inertia.pairs.items():
            accumulate(f if n in f else passed, n, B @ rest[i])
        Q, out = forces(self.motion, self.cluster, f)
        needed = Q + armature(self.motion, self.cluster) @ self.embedding.g - tau
        e, at_output = self._pass_freedoms(self.embedding.G.T @ needed, out)
        self._push_neighbours(e, passed)
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
        return vdot, accelerations(self.motion, self.cluster, a[self.cluster.output], vdot, drift=True)

    def propagate(self, F: dict[int, Array], Q: dict[int, Array]) -> tuple[list[Array], dict[int, Array], Array]:
        columns = next(iter((F or Q).values())).shape[1]
        zero, rest = self.motion.xp.zeros(6, columns), self._rest()
        felt, out = forces(self.motion, self.cluster, {i: F.get(i, zero) for i in self.cluster.bodies}, Q)
        push, beyond = self._pass_freedoms(self.embedding.G.T @ felt, out)
        passed = {self.cluster.output: beyond}
        self._push_neighbours(push, passed)
        power = sum((f.T @ rest[i] for i, f in F.items()), self.motion.xp.zeros(columns))
        g = by_joint(self.motion, self.cluster, self.embedding.g)
        return push, passed, sum((f.T @ g[i] for i, f in Q.items()), power)

    def respond(self, e: list[Array], A: Array) -> dict[int, Array]:
        y: list[Array] = []
        for f, eT in zip(self.freedoms, e, strict=True):
            yk = f.d_inv * eT - f.V.T @ A
            for l, done in zip(f.l, y, strict=True):
                yk = yk - l * done
            y.append(yk)
        vdot = self.embedding.G @ self.motion.xp.vstack([self.motion.xp.zeros(0, A.shape[1]), *y])
        return accelerations(self.motion, self.cluster, A, vdot)

    def needed(self, a: list[Array], p: list[Array]) -> dict[int, Array]:
        """The force that each joint transmits to its body and all behind it, before that of its children."""
        f = {i: IA @ a[i] + p[i] for i, IA in self.inertia.bodies.items()}
        for (n, i), B in self.inertia.pairs.items():
            if n in f:
                f[n] = f[n] + B @ a[i]
            else:
                f[i] = f[i] + B.T @ a[n]
        return f

    def _rest(self) -> dict[int, Array]:
        """Accelerations of the bodies that velocities alone cause on a resting output body."""
        return accelerations(self.motion, self.cluster, self.motion.xp.zeros(6), self.embedding.g, drift=True)

    def _pass_freedoms(self, e: Array, F: Array) -> tuple[list[Array], Array]:
        """Eliminate the independent velocities from forces on them and on the output body."""
        left = [e[k : k + 1, :] for k in range(len(self.freedoms))]
        for k, f in reversed(list(enumerate(self.freedoms))):
            F = F - f.V @ left[k]
            for j, l in enumerate(f.l):
                left[j] = left[j] - l * left[k]
        return left, F

    def _push_neighbours(self, e: list[Array], passed: dict[int, Array]) -> None:
        """Add to `passed` the forces on neighbours that eliminating freedoms with forces e causes."""
        for f, ek in zip(self.freedoms, e, strict=True):
            for n, Un in f.felt.items():
                accumulate(passed, n, -(Un @ (f.d_inv * ek)))


def cluster_node(motion: Motion, cluster: Cluster, e: Embedding, H: Hessian, near: tuple[int, ...] = ()) -> ClusterNode:
    """Eliminate a cluster's independent velocities one at a time, the last first."""
    whole, n = cluster_inertia(motion, cluster, e.G, H, near), len(cluster.independent)
    d = [[whole.D[i, j] for j in range(n)] for i in range(n)]
    U, Us = _columns(whole.U), {m: _columns(Um) for m, Um in whole.near.items()}
    Ia, coupled, freedoms = articulated(whole.Ic), dict(whole.coupled), list[Pivot]()
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
        if cluster.output:
            Ia = Ia.minus(f.U, f.V)
        coupled = {m: C - f.felt[m] @ f.V.T for m, C in coupled.items()}
        freedoms.insert(0, f)
    return ClusterNode(motion, cluster, e, whole, freedoms, Ia, coupled)


def _columns(A: Array) -> list[Array]:
    return [A[:, k : k + 1] for k in range(A.shape[1])]
