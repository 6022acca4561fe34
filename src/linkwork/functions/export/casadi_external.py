"""Functions of Linkwork for CasADi as machine code: `f.casadi_external()`.

CasADi calls the kernel, and another one for all derivatives, through the interface of its generated code
(kernels/calls/casadi_abi.py): no Python, no graph of operations. Derivatives by q are by its entries here,

    df/dq = (df/dq in tangent space) P,    P = (R^T R)^-1 R^T,    where dq/dt = R(q) v,

and R has orthogonal columns. Quaternions are divided by their length first, in CasADi: an optimiser need not keep it.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from linkwork.backends import Array, Ops
from linkwork.errors import InputError, MissingExtra
from linkwork.functions.differentiation.differentiated import Differentiated
from linkwork.functions.differentiation.jacobians import Jacobians, Symbol
from linkwork.functions.differentiation.limb_columns import Side
from linkwork.functions.differentiation.motion_equations import MotionEquations
from linkwork.functions.function import Function
from linkwork.functions.solver_function import SolverFunction
from linkwork.kernels.calls.casadi_abi import Argument, External, Externals, argument, jacobian, zeros_of
from linkwork.kernels.calls.kernel import Kernel
from linkwork.kernels.calls.stub_library import write
from linkwork.model import Model


class EntryJacobians(Jacobians):
    """Jacobians by the entries of all inputs: `derivatives` with nq columns for q, where q / |q| is."""

    def __init__(self, of: Function[Any], wrt: Sequence[str] | None) -> None:
        Differentiated.__init__(self, "entry_derivatives", of, wrt, {})

    def _guard(self, xp: Ops, inputs: Mapping[str, Array]) -> Array:
        return super()._guard(xp, {**inputs, "q": normalised(self.model, inputs["q"], xp)[0]})

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        if "q" not in inputs:
            return super()._traced(xp, inputs, symbol)
        q, self._P = to_tangent(self.model, inputs["q"], xp)
        found = super()._traced(xp, {**inputs, "q": q}, symbol)
        if isinstance(self.of, SolverFunction):
            return found  # solved for right-hand sides by entries
        for n in found:
            if n.endswith("_dq"):
                found[n] = found[n] @ self._P
                self._shapes[n] = (*self._shapes[n][:-1], self.model.nq)
        return found

    def _solutions(
        self, p: MotionEquations, solved: Any, sides: Mapping[str, Side], symbol: Symbol
    ) -> dict[str, Array]:
        by_entries = {w: side.times(self._P) if w == "q" else side for w, side in sides.items()}
        return super()._solutions(p, solved, by_entries, symbol)


def normalised(model: Model, q: Array, xp: Ops) -> tuple[Array, Array]:
    """q with quaternions and [cos sin] of planar joints divided by their lengths, and these lengths."""
    lengths = xp.constant(np.ones((model.nq, 1)))
    for i in model.topology.links:
        for part in model.unit_parts(i):
            length = xp.sqrt((q[part, :].T @ q[part, :])[0, 0])
            same = xp.constant(np.ones((part.stop - part.start, 1))) * length
            lengths = xp.vstack([lengths[: part.start, :], same, lengths[part.stop :, :]])
    return q / lengths, lengths


def to_tangent(model: Model, q: Array, xp: Ops) -> tuple[Array, Array]:
    """q normalised, and P: the velocity that changes of q's entries are, joint by joint."""
    t, rows = model.topology, [xp.zeros(0, model.nq)]
    q, lengths = normalised(model, q, xp)
    for i in t.links:
        joint, at = model.links[i].joint, t.q_slices[i]
        for k in range(joint.nv):
            rate = joint.rate(q[at, :], xp.eye(joint.nv)[:, k : k + 1], xp)
            row = (rate / (rate.T @ rate)[0, 0] / lengths[at, :]).T
            rows.append(xp.hstack([xp.zeros(1, at.start), row, xp.zeros(1, model.nq - at.stop)]))
    return q, xp.vstack(rows)


_LOADED: dict[Any, tuple[Externals, list[Any]]] = {}
"""Machine code that CasADi may call: it does not say when its last copy of a function is gone. Equal ones share it."""


def casadi_external(of: Function[Any], wrt: Sequence[str] | None = None, gauss_newton: bool = False) -> Any:
    """See `Function.casadi_external`."""
    try:
        import casadi
    except ImportError:
        raise MissingExtra("casadi", "casadi", "f.casadi_external()") from None
    if of.backend != "kernel" or of.dtype != "float64":
        raise InputError(
            "casadi_external() needs a function with backend='kernel' and dtype='float64', and this one has "
            f"'{of.backend}' and '{of.dtype}'"
        )
    name = re.sub("_+", "_", re.sub(r"\W", "_", of._symbol, flags=re.ASCII)).strip("_")
    name = name if name[:1].isalpha() else f"f_{name}".rstrip("_")
    inputs, zeros = inputs_of(of, of.kernel), zeros_of(of._content, of.kernel)
    taken = {x.name for x in inputs}
    outputs = {
        port.name: argument(port.name + "_out" * (port.name in taken), port, k, zeros.get(port.name, frozenset()))
        for k, port in enumerate(of.kernel.outputs)
        if port.name != "report" and port.size
    }
    functions = [External(name, of.kernel, tuple(inputs), tuple(outputs.values()))]
    free = [n for n in of.inputs if n not in Differentiated.FIXED] if wrt is None else list(wrt)
    if of.differentiable and free:
        functions.append(jacobians_of(f"jac_{name}", EntryJacobians(of, free), inputs, outputs))
    function, *slopes = load(functions)
    x = {n: casadi.MX.sym(n, function.sparsity_in(n)) for n in function.name_in()}
    found = dict(zip(function.name_out(), function.call(_normalised(of.model, x)), strict=True))
    defaults = {y.name: y.default for y in inputs}
    return with_jacobian(name, x, found, slopes[0] if slopes else None, gauss_newton, defaults)


def inputs_of(of: Function[Any], kernel: Kernel) -> list[Argument]:
    """The inputs of a function as those of a kernel: for CasADi, a default is one number for all entries."""
    places, inputs = {port.name: k for k, port in enumerate(kernel.inputs)}, []
    for port in of.kernel.given:
        default = np.unique(of.defaults.get(port.name, 0.0))
        value = float(default[0]) if len(default) == 1 else float("nan")
        inputs.append(argument(port.name, port, places.get(port.name), default=value))
    return inputs


def jacobians_of(
    name: str,
    slopes: Function[Any],
    inputs: Sequence[Argument],
    outputs: Mapping[str, Argument],
    called: Mapping[str, str] = MappingProxyType({}),
) -> External:
    """The Jacobians d{output}_d{input} of a function as CasADi asks for them: one for each pair.

    Its inputs are those of the function, then its results, which are not needed. `called` are inputs with another name
    in the kernel.
    """
    kernel, zeros = slopes.kernel, zeros_of(slopes._content, slopes.kernel)
    places = {port.name: k for k, port in enumerate(kernel.inputs)}
    ports = {port.name: (port, k) for k, port in enumerate(kernel.outputs)}
    blocks = []
    for n, y in outputs.items():
        for x in inputs:
            block, known = f"jac_{y.name}_{x.name}", ports.get(f"d{n}_d{x.name}")
            if known is None:
                blocks.append(Argument(block, (y.shape[0] * y.shape[1], x.shape[0] * x.shape[1])))
            else:
                blocks.append(jacobian(block, y, x, *known, zeros.get(known[0].name, frozenset())))
    given = [replace(x, port=places.get(called.get(x.name, x.name))) for x in inputs]
    given += [Argument(f"out_{y.name}", y.shape) for y in outputs.values()]
    return External(name, kernel, tuple(given), tuple(blocks))


def load(functions: Sequence[External]) -> list[Any]:
    """External functions as those of CasADi."""
    import casadi

    key = tuple(f.content for f in functions)
    if key not in _LOADED:
        made = Externals(functions)
        with tempfile.TemporaryDirectory(prefix="linkwork-", ignore_cleanup_errors=True) as folder:
            path = Path(folder) / f"{functions[0].name}.so"
            write(path, made.addresses)
            library = casadi.Importer(str(path), "dll")
            _LOADED[key] = made, [casadi.external(f.name, library) for f in functions]
    return _LOADED[key][1]


def with_jacobian(
    name: str,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    slopes: Any,
    gauss_newton: bool,
    defaults: Mapping[str, float],
) -> Any:
    """A function of CasADi, of symbols to expressions, with a function for its Jacobians."""
    import casadi

    options: dict[str, Any] = {"never_inline": True, "default_in": [defaults.get(n, 0.0) for n in x]}
    if slopes is not None:
        if gauss_newton:  # the derivatives of derivatives are zero
            names = slopes.name_in(), slopes.name_out()
            given: list[Any] = [casadi.MX.sym(n, slopes.sparsity_in(n)) for n in names[0]]
            constant: dict[str, Any] = {"is_diff_in": [False] * len(given), "never_inline": True}
            slopes = casadi.Function(slopes.name(), given, slopes.call(given), *names, constant)
        options |= {"custom_jacobian": slopes, "jac_penalty": 0}
    return casadi.Function(name, list(x.values()), list(y.values()), list(x), list(y), options)


def _normalised(model: Model, x: Mapping[str, Any]) -> list[Any]:
    """The inputs with quaternions in q, and [cos sin] of planar joints, divided by their lengths."""
    import casadi

    given, done = dict(x), 0
    parts = sorted((part.start, part.stop) for i in model.topology.links for part in model.unit_parts(i))
    if "q" in given and parts:
        q, pieces = given["q"], []
        for start, stop in parts:
            pieces += [q[done:start], q[start:stop] / casadi.norm_2(q[start:stop])]
            done = stop
        given["q"] = casadi.vertcat(*pieces, q[done:])
    return list(given.values())
