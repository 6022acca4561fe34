"""What was made of recent programs: all forms of a kernel are made of the same parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import Concatenate, Generic, ParamSpec, TypeVar

from linkwork.kernels.programs.program import Program

P = ParamSpec("P")
Made = TypeVar("Made")

LONG = 5000
"""Nodes from which on a program is a long one: it takes megabytes."""

FEW, MANY = 16, 64
"""How many long programs are cached, and how many others. A step with contacts has up to 40 parts, ten of them long."""


class cached_of_recent(Generic[P, Made]):
    """A function of a program and of hashable arguments, with results cached."""

    def __init__(self, make: Callable[Concatenate[Program, P], Made]) -> None:
        self._long, self._short = lru_cache(maxsize=FEW)(make), lru_cache(maxsize=MANY)(make)
        update_wrapper(self, make)

    def __call__(self, program: Program, *args: P.args, **named: P.kwargs) -> Made:
        return (self._short if len(program.nodes) < LONG else self._long)(program, *args, **named)  # type: ignore[arg-type]

    def cache_clear(self) -> None:
        """Forget all results."""
        self._long.cache_clear()
        self._short.cache_clear()
