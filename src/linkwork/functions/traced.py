"""From the body of a function to its program, its machine code, C source and CasADi form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

import numpy as np

from linkwork.backends import Array, Ops, get
from linkwork.checks import FLAG, NAME, PATH, checked, optional
from linkwork.errors import KernelError
from linkwork.functions.arguments import Arguments
from linkwork.functions.parameters import possible_guard
from linkwork.lazy import cached_property
from linkwork.model.digest import digest
from linkwork.model.unit_quaternions import unit_guard
from linkwork.output_files import written

if TYPE_CHECKING:
    from linkwork.kernels.calls.kernel import Kernel, Results
    from linkwork.kernels.programs.iterate import IterativeProgram
    from linkwork.kernels.programs.program import Program

Body = Callable[[Ops, Mapping[str, Array]], Mapping[str, Array]]
"""An algorithm with named columns in and named matrices out."""


class Traced(Arguments):
    """A body with named inputs, traced and compiled when that is first needed.

    `_identity` lists what it depends on besides its model, method and name; None: it is traced anew in every process.
    """

    recipe: tuple[str, str, tuple[Any, ...], dict[str, Any]] | None = None
    _constrained: bool = True
    """Whether constraints of the model matter."""
    _axes: str = "link frames"
    """Where spatial vectors are seen from."""
    threads: int | None
    _body: Any
    _identity: tuple[Any, ...] | None
    _results: Callable[[tuple[str, ...]], Results]

    @cached_property
    def program(self) -> Program | IterativeProgram:
        """The traced and simplified operations."""
        return self.traced()

    @property
    def operations(self) -> int:
        """Exact number of operations for one state; of iterative methods, up to the first solution."""
        return int(self._cached_program.operations)

    def traced(self, limit: int | None = None) -> Program | IterativeProgram:
        """The program, traced now or just before; stopped with `Outgrown` beyond `limit` operations."""
        from linkwork.kernels.cache import program_cache
        from linkwork.kernels.programs.trace import trace

        if (known := program_cache.get(self._content)) is not None:
            known.source = weak(self.casadi) if known.source is not None else None
            return known
        program = trace(
            self.name, self._written, limit, single=self.dtype == "float32", guard=True, shapes=self._shapes
        )
        program.source = weak(self.casadi)
        return program_cache.put(self._content, self._looped(program))

    def _looped(self, program: Program) -> Program | IterativeProgram:
        """The program with its loop, if it has one."""
        return program

    @cached_property
    def _content(self) -> str | None:
        """A digest of all that the program depends on."""
        if self._identity is None:
            return None
        return digest(self.name, self.model, self.method, self.dtype, *self._identity)

    @cached_property
    def _cached_program(self) -> Any:
        """The program, or its cached sketch: a function that was compiled before is not traced again."""
        from linkwork.kernels.cache.program_cache import get_or_trace

        return get_or_trace(self._content, lambda: self.program)

    @cached_property
    def kernel(self) -> Kernel:
        """The native code."""
        from linkwork.kernels.calls.kernel import Kernel

        return Kernel(
            self._cached_program,
            dtype=self.dtype,
            threads=self.threads,
            results=self._results(tuple(port.name for port in self._cached_program.outputs)),
            defaults=self.defaults,
            settings=self._settings,
        )

    @property
    def _settings(self) -> Mapping[str, Any]:
        """The inputs of the program that no call gives."""
        return {}

    @checked(name=optional(NAME))
    def c_source(self, name: str | None = None) -> str:
        """The same function as standalone C99, called `name`; without one, after its robot and itself.

        A function in float32 becomes one of `float`.

        Examples:
            >>> "void mass(" in lw.mass_matrix(chain(3)).c_source("mass")
            True
        """
        from linkwork.kernels.export.c_source import c_source

        return c_source(self.program, name or self._symbol, dtype=self.dtype)

    @checked(directory=PATH, name=optional(NAME), overwrite=FLAG)
    def export(self, directory: str | Path, name: str | None = None, overwrite: bool = False) -> list[Path]:
        """Write `name.c`, `name.h` and CMakeLists.txt; gives the paths.

        Without `name` it is called after its robot and itself: "go1_forward_dynamics". Exports into one folder become
        one library; another function of the same name is an `InputError` there, unless told to `overwrite` it. The
        header says what the arrays are, in which order and units, how much stack and code it takes, and has the
        defaults of settings. A function in float32 becomes one of `float`.

        Examples:
            >>> sorted(path.name for path in lw.mass_matrix(chain(3)).export("c", "mass"))
            ['CMakeLists.txt', 'mass.c', 'mass.h']
        """
        from linkwork.functions.export.header_comment import described
        from linkwork.kernels.export.c_project import export

        defaults = {n: float(x[0]) for n, x in self._settings.items()}
        about = described(self)
        made = self.program, directory, name or self._symbol, about, defaults, self.dtype, overwrite
        return written(directory, lambda: export(*made))

    @property
    def _symbol(self) -> str:
        """Its name in C where the user gives none."""
        return f"{self.model.name}_{self.name}"

    def casadi(self) -> Any:
        """The same function as a CasADi Function, for every tool that takes one."""
        from linkwork.backends.casadi_ import casadi

        symbols = {n: casadi.SX.sym(n, k) for n, k in self.inputs.items()}
        outputs = self._body(get("casadi"), symbols)
        dense = [casadi.densify(casadi.SX(x)) for x in outputs.values()]
        return casadi.Function(self.name, list(symbols.values()), dense, list(symbols), list(outputs))

    def _written(self, xp: Ops, symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        """The traced function. An invalid quaternion makes the first output NaN, so that it is noticed."""
        from linkwork.kernels.programs.hoist import is_result

        inputs = {n: symbol(n, k) for n, k in self.inputs.items()}
        outputs = self._traced(xp, inputs, symbol)
        if "q" in inputs:
            name = next(n for n in outputs if is_result(n))
            outputs[name] = marked(xp, outputs[name], self._guard(xp, inputs))
        return outputs

    def _guard(self, xp: Ops, inputs: Mapping[str, Array]) -> Array:
        """Zero, or NaN where inputs are invalid, though what is computed of them is a number."""
        guard = unit_guard(self.model, inputs["q"], xp)
        return guard + possible_guard(self.model, inputs, xp) if self.factors_mass else guard

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        """The outputs of the program."""
        return dict(self._body(xp, inputs))


def weak(method: Callable[[], Any]) -> Callable[[], Any]:
    """The method of an object that need not live as long: programs are cached, functions are not."""
    held = WeakMethod(method)

    def call() -> Any:
        alive = held()
        if alive is None:
            raise KernelError("the function of this kernel is gone, and with it the CasADi form: keep the function")
        return alive()

    return call


def marked(xp: Ops, output: Array, guard: Array) -> Array:
    """The output, with a guard (1 x 1, zero or NaN) added to its first entry."""
    rows, columns = output.shape
    if not rows * columns:
        return output
    corner = np.zeros((rows, columns))
    corner[0, 0] = 1.0
    return output + guard * xp.constant(corner)
