"""Arguments declared by their kinds above a function, and checked when it is called."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from inspect import CO_VARARGS, CO_VARKEYWORDS, unwrap
from typing import Any, ParamSpec, TypeVar

import numpy as np

from linkwork.errors import InputError, LinkworkError, listing, not_found

P = ParamSpec("P")
T = TypeVar("T")


class Refused(Exception):
    """A value that is not of a kind; the text says why, where that is not obvious."""


@dataclass(frozen=True)
class Kind:
    """What an argument must be ("a number above 0"), and its conversion: `take` raises `Refused`."""

    what: str
    take: Callable[[Any], Any] = field(repr=False)

    def checked(self, name: str, value: Any, given: Mapping[str, Any]) -> Any:
        """The value as functions take it; `given` are the arguments before it, already checked."""
        try:
            return self.take(value)
        except Refused as more:
            why = f" ({more})" if str(more) else ""
            raise InputError(f"{name} is {self.what}, not {shown(value)}{why}") from None
        except LinkworkError:
            raise
        except Exception as problem:
            if type(value).__module__ in ("builtins", "numpy"):
                raise
            # a foreign type that answers with errors of its own
            raise InputError(f"{name} is {self.what}, not {shown(value)} ({type(problem).__name__})") from None


def checked(**kinds: Kind) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """The function, whose arguments are of these kinds, checked in this order.

    One for `*names` is for each of them.
    """

    def declare(function: Callable[P, T]) -> Callable[P, T]:
        # read from the code: `inspect.signature` of all public functions takes 10 ms of every process
        code = unwrap(function).__code__
        count = code.co_argcount + code.co_kwonlyargcount
        places, rest = code.co_varnames[: code.co_argcount], ""
        if code.co_flags & CO_VARARGS:
            rest = code.co_varnames[count]
        unknown = {*kinds} - {*code.co_varnames[:count], rest}
        assert not unknown or code.co_flags & CO_VARKEYWORDS, unknown

        @wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> T:
            given = {**dict(zip(places, args, strict=False)), **named}
            for n, kind in kinds.items():
                if n in given and n != rest:
                    given[n] = kind.checked(n, given[n], given)
            more = [kinds[rest].checked(rest, x, given) if rest in kinds else x for x in args[len(places) :]]
            taken = [given[n] for n in places[: len(args)]]
            try:
                return function(*taken, *more, **{n: given[n] for n in named})  # type: ignore[arg-type]
            except TypeError as problem:
                odd = [n for n in named if n not in kinds and n not in code.co_varnames[:count]]
                many = not rest and len(args) > len(places)
                if not odd and not many:
                    raise
                raise _explained(problem, function, odd, [n for n in kinds if odd or n not in places]) from None

        call.kinds = kinds  # type: ignore[attr-defined]
        return call

    return declare


def _explained(problem: TypeError, function: Callable[..., Any], odd: Sequence[str], named: Sequence[str]) -> TypeError:
    """Python's error about the arguments of a call, with what to do; `named` are those that have a name."""
    if odd:
        hint = str(not_found("argument", odd[0], named)).partition("'. ")[2]
    else:
        made = f"f = lw.{function.__name__}(model) makes a function that takes numbers, f(q, ...)"
        hint = f"{made}; o" if getattr(function, "is_factory", False) else "O"
        hint += f"thers are given by name: {listing(named)}"
    return TypeError(f"{problem}. {hint}")


def checked_class(**kinds: Kind) -> Callable[[type[T]], type[T]]:
    """The class, whose constructor takes arguments of these kinds."""

    def declare(cls: type[T]) -> type[T]:
        cls.__init__ = checked(**kinds)(cls.__init__)  # type: ignore[method-assign]
        return cls

    return declare


def shown(value: Any) -> str:
    """A value in a message: short, and safe to print whatever it is, and whatever it raises."""
    with suppress(Exception):
        if isinstance(value, np.ndarray):
            return f"an array of {value.dtype} with shape {value.shape}"
        if value is None or isinstance(value, int | float | complex | str | bytes | list | tuple | dict | np.generic):
            return reprlib.repr(value)
    return f"a {type(value).__name__}"


def nothing(value: Any) -> None:
    """None itself."""
    if value is not None:
        raise Refused
