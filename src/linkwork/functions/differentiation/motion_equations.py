"""The equations of motion that a solution fulfils, to be differentiated there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from linkwork.algorithms.derivatives.kkt_solution import Equations, Implicit
from linkwork.algorithms.derivatives.limb_solution import LimbSolution
from linkwork.algorithms.derivatives.propagated_solution import Swept
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends import Array, Ops
from linkwork.functions.differentiation.dense_derivatives import Asked, Asking
from linkwork.functions.differentiation.independent_rows import vanishing_rows
from linkwork.functions.function import Function
from linkwork.functions.kinematics import chosen_frames
from linkwork.functions.softness import felt_softness
from linkwork.functions.solver_function import SolverFunction
from linkwork.model import Motion
from linkwork.model.joint_forces import joint_forces
from linkwork.rewrite.rewritten import in_place

S = TypeVar("S", Implicit, LimbSolution)


class MotionEquations:
    """The equations of a solver function in a state: its motion, joint forces, forces on links, softness."""

    def __init__(self, of: Function[Any], xp: Ops, inputs: Mapping[str, Array]) -> None:
        assert isinstance(of, SolverFunction)
        rows, at = of.rows, None if of.rows is None else of.rows.at
        motion = in_place(of.model, chosen_frames("best", of.backend)).motion(inputs["q"], inputs["v"], xp, inputs)
        self.passive = None if at is not None else joint_forces(of.model, inputs["q"], inputs["v"], xp, inputs)
        self.jump = at is not None
        self.motion = (motion if at is None else at(motion)).classical
        self.tau = inputs["tau"] if "tau" in inputs else xp.zeros(of.model.nv)
        self.fext, self.active = inputs.get("fext"), inputs.get("active")
        self.softness = None if rows is None else felt_softness(of.model, rows.softness, inputs, xp)
        self.xp, self.inputs = xp, inputs
        self.vanishing = vanishing_rows(of.model)

    @property
    def forces(self) -> dict[int, Array]:
        """External forces on links, in their coordinates."""
        return forces_on_links(self.motion, self.fext)

    def solved(self, weights: tuple[Array, Array] | None = None) -> Swept | Asked:
        """The solution, as exact as its derivatives are; with `weights` of its outputs the adjoint one, too."""
        if isinstance(self.xp, Asking):
            return Asked(self._equations, weights)
        m, at_rest, b = self.motion, self.motion.accelerations(None), self.motion.bias(self.fext)
        forces = {i: -(m.I[i] @ at_rest[i] + b[i]) for i in m.model.topology.links}
        tau = self.tau if self.passive is None else self.tau + self.passive
        return Swept(m, tau, forces, self.softness, self.active, weights, self.vanishing)

    def solved_by(self, solver: type[S]) -> S | Asked:
        """The solution by one of the solvers, with M and c by link recursions."""
        if isinstance(self.xp, Asking):
            return Asked(self._equations)
        return solver(self._equations, vanishing=self.vanishing)

    @property
    def _equations(self) -> Equations:
        c = rnea(self.motion, None, self.fext, self.passive)
        return Equations(self.motion, crba(self.motion), c, self.tau, self.softness, self.active)

    def balance(self, solved: Implicit | LimbSolution | Asked) -> tuple[Array, Array]:
        """M a + c - J^T lam and J a + R lam - k, as functions of the state and of parameters."""
        motion, xp = self.motion, self.xp
        needed = self._needed(solved)
        a, residual = motion.accelerations(solved.a), [xp.zeros(0)]
        for r in solved.rows:
            total = sum((K @ a[l] for l, K in r.links.items()), -r.k)
            for i, G in r.joints.items():
                total = total + G @ solved.a[motion.model.topology.v_slices[i], :]
            residual.append(total)
        if self.softness is not None:
            soft = zip(self.softness, solved.by_constraint, strict=True)
            residual[1:] = [r + R * y for r, (R, y) in zip(residual[1:], soft, strict=True)]
        return needed, xp.vstack(residual)

    def _needed(self, solved: Implicit | LimbSolution | Asked) -> Array:
        """M a + c - J^T lam: constraint forces act on links, which takes fewer operations than J does."""
        pulls, joints, xp = dict[int, Array](), dict[int, Array](), self.xp
        for r, y in zip(solved.rows, solved.by_constraint, strict=True):
            for into, parts in ((pulls, r.links), (joints, r.joints)):
                for i, K in parts.items():
                    into[i] = into[i] + K.T @ y if i in into else K.T @ y
        needed = rnea(self.motion, solved.a, self.fext, self.passive, pulls)
        if not joints:
            return needed
        spans = enumerate(self.motion.model.topology.v_slices)
        return needed - xp.vstack([joints.get(i, xp.zeros(s.stop - s.start)) for i, s in spans])


def forces_on_links(motion: Motion, fext: Array | None) -> dict[int, Array]:
    """External forces on links, in their coordinates."""
    if fext is None:
        return {}
    return {i: motion.felt(i, fext[6 * (i - 1) : 6 * i, :]) for i in motion.model.topology.links}
