"""What the factories hand out: one dynamics function of one model, on the backend of your choice."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.backends import Array, Ops, get
from linkwork.errors import InputError, not_found
from linkwork.model import Model

if TYPE_CHECKING:
    from linkwork.kernels.kernel import Kernel
    from linkwork.kernels.program import Program

BACKENDS = ("kernel", "numpy", "casadi")
Body = Callable[[Ops, Mapping[str, Array]], Mapping[str, Array]]
"""An algorithm with named columns in and named matrices out, over any backend."""


class Function:
    """A function of named inputs, for one state `(n,)` or a batch `(B, n)`; returns a named tuple of arrays.

    `backend="numpy"` executes the algorithm as it is written, "casadi" evaluates its trace, "kernel" the machine code
    made of that trace. All three take and give the same.
    """

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
    ) -> None:
        if backend not in BACKENDS:
            raise not_found("backend", backend, BACKENDS)
        if dtype not in ("float64", "float32"):
            raise not_found("dtype", dtype, ("float64", "float32"))
        if dtype != "float64" and backend != "kernel":
            raise InputError(f"dtype '{dtype}' needs backend='kernel'; the others compute in float64")
        self.name, self.model, self.method, self.backend = name, model, method, backend
        self.inputs = dict(inputs)
        self.dtype, self.threads = dtype, threads
        self._body = body
        self._shapes = dict(shapes or {})

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n}[{k}]" for n, k in self.inputs.items())
        return f"<{self.name}({inputs}) of '{self.model.name}' by {self.method or self.name}, {self.backend}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        arrays, batch = self._take(args, named)
        if self.backend == "kernel":
            return self._shaped(self.kernel(*arrays), batch)
        run = self._execute if self.backend == "numpy" else self._evaluate
        if batch is None:
            return self._shaped(run(arrays), batch)
        states = [run([x if x.ndim == 1 else x[i] for x in arrays]) for i in range(batch)]
        return self._shaped([np.array([s[k] for s in states]).reshape(batch, *shape)
                             for k, shape in enumerate(self._output_shapes.values())], batch)

    def casadi(self) -> Any:
        """The same function as a CasADi Function, for every tool that takes one."""
        return self._casadi

    @cached_property
    def program(self) -> Program:
        """The traced and simplified operations."""
        from linkwork.kernels.program import Program

        return Program.from_casadi(self._casadi)

    @cached_property
    def kernel(self) -> Kernel:
        """The native code."""
        from linkwork.kernels.kernel import Kernel

        return Kernel(self.program, dtype=self.dtype, threads=self.threads)

    @property
    def operations(self) -> int:
        """Exact number of arithmetic operations for one state."""
        return self.program.operations

    def c_source(self) -> str:
        """The same function as standalone C99."""
        return self.kernel.c_source()

    @cached_property
    def _casadi(self) -> Any:
        import casadi

        symbols = {n: casadi.SX.sym(n, k) for n, k in self.inputs.items()}
        outputs = self._body(get("casadi"), symbols)
        dense = [casadi.densify(casadi.SX(x)) for x in outputs.values()]
        return casadi.Function(self.name, list(symbols.values()), dense, list(symbols), list(outputs))

    @cached_property
    def _output_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each output for one state; columns are vectors."""
        if self.backend == "numpy":
            start = {n: np.zeros((k, 1)) for n, k in self.inputs.items()} | {"q": self.model.neutral()[:, None]}
            shapes = {n: np.shape(x) for n, x in self._body(get("numpy"), start).items()}
        else:
            f = self._casadi
            shapes = {f.name_out(k): (f.size1_out(k), f.size2_out(k)) for k in range(f.n_out())}
        return {n: s if s[1] != 1 else s[:1] for n, s in shapes.items()}

    @cached_property
    def _result(self) -> Any:
        return namedtuple("Result", list(self._output_shapes))  # type: ignore[misc]

    def _execute(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        columns = {n: x[:, None] for n, x in zip(self.inputs, arrays, strict=True)}
        return [np.asarray(x) for x in self._body(get("numpy"), columns).values()]

    def _evaluate(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [np.array(x) for x in self._casadi.call(list(arrays))]

    def _shaped(self, outputs: Any, batch: int | None) -> Any:
        lead = () if batch is None else (batch,)
        shaped = []
        for x, (name, shape) in zip(outputs, self._output_shapes.items(), strict=True):
            shaped.append(np.asarray(x).reshape(*lead, *self._shapes.get(name, shape)))
        return self._result(*shaped)

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
            x = np.asarray(value, dtype=self.dtype)
        except (TypeError, ValueError) as problem:
            raise InputError(f"{self.name}: '{name}' is not an array of numbers ({problem})") from None
        n = self.inputs[name]
        if x.ndim not in (1, 2) or x.shape[-1] != n:
            raise InputError(f"{self.name}: '{name}' has shape {x.shape}; this model needs ({n},) or (batch, {n})")
        if not np.isfinite(x).all():
            raise InputError(f"{self.name}: '{name}' has entries that are NaN or infinite")
        if name == "q":
            check_position(self.model, x)
        return x


def check_position(model: Model, q: np.ndarray) -> None:
    """Refuse quaternions [x y z w] and planar [cos sin] pairs that are not of length one."""
    for i in model.topology.links:
        joint, at = model.links[i].joint, model.topology.q_slices[i]
        if joint.nq == joint.nv:
            continue
        part = q[..., at][..., -4:] if joint.kind != "planar" else q[..., at][..., 2:4]
        length = np.sqrt((part * part).sum(axis=-1))
        if np.any(np.abs(length - 1) > 1e-4):
            what = "[cos sin]" if joint.kind == "planar" else "quaternion [x y z w]"
            raise InputError(
                f"q: the {what} of joint '{model.links[i].joint_name}' (entries {at.start}..{at.stop - 1}) has length "
                f"{float(np.ravel(length)[np.argmax(np.abs(np.ravel(length) - 1))]):.6g}, not 1; "
                "model.normalised(q) makes it one, model.neutral() gives a valid position"
            )
