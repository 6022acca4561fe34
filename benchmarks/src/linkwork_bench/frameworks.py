"""What calls cost in JAX and PyTorch; for `linkwork bench calls`.

A dispatch from Python, a call inside of compiled loops, a gradient.

Processor time of this process, because XLA may compute on threads of its own. What the framework takes anyway is
measured beside: a trivial function, in XLA's loops an idle handler, in PyTorch an idle operator.
`pure_callback` is how JAX calls Python functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from linkwork.functions.function import Function
from linkwork.kernels.codegen.lower import ATTRIBUTES
from linkwork.kernels.codegen.target import Target
from linkwork.kernels.object_code.compile import Linked, emit
from linkwork.learn.xla_handler import EXTENSION, version

LOOP, SCAN = 300, 3000
"""Calls from Python in a round, and those in a compiled loop."""


class Overhead(NamedTuple):
    """Microseconds for one state; `kernel` is the machine code in it."""

    framework: str
    what: str
    time: float
    kernel: float | None = None


def overheads(f: Function[Any], inputs: tuple[np.ndarray, ...], kernel: float, rounds: int) -> list[Overhead]:
    """Those of the frameworks that are installed, for a function of a state whose kernel takes so many us."""
    found = []
    for measure in (in_jax, in_torch):
        try:
            found += measure(f, inputs, kernel, rounds)
        except ImportError:
            continue
    return found


def in_jax(f: Function[Any], inputs: tuple[np.ndarray, ...], kernel: float, rounds: int) -> list[Overhead]:
    """A jitted call, a call in `lax.scan`, and what JAX takes for functions of NumPy."""
    import jax

    from linkwork.learn import jax as learn

    jnp = jax.numpy
    jax.config.update("jax_enable_x64", True)
    g, x = learn.function(f), [jnp.asarray(a) for a in inputs]
    size = jax.ShapeDtypeStruct(np.shape(f(*inputs)[0]), np.float64)

    def called_back(*x: Any) -> Any:
        return jax.pure_callback(lambda *y: f(*map(np.asarray, y))[0], size, *x)

    def scanned(*x: Any) -> Any:
        return jax.lax.scan(lambda c, _: (g(*x[:-1], x[-1] + 1e-9 * c)[0], None), x[-1], None, length=SCAN)[0]

    def empty(*x: Any) -> Any:
        return jax.lax.scan(lambda c, _: (x[-1] + 1e-9 * c, None), x[-1], None, length=SCAN)[0]

    jax.ffi.register_ffi_target("linkwork_bench_idle", jax.ffi.pycapsule(idle_handler()), platform="cpu")

    def idle(*x: Any) -> Any:
        results = [jax.ShapeDtypeStruct(port.shape, np.float64) for port in f.kernel.outputs]
        call = jax.ffi.ffi_call("linkwork_bench_idle", results)
        return jax.lax.scan(lambda c, _: (call(*x[:-1], x[-1] + 1e-9 * c)[0], None), x[-1], None, length=SCAN)[0]

    functions = (lambda *x: g(*x)[0], called_back, scanned, idle, empty)
    one, back, loop, without, none = (jax.jit(h) for h in functions)
    gradient, trivial = jax.jit(jax.grad(lambda *x: g(*x)[0].sum(), argnums=len(x) - 1)), jax.jit(lambda *x: x[-1] + 1)
    calls = [
        ("jit(f), a call", lambda: one(*x), LOOP, kernel),
        ("jit(grad(f)), a call", lambda: gradient(*x), LOOP, None),
        ("jit(pure_callback), a call", lambda: back(*x), LOOP, kernel),
        ("jit(x + 1), a call", lambda: trivial(*x), LOOP, None),
        ("f in lax.scan", lambda: loop(*x), 1, kernel),
        ("an idle handler in lax.scan", lambda: without(*x), 1, None),
        ("x + 1 in lax.scan", lambda: none(*x), 1, None),
    ]
    return [
        Overhead("JAX", what, _median(call, jax.block_until_ready, times, rounds) / (SCAN if times == 1 else 1), k)
        for what, call, times, k in calls
    ]


def in_torch(f: Function[Any], inputs: tuple[np.ndarray, ...], kernel: float, rounds: int) -> list[Overhead]:
    """A call, its operator alone, a call with its gradient, and what does nothing beside each."""
    import torch

    from linkwork.learn import torch as learn

    g, x = learn.function(f), [torch.tensor(a) for a in inputs]
    last, operator = x[-1].clone().requires_grad_(), getattr(g, "_op")  # noqa: B009

    library = torch.library.Library("linkwork_bench", "FRAGMENT")
    library.define(f"idle({', '.join(f'Tensor x{k}' for k in range(len(x)))}) -> Tensor")
    library.impl("idle", lambda *x: torch.empty_like(x[-1]), "CPU")
    idle = torch.ops.linkwork_bench.idle.default

    class Idle(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *x: Any) -> Any:
            ctx.save_for_backward(*x)
            return torch.empty_like(x[-1])

        @staticmethod
        def backward(ctx: Any, w: Any) -> Any:
            return *(None for _ in ctx.saved_tensors[:-1]), w

    def gradient(of: Callable[..., Any]) -> Any:
        return torch.autograd.grad(of(*x[:-1], last).sum(), last)

    calls = [
        ("f, a call", lambda: g(*x), kernel),
        ("its operator", lambda: operator.operator(*x), kernel),
        ("an idle operator", lambda: idle(*x), None),
        ("x + 1", lambda: x[-1] + 1, None),
        ("f and its gradient", lambda: gradient(lambda *x: g(*x)[0]), None),
        ("an idle autograd.Function and its gradient", lambda: gradient(Idle.apply), None),
        ("2 x and its gradient", lambda: gradient(lambda *x: 2 * x[-1]), None),
    ]
    return [Overhead("PyTorch", what, _median(call, lambda y: y, LOOP, rounds), k) for what, call, k in calls]


@cache
def idle_handler() -> int:
    """The address of a handler for XLA that does nothing but answer the question for its version."""
    import jax

    major, minor = version(str(jax.ffi.include_dir()))
    text = f"""
define ptr @handler(ptr %frame) #0 {{
  %place = getelementptr i8, ptr %frame, i64 {EXTENSION}
  %extension = load ptr, ptr %place, align 8
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %done, label %asked
asked:
  %place_of = getelementptr i8, ptr %extension, i64 24
  %metadata = load ptr, ptr %place_of, align 8
  %at_major = getelementptr i8, ptr %metadata, i64 24
  %at_minor = getelementptr i8, ptr %metadata, i64 28
  %at_traits = getelementptr i8, ptr %metadata, i64 32
  store i32 {major}, ptr %at_major, align 4
  store i32 {minor}, ptr %at_minor, align 4
  store i32 0, ptr %at_traits, align 4
  br label %done
done:
  ret ptr null
}}
{ATTRIBUTES}"""
    code = Linked(emit([text], Target.host()), ["handler"])
    _ALIVE.append(code)
    return code.address("handler")


_ALIVE: list[Linked] = []


def _median(call: Callable[[], Any], wait: Callable[[Any], Any], times: int, rounds: int) -> float:
    """Microseconds of a call."""
    wait(call())
    took = []
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(times):
            last = call()
        wait(last)
        took.append((time.process_time() - begin) / times)
    return 1e6 * float(np.median(took))
