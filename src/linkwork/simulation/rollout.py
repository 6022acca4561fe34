"""Rollouts: a whole horizon for thousands of states at once, inside one native loop.

The step is traced once: forces, constrained dynamics, integrator, in one straight line of operations. The kernel
runs it over time for each lane of each tile (kernels/rollout.py); Python is not involved in a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.algorithms import registry
from linkwork.algorithms.common.iteration import PROX, Prox
from linkwork.backends import Array, Ops, get
from linkwork.checks import (
    FLAG,
    LARGEST,
    NAME,
    POSITIVE,
    TIME,
    Refused,
    check_memory,
    checked,
    choice,
    either,
    instance,
    optional,
    real_array,
    several,
    shown,
    whole,
)
from linkwork.constraints import Constraint, LinkRows, Stabilisation
from linkwork.constraints.base import STABILISATION, Stepped
from linkwork.constraints.rows import rows_velocity
from linkwork.errors import InputError
from linkwork.functions.choice import pick
from linkwork.functions.function import OPTIONS
from linkwork.functions.solver import Solver
from linkwork.lazy import cached_property
from linkwork.model import Model
from linkwork.model.digest import digest
from linkwork.model.model import MODEL
from linkwork.rewrite.rewritten import Rewritten, rewritten
from linkwork.rewrite.rooting import Based
from linkwork.simulation.energy import SHARE, TOLD, energies_of, share, warn_of_energy
from linkwork.simulation.integrators import TRACEABLE

if TYPE_CHECKING:
    from linkwork.kernels.program import Program
    from linkwork.kernels.rollout import RolloutKernel, RolloutProgram

EXTRAS = ("a", "lam", "tau")
"""What can be recorded besides q and v: all of them as they are at the beginning of a step."""

PERIOD = 30
"""Steps in the period of the default stabilisation: shorter ones hold better, and excite nearly redundant rows."""

JOULE = 1e-9
"""Scale of the work of forces in the state: too small to count in its length."""

SLOW = 0.1
"""Squares of the angles that links turn by in one step, summed over all steps, below which energy cannot grow."""


@dataclass(frozen=True)
class RolloutResult:
    """States after every `every` steps: `q` (B, N, nq), `v` (B, N, nv), `t` (N,), and extras.

    `survived` says how many steps each state took before it failed; `ok` whether it took them all. A state that failed
    keeps its last valid configuration and velocity, and its extras are zero. One that gained energy without work,
    because steps are too long for its speed, has failed too, from the first record that shows it (energy.py). One state
    instead of a batch has no axis B.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    survived: np.ndarray
    ok: np.ndarray
    a: np.ndarray | None = None
    lam: np.ndarray | None = None
    tau: np.ndarray | None = None


@dataclass(frozen=True)
class Step:
    """One step of a model as a function of named columns, compiled or executed by NumPy.

    `audited` steps also sum up the work of joint and constraint forces, and its size. When traced, `model` is the
    rewritten model, with its `base`, and `given` the user's, to whose coordinates q and v belong.
    """

    model: Model
    method: str
    integrator: str
    mu: float | None
    iterations: int
    modes: bool
    pd: bool
    extras: tuple[str, ...]
    flat: float = 0.0
    single: bool = False
    audited: bool = False
    base: Based | None = None
    given: Model | None = None

    @property
    def inputs(self) -> dict[str, int]:
        m = self.model
        sizes = {"q": m.nq, "v": m.nv, "dt": 1, "tau": m.nv}
        if self.audited:
            sizes["work"] = 2
        if self.modes:
            sizes["active"] = len(m.constraints)
        if self.pd:
            sizes |= {"kp": m.nv, "kd": m.nv, "target": m.nq, "target_v": m.nv}
        return sizes

    def __call__(self, xp: Ops, x: Mapping[str, Array]) -> dict[str, Array]:
        """The state after the step, and the extras at its beginning."""
        seen: list[tuple[Array, Array, Array]] = []

        def acceleration(q: Array, v: Array) -> Array:
            tau = x["tau"] + self._drive(xp, x, q, v) if self.pd else x["tau"]
            a, lam = self._solve(xp, x, q, v, tau)
            seen.append((a, lam, tau))
            return a

        q, v = TRACEABLE[self.integrator](self.given or self.model, acceleration, x["q"], x["v"], x["dt"][0, 0], xp)
        found = dict(zip(EXTRAS, seen[0], strict=True))
        after = {"q": q, "v": v, **{n: found[n] for n in self.extras}}
        if self.audited:
            work = (x["dt"][0, 0] * JOULE / 2) * (found["tau"].T @ (x["v"] + v))[0, 0]
            work = work + x["dt"][0, 0] * JOULE * self._power(xp, x, found["lam"])
            after["work"] = x["work"] + xp.matrix([[work], [xp.where(work < 0, -work, work)]])
        return after

    def _power(self, xp: Ops, x: Mapping[str, Array], lam: Array) -> Array:
        """The power of constraint forces, lam . J v; mid-step where a stabilisation changes J v."""
        h, power, start = x["dt"][0, 0], 0 * x["dt"][0, 0], 0
        motion = Rewritten(self._stepped(h), self.base).motion(x["q"], x["v"], xp)
        for c in motion.model.constraints:
            rows = c.evaluate(motion)
            rate = rows_velocity(motion, rows)
            if c.stabilisation is not None:
                rate = rate - h / 2 * c.stabilisation.pull(rate, rows.drift, c.position_error(motion))
            power = power + (lam[start : start + c.rows, :].T @ rate)[0, 0]
            start += c.rows
        return power

    def _drive(self, xp: Ops, x: Mapping[str, Array], q: Array, v: Array) -> Array:
        """kp (target - q) + kd (target_v - v) of the actuated joints."""
        t, parts = self.model.topology, [xp.zeros(0)]
        for i in t.links:
            at, to = t.v_slices[i], t.q_slices[i]
            if not self.model.links[i].actuated:
                parts.append(xp.zeros(at.stop - at.start))
                continue
            off = self.model.links[i].joint.difference(q[to, :], x["target"][to, :], xp)
            parts.append(x["kp"][at, :] * off + x["kd"][at, :] * (x["target_v"][at, :] - v[at, :]))
        return xp.vstack(parts)

    def _stepped(self, h: Array) -> Model:
        """The model whose stabilisation is discretised for the step, where the integrator is semi-implicit."""
        if self.integrator != "semi_implicit" or not any(c.stabilisation for c in self.model.constraints):
            return self.model

        def with_it(c: Constraint) -> Constraint:
            s = c.stabilisation
            return c if s is None else replace(c, stabilisation=Stepped(s.period, s.damping, h))  # type: ignore[type-var]

        return replace(self.model, constraints=tuple(map(with_it, self.model.constraints)))

    def _solve(self, xp: Ops, x: Mapping[str, Array], q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        method = registry.methods("forward_dynamics")[self.method]
        solver = Solver(method, Rewritten(self._stepped(x["dt"][0, 0]), self.base))
        found = solver(xp, q, v, tau, None, self.mu, x["active"] if self.modes else None)
        return found.straight(self.iterations, self.flat)

    @cached_property
    def traced(self) -> Program:
        """The step as a program, whose outputs q and v are the next ones."""
        from linkwork.kernels.trace import trace

        within = rewritten(self.model)
        step = replace(self, model=within.model, base=within.base, given=self.model)
        return trace(
            "step", lambda xp, symbol: step(xp, {n: symbol(n, k) for n, k in self.inputs.items()}), single=self.single
        )

    @cached_property
    def cached_program(self) -> Any:
        """The program, or its cached sketch: a step that was compiled before is not traced again."""
        from linkwork.kernels.program_cache import get_or_trace

        return get_or_trace(digest("step", self), lambda: self.traced)


STEPS, EVERY = whole(1, what="a number of steps, at least 1"), whole(1, what="a number of steps, at least 1")
BACKEND = choice("backend for rollouts", ("kernel", "numpy"))


class Rollout:
    """`run(q0, v0, tau)`: see `rollout`."""

    @checked(
        step=instance(Step, "a Step, as lw.rollout makes it"),
        dt=TIME,
        steps=optional(STEPS),
        every=optional(EVERY),
        **{**OPTIONS, "backend": BACKEND},
        limit=POSITIVE,
    )
    def __init__(
        self,
        step: Step,
        dt: float,
        steps: int | None,
        every: int | None,
        backend: str,
        dtype: str,
        threads: int | None,
        limit: float,
    ) -> None:
        self.step, self.model, self.method, self.integrator = step, step.model, step.method, step.integrator
        self.dt, self.steps, self.every, self.limit = dt, steps, every, limit
        self.backend, self.dtype, self.threads = backend, dtype, threads

    def __repr__(self) -> str:
        return f"<rollout of '{self.model.name}' by {self.method} and {self.integrator}, {self.backend}>"

    @property
    def operations(self) -> int:
        """Exact number of arithmetic operations of one step."""
        return int(self.step.cached_program.operations)

    @cached_property
    def kernel(self) -> RolloutKernel:
        """The native code."""
        from linkwork.kernels.rollout import RolloutKernel

        return RolloutKernel(self.program, dtype=self.dtype, threads=self.threads)

    @cached_property
    def program(self) -> RolloutProgram:
        """The step, and which of its inputs are states and which change with time."""
        from linkwork.kernels.rollout import RolloutProgram

        return RolloutProgram(self.step.cached_program, ("q", "v", "work"), [n for n in TIMED if n in self.step.inputs])

    @checked(steps=optional(STEPS), every=optional(EVERY), dt=optional(TIME))
    def __call__(
        self,
        q0: object,
        v0: object,
        tau: object = None,
        *,
        steps: int | None = None,
        every: int | None = None,
        dt: float | None = None,
        active: object = None,
        target: object = None,
        target_v: object = None,
        kp: object = None,
        kd: object = None,
    ) -> RolloutResult:
        """Roll out from q0 (nq,) or (B, nq), with quaternions as [x y z w], and v0 (nv,) or (B, nv).

        `tau`, `active`, `target`, `target_v` change with time: (n,) is held all the time, (K, n) is for all states,
        (B, K, n) for each its own; each of the K values is held for steps / K steps. (B, n) is taken for values over
        time: write (B, 1, n) for constants of each state. `kp` and `kd` are numbers, (nv,) or (B, nv).
        """
        given = {
            "q": q0,
            "v": v0,
            "tau": tau,
            "active": active,
            "target": target,
            "target_v": target_v,
            "kp": kp,
            "kd": kd,
            "dt": self.dt if dt is None else dt,
        }
        unknown = [n for n, x in given.items() if x is not None and n not in self.step.inputs]
        if unknown:
            option = "modes=True" if unknown[0] == "active" else "pd=True"
            raise InputError(f"this rollout has no input '{unknown[0]}': make it with lw.rollout(..., {option})")
        inputs, batch = self._take(given)
        n = _count("steps", steps if steps is not None else self.steps, inputs)
        k = every if every is not None else self.every if self.every is not None else 1
        if not 1 <= k <= n or n % k:
            raise InputError(f"every={k} must divide the {n} steps: states are recorded every so many steps")
        for name in TIMED:
            if name in inputs and n % inputs[name].shape[-2]:
                raise InputError(
                    f"'{name}' has {inputs[name].shape[-2]} values in time, which do not divide the {n} "
                    "steps: each is held for steps / values steps"
                )
        m, count = self.model, 1 if batch is None else batch
        sizes = {"a": m.nv, "lam": m.rows, "tau": m.nv}
        kept = m.nq + m.nv + sum(sizes[name] for name in self.step.extras)
        check_memory(
            f"a record of {n // k} of {n} steps for {count} states",
            count * (n // k) * kept,
            "record less often with every=, or fewer states at a time",
        )
        run = self.kernel if self.backend == "kernel" else self._in_numpy
        inputs["limit"] = np.array([self.limit])
        out = run(n, k, inputs, 1 if batch is None else batch)
        survived = out.pop("survived")
        self._audit(inputs, out, survived, n, k)
        t = float(inputs["dt"][0]) * k * np.arange(1, n // k + 1)
        if batch is None:
            return RolloutResult(t, survived=survived[0], ok=survived[0] == n, **{m: x[0] for m, x in out.items()})
        return RolloutResult(t, survived=survived, ok=survived == n, **out)

    def _take(self, given: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], int | None]:
        """Checked arrays for all inputs, and the size of the batch (None: one state)."""
        inputs, sizes = {}, {}
        for name, size in self.step.inputs.items():
            value = given.get(name)
            if value is None:
                if name not in DEFAULTS:
                    raise InputError(f"a rollout with pd=True needs '{name}'")
                value = np.full(size, DEFAULTS[name])
            try:
                x = np.asarray(real_array(value), dtype=self.dtype)
            except Refused as why:
                raise InputError(f"'{name}' is not an array of numbers ({why or shown(value)})") from None
            if x.ndim == 0:
                x = np.full(size, x)
            timed = name in TIMED
            if x.shape[-1] != size or x.ndim > (3 if timed else 2) or 0 in x.shape[(0 if timed else 1) :]:
                shapes = (
                    f"({size},), (times, {size}) or (batch, times, {size})"
                    if timed
                    else f"({size},) or (batch, {size})"
                )
                raise InputError(f"'{name}' has shape {x.shape}; it needs {shapes}")
            if not _finite(x):
                raise InputError(f"'{name}' has entries that are NaN or infinite")
            if name in ("q", "v") and np.abs(x).max(initial=0.0) > LARGEST:
                raise InputError(f"'{name}' has entries larger than {LARGEST:g}: no motion can be computed from there")
            if name in ("q", "target"):
                self.model.check_position(x)
            if timed and x.ndim == 1:
                x = x[None]
            if x.ndim == (3 if timed else 2):
                sizes[name] = len(x)
            inputs[name] = x
        if len(set(sizes.values())) > 1:
            raise InputError(f"the inputs have different batch sizes: {sizes}")
        if inputs["dt"].shape != (1,) or not inputs["dt"][0] > 0:
            raise InputError(f"dt is a time above 0 s, not {given['dt']!r}")
        return inputs, next(iter(sizes.values()), None)

    def _audit(
        self, inputs: Mapping[str, np.ndarray], out: dict[str, np.ndarray], survived: np.ndarray, steps: int, every: int
    ) -> None:
        """Mark states that gained energy without work as failed, from the first record that shows it."""
        work, dt, batch = out.pop("work"), float(inputs["dt"][0]), len(survived)
        turned = 2 * dt * max(float(np.abs(v).sum(axis=-1).max(initial=0.0)) for v in (inputs["v"], out["v"][:, -1]))
        if not batch or steps * turned**2 < SLOW:
            return
        start = [np.broadcast_to(inputs[n], (batch, inputs[n].shape[-1])) for n in ("q", "v")]
        gained = self._gained(start, [out["q"][:, -1], out["v"][:, -1]], work[:, -1], dt)
        failed = ~(gained <= SHARE)
        told = (np.abs(gained) > TOLD) & ~failed & (survived == steps)
        if told.any():
            where = f" in {np.count_nonzero(told)} of {batch} states" if batch > 1 else ""
            warn_of_energy(
                self.model, dt, float(np.abs(gained)[told].max()), float(np.abs(out["v"][told]).max(initial=0.0)), where
            )
        for b in np.flatnonzero(failed):
            records = [np.repeat(x[b : b + 1], out["q"].shape[1], axis=0) for x in start]
            n = int(np.argmax(~(self._gained(records, [out["q"][b], out["v"][b]], work[b], dt) <= SHARE)))
            survived[b] = min(survived[b], n * every)
            for name, first in zip(("q", "v"), start, strict=True):
                out[name][b, n:] = out[name][b, n - 1] if n else first[b]
            for name in self.step.extras:
                out[name][b, n:] = 0.0

    def _gained(
        self, before: Sequence[np.ndarray], after: Sequence[np.ndarray], work: np.ndarray, dt: float
    ) -> np.ndarray:
        """The energy gained without work between two records, relative to the energy flow."""
        rows = [np.concatenate(x).astype(float) for x in zip(before, after, strict=True)]
        (T0, T), (V0, V) = (x.reshape(2, -1) for x in energies_of(self.model, self.backend)(*rows))
        gain, flow = T - T0 + V - V0 - work[:, 0] / JOULE, T0 + work[:, 1] / JOULE + np.abs(V - V0)
        return share(self.model, dt, gain, flow)

    def _in_numpy(self, steps: int, every: int, inputs: Mapping[str, Any], batch: int) -> dict[str, np.ndarray]:
        """Reference implementation: state by state and step by step, in NumPy."""
        xp, limit = get("numpy"), float(inputs["limit"][0])
        shape = (batch, steps // every)
        sizes = {
            "q": self.model.nq,
            "v": self.model.nv,
            "a": self.model.nv,
            "tau": self.model.nv,
            "lam": self.model.rows,
        }
        sizes["work"] = 2
        out = {n: np.zeros((*shape, sizes[n])) for n in ("q", "v", "work", *self.step.extras)}
        survived = np.zeros(batch, dtype=int)
        for b in range(batch):
            x = {n: a if a.ndim == 1 or (n in TIMED and a.ndim == 2) else a[b] for n, a in inputs.items()}
            columns = {n: a[:, None] for n, a in x.items() if n not in TIMED}
            extras: dict[str, Any] = {}
            alive = True
            for k in range(steps):
                for n in TIMED:
                    if n in x:
                        columns[n] = x[n][k * len(x[n]) // steps, :, None]
                if alive:
                    try:
                        with np.errstate(all="ignore"):
                            new = self.step(xp, columns)
                            alive = bool(np.sqrt((new["q"] ** 2).sum() + (new["v"] ** 2).sum()) < limit)
                            alive = alive and all(np.isfinite(new[n]).all() for n in self.step.extras)
                    except np.linalg.LinAlgError:
                        alive = False
                if alive:
                    columns |= {n: new[n] for n in ("q", "v", "work")}
                    survived[b] += 1
                    extras = {n: new[n] for n in self.step.extras}
                else:
                    extras = {n: np.zeros((sizes[n], 1)) for n in self.step.extras}
                if (k + 1) % every == 0:
                    for n, value in {**{s: columns[s] for s in ("q", "v", "work")}, **extras}.items():
                        out[n][b, k // every] = value[:, 0]
        return {**out, "survived": survived}


TIMED = ("tau", "active", "target", "target_v")
DEFAULTS = {"tau": 0.0, "active": 1.0, "target_v": 0.0, "work": 0.0}


@checked(
    model=MODEL,
    dt=TIME,
    integrator=choice("integrator for rollouts", TRACEABLE),
    steps=optional(STEPS),
    every=optional(EVERY),
    method=optional(NAME),
    modes=FLAG,
    pd=FLAG,
    prox=PROX,
    iterations=whole(1, 1000, "a number of solver iterations in each step, at least 1"),
    stabilisation=either(STABILISATION, FLAG),
    record=several(choice("quantity to record", EXTRAS)),
    limit=POSITIVE,
    **{**OPTIONS, "backend": BACKEND},
)
def rollout(
    model: Model,
    *,
    dt: float = 1e-3,
    integrator: str = "semi_implicit",
    steps: int | None = None,
    every: int | None = None,
    method: str | None = None,
    modes: bool = False,
    pd: bool = False,
    prox: Prox | None = None,
    iterations: int = 2,
    stabilisation: Stabilisation | bool | None = None,
    record: Sequence[str] = (),
    limit: float = 1e6,
    backend: str = "kernel",
    dtype: str = "float64",
    threads: int | None = None,
) -> Rollout:
    """`run(q0, v0, tau) -> result`: many steps of many states in one native call; see `Rollout.__call__`.

    - `integrator` is "semi_implicit" (default) or "rk4"; `steps` and `every` can be given here or in the call.
    - `method` is one of forward dynamics; proximal ones do `iterations` solver iterations in every step, with the
      penalty of `prox`. More of them reach further below |J a - k| = 1e-6 where rows are nearly redundant.
    - `modes=True` adds the input `active`: one weight per constraint, which may change with time (contact schedules).
    - `pd=True` adds `kp`, `kd`, `target`, `target_v`: kp (target - q) + kd (target_v - v) + tau in actuated joints.
    - `stabilisation` (True: with a period of 30 steps, at most 0.1 s; or a `Stabilisation`) lets position errors of
      constraints decay.
    - `record` names what is recorded besides q and v: "a", "lam", "tau".
    - A state longer than `limit`, or not a number, has failed: its lane stops, and `result.ok` says so. So has one that
      gained energy without work: take a shorter dt, or "rk4". Results do not depend on the number of `threads`, to the
      bit.
    """
    model.check_forward()
    model = stabilised(model, stabilisation, dt)
    chosen = pick("forward_dynamics", method, model, use="batch", modes=modes, prox=prox)
    used = prox or limited_penalty(chosen, dtype)
    extras = tuple(n for n in EXTRAS if n in record)
    step = Step(
        model,
        chosen.name,
        integrator,
        used.mu if used else None,
        iterations,
        modes,
        pd,
        extras,
        used.flat if used else 0.0,
        single=dtype == "float32",
        audited=True,
    )
    return Rollout(step, dt, steps, every, backend, dtype, threads, limit)


STEP_PENALTY = 3e6
"""The largest penalty in time steps. Nearly redundant rows, such as Cassie's, need huge forces to hold exactly."""


def limited_penalty(method: registry.Method, dtype: str = "float64") -> Prox | None:
    """The penalty of a method in time steps, at most STEP_PENALTY unless it acts on singular rows only."""
    prox = method.prox_for(dtype)
    return prox if prox is None or method.damps == "singular" else replace(prox, mu=min(prox.mu, STEP_PENALTY))


def stabilised(model: Model, stabilisation: Stabilisation | bool | None, dt: float, but: Sequence[str] = ()) -> Model:
    """The model whose constraints, but for those named, have this stabilisation; True is PERIOD steps of dt long."""
    if not stabilisation:
        return model
    how = Stabilisation(min(Stabilisation.period, PERIOD * dt)) if stabilisation is True else stabilisation

    def with_it(c: Constraint) -> Constraint:
        return c if c.name in but or isinstance(c, LinkRows) else replace(c, stabilisation=how)  # type: ignore[type-var]

    return replace(model, constraints=tuple(map(with_it, model.constraints)))


def _finite(x: np.ndarray) -> bool:
    """Whether all entries are finite; their sum decides in most cases: it propagates NaN and infinity."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(x.sum())) or bool(np.isfinite(x).all())


def _count(what: str, steps: int | None, inputs: Mapping[str, np.ndarray]) -> int:
    """The number of steps: as given, or one for each value of tau in time."""
    n = inputs["tau"].shape[-2] if steps is None else steps
    if not isinstance(n, int | np.integer) or n < 1 or (steps is None and n == 1):
        raise InputError(f"{what}={steps!r}: a rollout needs a number of steps, or a tau with one value for each")
    return int(n)
