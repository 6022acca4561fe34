"""Parameters that fit weighted data best among those that bodies can have.

    minimise  |W pi(x) - z|^2 + |(x - x0) / scale|^2

over log-Cholesky parameters of links (model/log_cholesky.py: any ten numbers are a body that can exist), and over
parameters of joints, which are at least zero; by Gauss-Newton with Levenberg's damping. Rucker and Wensing, "Smooth
parameterization of rigid-body inertia", RA-L 2022.
"""

from __future__ import annotations

import numpy as np

from linkwork.errors import InputError
from linkwork.functions.identification.base_parameters import triangle
from linkwork.model import Model
from linkwork.model.body import TRIANGLE
from linkwork.model.log_cholesky import ABOVE, from_log_cholesky, log_cholesky
from linkwork.model.parameter_vector import parameter_vector

ITERATIONS, CONVERGED = 200, 1e-10
"""Of Gauss-Newton, until the cost falls by less than this share of it."""

DAMPING, MOST_DAMPING = 1e-3, 1e12
"""Levenberg's, in units of the prior: at the start, and where no step is better."""

ALIKE = ("free", "spherical", "planar")
"""Joints whose damping, springs and armature are tied to each other, and stay as they are."""


class PhysicalFit:
    """The problem for data [W z] in units of their noise; `kept` names links without volume."""

    def __init__(self, model: Model, groups: tuple[str, ...], Wz: np.ndarray, spread: float) -> None:
        self.W, self.z, self.start = Wz[:, :-1], Wz[:, -1], parameter_vector(model, groups)
        self.kept, self.bodies, self.single = list[str](), list[int](), list[int]()
        x0, scale, at = list[float](), list[float](), 0
        for group in groups:
            for link in model.links[1:]:
                first, at = at, at + (10 if group == "inertia" else link.joint.nv)
                if group != "inertia":
                    self.single += range(first, at) if link.joint.kind not in ALIKE else []
                elif (x := _numbers(self.start[first:at])) is None:
                    self.kept.append(link.name)
                else:
                    size = float(np.exp(x[1:4].mean()))  # of the body: lengths among x are as uncertain as it is large
                    self.bodies.append(first)
                    x0 += x.tolist()
                    scale += [spread] * 4 + [spread * size] * 6
        for k in self.single:
            effect, all_of_it = float(np.linalg.norm(self.W[:, k])), float(np.linalg.norm(self.z))
            x0.append(float(self.start[k]))
            scale.append(spread * max(float(self.start[k]), all_of_it / effect if effect and all_of_it else 1.0))
        self.x0, self.scale, self.first_single = np.array(x0), np.array(scale), 10 * len(self.bodies)

    def parameters(self, x: np.ndarray) -> np.ndarray:
        """pi(x)."""
        pi, n = self.start.copy(), self.first_single
        for at, body in zip(self.bodies, from_log_cholesky(x[:n].reshape(-1, 10)), strict=True):
            pi[at : at + 10] = body
        pi[self.single] = x[n:]
        return pi

    def residual(self, x: np.ndarray) -> np.ndarray:
        """What is squared and summed."""
        return np.concatenate([self.W @ self.parameters(x) - self.z, (x - self.x0) / self.scale])

    def slope(self, x: np.ndarray) -> np.ndarray:
        """The derivative of the residual by x."""
        columns = [
            self.W[:, at : at + 10] @ from_log_cholesky_slope(x[10 * k : 10 * (k + 1)])
            for k, at in enumerate(self.bodies)
        ]
        return np.vstack([np.hstack([*columns, self.W[:, self.single]]), np.diag(1 / self.scale)])

    def solved(self) -> tuple[np.ndarray, int, bool]:
        """pi, the number of iterations, and whether they converged."""
        x, r, damping, n = self.x0, self.residual(self.x0), DAMPING, self.first_single
        for k in range(1, ITERATIONS + 1):
            J = self.slope(x)
            # parameters of joints that are zero, and would become negative, stay there
            free = np.ones(len(x), dtype=bool)
            free[n:] = (x[n:] > 0) | ((J.T @ r)[n:] < 0)
            while True:
                step = np.zeros(len(x))
                step[free] = _damped(J[:, free], r, np.sqrt(damping) / self.scale[free])
                trial = np.concatenate([(x + step)[:n], np.maximum((x + step)[n:], 0.0)])
                with np.errstate(over="ignore", invalid="ignore"):
                    new = self.residual(trial)
                    fall = float(r @ r - new @ new)
                if fall >= 0 or damping > MOST_DAMPING:
                    break
                damping *= 10
            if fall >= 0:
                x, r, damping = trial, new, damping / 10
            if not fall > CONVERGED * (r @ r):
                return self.parameters(x), k, True
        return self.parameters(x), ITERATIONS, False


def from_log_cholesky_slope(x: np.ndarray) -> np.ndarray:
    """The derivative of ten inertial parameters by ten log-Cholesky ones, of P = e^2a U U^T, 10 x 10."""
    U, dU = np.eye(4), np.zeros((10, 4, 4))
    for k in range(3):
        U[k, k] = dU[1 + k, k, k] = np.exp(x[1 + k])
    for (i, j), n in zip(ABOVE, range(4, 10), strict=True):
        U[i, j], dU[n, i, j] = x[n], 1.0
    dU[0] = U
    half = np.exp(2 * x[0]) * (dU @ U.T)
    dP = half + half.swapaxes(1, 2)
    S = dP[:, :3, :3]
    I = np.trace(S, axis1=1, axis2=2)[:, None, None] * np.eye(3) - S
    return np.stack([dP[:, 3, 3], *(dP[:, k, 3] for k in range(3)), *(I[:, i, j] for i, j in TRIANGLE)])


def _damped(J: np.ndarray, r: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """The step that minimises |J step + r|^2 + |damping step|^2, by the triangle of all columns."""
    n = len(damping)
    R = triangle(np.vstack([np.column_stack([J, -r]), np.diag(np.append(damping, 0.0))[:n]]))
    return np.asarray(np.linalg.solve(R[:n, :n], R[:n, n]))


def _numbers(inertia: np.ndarray) -> np.ndarray | None:
    """The log-Cholesky parameters of a link, or None if no body with volume has this inertia."""
    try:
        return log_cholesky(inertia)
    except InputError:
        return None
