"""The intermediate form that every stage of the kernels works on.

A straight line of scalar operations.

A :class:`Program` is a list of nodes in single-assignment order: node ``i`` is a tuple ``(operation, *arguments)``
whose arguments are numbers of earlier nodes. Two kinds carry data instead: ``("const", value)`` and
``("input", port, element)``. Ports have names and row-major shapes; ``results[p]`` lists the node of every
element of output port ``p``. That is all: no types, no memory, no control flow.

The NumPy interpreter below is the definition of what a program means; the passes (``simplify``, ``fuse``,
``schedule``) rewrite programs without changing the interpreter's results, up to rounding.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwork.errors import InputError, KernelError, listing
from linkwork.kernels.programs.operations import ARITY, FREE, SEMANTICS

if TYPE_CHECKING:
    import casadi as ca

    from linkwork.kernels.programs.symmetric_products import Squared

Node = tuple[Any, ...]
Content = tuple[Sequence[Node], tuple[tuple[int, ...], ...]]
Array = NDArray[Any]


class Port(NamedTuple):
    """A named input or output; elements are row-major. A column is ``(n,)``, shape () is never used."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Program:
    """Straight-line scalar code with named inputs and outputs.

    ``source`` is the same function for CasADi, where there is one.
    """

    rarely = False  # whether it has a loop that is rarely needed
    squared: Squared | None = None  # what is computed for one state, if an output is a product of matrices

    def __init__(
        self,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        nodes: Sequence[Node],
        results: Sequence[Sequence[int]],
        name: str = "program",
        source: Callable[[], ca.Function] | None = None,
    ) -> None:
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.name, self.source = name, source
        content = nodes, tuple(tuple(result) for result in results)
        self._content: Callable[[], Content] = lambda: content
        self._digest: str | None = None

    @classmethod
    def deferred(
        cls,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        content: Callable[[], Content],
        digest: str,
        name: str,
        source: Callable[[], ca.Function] | None = None,
    ) -> Program:
        """A program whose nodes and results are made when first asked for.

        Kernels from the cache never need them.
        """
        program = cls(inputs, outputs, (), (), name, source)
        program._content, program._digest = content, digest
        return program

    def __repr__(self) -> str:
        ports = ", ".join(f"{p.name}{list(p.shape)}" for p in self.inputs)
        return f"Program({self.name}: {ports} -> {', '.join(f'{p.name}{list(p.shape)}' for p in self.outputs)})"

    @property
    def nodes(self) -> Sequence[Node]:
        """The operations in order."""
        return self._content()[0]

    @property
    def results(self) -> tuple[tuple[int, ...], ...]:
        """For every output port, the node of each of its elements, row-major."""
        return self._content()[1]

    @property
    def digest(self) -> str:
        """A digest of the content: programs with the same digest compute the same."""
        if self._digest is None:
            text = repr((self.inputs, self.outputs, list(self.nodes), self.results, *(self.squared or ())[1:]))
            self._digest = hashlib.sha256(text.encode()).hexdigest()
        return self._digest

    def derive(self, nodes: Sequence[Node], results: Sequence[Sequence[int]] | None = None) -> Program:
        """A program with the same ports and other nodes."""
        results = self.results if results is None else results
        return Program(self.inputs, self.outputs, nodes, results, self.name, self.source)

    def renamed(self, outputs: Sequence[str]) -> Program:
        """The same program with other names for its outputs."""
        ports = [Port(name, port.shape) for name, port in zip(outputs, self.outputs, strict=True)]
        digest = hashlib.sha256(f"{self.digest} {ports}".encode()).hexdigest()
        return Program.deferred(self.inputs, ports, self._content, digest, self.name, self.source)

    def counts(self) -> dict[str, int]:
        """How many operations of each kind, constants and inputs not counted."""
        return dict(sorted(Counter(node[0] for node in self.nodes if node[0] not in FREE).items()))

    @property
    def operations(self) -> int:
        """The number of arithmetic operations; a fused multiply-add is two, a sincos is two."""
        weight = {"fma": 2, "fms": 2, "fnma": 2, "fnms": 2, "sincos": 2}
        return sum(weight.get(kind, 1) * n for kind, n in self.counts().items())

    def check(self) -> Program:
        """Raise :class:`KernelError` unless every node is known, well-formed and defined before its use."""
        nodes = self.nodes
        pairs = {i for i, node in enumerate(nodes) if node[0] == "sincos"}
        for i, node in enumerate(nodes):
            arity = ARITY.get(node[0])
            if arity == 2 and len(node) == 3 and 0 <= node[1] < i and 0 <= node[2] < i and not pairs:
                continue  # most nodes
            kind, *arguments = node
            if arity is not None:
                ok = len(arguments) == arity and min(arguments) >= 0 and max(arguments) < i
                if ok and kind in ("sin_of", "cos_of"):
                    ok = arguments[0] in pairs
                elif ok and pairs:
                    ok = kind == "sincos" or pairs.isdisjoint(arguments)
            elif kind == "const":
                ok = len(arguments) == 1 and isinstance(arguments[0], float)
            elif kind == "input":
                ok = len(node) == 3 and 0 <= node[1] < len(self.inputs) and 0 <= node[2] < self.inputs[node[1]].size
            else:
                raise KernelError(f"node {i} of '{self.name}' has no meaning: {node!r}")
            if not ok:
                raise KernelError(f"node {i} of '{self.name}' is malformed or uses a later value: {node!r}")
        for port, values in zip(self.outputs, self.results, strict=True):
            if len(values) != port.size or not all(0 <= v < len(self.nodes) for v in values):
                raise KernelError(f"output '{port.name}' of '{self.name}' is incomplete")
        return self

    def interpret(self, *arrays: ArrayLike, dtype: str = "float64") -> tuple[Array, ...]:
        """Evaluate with NumPy: each input has its port's shape, or that shape behind one common batch axis."""
        inputs, batch = broadcast(self.inputs, arrays, np.dtype(dtype))
        flat = [np.moveaxis(x.reshape(x.shape[0], port.size), 0, -1) for x, port in zip(inputs, self.inputs)]
        values: list[Any] = []
        with np.errstate(all="ignore"):
            for node in self.nodes:
                if node[0] == "const":
                    values.append(np.asarray(node[1], dtype))
                elif node[0] == "input":
                    values.append(flat[node[1]][node[2]])
                else:
                    values.append(SEMANTICS[node[0]](*(values[a] for a in node[1:])))
        outputs = []
        rows = 1 if batch is None else batch
        for port, result in zip(self.outputs, self.results, strict=True):
            columns = [np.broadcast_to(values[v], (rows,)) for v in result]
            table = np.stack(columns, axis=-1) if columns else np.zeros((rows, 0))
            outputs.append(table.astype(dtype).reshape((rows, *port.shape)))
        if batch is None:
            outputs = [x[0] for x in outputs]
        return tuple(outputs)


def broadcast(
    ports: Sequence[Port], arrays: Sequence[ArrayLike], dtype: np.dtype[Any]
) -> tuple[list[Array], int | None]:
    """The arrays with a batch axis of common length or 1, and that length (None: no batch)."""
    if len(arrays) != len(ports):
        names = listing(port.name for port in ports)
        raise InputError(f"{len(ports)} inputs are needed ({names}), {len(arrays)} were given")
    batch: int | None = None
    ready = []
    for port, given in zip(ports, arrays, strict=True):
        x = np.asarray(given)
        if x.dtype.kind not in "fiub":
            raise InputError(f"input '{port.name}' has dtype {x.dtype}; numbers are needed")
        if x.shape == port.shape:
            x = x[None]
        elif x.shape[1:] == port.shape:
            if batch is not None and batch != x.shape[0]:
                raise InputError(f"input '{port.name}' has a batch of {x.shape[0]}, an earlier input one of {batch}")
            batch = x.shape[0]
        else:
            shape = ", ".join(str(n) for n in port.shape)
            raise InputError(f"input '{port.name}' has shape {x.shape}; ({shape},) or (B, {shape}) is needed")
        ready.append(np.ascontiguousarray(x, dtype))
    return ready, batch
