"""Values: objects that are compared, hashed and pickled by content.

Two values are equal if they are of the same class and all their fields are: numbers and arrays by value (0.0 and -0.0
are equal, NaN equals NaN, shape and type of an array count), sequences and mappings entry by entry in their order. What
has no content to compare is equal to itself alone: functions, and objects of classes that are not Linkwork's, because
their fields do not say what they do. Fields that do not take part in comparisons, and cached properties, are left out.

A value does not change. Its content is hashed once (SHA-256, for equality and `hash`); cached properties are not
pickled.
"""

from __future__ import annotations

import hashlib
import reprlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from linkwork.lazy import cached_property

LINE = 119
"""The most characters that the repr of a value has."""


class Content(NamedTuple):
    """The digest of what an object contains; `lasting` if it is the same in every process."""

    digest: str
    lasting: bool


class Value:
    """Base of objects that are compared, hashed, copied and pickled by content."""

    @cached_property
    def _content(self) -> Content:
        return content(*_parts(self)) if ours(type(self)) else Content(f"object {id(self)}", False)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        return self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def __getstate__(self) -> tuple[dict[str, Any], list[str]]:
        """Attributes but cached ones, and the names of read-only ones, which NumPy's pickles do not say."""
        state = uncached(self)
        kept = [n for n, x in state.items() if isinstance(x, MappingProxyType) or _is_read_only(x)]
        return {n: dict(x) if isinstance(x, MappingProxyType) else x for n, x in state.items()}, kept

    def __setstate__(self, state: tuple[dict[str, Any], list[str]]) -> None:
        attributes, kept = state
        self.__dict__.update(attributes, **{n: read_only(attributes[n]) for n in kept})

    def __repr__(self) -> str:
        shown = ", ".join(f"{n}={short(x)}" for n, x in uncached(self).items() if not n.startswith("_"))
        return clipped(f"{type(self).__name__}({shown})")


def content(*parts: Any) -> Content:
    """The content of several things."""
    words, fleeting = list[str](), list[Any]()
    for x in parts:
        _write(x, words, fleeting)
    return Content(hashlib.sha256("\x1f".join(words).encode()).hexdigest(), not fleeting)


def read_only(x: Any) -> Any:
    """The array, or the mapping with arrays in it, made read-only."""
    if isinstance(x, np.ndarray):
        x.setflags(write=False)
    elif isinstance(x, Mapping):
        return MappingProxyType({n: read_only(entry) for n, entry in x.items()})
    return x


def uncached(x: object) -> dict[str, Any]:
    """The attributes of an object that are not cached results."""
    return {n: a for n, a in vars(x).items() if not isinstance(getattr(type(x), n, None), cached_property)}


def ours(kind: type) -> bool:
    """Whether a class is one of Linkwork's, whose sources are part of the keys of cached programs."""
    if kind.__module__.partition(".")[0] != __name__.partition(".")[0]:
        return False
    return getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind


def _is_read_only(x: Any) -> bool:
    return isinstance(x, np.ndarray) and not x.flags.writeable


def _parts(x: object) -> Iterator[Any]:
    """Class and fields of an object of Linkwork's, each of which has a content."""
    yield f"{type(x).__module__}.{type(x).__qualname__}"
    named = ((f.name, getattr(x, f.name)) for f in fields(x) if f.compare) if is_dataclass(x) else uncached(x).items()
    for name, part in named:
        yield name
        yield part


def _write(x: Any, words: list[str], fleeting: list[Any]) -> None:
    """Add words that differ wherever two contents differ, and to `fleeting` objects without content."""
    kind = type(x)
    inside: Iterable[Any] = ()
    if kind in (str, bytes, int, bool, type(None)):
        words.append(f"{kind.__name__}:{x!r}")
    elif isinstance(x, Value):
        words.append(x._content.digest)
        fleeting += [] if x._content.lasting else [x]
    elif kind.__module__.partition(".")[0] not in ("builtins", "numpy") and not ours(kind):
        words.append(f"object {id(x)}")
        fleeting.append(x)
    elif isinstance(x, float | np.floating):
        words.append((float(x) + 0.0).hex())  # -0.0 + 0.0 is 0.0
    elif isinstance(x, np.ndarray) and not x.dtype.hasobject:
        words += [f"array{x.shape}{x.dtype.str}", (x + 0.0 if x.dtype.kind == "f" else x).tobytes().hex()]
    elif isinstance(x, tuple | list):
        words.append(f"[{len(x)}")
        inside = x
    elif isinstance(x, Mapping):
        words.append(f"{{{len(x)}")
        inside = x.items()
    elif is_dataclass(x) and not isinstance(x, type):
        inside = _parts(x)
    elif isinstance(x, slice | range):
        words.append(repr(x))
    else:
        words.append(f"object {id(x)}")
        fleeting.append(x)
    for part in inside:
        _write(part, words, fleeting)


# short texts


def short(x: Any) -> str:
    """A value in a few words: numbers with four digits, arrays of up to six of them, long texts cut."""
    if isinstance(x, np.ndarray) or (isinstance(x, tuple) and x and all(isinstance(e, float) for e in x)):
        a = np.asarray(x)
        return f"[{' '.join(f'{e + 0.0:.4g}' for e in a)}]" if a.ndim == 1 and a.size <= 6 else f"array{a.shape}"
    if isinstance(x, bool | int | str):
        return reprlib.repr(x)
    if isinstance(x, float):
        return f"{x:.4g}"
    if isinstance(x, Mapping | tuple | list):
        return f"{len(x)} of them" if x else "()"
    return clipped(repr(x), 60)


def clipped(text: str, most: int = LINE) -> str:
    """A text of one line and at most so many characters, its middle left out if it is longer."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 8]} ... {line[-3:]}"
