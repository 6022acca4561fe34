"""The energy balance of a motion: energy gained without work shows that steps are too long.

    gain = E - E_0 - W,    E = 1/2 v^T M v - sum_i m_i g . c_i,    W = sum of h (tau . (v + v+) / 2 + lam . J v)

With constant M the work W equals the change of kinetic energy by forces, to rounding, for any length of step: a gain
comes from velocity products alone, which are evaluated at the beginning of a step. It is small against the energy flow
of the motion (initial kinetic energy, work done, potential energy gained or lost, the swing of limbs) until a link
turns too far in one step; then it grows exponentially.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwork.backends import Array, Ops, get
from linkwork.constraints.rows import evaluated, pulled, rows_velocity
from linkwork.errors import StepError, StepWarning, users_level
from linkwork.model import Model, Motion
from linkwork.model.joint_forces import actuator_force, cut_force, implicit_inertia, joint_forces, total_of
from linkwork.model.memo import cached
from linkwork.model.springs_and_dampers import damping_force, spring_energy
from linkwork.rewrite.rewritten import Rewritten
from linkwork.spatial import linear

SHARE = 0.5
"""Energy error, relative to the energy flow of a motion, above which there is a StepError."""

WARNED = 0.05
"""Energy error of either sign, relative to the same, above which there is a StepWarning."""

LIFT = 10.0
"""Speeds, relative to what gravity adds in one step, that are taken for rounding and chatter."""

BY_ENERGY = ("inertia", "armature", "gravity", "stiffness", "rest", "tendon_stiffness", "tendon_rest")
"""The parameters that energies depend on."""

Energies = Callable[..., tuple[np.ndarray, np.ndarray]]
"""Kinetic and potential energy at q (B, nq), v (B, nv) and parameters, as (B,)."""


def energies(motion: Motion, given: Mapping[str, Array] | None = None, springs: bool = True) -> tuple[Array, Array]:
    """Kinetic and potential energy (of the world's origin and of springs at rest: zero), 1 x 1."""
    xp, model, t = motion.xp, motion.model, motion.model.topology
    kinetic, weights = xp.zeros(1), [(0.0, xp.zeros(3)) for _ in model.links]
    for i in t.links:
        V, rate = motion.V[i], motion.joint_v(i)
        kinetic = kinetic + V.T @ (motion.I[i] @ V) + rate.T @ (motion.armature(i) @ rate)
    for i in reversed(t.links):
        body, free, (mass, h) = motion.I[i], motion.weightless(i), weights[i]
        mass, h = mass + body.mass, h + body.h
        if free is not None:
            mass, h = mass - free.mass, h - free.h
        above, there = weights[t.parent[i]]
        moment = linear(motion.X[i].T @ xp.vstack([h, xp.zeros(3)]))
        weights[t.parent[i]] = (above + mass, there + moment + mass * motion.X[i].pose[1])
    height = -(motion.gravity[0].T @ weights[0][1])
    return kinetic / 2, spring_energy(model, motion.q, xp, given) + height if springs else height


def passive_work(
    model: Model,
    integrator: str,
    h: Array,
    q: Array,
    v: Array,
    after: Array,
    xp: Ops,
    given: Mapping[str, Array] | None = None,
) -> Array | None:
    """The work of damping and actuators in a step from (q, v) to velocity `after`, 1 x 1, or None.

    A semi-implicit step knows its passive forces exactly, springs included, whose energy then does not count
    (`counts_springs`): they change with the added inertia (model/springs_and_dampers.py), while that of springs wavers
    within a period. Others have mean velocities.
    """
    if counts_springs(integrator):
        parts = actuator_force(model, q, v, xp, given or {}), cut_force(model, q, v, xp)
        force = total_of(damping_force(model, (v + after) / 2, xp, given), *parts)
    else:
        force, extra = joint_forces(model, q, v, xp, given), implicit_inertia(model, h, xp, given, q, v)
        if force is not None and extra is not None:
            force = force - extra * (after - v) / h
    return None if force is None else h / 2 * (force.T @ (v + after))


def constraint_power(motion: Motion, lam: Array, h: Array, R: Sequence[Array] | None = None) -> Array:
    """The power of constraint forces, lam . J v; mid-step where a stabilisation or softness changes J v."""
    power = 0 * h
    for n, c in enumerate(motion.model.constraints):
        rows, force = evaluated(motion, n), lam[slice(*motion.model.row_span(n)), :]
        rate = rows_velocity(motion, rows)
        if c.stabilisation is not None:
            rate = rate - h / 2 * pulled(motion, c, rows)
        if R is not None:
            rate = rate - h / 2 * (R[n] * force)
        power = power + (force.T @ rate)[0, 0]
    return power


def counts_springs(integrator: str) -> bool:
    """Whether the energy of springs counts; else their work does."""
    return integrator != "semi_implicit"


def share(model: Model, dt: float, gain: np.ndarray, flow: np.ndarray) -> np.ndarray:
    """A gain relative to this flow of energy, to the swing of limbs, and to the error of any step of dt."""
    lift = LIFT * dt * float(np.linalg.norm(model.gravity))
    most = flow + swing(model) + model.mass * lift**2 / SHARE
    return np.asarray(gain / (most + np.finfo(float).tiny))


def warn_of_energy(model: Model, dt: float, share: float, fastest: float, where: str = "") -> None:
    """Warn, once per place in the user's code as Python does, that the energy of a motion is off."""
    warnings.warn(
        f"the energy of '{model.name}' is off by {100 * share:.0f} % of what flows through its motion{where}: steps of "
        f"{dt:g} s are long for joints at {fastest:.3g} (rad/s, m/s), or loops pass a singular posture. Take a "
        "shorter dt, or integrator='rk4'",
        StepWarning,
        stacklevel=users_level(),
    )


@cached
def swing(model: Model) -> float:
    """The weight of all links, each times its longest arm to the joint that its tree hangs on."""
    t, arms, total = model.topology, [0.0] * len(model.links), 0.0
    for i in t.links:
        l = model.links[i]
        arms[i] = arms[l.parent] + float(np.linalg.norm(l.placement.p)) if l.parent else 0.0
        total += l.inertia.mass * arms[i] + float(np.linalg.norm(l.inertia.first_moment))
    return total * float(np.linalg.norm(model.gravity))


class Ledger:
    """The energy balance of one motion: initial energy, work of forces, and error."""

    def __init__(self, model: Model, q: np.ndarray, v: np.ndarray, backend: str, integrator: str = "rk4") -> None:
        self.model, self.energies = model, energies_of(model, backend, springs=counts_springs(integrator))
        kinetic, self.potential = self._now(q, v)
        self.work, self.flow, self.height, self.least = 0.0, kinetic, 0.0, kinetic + self.potential
        self.most, self.worst, self.fastest = self.least, 0.0, 0.0

    def add(self, work: float) -> None:
        """Work of joint forces and constraints."""
        self.work += work
        self.flow += abs(work)

    def moved(self, before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray]) -> None:
        """Account for the energy of a projection onto the constraints."""
        self.work += sum(self._now(*after)) - sum(self._now(*before))

    def check(self, t: float, dt: float, q: np.ndarray, v: np.ndarray, integrator: str, impacts: bool = False) -> None:
        """StepError if the motion gained too much since it had least. With impacts, losses are theirs."""
        kinetic, potential = self._now(q, v)
        own = kinetic + potential - self.work
        self.least, self.most = min(self.least, own), max(self.most, own)
        self.height = max(self.height, abs(potential - self.potential))
        flow, fastest = self.flow + self.height, float(np.abs(v).max(initial=0.0))
        gained, lost = share(self.model, dt, np.array([own - self.least, self.most - own]), np.array(flow))
        self.worst, self.fastest = max(self.worst, gained, 0.0 if impacts else lost), max(self.fastest, fastest)
        if not gained <= SHARE:
            other = "" if integrator != "semi_implicit" else ", or integrator='rk4' or 'midpoint'"
            raise StepError(
                f"'{self.model.name}' gained {own - self.least:.3g} J from nowhere by t = {t:g} s, where {flow:.3g} J "
                f"were there or came from forces: steps of {dt:g} s are too long for joints at {fastest:.3g} (rad/s, "
                f"m/s). Take dt <= {min(dt / 4, 0.02 / max(fastest, 1e-9)):.1g}{other}"
            )

    def tell(self, dt: float) -> None:
        """Warn if the energy was off in any check."""
        if self.worst > WARNED:
            warn_of_energy(self.model, dt, self.worst, self.fastest)

    def _now(self, q: np.ndarray, v: np.ndarray) -> tuple[float, float]:
        T, V = self.energies(q[None], v[None])
        return float(T[0]), float(V[0])


def energies_of(
    model: Model, backend: str = "kernel", parameters: tuple[str, ...] = (), springs: bool = True
) -> Energies:
    """Both as a function of rows of states, and of parameters in this order."""
    return (_compiled if backend == "kernel" else _executed)(model, parameters, springs)


@cached
def _compiled(model: Model, parameters: tuple[str, ...], springs: bool) -> Energies:
    from linkwork.kernels.cache.program_cache import get_or_trace
    from linkwork.kernels.calls.kernel import Kernel
    from linkwork.kernels.programs.trace import trace
    from linkwork.model.digest import digest

    def body(xp: Ops, symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        sizes = {n: x.size for n, x in model.parameters().items()}
        q, v, given = symbol("q", model.nq), symbol("v", model.nv), {n: symbol(n, sizes[n]) for n in parameters}
        T, V = energies(Rewritten(model).motion(q, v, xp, given), given, springs)
        return {"kinetic": T, "potential": V}

    program: Any = get_or_trace(digest("energies", model, parameters, springs), lambda: trace("energies", body))
    kernel = Kernel(program, threads=1)

    def run(q: np.ndarray, v: np.ndarray, *given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        out = kernel(q, v, *given)
        return out.kinetic.reshape(len(q)), out.potential.reshape(len(q))

    return run


@cached
def _executed(model: Model, parameters: tuple[str, ...], springs: bool) -> Energies:
    def run(q: np.ndarray, v: np.ndarray, *given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = []
        for x, y, *more in zip(q, v, *given, strict=True):
            values = {n: value[:, None] for n, value in zip(parameters, more, strict=True)}
            motion = Rewritten(model).motion(x[:, None], y[:, None], get("numpy"), values)
            rows.append(energies(motion, values, springs))
        return np.array([T[0, 0] for T, _ in rows]), np.array([V[0, 0] for _, V in rows])

    return run
