"""Programs as Python functions, for those that are evaluated some dozen times.

A value that is used once is written where it is used, any other is a local. That takes some 5 us an operation to write
and compile, a tenth of what LLVM needs, and 20 ns an operation to run. Where Python raises and NumPy gives NaN or
infinity (1 / 0, the root of -1), the program is interpreted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np

from linkwork.kernels.programs.operations import LIBM, SEMANTICS
from linkwork.kernels.programs.program import Array, Program

_FORMS = {
    "add": "({}+{})",
    "sub": "({}-{})",
    "mul": "({}*{})",
    "div": "({}/{})",
    "neg": "(-{})",
    "lt": "({}<{})",
    "le": "({}<={})",
    "eq": "({}=={})",
    "ne": "({}!={})",
    "not": "({}==0)",
    "and": "({}!=0 and {}!=0)",
    "or": "({}!=0 or {}!=0)",
    "select": "({1} if {0} else {2})",
    "if_else_zero": "({1} if {0} else 0.0)",
}
_CALLS = {**SEMANTICS, **{kind: getattr(math, kind) for kind in (*LIBM, "sqrt", "sin", "cos", "fabs")}}

DEEPEST = 10
"""Operations nested in one expression: more gains nothing, and Python's parser takes 200 brackets."""


def python_function(program: Program) -> Callable[..., tuple[Array, ...]]:
    """The program as a function of one state: an array for every input, to an array for every output."""
    wanted = [v for result in program.results for v in result]
    places = [k for k, v in enumerate(wanted) if program.nodes[v] != ("const", 0.0)]
    scope = dict(_CALLS)
    exec(compile(_source(program, [wanted[k] for k in places]), f"<{program.name}>", "exec"), scope)  # our own text
    function = scope["program"]
    ends = np.cumsum([port.size for port in program.outputs])[:-1]

    def evaluate(*arrays: Array) -> tuple[Array, ...]:
        flat = np.zeros(len(wanted))
        try:
            with np.errstate(all="ignore"):
                flat[places] = function(*(x for a in arrays for x in a.ravel().tolist()))
        except (ArithmeticError, ValueError):
            return program.interpret(*arrays)
        parts = np.split(flat, ends)
        return tuple(part.reshape(port.shape) for part, port in zip(parts, program.outputs, strict=True))

    return evaluate


def _source(program: Program, wanted: list[int]) -> str:
    """`def program(inputs): ...; return [wanted values]`."""
    uses = Counter(wanted)
    for kind, *arguments in program.nodes:
        if kind not in ("const", "input"):
            uses.update(arguments)
    lines, text, depth = [], list[str](), list[int]()
    for n, (kind, *arguments) in enumerate(program.nodes):
        nested = 0
        if kind == "const":
            written = repr(arguments[0]) if math.isfinite(arguments[0]) else f"float('{arguments[0]}')"
        elif kind == "input":
            written = "x{}_{}".format(*arguments)
        else:
            given = [text[a] for a in arguments]
            written = _FORMS[kind].format(*given) if kind in _FORMS else f"{kind}({','.join(given)})"
            nested = 1 + max(depth[a] for a in arguments)
            if uses[n] > 1 or nested == DEEPEST:
                lines.append(f"v{n}={written}")
                written, nested = f"v{n}", 0
        text.append(written)
        depth.append(nested)
    inputs = ",".join(f"x{k}_{e}" for k, port in enumerate(program.inputs) for e in range(port.size))
    lines.append(f"return [{','.join(text[v] for v in wanted)}]")
    return f"def program({inputs}):\n " + "\n ".join(lines)
