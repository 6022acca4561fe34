"""Functions of Linkwork for CasADi as machine code: `f.casadi_external()`.

CasADi calls the kernel, and another one for all derivatives, through the interface of its generated code
(kernels/casadi_abi.py): no Python, no graph of operations. Derivatives by q are by its entries here,

    df/dq = (df/dq in tangent space) P,    P = (R^T R)^-1 R^T,    where dq/dt = R(q) v,

and R has orthogonal columns. Quaternions are divided by their length first, in CasADi: an optimiser need not keep it.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from linkwork.backends import Array, Ops
from linkwork.errors import InputError, MissingExtra
from linkwork.functions.differentiated import Differentiated
from linkwork.functions.function import Function
from linkwork.functions.jacobians import Jacobians
from linkwork.kernels.casadi_abi import Argument, External, Externals, argument, jacobian, zeros_of
from linkwork.kernels.kernel import Kernel
from linkwork.kernels.stub_library import write
from linkwork.model import Model


class EntryJacobians(Jacobians):
    """Jacobians by the entries of all inputs: `derivatives` with nq columns for q."""

    def __init__(self, of: Function[Any], wrt: Sequence[str] | None) -> None:
        Differentiated.__init__(self, "entry_derivatives", of, wrt, {})

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        found = super()._traced(xp, inputs, symbol)
        if "q" in self.wrt and self.model.nq != self.model.nv:
            P = _to_tangent(self.model, inputs["q"], xp)
            for n in found:
                if n == "right_q" or (n.startswith("d") and n.endswith("_dq")):
                    found[n] = found[n] @ P
                    self._shapes[n] = (*self._shapes[n][:-1], self.model.nq)
        return found


def _to_tangent(model: Model, q: Array, xp: Ops) -> Array:
    """P: the velocity that changes of q's entries are, joint by joint."""
    t, rows = model.topology, [xp.zeros(0, model.nq)]
    for i in t.links:
        joint, at = model.links[i].joint, t.q_slices[i]
        for k in range(joint.nv):
            rate = joint.rate(q[at, :], xp.eye(joint.nv)[:, k : k + 1], xp)
            row = (rate / (rate.T @ rate)[0, 0]).T
            rows.append(xp.hstack([xp.zeros(1, at.start), row, xp.zeros(1, model.nq - at.stop)]))
    return xp.vstack(rows)


_ALIVE: list[Externals] = []
"""Machine code that CasADi may call: it does not say when its last copy of a function is gone."""


def casadi_external(of: Function[Any], wrt: Sequence[str] | None = None) -> Any:
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
    functions = _externals(of, name, wrt)
    made = Externals(functions)
    with tempfile.TemporaryDirectory(prefix="linkwork-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / f"{name}.so"
        write(path, made.addresses)
        function = casadi.external(name, str(path))
        if len(functions) > 1:
            function.jacobian()  # loaded while the library is there
    _ALIVE.append(made)
    return _with_unit_parts(of, function)


def _externals(of: Function[Any], name: str, wrt: Sequence[str] | None) -> list[External]:
    """The function, and that of its Jacobians if it has any."""
    inputs = _inputs(of, of.kernel)
    taken, zeros = {x.name for x in inputs}, zeros_of(of._content, of.kernel)
    outputs = {
        port.name: argument(port.name + "_out" * (port.name in taken), port, k, zeros.get(port.name, frozenset()))
        for k, port in enumerate(of.kernel.outputs)
        if port.name != "report" and port.size
    }
    value = External(name, of.kernel, tuple(inputs), tuple(outputs.values()))
    free = [n for n in of.inputs if n not in Differentiated.FIXED] if wrt is None else list(wrt)
    if not of.differentiable or not free:
        return [value]
    slopes = EntryJacobians(of, free)
    found, zeros = slopes.kernel, zeros_of(slopes._content, slopes.kernel)
    ports = {port.name: (port, k) for k, port in enumerate(found.outputs)}
    blocks = []
    for n, y in outputs.items():
        for x in inputs:
            block, known = f"jac_{y.name}_{x.name}", ports.get(f"d{n}_d{x.name}")
            if known is None:
                blocks.append(Argument(block, (y.shape[0] * y.shape[1], x.shape[0] * x.shape[1])))
            else:
                blocks.append(jacobian(block, y, x, *known, zeros.get(known[0].name, frozenset())))
    results = [Argument(f"out_{y.name}", y.shape) for y in outputs.values()]  # given by CasADi, and not needed
    return [value, External(f"jac_{name}", found, (*_inputs(of, found), *results), tuple(blocks))]


def _inputs(of: Function[Any], kernel: Kernel) -> list[Argument]:
    """The inputs of a function as those of a kernel: for CasADi, a default is one number for all entries."""
    places, inputs = {port.name: k for k, port in enumerate(kernel.inputs)}, []
    for port in of.kernel.given:
        default = np.unique(of.defaults.get(port.name, 0.0))
        value = float(default[0]) if len(default) == 1 else float("nan")
        inputs.append(argument(port.name, port, places.get(port.name), default=value))
    return inputs


def _with_unit_parts(of: Function[Any], function: Any) -> Any:
    """The function of q with quaternions, and [cos sin] of planar joints, divided by their lengths."""
    import casadi

    model, names = of.model, function.name_in()
    parts = sorted((part.start, part.stop) for i in model.topology.links for part in model.unit_parts(i))
    if "q" not in names or not parts:
        return function
    symbols = [casadi.MX.sym(n, function.sparsity_in(n)) for n in names]
    q, pieces, done = symbols[names.index("q")], [], 0
    for start, stop in parts:
        pieces += [q[done:start], q[start:stop] / casadi.norm_2(q[start:stop])]
        done = stop
    given = [casadi.vertcat(*pieces, q[done:]) if n == "q" else x for n, x in zip(names, symbols, strict=True)]
    options = {"default_in": [function.default_in(k) for k in range(len(names))]}
    return casadi.Function(function.name(), symbols, function.call(given), names, function.name_out(), options)
