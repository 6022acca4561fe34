"""Products with Jacobians: `f.jvp()` along changes of inputs, `f.vjp()` against weights of outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from linkwork.backends import Array, Ops
from linkwork.functions.actuated import ActuatedFunction
from linkwork.functions.differentiation.differentiated import Columns, Differentiated, by_columns
from linkwork.functions.differentiation.force_equations import ForceEquations
from linkwork.functions.differentiation.motion_equations import MotionEquations
from linkwork.functions.function import Function
from linkwork.functions.solver_function import SolverFunction
from linkwork.kernels.programs.differentiate import adjoints, tangents
from linkwork.kernels.programs.matrices import Matrix, Tracer


class Forward(Differentiated):
    """Derivatives of all outputs, named d{output}, along changes d{input} of the inputs `wrt`."""

    def __init__(self, of: Function[Any], wrt: Sequence[str] | None) -> None:
        chosen = [n for n in of.inputs if n not in of.defaults] if wrt is None else list(wrt)
        sizes = {"d" + n: of.model.nv if n == "q" else of.inputs[n] for n in chosen if n in of.inputs}
        super().__init__("jvp", of, wrt, sizes)

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        assert isinstance(xp, Tracer)
        seeds = self._changes(xp, inputs)
        if isinstance(self.of, SolverFunction):
            return self._of_solution(xp, inputs, seeds)
        if isinstance(self.of, ActuatedFunction):
            return self._of_least_forces(xp, inputs, seeds)
        outputs = self.of._traced(xp, inputs, None)  # type: ignore[arg-type]
        shapes = {port.name: port.shape for port in self.of._cached_program.outputs}
        found = tangents(xp.values, [r >> 1 for x in outputs.values() for r in x.refs], seeds)
        self._shapes.update({"d" + n: shapes[n] for n in outputs})
        return {"d" + n: by_columns(xp, found, x, slice(0, 1)) for n, x in outputs.items()}

    def _of_solution(self, xp: Tracer, inputs: Mapping[str, Array], seeds: Columns) -> dict[str, Array]:
        p = MotionEquations(self.of, xp, inputs)
        solved = p.solved()
        needed, residual = p.balance(solved)
        seeds |= {r >> 1: {} for r in [*solved.a.refs, *solved.multipliers.refs] if xp.values.value(r) is None}
        found = tangents(xp.values, [r >> 1 for x in (needed, residual) for r in x.refs], seeds)
        b, r = (-by_columns(xp, found, x, slice(0, 1)) for x in (needed, residual))
        x, y = solved.solve(b + inputs["dtau"] if "tau" in self.wrt else b, r)
        if p.jump and "v" in self.wrt:
            x = x + inputs["dv"]
        first, second = self.outputs
        return {"d" + first: x, "d" + second: y * solved.roots}

    def _of_least_forces(self, xp: Tracer, inputs: Mapping[str, Array], seeds: Columns) -> dict[str, Array]:
        """At the solution of inverse_derivatives.py; the residual is rounding."""
        assert isinstance(self.of, ActuatedFunction)
        p = ForceEquations(self.of, xp, inputs)
        solved = p.solved()
        balance = p.balance(solved)
        seeds |= {r >> 1: {} for x in (solved.multipliers, solved.y) for r in x.refs if xp.values.value(r) is None}
        found = tangents(xp.values, [r >> 1 for x in balance for r in x.refs], seeds)
        y, lam = solved.solve(*(by_columns(xp, found, x, slice(0, 1)) for x in balance))
        self._shapes["dresidual"] = ()
        return {"dtau": solved.motors @ y, "dlam": lam, "dresidual": xp.zeros(1)}


class Reverse(Differentiated):
    """Gradients g_{input} of sum w_{output} output, for weights of the outputs (flat)."""

    def __init__(self, of: Function[Any], wrt: Sequence[str] | None) -> None:
        self.of, self.model = of, of.model
        super().__init__("vjp", of, wrt, {"w_" + n: k for n, k in self.outputs.items()})

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        assert isinstance(xp, Tracer)
        if isinstance(self.of, SolverFunction):
            return self._of_solution(xp, inputs)
        if isinstance(self.of, ActuatedFunction):
            return self._of_least_forces(xp, inputs)
        outputs = self.of._traced(xp, inputs, None)  # type: ignore[arg-type]
        return self._swept(xp, inputs, [(x, inputs["w_" + n]) for n, x in outputs.items()])

    def _of_solution(self, xp: Tracer, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The gradient of s (J a - k) - u (M a + c - J^T lam), with [M, J^T; -J, R] [u; -s] = [w_a; w_lam]."""
        p = MotionEquations(self.of, xp, inputs)
        first, second = (inputs["w_" + n] for n in self.outputs)
        solved = p.solved((first, second))
        u, s = solved.adjoint
        needed, residual = p.balance(solved)
        out = self._swept(xp, inputs, [(needed, -u), (residual, s)], [solved.a, solved.multipliers])
        if "tau" in self.wrt:
            out["g_tau"] = u
        if p.jump and "v" in self.wrt:
            out["g_v"] = out["g_v"] + first
        return out

    def _of_least_forces(self, xp: Tracer, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The gradient of u (h - J^T lam) + s J y, for [B B^T, J^T; J, -w^2] [u; -s] = [w_tau; w_lam].

        That is the matrix of inverse_derivatives.py, which is symmetric; weights of the residual do not count.
        """
        assert isinstance(self.of, ActuatedFunction)
        p = ForceEquations(self.of, xp, inputs)
        solved = p.solved()
        u, s = solved.solve(solved.motors @ inputs["w_tau"], -inputs["w_lam"])
        needed, rates = p.balance(solved)
        return self._swept(xp, inputs, [(needed, u), (rates, -s)], [solved.multipliers, solved.y])

    def _swept(
        self,
        xp: Tracer,
        inputs: Mapping[str, Array],
        weighted: Sequence[tuple[Matrix, Matrix]],
        fixed: Sequence[Matrix] = (),
    ) -> dict[str, Array]:
        """The gradients of weighted values, with some held fixed."""
        values, weights = xp.values, by_node(xp, weighted)
        ends = [r for n in self.wrt for r in inputs[n].refs]
        held = [r for x in fixed for r in x.refs if values.value(r) is None]
        found = dict(zip(ends, adjoints(values, weights, [r >> 1 for r in [*ends, *held]]), strict=False))
        out = {}
        for n in self.wrt:
            g = Matrix(values, inputs[n].shape, [found[r] for r in inputs[n].refs])
            out["g_" + n] = self._pulled(inputs["q"], g, xp) if n == "q" else g
        return out


def by_node(xp: Tracer, weighted: Sequence[tuple[Matrix, Matrix]]) -> dict[int, int]:
    """The weights of values, by the nodes of the trace that have them; constants have none."""
    values, weights = xp.values, dict[int, int]()
    for x, w in weighted:
        for r, weight in zip(x.refs, w.refs, strict=True):
            if values.value(r) is None:
                signed = values.neg(weight) if r & 1 else weight
                weights[r >> 1] = values.add(weights[r >> 1], signed) if r >> 1 in weights else signed
    return weights
