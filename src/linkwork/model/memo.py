"""The memo of a model: results of functions of it, cached for as long as it lives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar

from linkwork.model.model import Model

P = ParamSpec("P")
Found = TypeVar("Found")


def cached(find: Callable[Concatenate[Model, P], Found]) -> Callable[Concatenate[Model, P], Found]:
    """Cache the results of a function of a model and of hashable arguments in the model.

    >>> @cached
    ... def weight(model: Model, g: float = 9.81) -> float:
    ...     return model.mass * g

    Results are in the model itself: they are freed with it and never pickled, and equal models have each their own.
    Threads may compute the same value at once; all of them get the first. There is no lock that a forked process could
    inherit.
    """
    defaults = {n: p.default for n, p in list(signature(find).parameters.items())[1:]}

    @wraps(find)
    def get(model: Model, /, *args: P.args, **named: P.kwargs) -> Found:
        key = find, *{**defaults, **dict(zip(defaults, args, strict=False)), **named}.values()
        memo: dict[Any, Found] = model._memo
        return memo[key] if key in memo else memo.setdefault(key, find(model, *args, **named))

    return get
