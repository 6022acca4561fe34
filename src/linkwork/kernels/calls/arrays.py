"""The user's arrays as a kernel's inputs and outputs: used in place, copied or refused."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwork.checks import Refused, bare_as_entry, check_memory, real_array, shown
from linkwork.chunked_arrays import copied, packed
from linkwork.errors import InputError, listing
from linkwork.kernels.codegen.fields import CACHE_LINE
from linkwork.kernels.programs.program import Port
from linkwork.system.memory import lasting

Array = NDArray[Any]
MANY = 10**6
"""States of a batch from which its results may be more than a machine can hold."""

LONG_ROW = 1024
"""Bytes."""


def address(x: Array) -> int:
    """Where an array begins; `x.ctypes.data` takes three times as long."""
    return ctypes.addressof(_NOTHING.from_buffer(x)) if x.flags.carray else x.ctypes.data  # type: ignore[arg-type]


_NOTHING = ctypes.c_char * 0


class Rows(NamedTuple):
    """An array of contiguous rows, ``stride`` elements apart (0: the same row again)."""

    array: Array
    stride: int


def take_inputs(
    ports: Sequence[Port], given: Sequence[ArrayLike], dtype: np.dtype[Any]
) -> tuple[list[Rows], int | None]:
    """Check and convert the inputs; also the length of their common batch (None: nothing was batched)."""
    if len(given) != len(ports):
        names = listing(port.name for port in ports)
        raise InputError(f"{len(ports)} inputs are needed ({names}), {len(given)} were given")
    batch: int | None = None
    rows = []
    for port, values in zip(ports, given, strict=True):
        try:
            x = bare_as_entry(real_array(values, port.name), port.shape)
        except Refused as why:
            raise InputError(f"input '{port.name}' is no array of real numbers: {str(why) or shown(values)}") from None
        if x.shape == port.shape:
            rows.append(Rows(packed(x, dtype), 0))
        elif x.shape[1:] == port.shape and x.ndim == len(port.shape) + 1:
            if batch is not None and batch != x.shape[0]:
                raise InputError(f"input '{port.name}' has a batch of {x.shape[0]}, an earlier input one of {batch}")
            batch = x.shape[0]
            rows.append(_row_strided(x, dtype))
        else:
            n = ", ".join(map(str, port.shape))
            single = f"({n},)" if len(port.shape) == 1 else f"({n})"
            raise InputError(f"input '{port.name}' has shape {x.shape}; {single} or (batch, {n}) is needed")
    return rows, batch


def one_state(ports: Sequence[Port], given: Sequence[ArrayLike], dtype: np.dtype[Any]) -> list[Array] | None:
    """Inputs of one state as arrays that machine code takes.

    None if they are anything else, or are such arrays already.
    """
    arrays = []
    for port, values in zip(ports, given, strict=False):
        try:
            x = bare_as_entry(real_array(values, port.name), port.shape)
        except Refused:
            return None
        if x.shape != port.shape:
            return None
        arrays.append(packed(x, dtype))
    return None if all(map(operator.is_, arrays, given)) else arrays


def empty_lines(shape: Sequence[int], dtype: np.dtype[Any], lasts: bool = False) -> Array:
    """A new array that starts on a cache line, and if its rows are long (matrices), each of them does.

    Vectors that straddle two lines take twice the time to write: a batch of mass matrices took a fifth longer. One that
    `lasts` through many calls is in large pages.
    """
    rows, width = shape[0], math.prod(shape[1:]) * dtype.itemsize
    if not width:
        return np.empty(shape, dtype)  # views of no bytes have strides of one byte, which PyTorch refuses
    step = -(-width // CACHE_LINE) * CACHE_LINE if width >= LONG_ROW else width
    size = rows * step + CACHE_LINE
    memory = lasting(size) if lasts else np.empty(size, np.uint8)
    whole = np.ndarray((rows, step // dtype.itemsize), dtype, memory, -address(memory) % CACHE_LINE)
    return whole[:, : width // dtype.itemsize].reshape(shape)


def take_outputs(ports: Sequence[Port], out: Any, dtype: np.dtype[Any], batch: int | None) -> list[Rows]:
    """New output arrays, or the caller's: exact shape and dtype, writable, rows contiguous."""
    shapes = [port.shape if batch is None else (batch, *port.shape) for port in ports]
    if out is None:
        if batch is None:
            return [Rows(np.empty(shape, dtype), port.size) for port, shape in zip(ports, shapes, strict=True)]
        if batch > MANY:
            entries = batch * sum(port.size for port in ports) * dtype.itemsize // 8
            check_memory(f"the results of {batch} states", entries, "give fewer states at a time")
        new = [empty_lines(shape, dtype) for shape in shapes]
        return [Rows(x, x.strides[0] // dtype.itemsize) for x in new]
    arrays = list(out) if isinstance(out, list | tuple) else [out]
    if len(arrays) != len(ports):
        names = listing(port.name for port in ports)
        raise InputError(f"out= needs {len(ports)} arrays ({names}), {len(arrays)} were given")
    rows = []
    arrays = [_plain(x) for x in arrays]
    for port, shape, x in zip(ports, shapes, arrays, strict=True):
        if type(x) is not np.ndarray or x.shape != shape or x.dtype != dtype:
            what = f"{x.dtype} {x.shape}" if type(x) is np.ndarray else type(x).__name__
            raise InputError(f"out= for '{port.name}' is {what}; a {dtype} array of shape {shape} is needed")
        whole = x if batch is not None else x[None]
        fitting = _row_strided(whole, dtype)
        if not x.flags.writeable or fitting.array is not whole:
            raise InputError(f"out= for '{port.name}' must be writable and aligned, with contiguous rows")
        rows.append(Rows(x, fitting.stride))
    for (one, x), (other, y) in combinations(zip(ports, arrays, strict=True), 2):
        if np.may_share_memory(x, y) and np.shares_memory(x, y):
            raise InputError(f"out= for '{one.name}' and '{other.name}' share memory: each needs an array of its own")
    return rows


def _plain(x: Any) -> Any:
    """An array of a subclass as a plain one of the same memory."""
    cls = type(x)
    return np.ndarray.view(x, np.ndarray) if cls is not np.ndarray and issubclass(cls, np.ndarray) else x


def separate(inputs: list[Rows], outputs: list[Rows]) -> list[Rows]:
    """Copies of the inputs that overlap an output, so that no row is overwritten before it is read."""
    return [
        Rows(copied(x.array), x.array[0].size if x.stride else 0)
        if any(np.may_share_memory(x.array, y.array) for y in outputs)
        else x
        for x in inputs
    ]


def table_of(rows: Sequence[Rows]) -> NDArray[np.int64]:
    """The table that a driver reads: a pointer and a stride for every port."""
    return np.array([n for x in rows for n in (address(x.array), x.stride)], np.int64)


def _row_strided(x: Array, dtype: np.dtype[Any]) -> Rows:
    """The array itself if its rows are contiguous, aligned and of the right type; a copy otherwise."""
    contiguous = x.flags.c_contiguous or x.shape[0] == 0 or x[0].flags.c_contiguous
    if contiguous and x.dtype == dtype and x.flags.aligned and x.strides[0] % dtype.itemsize == 0:
        return Rows(x, x.strides[0] // dtype.itemsize)
    return Rows(packed(x, dtype), math.prod(x.shape[1:]))
