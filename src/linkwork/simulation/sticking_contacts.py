"""Unilateral contacts with the ground: which are active, and steps in which that changes.

- **Lift-off.** If an active contact would have to pull, the step is taken again with every subset of the contacts
  that are down, one contact mode each. The subset in which no contact pulls and no released one penetrates is taken;
  where there is none (contacts that stick may have no such solution), the one that penetrates and then pulls least.
- **Touchdown.** If the origin of a released contact's frame is below the plane after the step, the step is split at the
  time of impact (regula falsi), an impulse of all contacts that are active then stops it, chosen among the subsets in
  the same way if it is fast, and the rest of the step follows. With `restitution` the normal velocity is reversed in
  part, as long as it is above `REBOUND`; the contact then bounces and does not become active.
- Contacts stick: friction is without limit, and a surface holds all six directions as soon as its frame's origin is
  on the plane.
- A contact that lifts off is not checked again in that step; its penetration meanwhile is of the order of dt^2, and
  `projection` moves it back to the plane when it touches down again.
- At most EVENTS touchdowns are resolved in one step; contacts below the plane after that are stopped at its end.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from linkwork.constraints import Closure
from linkwork.errors import InputError
from linkwork.functions.function import Function
from linkwork.functions.kinematics import forward_kinematics
from linkwork.model import Model
from linkwork.simulation.records.trajectory import Event
from linkwork.simulation.steps.projection import Correction
from linkwork.simulation.steps.simulation_step import Advance, After

EVENTS = 8
REBOUND = 0.1
"""Normal velocity (m/s) below which contacts do not rebound, and a touchdown releases no other one."""

TINY, SINKING = 1e-9, 1e-7
"""Pulling forces, relative to all forces, and penetration speeds (m/s) that are taken for rounding."""

DEPTH = 1e-9
"""Depth below the plane (m) that is taken for rounding."""

MANY = 6
"""The most active contacts for which all subsets are tried."""

ON_GROUND = 1e-6
"""Height (m) up to which a contact is active at the start."""


def ground_contacts(model: Model) -> tuple[tuple[int, Closure], ...]:
    """The constraints that are contacts with the world, with their numbers."""
    found = [
        (k, c)
        for k, c in enumerate(model.constraints)
        if isinstance(c, Closure) and model.frame(c.b).link == 0 and c.joint in ("spherical", "fixed")
    ]
    if not found:
        raise InputError("ground= needs contacts: model.with_constraints(lw.point(frame), lw.surface(frame), ...)")
    return tuple(found)


class GroundContacts:
    """The contacts of a model with a plane at height `ground`.

    `active` weights of all constraints, and `events`.

    `advance` takes a step, `error` gives position errors and rates of all rows, `correct` the smallest change of the
    state that has the given effect on the rows.
    """

    def __init__(
        self,
        model: Model,
        ground: float,
        restitution: float,
        advance: Advance,
        error: Function,
        correct: Correction,
        backend: str,
    ) -> None:
        self.contacts, self.ground, self.restitution = ground_contacts(model), ground, restitution
        self.advance, self.error, self.correct = advance, error, correct
        self.kinematics = forward_kinematics(model, [c.a for _, c in self.contacts], backend=backend)
        self.still = [model.frame(c.b).placement.R for _, c in self.contacts]
        starts = np.cumsum([0, *(c.rows for c in model.constraints)])
        self.at = {c: int(starts[c]) for c, _ in self.contacts}
        self.active = np.ones(len(model.constraints))
        self.anchors: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.gone: set[int] = set()
        self.events: list[Event] = []

    def settle(self, q: np.ndarray, v: np.ndarray) -> None:
        """Decide which contacts are active at the start: those on the plane, at rest."""
        (p, R), rate = self.kinematics(q), self.error(q, v).rate
        for k, (c, closure) in enumerate(self.contacts):
            resting = np.abs(rate[self.at[c] : self.at[c] + closure.rows]).max() < ON_GROUND
            self.active[c] = float(p[k, 2] <= self.ground + ON_GROUND and resting)
            self.anchors[c] = (p[k], R[k])

    def begin(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float) -> After:
        """A step from t on in which no contact pulls: contacts that would are released."""
        self.gone.clear()
        return self._released(t, q, v, tau, h)

    def land(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float, after: After) -> After:
        """The step from (q, v) to `after`, with the touchdowns in it resolved."""
        end, left = t + h, h
        for count in range(EVENTS + 1):
            down = self._below(q, after[0])
            if not down:
                break
            if count == EVENTS:
                return after[0], self._touched(end, *after[:2], down), after[2]
            used, q, v, down = self._contact_time(q, v, tau, left, down)
            left -= used
            v = self._touched(end - left, q, v, down)
            after = self._released(t, q, v, tau, left) if left > 0 else (q, v, after[2])
        return after

    def position_error(self, q: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """Position errors `phi` of all rows, with those of contacts taken from where they touched down."""
        (p, R), axes, out = self.kinematics(q), self._axes(q), np.array(phi)
        for k, (c, closure) in enumerate(self.contacts):
            p0, R0 = self.anchors[c]
            out[self.at[c] : self.at[c] + 3] = axes[k].T @ (p[k] - p0)
            if closure.rows == 6:
                turn = R[k] @ R0.T
                skew = turn - turn.T
                world = np.array([skew[2, 1], skew[0, 2], skew[1, 0]]) / 2
                out[self.at[c] + 3 : self.at[c] + 6] = axes[k].T @ world
        return out

    def _axes(self, q: np.ndarray) -> np.ndarray:
        """For each contact the axes of its rows in the world."""
        moving = self.kinematics(q).rotations
        return np.array(
            [c.row_axes(R, still) for (_, c), R, still in zip(self.contacts, moving, self.still, strict=True)]
        )

    # lift-off

    def _released(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float) -> After:
        """A step in which no contact pulls."""
        after = self.advance(q, v, tau, self.active, h)
        if not self._pulls(q, after[2]):
            return after
        sets, R = self._subsets(), self._axes(q)
        many = [self.advance(q, v, tau, s, h) for s in sets]
        sinking = [self._approach(x[0], x[1], s) / h for s, x in zip(sets, many, strict=True)]
        pulling = [self._pull(s, R, x[2]) for s, x in zip(sets, many, strict=True)]
        self._choose(t, sets, list(zip(sinking, pulling, strict=True)))
        return self.advance(q, v, tau, self.active, h)

    def _pulls(self, q: np.ndarray, lam: np.ndarray) -> bool:
        """Whether an active contact has a negative normal force or impulse."""
        if not self.active[list(self.at)].any():
            return False
        return self._pull(self.active, self._axes(q), lam) > 0

    def _subsets(self) -> list[np.ndarray]:
        """Subsets of the active contacts, largest first; of many contacts, at most one is released."""
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
        """How fast contacts that are active now but not in this set penetrate."""
        rate, R = self.error(q, v).rate, self._axes(q)
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

    # touchdown

    def _heights(self, q: np.ndarray) -> np.ndarray:
        return np.asarray(self.kinematics(q).positions[:, 2]) - self.ground

    def _below(self, q: np.ndarray, after: np.ndarray) -> list[int]:
        """Released contacts that passed the plane; not those that lifted off in this very step."""
        z, z_after = self._heights(q), self._heights(after)
        return [
            k
            for k, (c, _) in enumerate(self.contacts)
            if not self.active[c] and k not in self.gone and z_after[k] < min(-DEPTH, z[k])
        ]

    def _contact_time(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float, down: list[int]
    ) -> tuple[float, np.ndarray, np.ndarray, list[int]]:
        """When the first of these meets the plane, the state then, and which it is.

        Regula falsi within the step.
        """
        before, now = self._heights(q), self._falling(q, v, down)
        if now:
            return 0.0, q, v, now

        def heights(at: float) -> np.ndarray:
            return self._heights(self.advance(q, v, tau, self.active, at)[0])

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
            there, speed, _ = self.advance(q, v, tau, self.active, at)
            z = self._heights(there)
            if abs(z[k]) < 1e-12:
                break
            if z[k] > 0:
                low, above, under = at, z[k], under / 2
            else:
                high, under, above = at, z[k], above / 2
        return at, there, speed, [j for j in down if z[j] <= DEPTH]

    def _falling(self, q: np.ndarray, v: np.ndarray, down: list[int]) -> list[int]:
        """Those that are on the plane, and do not rise."""
        p, R = self.kinematics(q).positions, self._axes(q)
        rate, found = self.error(q, v).rate, []
        for k in down:
            c = self.contacts[k][0]
            height = float(p[k, 2]) - self.ground
            if height <= DEPTH and float(R[k, 2] @ rate[self.at[c] : self.at[c] + 3]) <= SINKING:
                found.append(k)
        return found

    def _touched(self, t: float, q: np.ndarray, v: np.ndarray, down: list[int]) -> np.ndarray:
        """The velocity after these contacts met the plane: an impulse of all that are active then."""
        R, rate = self._axes(q), self.error(q, v).rate
        target, bounced, fastest = -rate, [], 0.0
        for k in down:
            c, closure = self.contacts[k]
            rows = slice(self.at[c], self.at[c] + 3)
            speed = float(R[k, 2] @ rate[rows])
            fastest = max(fastest, -speed)
            self.active[c] = 1.0
            if -self.restitution * speed > REBOUND:
                target[rows] -= self.restitution * speed * R[k, 2]
                bounced.append(c)
            self.events.append(Event(float(t), "bounce" if c in bounced else "touchdown", closure.name))
        _, jump, impulse = self.correct(q, target, self.active)
        if fastest > REBOUND and self._pulls(q, impulse):
            sets = self._subsets()
            many = [self.correct(q, target, s) for s in sets]
            sinking = [self._approach(q, v + x[1], s) for s, x in zip(sets, many, strict=True)]
            pulling = [self._pull(s, R, x[2]) for s, x in zip(sets, many, strict=True)]
            self._choose(t, sets, list(zip(sinking, pulling, strict=True)))
            _, jump, _ = self.correct(q, target, self.active)
        places = self.kinematics(q)
        for k in down:
            place = np.array([*places.positions[k][:2], self.ground])
            self.anchors[self.contacts[k][0]] = (place, places.rotations[k])
        self.active[bounced] = 0.0
        return v + jump
