"""Kernels as built-in functions of tensors, by DLPack's interface for C.

A call reads tensors where they are and returns a tuple of new ones; no Python code runs in between (tensor_code.py).
Tensors have their port's shape, or one more axis for a batch; those at the end that have defaults may be left out. It
returns None for whatever it leaves to Python:

- what is not a dense tensor of the kernel's dtype on the CPU, with contiguous rows of the right shape,
- tensors that need a gradient while gradients are recorded, and views that negate,
- batches that take long, because the interpreter's lock is held,
- results that are not numbers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.nn import Parameter

from linkwork.kernels.calls.arrays import empty_lines
from linkwork.kernels.calls.executable import LONG, MANY, Executable, MethodDef, Workspace, built_in
from linkwork.kernels.calls.kernel import Kernel
from linkwork.kernels.codegen.driver import ODD
from linkwork.kernels.codegen.python_layout import object_words
from linkwork.kernels.codegen.target import Target
from linkwork.kernels.object_code.compile import Linked, emit
from linkwork.learn.tensor_code import BOOL, FLOAT, MAJOR, MOST_AXES, tensor_module
from linkwork.system.code import addresses

TO_OBJECT, VIEW = 4, 5
"""Words of DLPackExchangeAPI: the functions that make an object of a managed tensor, and describe an object."""

NEVER = 2**62
"""The place of an input that is never given."""

PYTHON = (
    "Py_IncRef",
    "Py_DecRef",
    "PyErr_Clear",
    "PyObject_CallNoArgs",
    "PyObject_GetAttr",
    "PyObject_VectorcallMethod",
    "PyType_GenericAlloc",
)
"""Python's functions that machine code calls."""

REQUIRES_GRAD, IS_NEG = "requires_grad", "is_neg"
"""The names of attributes that machine code asks for: these very objects."""


def built(
    kernel: Kernel, form: Executable, places: Sequence[int], result: type, hidden: int = 0, judged: bool = False
) -> Callable[..., Any] | None:
    """The built-in function of one form of a kernel; None where tensors or tuples have other structures.

    `places` are those of `kernel.given` among the arguments. The last `hidden` outputs are not results. If it is
    `judged`, one more result is `converged`, true for each state.
    """
    image, itemsize, shown = form.image, kernel.dtype.itemsize, len(kernel.outputs) - hidden
    axes = max(len(port.shape) for port in [*kernel.inputs, *kernel.outputs])
    if _exchange() is None or object_words(str(kernel.dtype)) is None or image.cost > LONG or axes > MOST_AXES:
        return None
    least, most = (1, 1) if image.lanes == 1 else (2, LONG // image.cost * image.lanes)
    workspace, known = Workspace(image.workspace), iter(places)
    unseen = [empty_lines((most, *port.shape), kernel.dtype) for port in kernel.outputs[shown:]]
    number, ports = (_kind(FLOAT, itemsize), itemsize), list[int]()
    for k, (port, default) in enumerate(zip(kernel.inputs, kernel.defaults, strict=True)):
        place, memory = NEVER if k in kernel.settings else next(known), 0 if default is None else default.ctypes.data
        ports += _port(place, memory, *number, port.shape)
    for k, port in enumerate(kernel.outputs):
        ports += _port(0, unseen[k - shown].ctypes.data if k >= shown else 0, *number, port.shape)
    ports += _port(0, 0, _kind(BOOL, 1), 1, ())
    at = form.address("run_bound"), workspace.address, workspace.address + image.workspace + ODD
    counts = len(kernel.given), len(kernel.inputs), len(kernel.outputs), shown, int(judged)
    words = np.array([*at, least, most, id(result), *counts, *ports], np.int64).tobytes()
    return built_in(_code().method, words, _code(), form, workspace, kernel, unseen, result)


def _kind(code: int, size: int) -> int:
    """DLPack's type, as the four bytes that it has in memory: code, bits, and how many are side by side."""
    return code | 8 * size << 8 | 1 << 16


def _port(place: int, memory: int, kind: int, byte: int, shape: Sequence[int]) -> list[int]:
    size = int(np.prod(shape, dtype=int))
    return [place, memory, kind, byte, len(shape), size, *shape, *[0] * (MOST_AXES - len(shape))]


@cache
def _exchange() -> tuple[int, int] | None:
    """The addresses of torch's VIEW and TO_OBJECT; None if it has none, or those of another DLPack."""
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return None
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    table = pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, b"dlpack_exchange_api")
    major, words = ctypes.c_uint32.from_address(table).value, (ctypes.c_uint64 * 6).from_address(table)
    return (words[VIEW], words[TO_OBJECT]) if major == MAJOR and words[VIEW] else None


def _known() -> dict[str, str]:
    """The addresses of what machine code calls and compares with, as constants of LLVM."""
    view, to_object = _exchange() or (0, 0)
    objects = {
        "recording": torch.is_grad_enabled,
        "tensor": torch.Tensor,
        "parameter": Parameter,
        "requires_grad": REQUIRES_GRAD,
        "is_neg": IS_NEG,
        "true": True,
        "none": None,
    }
    known = {name: id(x) for name, x in objects.items()} | addresses(["malloc", "free"])
    known |= {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in PYTHON}
    known |= {"view": view, "to_object": to_object}
    return {name: f"inttoptr (i64 {address} to ptr)" for name, address in known.items()}


class _Code:
    """The machine code."""

    def __init__(self) -> None:
        self._linked = Linked(emit([tensor_module(_known())], Target.host()), ["run"])
        self.method = MethodDef(b"run", self._linked.address("run"), MANY, None)


_code = cache(_Code)
