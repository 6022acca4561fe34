"""Backends: the operations that algorithms may use, executed by NumPy or traced by CasADi."""

from __future__ import annotations

from linkwork.backends.ops import Array, Factor, Ops

__all__ = ["Array", "Factor", "Ops", "get"]


def get(name: str) -> Ops:
    """The backend called `name`: "numpy" executes, "casadi" traces."""
    if name == "numpy":
        from linkwork.backends.numpy_ import NUMPY

        return NUMPY
    if name == "casadi":
        from linkwork.backends.casadi_ import CASADI

        return CASADI
    from linkwork.errors import not_found

    raise not_found("backend", name, ["numpy", "casadi"])
