"""What was made of recent programs: all forms of a kernel are made of the same parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

from linkwork.kernels.programs.program import Program

P = ParamSpec("P")
Made = TypeVar("Made")

LONG = 5000
"""Nodes from which on a program is a long one: it takes megabytes."""

FEW, MANY = 16, 64
"""How many long programs are cached, and how many others. A step with contacts has up to 40 parts, ten of them long."""


def cached_of_recent(make: Callable[Concatenate[Program, P], Made]) -> Callable[Concatenate[Program, P], Made]:
    """Cache the results of a function of a program and of hashable arguments."""
    long, short = lru_cache(maxsize=FEW)(make), lru_cache(maxsize=MANY)(make)

    @wraps(make)
    def get(program: Program, *args: P.args, **named: P.kwargs) -> Made:
        return (short if len(program.nodes) < LONG else long)(program, *args, **named)

    return get
