"""The error of ignoring or reflecting rotors: joint torques of a geared leg on sinusoids.

chignoli2023_clusters, section IX-B: all joints follow A sin(2 pi omega t), A = 0.5 rad, omega = 1.5 1/s. On the MIT
Humanoid's leg the paper reports, for one joint, a root mean square error of 4.31 N m (39.2% of the largest torque)
without rotors and 1.04 N m (9.5%) with the diagonal of their reflected inertia. It calls the joint the ankle; with the
published description these are the figures of the knee (4.306 and 1.041 N m), which carries both belts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import linkwork as lw
from linkwork.closure.approximate import reflected_inertia


class TorqueErrors(NamedTuple):
    """Root mean square errors of one joint's torque, N m, and the largest exact torque."""

    joint: str
    unconstrained: float
    diagonal: float
    full: float
    peak: float


def torque_errors(
    model: lw.Model, amplitude: float = 0.5, frequency: float = 1.5, steps: int = 1000, backend: str = "kernel"
) -> list[TorqueErrors]:
    """For each independent joint of a robot with a fixed base and rotors.

    Torques over a period, against `c_rnea`.

    `unconstrained` is the tree without rotors; `diagonal` adds N^2 I to its joints; `full` adds the whole reflected
    inertia, in which belts couple joints.
    """
    tree, W = lw.clusters(model), 2 * np.pi * frequency
    t = np.arange(steps) / (steps * frequency)
    y = np.outer(amplitude * np.sin(W * t), np.ones(len(tree.velocities)))
    yd, ydd = np.outer(amplitude * W * np.cos(W * t), np.ones(len(tree.velocities))), -(W**2) * y
    G = np.array([lw.expand(model, y[0], e).v for e in np.eye(y.shape[1])])  # gears: the same in every configuration
    q, v, a = y @ G, yd @ G, ydd @ G

    exact = lw.inverse_dynamics(model, method="c_rnea", backend=backend)(q, v, a).tau[:, tree.velocities]
    bare, geared = lw.approximate(model, reflected=False), lw.approximate(model)
    none = lw.inverse_dynamics(bare, backend=backend)(y, yd, ydd).tau
    diagonal = lw.inverse_dynamics(geared, backend=backend)(y, yd, ydd).tau
    full = none + ydd @ reflected_inertia(model)
    rms = [np.sqrt(np.mean((x - exact) ** 2, axis=0)) for x in (none, diagonal, full)]
    peak = np.abs(exact).max(axis=0)
    return [
        TorqueErrors(n, float(rms[0][k]), float(rms[1][k]), float(rms[2][k]), float(peak[k]))
        for k, n in enumerate(tree.independent)
    ]
