"""A name for the content of a model, so that what was computed for it can be found again."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from linkwork.joints import Joint


def digest(*parts: Any) -> str | None:
    """A digest of models, joints, constraints, numbers and names; None if anything in them has no content to compare.

    Functions, as in `Custom`, are such: two with the same name need not be the same. So are objects of classes that are
    not Linkwork's: what a user's own constraint or joint does can change between two runs, and its fields do not show.
    Fields that do not take part in comparisons, as the looks of links, are left out.
    """
    try:
        return hashlib.sha256("\x1f".join(_words(parts)).encode()).hexdigest()
    except TypeError:
        return None


def _words(x: Any) -> Iterator[str]:
    """The content as a stream of words that differs wherever two contents differ."""
    kind = type(x)
    if kind.__module__.partition(".")[0] not in ("builtins", "numpy", "types") and not _ours(kind):
        raise TypeError(f"what a {kind.__name__} does is not part of its content")
    if x is None or isinstance(x, (bool, int, str)):
        yield f"{type(x).__name__}:{x!r}"
    elif isinstance(x, (float, np.floating)):
        yield float(x).hex()
    elif isinstance(x, np.ndarray) and not x.dtype.hasobject:
        yield f"array{x.shape}{x.dtype}"
        yield np.ascontiguousarray(x).tobytes().hex()
    elif isinstance(x, Joint):
        yield kind.__qualname__
        yield from _words(vars(x))
    elif is_dataclass(x) and not isinstance(x, type):
        yield f"{kind.__module__}.{kind.__qualname__}"
        for f in (f for f in fields(x) if f.compare):
            yield f.name
            yield from _words(getattr(x, f.name))
    elif isinstance(x, Mapping):
        yield f"{{{len(x)}"
        for key, value in x.items():
            yield from _words(key)
            yield from _words(value)
    elif isinstance(x, Sequence):
        yield f"[{len(x)}"
        for value in x:
            yield from _words(value)
    else:
        raise TypeError(f"{type(x).__name__} has no content to compare")


def _ours(kind: type) -> bool:
    """Whether a class is one of Linkwork's, whose sources are part of what programs are cached by."""
    if kind.__module__.partition(".")[0] != __name__.partition(".")[0]:
        return False
    return getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
