"""Arrays of real, finite numbers: of any shape, of a given one, or as large as a model says."""

from __future__ import annotations

import sys
from array import array as array_of_python
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from linkwork import chunked_arrays as interruptible
from linkwork.checks.declared import Kind, Refused, nothing, shown
from linkwork.checks.numbers import LARGEST
from linkwork.errors import InputError, LinkworkError

WEIGHTS = "active"
"""The one input of functions that may be truth values: which constraints hold."""


def real_array(value: Any, name: str = "") -> np.ndarray:
    """Anything array-like of real numbers, as an array of whatever real type; `Refused` otherwise.

    Truth values are no numbers, unless it is the input of that `name`.
    """
    truths = name == WEIGHTS
    try:
        if type(value) is not np.ndarray:
            value = plain_entries(value, truths)
        x = interruptible.as_array(value)
    except (Refused, LinkworkError):
        raise
    except Exception as problem:  # raised by a foreign type's own conversion, or for lists of different lengths
        raise Refused(str(problem).partition(". The detected")[0]) from None
    if x.dtype.kind not in ("fiub" if truths else "fiu"):
        raise Refused("it is complex" if x.dtype.kind == "c" else f"its entries are of type {x.dtype}")
    return x


def bare_as_entry(x: Any, shape: Sequence[int]) -> Any:
    """A bare number as the only entry of an input of this shape; any other array as it is.

    For arrays of NumPy, JAX and PyTorch.
    """
    return x.reshape(1) if x.ndim == 0 and tuple(shape) == (1,) else x


BARE = frozenset((float, int, np.float64, np.float32, np.int64, np.int32))
"""Types of numbers, of which lists need no further look."""


MANY, LONGEST, DEEPEST = 1_000_000, 100_000_000, 32
"""The most entries of a sequence of a foreign type, which may have no end; the most of nested lists, where one list may
count many times; and how deep they may be nested."""

AS_MANY = 10
"""Entries that take NumPy as long as a list of none."""


def plain_entries(value: Any, truths: bool) -> Any:
    """The value, with sequences of foreign types as lists, if NumPy finds nothing but numbers in it.

    Refused is what NumPy would convert to numbers all the same, masked entries, and truth values unless `truths`; and
    what it would look through for ever.
    """
    return value if _is_bare(value) else _plain(value, truths, DEEPEST, {})[0]


def _is_bare(value: Any) -> bool:
    """Whether it is a short list of numbers, of which nothing more is to be known."""
    return type(value) in (list, tuple) and len(value) < interruptible.ENTRIES and BARE.issuperset(map(type, value))


def _plain(value: Any, truths: bool, deep: int, seen: dict[int, tuple[Any, int, Any]]) -> tuple[Any, int]:
    """The same, with the number of entries; `seen` has nested lists that were looked at, by identity."""
    cls = type(value)
    if not isinstance(value, list | tuple) and not _is_sequence(cls):
        return value, _refuse_single(value, truths)
    if (known := seen.get(id(value))) is not None:
        return known[:2]
    entries = value
    if isinstance(value, list | tuple):
        if cls not in (list, tuple):  # as NumPy takes them, whatever their own iterators say
            entries = [*(list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value))]
    elif len(entries := list(islice(value, MANY + 1))) > MANY:
        raise Refused(f"it has more than {MANY} entries, as a {cls.__name__}; make it an array")
    count = AS_MANY + len(entries)
    if not _all_bare(entries):
        if not deep:
            raise Refused(f"its lists are nested more than {DEEPEST} times")
        parts = []
        for x in entries:
            if _is_bare(x):
                count += AS_MANY + len(x)
                parts.append(x)
            else:
                part, more = _plain(x, truths, deep - 1, seen)
                count += more
                parts.append(part)
        entries = parts
        seen[id(value)] = entries, count, value
    if count > LONGEST:
        raise Refused(f"its lists have more than {LONGEST} entries; make it an array")
    return entries, count


def _all_bare(entries: Sequence[Any]) -> bool:
    step = interruptible.ENTRIES
    return all(BARE.issuperset(map(type, entries[i : i + step])) for i in range(0, len(entries), step))


def _refuse_single(value: Any, truths: bool) -> int:
    """Refuse what is no list and not of numbers; otherwise how many these are."""
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise Refused("entries are masked; fill them first")
    if not truths and _dtype(value).kind == "b":
        raise Refused("its entries are of type bool")
    return value.size if isinstance(value, np.ndarray) else 1


def _dtype(value: Any) -> np.dtype[Any]:
    own = getattr(value, "dtype", None)  # what JAX traces has no values, but a type
    return own if isinstance(own, np.dtype) else np.asarray(value).dtype


def _is_sequence(cls: type) -> bool:
    """Whether NumPy converts objects of this type entry by entry, as it does lists."""
    indexed = hasattr(cls, "__getitem__") and hasattr(cls, "__len__")
    whole = ("__array__", "__array_interface__", "__array_struct__", "keys")
    if not indexed or issubclass(cls, str | bytes | bytearray | memoryview | array_of_python):
        return False
    return not any(hasattr(cls, n) for n in whole)


def _as_double(x: np.ndarray) -> np.ndarray:
    """A new array of float64; long doubles that are too large for it become infinite, without a warning."""
    if x.dtype.itemsize <= 8:
        return interruptible.copied(x, float)
    with np.errstate(over="ignore"):
        return interruptible.copied(x, float)


def finite_array(value: Any, size: float = LARGEST, name: str = "") -> np.ndarray:
    """A new array of float64 of finite numbers, none larger than `size`; `Refused` otherwise."""
    return _finite(real_array(value, name), size)


def _finite(given: np.ndarray, size: float = LARGEST) -> np.ndarray:
    """The same of an array of real numbers.

    Whoever knows its shape checks that first: it may be huge.
    """
    x = _as_double(given)
    if not interruptible.largest(x) <= size:  # NaN is not, either
        raise Refused(
            f"entries are larger than {size:g}" if interruptible.all_finite(x) else "entries are NaN or infinite"
        )
    return x


def array(*shape: int, what: str = "") -> Kind:
    """Finite numbers in an array of this shape."""

    def take(value: Any) -> np.ndarray:
        x = real_array(value)
        if x.shape != shape:
            raise Refused(f"its shape is {x.shape}")
        return _finite(x)

    words = f"{shape[0]} finite numbers" if len(shape) == 1 else f"a matrix of {' x '.join(map(str, shape))} numbers"
    return Kind(what or words, take)


@dataclass(frozen=True)
class Sized(Kind):
    """Numbers for each coordinate of a model: of the argument `model`, or of the model whose method it is.

    `size` names their number ("nq", "nv"). With `batch` they may also be rows; `loose` ones are any finite numbers,
    as in the middle of a computation: neither of a size that makes sense, nor quaternions of length one.
    """

    size: str = "nq"
    batch: bool = False
    loose: bool = False

    def checked(self, name: str, value: Any, given: Mapping[str, Any]) -> Any:
        model = given.get("model", given.get("self"))
        if model is None:
            return value
        n = getattr(model, self.size)
        try:
            x = real_array(value)
            if x.ndim not in ((1, 2) if self.batch else (1,)) or x.shape[-1] != n:
                needs = f"({n},) or (batch, {n})" if self.batch else f"({n},)"
                raise InputError(f"{name} has shape {x.shape}; this model needs {needs}")
            x = _finite(x, float(np.finfo(float).max) if self.loose else LARGEST)
        except Refused as why:
            raise InputError(f"{name} is not an array of finite numbers: {str(why) or shown(value)}") from None
        if self.size == "nq" and not self.loose:
            model.check_position(x)
        return x


POSITION, VELOCITY = Sized("a configuration", nothing, "nq"), Sized("a velocity", nothing, "nv")
POSITIONS, VELOCITIES = Sized("positions", nothing, "nq", True), Sized("velocities", nothing, "nv", True)
ANY_POSITIONS, ANY_VELOCITIES = (Sized("finite numbers", nothing, size, True, loose=True) for size in ("nq", "nv"))


def _matrix(value: Any) -> Any:
    """Of any backend; numbers are finite, symbols may be anything."""
    if isinstance(value, np.ndarray | list | tuple | memoryview):
        x = real_array(value)
        value = _finite(x, float(np.finfo(float).max)) if x.ndim == 2 else x
    shape = getattr(value, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise Refused
    return value


MATRIX = Kind("a matrix (two axes) of a backend", _matrix)


def _numbers(value: Any) -> np.ndarray:
    x = real_array(value)
    if x.ndim != 1:
        raise Refused(f"its shape is {x.shape}")
    return _finite(x)


NUMBERS = Kind("a list of finite numbers", _numbers)
ARRAY = Kind("an array of finite numbers", finite_array)
MODES = Kind("an array of weights, or of truth values", lambda value: finite_array(value, name=WEIGHTS))
ANY_ARRAY = Kind("an array of finite numbers", lambda value: finite_array(value, float(np.finfo(float).max)))


def check_memory(what: str, entries: int, remedy: str) -> None:
    """Refuse results that this machine cannot hold: `entries` numbers of eight bytes."""
    size = interruptible.memory()
    if 8 * entries > size:
        raise InputError(
            f"{what} would take {8 * entries / 1e9:.3g} GB, and this machine has {size / 1e9:.3g} GB; {remedy}"
        )
