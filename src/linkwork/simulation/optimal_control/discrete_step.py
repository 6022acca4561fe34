"""One discrete step and its linearisation, for optimal control: x+ = f(x, u), A = df/dx, B = df/du.

    x = (q, v),   u = tau,   v+ = v + h a(q, v, u),   q+ = q (+) h v+          (semi-implicit, as `rollout` does it)

where springs and damping are implicit, too: a is that of a model with more armature (model/springs_and_dampers.py).
With actuators u are their controls, and the armature that servos need depends on how far they are saturated: then it is
computed in each step, and differentiated with it; so it is where springs, damping or armature are parameters.
Activations of actuators that have a state (model/activation.py) are part of x:

    x = (q, v, w),   v+ = v + h a(q, v, w, u),   w+ = w + h w'(w, u)           (or the exact filter's step)

All in tangent space: rows of A and B, and columns of A, are those of dq (nv, in the chart of `integrate`), dv, dw.
Accelerations are differentiated at the solution (functions/differentiation/derivatives.py), the rest of the step by its
operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from linkwork import chunked_arrays as interruptible
from linkwork.backends import Array, Ops, get
from linkwork.checks import (
    ARRAY,
    FLAG,
    MODES,
    NAME,
    TIME,
    Refused,
    bare_as_entry,
    checked,
    either,
    finite_array,
    optional,
    shown,
    whole,
)
from linkwork.constraints.stabilisation import STABILISATION, Stabilisation
from linkwork.errors import InputError, not_found
from linkwork.functions.differentiation.differentiated import Differentiated
from linkwork.functions.differentiation.jacobians import Jacobians
from linkwork.functions.dynamics import forward_dynamics
from linkwork.functions.function import Function
from linkwork.functions.options import OPTIONS
from linkwork.functions.parameters import PARAMETERS, Inputs
from linkwork.functions.softness import softness_of, softness_vector
from linkwork.kernels.calls.kernel import Results
from linkwork.kernels.programs.matrices import Tracer
from linkwork.model import Model
from linkwork.model.joint_forces import implicit_inertia
from linkwork.model.model import MODEL
from linkwork.simulation.optimal_control.linearised import linearised
from linkwork.simulation.optimal_control.step_gradients import (
    BY_STIFFNESS,
    StepGradient,
    StepReverse,
    pulled_back,
    stepped_state,
    stiff_inputs,
    varies,
)
from linkwork.simulation.optimal_control.step_results import (
    ActivatedLinearization,
    Linearization,
    NextActivatedState,
    NextState,
)
from linkwork.simulation.steps.constrained_step import by_step, controls, discretised, stabilised, stiffened

APART_FROM = 200_000
"""Operations of all solves for columns from which derivatives of accelerations and of the step are two functions."""

STATELESS = "this step has no activations: only actuators with a state have, and only where actuators=True"

STATE = {"q": ARRAY, "v": ARRAY, "u": ARRAY, "active": optional(MODES), "act": optional(ARRAY)}
WEIGHTED = {**STATE, "w_q": ARRAY, "w_v": ARRAY, "w_act": optional(ARRAY)}
"""What the arguments of a step, and of its products with weights, are."""


class DiscreteStep:
    """`step(q, v, u)` and `step.linearize(q, v, u)`, for one state or any axes before, as (T, B, n)."""

    def __init__(self, model: Model, dt: float, stabilisation: Any, options: dict[str, Any]) -> None:
        self.model, self.dt = model, dt
        self._recipe = {"dt": dt, "stabilisation": stabilisation, **options}
        stepped = discretised(stabilised(model, stabilisation, dt), dt)
        self.parameters = tuple(options["parameters"])
        self.uses_actuators = bool(options["actuators"])
        self.nu, self._control = (model.nu, "u") if options["actuators"] else (model.nv, "tau")
        self.na = model.na if self.uses_actuators else 0
        self.varying = varies(model, options["actuators"], self.parameters)
        if self.varying:  # armature is an input of the dynamics, whether callers give it or not
            named = dict.fromkeys([*self.parameters, "armature"])
            self.dynamics = forward_dynamics(stepped, **{**options, "parameters": tuple(named)})
            self.armature = _implicit_armature(stepped, dt, options)  # also for those who chain the parts
        else:
            self.dynamics = forward_dynamics(_stiffened(stepped, dt), **options)
        wrt, armed = ("q", "v", *(("act",) if self.na else ()), self._control), "armature" in self.parameters
        self.stepped, self.wrt = stepped, wrt
        slopes = Jacobians(self.dynamics, wrt)
        apart = slopes.solving > APART_FROM and not self.varying
        self._slopes = slopes if apart else None  # straight-line code goes on through the step
        self._linear = (
            _linear(stepped, dt, wrt, options) if apart else LinearStep(self.dynamics, stepped, dt, wrt, armed)
        )
        self.integrator = _next(stepped, dt, wrt, options)
        self._back = StepReverse(self.dynamics, stepped, dt, (*wrt, *self.parameters))

    def __repr__(self) -> str:
        return f"<step of {self.dt:g} s of '{self.model.name}', nv={self.model.nv}>"

    def __reduce__(self) -> Any:
        return partial(discrete_step, **self._recipe), (self.model,)

    @checked(**STATE)
    def __call__(
        self, q: object, v: object, u: object, active: object = None, *, act: object = None, **parameters: object
    ) -> NextState | NextActivatedState:
        """The state after a step with joint forces or controls `u`, from activations `act` (na,)."""
        flat, lead = self._flat(q, v, u, active, act)
        named = self._each(parameters, lead)
        moving = {n: flat[n] for n in ("act", "u") if self.na}
        if self.varying:
            named["armature"] = self._solved(self.armature, flat, self.stiffening(named)).armature
        found = self.integrator(flat["q"], flat["v"], self._solved(self.dynamics, flat, named).a, **moving)
        return type(found)(*(x.reshape((*lead, *x.shape[1:])) for x in found))  # type: ignore[no-any-return]

    @checked(**STATE)
    def linearize(
        self, q: object, v: object, u: object, active: object = None, *, act: object = None, **parameters: object
    ) -> Linearization | ActivatedLinearization:
        """The state after a step, and its derivatives A by (q, v) or (q, v, act) and B by u."""
        flat, lead = self._flat(q, v, u, active, act)
        first, named = self._linear if self._slopes is None else self._slopes, self._each(parameters, lead)
        found = self._solved(first, flat, named)
        if self._slopes is not None:
            slopes = np.concatenate([getattr(found, f"da_d{w}") for w in self.wrt], axis=-1)
            moving = {n: flat[n] for n in ("act", "u") if self.na}
            found = self._linear(flat["q"], flat["v"], found.a, slopes.reshape(len(slopes), -1), **moving)
        return type(found)(*(x.reshape((*lead, *x.shape[1:])) for x in found))  # type: ignore[no-any-return]

    @checked(gauss_newton=FLAG)
    def casadi_external(self, gauss_newton: bool = False) -> Any:
        """(q, v, u) -> q_next, v_next, lam as an external function of CasADi, with its Jacobians.

        With contact modes, `active` is the last input. `lam` are the constraint forces during the step, left out where
        there are no constraints. See `Function.casadi_external`. The Jacobians are one kernel; for
        humanoids, dynamics and integrator have one each, which CasADi multiplies.

        Examples:
            >>> step = lw.discrete_step(chain(3), dt=1e-2).casadi_external()
            >>> step.name_in(), step.name_out()
            (['q', 'v', 'u'], ['q_next', 'v_next'])
        """
        from linkwork.simulation.optimal_control.casadi_step import casadi_step

        return casadi_step(self, self._control, self._slopes is not None, gauss_newton)

    @checked(**WEIGHTED)
    def vjp(
        self,
        q: object,
        v: object,
        u: object,
        w_q: object,
        w_v: object,
        active: object = None,
        *,
        act: object = None,
        w_act: object = None,
        **parameters: object,
    ) -> StepGradient:
        """The gradient of w_q . q+ + w_v . v+ + w_act . act+; of configurations, both are in tangent space."""
        flat, lead = self._flat(q, v, u, active, act)
        given = self._weights(w_q, w_v, w_act, lead)
        weights = {n: w.reshape(-1, w.shape[-1]) for n, w in given.items()}
        found = self._solved(self._back, flat, {**weights, **self._each(parameters, lead)})
        g = {name: x.reshape((*lead, *x.shape[1:])) for name, x in zip(found._fields, found, strict=True)}
        by = {name: g["g_" + name] for name in self.parameters}
        for name, x in by.items():  # one value for all states has one gradient
            if name not in parameters or np.ndim(parameters[name]) == np.ndim(self.dynamics.defaults[name]):  # type: ignore[arg-type]
                by[name] = x.sum(tuple(range(len(lead))))
        return StepGradient(g["g_q"], g["g_v"], g["g_" + self._control], by, g.get("g_act"))

    @checked(**STATE)
    def by_parameters(
        self, q: object, v: object, u: object, active: object = None, *, act: object = None, **parameters: object
    ) -> dict[str, np.ndarray]:
        """The derivatives of the state after a step by the step's parameters: (..., 2 nv, *shape) by name.

        Rows are those of A and B, tangent and positions first. One product with weights for each of them.

        Examples:
            >>> step = lw.discrete_step(chain(3), dt=1e-2, parameters=("gravity",))
            >>> step.by_parameters(np.zeros(3), np.zeros(3), np.zeros(3))["gravity"].shape
            (6, 3)
        """
        if not self.parameters:
            raise InputError("this step has no parameters: make it by lw.discrete_step(model, parameters=(...))")
        flat, lead = self._flat(q, v, u, active, act)
        states, ends, given = len(flat["q"]), np.cumsum([self.model.nv, self.model.nv, self.na]), {}
        rows = int(ends[-1])
        for name, x in self._each({n: self.dynamics.defaults[n] for n in self.parameters} | parameters, lead).items():
            shape = self.dynamics.defaults[name].shape
            given[name] = np.repeat(np.broadcast_to(x, (states, *shape)), rows, axis=0)
        units = np.split(np.tile(np.eye(rows), (states, 1)), ends[:-1], axis=1)
        weights = dict(zip(("w_q", "w_v", "w_act")[: 2 + (self.na > 0)], units, strict=False))
        found = self._solved(self._back, {n: np.repeat(x, rows, axis=0) for n, x in flat.items()}, {**weights, **given})
        return {n: getattr(found, "g_" + n).reshape((*lead, rows, *given[n].shape[1:])) for n in self.parameters}

    @checked(**STATE)
    def rollout(
        self, q: object, v: object, u: object, active: object = None, *, act: object = None, **parameters: object
    ) -> NextState | NextActivatedState:
        """States at all times (T + 1, ..., n), from q (..., nq), v (..., nv), by forces u (T, ..., nv).

        `active` is (T, ..., constraints) or, all the time, (constraints,); activations start from `act` (..., na).
        """
        forces, modes = self._over_time(u, active)
        x, states = self._start(q, v, act), []
        for t in range(len(forces)):
            states.append(x)
            x = self._after(x, forces[t], modes[t], parameters)
        kind = NextActivatedState if self.na else NextState
        return kind(*(interruptible.stacked(np.broadcast_arrays(*y)) for y in zip(*states, x, strict=True)))

    @checked(**WEIGHTED, stored=optional(whole(1)))
    def rollout_vjp(
        self,
        q: object,
        v: object,
        u: object,
        w_q: object,
        w_v: object,
        active: object = None,
        *,
        act: object = None,
        w_act: object = None,
        stored: int | None = None,
        **parameters: object,
    ) -> StepGradient:
        """The gradient of sum_t w_q[t] . q[t] + w_v[t] . v[t] over the states of `rollout`.

        Weights are (T + 1, ..., nv); activations have their own, `w_act` (T + 1, ..., na). The gradient is by the
        start, by u (T, ..., nv) and by parameters. States are stored every `stored` steps (default: sqrt(T)), and those
        between two of them while steps are taken back; with stored=1 all T are, and no step is computed twice.
        """
        forces, modes = self._over_time(u, active)
        first, lead = self._start(q, v, act), self._flat(q, v, forces[0])[1]
        weights = list(self._weights(w_q, w_v, w_act, (len(forces) + 1, *lead)).values())

        def back(t: int, x: Any, p: Any) -> tuple[Any, dict[str, np.ndarray]]:
            more = {"act": x[2], "w_act": p[2]} if self.na else {}
            g = self.vjp(x[0], x[1], forces[t], p[0], p[1], modes[t], **more, **parameters)
            return (g.q, g.v, *((g.act,) if self.na else ())), {"u": g.u, **g.parameters}

        def step(t: int, x: Any) -> Any:
            return self._after(x, forces[t], modes[t], parameters)

        def weight(t: int) -> tuple[np.ndarray, ...]:
            return tuple(w[t] for w in weights)

        start, each = pulled_back(first, len(forces), step, back, weight, stored)
        total = {name: np.sum([g[name] for g in each], axis=0) for name in self.parameters}
        return StepGradient(start[0], start[1], interruptible.stacked([g["u"] for g in each]), total, *start[2:])

    def _start(self, q: Any, v: Any, act: Any) -> tuple[np.ndarray, ...]:
        """A state as its parts: activations, too, where actuators have them."""
        own = (np.zeros(self.na) if act is None else np.asarray(act),) if self.na or act is not None else ()
        return (np.asarray(q), np.asarray(v), *own)

    def _after(self, x: tuple[Any, ...], u: Any, active: Any, parameters: Mapping[str, Any]) -> Any:
        """The state after one of many steps."""
        return self(x[0], x[1], u, active, act=x[2] if len(x) > 2 else None, **parameters)

    def _weights(self, w_q: Any, w_v: Any, w_act: Any, lead: tuple[int, ...]) -> dict[str, np.ndarray]:
        """Weights of the parts of a state, in these axes."""
        given = {"w_q": (w_q, self.model.nv), "w_v": (w_v, self.model.nv)}
        if w_act is not None and not self.na:
            raise InputError(STATELESS)
        if self.na:
            given["w_act"] = 0.0 if w_act is None else w_act, self.na
        return {n: _spread(n, w, (*lead, k)) for n, (w, k) in given.items()}

    def _over_time(self, u: Any, active: Any) -> tuple[np.ndarray, Any]:
        """Forces and contact modes at each time."""
        forces, n = np.asarray(u), self.nu
        if forces.ndim < 2 or forces.shape[-1] != n or not len(forces):
            raise InputError(f"u has shape {forces.shape}; forces of T steps have (T, ..., {n}), T at least 1")
        if np.ndim(active) < 2:
            return forces, [active] * len(forces)
        if len(np.asarray(active)) != len(forces):
            raise InputError(f"active is for {len(np.asarray(active))} steps, and u for {len(forces)}")
        return forces, np.asarray(active)

    def _solved(self, f: Function[Any], flat: dict[str, np.ndarray], named: dict[str, np.ndarray]) -> Any:
        """A function of the dynamics' inputs; contact modes and activations are given by name."""
        more = {n: flat[n] for n in ("active", "act") if n in flat and n in f.inputs}
        return f(flat["q"], flat["v"], flat["u"], **more, **named)

    def stiffening(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the parameters that `armature` depends on."""
        return {n: x for n, x in parameters.items() if n in self.armature.inputs}

    def _each(self, parameters: Mapping[str, Any], lead: tuple[int, ...]) -> dict[str, np.ndarray]:
        """Parameters as kernels take them: one value, or one for each state."""
        out = {}
        for name, value in parameters.items():
            if name not in self.parameters:
                raise not_found("parameter of this step", name, self.parameters)
            shape = self.dynamics.defaults[name].shape
            try:
                x = bare_as_entry(finite_array(value), shape)
            except Refused as why:
                raise InputError(f"'{name}' is not an array of numbers ({str(why) or shown(value)})") from None
            out[name] = x if x.ndim <= len(shape) else _spread(name, x, (*lead, *shape)).reshape(-1, *shape)
        return out

    def _flat(
        self, q: Any, v: Any, u: Any, active: Any = None, act: Any = None
    ) -> tuple[dict[str, np.ndarray], tuple[int, ...]]:
        """The inputs as batches, and the axes before the last one."""
        m = self.model
        given = {"q": (q, m.nq), "v": (v, m.nv), "u": (u, self.nu)}
        if active is not None:
            if "active" not in self.dynamics.inputs:
                raise InputError("this step has no contact modes: make it by lw.discrete_step(model, modes=True)")
            given["active"] = active, len(m.constraints)
        if act is not None and not self.na:
            raise InputError(STATELESS)
        if self.na:
            given["act"] = np.zeros(self.na) if act is None else act, self.na
        arrays = [bare_as_entry(np.asarray(x), (n,)) for x, n in given.values()]
        for (name, (_, n)), x in zip(given.items(), arrays, strict=True):
            if x.ndim == 0 or x.shape[-1] != n:
                raise InputError(f"{name} has shape {x.shape}; this model needs (..., {n})")
        shapes = {x.shape[:-1] for x in arrays}
        try:
            lead = np.broadcast_shapes(*shapes) if len(shapes) > 1 else shapes.pop()
        except ValueError:
            listed = ", ".join(str(x.shape) for x in arrays)
            raise InputError(
                f"{', '.join(given)} have shapes {listed}, whose first axes do not fit each other"
            ) from None
        whole = (x if x.shape[:-1] == lead else np.broadcast_to(x, (*lead, x.shape[-1])) for x in arrays)
        return {n: interruptible.packed(x).reshape(-1, x.shape[-1]) for n, x in zip(given, whole, strict=True)}, lead


@checked(
    model=MODEL,
    dt=TIME,
    method=optional(NAME),
    modes=FLAG,
    actuators=FLAG,
    parameters=PARAMETERS,
    R=optional(ARRAY),
    stabilisation=either(STABILISATION, FLAG),
    dtype=OPTIONS["dtype"],
    threads=OPTIONS["threads"],
)
def discrete_step(
    model: Model,
    *,
    dt: float = 1e-3,
    method: str | None = None,
    modes: bool = False,
    actuators: bool = False,
    parameters: Sequence[str] = (),
    R: object = None,
    stabilisation: Stabilisation | bool | None = None,
    dtype: str = "float64",
    threads: int | None = None,
) -> DiscreteStep:
    """`step(q, v, u) -> (q, v)`, `step.linearize(q, v, u) -> (q, v, A, B)`: semi-implicit, `dt` seconds.

    The step takes `dt` seconds. `u` are joint forces (nv); q, v and u may have any axes before their last, as a horizon
    and a batch: (T, B, n). A and B are in tangent space, positions first: from q (+) dq and v + dv, with forces u + du,
    the step leads to q+ (+) dq+ and v+ + dv+, where [dq+; dv+] = A [dq; dv] + B du. `method` and `stabilisation`
    are those of `rollout`. With `modes=True` the last argument is `active`, one weight per constraint: 0 switches it
    off for that knot. With `actuators=True` `u` are the controls of the model's actuators (nu), and B is by these;
    servos are implicit, as in rollouts. Activations of actuators with a state are then a part of the state: given as
    `act=` (na), zero by default, in the result behind v, and in A and B behind velocities. `parameters` names groups of
    parameters that become inputs, given by name, as for `rollout`; `R` makes constraints soft.

    `step.vjp` is the product of weights with A, B and derivatives by parameters, which `step.by_parameters` has as
    matrices; `step.rollout` takes as many steps as
    there are forces (T, ..., nv), and `step.rollout_vjp` is the gradient through all of them.

    Examples:
        >>> step = lw.discrete_step(chain(3), dt=1e-2)
        >>> q, v, A, B = step.linearize(np.zeros(3), np.zeros(3), np.zeros(3))
        >>> A.shape, B.shape
        ((6, 6), (6, 3))
    """
    softness = softness_vector(softness_of(model, R))
    named = Inputs(model, parameters, by_step(actuators), softness=softness).named
    options = {"method": method, "modes": modes, "actuators": actuators, "dtype": dtype, "threads": threads, "R": R}
    return DiscreteStep(model, dt, stabilisation, {**options, "parameters": named})


def _spread(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """An array that fits a shape, in it."""
    try:
        return np.broadcast_to(np.asarray(value), shape)
    except ValueError:
        raise InputError(f"{name} has shape {np.shape(value)}; it needs {shape}, or axes that fit") from None


def _stiffened(model: Model, dt: float) -> Model:
    """The model with the armature that makes springs and damping implicit (model/springs_and_dampers.py)."""
    extra, t = implicit_inertia(model, np.array(dt), get("numpy")), model.topology
    if extra is None:
        return model
    for i in t.links:
        if (more := extra[t.v_slices[i], 0]).any():
            model = model.with_armature(model.links[i].joint_name, model.links[i].armature + more)
    return model


def _implicit_armature(model: Model, dt: float, options: dict[str, Any]) -> Function[Any]:
    """(q, v, u or tau, act) -> the armature that makes springs, damping and servos implicit."""

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        known = {"armature": xp.constant(model.parameters().armature), **x}
        return {"armature": stiffened(model, xp.constant([[dt]])[0, 0], xp, known, x["q"], x["v"])["armature"]}

    felt = [n for n in options["parameters"] if n in (*BY_STIFFNESS, "armature")]
    driven = controls(model, options["actuators"]) or {"tau": model.nv}
    inputs = Inputs(model, felt, felt, None, None, q=model.nq, v=model.nv, **driven)
    named = {n: options[n] for n in ("dtype", "threads")} | {"defaults": inputs.defaults, "shapes": inputs.shapes}
    return Function("implicit_armature", model, inputs.sizes, body, identity=(dt, tuple(inputs.sizes)), **named)


def _next(model: Model, dt: float, wrt: Sequence[str], options: dict[str, Any]) -> Function[Any]:
    """(q, v, a) -> the next q and v; (q, v, a, act, u) -> the next q, v and activations."""

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        return dict(zip(("q_next", "v_next", "act_next"), stepped_state(model, dt, xp, x), strict=False))

    inputs = {"q": model.nq, "v": model.nv, "a": model.nv}
    inputs |= {"act": model.na, "u": model.nu} if "act" in wrt else {}
    result = NextActivatedState if "act" in wrt else NextState
    named = {n: options[n] for n in ("dtype", "threads")}
    return Function("step", model, inputs, body, identity=(dt, tuple(inputs)), result=result, **named)


class LinearStep(Jacobians):
    """(q, v, u) -> the next q and v, A and B: accelerations with derivatives, then the step."""

    _goes_on = True

    def __init__(self, of: Function[Any], model: Model, dt: float, wrt: Sequence[str], armed: bool) -> None:
        Differentiated.__init__(self, "linear_step", of, wrt, {})
        self._stepped, self._dt, self._armed = model, dt, armed
        if self._identity is not None:
            self._identity = (*self._identity, model, dt, armed)

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        assert isinstance(xp, Tracer)
        given = stiff_inputs(self._stepped, self._dt, xp, inputs, self._armed)
        r = super()._traced(xp, dict(given), symbol)
        slopes = xp.hstack([r[f"da_d{w}"] for w in self.wrt])
        self._shapes = {n: s for n, s in self._shapes.items() if n in inputs}
        size = sum(self.sizes[w] for w in self.wrt[:-1])
        self._shapes |= {"A": (size, size), "B": (size, self.sizes[self.wrt[-1]])}
        return linearised(self._stepped, self._dt, xp, {**inputs, "a": r["a"]}, slopes)

    def _results(self, names: tuple[str, ...]) -> Results:
        return Results(ActivatedLinearization if "act" in self.wrt else Linearization)


def _linear(model: Model, dt: float, wrt: Sequence[str], options: dict[str, Any]) -> Function[Any]:
    """(q, v, a, the derivatives of a by all of `wrt`) -> the next q, v (and activations), A and B."""
    n, nu, na = model.nv, model.nu if wrt[-1] == "u" else model.nv, model.na if "act" in wrt else 0
    size, width = 2 * n + na, 2 * n + na + nu

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        assert isinstance(xp, Tracer)
        rows = [x["slopes"][width * k : width * (k + 1), :].T for k in range(n)]
        return linearised(model, dt, xp, x, xp.vstack(rows))

    inputs = {"q": model.nq, "v": n, "a": n, "slopes": width * n, **({"act": na, "u": nu} if na else {})}
    named = {o: options[o] for o in ("dtype", "threads")}
    shapes, result = {"A": (size, size), "B": (size, nu)}, ActivatedLinearization if na else Linearization
    return Function(
        "linear_step", model, inputs, body, identity=(dt, tuple(wrt)), result=result, shapes=shapes, **named
    )
