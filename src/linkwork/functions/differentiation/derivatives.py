"""Derivatives of functions: dense (`f.derivatives()`), and products with them (`f.jvp()`, `f.vjp()`).

By q they are in tangent space: nv columns, in the chart of `integrate`, the derivative of f(integrate(q, dq)) by dq at
zero. They are traced and compiled like the functions themselves, for one state or batches.

- Forward dynamics and impulses are differentiated at their solution, whatever the method and its iterations
  (algorithms/derivatives/); one factor serves all columns. A reverse product is one more solve, and one sweep back
  through the equation of motion.
- Inverse dynamics of trees have their own algorithm (`rnea_derivatives`).
- All others are differentiated operation by operation (kernels/programs/differentiate.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from linkwork.checks import checked
from linkwork.functions.differentiation.derivative_products import Forward, Reverse
from linkwork.functions.differentiation.jacobians import Jacobians
from linkwork.functions.function import WRT, Function


@checked(wrt=WRT)
def derivatives(function: Function[Any], wrt: Sequence[str] | None = None) -> Function[Any]:
    """The Jacobians of a function's outputs by the inputs `wrt`: see `Function.derivatives`."""
    return _remembering(derivatives, Jacobians(function, wrt), function, wrt)


@checked(wrt=WRT)
def jvp(function: Function[Any], wrt: Sequence[str] | None = None) -> Function[Any]:
    """Products of a function's Jacobians with changes of inputs: see `Function.jvp`."""
    return _remembering(jvp, Forward(function, wrt), function, wrt)


@checked(wrt=WRT)
def vjp(function: Function[Any], wrt: Sequence[str] | None = None) -> Function[Any]:
    """Products of weights with a function's Jacobians: see `Function.vjp`."""
    return _remembering(vjp, Reverse(function, wrt), function, wrt)


@checked(wrt=WRT)
def hvp(function: Function[Any], wrt: Sequence[str] | None = None) -> Function[Any]:
    """Changes of the gradients of a function, along changes of its inputs: see `Function.hvp`."""
    from linkwork.functions.differentiation.second_order import SecondOrder

    return _remembering(hvp, SecondOrder(function, wrt), function, wrt)


def _remembering(make: Callable[..., Any], made: Function[Any], *args: Any) -> Function[Any]:
    """The function with the recipe by which it is pickled."""
    made.recipe = make.__module__, make.__qualname__, args, {}
    return made
