"""Operators of PyTorch: one for each function and each product of its derivatives (products.py).

Operators are in the namespace `linkwork` of `torch.library`, with what torch calls for them: autograd in reverse and
forward, `vmap`, `torch.compile`. Where none of these is active, kernels are called without them (tensor_calls.py).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad
from torch.nn import Parameter

from linkwork.kernels.calls.kernel import Kernel
from linkwork.learn import tensor_calls
from linkwork.learn.products import Family, refuse_third
from linkwork.model.digest import digest
from linkwork.system.cores import cores

Wrt = tuple[tuple[str, ...], ...]

# names that calls look up at once
_Tensor = torch.Tensor
_is_compiling, _is_grad_enabled = torch.compiler.is_dynamo_compiling, torch.is_grad_enabled
_transforms_active, _tracing_state = torch._C._are_functorch_transforms_active, torch._C._get_tracing_state
_dispatch_modes, _function_modes = torch._C._len_torch_dispatch_stack, torch._C._len_torch_function_stack


def is_watched() -> bool:
    """Whether a transform, a compilation or a mode is on, which has to know of an operation.

    Otherwise the kernel is called without the operator.
    """
    if _is_compiling() or _transforms_active() or _tracing_state() is not None:
        return True
    return bool(_dispatch_modes() or _function_modes() or forward_ad._current_level >= 0)


def plain(tensors: Sequence[Any]) -> bool:
    """Whether none is of a class that may define its own operations."""
    return all(type(x) is _Tensor or type(x) is Parameter for x in tensors)


def constant(x: Any, dtype: torch.dtype) -> torch.Tensor:
    """A tensor that all calls may use, wherever it is made."""
    with torch.inference_mode(False):
        return torch.tensor(x, dtype=dtype, device="cpu")


def needs_gradient(tensors: Sequence[Any]) -> bool:
    return _is_grad_enabled() and any(x.requires_grad for x in tensors)


def _nothing(*tensors: Any) -> Any:
    return None


class Direct:
    """Machine code that takes tensors and makes results.

    It is there once the kernel is compiled for a state, or for a batch.
    """

    def __init__(self, kernel: Kernel, places: Sequence[int], *how: Any) -> None:
        self._kernel, self._how = kernel, (places, *how)
        self._forms: list[Any] = [None, None]
        self._one, self._many = _nothing, _nothing

    def __call__(self, *tensors: Any) -> Any:
        """The results; None for what is left to Python (see tensor_calls.py)."""
        found = self._one(*tensors)
        return self._many(*tensors) if found is None else found

    def prepare(self, lead: tuple[int, ...]) -> None:
        """Use the code that has computed a state, or a batch of this length: that may have been compiled now."""
        if lead == (0,):
            return
        batch = lead not in ((), (1,))
        form = self._kernel.native(batch, whole=False)
        if form is not self._forms[batch]:
            made = tensor_calls.built(self._kernel, form, *self._how) or _nothing
            self._forms[batch] = form
            if batch:
                self._many = made
            else:
                self._one = made


# operators: one for each kind of product, of the operands x, then directions or weights, then changes

_LIBRARY = torch.library.Library("linkwork", "FRAGMENT")
_OPERATORS: dict[str, Any] = {}


def operator_of(kind: str, family: Family, wrt: Wrt) -> Any:
    """The operator of a product, defined when first needed; equal functions share theirs."""
    known = family.__dict__.setdefault("operators", {})
    if (kind, wrt) not in known:
        known[kind, wrt] = _defined(kind, family, wrt)
    return known[kind, wrt]


def _defined(kind: str, family: Family, wrt: Wrt) -> Any:
    of = family.made(kind, *wrt)
    content = digest(of._cached_program.digest, of.name, str(of.dtype), of.threads or 0, *of._settings.values())
    name = f"{kind}_{content[:24] if content else len(_OPERATORS)}"
    if name not in _OPERATORS:
        call = Operator(kind, family, wrt)
        taken = ", ".join(f"Tensor x{k}" for k in range(len(call.shapes)))
        given = ", ".join(["Tensor"] * len(call.outputs))
        _LIBRARY.define(f"{name}({taken}) -> {f'({given})' if len(call.outputs) > 1 else given}")
        _LIBRARY.impl(name, call.run, "CPU")
        qualified = f"linkwork::{name}"
        torch.library.register_fake(qualified, call.fake, lib=_LIBRARY)
        torch.library.register_vmap(qualified, call.mapped, lib=_LIBRARY)
        torch.library.register_autograd(qualified, call.backward, setup_context=call.remember, lib=_LIBRARY)
        call.operator = getattr(torch.ops.linkwork, name).default
        _OPERATORS[name] = call
    return _OPERATORS[name]


def differentiable(compute: Callable[..., Any], call: Operator) -> Any:
    """What computes the results of an operator, as a function of autograd and `torch.func`."""

    class Product(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(*operands: Any) -> Any:
            return compute(*operands)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        backward = staticmethod(call.backward)
        jvp = staticmethod(call.forward)
        vmap = staticmethod(call.mapped)

    return Product


def recording(product: Any) -> Any:
    """`apply` where no transform is on.

    That of the class inspects the signature of `forward`, which takes 40 us.
    """
    return super(torch.autograd.Function, product).apply


class Operator:
    """An operator, and what torch calls for it."""

    operator: Any

    def __init__(self, kind: str, family: Family, wrt: Wrt) -> None:
        self.kind, self.family, self.wrt = kind, family, wrt
        of = family.made(kind, *wrt)
        self.kernel = Kernel(
            of._cached_program, dtype=of.dtype, threads=of.threads, defaults=of.defaults, settings=of._settings
        )
        self.limit = of.threads or cores()
        names = family.operands(kind, wrt)
        shapes = {port.name: port.shape for port in self.kernel.given}
        self.shapes = [shapes[n] for n in names]
        self.order = [names.index(port.name) for port in self.kernel.given]
        self.outputs = [port.shape for port in self.kernel.outputs]
        self.names, self.n, self.free = [port.name for port in family.inputs], len(family.inputs), set(family.free)
        self.weighed = len(family.outputs) if kind == "value" else len(self.outputs)
        flat = [(math.prod(shape),) for shape in self.outputs]  # as weights of outputs are
        self._weights = [*(self.outputs if kind == "reverse" else flat)[: self.weighed]]
        self._zeros = [constant(np.zeros(shape), getattr(torch, of.dtype)) for shape in self._weights]
        self._direct = Direct(self.kernel, self.order, tuple)
        self._transformed = differentiable(lambda *operands: self.operator(*operands), self)
        self._recorded = differentiable(self._computed, self)

    def __call__(self, *operands: Any) -> Sequence[Any]:
        """All results."""
        watched = is_watched()
        if not watched and (direct := self._direct(*operands)) is not None:
            return direct  # type: ignore[no-any-return]
        if not watched and plain(operands):
            compute = recording(self._recorded) if needs_gradient(operands) else self._computed
            return compute(*operands)
        forward = not _is_compiling() and (_transforms_active() or forward_ad._current_level >= 0)
        found = self._transformed.apply(*operands) if forward else self.operator(*operands)
        return found if isinstance(found, tuple | list) else (found,)

    def run(self, *operands: torch.Tensor) -> Any:
        """The operator on the CPU: one result is not in a tuple."""
        found = self._computed(*operands)
        return found if len(found) > 1 else found[0]

    def _computed(self, *operands: torch.Tensor) -> Sequence[torch.Tensor]:
        """The results of tensors that nobody records."""
        if (direct := self._direct(*operands)) is not None:
            return direct  # type: ignore[no-any-return]
        found, _ = self.judged(operands)
        self._direct.prepare(self.lead(operands))
        return found

    def judged(self, operands: Sequence[torch.Tensor]) -> tuple[tuple[torch.Tensor, ...], bool]:
        """All results by way of arrays, and whether they are numbers."""
        arrays = [x.contiguous().numpy(force=True) for x in operands]
        self.kernel.threads = min(self.limit, torch.get_num_threads())
        found, numbers = self.kernel.judged([arrays[k] for k in self.order])
        return tuple(map(torch.from_numpy, found)), numbers

    def fake(self, *operands: torch.Tensor) -> Any:
        """Results without values, for `torch.compile`."""
        lead = self.lead(operands)
        found = tuple(operands[0].new_empty((*lead, *shape)) for shape in self.outputs)
        return found if len(found) > 1 else found[0]

    def lead(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The axis of the batch, if there is one."""
        for x, shape in zip(operands, self.shapes, strict=True):
            if x.ndim > len(shape):
                return (x.shape[0],)
        return ()

    def mapped(self, info: Any, axes: Sequence[int | None], *operands: torch.Tensor) -> Any:
        """One more axis: in front of a batch there may be already, and one axis with it for the kernel."""
        front = [x if d is None else x.movedim(d, 0) for x, d in zip(operands, axes, strict=True)]
        rest = [x if d is None else x[0] for x, d in zip(front, axes, strict=True)]
        inner = self.lead(rest)
        if inner:
            size = (info.batch_size, *inner)
            front = [
                x
                if d is None and y.ndim == len(shape)
                else (x if d is not None else x[None])
                .reshape(-1 if d is not None else 1, *(inner if y.ndim > len(shape) else (1,)), *shape)
                .expand(*size, *shape)
                .reshape(-1, *shape)
                for x, y, d, shape in zip(front, rest, axes, self.shapes, strict=True)
            ]
        parts = [x.reshape(info.batch_size, *inner, *x.shape[1:]) for x in self(*front)]
        return (tuple(parts), (0,) * len(parts)) if len(parts) > 1 else (parts[0], 0)

    # derivatives

    @staticmethod
    def remember(ctx: Any, inputs: Any, output: Any) -> None:
        """What `backward` needs."""
        ctx.save_for_backward(*inputs)

    def backward(self, ctx: Any, *weights: Any) -> Any:
        """The transposed product.

        value            reverse
        forward          in x second_reverse, in dx reverse
        reverse          in x second_reverse, in w forward

        In x, products have the Hessian of w y: symmetric.
        """
        operands, needed = ctx.saved_tensors, ctx.needs_input_grad
        if all(w is None for w in weights[: self.weighed]):
            return (None,) * len(operands)
        if self.kind.startswith("second"):
            raise refuse_third(self.family.of)
        free = tuple(n for n, need in zip(self.names, needed, strict=False) if need and n in self.free)
        lead, x, linear, answers = self.lead(operands), operands[: self.n], operands[self.n :], [None] * len(operands)
        watched, filled = is_watched(), []
        for w, shape, zero in zip(weights, self._weights, self._zeros, strict=False):
            if w is None:
                filled.append(operands[0].new_zeros((*lead, *shape)) if watched else zero)
            else:
                same = w.ndim == len(lead) + len(shape)
                filled.append((w if same else w.reshape(*lead, *shape)).contiguous())
        if self.kind == "value":
            found = _called("reverse", self.family, (free,), *x, *filled) if free else ()
        else:
            given = (*filled, *linear) if self.kind == "forward" else (*linear, *filled)
            found = _called("second_reverse", self.family, (free, self.wrt[0]), *x, *given) if free else ()
        places = [self.names.index(n) for n in free]
        if any(needed[self.n :]):
            other = "reverse" if self.kind == "forward" else "forward"
            found = [*found, *_called(other, self.family, self.wrt, *x, *filled)]
            places += range(self.n, len(operands))
        for k, g in zip(places, found, strict=True):
            shape = self.shapes[k]
            g = g if g.ndim == len(lead) + len(shape) else g.reshape(*lead, *shape)
            answers[k] = g.sum(0) if lead and operands[k].ndim == len(shape) else g  # of an operand that served a batch
        return tuple(answers)

    def forward(self, ctx: Any, *changes: Any) -> Any:
        """The product with changes of operands, where there are any."""
        operands, lead = ctx.saved_tensors, self.lead(ctx.saved_tensors)
        if self.kind.startswith("second"):
            raise refuse_third(self.family.of)
        x, known = operands[: self.n], zip(self.names, changes[: self.n], strict=True)
        moving = {n: c for n, c in known if c is not None and n in self.free}
        parts, wrt = [], tuple(moving)
        if self.kind == "value" and moving:
            parts.append(_called("forward", self.family, (wrt,), *x, *moving.values()))
        if self.kind != "value":
            linear, change = operands[self.n :], changes[self.n :]
            if moving:
                second = f"second_{self.kind}"
                parts.append(_called(second, self.family, (self.wrt[0], wrt), *x, *linear, *moving.values()))
            if any(c is not None for c in change):
                filled = [torch.zeros_like(y) if c is None else c for y, c in zip(linear, change, strict=True)]
                parts.append(_called(self.kind, self.family, self.wrt, *x, *filled))
        sums = [functools.reduce(torch.add, each) for each in zip(*parts, strict=True)]
        sums += [operands[0].new_zeros((*lead, *shape)) for shape in self.outputs[len(sums) :]]
        return tuple(sums) if len(sums) > 1 else sums[0]


def _called(kind: str, family: Family, wrt: Wrt, *operands: Any) -> Sequence[Any]:
    return operator_of(kind, family, wrt)(*operands)  # type: ignore[no-any-return]
