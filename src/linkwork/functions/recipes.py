"""How functions are pickled and copied: as the factory that made them, and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from linkwork.functions.method_choice import Choice

if TYPE_CHECKING:
    from linkwork.functions.function import Function

P = ParamSpec("P")
F = TypeVar("F", bound="Function[Any]")


def factory(make: Callable[P, F]) -> Callable[P, F]:
    """A factory whose functions store its arguments, by which they are pickled and copied."""

    @wraps(make)
    def made(*args: P.args, **named: P.kwargs) -> F:
        function = make(*args, **named)
        function.recipe = make.__module__, make.__qualname__, args, named
        return function

    made.is_factory = True  # type: ignore[attr-defined]
    return made


def remade(module: str, name: str, args: tuple[Any, ...], named: dict[str, Any], method: str | None) -> Any:
    """The function that a factory makes of these arguments, with the method chosen before, if any."""
    function = getattr(import_module(module), name)(*args, **named)
    if method is not None and isinstance(function.choice, Choice):
        function.choice.settle(method)
    return function
