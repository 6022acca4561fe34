"""Attributes that are computed when they are first used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import linkwork.forks  # noqa: F401, a fork waits for what is imported when it is first asked for

Value = TypeVar("Value")


class cached_property(Generic[Value]):
    """`functools.cached_property` without the lock that it has up to Python 3.11.

    One lock there serves all instances while a value is computed. A child that is forked meanwhile can never acquire
    it. Here threads may compute the same value at once; all of them get the first.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.name, self.compute(instance))
