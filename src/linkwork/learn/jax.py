"""Functions of Linkwork as functions of JAX: `jit`, `vmap`, `grad`, `jvp`, `vjp`, `lax.scan`.

    import linkwork as lw
    import linkwork.learn.jax

    fd = lw.learn.jax.function(lw.forward_dynamics(model))
    fd(q, v, tau).a                                            # JAX arrays, with any axes before the last
    jax.grad(lambda tau: fd(q, v, tau).a @ w)(tau)             # by compiled products, see products.py

XLA calls the kernels themselves (xla_handler.py), without Python. Results are named tuples. Machine code cannot raise
errors: what has no solution is NaN, and methods that iterate say whether they have `converged`. Handlers stay in memory
until the process ends, because XLA has no way to forget one; equal functions share theirs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwork.checks import WEIGHTS, Refused, bare_as_entry, checked, plain_entries, shown
from linkwork.errors import InputError, MissingExtra, UnsupportedError, not_found
from linkwork.functions.function import Function
from linkwork.kernels.calls.kernel import Kernel
from linkwork.learn.products import Family, refuse_third
from linkwork.learn.steps import FUNCTION, ROLLOUT, START, Motion, SplitStep, arguments, handed_on, stepped
from linkwork.model.digest import digest
from linkwork.simulation.optimal_control.discrete_step import DiscreteStep
from linkwork.simulation.rollouts.rollout import Rollout

try:
    import jax
    import jax.numpy as jnp
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ImportError as missing:
    raise MissingExtra("jax", "jax", "linkwork.learn.jax") from missing


@checked(of=FUNCTION)
def function(of: Function[Any] | DiscreteStep) -> Callable[..., Any]:
    """The same function for JAX.

    Of the same inputs, in order or by name; those with a default may be left out. Inputs may have any axes before their
    own, as (T, B, nq), which are broadcast as NumPy does it. Results are a named tuple; of solvers, `converged` is its
    last field. Quaternions in `q` are [x y z w] and of length one, else results are NaN; derivatives by `q` are by its
    entries, of the function of the normalised quaternion: gradients are orthogonal to it. There are first and second
    derivatives. By contact modes (`active`) and forces to start from (`lam0`) they are zero. Computes on a CPU, in the
    dtype of the function: float64 needs `jax_enable_x64`.
    """
    return SplitStep(of, function, "JAX") if isinstance(of, DiscreteStep) else _Function(Family(of))


@checked(of=ROLLOUT)
def rollout(of: Rollout) -> Callable[..., Motion]:
    """`roll(q, v, tau, ...)`: the states after each of T steps, as `lw.rollout` computes them.

    By `lax.scan`. `q` (..., nq) and `v` (..., nv) are those of the start. What changes with time (`tau`, `active`,
    `target`, `target_v`) has time as its first axis, (T, ..., n), or is (n,) and held; if all are held, the rollout's
    `steps` are T. `dt`, `kp`, `kd` and parameters are as in forward dynamics. Gradients are those of the computation
    itself, solver iterations and forces to start from included; they need the states of all steps in memory. States
    that fail are not stopped: check that results are finite.
    """
    family = stepped(of)
    step = _Function(family)

    def roll(q: Any, v: Any, tau: Any = None, **others: Any) -> Motion:
        dtype = _dtype(family.of)
        given = {"q": q, "v": v, "tau": tau, **others}
        x = arguments(of, family, given, lambda x, name: _array(family.of, x, name, dtype), jnp)

        def after(q: Any, v: Any, carried: Mapping[str, Any], now: Mapping[str, Any]) -> Any:
            return step(q, v, **x.held, **now, **carried)

        def advance(state: tuple[Any, Any, Any], now: Mapping[str, Any]) -> Any:
            r = after(*state, now)
            return (r.q_next, r.v_next, handed_on(r)), Motion(r.q_next, r.v_next, r.converged)

        carried = dict(x.carried)
        if any(port.name == START for port in family.inputs):
            nothing = {START: jnp.zeros((*x.lead, of.model.rows), dtype)}
            first = after(x.q, x.v, carried | nothing, {n: y[0] for n, y in x.moving.items()})
            carried[START] = first.start_next
        return jax.lax.scan(advance, (x.q, x.v, carried), x.moving, length=x.steps)[1]  # type: ignore[no-any-return]

    return roll


class _Function:
    """A function with its products: see `function`."""

    def __init__(self, family: Family) -> None:
        self.family, self.of = family, family.of

    def __repr__(self) -> str:
        return f"{self.of!r} for JAX"

    def __reduce__(self) -> Any:
        return function, (self.of,)

    def __call__(self, *args: Any, **named: Any) -> Any:
        family, dtype = self.family, _dtype(self.of)
        given = zip(family.inputs, self._ordered(args, named), strict=True)
        arrays = [bare_as_entry(_array(self.of, x, port.name, dtype), port.shape) for port, x in given]
        leads = []
        for port, x in zip(family.inputs, arrays, strict=True):
            split = x.ndim - len(port.shape)
            if split < 0 or x.shape[split:] != port.shape:
                raise InputError(f"{self.of.name}: '{port.name}' has shape {x.shape}; this model needs (..., {port})")
            leads.append(x.shape[:split])
        try:
            lead = jnp.broadcast_shapes(*leads)
        except ValueError:
            raise InputError(f"{self.of.name}: the first axes {leads} of its inputs do not fit each other") from None
        flat = [
            x if not own else jnp.broadcast_to(x, (*lead, *port.shape)).reshape(-1, *port.shape)
            for port, x, own in zip(family.inputs, arrays, leads, strict=True)
        ]
        found = _bind("value", family, (), flat, tuple(bool(own) for own in leads))
        if lead:
            found = [x.reshape(*lead, *x.shape[1:]) for x in found]
        return self.family.result(*found[: len(family.outputs)], *self._converged(found))

    def _converged(self, found: Sequence[Any]) -> list[Any]:
        """Whether the solver has: methods that iterate report it, direct ones have if there are numbers."""
        if not self.family.solves:
            return []
        return [found[-1][..., 2] == 1 if self.family.reports else jnp.isfinite(found[0]).all(-1)]

    def _ordered(self, args: tuple[Any, ...], named: dict[str, Any]) -> Sequence[Any]:
        names = [port.name for port in self.family.inputs]
        for n in named:
            if n not in names:
                raise not_found(f"input of {self.of.name}", n, names)
        return self.of._ordered(args, named)


def _dtype(of: Function[Any]) -> np.dtype[Any]:
    """The function's dtype, if JAX has it."""
    if of.dtype == "float64" and not jax.config.jax_enable_x64:
        raise InputError(
            f"{of.name} computes in float64, which JAX is set not to have: jax.config.update('jax_enable_x64', True), "
            "or make the function with dtype='float32'"
        )
    return np.dtype(of.dtype)


def _array(of: Function[Any], x: Any, name: str, dtype: np.dtype[Any]) -> Any:
    """Real numbers as an array of this dtype; truth values if they say which constraints hold."""
    what, kinds = shown(x), (np.floating, np.integer, *([np.bool_] if name == WEIGHTS else []))
    try:
        if not isinstance(x, str | bytes):
            array = jnp.asarray(plain_entries(x, name == WEIGHTS) if isinstance(x, list | tuple) else x)
            if any(jnp.issubdtype(array.dtype, kind) for kind in kinds):
                return array.astype(dtype)
            what = f"an array of {array.dtype}"
    except jax.errors.JAXTypeError:  # values are not known while something is traced
        raise
    except (TypeError, ValueError, Refused) as why:
        what = f"{what}: {why}"
    raise InputError(f"{of.name}: '{name}' is an array of real numbers, not {what}")


# primitives: one for each kind of product, of the operands x, then directions or weights, then changes

KINDS = {n: Primitive(f"linkwork_{n}") for n in ("value", "forward", "reverse", "second_forward", "second_reverse")}
Wrt = tuple[tuple[str, ...], ...]


def _bind(kind: str, family: Family, wrt: Wrt, operands: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    return list(KINDS[kind].bind(*operands, family=family, wrt=wrt, batched=tuple(batched)))


def _kernel(kind: str, family: Family, wrt: Wrt) -> Kernel:
    return family.made(kind, *wrt).kernel


def _abstract(kind: str, *operands: Any, family: Family, wrt: Wrt, batched: tuple[bool, ...]) -> list[Any]:
    kernel = _kernel(kind, family, wrt)
    lead = next(((x.shape[0],) for x, many in zip(operands, batched, strict=True) if many), ())
    return [jax.core.ShapedArray((*lead, *port.shape), kernel.dtype) for port in kernel.outputs]


def _batched(
    kind: str, operands: Sequence[Any], axes: Sequence[Any], *, family: Family, wrt: Wrt, batched: tuple[bool, ...]
) -> Any:
    """One more axis: in front of a batch there may be already, and one axis with it for the kernel."""
    front = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(operands, axes, strict=True)]
    mapped = [d is not None for d in axes]
    size = next(x.shape[0] for x, m in zip(front, mapped, strict=True) if m)
    if not any(batched):
        found = _bind(kind, family, wrt, front, mapped)
        return found, [0] * len(found)
    inner = next(x.shape[m] for x, m, b in zip(front, mapped, batched, strict=True) if b)
    whole = []
    for x, m, b in zip(front, mapped, batched, strict=True):
        if m or b:
            x = x if m else x[None]
            x = x if b else x[:, None]
            x = jnp.broadcast_to(x, (size, inner, *x.shape[2:])).reshape(size * inner, *x.shape[2:])
        whole.append(x)
    found = _bind(kind, family, wrt, whole, [m or b for m, b in zip(mapped, batched, strict=True)])
    return [x.reshape(size, inner, *x.shape[1:]) for x in found], [0] * len(found)


def _called(kind: str, *operands: Any, family: Family, wrt: Wrt, batched: tuple[bool, ...]) -> list[Any]:
    """The call of the handler."""
    results = _abstract(kind, *operands, family=family, wrt=wrt, batched=batched)
    kernel = _kernel(kind, family, wrt)
    lead = next((x.shape[0] for x, many in zip(operands, batched, strict=True) if many), 1)
    if lead == 0:
        return [jnp.zeros(x.shape, x.dtype) for x in results]
    target = _registered(kernel, batch=lead > 1)
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in results]
    by_name = dict(zip(family.operands(kind, wrt), operands, strict=True))
    return list(jax.ffi.ffi_call(target, shapes)(*(by_name[port.name] for port in kernel.given)))


_HANDLERS: dict[str, Any] = {}
"""What XLA may call, by the names that it knows."""


def _registered(kernel: Kernel, batch: bool) -> str:
    """The name of a kernel's handler; made now if there is none of this content."""
    from linkwork.learn.xla_handler import Handler

    form, of = kernel.native(batch), kernel.settings.values()
    content = digest(kernel.program.digest, str(kernel.dtype), form.image.lanes, kernel.threads, *of)
    name = f"linkwork_{content}"
    if name not in _HANDLERS:
        handler = _HANDLERS[name] = Handler(kernel, form)
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler.address), platform="cpu")
    return name


def _elsewhere(kind: str, *operands: Any, family: Family, **_: Any) -> Any:
    raise UnsupportedError(
        f"{family.of.name} is machine code for a CPU, and this computation is for another device: call it under "
        "jax.default_device(jax.devices('cpu')[0]), or jit what calls it with arguments placed there by jax.device_put"
    )


@functools.cache
def _jitted(kind: str, family: Family, wrt: Wrt, batched: tuple[bool, ...]) -> Any:
    """For calls outside of `jit`."""
    return jax.jit(functools.partial(KINDS[kind].bind, family=family, wrt=wrt, batched=batched))


def _run(kind: str, *operands: Any, family: Family, wrt: Wrt, batched: tuple[bool, ...]) -> Any:
    return _jitted(kind, family, wrt, batched)(*operands)


# derivatives

Tangents = Sequence[Any]


class _Call:
    """The operands of a primitive by their roles: x, then what it is linear in, by groups of `sizes`."""

    def __init__(self, kind: str, family: Family, wrt: Wrt, operands: Sequence[Any], batched: Sequence[bool]) -> None:
        self.kind, self.family, self.wrt = kind, family, wrt
        n, outputs = len(family.inputs), len(family.outputs)
        sizes = {
            "value": [],
            "forward": [len(w) for w in wrt],
            "reverse": [outputs],
            "second_forward": [len(w) for w in wrt],
            "second_reverse": [outputs, *(len(w) for w in wrt[1:])],
        }[kind]
        self.starts = [n]
        for k in sizes:
            self.starts.append(self.starts[-1] + k)
        self.operands, self.batched = list(operands), list(batched)

    @property
    def x(self) -> slice:
        """The place of the inputs."""
        return slice(0, self.starts[0])

    def group(self, k: int) -> slice:
        """The place of the k-th group that the result is linear in."""
        return slice(self.starts[k], self.starts[k + 1])

    def many(self) -> int | None:
        """The length of the batch."""
        return next((x.shape[0] for x, b in zip(self.operands, self.batched, strict=True) if b), None)

    def of(self, kind: str, wrt: Wrt, *groups: tuple[Sequence[Any], Sequence[bool]]) -> list[Any]:
        """Another product in the same state."""
        operands, batched = self.operands[self.x], self.batched[self.x]
        for given, many in groups:
            operands, batched = [*operands, *given], [*batched, *many]
        return _bind(kind, self.family, wrt, operands, batched)

    def changing(self, tangents: Tangents) -> tuple[tuple[str, ...], Tangents, list[bool]]:
        """The inputs that change and have derivatives: their names, changes, and whether these are batches."""
        names = [port.name for port in self.family.inputs]
        found = [
            (n, t, b)
            for n, t, b in zip(names, tangents[self.x], self.batched[self.x], strict=True)
            if type(t) is not ad.Zero and n in self.family.free
        ]
        # in the order in which the products take them
        return tuple(n for n, _, _ in found), [t for _, t, _ in found], [b for _, _, b in found]


def _filled(call: _Call, place: slice, tangents: Tangents) -> list[Any]:
    """The tangents of a group, with zeros where they are symbolic; None if all are."""
    part = tangents[place]
    if all(type(t) is ad.Zero for t in part):
        return []
    return [ad.instantiate_zeros(t) for t in part]


def _summed(parts: Sequence[Sequence[Any]], primal: Sequence[Any]) -> list[Any]:
    """The sum of results, or symbolic zeros where there is none."""
    if not parts:
        return [ad.Zero(jax.core.ShapedArray(x.shape, x.dtype)) for x in primal]
    return [functools.reduce(jnp.add, each) for each in zip(*parts, strict=True)]


def _pushed(kind: str, primals: Sequence[Any], tangents: Tangents, *, family: Family, wrt: Wrt, batched: Any) -> Any:
    """The rule of forward mode: results and their changes."""
    call = _Call(kind, family, wrt, primals, batched)
    results = _bind(kind, family, wrt, primals, batched)
    names, changes, many = call.changing(tangents)
    parts = []
    if kind == "value":
        if names:
            parts.append(call.of("forward", (names,), (changes, many)))
        found = _summed(parts, results[: len(family.outputs)])
        return results, [*found, *(ad.Zero(jax.core.ShapedArray(x.shape, x.dtype)) for x in results[len(found) :])]
    groups = [call.group(k) for k in range(len(call.starts) - 1)]
    for k, place in enumerate(groups):
        if change := _filled(call, place, tangents):
            moved = [(change if k == j else call.operands[g], call.batched[g]) for j, g in enumerate(groups)]
            parts.append(call.of(kind, wrt, *moved))
    if names:
        if kind.startswith("second"):
            raise refuse_third(family.of)
        held = call.operands[groups[0]], call.batched[groups[0]]
        parts.append(call.of(f"second_{kind}", (wrt[0], names), held, (changes, many)))
    return results, _summed(parts, results)


def _pulled(kind: str, cotangents: Sequence[Any], *operands: Any, family: Family, wrt: Wrt, batched: Any) -> Any:
    """The rule of reverse mode.

    A product is linear in each group of operands after x, and its transpose is another:

    forward           reverse          in w
    reverse           forward          in dx
    second_forward    second_reverse   in either direction, with the other one
    second_reverse    second_forward   in w;   in dx' itself, with the roles of dx and dx' exchanged
    """
    call = _Call(kind, family, wrt, operands, batched)
    linear = [k for k in range(len(call.starts) - 1) if any(map(ad.is_undefined_primal, operands[call.group(k)]))]
    (k,) = linear
    place, known = call.group(k), [j for j in range(len(call.starts) - 1) if j != k]
    shapes = [ct.aval if type(ct) is ad.Zero else ct for ct in cotangents]
    weights = [jnp.zeros(s.shape, s.dtype) if type(ct) is ad.Zero else ct for ct, s in zip(cotangents, shapes)]
    lead = any(batched)
    if kind.endswith("forward"):  # weights of outputs are flat
        weights = [w.reshape(*w.shape[:lead], -1) for w in weights]
    given = weights, [lead] * len(weights)
    others = [(call.operands[call.group(j)], call.batched[call.group(j)]) for j in known]
    if kind == "forward":
        found = call.of("reverse", wrt, given)
    elif kind == "reverse":
        found = call.of("forward", wrt, given)
    elif kind == "second_forward":
        found = call.of("second_reverse", (wrt[k], wrt[1 - k]), given, *others)
    elif k == 0:
        found = call.of("second_forward", wrt, given, *others)
    else:
        found = call.of("second_reverse", (wrt[1], wrt[0]), *others, given)
    answers: list[Any] = [None] * len(operands)
    for at, g in zip(range(place.start, place.stop), found, strict=True):
        if ad.is_undefined_primal(operands[at]):
            own = operands[at].aval.shape
            answers[at] = (g.sum(0) if lead and not batched[at] else g).reshape(own)
    return answers


for _kind, _primitive in KINDS.items():
    _primitive.multiple_results = True
    _primitive.def_impl(functools.partial(_run, _kind))
    _primitive.def_abstract_eval(functools.partial(_abstract, _kind))
    batching.primitive_batchers[_primitive] = functools.partial(_batched, _kind)
    ad.primitive_jvps[_primitive] = functools.partial(_pushed, _kind)
    if _kind != "value":
        ad.primitive_transposes[_primitive] = functools.partial(_pulled, _kind)
    mlir.register_lowering(_primitive, mlir.lower_fun(functools.partial(_called, _kind), True), platform="cpu")
    mlir.register_lowering(_primitive, mlir.lower_fun(functools.partial(_elsewhere, _kind), True))
