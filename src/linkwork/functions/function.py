"""What the factories hand out: one dynamics function of one model, on the backend of your choice."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.algorithms.common.iteration import Iteration, Loop, Prox, run, unrolled
from linkwork.algorithms.registry import FD, check_modes, methods
from linkwork.backends import Array, Ops, get
from linkwork.checks import PATH, Refused, checked, choice, optional, real_array, shown, whole, written
from linkwork.errors import InputError, SingularError, not_found, warn_unconverged
from linkwork.functions.judge import Judge, Resolved
from linkwork.lazy import cached_property
from linkwork.model import Model
from linkwork.model.digest import digest
from linkwork.model.model import UNIT_TOLERANCE

if TYPE_CHECKING:
    from linkwork.kernels.iterate import IterativeProgram
    from linkwork.kernels.kernel import Kernel
    from linkwork.kernels.program import Program

BACKENDS = ("kernel", "numpy", "casadi")
PRECISIONS = ("float64", "float32")
OPTIONS = {
    "backend": choice("backend", BACKENDS),
    "dtype": choice("dtype", PRECISIONS),
    "threads": optional(whole(1, 4096, "a number of threads, at least 1")),
}
"""What all factories take, by their kinds."""
SOLVERS = ("forward_dynamics", "impulse")
"""The functions whose results say whether they have converged."""

CERTIFICATE = ("violation", "bound")
"""What an iterative program says of its result: the largest |J a - k|, and what the tolerance is a share of."""

Body = Callable[[Ops, Mapping[str, Array]], "Mapping[str, Array] | Iteration"]
"""An algorithm with named columns in and named matrices out, or with an iteration that ends in (a, lam)."""


class Exact:
    """What results of direct methods have in common with those of iterations: all of them have converged."""

    __slots__ = ()

    @property
    def converged(self) -> np.ndarray:
        return np.ones(self[0].shape[:-1], dtype=bool)  # type: ignore[index]


class ProximalResult(tuple[np.ndarray, ...]):
    """Two results by name, as in `a, lam = result`, and how they were found.

    `iterations` counts solves, `residual` is the largest |J a - k| of any row, and `converged` says whether that is at
    most `Prox.tolerance` of the terms that rows are made of.
    """

    names: tuple[str, ...]
    iterations: np.ndarray
    residual: np.ndarray
    converged: np.ndarray

    def __new__(
        cls,
        names: tuple[str, ...],
        results: Sequence[np.ndarray],
        iterations: np.ndarray,
        residual: np.ndarray,
        converged: np.ndarray,
    ) -> ProximalResult:
        self = super().__new__(cls, results)
        self.names, self.iterations, self.residual, self.converged = names, iterations, residual, converged
        return self

    def __getattr__(self, name: str) -> np.ndarray:
        if name in self.__dict__.get("names", ()):
            return self[self.names.index(name)]
        raise AttributeError(
            f"this result has {', '.join(self.names)}, iterations, residual and converged, but no '{name}'"
        )

    def __repr__(self) -> str:
        parts = ", ".join(f"{n}={x!r}" for n, x in zip(self.names, self, strict=True))
        return (
            f"Result({parts}, iterations={self.iterations!r}, residual={self.residual!r}, converged={self.converged!r})"
        )


class Function:
    """A function of named inputs, for one state `(n,)` or a batch `(B, n)`; returns a named tuple of arrays.

    `backend="numpy"` executes the algorithm as it is written, "casadi" evaluates its trace, "kernel" the machine code
    made of that trace. All three take and give the same. Inputs with a default may be left out. `identity` lists all
    that shapes the function besides its model, method and name; without it, it is traced anew in every process.
    """

    @checked(**OPTIONS)
    def __init__(
        self,
        name: str,
        model: Model,
        inputs: Mapping[str, int],
        body: Body,
        *,
        method: str = "",
        backend: str = "kernel",
        dtype: str = "float64",
        threads: int | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        defaults: Mapping[str, np.ndarray] | None = None,
        prox: Prox | None = None,
        iterated: tuple[str, str] = ("a", "lam"),
        identity: tuple[Any, ...] | None = None,
        judge: Judge | Resolved | None = None,
        retry: bool = False,
    ) -> None:
        if dtype != "float64" and backend != "kernel":
            raise InputError(f"dtype '{dtype}' needs backend='kernel'; the others compute in float64")
        self.name, self.model, self.method, self.backend = name, model, method, backend
        self.inputs, self.defaults, self.prox = dict(inputs), dict(defaults or {}), prox
        self.dtype, self.threads = dtype, threads
        self._body, self._iterated, self._identity = body, iterated, identity
        self.judge, self.retry = judge, retry
        self._shapes = dict(shapes or {})
        self._control = [] if prox is None else [np.array([x], dtype) for x in prox.controls.values()]
        self._tolerance = np.dtype(dtype).type(0.0 if prox is None else prox.tolerance)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n}[{k}]" for n, k in self.inputs.items())
        return f"<{self.name}({inputs}) of '{self.model.name}' by {self.method or self.name}, {self.backend}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        if not named:
            # inputs are checked only if the result is not finite: bad ones never give numbers
            result = self._one(*args)
            if result is not None:
                return result
            if self.backend == "kernel" and (result := self._many(args)) is not None:
                return result
        arrays, batch = self._take(args, named)
        if self.backend == "kernel":
            result, numbers = self._native(arrays)
            return result if numbers and self._sure(result) else self._sound(result, batch, arrays)
        run = self._execute if self.backend == "numpy" else self._evaluate
        states = [run([x if x.ndim == 1 else x[i] for x in arrays]) for i in range(1 if batch is None else batch)]
        if not states:
            # an empty batch still has shapes, which one state tells
            states = [run([np.zeros(n) if name != "q" else self.model.neutral() for name, n in self.inputs.items()])]
        stacked = {n: np.array([s[n] for s in states])[:batch] for n in states[0]}
        shaped = self._shaped({n: x[0] for n, x in stacked.items()} if batch is None else stacked, batch)
        return self._sound(shaped, batch, arrays)

    @staticmethod
    def _one(*args: Any) -> Any:
        """The kernel for one state, as soon as there is one: it tells by itself whether its results are numbers."""
        return None

    def _many(self, args: tuple[Any, ...]) -> Any:
        """The result of a kernel, if it is made of numbers."""
        if "_one" not in self.__dict__ and "_known" in self.__dict__ and _is_row(args) and self._plain:
            self._one = self.kernel.finite()  # type: ignore[method-assign]
        try:
            result, numbers = self._native(args)
        except InputError:
            return None
        return result if numbers and self._sure(result) else None

    @cached_property
    def _plain(self) -> bool:
        """Whether the kernel's results are those of this function as they are."""
        return self.prox is None and all(self._shapes.get(p.name, p.shape) == p.shape for p in self.kernel.outputs)

    def _native(self, arrays: Any) -> tuple[Any, bool]:
        """The kernel's result in the shapes of this function, and whether all of it is made of numbers."""
        out, numbers = self.kernel.judged([*arrays, *self._control])
        if self.prox is not None:
            iterations = out.iterations[..., 0].astype(int) + 1
            return self._certified(out[:2], iterations, out.violation[..., 0], out.bound[..., 0]), numbers
        if not self._plain:
            batch = len(out[0]) if out[0].ndim > len(self.kernel.outputs[0].shape) else None
            return self._shaped(out._asdict(), batch), numbers
        return out, numbers

    def _sure(self, result: Any) -> bool:
        """Whether nothing is to be said of a result."""
        return self.prox is None or bool(result.converged.all())

    def _sound(self, result: Any, batch: int | None, arrays: list[np.ndarray]) -> Any:
        """The result, if all of it is made of numbers that have converged; where not, what the judge says.

        A method that was named keeps its result, and the judge only tells whether it is right after all: nothing moves,
        say, and errors are compared with rounding. What has not converged all the same goes with a warning.
        """
        if self.prox is not None:
            told = np.array(result.residual), np.array(result.converged)
            result = ProximalResult(self._iterated, list(result), result.iterations, *told)
        parts = [*result, result.iterations, result.residual] if self.prox is not None else list(result)
        fine = [np.isfinite(x) for x in parts]
        unsure = [] if self.prox is None else [result.converged]
        lanes: list[Any] = [...] if batch is None else list(range(batch))
        bad = [b for b in lanes if not all(np.all(x[b]) for x in fine)]
        for b in bad:
            verdict = None if self.judge is None else self.judge.independent(self._state(arrays, b))
            if verdict is None:
                raise self._singular("" if batch is None else f" in {len(bad)} of {batch} states")
            for part, found in zip(result, verdict, strict=False):
                part[b] = found
        for b in (b for b in lanes if b not in bad and not all(np.all(x[b]) for x in unsure)):
            assert self.prox is not None
            state = self._state(arrays, b)
            verdict = (
                None
                if not isinstance(self.judge, Judge)
                else (self.judge.independent(state) or self.judge.redundant(state, self.prox.redundant))
            )
            if verdict is None or verdict.residual > self.prox.tolerance * verdict.size:
                continue
            if self.retry:
                result[0][b], result[1][b], result.residual[b] = verdict.a, verdict.lam, verdict.residual
            result.converged[b] = self.retry or (
                verdict.confirms(result[0][b], result[1][b])
                and result.residual[b] <= self.prox.tolerance * verdict.size
            )
        if not self._sure(result):
            warn_unconverged(self.name, self.method, result.converged)
        return result

    def _state(self, arrays: list[np.ndarray], b: Any) -> dict[str, np.ndarray]:
        """The inputs of one state of a batch."""
        return {n: x if x.ndim == 1 else x[b] for n, x in zip(self.inputs, arrays, strict=True)}

    def _singular(self, where: str = "") -> SingularError:
        known = methods(FD).get(self.method)
        if not self.model.constraints or (known is not None and known.redundant and known.prox is None):
            why = "the mass matrix is singular: some joints move no inertia; give their links one, or them an armature"
        else:
            why = (
                "the constraint rows depend on each other, or the posture is singular for them or leaves loops "
                "open. Methods with a proximal term (prox_pv, constrained_aba, ...) or kkt can"
            )
        return SingularError(f"{self.name}: {self.method} found no solution{where}: {why}")

    @cached_property
    def program(self) -> Program | IterativeProgram:
        """The traced and simplified operations."""
        return self.traced()

    def traced(self, limit: int | None = None) -> Program | IterativeProgram:
        """The program, traced now or just before; given up with `Outgrown` if it needs more than `limit` operations."""
        from linkwork.kernels import program_cache
        from linkwork.kernels.hoist import hoist
        from linkwork.kernels.trace import trace

        if (known := program_cache.get(self._content)) is not None:
            return known
        program = trace(self.name, self._written, limit, single=self.dtype == "float32", guard=True)
        program.source = self.casadi
        return program_cache.put(self._content, program if self.prox is None else hoist(program))

    @cached_property
    def _content(self) -> str | None:
        """A name for all that the program depends on."""
        if self._identity is None:
            return None
        return digest(self.name, self.model, self.method, self.dtype, *self._identity)

    @cached_property
    def _known(self) -> Any:
        """The program, or what is remembered of it: a function that was compiled before is not traced again."""
        from linkwork.kernels.program_cache import get_or_trace

        return get_or_trace(self._content, lambda: self.program)

    @cached_property
    def kernel(self) -> Kernel:
        """The native code."""
        from linkwork.kernels.kernel import Kernel

        return Kernel(self._known, dtype=self.dtype, threads=self.threads, result=self._exact)

    @property
    def _exact(self) -> type:
        """What results of the kernel are besides named tuples: those of solvers say that they have converged."""
        return Exact if self.prox is None and self.name in SOLVERS else object

    @property
    def operations(self) -> int:
        """Exact number of arithmetic operations for one state; of an iterative method, up to its first solution."""
        return self.program.operations

    def c_source(self) -> str:
        """The same function as standalone C99."""
        from linkwork.kernels.c_source import c_source

        return c_source(self.program)

    @checked(directory=PATH)
    def export(self, directory: str | Path) -> list[Path]:
        """Write C source, header and CMakeLists.txt; gives the paths."""
        from linkwork.kernels.c_source import export

        return written(directory, lambda: export(self.program, directory))

    @checked(iterations=whole(1, 1000, "a number of solves, at least 1"))
    def casadi(self, iterations: int = 3) -> Any:
        """The same function as a CasADi Function, for every tool that takes one.

        A method that iterates has `iterations` solves written out in it, and the penalty of its `prox`.
        """
        import casadi

        symbols = {n: casadi.SX.sym(n, k) for n, k in self.inputs.items()}
        outputs = self._body(get("casadi"), self._with_penalty(symbols))
        if isinstance(outputs, Iteration):
            found = unrolled(outputs, iterations, self.prox.flat if self.prox else 0.0)
            outputs = dict(zip((*self._iterated, "residual"), found[:3], strict=True))
        dense = [casadi.densify(casadi.SX(x)) for x in outputs.values()]
        return casadi.Function(self.name, list(symbols.values()), dense, list(symbols), list(outputs))

    def _written(self, xp: Ops, symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        """What kernels are made of. An invalid quaternion makes the first output NaN, so that it cannot go unseen."""
        inputs = {n: symbol(n, k) for n, k in self.inputs.items()}
        if self.prox is not None:
            inputs |= {n: symbol(n, 1) for n in ("mu", "flat")}
        outputs = self._body(xp, inputs)
        if isinstance(outputs, Iteration):
            loop = Loop(outputs, inputs["flat"][0, 0])
            first, residual_first = loop.first()
            x = symbol("x", loop.size)
            step, residual = loop.next(x)
            outputs = {
                "x_first": first,
                "residual_first": residual_first,
                "x_next": step,
                "residual": residual,
                **dict(zip((*self._iterated, *CERTIFICATE), loop.finish(x), strict=True)),
            }
        outputs = dict(outputs)
        if "q" in inputs:
            name = self._iterated[0] if self.prox is not None else next(iter(outputs))
            rows, columns = outputs[name].shape
            if rows * columns:
                corner = np.zeros((rows, columns))
                corner[0, 0] = 1.0
                outputs[name] = outputs[name] + _unit_guard(self.model, inputs["q"], xp) * xp.constant(corner)
        return outputs

    @cached_property
    def _casadi(self) -> Any:
        if self.prox is None:
            return self.casadi()
        import casadi

        symbols: dict[str, Any] = {}

        def symbol(name: str, size: int) -> Any:
            symbols[name] = casadi.SX.sym(name, size)
            return symbols[name]

        outputs = {n: casadi.densify(casadi.SX(x)) for n, x in self._written(get("casadi"), symbol).items()}
        return casadi.Function(self.name, list(symbols.values()), list(outputs.values()), list(symbols), list(outputs))

    def _with_penalty(self, inputs: dict[str, Any]) -> dict[str, Any]:
        if self.prox is None:
            return inputs
        return {**inputs, "mu": get("casadi").constant([[self.prox.mu]])}

    def _execute(self, arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
        columns = {n: x[:, None] for n, x in zip(self.inputs, arrays, strict=True)}
        if self.prox is not None:
            columns["mu"] = np.array([[self.prox.mu]])
        try:
            outputs = self._body(get("numpy"), columns)
        except np.linalg.LinAlgError:
            raise self._singular() from None
        if isinstance(outputs, Iteration):
            assert self.prox is not None
            found = run(outputs, self.prox)
            outputs = {
                **dict(zip(self._iterated, found[:2], strict=True)),
                "iterations": np.array(found.iterations),
                "violation": found.residual[0, 0],
                "bound": found.bound[0, 0],
            }
        return {n: np.asarray(x) for n, x in outputs.items()}

    def _evaluate(self, arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
        f = self._casadi
        if self.prox is None:
            return {f.name_out(k): np.array(x) for k, x in enumerate(f.call(list(arrays)))}
        given, used = [*arrays, self.prox.mu, self.prox.flat], 1
        x, residual, *_ = f.call([*given, np.zeros(f.size1_in("x"))])
        while float(residual) > self.prox.tolerance and used < self.prox.max_iterations:
            _, _, x, residual, *_ = f.call([*given, x])
            used += 1
        first, second, *certificate = (np.array(r) for r in f.call([*given, x])[4:])
        return {
            **dict(zip(self._iterated, (first, second), strict=True)),
            "iterations": np.array(used),
            **{n: r.reshape(()) for n, r in zip(CERTIFICATE, certificate, strict=True)},
        }

    def _shaped(self, outputs: Mapping[str, np.ndarray], batch: int | None) -> Any:
        """Columns as vectors, and whatever else `shapes` says, behind the batch axis."""
        lead = () if batch is None else (batch,)
        shaped = {}
        for name, x in outputs.items():
            one = x.shape[len(lead) :]
            one = self._shapes.get(name, one[:1] if len(one) == 2 and one[1] == 1 else one)
            shaped[name] = x.reshape((*lead, *one))
        if self.prox is None:
            return _result_type(tuple(shaped), self._exact)(**shaped)
        results, certificate = ([shaped[n] for n in names] for names in (self._iterated, CERTIFICATE))
        return self._certified(results, shaped["iterations"], *certificate)

    def _certified(
        self, results: Sequence[np.ndarray], iterations: np.ndarray, violation: np.ndarray, bound: np.ndarray
    ) -> ProximalResult:
        """The result of an iteration, which says whether it has converged."""
        return ProximalResult(self._iterated, results, iterations, violation, violation <= self._tolerance * bound)

    def _take(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[np.ndarray], int | None]:
        """The inputs in order, checked; and the batch size, None for one state."""
        names = list(self.inputs)
        if len(args) > len(names):
            raise InputError(f"{self.name} takes {len(names)} inputs ({', '.join(names)}), not {len(args)}")
        given = dict(zip(names, args, strict=False))
        for n, x in named.items():
            if n not in self.inputs:
                raise not_found(f"input of {self.name}", n, names)
            if n in given:
                raise InputError(f"{self.name}: input '{n}' is given twice")
            given[n] = x
        given = {**self.defaults, **given}
        missing = [n for n in names if n not in given]
        if missing:
            raise InputError(f"{self.name} needs {', '.join(missing)} too: call it with ({', '.join(names)})")
        arrays = [self._checked(n, given[n]) for n in names]
        sizes = {len(x) for x in arrays if x.ndim == 2}
        if len(sizes) > 1:
            raise InputError(f"{self.name}: the inputs have different batch sizes {sorted(sizes)}")
        return arrays, sizes.pop() if sizes else None

    def _checked(self, name: str, value: Any) -> np.ndarray:
        try:
            x = np.asarray(real_array(value), dtype=self.dtype)
        except Refused as why:
            raise InputError(f"{self.name}: '{name}' is not an array of numbers ({why or shown(value)})") from None
        n = self.inputs[name]
        if x.ndim not in (1, 2) or x.shape[-1] != n:
            raise InputError(f"{self.name}: '{name}' has shape {x.shape}; this model needs ({n},) or (batch, {n})")
        if not np.isfinite(x).all():
            raise InputError(f"{self.name}: '{name}' has entries that are NaN or infinite")
        if name == "q":
            self.model.check_position(x)
        if name == "active":
            check_modes("forward_dynamics", self.method, self.model, x)
        return x


@cache
def _result_type(names: tuple[str, ...], base: type) -> Any:
    """The named tuple of these names, with another base: one class, not one for each call."""
    return type("Result", (namedtuple("Result", names), base), {"__slots__": ()})


def _is_row(args: tuple[Any, ...]) -> bool:
    """Whether the first input is for one state."""
    return bool(args) and getattr(args[0], "ndim", 0) == 1


def _unit_guard(model: Model, q: Array, xp: Ops) -> Array:
    """Zero, or NaN if a quaternion or a planar [cos sin] of q is not of length one."""
    guard = xp.zeros(1)
    for i in model.topology.links:
        if part := model.unit_part(i):
            off = q[part, :].T @ q[part, :] - 1
            guard = guard + xp.where(off * off < (2 * UNIT_TOLERANCE) ** 2, 0.0, float("nan"))
    return guard
