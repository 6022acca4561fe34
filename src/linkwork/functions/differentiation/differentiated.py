"""What derivatives of functions share: which inputs they are by, and how these change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linkwork.backends import Array, Ops
from linkwork.backends.numpy_ import NUMPY
from linkwork.errors import InputError, UnsupportedError, not_found
from linkwork.functions.actuated import ActuatedFunction
from linkwork.functions.differentiation.row_slopes import configuration_seeds, put
from linkwork.functions.function import Function
from linkwork.functions.recipes import remade
from linkwork.functions.solver_function import SolverFunction
from linkwork.kernels.programs.differentiate import Tangent
from linkwork.kernels.programs.matrices import Matrix, Tracer
from linkwork.kernels.programs.value_numbering import ZERO
from linkwork.lazy import cached_property
from linkwork.model import Motion

if TYPE_CHECKING:
    from linkwork.functions.differentiation.dense_derivatives import DenseDerivatives

Columns = dict[int, Tangent]
"""By node of a trace, its derivatives by some columns."""


class Differentiated(Function[Any]):
    """Derivatives of a function by some of its inputs; `FIXED` ones have none."""

    FIXED = ("active", "lam0")

    def __init__(self, suffix: str, of: Function[Any], wrt: Sequence[str] | None, more: Mapping[str, int]) -> None:
        if of.backend == "casadi":
            raise UnsupportedError("derivatives are for backend='kernel' or 'numpy'; CasADi has its own: f.casadi()")
        if not of.differentiable:
            raise UnsupportedError(f"derivatives of {of.name} through its contacts are not available")
        if isinstance(of, Differentiated):
            raise UnsupportedError("derivatives of derivatives are not available")
        free = [n for n in of.inputs if n not in self.FIXED]
        chosen = [n for n in free if n not in of.defaults] if wrt is None else list(wrt)
        for n in chosen:
            if n not in free:
                raise not_found(f"input of {of.name} that has derivatives", n, free)
        if not chosen or len({*chosen}) < len(chosen):
            raise InputError(f"wrt names inputs of {of.name}, each once: {', '.join(free)}")
        self.of, self.wrt, self.factors_mass = of, tuple(chosen), of.factors_mass
        self.sizes = {n: of.model.nv if n == "q" else of.inputs[n] for n in chosen}
        identity = None if of._identity is None else (suffix, self.wrt, of.name, self._by, *of._identity)
        super().__init__(
            f"{of.name}_{suffix}",
            of.model,
            {**{n: k for n, k in of.inputs.items() if n not in of.defaults}, **more},
            None,
            backend=of.backend,
            dtype=of.dtype,
            threads=of.threads,
            defaults=of.defaults,
            shapes={n: shape for n, shape in of._shapes.items() if n in of.inputs},
            identity=identity,
        )
        self.inputs.update({n: k for n, k in of.inputs.items() if n in of.defaults})

    @property
    def _by(self) -> str:
        """The method, where results depend on it."""
        return "" if isinstance(self.of, SolverFunction) else self.of.method

    @property
    def outputs(self) -> Mapping[str, int]:
        """The function's outputs, flat."""
        if isinstance(self.of, SolverFunction):
            return dict(zip(self.of._names, (self.model.nv, self.model.rows), strict=True))
        return {port.name: port.size for port in self.of._cached_program.outputs}

    def _guard(self, xp: Ops, inputs: Mapping[str, Array]) -> Array:
        if isinstance(self.of, ActuatedFunction):  # results doubt themselves
            return self.of._guard_of_inputs(xp, inputs)
        return self.of._guard(xp, inputs)

    def _execute(self, arrays: list[np.ndarray], xp: Ops = NUMPY) -> dict[str, np.ndarray]:
        ports = self.program.inputs
        found = self.program.interpret(*(x.reshape(port.shape) for x, port in zip(arrays, ports, strict=True)))
        # the program may have been traced for an equal function
        self._shapes.update({port.name: port.shape for port in self.program.outputs})
        return {port.name: x for port, x in zip(self.program.outputs, found, strict=True)}

    # what machine code cannot resolve

    def _sound(self, result: Any, arrays: list[np.ndarray], batch: int | None) -> Any:
        """The result; in states without one that of singular values, for float32 that of float64."""
        bad = self._odd(list(result), batch)
        if not bad or not isinstance(self.of, SolverFunction | ActuatedFunction):
            return super()._sound(result, arrays, batch)
        if self._in_double is None:
            return self._resolved(result, bad, arrays, batch)
        of_these: Any = ... if batch is None else bad
        given = [x if x.ndim == 1 else x[of_these] for x in arrays]
        shapes = [self._shapes.get(n, x.shape[-1:]) for n, x in zip(self.inputs, given, strict=True)]
        found = self._in_double(*(x.reshape(*x.shape[:-1], *s) for x, s in zip(given, shapes, strict=True)))
        for part, x in zip(result, found, strict=True):
            part[of_these] = x
        return result

    def _resolved(self, result: Any, bad: list[Any], arrays: list[np.ndarray], batch: int | None) -> Any:
        """The result with that of singular values in these states."""
        for b in bad:
            one = [x if x.ndim == 1 else x[b] for x in arrays]
            found = self._dense(one)
            if found is None or not all(np.isfinite(x).all() for x in found.values()):
                where = "" if batch is None else f" in {len(bad)} of {batch} states"
                raise self.of._singular(where, self.of._state(arrays[: len(self.of.inputs)], b))
            for part, x in zip(result, found.values(), strict=True):
                part[b] = x.reshape(part[b].shape)
        return result

    @cached_property
    def _dense(self) -> DenseDerivatives:
        """The same derivatives by dense linear algebra."""
        from linkwork.functions.differentiation.dense_derivatives import DenseDerivatives
        from linkwork.functions.differentiation.force_equations import DenseForceDerivatives

        return (DenseForceDerivatives if isinstance(self.of, ActuatedFunction) else DenseDerivatives)(self)

    @cached_property
    def _in_double(self) -> Function[Any] | None:
        """The same derivatives in float64, of solutions in float32."""
        if self.dtype == "float64" or not (self.recipe and self.of.recipe):
            return None
        module, name, args, named = self.of.recipe
        of = remade(module, name, args, {**named, "dtype": "float64"}, None)
        return cast(Function[Any], remade(*self.recipe[:2], (of, self.wrt), {}, None))

    _on_numpy = None  # a trace has no longer type

    def casadi(self) -> Any:
        raise UnsupportedError("derivatives have no CasADi form; differentiate the function's: f.casadi()")

    # how inputs change

    def _seeds(self, xp: Tracer, inputs: Mapping[str, Array]) -> tuple[Columns, dict[str, slice]]:
        """The derivatives of inputs by their columns, and which columns belong to which."""
        seeds: Columns = {}
        places, start = dict[str, slice](), 0
        for n in self.wrt:
            places[n] = slice(start, start + self.sizes[n])
            if n == "q":
                motion = Motion(self.model, inputs["q"], xp.zeros(self.model.nv), xp)
                for node, tangent in configuration_seeds(motion, inputs["q"]).items():
                    seeds[node] = {start + c: x for c, x in tangent.items()}
            else:
                for k in range(self.sizes[n]):
                    put(seeds, inputs[n][k : k + 1, :], start + k, xp.eye(1))
            start += self.sizes[n]
        return seeds, places

    def _changes(self, xp: Tracer, inputs: Mapping[str, Array]) -> Columns:
        """The change of each entry of the inputs, for the changes that are inputs: one column."""
        seeds: Columns = {}
        for n in self.wrt:
            change = inputs["d" + n]
            put(seeds, inputs[n], 0, self._rate(inputs["q"], change, xp) if n == "q" else change)
        return seeds

    def _rate(self, q: Array, v: Array, xp: Ops) -> Array:
        """dq/dt for a velocity."""
        t = self.model.topology
        parts = [self.model.links[i].joint.rate(q[t.q_slices[i], :], v[t.v_slices[i], :], xp) for i in t.links]
        return xp.vstack([xp.zeros(0), *parts])

    def _pulled(self, q: Array, gradient: Array, xp: Ops) -> Array:
        """The gradient in tangent space, of one by the entries of q."""
        t, parts = self.model.topology, [xp.zeros(0)]
        for i in t.links:
            nv, at = self.model.links[i].joint.nv, t.q_slices[i]
            for k in range(nv):
                rate = self.model.links[i].joint.rate(q[at, :], xp.eye(nv)[:, k : k + 1], xp)
                parts.append(rate.T @ gradient[at, :])
        return xp.vstack(parts)


def by_columns(xp: Tracer, found: Mapping[int, Tangent], x: Matrix, place: slice) -> Matrix:
    """The derivatives of the entries of `x`, row-major, by some columns."""
    refs, neg = list[int](), xp.values.neg
    for r in x.refs:
        tangent = found.get(r >> 1, {})
        refs += [neg(d) if r & 1 else d for d in (tangent.get(c, ZERO) for c in range(place.start, place.stop))]
    return Matrix(xp.values, (len(x.refs), place.stop - place.start), refs)
