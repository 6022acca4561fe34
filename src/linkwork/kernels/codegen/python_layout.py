"""The layout of Python's and NumPy's objects in memory, for machine code that takes and makes arrays.

An array object starts with: header, data, nd, dimensions, strides, base, descr, flags. This layout, and that of a
tuple, is tested before anything is called. Where it differs (a Python that is not CPython, one without its
global lock, a later one), ``object_words`` is None, and calls for one state go the general way, through ctypes: some 20
microseconds slower, with the same results. CPython 3.11 to 3.14 have this layout; from 3.14 on tuples hold their hash.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwork.system.code import addresses
from linkwork.system.processors import YIELD

Array = NDArray[Any]

BYTES = bytes.__basicsize__ - 1
"""Where the content of a bytes object starts."""

ARRAY, DESCR, NONE, TRUE, FLOAT, DOUBLE, INT, BEHIND = range(0, 64, 8)
"""Offsets in ``self`` of the array type, the dtype, None, True, the types of bare numbers, and of what follows them."""

NUMBER = 16
"""Where a ``float`` and a ``numpy.float64`` have their value."""

TYPE, STRICT, MOST, ATTACHED, AT, HASH, OTHERWISE, PORTS = range(BEHIND, BEHIND + 64, 8)
"""For ``run_new``, ``run_given`` and ``run_called``: the type of the result, whether it must be finite, how
many inputs are given, an object attached to the result and its offset there (0: none), the offset of a hash that is not
known yet (0: none), what ``run_called`` calls otherwise, and where the words of ports begin. An output has two: the
array that every call returns, if it has no entries, and its offset in the result. An input has two: the address of its
default, and its offset in a result that has something attached (0: none)."""

PYTHON = (
    "Py_IncRef",
    "Py_DecRef",
    "PyType_GenericAlloc",
    "PyObject_Vectorcall",
    "PyLong_AsDouble",
    "PyErr_Clear",
)
"""Python's functions that machine code calls."""

ITEMS, LENGTH, HASHED = tuple.__basicsize__, 16, 24
"""Where the items of a tuple start, its length is, and its hash if it holds that."""

CONTIGUOUS, ALIGNED, WRITABLE = 0x1, 0x100, 0x400  # NumPy's flags
_EMPTY_ARRAY = 184
"""The place of PyArray_Empty in NumPy's table of functions."""


class _ArrayHeader(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("data", ctypes.c_void_p), ("nd", ctypes.c_int),
        ("dimensions", ctypes.POINTER(ctypes.c_ssize_t)), ("strides", ctypes.c_void_p), ("base", ctypes.c_void_p),
        ("descr", ctypes.c_void_p), ("flags", ctypes.c_int),
    )  # fmt: skip


@cache
def object_words(dtype: str) -> bytes | None:
    """Addresses in this Python and NumPy for these functions; None if objects have another layout."""
    sample, odd = np.zeros((2, 3), dtype), np.zeros((2, 3), dtype).T
    odd.flags.writeable = False
    pair = sample, odd
    if sys.implementation.name != "cpython" or object.__basicsize__ != 16 or ITEMS not in (HASHED, HASHED + 8):
        return None
    header, other = (_ArrayHeader.from_address(id(x)) for x in pair)
    words = (ctypes.c_ssize_t * (ITEMS // 8 + 2)).from_address(id(pair))
    flags = CONTIGUOUS | ALIGNED | WRITABLE
    expected = (
        header.type == id(np.ndarray)
        and header.data == sample.ctypes.data
        and header.nd == 2
        and list(header.dimensions[:2]) == [2, 3]
        and header.descr == id(np.dtype(dtype)) == id(sample.dtype)
        and header.flags & flags == flags
        and other.flags & flags == ALIGNED
        and words[LENGTH // 8] == 2
        and list(words[ITEMS // 8 :]) == [id(sample), id(odd)]
        and (ITEMS == HASHED or _holds_its_hash())
        and ctypes.string_at(id(b"linkwork") + BYTES, 8) == b"linkwork"
        and all(_value_of(x) == x for x in (0.1, np.float64(0.2)))
        and "PyArray_Empty" in python_functions()
    )
    known = (np.ndarray, np.dtype(dtype), None, True, float, np.float64, int)
    return _words(*map(id, known)) if expected else None


def _value_of(number: float) -> float:
    """The value of a bare number, as machine code finds it."""
    return ctypes.c_double.from_address(id(number) + NUMBER).value


def _holds_its_hash() -> bool:
    """Whether a tuple has -1 in place of its hash before that was asked for, and the hash afterwards."""
    some = tuple([0.5, "linkwork"])  # noqa: C409, made now: a constant may have been hashed
    words = (ctypes.c_ssize_t * (ITEMS // 8)).from_address(id(some))
    return words[HASHED // 8] == -1 and hash(some) == words[HASHED // 8]


class Places(NamedTuple):
    """How results are made: their class, the offsets of outputs, and an attached object with its offset.

    ``inputs`` are the offsets of inputs that are stored with it, in the order of ports (0: not stored).
    """

    result: type
    outputs: tuple[int, ...]
    attached: object = None
    at: int = 0
    inputs: tuple[int, ...] = ()


def slots_in(result: type) -> dict[str, int]:
    """Offsets of the ``__slots__`` of a class by name, found in an instance with known objects."""
    names = [n for c in result.__mro__ for n in getattr(c, "__slots__", ())]
    sample: Any = object.__new__(result)
    marks = {n: object() for n in names}
    for name, mark in marks.items():
        setattr(sample, name, mark)
    words = list((ctypes.c_ssize_t * (result.__basicsize__ // 8)).from_address(id(sample)))
    return {name: 8 * words.index(id(mark)) for name, mark in marks.items() if id(mark) in words}


def words_for_results(
    words: bytes,
    places: Places,
    strict: bool,
    most: int,
    kept: Sequence[Any],
    defaults: Sequence[Array | None],
    otherwise: Any = None,
) -> bytes:
    """The object of ``run_new``, ``run_given`` and ``run_called``.

    ``kept`` are outputs that every call returns, by place (None: a new one), and ``defaults`` those of inputs, the
    first ``most`` of which can be given; ``otherwise`` is called where ``run_new`` refuses.
    """
    outputs = [w for x, at in zip(kept, places.outputs, strict=True) for w in (0 if x is None else id(x), at)]
    at = places.inputs or (0,) * len(defaults)
    inputs = [w for x, place in zip(defaults, at, strict=True) for w in (0 if x is None else x.ctypes.data, place)]
    attached = 0 if places.attached is None else id(places.attached)
    hashed = HASHED if ITEMS > HASHED and issubclass(places.result, tuple) else 0
    fixed = id(places.result), strict, most, attached, places.at, hashed, id(otherwise)
    return words + _words(*fixed, *outputs, *inputs)


def _words(*values: int) -> bytes:
    return np.array(values, np.int64).tobytes()


@cache
def python_functions() -> dict[str, int]:
    """The addresses of the functions of Python and of the system that machine code calls."""
    found = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in PYTHON}
    found |= addresses([YIELD])
    core = (
        "numpy._core._multiarray_umath"
        if np.lib.NumpyVersion(np.__version__) >= "2.0.0"
        else ("numpy.core._multiarray_umath")
    )
    capsule = getattr(import_module(core), "_ARRAY_API", None)
    if capsule is not None:
        pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
        table = pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, None)
        found["PyArray_Empty"] = (ctypes.c_void_p * (_EMPTY_ARRAY + 1)).from_address(table)[_EMPTY_ARRAY] or 0
    return found
