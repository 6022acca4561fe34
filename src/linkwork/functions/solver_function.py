"""Functions that solve for accelerations or impulses, with a judge of states without a solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.algorithms.common.iteration import Loop, Prox, run
from linkwork.backends import Array, Ops, get
from linkwork.backends.numpy_ import NUMPY
from linkwork.checks import checked, whole
from linkwork.errors import warn_unconverged
from linkwork.functions.dense_judge import Judge, Rows, Verdict
from linkwork.functions.function import Function, R
from linkwork.functions.method_choice import Choice
from linkwork.functions.penalty_fit import fitted
from linkwork.functions.results import Solution
from linkwork.functions.solver import Solved
from linkwork.lazy import cached_property
from linkwork.model import Model

if TYPE_CHECKING:
    from linkwork.kernels.calls.kernel import Results
    from linkwork.kernels.programs.iterate import IterativeProgram
    from linkwork.kernels.programs.program import Program

RARELY = 1.1
"""Solver iterations up to which a method's further steps compute factors again instead of keeping them."""

KEPT = {n: f"_{n}" for n in ("q", "v", "active", "targets", "softness", "link_rows")}
"""The attribute of a `Solution` with the inputs that residuals are computed from."""


class SolverFunction(Function[R]):
    """A function whose body returns `Solved`.

    `prox` is for methods that iterate (None: the method's own), `judge` solves states without a solution, and with
    `retry` also those that have not converged; `rows` computes the residuals of direct methods.
    """

    factors_mass = True

    def __init__(
        self,
        name: str,
        model: Model,
        inputs: Mapping[str, int],
        body: Callable[[Ops, Mapping[str, Array]], Solved],
        *,
        method: Choice,
        result: type[Any],
        prox: Prox | None,
        judge: Judge | None,
        rows: Rows | None,
        retry: bool,
        **options: Any,
    ) -> None:
        super().__init__(name, model, inputs, body, method=method, result=result, **options)
        self._names: tuple[str, ...] = result._fields
        self._given, self.opinion, self.rows, self.retry = prox, judge, rows, retry

    @cached_property
    def prox(self) -> Prox | None:
        """The settings of a method that iterates; None for others."""
        assert isinstance(self.choice, Choice)
        if self._given is not None:
            return self._given
        usual = self.choice.method.prox_for(self.dtype)
        return usual if usual is None else fitted(usual, self.model, self.choice.method)

    @property
    def _embeds(self) -> bool:
        """Whether the method gives no numbers where loops that it embeds have another rank."""
        return isinstance(self.choice, Choice) and self.choice.method.local

    @checked(iterations=whole(1, 1000, "a number of solver iterations, at least 1"))
    def casadi(self, iterations: int = 3) -> Any:
        """The same function as a CasADi Function, for every tool that takes one.

        A method that iterates is unrolled to `iterations` solver iterations, with the penalty of its `prox`.
        """
        from linkwork.backends.casadi_ import casadi

        symbols = {n: casadi.SX.sym(n, k) for n, k in self.inputs.items()}
        mu = {} if self.prox is None else {"mu": get("casadi").constant([[self.prox.mu]])}
        found = self._body(get("casadi"), {**symbols, **mu})
        pair = found.straight(iterations, self.prox.flat if self.prox else 0.0)
        dense = [casadi.densify(casadi.SX(x)) for x in pair]
        return casadi.Function(self.name, list(symbols.values()), dense, list(symbols), list(self._names))

    # tracing

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        if self.prox is not None:
            inputs |= {n: symbol(n, 1) for n in ("mu", "flat")}
        found = self._body(xp, inputs)
        if found.iteration is None:
            return dict(zip(self._names, found.pair, strict=True))
        from linkwork.kernels.programs.iterate import CERTIFICATE

        loop = Loop(found.iteration, inputs["flat"][0, 0])
        first, residual_first = loop.first()
        x = symbol("x", loop.size)
        step, residual = loop.next(x)
        ends = dict(zip((*self._names, *CERTIFICATE), loop.finish(x), strict=True))
        return {"x_first": first, "residual_first": residual_first, "x_next": step, "residual": residual, **ends}

    def _looped(self, program: Program) -> Program | IterativeProgram:
        from linkwork.kernels.programs.hoist import hoist

        if self.prox is None:
            return program
        assert isinstance(self.choice, Choice)
        return hoist(program, hand_on=self.choice.method.iterations > RARELY)

    @property
    def _settings(self) -> Mapping[str, Any]:
        return {} if self.prox is None else {n: [x] for n, x in self.prox.controls.items()}

    # other backends

    def _execute(self, arrays: list[np.ndarray], xp: Ops = NUMPY) -> dict[str, np.ndarray]:
        columns = {n: x[:, None] for n, x in zip(self.inputs, arrays, strict=True)}
        if self.prox is not None:
            columns["mu"] = np.array([[self.prox.mu]])
        try:
            found = self._body(xp, columns)
        except np.linalg.LinAlgError:
            raise self._singular("", dict(zip(self.inputs, arrays, strict=True))) from None
        if found.iteration is None:
            return {n: np.asarray(x) for n, x in zip(self._names, found.pair, strict=True)}
        assert self.prox is not None
        done = run(found.iteration, self.prox)
        return self._reported(done[:2], done.iterations, done.residual[0, 0], done.bound[0, 0])

    @cached_property
    def _casadi(self) -> Any:
        if self.prox is None:
            return self.casadi()
        from linkwork.backends.casadi_ import casadi

        symbols: dict[str, Any] = {}

        def symbol(name: str, size: int) -> Any:
            symbols[name] = casadi.SX.sym(name, size)
            return symbols[name]

        outputs = {n: casadi.densify(casadi.SX(x)) for n, x in self._written(get("casadi"), symbol).items()}
        return casadi.Function(self.name, list(symbols.values()), list(outputs.values()), list(symbols), list(outputs))

    def _evaluate(self, arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
        if self.prox is None:
            return super()._evaluate(arrays)
        f, given, used = self._casadi, [*arrays, self.prox.mu, self.prox.flat], 1
        x, residual, *_ = f.call([*given, np.zeros(f.size1_in("x"))])
        while float(residual) > self.prox.tolerance and used < self.prox.max_iterations:
            _, _, x, residual, *_ = f.call([*given, x])
            used += 1
        first, second, violation, bound = (np.array(r) for r in f.call([*given, x])[4:])
        return self._reported((first, second), used, float(violation.item()), float(bound.item()))

    def _reported(self, pair: Any, used: int, violation: float, bound: float) -> dict[str, np.ndarray]:
        """What iterate.py writes: solver iterations, the violation, and 1, or NaN if it is too large."""
        assert self.prox is not None
        report = np.array([used, violation, 1.0 if violation <= self.prox.tolerance * bound else np.nan])
        return {**{n: np.asarray(x) for n, x in zip(self._names, pair, strict=True)}, "report": report}

    # results

    def _results(self, names: tuple[str, ...]) -> Results:
        from linkwork.kernels.calls.kernel import Results

        direct = self.rows if self.prox is None else None
        return Results(self._result, (*self._names, "_report"), direct, "_rows", KEPT)

    def _into(self, out: Any) -> list[Any]:
        arrays = super()._into([*out] if isinstance(out, Solution) else out)
        if self.prox is None:
            return arrays
        report = getattr(out, "_report", None)
        lead = np.shape(arrays[0])[:-1]
        return [*arrays, np.empty((*lead, 3), self.dtype) if report is None else report]

    def _sound(self, result: Any, arrays: list[np.ndarray], batch: int | None) -> Any:
        """The result, if all of it is finite and has converged; where not, that of the judge.

        A method named by the user keeps its result, and the judge only decides whether it is right: where nothing
        moves, for example, errors are compared with rounding. What has not converged by that either gives a warning.
        """
        parts, unsure = [*result], np.zeros(0)
        if self.prox is not None:
            parts.append(result._report[..., :2])
            unsure = ~result.converged
        bad = self._odd(parts, batch)
        for b in bad:
            state = self._state(arrays, b)
            verdict = None if self.opinion is None else self.opinion.independent(state)
            if verdict is None and self.opinion is not None and self.prox is not None and not self._embeds:
                verdict = self.opinion.redundant(state, self.prox.redundant)
            longer = self._in_more_digits(state) if self.opinion is None else None
            if verdict is not None:
                self._replace(result, b, verdict)
            elif longer is not None:  # soft rows, which the judge does not know
                for part, x in zip(result, longer, strict=False):
                    part[b] = x.reshape(part[b].shape)
            else:
                raise self._singular("" if batch is None else f" in {len(bad)} of {batch} states", state)
        for b in [b for b in ([...] if batch is None else range(batch)) if unsure.size and b not in bad and unsure[b]]:
            assert self.prox is not None
            if self.opinion is None:
                continue
            state = self._state(arrays, b)
            opinions = (
                self.opinion.independent,
                partial(self.opinion.redundant, least=self.prox.redundant),
                self.opinion.ranked,
            )
            verdict = next((found for found in (ask(state) for ask in opinions) if found and self._meets(found)), None)
            if verdict is None:
                continue
            if self.retry:
                self._replace(result, b, verdict)
            elif (
                verdict.confirms(result[0][b], result[1][b])
                and result.residual[b] <= self.prox.tolerance * verdict.size
            ):
                result._report[b, 2] = 1.0
        if not result.converged.all():
            warn_unconverged(self.name, self.method, result.converged)
        return result

    def _meets(self, verdict: Verdict) -> bool:
        return self.prox is None or verdict.residual <= self.prox.tolerance * verdict.size

    def _replace(self, result: Any, b: Any, verdict: Verdict) -> None:
        """Write the judge's solution over the result of a state."""
        result[0][b], result[1][b] = verdict.a, verdict.lam
        if self.prox is not None:
            used = np.nan_to_num(result._report[b, 0])
            result._report[b] = [used, verdict.residual, 1.0 if self._meets(verdict) else np.nan]
