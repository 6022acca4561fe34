"""What was found out about a model, kept as long as it lives. Models hold arrays and have no hash: identity counts."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TypeVar

from linkwork.model.model import Model

Found = TypeVar("Found")


def once(known: dict[int, Found], model: Model, find: Callable[[Model], Found]) -> Found:
    """`find(model)`, looked up in `known` by the model's identity after the first time."""
    if id(model) not in known:
        known[id(model)] = find(model)
        weakref.finalize(model, known.pop, id(model), None)
    return known[id(model)]
