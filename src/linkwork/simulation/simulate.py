"""Simulation with a controller in Python, unilateral contacts, projection onto loops, a record.

One step of `dt` is: the controller's joint forces, held over the step; the constrained dynamics and the integrator, as
one compiled function (simulation_step.py); and, if asked for, a projection back onto the constraints. With `contacts`
these touch the ground with friction (frictional.py); with `ground` alone the contacts with the world (`point`,
`surface`) are unilateral, and stick (sticking_contacts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from linkwork.algorithms.common.iteration import PROX, Prox
from linkwork.algorithms.tree.crba import crba
from linkwork.backends import get
from linkwork.checks import (
    FLAG,
    FUNCTION,
    NAME,
    NOT_NEGATIVE,
    NUMBER,
    POSITION,
    TIME,
    VELOCITY,
    Refused,
    check_memory,
    checked,
    choice,
    either,
    finite_array,
    number,
    optional,
    shown,
    whole,
)
from linkwork.closure.velocities import idle_joints
from linkwork.constraints import Stabilisation
from linkwork.constraints.collisions import CONTACTS, Pair
from linkwork.constraints.contact import GROUND, Contact, Ground, Surface
from linkwork.constraints.stabilisation import STABILISATION
from linkwork.errors import InputError, SingularError, StepError, UnsupportedError, listing
from linkwork.functions.actuation import check_actuators
from linkwork.functions.dynamics import forward_dynamics
from linkwork.functions.kinematics import constraint_error
from linkwork.model import Model, Motion
from linkwork.model.activation import Activated, stateless
from linkwork.model.joint_forces import actuator_force
from linkwork.model.model import MODEL
from linkwork.simulation.frictional import Scene, simulate_contacts
from linkwork.simulation.records.progress import bar
from linkwork.simulation.records.trajectory import Trajectory, column_names, column_units
from linkwork.simulation.steps import integrators
from linkwork.simulation.steps.constrained_step import RETRIED, stabilised, warn_of_friction
from linkwork.simulation.steps.dormand_prince import dormand_prince
from linkwork.simulation.steps.energy_balance import Ledger, passive_work
from linkwork.simulation.steps.open_loops import open_loop, warn_of_open_loop
from linkwork.simulation.steps.projection import Correction
from linkwork.simulation.steps.pushes import PUSH_AXES, PUSHES, TimedPushes
from linkwork.simulation.steps.simulation_step import After, advance, driving
from linkwork.simulation.sticking_contacts import GroundContacts, ground_contacts

Controller = Callable[[float, np.ndarray, np.ndarray], Any]
"""(t, q, v) -> tau."""

FASTEST = 1e9
"""A velocity (m/s, rad/s) beyond that of light: no motion has it, and nothing computed from there means anything."""

LOOKS = 10
"""Steps between two checks of the energy of the motion."""


@checked(
    model=MODEL,
    q0=POSITION,
    v0=optional(VELOCITY),
    controller=optional(FUNCTION),
    dt=TIME,
    duration=NOT_NEGATIVE,
    integrator=choice("integrator", integrators.ORDERS),
    method=optional(NAME),
    prox=PROX,
    iterations=whole(1, 1000, "a number of solver iterations in each step, at least 1"),
    stabilisation=either(STABILISATION, FLAG),
    projection=FLAG,
    contacts=optional(CONTACTS),
    ground=optional(either(NUMBER, GROUND)),
    restitution=number(0, 1, "between 0 (stays) and 1 (bounces back)"),
    every=whole(1),
    actuators=FLAG,
    pushes=optional(PUSHES),
    push_axes=PUSH_AXES,
    backend=choice("backend for simulations", ("kernel", "numpy")),
    progress=optional(FLAG),
)
def simulate(
    model: Model,
    q0: object,
    v0: object = None,
    controller: Controller | None = None,
    *,
    dt: float = 1e-3,
    duration: float = 2.0,
    integrator: str = "semi_implicit",
    method: str | None = None,
    prox: Prox | None = None,
    iterations: int = RETRIED,
    stabilisation: Stabilisation | bool | None = None,
    projection: bool = False,
    contacts: Sequence[Contact | Pair] | None = None,
    ground: float | Surface | None = None,
    restitution: float = 0.0,
    every: int = 1,
    actuators: bool = False,
    pushes: Mapping[str, Any] | None = None,
    push_axes: str = "world",
    backend: str = "kernel",
    progress: bool | None = None,
) -> Trajectory:
    """Simulate from `q0` (quaternions [x y z w]) and `v0` (default: 0), recording every `every` steps.

    - Steps take `dt` seconds, for `duration` seconds. `method` and `prox` are those of `forward_dynamics`, `iterations`
      the solver iterations of a step: four, because one takes little beside the Python of a step.
    - `controller(t, q, v)` gives the joint forces (nv,); none means zero. With `actuators=True` it gives the controls u
      (nu,) of the model's actuators instead, and the record has the joint forces that these make of them. Activations
      of those with a state start from zero, and are held over a step.
    - `pushes` are external forces: from names of frames (or links) to [force; torque] at their origin, or to functions
      of time that give it, in the axes of the "world" or of the "frame" (`push_axes`). Held over a step.
    - `integrator` is "semi_implicit", "rk4", "midpoint" (implicit) or "dormand_prince" (variable step, for reference:
      the controller acts continuously; neither projection nor ground).
    - `stabilisation=True` (a period of 30 steps, at most 0.1 s; or a `Stabilisation`) lets position errors of
      constraints decay; `projection=True` removes them after every step, in position and velocity.
    - `contacts` (`Contact`, `Pair`, or `lw.contacts(model)`) touch the ground and each other with Coulomb friction, and
      joints stay within their limits, as in `lw.step`; `lam` of the result has contact forces in world axes. `ground`
      is a `Ground`, or the height of a plane (default: 0).
    - `ground`, the height of a plane, without `contacts`: the model's own contacts with the world (`point`, `surface`)
      touch down, stick and lift off. `restitution` is the share of the normal
      velocity with which these bounce back. Without either all constraints hold all the time.
    - `progress` shows a bar; None shows it on a terminal, after a second.

    Raises StepError where the motion diverges, or gains energy without work, because its steps are too long for its
    speed, and SingularError where the state is no longer finite. Warns (StepWarning) where energy is off by 5 % of the
    energy flow, and (ConvergenceWarning) where a step violates constraint rows by more than rollouts allow, as near
    singular postures, and (OpenLoopWarning) where the motion begins with loops open and nothing closes them, or where
    loops of an overconstrained mechanism drift open until redundant rows no longer are.

    Examples:
        >>> run = lw.simulate(chain(3), np.zeros(3), dt=1e-3, duration=0.1)
        >>> run.q.shape
        (101, 3)
    """
    if isinstance(ground, Surface) and contacts is None:
        raise InputError("a Ground needs contacts: give contacts=, as of lw.contacts(model), or the height of a plane")
    if actuators:
        check_actuators(model)
        model, controller = _activated(model, controller, integrator)
    height = None if isinstance(ground, Surface) else ground
    options = _Options(
        *(dt, duration, integrator, iterations, projection, height, restitution, every, backend),
        actuators,
        TimedPushes(model, pushes or {}, push_axes),
    )
    kept = model.nq + 2 * model.nv + model.rows
    check_memory(
        f"a record of {options.steps} steps",
        (options.steps // every + 1) * kept,
        "record less often with every=, or simulate for a shorter time",
    )
    q, v = np.asarray(q0), np.zeros(model.nv) if v0 is None else np.asarray(v0)
    model.check_forward()
    if contacts is not None:
        options.check_contacts([] if prox is None else ["prox"])
        model = stabilised(model, stabilisation, dt)
        warn_of_open_loop(model, q, remedy=", or take stabilisation=True")
        plane = ground if isinstance(ground, Surface) else Ground(height=ground or 0.0)
        act = partial(_drive, model, controller, options)
        scene = Scene(model, contacts, plane, method, backend, actuators)
        return simulate_contacts(scene, q, v, act, dt, options.steps, every, progress)
    warn_of_friction(model, "simulate")
    sticking = ground_contacts(model) if ground is not None else ()
    model = stabilised(model, stabilisation, dt, but=[c.name for _, c in sticking])
    if not projection:
        settle = ", or take stabilisation=True or projection=True"
        warn_of_open_loop(model, q, [c.name for _, c in sticking], settle)
    if integrator == "dormand_prince":
        return _reference(model, q, v, controller, options, method, prox)
    run = _Simulation(model, options, method, prox, q, v)
    with bar(progress, f"simulating {model.name}", options.steps) as tick:
        for k in range(options.steps):
            try:
                run.step(k, controller)
            except StepError as problem:
                said = "" if ground is not None else open_loop(model, q)
                raise StepError(f"{problem}. {said}" if said else str(problem)) from None
            tick(k)
        run.finish(options.steps, controller)
    run.ledger.tell(dt)
    found = run.trajectory()
    run.advance.tell(found.q, run.active)
    return found


@dataclass(frozen=True)
class _Options:
    dt: float
    duration: float
    integrator: str
    iterations: int
    projection: bool
    ground: float | None
    restitution: float
    every: int
    backend: str
    actuators: bool
    pushes: TimedPushes

    def __post_init__(self) -> None:
        if self.integrator == "dormand_prince" and (self.projection or self.ground is not None):
            raise InputError("dormand_prince takes neither projection nor ground: use rk4 or semi_implicit")

    def check_contacts(self, given: list[str]) -> None:
        """Raise for options that a simulation with friction does not have."""
        unlike = {"integrator": "semi_implicit", "iterations": RETRIED, "projection": False, "restitution": 0.0}
        given = given + [n for n, usual in unlike.items() if getattr(self, n) != usual]
        if given:
            raise InputError(
                f"a simulation with contacts= takes no {listing(given)}: its steps are semi-implicit, and restitution "
                "is an option of each Contact"
            )

    @property
    def steps(self) -> int:
        return round(self.duration / self.dt)


class _Simulation:
    """The state of a running simulation and its record."""

    def __init__(
        self, model: Model, o: _Options, method: str | None, prox: Prox | None, q: np.ndarray, v: np.ndarray
    ) -> None:
        self.model, self.options, self.q, self.v = model, o, q, v
        self.rows: list[tuple[np.ndarray, ...]] = []
        switching = o.ground is not None
        self.advance = advance(model, o.integrator, method, prox, o.iterations, switching, o.backend, o.actuators)
        self.ledger = Ledger(model, q, v, o.backend, o.integrator)
        if model.constraints:
            self.error = constraint_error(model, backend=o.backend)
            self.rate = self.error(q, v).rate
        if switching or (o.projection and model.constraints):
            self.correct = Correction(model, method if switching else None, o.backend)
        self.ground: GroundContacts | None = None
        if o.ground is not None:
            self.ground = GroundContacts(
                model, o.ground, o.restitution, self.advance, self.error, self.correct, o.backend
            )
            self.ground.settle(q, v)

    @property
    def active(self) -> np.ndarray:
        """One weight per constraint: 0 for contacts that are released."""
        return np.ones(len(self.model.constraints)) if self.ground is None else self.ground.active

    def step(self, k: int, controller: Controller | None) -> None:
        """One step of dt, with its contact events."""
        o, t, before = self.options, k * self.options.dt, self.v
        drive, tau = self._drive(controller, t)
        after = self._after(t, drive)
        if k % o.every == 0:
            self._record(t, tau, after[2])
        if self.ground is not None:
            after = self.ground.land(t, self.q, self.v, drive, o.dt, after)
        q, v, lam = after
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            raise self._lost(t + o.dt)
        check_speed(self.model, t + o.dt, v)
        start, self.q, self.v, self.advance.lam0 = self.q, q, v, lam
        self._account(o.dt, start, before, drive, lam)
        if o.projection and self.model.constraints:
            self._project()
            self.ledger.moved((q, v), (self.q, self.v))
            self.rate = self.error(self.q, self.v).rate
        if (k + 1) % LOOKS == 0 or k + 1 == o.steps:
            self.ledger.check(t + o.dt, o.dt, self.q, self.v, o.integrator, self.ground is not None)

    def finish(self, k: int, controller: Controller | None) -> None:
        """Record the last state, with the forces of the step that would follow."""
        t = k * self.options.dt
        drive, tau = self._drive(controller, t)
        if k % self.options.every == 0:
            self._record(t, tau, self._after(t, drive)[2])

    def trajectory(self) -> Trajectory:
        """What was recorded."""
        t, q, v, tau, lam, active = (np.array(x) for x in zip(*self.rows, strict=True))
        events = () if self.ground is None else tuple(self.ground.events)
        names, units = column_names(self.model), column_units(self.model)
        return Trajectory(t, q, v, tau, lam, active, names, events, self.model.name, units)

    def _after(self, t: float, drive: np.ndarray) -> After:
        """The state after dt, in which no contact pulls, before any touches down; and constraint forces."""
        if self.ground is None:
            return self.advance(self.q, self.v, drive, self.active, self.options.dt)
        return self.ground.begin(t, self.q, self.v, drive, self.options.dt)

    def _drive(self, controller: Controller | None, t: float) -> tuple[np.ndarray, np.ndarray]:
        return _drive(self.model, controller, self.options, t, self.q.copy(), self.v.copy())

    def _record(self, t: float, tau: np.ndarray, lam: np.ndarray) -> None:
        self.rows.append((np.array(t), self.q, self.v, tau, lam, self.active.copy()))

    def _lost(self, t: float) -> SingularError:
        """The error for a state that is not a number: joints that move nothing, or a motion that is too fast."""
        motion = Motion(self.model, self.q[:, None], self.v[:, None], get("numpy"))
        idle = idle_joints(self.model, crba(motion))
        remedy = f"before that {_fastest(self.model, self.v)}; take a shorter dt, lower gains, or stabilise"
        if idle:
            remedy = f"the joints {listing(idle)} move no inertia; give their links one, or the joints an armature"
        return SingularError(f"the state of '{self.model.name}' is not a number after {t:g} s: {remedy}")

    def _account(self, h: float, q: np.ndarray, before: np.ndarray, drive: np.ndarray, lam: np.ndarray) -> None:
        """The work of joint forces, of passive ones and actuators, and of constraints whose frames move."""
        given, (at, v, after) = driving(self.model, drive), (x[:, None] for x in (q, before, self.v))
        work = h * float(given["tau"] @ (before + self.v)) / 2
        controls = {n: x[:, None] for n, x in given.items() if n == "u"}
        passive = passive_work(self.model, self.options.integrator, h, at, v, after, get("numpy"), controls)
        work += 0.0 if passive is None else passive.item()
        if self.model.constraints:
            last, self.rate = self.rate, self.error(self.q, self.v).rate
            work += h * float(lam @ (last + self.rate)) / 2
        self.ledger.add(work)

    def _project(self) -> None:
        """Position, until it no longer improves, then velocity."""
        size, weights = np.inf, np.repeat(self.active, [c.rows for c in self.model.constraints])
        for _ in range(5):
            phi = np.array(self.error(self.q, self.v).phi)
            if self.ground is not None:
                phi = self.ground.position_error(self.q, phi)
            new = float(np.abs(phi * weights).max(initial=0.0))
            if new < 1e-14 or new > 0.5 * size:
                break
            self.q, size = self.correct(self.q, -phi, self.active)[0], new
        self.v = self.v + self.correct(self.q, -self.error(self.q, self.v).rate, self.active)[1]


def _reference(
    model: Model,
    q: np.ndarray,
    v: np.ndarray,
    controller: Controller | None,
    o: _Options,
    method: str | None,
    prox: Prox | None,
) -> Trajectory:
    """Integrate by Dormand and Prince's method, and record its dense output."""
    fd = forward_dynamics(model, method=method, prox=prox, backend=o.backend, actuators=o.actuators)

    def forces(t: float, at: np.ndarray, speed: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        check_speed(model, t, speed)
        drive, tau = _drive(model, controller, o, t, at, speed)
        return driving(model, drive), tau

    solution = dormand_prince(model, lambda t, x, y: np.asarray(fd(x, y, **forces(t, x, y)[0]).a), q, v, o.steps * o.dt)
    t = np.arange(0, o.steps + 1, o.every) * o.dt
    Q, V = solution(t)
    drives = [forces(*state) for state in zip(t, Q, V, strict=True)]
    tau = np.array([x for _, x in drives])
    lam = np.array([fd(at, speed, **given).lam for at, speed, (given, _) in zip(Q, V, drives, strict=True)])
    active = np.ones((len(t), len(model.constraints)))
    return Trajectory(t, Q, V, tau, lam, active, column_names(model), (), model.name, column_units(model))


def check_speed(model: Model, t: float, v: np.ndarray) -> None:
    """Raise StepError for a motion faster than anything moves: it diverges, whatever comes next."""
    if np.abs(v).max(initial=0.0) > FASTEST:
        raise StepError(
            f"the motion of '{model.name}' diverges: {_fastest(model, v)} after {t:g} s. Its steps are too long for "
            "the gains and forces that act on it; take a shorter dt, lower gains, or integrator='midpoint'"
        )


def _fastest(model: Model, v: np.ndarray) -> str:
    """The joint with the largest velocity, in words."""
    worst = int(np.argmax(np.abs(v)))
    joint = next(l.joint_name for i, l in enumerate(model.links) if i and worst < model.topology.v_slices[i].stop)
    return f"joint '{joint}' moves with {abs(v[worst]):.1e} {column_units(model)['v'][worst]}"


def _drive(
    model: Model, controller: Controller | None, o: _Options, t: float, q: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What drives the mechanism (simulation_step.py), pushes included, and the joint forces of the record."""
    push = o.pushes(t, q)
    if not o.actuators:
        tau = np.zeros(model.nv) if controller is None else _told(controller, t, q, v, "tau", model.nv)
        return tau + push, tau
    u = np.zeros(model.nu) if controller is None else _told(controller, t, q, v, "u", model.nu)
    made = actuator_force(model, q[:, None], v[:, None], get("numpy"), {"u": u[:, None]})
    assert made is not None
    return np.concatenate([u, push]), np.asarray(made)[:, 0]


def _activated(model: Model, controller: Controller | None, integrator: str) -> tuple[Model, Controller | None]:
    """The model and a controller whose controls are activations, where actuators have a state."""
    if not model.na:
        return model, controller
    if integrator == "dormand_prince":
        raise UnsupportedError("dormand_prince has no steps in which activations of actuators are held: use rk4")

    def told(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.zeros(model.nu) if controller is None else _told(controller, t, q, v, "u", model.nu)

    return stateless(model), Activated(model, told)


def _told(controller: Controller, t: float, q: np.ndarray, v: np.ndarray, name: str, size: int) -> np.ndarray:
    """What the controller says, checked."""
    given = controller(t, q, v)
    try:
        told = finite_array(given)
    except Refused as why:
        raise InputError(f"the controller gave no forces at t = {t:g} s: {str(why) or shown(given)}") from None
    if told.shape != (size,):
        raise InputError(f"the controller gave {name} of shape {told.shape}; this model needs ({size},)")
    return told
