"""CasADi functions that look like dynamics, and random ones that do not."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from linkwork.kernels.programs.from_casadi import read_program
from linkwork.kernels.programs.iterate import IterativeProgram


def chain(links: int) -> ca.Function:
    """The recursions of a planar-ish chain: rotations, products, a division per link, forward and backward."""
    q, v, tau = (ca.SX.sym(name, links) for name in ("q", "v", "tau"))
    p, w = ca.SX([1.0, 0.5, -0.25]), ca.SX.zeros(3)
    down = []
    for i in range(links):
        c, s = ca.cos(q[i]), ca.sin(q[i])
        rotation = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))
        if i % 2:
            rotation = ca.vertcat(ca.horzcat(1, 0, 0), ca.horzcat(0, c, -s), ca.horzcat(0, s, c))
        w = rotation @ w + ca.vertcat(0, 0, v[i])
        p = 0.5 * (rotation @ p) + 0.1 * ca.cross(w, ca.vertcat(0.3, 0.2, 0.1)) + ca.vertcat(0.1, 0.2, 0.3)
        down.append((rotation, p, w))
    inertia, force, out = ca.SX.eye(3), ca.SX.zeros(3), []
    for i in reversed(range(links)):
        rotation, p, w = down[i]
        u = inertia @ ca.vertcat(1, 0.5, 0.25)
        d = 1.5 + ca.dot(u, u)
        out.append((tau[i] - ca.dot(u, force) + ca.dot(p, w)) / d)
        inertia = rotation.T @ (inertia - (u @ u.T) / d) @ rotation / 2 + ca.SX.eye(3)
        force = rotation.T @ (force + u * out[-1]) / 2 + p
    outputs = [ca.vertcat(*reversed(out)), ca.densify(inertia), force]
    return ca.Function("chain", [q, v, tau], outputs, ["q", "v", "tau"], ["a", "I", "f"])


def states(links: int, batch: int | None, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    shape = (links,) if batch is None else (batch, links)
    return [rng.normal(size=shape) for _ in range(3)]


def everything() -> ca.Function:
    """One output per operation that kernels have; matrices in and out, so that row order matters."""
    x, y, m = ca.SX.sym("x", 4), ca.SX.sym("y", 4), ca.SX.sym("m", 2, 3)
    a, b = x[0], y[0]
    pieces = [
        a + b, a - b, -a, a * b, a / b, a * a, a**3, a**2.5, 2 * a, 1 / a, ca.sqrt(ca.fabs(a)), ca.sin(a), ca.cos(a),
        ca.tan(a), ca.asin(a / 10), ca.acos(b / 10), ca.atan(a), ca.atan2(a, b), ca.sinh(a), ca.cosh(a), ca.tanh(a),
        ca.exp(a), ca.log(ca.fabs(b)), ca.expm1(a), ca.log1p(ca.fabs(a)), ca.floor(a), ca.ceil(a), ca.sign(a),
        ca.copysign(a, b), ca.fmin(a, b), ca.fmax(a, b), ca.fmod(a, b), ca.hypot(a, b), a < b, a <= b, a == b, a != b,
        ca.logic_and(a < b, a < 0), ca.logic_or(a < b, a < 0), ca.logic_not(a < b), ca.if_else(a < b, x[1], y[1]),
        ca.if_else(a > 0, a, 0), ca.logic_and(a, b), ca.fabs(a), ca.SX(3.25), x[2], ca.if_else(a, x[3], -y[3]),
        ca.sin(ca.cos(a) + ca.sin(b)), ca.cos(ca.sin(ca.cos(a))),
    ]  # fmt: skip
    outputs = [ca.vertcat(*pieces), m.T @ m, m, ca.SX(2, 2)]
    return ca.Function("everything", [x, y, m], outputs, ["x", "y", "m"], ["all", "mm", "copy", "zero"])


def everything_inputs(batch: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    x, y, m = rng.normal(size=(batch, 4)), rng.normal(size=(batch, 4)), rng.normal(size=(batch, 2, 3))
    x[0], y[0] = 0.0, 1.0  # signs of zero, equal arguments
    if batch > 1:
        x[1] = y[1]
    return [x, y, m]


def random_function(rng: np.random.Generator, size: int) -> ca.Function:
    """A random graph of sums, products, signs and a few others, with much to simplify in it."""
    x = ca.SX.sym("x", 4)
    values = [x[k] for k in range(4)] + [ca.SX(c) for c in (0.0, 1.0, -1.0, 2.0, 0.3)]
    for _ in range(size):
        a, b = (values[k] for k in rng.integers(max(0, len(values) - 30), len(values), 2))
        forms = [
            lambda a=a, b=b: a + b, lambda a=a, b=b: a - b, lambda a=a, b=b: b - a, lambda a=a: -a,
            lambda a=a, b=b: ca.sin(a) * b, lambda a=a, b=b: a * b / 4, lambda a=a, b=b: -(ca.cos(a) * b) - a,
            lambda a=a, b=b: ca.if_else(a < b, ca.sin(a), b), lambda a=a, b=b: a / (2 + b * b) - ca.sin(a) * b,
            lambda a=a, b=b: ca.fmax(a, -b), lambda a=a, b=b: ca.fabs(a - b) / (2 + b * b),
            lambda a=a, b=b: ca.tanh(a * b) + 0.0 * b,
        ]  # fmt: skip
        values.append(forms[rng.integers(len(forms))]())
    return ca.Function("random", [x], [ca.vertcat(*values[-12:])], ["x"], ["y"])


def read_iteration(start: ca.Function, iterate: ca.Function, finish: ca.Function | None = None) -> IterativeProgram:
    """A loop from CasADi functions; where `iterate` reads `x`, the new one is called `x_next`.

    In CasADi an input and an output cannot share a name.
    """
    step = read_program(iterate)
    step = step.renamed([port.name.removesuffix("_next") for port in step.outputs])
    return IterativeProgram(read_program(start), step, None if finish is None else read_program(finish))
