"""The equations that forces of inverse dynamics with constraints fulfil, to be differentiated there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwork.algorithms.derivatives.inverse_derivatives import InverseSolution
from linkwork.algorithms.derivatives.kkt_solution import Multipliers
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends import Array, Ops
from linkwork.backends.numpy_ import RANK
from linkwork.constraints.rows import constraint_rows, jacobian
from linkwork.functions.actuated import RESIDUAL, RESOLVED, ActuatedFunction
from linkwork.functions.differentiation.dense_derivatives import Asking, DenseDerivatives
from linkwork.functions.differentiation.held_joints import held_joints
from linkwork.functions.kinematics import chosen_frames
from linkwork.model import Motion
from linkwork.model.joint_forces import joint_forces
from linkwork.rewrite.rewritten import in_place


class ForceEquations:
    """The motion of an inverse dynamics function in a state, its joint forces, and their solution."""

    def __init__(self, of: ActuatedFunction[Any], xp: Ops, inputs: Mapping[str, Array]) -> None:
        frames = chosen_frames("best", of.backend)
        self.of, self.xp, self.fext, self.a = of, xp, inputs.get("fext"), inputs["a"]
        self.motion = in_place(of.model, frames).motion(inputs["q"], inputs["v"], xp, inputs).classical
        self.passive = joint_forces(of.model, inputs["q"], inputs["v"], xp, inputs)

    def solved(self) -> InverseSolution | AskedForces:
        """The solution."""
        return self.solved_for(self.motion, self._needed)

    @property
    def solved_for(self) -> Callable[[Motion, Array], InverseSolution | AskedForces]:
        """What solves them, for joint forces."""
        least = self.of.least
        assert least is not None
        if isinstance(self.xp, Asking):
            return lambda motion, h: AskedForces(motion, h, least.actuated)
        held = ~least.actuated if least.enough else held_joints(self.of.model, least.actuated)
        how: dict[str, Any] = {"weight": least.weight, "residual": RESOLVED[self.of.dtype]}
        return lambda motion, h: InverseSolution(motion, h, actuated=least.actuated, held=held, **how)

    @property
    def _needed(self) -> Array:
        return rnea(self.motion, self.a, self.fext, self.passive)

    def balance(self, solved: InverseSolution | AskedForces) -> tuple[Array, Array]:
        """h - J^T lam and J y, as functions of the state and of parameters."""
        return self._needed - solved.J.T @ solved.multipliers, solved.J @ solved.y


class AskedForces(Multipliers):
    """Multipliers and y, as inverse_derivatives.py has them, from answers of `Asking`."""

    M: Array

    def __init__(self, motion: Motion, h: Array, actuated: np.ndarray) -> None:
        xp = motion.xp
        assert isinstance(xp, Asking)
        self.xp, self.rows, self.J = xp, constraint_rows(motion), jacobian(motion)
        self.roots = xp.constant(np.ones((motion.model.rows, 1)))
        self.motors = xp.constant(np.diag(actuated.astype(float)))
        xp.questions = {"J": self.J, "h": h}
        y, lam = self.solve(h, xp.zeros(motion.model.rows))
        self.y, self.multipliers = xp.held(y), xp.held(lam)

    def solve(self, r: Array, s: Array) -> tuple[Array, Array]:
        """dy and dlam, for columns."""
        return self.xp.answer(r, s)

    def by_columns(self, r: Array, s: Array) -> tuple[Array, Array]:
        """The derivatives of tau (nv rows, zero without actuators) and lam."""
        y, lam = self.solve(r, s)
        return self.motors @ y, lam


class DenseForceDerivatives(DenseDerivatives):
    """Derivatives of forces of least cost in single states, by singular values."""

    def __call__(self, state: Sequence[np.ndarray]) -> dict[str, np.ndarray] | None:
        """The outputs for these inputs; None where the motors cannot cause the accelerations."""
        least = self.function.of.least  # type: ignore[attr-defined]
        answers = self._unanswered(len(state))
        found = self._evaluated(state, answers, "float64")
        try:
            solve = LeastForcesResolved(found["J"].reshape(-1, len(least.actuated)), least.actuated, least.weight)
        except np.linalg.LinAlgError:
            return None
        if solve.residual(found["h"].reshape(-1, 1)) > RESIDUAL["float64"]:
            return None
        return self._answered(state, answers, found, solve, "float64")


class LeastForcesResolved:
    """Solutions of inverse_derivatives.py's equations by singular values, for numbers.

        A = [B, J^T / w] = U S V^T,    dx = [dtau; w dlam] = V S^-1 U^T r + (1 - V V^T) [0; s / w]

    and A^T dy = dx - [0; s / w].
    """

    def __init__(self, J: np.ndarray, actuated: np.ndarray, weight: float) -> None:
        self.motors, self.weight = int(actuated.sum()), weight
        self.A = np.hstack([np.eye(len(actuated))[:, actuated], J.T / weight])
        u, s, vt = np.linalg.svd(self.A, full_matrices=False)
        kept = s > RANK * (s[0] if s.size else 0.0)
        self.u, self.s, self.v = u[:, kept], s[kept, None], vt[kept].T

    def residual(self, h: np.ndarray) -> float:
        """The part of h that no force causes, relative to it."""
        return float(np.linalg.norm(h - self.u @ (self.u.T @ h))) / max(float(np.linalg.norm(h)), TINY)

    def __call__(self, r: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        given = np.vstack([np.zeros((self.motors, s.shape[1])), s / self.weight])
        x = self.v @ (self.u.T @ (r - self.A @ given) / self.s)
        x = x + self.v @ (self.u.T @ (r - self.A @ (given + x)) / self.s)
        return self.u @ (self.v.T @ x / self.s), (given + x)[self.motors :] / self.weight


TINY = 1e-150
"""The least force that something is relative to."""
