"""Large arrays in turns of a few megabytes, so that Ctrl-C is handled in between.

Python handles signals between two of its own instructions. One call of NumPy that copies or looks at hundreds of
megabytes is one instruction; new memory is slow to touch, and a busy machine makes seconds of that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from math import isfinite, prod
from typing import Any

import numpy as np

from linkwork.errors import InputError

TURN = 1 << 22
"""Bytes."""

ENTRIES = 1 << 16
"""Entries of lists that are converted in one turn: NumPy looks at each of them as an object."""


def pieces(x: np.ndarray) -> Iterator[Any]:
    """Indices of all parts of an array, none larger than a turn."""
    return _pieces(x.shape, x.itemsize)


def _pieces(shape: Sequence[int], size: int) -> Iterator[Any]:
    if not shape or prod(shape) * size <= TURN:
        yield ()
    elif (row := prod(shape[1:]) * size) > TURN:
        for i in range(shape[0]):
            yield from ((i, *rest) for rest in _pieces(shape[1:], size))
    else:
        for i in range(0, shape[0], TURN // row):
            yield (slice(i, i + TURN // row),)


def copied(x: np.ndarray, dtype: Any = None) -> np.ndarray:
    """A new contiguous array of this type with the same values."""
    if x.nbytes <= TURN:
        return np.array(x, dtype, order="C")
    kind = x.dtype if dtype is None else np.dtype(dtype)
    if x.size * kind.itemsize > memory() // 2:  # views may be larger than any memory
        raise InputError(
            f"a copy of an array of shape {x.shape} would take {x.size * kind.itemsize / 1e9:.3g} GB, and this "
            f"machine has {memory() / 1e9:.3g} GB; give fewer at a time"
        )
    out = np.empty(x.shape, kind)
    for at in pieces(x):
        out[at] = x[at]
    return out


def memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**36


def packed(x: np.ndarray, dtype: Any = None) -> np.ndarray:
    """The array itself if it is contiguous, aligned and of this type; otherwise a copy that is."""
    wanted = x.dtype if dtype is None else np.dtype(dtype)
    return x if x.dtype == wanted and x.flags.c_contiguous and x.flags.aligned else copied(x, wanted)


def typed(x: np.ndarray, dtype: Any) -> np.ndarray:
    """The array itself if it is of this type; otherwise a copy that is."""
    return x if x.dtype == np.dtype(dtype) else copied(x, dtype)


def largest(x: np.ndarray) -> float:
    """The largest absolute value, or NaN if an entry is; 0 of nothing."""
    if x.nbytes <= TURN:
        return float(np.abs(x).max(initial=0.0))
    return max((float(np.abs(x[at]).max(initial=0.0)) for at in pieces(x)), key=lambda y: (y != y, y), default=0.0)


def all_finite(x: np.ndarray) -> bool:
    """Whether no entry is NaN or infinite."""
    if x.nbytes <= TURN:  # NaN and infinity propagate to the sum, which decides in most cases
        return isfinite(x.sum()) or bool(np.isfinite(x).all())
    return all(bool(np.isfinite(x[at]).all()) for at in pieces(x))


def stacked(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays of one shape, one after the other along a new first axis."""
    out = np.empty((len(arrays), *arrays[0].shape), np.result_type(*{x.dtype for x in arrays}))
    for n, x in enumerate(arrays):
        for at in pieces(x):
            out[(n, *at)] = x[at]
    return out


def as_array(value: Any) -> np.ndarray:
    """`np.asarray`; long lists are converted part by part."""
    if not isinstance(value, list | tuple) or not value:
        return np.asarray(value)
    inner = len(value[0]) if isinstance(value[0], list | tuple) else 1
    if len(value) * inner <= ENTRIES:
        return np.asarray(value)
    step = max(1, ENTRIES // max(inner, 1))
    if inner > ENTRIES:
        return stacked([as_array(x) for x in value])
    parts = [np.asarray(value[i : i + step]) for i in range(0, len(value), step)]
    if len({x.shape[1:] for x in parts}) > 1:
        raise ValueError("its rows have different lengths")
    whole = np.empty((len(value), *parts[0].shape[1:]), np.result_type(*{x.dtype for x in parts}))
    for k, x in enumerate(parts):
        whole[k * step : k * step + len(x)] = x
    return whole
