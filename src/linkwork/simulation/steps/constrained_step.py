"""One time step as a function of named columns.

Forces, constrained dynamics and integrator, compiled or by NumPy.

Rollouts put a native loop around it (rollout.py), simulations call it step by step (simulation_step.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linkwork.algorithms.common.iteration import Prox
from linkwork.algorithms.registry import Method
from linkwork.backends import Array, Ops
from linkwork.constraints import Constraint, LinkRows, Stabilisation
from linkwork.constraints.closure import seen
from linkwork.constraints.stabilisation import Stepped
from linkwork.errors import UnmodelledWarning, users_level, warn_violated
from linkwork.functions.method_choice import Choice
from linkwork.functions.parameters import BY_CONTROL, BY_FORCE, BY_OWN_ROWS, Inputs
from linkwork.functions.softness import Softness, felt_softness, softness_vector
from linkwork.functions.solver import Solver
from linkwork.lazy import cached_property
from linkwork.model import Model
from linkwork.model.activation import activation_after
from linkwork.model.digest import digest
from linkwork.model.joint_forces import actuator_force, implicit_inertia
from linkwork.rewrite.rewritten import Rewritten, rewritten
from linkwork.simulation.steps.energy_balance import constraint_power, passive_work
from linkwork.simulation.steps.integrators import TRACEABLE
from linkwork.simulation.steps.pushes import NO_PUSHES, Pushes
from linkwork.structure.independent import overconstrained

if TYPE_CHECKING:
    from linkwork.kernels.calls.kernel import Kernel
    from linkwork.kernels.programs.program import Program

BY_STEP = (*BY_FORCE, *BY_OWN_ROWS)
"""The parameters that can be inputs of steps."""

EXTRAS = ("a", "lam", "tau")
"""What can be recorded besides q and v: all of them as they are at the beginning of a step."""

PERIOD = 30
"""Steps in the period of the default stabilisation: shorter ones hold better, and excite nearly redundant rows."""

JOULE = 1e-9
"""Scale of the work of forces in the state: too small to count in its length."""

KEPT = 1 - 2.0**-10
"""The share of the last step's multipliers that a step starts from: what rows in conflict add at every step would grow
without bounds otherwise."""


@dataclass(frozen=True)
class Step:
    """One step of a model; the method is planned when it is first needed.

    Proximal methods do `iterations` solver iterations, with the penalty of `prox`. Those that sweep over links start
    from the forces of the last step, unless the mechanism is overconstrained. By default they do one in semi-implicit
    steps, and two where accelerations are used to a higher order; the others do two from zero, and three in
    overconstrained mechanisms. With `modes` there is an input `active`, with `pd` there are gains and targets of joint
    control, and with `actuators` controls u; `pushes` are forces on frames. `extras` are returned besides q and v.
    `audited` steps also sum up the work of joint and constraint forces, and its size. `parameters` names those that are
    inputs; with `softness` rows are soft. When traced, dynamics are computed `within` the rewritten model. With
    constraints, `worst` is the largest |J a - k| of any row in any step so far, relative to the size of the rows'
    terms.
    """

    model: Model
    choice: Choice
    integrator: str
    prox: Prox | None
    iterations: int | None
    modes: bool = False
    pd: bool = False
    extras: tuple[str, ...] = ()
    dtype: str = "float64"
    audited: bool = False
    parameters: tuple[str, ...] = ()
    actuators: bool = False
    pushes: Pushes = NO_PUSHES
    softness: Softness | None = None
    within: Rewritten | None = None

    settings: ClassVar[Mapping[str, np.ndarray]] = MappingProxyType({})

    @property
    def state(self) -> tuple[str, ...]:
        """What it changes and rollouts record: activations, too, where actuators have them."""
        return ("q", "v", "act", "work") if self.actuators and self.model.na else ("q", "v", "work")

    @property
    def carried(self) -> dict[str, int]:
        """What is handed to the next step: the largest error, and `lam0` to start from if the method iterates."""
        if not self.model.rows:
            return {}
        return {"worst": 1, "lam0": self.model.rows} if self.warm else {"worst": 1}

    @property
    def method(self) -> Method:
        """The method of forward dynamics, planned when first needed."""
        return self.choice.method

    @property
    def solver(self) -> str:
        """Its name."""
        return self.method.name

    @property
    def settled(self) -> str | None:
        """Its name, if it has been planned."""
        return self.choice.settled

    @property
    def penalty(self) -> Prox | None:
        """The settings of a method that iterates."""
        return self.prox or limited_penalty(self.method, self.model, self.dtype)

    @property
    def warm(self) -> bool:
        """Whether solver iterations start from the forces of the last step."""
        return self.penalty is not None and not self.method.at_once and not drifts(self.method, self.model)

    @cached_property
    def inputs(self) -> dict[str, int]:
        m = self.model
        sizes = {"q": m.nq, "v": m.nv, "dt": 1, "tau": m.nv, **controls(m, self.actuators)}
        if self.audited:
            sizes["work"] = 2
        if m.rows:
            sizes["worst"] = 1
        if self.modes:
            sizes["active"] = len(m.constraints)
        if self.pd:
            sizes |= {"kp": m.nv, "kd": m.nv, "target": m.nq, "target_v": m.nv}
        if self.pushes.frames:
            sizes["push"] = self.pushes.size
        return sizes | {n: x.size for n, x in self.defaults.items()}

    @cached_property
    def defaults(self) -> dict[str, np.ndarray]:
        """The model's own values of the parameters that are inputs."""
        return self._parameters.defaults

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of those with several axes."""
        return self._parameters.shapes

    @cached_property
    def _parameters(self) -> Inputs:
        own = softness_vector(self.softness)
        return Inputs(self.model, self.parameters, by_step(self.actuators), softness=own)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of EXTRAS."""
        return {"a": (self.model.nv,), "lam": (self.model.rows,), "tau": (self.model.nv,)}

    @property
    def bound(self) -> float:
        """The largest `worst` of a motion that has converged."""
        most, prox = CONVERGED[self.dtype], self.penalty
        if prox is None or drifts(self.method, self.model) or (self.method.damps == "all" and self.dtype == "float32"):
            return most
        return min(most, max(SOLVED, float(ACCURATE[self.dtype] / np.sqrt(prox.mu))))

    @property
    def conflicts(self) -> bool:
        """Whether rows come into conflict as loops drift open, which residuals do not tell (drifted_loops.py)."""
        return self.softness is None and self.dtype == "float64" and drifts(self.method, self.model)

    @property
    def retried(self) -> Step | None:
        """The step with more solver iterations, for motions that have not converged.

        None where users chose them, or rows are in conflict, which no iteration resolves.
        """
        chosen = self.iterations is not None or self.prox is not None or self.dtype != "float64"
        settled = self.penalty is None or not self.model.rows or drifts(self.method, self.model)
        return None if chosen or settled else replace(self, iterations=RETRIED)

    def warn(self, by: str, fine: np.ndarray | bool) -> None:
        """Warn that rows were violated in the states that are not `fine`."""
        warn_violated(by, self.solver, self.bound, fine)

    def __call__(self, xp: Ops, x: Mapping[str, Array]) -> dict[str, Array]:
        """The state after the step, and the extras at its beginning."""
        seen, worst = list[tuple[Array, Array, Array]](), [x["worst"]] if self.model.rows else []

        def acceleration(q: Array, v: Array) -> Array:
            tau = self.pushes.added(self._tau(xp, x, q, v), self.model, q, x, xp)
            start = None if "lam0" not in self.carried else seen[-1][1] if seen else KEPT * x["lam0"]
            a, lam, violation = self.solve(xp, x, q, v, tau, start)
            seen.append((a, lam, tau))
            if self.model.rows:
                worst[0] = xp.where(violation <= worst[0], worst[0], violation)
            return a

        q, v = TRACEABLE[self.integrator](self.model, acceleration, x["q"], x["v"], x["dt"][0, 0], xp)
        found = dict(zip(EXTRAS, seen[0], strict=True))
        after = {"q": q, "v": v, **{n: found[n] for n in self.extras}}
        if "tau" in after:
            driven = actuator_force(self.model, x["q"], x["v"], xp, x)
            after["tau"] = self._tau(xp, x, x["q"], x["v"]) + (0.0 if driven is None else driven)
        if "act" in x:
            after["act"] = activation_after(self.model, x["dt"][0, 0], xp, x)
        if self.model.rows:
            after["worst"] = worst[0]
        if "lam0" in self.carried:
            after["lam0"] = seen[-1][1]
        if self.audited:
            work = (x["dt"][0, 0] * JOULE / 2) * (found["tau"].T @ (x["v"] + v))[0, 0]
            passive = passive_work(self.model, self.integrator, x["dt"][0, 0], x["q"], x["v"], v, xp, x)
            if passive is not None:
                work = work + JOULE * passive[0, 0]
            motion = self._within(x["dt"][0, 0]).motion(x["q"], x["v"], xp, x)
            soft = felt_softness(self.model, self.softness, x, xp)
            work = work + x["dt"][0, 0] * JOULE * constraint_power(motion, found["lam"], x["dt"][0, 0], soft)
            after["work"] = x["work"] + xp.matrix([[work], [xp.where(work < 0, -work, work)]])
        return after

    def _tau(self, xp: Ops, x: Mapping[str, Array], q: Array, v: Array) -> Array:
        """Joint forces of the user and of joint control."""
        return x["tau"] + joint_control(self.model, xp, x, q, v) if self.pd else x["tau"]

    def _within(self, h: Array) -> Rewritten:
        """The model whose stabilisation is discretised for the step, where the integrator is semi-implicit."""
        within = self.within or Rewritten(self.model)
        if self.integrator != "semi_implicit" or not any(c.stabilisation for c in self.model.constraints):
            return within
        return replace(within, model=discretised(within.model, h))

    def solve(
        self, xp: Ops, x: Mapping[str, Array], q: Array, v: Array, tau: Array, lam0: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Accelerations, constraint forces and violation for the inputs `x`, from forces `lam0`."""
        solver, prox = Solver(self.method, self._within(x["dt"][0, 0]), softness=self.softness), self.penalty
        mu, flat = (None, 0.0) if prox is None else (prox.mu, prox.flat)
        given = stiffened(self.model, x["dt"][0, 0], xp, x, q, v) if self.integrator == "semi_implicit" else x
        found = solver(xp, q, v, tau, None, mu, x["active"] if self.modes else None, given, lam0)
        weak = self.method.at_once and not drifts(self.method, self.model) and self.dtype == "float64"
        return found.verified(self.iterations or self._usual, flat, weak)

    @property
    def _usual(self) -> int:
        """Solver iterations in each solution, unless users chose them."""
        return ITERATIONS[self.integrator] if self.warm else OPEN if drifts(self.method, self.model) else AT_ONCE

    @cached_property
    def traced(self) -> Program:
        """The step as a program, whose outputs q and v are the next ones."""
        from linkwork.kernels.programs.trace import trace

        step = replace(self, within=rewritten(self.model))
        return trace(
            "step",
            lambda xp, symbol: step(xp, {n: symbol(n, k) for n, k in {**self.inputs, **self.carried}.items()}),
            single=self.dtype == "float32",
        )

    @cached_property
    def cached_program(self) -> Any:
        """The program, or its cached sketch: a step that was compiled before is not traced again."""
        from linkwork.kernels.cache.program_cache import get_or_trace

        return get_or_trace(self._content, lambda: self.traced)

    @cached_property
    def kernel(self) -> Kernel:
        """One step as native code."""
        from linkwork.kernels.calls.kernel import Kernel

        return Kernel(self.cached_program)

    @property
    def _content(self) -> str | None:
        """A digest of all that the program depends on."""
        options = self.integrator, self.iterations, self.modes, self.pd, self.extras, self.dtype
        inputs = self.audited, self.parameters, self.actuators, self.pushes, self.softness
        return digest("step", self.model, self.method.name, self.penalty, *inputs, *options)


def controls(model: Model, actuators: bool) -> dict[str, int]:
    """The inputs of actuators, if they are used: controls, and activations of those with a state."""
    return {"u": model.nu, **({"act": model.na} if model.na else {})} if actuators else {}


def by_step(actuators: bool) -> tuple[str, ...]:
    """The parameters that can be inputs of steps with controls or without."""
    return (*BY_STEP, *BY_CONTROL) if actuators else BY_STEP


def discretised(model: Model, h: Array | float) -> Model:
    """The model whose stabilisation is that of a semi-implicit step of h seconds."""

    def with_step(c: Constraint) -> Constraint:
        s = c.stabilisation
        return c if s is None else replace(c, stabilisation=Stepped(s.period, s.damping, h))  # type: ignore[type-var]

    return replace(model, constraints=tuple(map(with_step, model.constraints)))


def stiffened(model: Model, h: Array, xp: Ops, x: Mapping[str, Array], q: Array, v: Array) -> Mapping[str, Array]:
    """The inputs with the armature by which springs, damping and servos are implicit."""
    extra = implicit_inertia(model, h, xp, x, q, v)
    if extra is None:
        return x
    own = x["armature"] if "armature" in x else xp.constant(model.parameters().armature)
    return {**x, "armature": own + extra}


def joint_control(model: Model, xp: Ops, x: Mapping[str, Array], q: Array, v: Array) -> Array:
    """kp (target - q) + kd (target_v - v) of the actuated joints."""
    t, parts = model.topology, [xp.zeros(0)]
    for i in t.links:
        at, to = t.v_slices[i], t.q_slices[i]
        if not model.links[i].actuated:
            parts.append(xp.zeros(at.stop - at.start))
            continue
        off = model.links[i].joint.difference(q[to, :], x["target"][to, :], xp)
        parts.append(x["kp"][at, :] * off + x["kd"][at, :] * (x["target_v"][at, :] - v[at, :]))
    return xp.vstack(parts)


def warn_of_friction(model: Model, function: str) -> None:
    """Warn, once per place in the user's code as Python does, that smooth motions have no dry friction."""
    rough = sum(bool(l.passive.friction.any()) for l in model.links)
    if rough:
        warnings.warn(
            f"{function} leaves out the dry friction of {rough} joint{'s' if rough > 1 else ''} of '{model.name}': "
            "lw.step has it, and so has lw.rollout(..., contacts=[...]), with or without a contact in the list",
            UnmodelledWarning,
            stacklevel=users_level(),
        )


ITERATIONS = {"semi_implicit": 1, "rk4": 2}
"""Solver iterations in each solution within a step, from the forces of the one before."""

AT_ONCE = 2
"""The same from zero, by methods that solve for all rows at once. With their penalty, 1e10, that is as accurate as a
start from the last step's forces, and errors of regular rows are small enough to tell those of weak ones."""

OPEN = 3
"""The same from zero, where overconstrained loops drift open. Rows that were redundant are in conflict there; forces
that add up over steps hold them, and act as far as loops are open (Cassie's accelerations were 1e-5 off, now 1e-7)."""

RETRIED = 4
"""Solver iterations of motions that are rolled out once more, because they have not converged with ITERATIONS."""

CONVERGED = {"float64": 1e-6, "float32": 1e-4}
"""The largest |J a - k|, relative to the size of the rows' terms, of a step that has converged, where rows are in
conflict or solved directly, and in float32 wherever all are damped."""

ACCURATE = {"float64": 1e-6, "float32": 2e-4}
"""The relative error of accelerations in a step that has converged otherwise. What it leaves is left in directions in
which the rows' Delassus matrix, in units of effective inertia, is about 1 / mu: errors of accelerations there are
sqrt(mu) times as large as those of rows."""

SOLVED = 5 * Prox.tolerance
"""The least |J a - k| that is told from none, in the same units: iterations end at the tolerance of the largest row."""

STEP_PENALTY = 3e6
"""The largest penalty in time steps on links, and on rows of overconstrained mechanisms, which need huge forces to hold
exactly as loops drift open."""

UNMOVED = 1e8
"""The penalty in time steps on rows that a joint does not move: with the 1e7 of calls, which iterate, rollouts of one
solver iteration a step leave rows open by 4e-7."""


def limited_penalty(method: Method, model: Model, dtype: str = "float64") -> Prox | None:
    """The penalty of a method in time steps of a model."""
    prox = method.prox_for(dtype)
    if prox is None:
        return None
    if method.damps == "singular":
        return prox if dtype == "float32" else replace(prox, mu=UNMOVED)
    if method.at_once and not drifts(method, model):
        return prox
    return replace(prox, mu=min(prox.mu, STEP_PENALTY))


def drifts(method: Method, model: Model) -> bool:
    """Whether rows that a method damps come into conflict as loops drift open."""
    return method.prox is not None and method.damps == "all" and overconstrained(model)


def stabilised(model: Model, stabilisation: Stabilisation | bool | None, dt: float, but: Sequence[str] = ()) -> Model:
    """The model as steps take it, whose constraints, but for those named, have this stabilisation.

    True is PERIOD steps of dt long.
    """
    how = Stabilisation(min(Stabilisation.period, PERIOD * dt)) if stabilisation is True else stabilisation

    def with_it(c: Constraint) -> Constraint:
        c = seen(c, model)
        return c if not how or c.name in but or isinstance(c, LinkRows) else replace(c, stabilisation=how)  # type: ignore[type-var]

    return replace(model, constraints=tuple(map(with_it, model.constraints)))
