"""Checks of the arguments of public functions: each is declared once, by its kind.

    @checked(model=MODEL, dt=POSITIVE, steps=optional(whole(1)), method=optional(NAME))
    def rollout(model, *, dt=1e-3, steps=None, method=None): ...

A kind gives a value back as the function wants it (a float, an array of its own, a tuple of names), or refuses it with
an error that says what was given and what is valid. Defaults are not checked. Numbers are
real and finite, and of a size with which products of a few of them stay so; strings are never numbers, truth values
are neither, and arrays have no masked entries.
"""

from __future__ import annotations

from linkwork.checks.arrays import (
    ANY_ARRAY,
    ANY_POSITIONS,
    ANY_VELOCITIES,
    ARRAY,
    BARE,
    MATRIX,
    MODES,
    NUMBERS,
    POSITION,
    POSITIONS,
    VELOCITIES,
    VELOCITY,
    WEIGHTS,
    Sized,
    array,
    bare_as_entry,
    check_memory,
    finite_array,
    plain_entries,
    real_array,
)
from linkwork.checks.declared import (
    Kind,
    Refused,
    checked,
    checked_class,
    shown,
)
from linkwork.checks.numbers import (
    LARGEST,
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    SEED,
    SMALLEST,
    TIME,
    number,
    whole,
)
from linkwork.checks.objects import (
    CONSTRAINT,
    FLAG,
    FUNCTION,
    NAME,
    NAMES,
    NOTHING,
    PATH,
    Either,
    choice,
    either,
    instance,
    like,
    listed,
    mapping,
    optional,
    several,
)

__all__ = [
    "ANY_ARRAY",
    "ANY_POSITIONS",
    "ANY_VELOCITIES",
    "ARRAY",
    "BARE",
    "CONSTRAINT",
    "FLAG",
    "FUNCTION",
    "LARGEST",
    "MATRIX",
    "MODES",
    "NAME",
    "NAMES",
    "NOTHING",
    "NOT_NEGATIVE",
    "NUMBER",
    "NUMBERS",
    "PATH",
    "POSITION",
    "POSITIONS",
    "POSITIVE",
    "SEED",
    "SMALLEST",
    "TIME",
    "VELOCITIES",
    "VELOCITY",
    "WEIGHTS",
    "Either",
    "Kind",
    "Refused",
    "Sized",
    "array",
    "bare_as_entry",
    "check_memory",
    "checked",
    "checked_class",
    "choice",
    "either",
    "finite_array",
    "instance",
    "like",
    "listed",
    "mapping",
    "number",
    "optional",
    "plain_entries",
    "real_array",
    "several",
    "shown",
    "whole",
]
