"""Configurations of a model: how q and v are laid out, and moves between configurations.

    q1 = integrate(q0, v),    v = difference(q0, q1),    dq/dt = rate(q, v),    v = velocity(q, dq/dt)

q has nq entries and v has nv: they differ where a joint turns by a quaternion or by [cos sin]. With R the axes of the
link in the joint's frame, x its origin, and z the quaternion [x y z w],

    free        dx/dt = R v_lin,    dz/dt = z [w 0] / 2
    spherical                       dz/dt = z [w 0] / 2
    planar      dx/dt = R v_lin,    d[cos sin]/dt = w [-sin cos]
    others      dq/dt = v

All functions take one configuration or a batch of them, `(nq,)` or `(B, nq)`, and velocities alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.checks import ANY_POSITIONS, ANY_VELOCITIES, ARRAY, NAME, SEED, checked, optional, whole
from linkwork.errors import InputError
from linkwork.joints import Joint
from linkwork.lazy import cached_property
from linkwork.value_objects import read_only

if TYPE_CHECKING:
    from linkwork.model.link import Link
    from linkwork.model.topology import Topology

COUNT = optional(whole(0, 10**9, "a number of configurations, or None for one"))


class LimitArrays(NamedTuple):
    """`lower` and `upper` (nq,) of positions; `velocity` and `effort` (nv,), which bound both signs.

    Infinite where there is no bound, and for quaternions and [cos sin].
    """

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class Configurations:
    """What a model knows about its configurations."""

    links: tuple[Link, ...]

    @property
    def topology(self) -> Topology:
        raise NotImplementedError

    def joint(self, name: str) -> int:
        raise NotImplementedError

    # layout

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """The names of all joints, in the order of q and v."""
        return tuple(l.joint_name for l in self.links[1:])

    @checked(joint=NAME)
    def q_slice(self, joint: str) -> slice:
        """The entries of q that a joint has, by its name: `q[..., model.q_slice("knee")]`."""
        return self.topology.q_slices[self.joint(joint)]

    @checked(joint=NAME)
    def v_slice(self, joint: str) -> slice:
        """The entries of v, a and tau that a joint has, by its name."""
        return self.topology.v_slices[self.joint(joint)]

    @cached_property
    def limits(self) -> LimitArrays:
        """The limits of all joints as arrays."""
        t = self.topology
        lower, upper = np.full(t.nq, -np.inf), np.full(t.nq, np.inf)
        velocity, effort = np.full(t.nv, np.inf), np.full(t.nv, np.inf)
        for i in t.links:
            joint, bounds = self.links[i].joint, self.links[i].limits
            if joint.nq == joint.nv:
                lower[t.q_slices[i]], upper[t.q_slices[i]] = bounds.lower, bounds.upper
            velocity[t.v_slices[i]], effort[t.v_slices[i]] = bounds.velocity, bounds.effort
        return LimitArrays(*(np.asarray(read_only(x)) for x in (lower, upper, velocity, effort)))

    # configurations

    @checked(batch=COUNT)
    def neutral(self, batch: int | None = None) -> np.ndarray:
        """The configuration with every joint at zero; `batch` gives as many, as rows."""
        q = np.concatenate([np.zeros(0), *(l.joint.neutral() for l in self.links[1:])])
        return q if batch is None else np.tile(q, (batch, 1))

    @checked(seed=SEED, batch=COUNT)
    def random_q(self, seed: int | np.random.Generator = 0, batch: int | None = None) -> np.ndarray:
        """A random configuration within the joint limits; it does not close loops.

        `batch` gives as many, as rows.
        """
        rng = np.random.default_rng(seed)
        if batch is not None:
            return np.array([self.random_q(rng) for _ in range(batch)]).reshape(batch, self.topology.nq)
        parts = [np.zeros(0)]
        for l in self.links[1:]:
            q = l.joint.random(rng)
            lower, upper = l.limits.lower, l.limits.upper
            if l.joint.nq == 1 and np.isfinite([lower, upper]).all() and upper > lower:
                within = max(lower, -np.pi), min(upper, np.pi)
                q = rng.uniform(*(within if within[0] < within[1] else (lower, upper)), 1)
            parts.append(q)
        return np.concatenate(parts)

    @checked(q=ANY_POSITIONS, v=ANY_VELOCITIES)
    def integrate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The configuration after moving with the constant velocity `v` for unit time, on the manifold."""
        return self._by_joint("integrate", q, v)

    @checked(q0=ANY_POSITIONS, q1=ANY_POSITIONS)
    def difference(self, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
        """The constant velocity that takes `q0` to `q1` in unit time."""
        return self._by_joint("difference", q0, q1)

    @checked(q0=ANY_POSITIONS, q1=ANY_POSITIONS, t=ARRAY)
    def interpolate(self, q0: np.ndarray, q1: np.ndarray, t: np.ndarray | float) -> np.ndarray:
        """The configuration a part `t` (0 to 1) of the way from `q0` to `q1`, at constant velocity.

        Several `t` (B,) give as many configurations, as rows.
        """
        part = np.asarray(t, dtype=float)
        if part.ndim > 1:
            raise InputError(f"t is a number, or one for each configuration, not an array of shape {part.shape}")
        return self.integrate(q0, part[..., None] * self.difference(q0, q1))

    @checked(q=ANY_POSITIONS, v=ANY_VELOCITIES)
    def rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """dq/dt, of length nq, of a velocity: see above for the formulas."""
        return self._by_joint("rate", q, v)

    @checked(q=ANY_POSITIONS, qdot=ANY_POSITIONS)
    def velocity(self, q: np.ndarray, qdot: np.ndarray) -> np.ndarray:
        """The velocity v, of length nv, of a rate dq/dt: `rate` inverted.

        Of a rate that changes the length of a quaternion it is the nearest one.
        """
        return self._by_joint("velocity", q, qdot)

    @checked(q=ANY_POSITIONS)
    def normalised(self, q: np.ndarray) -> np.ndarray:
        """The nearest valid configuration: quaternions of length one."""
        found = self._by_joint("normalised", q)
        if not np.isfinite(found).all():
            raise _undirected()
        return found

    @cached_property
    def _runs(self) -> dict[str, list[tuple[Joint, slice, slice]]]:
        """By operation: joints with their entries of q and v, where those that are vectors in a row are one."""
        t, found = self.topology, dict[str, list[tuple[Joint, slice, slice]]]()
        for operation in ("integrate", "difference", "rate", "velocity", "normalised"):
            runs = found.setdefault(operation, [])
            for i in t.links:
                joint, at, at_v = self.links[i].joint, t.q_slices[i], t.v_slices[i]
                if runs and _is_vector(joint, operation) and _is_vector(runs[-1][0], operation):
                    joint, first, first_v = runs.pop()
                    at, at_v = slice(first.start, at.stop), slice(first_v.start, at_v.stop)
                runs.append((joint, at, at_v))
        return found

    def _by_joint(self, operation: str, *given: np.ndarray) -> np.ndarray:
        """An operation of all joints: of states in columns where that is one formula, else state by state."""
        sizes = [x.shape[0] for x in given if x.ndim == 2]
        if any(n != sizes[0] for n in sizes):
            raise InputError(f"these have different batch sizes: {sizes}")
        lead = tuple(sizes[:1])
        of_v = operation in ("integrate", "rate")  # the second argument is a velocity
        columns = [np.broadcast_to(x, (*(lead or (1,)), x.shape[-1])).T for x in given]
        parts = [np.zeros((0, columns[0].shape[1]))]
        with np.errstate(all="ignore"):
            for joint, at, at_v in self._runs[operation]:
                entries = at, at_v if of_v else at
                parts.append(_each(joint, operation, [x[s, :] for x, s in zip(columns, entries, strict=False)]))
        rows = np.ascontiguousarray(np.concatenate(parts).T)
        unclear = operation == "difference" or np.isnan(rows).any()
        if unclear and not all(self._directed(x) for x in given if x.shape[-1] == self.topology.nq):
            raise _undirected()
        return rows if lead else np.asarray(rows[0])

    def _directed(self, q: np.ndarray) -> bool:
        """Whether no quaternion or pair [cos sin] has length zero."""
        t = self.topology
        units = ((q[..., t.q_slices[i]], part) for i in t.links for part in self.links[i].joint.units)
        return all(bool((np.abs(own[..., part]).max(axis=-1) > 0).all()) for own, part in units)


def _undirected() -> InputError:
    return InputError(
        "q has a quaternion, or a pair [cos sin], of length zero, or too large for one: it has "
        "no direction; model.neutral() gives a valid configuration"
    )


def _is_vector(joint: Joint, operation: str) -> bool:
    """Whether an operation of this joint is that of any vector, entry by entry."""
    return getattr(type(joint), operation) is getattr(Joint, operation) and joint.nq == joint.nv


def _each(joint: Joint, operation: str, given: list[np.ndarray]) -> np.ndarray:
    """An operation of one joint, or of several in a row that are vectors, with states in columns."""
    of = getattr(joint, operation)
    if _is_vector(joint, operation):
        return np.asarray(of(*given, NUMPY))
    found = [of(*(x[:, k : k + 1] for x in given), NUMPY) for k in range(given[0].shape[1])]
    size = joint.nv if operation in ("difference", "velocity") else joint.nq
    return np.hstack([np.zeros((size, 0)), *found])
