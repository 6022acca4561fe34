"""Derivatives of second order as products: d(vjp) / dx dx, forward over reverse, never a tensor.

For g = vjp(x, w), the gradient of sum w y(x), it is the derivative of g along a change of x: tangents of the reverse
sweep, operation by operation. For solutions, as in `derivative_products.Reverse`, with

    K [a; lam] = [tau - c; k],    K [u; s] = [w_a; -w_lam],    K = [M, -J^T; J, R]
    g = dL/dx,    L = s (J a + R lam - k) - u (M a + c - J^T lam)

and the changes of all four by the same factor,

    K [da; dlam] = [dtau; 0] - d(K [a; lam] + [c; -k])    for fixed a, lam,
    K [du; ds]   = -d(K [u; s])                           for fixed u, s,

the tangents of g have seeds in x, a, lam, u and s: two more solves, and nothing is differentiated through a factor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from linkwork.algorithms.derivatives.kkt_solution import Implicit
from linkwork.backends.ops import Array, Ops
from linkwork.functions.differentiation.dense_derivatives import Asked
from linkwork.functions.differentiation.derivative_products import Reverse
from linkwork.functions.differentiation.differentiated import Columns, Differentiated, by_columns
from linkwork.functions.differentiation.motion_equations import MotionEquations
from linkwork.functions.differentiation.row_slopes import put
from linkwork.functions.function import Function
from linkwork.functions.solver_function import SolverFunction
from linkwork.kernels.programs.differentiate import tangents
from linkwork.kernels.programs.matrices import Matrix, Tracer
from linkwork.model import Motion


class SecondOrder(Reverse):
    """Changes h_{input} of the gradients of sum w_{output} output, along changes d{input}."""

    def __init__(self, of: Function[Any], wrt: Sequence[str] | None) -> None:
        self.of, self.model = of, of.model
        weights = {"w_" + n: k for n, k in self.outputs.items()}
        chosen = [n for n in of.inputs if n not in of.defaults] if wrt is None else list(wrt)
        changes = {"d" + n: of.model.nv if n == "q" else of.inputs[n] for n in chosen if n in of.inputs}
        Differentiated.__init__(self, "hvp", of, wrt, {**weights, **changes})

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        assert isinstance(xp, Tracer)
        if isinstance(self.of, SolverFunction):
            return self._along(xp, inputs)
        gradients = super()._traced(xp, inputs, symbol)
        return _renamed(_changed(xp, list(gradients.values()), self._changes(xp, inputs)), gradients)

    def _along(self, xp: Tracer, inputs: Mapping[str, Array]) -> dict[str, Array]:
        p = MotionEquations(self.of, xp, inputs)
        first, second = (inputs["w_" + n] for n in self.outputs)
        solved, changes = p.solved((first, second)), self._changes(xp, inputs)
        u, s = map(xp.held, solved.adjoint)

        # how the solution and the multipliers of the gradient change: a solve each
        held = _still(solved.a, solved.multipliers)
        b, r = (-x for x in _changed(xp, p.balance(solved), {**changes, **held}))
        da, dy = solved.solve(b + inputs["dtau"] if "tau" in self.wrt else b, r)
        du, ds = solved.solve(*(-x for x in _changed(xp, _product(p, solved, u, s), {**changes, **_still(u, s)})))

        # the gradient by what it depends on
        needed, residual = p.balance(solved)
        gradients = self._swept(xp, inputs, [(needed, -u), (residual, s)], [solved.a, solved.multipliers])
        seeds = {**changes, **held, **_still(u, s)}
        for value, change in ((solved.a, da), (solved.multipliers, dy), (u, du), (s, ds)):
            put(seeds, value, 0, change)
        out = _renamed(_changed(xp, list(gradients.values()), seeds), gradients)
        if "tau" in self.wrt:
            out["h_tau"] = du
        return out


def _product(p: MotionEquations, solved: Implicit | Asked, x: Array, y: Array) -> tuple[Array, Array]:
    """M x - J^T y and J x + R y, as functions of the state and of parameters."""
    motion, xp, t = p.motion, p.xp, p.motion.model.topology
    forces, a = _mass_times(motion, x)
    rows = [xp.zeros(0)]
    for r in solved.rows:
        total = sum((K @ a[l] for l, K in r.links.items()), 0 * r.k)
        rows.append(sum((G @ x[t.v_slices[i], :] for i, G in r.joints.items()), total))
    damped = xp.vstack(rows) if p.softness is None else xp.vstack(rows) + xp.vstack(p.softness) * y
    return forces - solved.row_forces(y), damped


def _mass_times(motion: Motion, x: Array) -> tuple[Array, list[Array]]:
    """M x, and the accelerations of links that x alone would cause."""
    t, xp = motion.model.topology, motion.xp
    a = [xp.zeros(6)]
    for i in t.links:
        a.append(motion.X[i] @ a[t.parent[i]] + motion.S[i] @ x[t.v_slices[i], :])
    f = [motion.I[i] @ a[i] for i in range(len(a))]
    tau = [xp.zeros(0)] * len(a)
    for i in reversed(t.links):
        tau[i] = motion.S[i].T @ f[i]
        if motion.has_armature(i):
            tau[i] = tau[i] + motion.armature(i) @ x[t.v_slices[i], :]
        f[t.parent[i]] = f[t.parent[i]] + motion.X[i].T @ f[i]
    return xp.vstack(tau), a


def _still(*values: Matrix) -> Columns:
    """Seeds for values that do not change."""
    return {r >> 1: {} for value in values for r in value.refs if value.values.value(r) is None}


def _changed(xp: Tracer, values: Sequence[Matrix], seeds: Columns) -> list[Matrix]:
    """The tangents of columns."""
    found = tangents(xp.values, [r >> 1 for value in values for r in value.refs], seeds)
    return [by_columns(xp, found, value, slice(0, 1)) for value in values]


def _renamed(values: Sequence[Array], like: Mapping[str, Array]) -> dict[str, Array]:
    return {"h_" + name.removeprefix("g_"): value for name, value in zip(like, values, strict=True)}
