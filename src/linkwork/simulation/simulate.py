"""Simulation for people: a controller in Python, contacts that come and go, loops that stay closed, a record.

One step of `dt` is: the controller's joint forces, held over the step; the constrained dynamics and the integrator, as
one compiled function; and, if asked for, a projection back onto the constraints. With `ground` the contacts with the
world (`point`, `surface`) are unilateral, by this scheme:

- **Lift-off.** If an active contact would have to pull, the step is taken again with every subset of the contacts
  that are down, one contact mode each. The subset in which no contact pulls and none that is left
  out sinks is taken; where none is (contacts that stick may have no such solution), the one that sinks and then
  pulls least.
- **Touchdown.** If the origin of a released contact's frame is below the plane after the step, the step is cut at the
  moment it gets there (regula falsi), an impulse of all contacts that are active then stops it, chosen among the
  subsets in the same way if it is fast, and the rest of the step follows. With `restitution` the normal velocity is
  reversed in part, as long as it is above `REBOUND`; the contact then bounces and does not become active.
- Contacts stick: friction is without limit, and a surface holds all six directions as soon as its frame's origin is
  on the plane.
- A contact that lifts off is not looked at again in that step; what it sinks meanwhile is of the order of dt^2, and
  `projection` lifts it up to the plane when it touches down again.
- At most EVENTS touchdowns are resolved in one step; what is below the plane after that is stopped at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
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
from linkwork.closure.assembly import idle_joints
from linkwork.constraints import Closure, Stabilisation
from linkwork.constraints.base import STABILISATION
from linkwork.errors import InputError, SingularError, listing
from linkwork.functions.choice import pick
from linkwork.functions.dynamics import forward_dynamics
from linkwork.functions.kinematics import constraint_error, forward_kinematics
from linkwork.model import Model, Motion
from linkwork.model.model import MODEL
from linkwork.simulation import integrators
from linkwork.simulation.dormand_prince import dormand_prince
from linkwork.simulation.energy import Ledger
from linkwork.simulation.progress import bar
from linkwork.simulation.projection import correction
from linkwork.simulation.rollout import Step, calm, stabilised
from linkwork.simulation.trajectory import Event, Trajectory, column_names, column_units

Controller = Callable[[float, np.ndarray, np.ndarray], Any]
"""(t, q, v) -> tau."""

EVENTS = 8
REBOUND = 0.1
"""Normal velocity (m/s) below which a contact with restitution stays down, and a touchdown releases no other one."""

TINY, SINKING = 1e-9, 1e-7
"""Pulls, relative to all forces, and sinking speeds (m/s) that are taken for rounding."""

DEPTH = 1e-9
"""Depth below the plane (m) that is taken for rounding."""

MANY = 6
"""Contacts that are down up to which all of their subsets are looked at."""

ON_GROUND = 1e-6
"""Height (m) up to which a contact is down at the start."""

LOOKS = 10
"""Steps after which the energy of the motion is looked at."""


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
    iterations=whole(1, 1000, "a number of solves in each step, at least 1"),
    stabilisation=either(STABILISATION, FLAG),
    projection=FLAG,
    ground=optional(NUMBER),
    restitution=number(0, 1, "between 0 (stays) and 1 (bounces back)"),
    every=whole(1),
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
    iterations: int = 3,
    stabilisation: Stabilisation | bool | None = None,
    projection: bool = False,
    ground: float | None = None,
    restitution: float = 0.0,
    every: int = 1,
    backend: str = "kernel",
    progress: bool | None = None,
) -> Trajectory:
    """Simulate from `q0` (quaternions [x y z w]) and `v0` (default: at rest) and record every `every` steps.

    - `controller(t, q, v)` gives the joint forces (nv,); none means zero.
    - `integrator` is "semi_implicit", "rk4", "midpoint" (implicit) or "dormand_prince" (variable step, for reference:
      the controller acts continuously; neither projection nor ground).
    - `stabilisation=True` (a period of 30 steps, at most 0.1 s; or a `Stabilisation`) lets position errors of
      constraints decay; `projection=True` removes them after every step, in position and velocity.
    - `ground` is the height of a plane: contacts with the world touch down and lift off (see the module's text).
      Without it all constraints hold all the time.
    - `progress` shows a bar; None shows it on a terminal, for what takes more than a second.

    Raises StepError where the motion gains energy that no force gave, because its steps are too long for how fast it
    is, and SingularError where it is no longer made of numbers.
    """
    options = _Options(dt, duration, integrator, iterations, projection, ground, restitution, every, backend)
    kept = model.nq + 2 * model.nv + model.rows
    check_memory(
        f"a record of {options.steps} steps",
        (options.steps // every + 1) * kept,
        "record less often with every=, or simulate for a shorter time",
    )
    q, v = np.asarray(q0), np.zeros(model.nv) if v0 is None else np.asarray(v0)
    contacts = _contacts(model) if ground is not None else ()
    model.check_forward()
    model = stabilised(model, stabilisation, dt, but=[c.name for _, c in contacts])
    if integrator == "dormand_prince":
        return _reference(model, q, v, controller or _rest(model), options, method, prox)
    run = _Simulation(model, options, contacts, method, prox, q, v)
    with bar(progress, f"simulating {model.name}", options.steps) as advance:
        for k in range(options.steps):
            run.step(k, controller or _rest(model))
            advance(k)
        run.look(options.steps, controller or _rest(model))
    return run.trajectory()


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

    def __post_init__(self) -> None:
        if self.integrator == "dormand_prince" and (self.projection or self.ground is not None):
            raise InputError("dormand_prince takes neither projection nor ground: use rk4 or semi_implicit")

    @property
    def steps(self) -> int:
        return round(self.duration / self.dt)


@dataclass
class _Simulation:
    """The state of a running simulation and what was recorded of it."""

    model: Model
    options: _Options
    contacts: tuple[tuple[int, Closure], ...]
    method: str | None
    prox: Prox | None
    q: np.ndarray
    v: np.ndarray
    rows: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        model, o = self.model, self.options
        switching = bool(self.contacts)
        self.active = np.ones(len(model.constraints))
        self.advance = _advance(model, o, self.method, self.prox, switching)
        starts = np.cumsum([0, *(c.rows for c in model.constraints)])
        self.at = {c: int(starts[c]) for c, _ in self.contacts}
        self.size = {c: closure.rows for c, closure in self.contacts}
        if switching:
            self.kinematics = forward_kinematics(model, [c.a for _, c in self.contacts], backend=o.backend)
        self.ledger = Ledger(model, self.q, self.v, o.backend)
        if model.constraints:
            self.error = constraint_error(model, backend=o.backend)
            self.rate = self.error(self.q, self.v).rate
        if switching or (o.projection and model.constraints):
            self.correct = correction(model, self.method if switching else None, o.backend)
        self.gone: set[int] = set()
        self.anchors: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        if switching:
            assert o.ground is not None
            p, R = self.kinematics(self.q)
            rate = self.error(self.q, self.v).rate
            for k, (c, _) in enumerate(self.contacts):
                resting = np.abs(rate[self.at[c] : self.at[c] + self.size[c]]).max() < ON_GROUND
                self.active[c] = float(p[k, 2] <= o.ground + ON_GROUND and resting)
                self.anchors[c] = (p[k], R[k])

    def step(self, k: int, controller: Controller) -> None:
        """One step of dt, with all that happens in it."""
        o, t, left, before = self.options, k * self.options.dt, self.options.dt, self.v
        self.gone.clear()
        tau = self._forces(controller, t)
        q, v, lam = self._released(t, tau, left)
        if k % o.every == 0:
            self._record(t, tau, lam)
        for count in range(EVENTS + 1):
            down = self._below(q) if self.contacts else []
            if not down:
                break
            if count == EVENTS:
                self.q, self.v = q, v
                self._touch(t + o.dt, down)
                q, v = self.q, self.v
                break
            h, self.q, self.v, down = self._contact_time(tau, left, down)
            left -= h
            self._touch(t + o.dt - left, down)
            q, v, lam = self._released(t, tau, left) if left > 0 else (self.q, self.v, lam)
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            raise self._lost(t + o.dt)
        self.q, self.v = q, v
        self._account(o.dt, before, tau, lam)
        if o.projection and self.model.constraints:
            self._project()
            self.ledger.moved((q, v), (self.q, self.v))
            self.rate = self.error(self.q, self.v).rate
        if (k + 1) % LOOKS == 0 or k + 1 == o.steps:
            self.ledger.check(t + o.dt, o.dt, self.q, self.v, o.integrator)

    def _lost(self, t: float) -> SingularError:
        """The error for a state that is not a number: joints that move nothing, or a motion that is too fast."""
        motion = Motion(self.model, self.q[:, None], self.v[:, None], get("numpy"))
        idle, remedy = idle_joints(self.model, crba(motion)), "take a shorter dt, or stabilise"
        if idle:
            remedy = f"the joints {listing(idle)} move no inertia; give their links one, or the joints an armature"
        return SingularError(f"the state of '{self.model.name}' is not a number after {t:g} s: {remedy}")

    def _account(self, h: float, before: np.ndarray, tau: np.ndarray, lam: np.ndarray) -> None:
        """The work of joint forces, and of constraints whose frames move."""
        work = h * float(tau @ (before + self.v)) / 2
        if self.model.constraints:
            last, self.rate = self.rate, self.error(self.q, self.v).rate
            work += h * float(lam @ (last + self.rate)) / 2
        self.ledger.add(work)

    def look(self, k: int, controller: Controller) -> None:
        """Record the last state, with the forces that it would go on with."""
        t = k * self.options.dt
        tau = self._forces(controller, t)
        if k % self.options.every == 0:
            self._record(t, tau, self._released(t, tau, self.options.dt)[2])

    def trajectory(self) -> Trajectory:
        t, q, v, tau, lam, active = (np.array(x) for x in zip(*self.rows, strict=True))
        return Trajectory(
            t,
            q,
            v,
            tau,
            lam,
            active,
            column_names(self.model),
            tuple(self.events),
            self.model.name,
            column_units(self.model),
        )

    def _forces(self, controller: Controller, t: float) -> np.ndarray:
        return _forces(self.model, controller, t, self.q.copy(), self.v.copy())

    def _record(self, t: float, tau: np.ndarray, lam: np.ndarray) -> None:
        self.rows.append((np.array(t), self.q, self.v, tau, lam, self.active.copy()))

    def _released(self, t: float, tau: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A step in which no contact pulls: state and constraint forces."""
        q, v, lam = self.advance(self.q, self.v, tau, self.active, h)
        if not self._pulls(lam):
            return q, v, lam
        sets, R = self._subsets(), self.kinematics(self.q).rotations
        many = [self.advance(self.q, self.v, tau, s, h) for s in sets]
        sinking = [self._approach(x[0], x[1], s) / h for s, x in zip(sets, many, strict=True)]
        pulling = [self._pull(s, R, x[2]) for s, x in zip(sets, many, strict=True)]
        self._choose(t, sets, list(zip(sinking, pulling, strict=True)))
        return self.advance(self.q, self.v, tau, self.active, h)

    def _pulls(self, lam: np.ndarray) -> bool:
        """Whether an active contact has a negative normal force or impulse."""
        if not self.contacts or not self.active[list(self.at)].any():
            return False
        return self._pull(self.active, self.kinematics(self.q).rotations, lam) > 0

    def _subsets(self) -> list[np.ndarray]:
        """Every choice among the contacts that are active, most of them first; of many contacts, one less at most."""
        down = [c for c, _ in self.contacts if self.active[c]]
        sets = []
        for size in range(len(down) + 1):
            for gone in combinations(down, size) if len(down) <= MANY or size <= 1 else ():
                sets.append(self.active.copy())
                sets[-1][list(gone)] = 0.0
        return sets

    def _pull(self, active: np.ndarray, R: np.ndarray, lam: np.ndarray) -> float:
        """The largest pull of a contact, relative to all forces."""
        normal = [
            float(R[k, 2] @ lam[self.at[c] : self.at[c] + 3]) for k, (c, _) in enumerate(self.contacts) if active[c]
        ]
        pull = -min(normal, default=0.0) / (1e-9 + float(np.abs(lam).max(initial=0.0)))
        return pull if pull > TINY else 0.0

    def _approach(self, q: np.ndarray, v: np.ndarray, active: np.ndarray) -> float:
        """How fast contacts that are down now but not in this set go down then."""
        rate, R = self.error(q, v).rate, self.kinematics(q).rotations
        speeds = [
            -float(R[k, 2] @ rate[self.at[c] : self.at[c] + 3])
            for k, (c, _) in enumerate(self.contacts)
            if self.active[c] and not active[c]
        ]
        return max((x for x in speeds if x > SINKING), default=0.0)

    def _choose(self, t: float, sets: list[np.ndarray], violations: list[tuple[float, float]]) -> None:
        best = min(range(len(sets)), key=lambda k: violations[k])
        for k, (c, closure) in enumerate(self.contacts):
            if self.active[c] and not sets[best][c]:
                self.gone.add(k)
                self.events.append(Event(float(t), "lift-off", closure.name))
        self.active = sets[best].copy()

    def _heights(self, q: np.ndarray) -> np.ndarray:
        return np.asarray(self.kinematics(q).positions[:, 2]) - (self.options.ground or 0.0)

    def _below(self, q: np.ndarray) -> list[int]:
        """Released contacts that went down, through the plane; not those that lifted off in this very step."""
        before, after = self._heights(self.q), self._heights(q)
        return [
            k
            for k, (c, _) in enumerate(self.contacts)
            if not self.active[c] and k not in self.gone and after[k] < min(-DEPTH, before[k])
        ]

    def _contact_time(
        self, tau: np.ndarray, h: float, down: list[int]
    ) -> tuple[float, np.ndarray, np.ndarray, list[int]]:
        """When the first of these meets the plane, the state then, and which it is: regula falsi within the step."""
        before, now = self._heights(self.q), self._falling(down)
        if now:
            return 0.0, self.q, self.v, now

        def heights(at: float) -> np.ndarray:
            return self._heights(self.advance(self.q, self.v, tau, self.active, at)[0])

        # a contact that starts on the plane rises first: from when it is above
        low, high, z_low, z_high = 0.0, h, before, heights(h)
        for _ in range(30):
            if all(z_low[k] > 0 for k in down):
                break
            low = (low + high) / 2 if low else high / 2
            z = heights(low)
            if any(z[k] < 0 for k in down):
                high, low, z_high = low, 0.0, z
                down = [k for k in down if z[k] < 0]
            else:
                z_low = z
        k = min(down, key=lambda k: z_low[k] / (z_low[k] - z_high[k]) if z_low[k] > 0 else 0.0)
        above, under = max(z_low[k], 0.0), z_high[k]
        for _ in range(20):
            at = low + (high - low) * above / (above - under)
            q, v, _ = self.advance(self.q, self.v, tau, self.active, at)
            z = self._heights(q)
            if abs(z[k]) < 1e-12:
                break
            if z[k] > 0:
                low, above, under = at, z[k], under / 2
            else:
                high, under, above = at, z[k], above / 2
        return at, q, v, [j for j in down if z[j] <= DEPTH]

    def _falling(self, down: list[int]) -> list[int]:
        """Those that are on the plane already, and do not rise."""
        p, R = self.kinematics(self.q)
        rate, found = self.error(self.q, self.v).rate, []
        for k in down:
            c = self.contacts[k][0]
            height = float(p[k, 2]) - (self.options.ground or 0.0)
            if height <= DEPTH and float(R[k, 2] @ rate[self.at[c] : self.at[c] + 3]) <= SINKING:
                found.append(k)
        return found

    def _touch(self, t: float, down: list[int]) -> None:
        """These contacts meet the plane: an impulse of all that are active then."""
        o, R, rate = self.options, self.kinematics(self.q).rotations, self.error(self.q, self.v).rate
        wish, bounced, fastest = -rate, [], 0.0
        for k in down:
            c, closure = self.contacts[k]
            rows = slice(self.at[c], self.at[c] + 3)
            speed = float(R[k, 2] @ rate[rows])
            fastest = max(fastest, -speed)
            self.active[c] = 1.0
            if -o.restitution * speed > REBOUND:
                wish[rows] -= o.restitution * speed * R[k, 2]
                bounced.append(c)
            self.events.append(Event(float(t), "bounce" if c in bounced else "touchdown", closure.name))
        _, jump, impulse = self.correct(self.q, wish, self.active)
        if fastest > REBOUND and self._pulls(impulse):
            sets = self._subsets()
            many = [self.correct(self.q, wish, s) for s in sets]
            self._choose(
                t,
                sets,
                [
                    (self._approach(self.q, self.v + x[1], s), self._pull(s, R, x[2]))
                    for s, x in zip(sets, many, strict=True)
                ],
            )
            _, jump, impulse = self.correct(self.q, wish, self.active)
        self.v = self.v + jump
        places = self.kinematics(self.q)
        for k in down:
            place = np.array([*places.positions[k][:2], o.ground])
            self.anchors[self.contacts[k][0]] = (place, places.rotations[k])
        self.active[bounced] = 0.0

    def _project(self) -> None:
        """Position, until it no longer improves, then velocity."""
        size = np.inf
        for _ in range(5):
            phi = self._phi()
            new = float(np.abs(phi * self._weights()).max(initial=0.0))
            if new < 1e-14 or new > 0.5 * size:
                break
            self.q, size = self.correct(self.q, -phi, self.active)[0], new
        self.v = self.v + self.correct(self.q, -self.error(self.q, self.v).rate, self.active)[1]

    def _weights(self) -> np.ndarray:
        return np.repeat(self.active, [c.rows for c in self.model.constraints])

    def _phi(self) -> np.ndarray:
        """Position errors; of contacts with the ground, from where they touched down."""
        phi = np.array(self.error(self.q, self.v).phi)
        if self.contacts:
            p, R = self.kinematics(self.q)
            for k, (c, _) in enumerate(self.contacts):
                p0, R0 = self.anchors[c]
                phi[self.at[c] : self.at[c] + 3] = R[k].T @ (p[k] - p0)
                if self.size[c] == 6:
                    turn = R0.T @ R[k]
                    skew = turn - turn.T
                    phi[self.at[c] + 3 : self.at[c] + 6] = [skew[2, 1] / 2, skew[0, 2] / 2, skew[1, 0] / 2]
        return phi


Advance = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""(q, v, tau, active, h) -> (q, v, lam)."""


def _advance(model: Model, o: _Options, method: str | None, prox: Prox | None, modes: bool) -> Advance:
    """One step as a function: compiled where it is explicit."""
    chosen = pick("forward_dynamics", method, model, modes=modes)
    if prox is not None and chosen.prox is None:
        raise InputError(f"method '{chosen.name}' does not iterate: leave prox out")
    if o.integrator == "midpoint":
        fd = forward_dynamics(model, method=chosen.name, backend=o.backend, modes=modes, prox=prox)

        def midpoint(
            q: np.ndarray, v: np.ndarray, tau: np.ndarray, active: np.ndarray, h: float
        ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            more = (active,) if modes else ()
            after = integrators.midpoint(model, lambda x, y: np.asarray(fd(x, y, tau, *more).a), q, v, h)
            return (*after, fd(q, v, tau, *more).lam)

        return midpoint
    used = prox or calm(chosen)
    step = Step(
        model,
        chosen.name,
        o.integrator,
        used.mu if used else None,
        o.iterations,
        modes,
        False,
        ("lam",),
        used.flat if used else 0.0,
    )
    if o.backend == "numpy":

        def execute(
            q: np.ndarray, v: np.ndarray, tau: np.ndarray, active: np.ndarray, h: float
        ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            x = {"q": q, "v": v, "dt": np.array([h]), "tau": tau, "active": active}
            try:
                with np.errstate(all="ignore"):
                    out = step(get("numpy"), {n: y[:, None] for n, y in x.items()})
            except np.linalg.LinAlgError:  # kernels have NaN then
                return np.full_like(q, np.nan), np.full_like(v, np.nan), np.full(model.rows, np.nan)
            return out["q"][:, 0], out["v"][:, 0], out["lam"][:, 0]

        return execute
    from linkwork.kernels.kernel import Kernel

    kernel = Kernel(step.known)

    def run(
        q: np.ndarray, v: np.ndarray, tau: np.ndarray, active: np.ndarray, h: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        out = kernel(q, v, np.array([h]), tau, active) if modes else kernel(q, v, np.array([h]), tau)
        return out.q, out.v, out.lam

    return run


def _reference(
    model: Model,
    q: np.ndarray,
    v: np.ndarray,
    controller: Controller,
    o: _Options,
    method: str | None,
    prox: Prox | None,
) -> Trajectory:
    """By Dormand and Prince's method, and its dense output at the times to record."""
    fd = forward_dynamics(model, method=method, prox=prox, backend=o.backend)

    def forces(t: float, at: np.ndarray, speed: np.ndarray) -> np.ndarray:
        return _forces(model, controller, t, at, speed)

    solution = dormand_prince(model, lambda t, x, y: np.asarray(fd(x, y, forces(t, x, y)).a), q, v, o.steps * o.dt)
    t = np.arange(0, o.steps + 1, o.every) * o.dt
    Q, V = solution(t)
    tau = np.array([forces(*state) for state in zip(t, Q, V, strict=True)])
    lam = np.array([fd(*state).lam for state in zip(Q, V, tau, strict=True)])
    active = np.ones((len(t), len(model.constraints)))
    return Trajectory(t, Q, V, tau, lam, active, column_names(model), (), model.name, column_units(model))


def _forces(model: Model, controller: Controller, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """What the controller gives, checked."""
    given = controller(t, q, v)
    try:
        tau = finite_array(given)
    except Refused as why:
        raise InputError(f"the controller gave no forces at t = {t:g} s: {why or shown(given)}") from None
    if tau.shape != (model.nv,):
        raise InputError(f"the controller gave tau of shape {tau.shape}; this model needs ({model.nv},)")
    return tau


def _contacts(model: Model) -> tuple[tuple[int, Closure], ...]:
    """The constraints that are contacts with the world, with their numbers."""
    found = [
        (k, c)
        for k, c in enumerate(model.constraints)
        if isinstance(c, Closure) and model.frame(c.b).link == 0 and c.joint in ("spherical", "fixed")
    ]
    if not found:
        raise InputError("ground= needs contacts: model.with_constraints(lw.point(frame), lw.surface(frame), ...)")
    return tuple(found)


def _rest(model: Model) -> Controller:
    zero = np.zeros(model.nv)
    return lambda t, q, v: zero
