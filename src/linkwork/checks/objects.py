"""Names, choices, objects and paths; lists, dictionaries and alternatives of other kinds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from linkwork.checks.declared import Kind, Refused, nothing, shown
from linkwork.errors import InputError, LinkworkError, not_found

MANY = 1_000_000
"""The most entries that a list of names, or of anything but numbers, may have."""


def _flag(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise Refused
    return bool(value)


FLAG = Kind("True or False", _flag)


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise Refused
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused("it has characters that no file can hold") from None
    return str.__str__(value)


NAME = Kind("a name (str)", _name)


def choice(what: str, valid: Iterable[str]) -> Kind:
    """One of these names; `what` says of what, as in "no integrator called"."""
    names = tuple(valid)

    def take(value: Any) -> str:
        found = _name(value)
        if found not in names:
            raise not_found(what, found, names)
        return found

    return Kind(f"one of {', '.join(names)}", take)


def several(kind: Kind, what: str = "") -> Kind:
    """Any number of things of a kind, as a tuple; a text is not one of its letters."""

    def take(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise Refused
        try:
            entries = list(islice(value, MANY + 1))
        except TypeError:  # an array without axes, say
            raise Refused from None
        if len(entries) > MANY:
            raise Refused(f"at most {MANY} of them")
        return tuple(kind.checked(f"entry {k}", x, {}) for k, x in enumerate(entries))

    return Kind(what or f"a list, each entry {kind.what}", take)


def listed(kind: Kind) -> Kind:
    """The same as a list, to which more is added."""
    take = several(kind).take
    return Kind(f"a list, each entry {kind.what}", lambda value: list(take(value)))


def _names(value: Any) -> tuple[str, ...]:
    taken: tuple[str, ...] = several(NAME).take((value,) if isinstance(value, str) else value)
    return taken


NAMES = Kind("a list of names", _names)
"""A tuple; one name serves as a list of it."""


def mapping(kind: Kind, what: str = "") -> Kind:
    """From names to things of a kind, as a dictionary."""

    def take(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise Refused
        named = [(NAME.checked("a key", n, {}), x) for n, x in value.items()]
        return {n: kind.checked(f"what '{n}' stands for", x, {}) for n, x in named}

    return Kind(what or f"a dictionary from names to what is {kind.what}", take)


def optional(kind: Kind) -> Kind:
    """Or None."""
    return either(kind, NOTHING)


NOTHING = Kind("None", nothing)


@dataclass(frozen=True)
class Either(Kind):
    """The first of several kinds that takes the value."""

    kinds: tuple[Kind, ...] = ()

    def checked(self, name: str, value: Any, given: Mapping[str, Any]) -> Any:
        refusals: list[LinkworkError] = []
        for kind in self.kinds:
            try:
                return kind.checked(name, value, given)
            except LinkworkError as refusal:
                refusals.append(refusal)
        specific = [r for r in refusals if not isinstance(r, InputError)]  # a choice that lists what is near
        if specific or len(refusals) == 1 + any(kind is NOTHING for kind in self.kinds):
            raise (specific or refusals)[0]
        raise InputError(f"{name} is {self.what}, not {shown(value)}")


def either(*kinds: Kind) -> Kind:
    """Any of these kinds."""
    return Either(" or ".join(k.what for k in kinds), nothing, kinds)


def instance(cls: type | tuple[type, ...], what: str) -> Kind:
    """An object of a class, whatever it says of itself (`__class__`)."""

    def take(value: Any) -> Any:
        if not issubclass(type(value), cls):
            raise Refused
        return value

    return Kind(what, take)


def like(what: str, *attributes: str) -> Kind:
    """An object with these attributes: of a class of a layer above, or of another library."""

    def take(value: Any) -> Any:
        if isinstance(value, type) or not all(
            hasattr(type(value), n) or n in getattr(value, "__dict__", ()) for n in attributes
        ):
            raise Refused
        return value

    return Kind(what, take)


def _function(value: Any) -> Any:
    if not callable(value):
        raise Refused
    return value


FUNCTION = Kind("a function", _function)
CONSTRAINT = like(
    "a constraint, such as lw.point(frame) or lw.Coupling(...)",
    "rows",
    "check",
    "touches",
    "evaluate",
    "position_error",
    "renamed",
)


def _path(value: Any) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise Refused
    text = str.__str__(os.fsdecode(os.fspath(value)))
    if not text or "\0" in text:
        raise Refused
    return Path(text)


PATH = Kind("a path (str or os.PathLike)", _path)
