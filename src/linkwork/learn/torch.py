"""Functions of Linkwork as operators of PyTorch: autograd of two orders, `vmap`, `torch.compile`.

    import linkwork as lw
    import linkwork.learn.torch

    fd = lw.learn.torch.function(lw.forward_dynamics(model))
    fd(q, v, tau).a.sum().backward()                           # tensors on the CPU, with any axes before the last

Each function and each product of its derivatives (products.py) is an operator of `torch.library`, in the namespace
`linkwork`. Kernels compute in the memory of tensors, without copies, on at most as many threads as torch has.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwork.checks import WEIGHTS, Refused, bare_as_entry, checked, real_array, shown
from linkwork.chunked_arrays import copied
from linkwork.errors import InputError, MissingExtra, UnsupportedError, not_found
from linkwork.functions.function import Function
from linkwork.learn.products import Family
from linkwork.learn.steps import FUNCTION, ROLLOUT, START, Motion, SplitStep, arguments, handed_on, stepped
from linkwork.simulation.optimal_control.discrete_step import DiscreteStep
from linkwork.simulation.rollouts.rollout import Rollout

try:
    import torch

    from linkwork.learn.torch_operators import (
        Direct,
        constant,
        differentiable,
        is_watched,
        needs_gradient,
        operator_of,
        plain,
        recording,
    )
except ImportError as missing:
    raise MissingExtra("torch", "torch", "linkwork.learn.torch") from missing


@checked(of=FUNCTION)
def function(of: Function[Any] | DiscreteStep) -> Callable[..., Any]:
    """The same function for PyTorch.

    Of the same inputs, in order or by name; those with a default may be left out. Inputs are tensors on the CPU of the
    function's dtype, with any axes before their own, as (T, B, nq), which are broadcast. Results are a named tuple; of
    solvers, `converged` is its last field. Nothing is raised for states without a solution: their results are NaN.
    Quaternions in `q` are [x y z w] and of length one, else results are NaN; derivatives by `q` are by its entries, of
    the function of the normalised quaternion: gradients are orthogonal to it. There are first and second derivatives,
    in reverse; `gradcheck` needs `q` normalised inside of what it checks.
    """
    return SplitStep(of, function, "PyTorch") if isinstance(of, DiscreteStep) else _Function(Family(of))


@checked(of=ROLLOUT)
def rollout(of: Rollout) -> Callable[..., Motion]:
    """`roll(q, v, tau, ...)`: the states after each of T steps, as `lw.rollout` computes them.

    One operator a step. `q` (..., nq) and `v` (..., nv) are those of the start. What changes with time (`tau`,
    `active`, `target`, `target_v`) has time as its first axis, (T, ..., n), or is (n,) and held; if all are held, the
    rollout's `steps` are T. `tau` may also be a function `(q, v, k) -> tau`, a policy, called before each step.
    Gradients are those of the computation itself, solver iterations and forces to start from included.
    """
    family = stepped(of)
    step = _Function(family)

    def roll(q: Any, v: Any, tau: Any = None, **others: Any) -> Motion:
        given = {"q": q, "v": v, "tau": None if callable(tau) else tau, **others}
        x = arguments(of, family, given, functools.partial(_tensor, family.of), torch)
        states, carried = [], dict(x.carried)

        def after(q: Any, v: Any, carried: dict[str, Any], k: int) -> Any:
            now = {**x.held, **{n: y[k] for n, y in x.moving.items()}}
            if callable(tau):
                now["tau"] = tau(q, v, k)
            return step(q, v, **now, **carried)

        q, v = x.q, x.v
        if any(port.name == START for port in family.inputs):
            nothing = {START: torch.zeros((*x.lead, of.model.rows), dtype=q.dtype)}
            carried[START] = after(q, v, carried | nothing, 0).start_next
        for k in range(x.steps):
            r = after(q, v, carried, k)
            q, v, carried = r.q_next, r.v_next, handed_on(r)
            states.append((q, v, r.converged))
        return Motion(*(torch.stack(each) for each in zip(*states, strict=True)))

    return roll


class _Function:
    """A function with its products: see `function`."""

    def __init__(self, family: Family) -> None:
        self.family, self.of = family, family.of
        self._op, self._shapes = operator_of("value", family, ()), [torch.Size(port.shape) for port in family.inputs]
        self._dtype = getattr(torch, self.of.dtype)
        self._defaults = {n: constant(np.asarray(x), self._dtype) for n, x in self.of.defaults.items()}
        self._names, self._count = [port.name for port in family.inputs], len(family.outputs)
        hidden = int(family.reports)
        self._direct = Direct(self._op.kernel, self._op.order, family.result, hidden, family.solves)
        self._recorded = differentiable(self._values, self._op)

    def __repr__(self) -> str:
        return f"{self.of!r} for PyTorch"

    def __reduce__(self) -> Any:
        return function, (self.of,)

    def __call__(self, *args: Any, **named: Any) -> Any:
        watched = is_watched()
        if not named and not watched and (found := self._direct(*args)) is not None:
            return found
        if named or len(args) != len(self._names):
            for n in named:
                if n not in self._names:
                    raise not_found(f"input of {self.of.name}", n, self._names)
            given = {**self._defaults, **dict(zip(self._names, args, strict=False)), **named}
            if len(given) < len(self._names) or len(args) + len(named) > len(self._names):
                self.of._ordered(args, named)  # raises for what is missing, or too much
            args = tuple(given[n] for n in self._names)
        tensors = [x if self._fits(x) else _tensor(self.of, x, n) for x, n in zip(args, self._names, strict=True)]
        lead: Any = ()
        if [x.shape for x in tensors] != self._shapes:
            tensors, lead = self._flat(tensors)
        if watched or not plain(tensors):
            found = self._op(*tensors)
            found = (*found[: self._count], *self._converged(found, numbers=False))
        else:
            found = (recording(self._recorded) if needs_gradient(tensors) else self._values)(*tensors)
        if len(lead) > 1:
            found = [x.reshape(*lead, *x.shape[1:]) for x in found]
        return self.family.result(*found)

    def _values(self, *tensors: Any) -> Any:
        """The results of tensors without autograd."""
        if (direct := self._direct(*tensors)) is not None:
            return direct
        found, numbers = self._op.judged(tensors)
        self._direct.prepare(self._op.lead(tensors))
        return *found[: self._count], *self._converged(found, numbers)

    def _fits(self, x: Any) -> bool:
        """Whether x is a dense tensor of the function's dtype on the CPU."""
        return getattr(x, "dtype", None) is self._dtype and x.is_cpu and x.layout is torch.strided and not x.is_nested

    def _converged(self, found: Sequence[Any], numbers: bool) -> list[Any]:
        """Whether the solver has: methods that iterate report it, direct ones have if there are `numbers`."""
        if not self.family.solves:
            return []
        told = found[-1 if self.family.reports else 0].detach()
        if type(told) is not torch.Tensor or is_watched():
            return [told.select(-1, 2) == 1 if self.family.reports else torch.isfinite(told.sum(-1))]
        # by NumPy in a fifth of the time, and after a fork: torch's threads are missing then, and waited for
        array = told.numpy()
        if numbers:
            yes: Any = np.ones(array.shape[:-1], bool)
        else:
            yes = array[..., 2] == 1 if self.family.reports else np.isfinite(array.sum(-1))
        return [torch.from_numpy(np.asarray(yes))]

    def _flat(self, tensors: Sequence[Any]) -> tuple[list[Any], Any]:
        """The inputs with one axis before their own, or none; and the axes that they have together."""
        tensors = [bare_as_entry(x, shape) for x, shape in zip(tensors, self._shapes, strict=True)]
        leads = []
        for n, shape, x in zip(self._names, self._shapes, tensors, strict=True):
            split = x.ndim - len(shape)
            if split < 0 or x.shape[split:] != shape:
                needed = "(" + ", ".join(["...", *map(str, shape)]) + ")"
                raise InputError(f"{self.of.name}: '{n}' has shape {tuple(x.shape)}; this model needs {needed}")
            leads.append(x.shape[:split])
        try:
            lead = torch.broadcast_shapes(*leads)
        except RuntimeError:
            told = [tuple(x) for x in leads]
            raise InputError(f"{self.of.name}: the first axes {told} of its inputs do not fit each other") from None
        if len(lead) == 1 and all(own == lead or not own for own in leads):
            return list(tensors), lead
        pairs = zip(tensors, leads, self._shapes, strict=True)
        return [x.broadcast_to((*lead, *s)).reshape(-1, *s) if own else x for x, own, s in pairs], lead


def _numbers(of: Function[Any], x: Any, name: str) -> torch.Tensor:
    """A new tensor of what is array-like."""
    try:
        if isinstance(x, str | bytes | bool | None):
            raise Refused
        return torch.from_numpy(copied(real_array(x, name), of.dtype))
    except Refused as why:
        raise InputError(f"{of.name} takes tensors or arrays of real numbers: {str(why) or shown(x)}") from None


def _tensor(of: Function[Any], x: Any, name: str) -> torch.Tensor:
    """A tensor of the function's dtype on the CPU."""
    tensor = x if isinstance(x, torch.Tensor) else _numbers(of, x, name)
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        raise InputError(
            f"{of.name} takes dense tensors of numbers: use .to_dense(), .dequantize() or .to_padded_tensor()"
        )
    if tensor.is_complex() or (tensor.dtype is torch.bool and name != WEIGHTS):
        raise InputError(f"{of.name} takes real numbers, and '{name}' is {tensor.dtype}")
    if tensor.device.type != "cpu":
        raise UnsupportedError(f"{of.name} is machine code for a CPU, and a tensor is on '{tensor.device}': use .cpu()")
    return tensor.to(getattr(torch, of.dtype))
