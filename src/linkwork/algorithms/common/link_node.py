"""A joint without loops and its body, eliminated with couplings to neighbours.

    U = IA s,  d = s^T U + armature,  U_n = H_ni s,     then for each degree of freedom, the last first:
    IA <- IA - U U^T / d,    H_ni <- H_ni - U_n U^T / d,    and at the end  IA_p += X^T IA X,  H_np += H_ni X

sathya2025_lcaba_proxbbo, eqs. 30-35; without neighbours Featherstone's articulated bodies (articulated.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkwork.algorithms.common.articulated import Dof, degree_of_freedom
from linkwork.algorithms.common.hessian import Hessian, articulated
from linkwork.algorithms.common.nodes import accumulate
from linkwork.backends.ops import Array
from linkwork.model import Motion
from linkwork.spatial import ArticulatedInertia
from linkwork.structure.clusters import Cluster


@dataclass(frozen=True)
class LinkNode:
    """The eliminated degrees of freedom, U_n of neighbours for each, and inertia and blocks left.

    `Ia` is the articulated inertia behind the joint, `coupled` the blocks H_ni of neighbours n, in link coordinates.
    """

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

    @property
    def at_rest(self) -> LinkNode:
        """The same without velocities and gravity: what forces add."""
        return replace(self, motion=self.motion.at_rest)

    def remains(self) -> tuple[ArticulatedInertia, dict[int, Array]]:
        X, output = self.motion.X[self.body], self.cluster.output
        moved = {n: (X.T @ C.T).T for n, C in self.coupled.items()}
        return X.congruence(self.Ia), {n: B + B.T if n == output else B for n, B in moved.items()}

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

    def propagate(self, F: dict[int, Array], Q: dict[int, Array]) -> tuple[list[Array], dict[int, Array], Array]:
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


def link_node(motion: Motion, cluster: Cluster, H: Hessian, near: tuple[int, ...] = ()) -> LinkNode:
    """Eliminate a joint in its link's frame, the last degree of freedom first."""
    (i,) = cluster.bodies
    dofs, felt = list[Dof](), list[dict[int, Array]]()
    Ia, coupled = articulated(H.own[i]), {n: H.block(n, i) for n in near}
    for k in reversed(range(motion.model.links[i].joint.nv)):
        dof = degree_of_freedom(motion, i, k, Ia)
        U = {n: C @ dof.s for n, C in coupled.items()}
        Ia = Ia.minus(dof.U, dof.V)
        coupled = {n: C - U[n] @ dof.V.T for n, C in coupled.items()}
        dofs.insert(0, dof)
        felt.insert(0, U)
    return LinkNode(motion, cluster, dofs, felt, Ia, coupled)
