"""The contact problem of one time step: velocities u = G p + g of all contacts, and their laws.

    M (v+ - v) = h (tau - c) + E^T e + J^T p,      u = J v+ + offset

With the impulses e of the model's own constraints eliminated (mobility.py) it is G = J N J^T, g = J v_free + offset.

v+ is the velocity with which the step moves the mechanism: h times `turn` is what joints that turn in space add to
v + h a (simulation/steps/gyroscopic.py). A round body rolls meanwhile: it touches with the lever d before the step, and
with d' in the middle of it. Its u is the velocity there, J v+ + m with m = w x (d' - d) and the w before the step,
unless that leaves more kinetic energy than there is without contacts (energy.py).

`offset` says how fast it may approach the ground, and how fast it comes out of it (approach.py). Contacts of an arm
that is fixed to the world may not be able to: two that want opposite motions, or one that friction jams. `sharing` has
a share of m, and of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass

from linkwork.algorithms.contact.approach import Approach, gravity_of, rolled
from linkwork.algorithms.contact.foreseen import foreseen
from linkwork.algorithms.contact.joint_space import JointPorts, ports_on
from linkwork.algorithms.contact.laws import Cone, Law, Stop, larger, largest
from linkwork.algorithms.contact.link_contacts import Port, Ports, ports_of
from linkwork.algorithms.contact.mobility import Mobility, Pairs, columns_of, times, transposed
from linkwork.backends.ops import Array, Ops
from linkwork.constraints.collisions import Pair
from linkwork.constraints.contact import Contact, Surface, Touch
from linkwork.constraints.ground_shapes import RoundContact
from linkwork.constraints.rows import jacobian_blocks
from linkwork.lazy import cached_property
from linkwork.model import Model, Motion

SLACK = 1.01
"""The work that lifts an arm by the depth of a contact may be as much as approach.py gives, but for rounding."""


@dataclass(frozen=True)
class Problem:
    """u_i = sum_j G_ij p_j + g_i with a law for each i, and what impulses p_i do.

    `impulse(p)` is J^T p, and `accelerations(impulse)` are the mean ones over the step, as are `forces(impulse)` of the
    model's own rows; `opened(impulse)` are the
    velocities with which it opens loops: not zero where a contact or limit needs what a loop forbids. `axes` are those
    of each contact, in the world; `speed`, 1 x 1, is the largest velocity without contacts. `moved(impulse)` is what
    it changes of the velocities of `every` port, without G. `free` are velocities without impulses and offsets, `rolls`
    has m of the contacts that roll, `pushes` the velocities with which each is brought out of the ground, or bounces,
    `lifts` the work against the weight of all that this may take, of contacts of arms.
    """

    every: Ports
    g: list[Array]
    laws: list[Law]
    axes: list[Array]
    speed: Array
    impulse: Callable[[Sequence[Array]], Array]
    accelerations: Callable[[Array], Array]
    forces: Callable[[Array], Array]
    opened: Callable[[Array], Array]
    moved: Callable[[Array], Array]
    free: list[Array]
    rolls: dict[int, Array]
    pushes: list[Array]
    lifts: dict[int, Array]

    @cached_property
    def G(self) -> Pairs:
        """The blocks of G."""
        return self.every.pairs()

    @cached_property
    def ports(self) -> Ports:
        """Those of contacts."""
        return self.every.among(len(self.axes))

    @property
    def rows(self) -> int:
        """Of all laws."""
        return sum(law.rows for law in self.laws)

    def split(self, x: Array) -> list[Array]:
        """The impulses of all laws, which are the beginning of x."""
        parts, row = [], 0
        for law in self.laws:
            parts.append(x[row : row + law.rows, :])
            row += law.rows
        return parts

    def sharing(self, share: Array, xp: Ops) -> Problem:
        """The same with a share of m, and of what brings contacts of arms out of the ground."""
        out, g, up = copy(self), list(self.g), xp.constant([0.0, 0.0, 1.0])
        for i, m in self.rolls.items():
            g[i] = g[i] + (share - 1.0) * m
        for i in self.lifts:
            g[i] = g[i] - ((share - 1.0) * self.pushes[i]) * up
        object.__setattr__(out, "g", g)
        return out

    def gain(self, p: Sequence[Array]) -> Array:
        """The sum of p^T J v+ - p_n w over the places that roll, less p^T G p / 2 (energy.py)."""
        Gp = self._moved(p)
        done = sum((p[i].T @ (self.free[i] + Gp[i]))[0, 0] - p[i][2, 0] * self.pushes[i] for i in self.rolls)
        return done - self.energy(p)[1]

    def lifted(self, p: Sequence[Array]) -> Array:
        """The sum of p_n w - m g d over contacts of arms, less p^T G p / 2."""
        return sum(p[i][2, 0] * self.pushes[i] - most for i, most in self.lifts.items()) - self.energy(p)[1]

    def energy(self, p: Sequence[Array]) -> tuple[Array, Array]:
        """p^T u_free and p^T G p / 2: of impulses s p, s and s^2 times these are what kinetic energy rises by."""
        both = zip(p, self.free, self._moved(p), strict=True)
        parts = [((a.T @ u)[0, 0], (a.T @ b)[0, 0] / 2) for a, u, b in both]
        return sum(one for one, _ in parts), sum(other for _, other in parts)

    def _moved(self, p: Sequence[Array]) -> list[Array]:
        """G p."""
        y = self.every.moved(p)
        return [self.every.at(i, y) for i in range(len(p))]

    def violation(self, p: Sequence[Array], xp: Ops) -> Array:
        """The largest one of a law, 1 x 1, without G."""
        worst, y = xp.zeros(1), self.moved(self.impulse(p))
        for i, law in enumerate(self.laws):
            worst = larger(xp, worst, law.given(p).violation(p[i], self.g[i] + self.every.at(i, y)))
        return worst

    def velocities(self, p: Sequence[Array]) -> list[Array]:
        """u of all contacts."""
        if isinstance(self.every, JointPorts):
            y = self.every.moved(p)
            return [g + self.every.at(i, y) for i, g in enumerate(self.g)]
        return [self.others(i, p) + self.G[i, i] @ p[i] for i in range(len(p))]

    def without_own(self, p: Sequence[Array]) -> list[Array]:
        """The velocity of each contact without its own impulse."""
        if isinstance(self.every, JointPorts):
            return [u - self.every.own(i) @ p[i] for i, u in enumerate(self.velocities(p))]
        return [self.others(i, p) for i in range(len(p))]

    def others(self, i: int, p: Sequence[Array]) -> Array:
        """The velocity of contact i without its own impulse, by G."""
        out = self.g[i]
        for j, pj in enumerate(p):
            if j != i and (min(i, j), max(i, j)) in self.G:
                out = out + (self.G[i, j] @ pj if i < j else self.G[j, i].T @ pj)
        return out

    def running(self, p: list[Array]) -> Running:
        """These impulses, to be changed one after the other."""
        return Running(self, p)

    def block(self, i: int, j: int, xp: Ops) -> Array:
        """G_ij."""
        if i <= j:
            return self.G[i, j] if (i, j) in self.G else xp.zeros(self.laws[i].rows, self.laws[j].rows)
        return self.block(j, i, xp).T


class Running:
    """Impulses that change one after the other, in place, and the velocities that they lead to."""

    def __init__(self, problem: Problem, p: list[Array]) -> None:
        self.problem, self.p, self.every = problem, p, problem.every
        self.w = self.every.carried(p) if isinstance(self.every, JointPorts) else {}

    def others(self, i: int) -> Array:
        """The velocity of contact i without its own impulse."""
        if isinstance(self.every, JointPorts):
            return self.problem.g[i] + self.every.seen(self.w, i) - self.every.own(i) @ self.p[i]
        return self.problem.others(i, self.p)

    def put(self, i: int, new: Array) -> None:
        """The impulse of contact i."""
        if isinstance(self.every, JointPorts):
            self.every.changed(self.w, i, new - self.p[i])
        self.p[i] = new


def contact_problem(
    motion: Motion,
    tau: Array,
    h: Array,
    contacts: Sequence[Contact | Pair],
    ground: Surface,
    friction: Array,
    turn: Array,
    dry: Array | None = None,
    R: Sequence[Array] | None = None,
) -> Problem:
    """The problem of contacts and of joints that have limits or dry friction.

    Contacts have one coefficient of `friction` each; h times `turn` is added to velocities. `dry` (nv x 1) is the
    friction of joints where that is an input; else it is the model's. `R` is the softness of the model's own rows.
    """
    motion = motion.classical
    xp, mobility = motion.xp, Mobility(motion, R)
    a_free = mobility.accelerations(tau)
    v_free = motion.v + h * (a_free + turn)

    approach = Approach(h, gravity_of(motion.model), xp)
    touches = foreseen(motion, contacts, ground, mobility, v_free, approach)
    joints = stopped_joints(motion.model, dry is not None)
    turns, n = turning_rows(contacts), len(contacts)
    ports = ports_of(touches, ground, xp)
    J = [columns_of(jacobian_blocks(motion, port.K, {}), motion) for port in ports]
    J += [columns_of(jacobian_blocks(motion, _spin(touches[k], axis, by, xp), {}), motion) for k, axis, by in turns]
    J += [{motion.model.topology.v_slices[i].start: xp.eye(1)} for i in joints]
    ports += [Port(1, {}, ((k, None),)) for k in range(n, n + len(turns) + len(joints))]
    every = ports_on(mobility, ports, J)

    def of_ports(v: Array) -> Array:
        return xp.vstack([xp.zeros(0), *(times([c], v, xp) for c in J)])

    def velocities(v: Array) -> list[Array]:
        y = of_ports(v)
        return [every.at(i, y) for i in range(len(every.place))]

    free, earlier, laws, pushes = velocities(v_free), velocities(motion.v), list[Law](), list[Array]()
    g, rolls, lifts, up = list(free), dict[int, Array](), dict[int, Array](), xp.constant([0.0, 0.0, 1.0])
    speed = largest(xp, xp.vstack([xp.zeros(0), *free]))
    for k, (c, touch) in enumerate(zip(contacts, touches, strict=True)):
        before = earlier[k]
        limited = xp.zeros(1)[0, 0] if isinstance(c, RoundContact) else None
        heavy = None if floats(motion.model, c) else motion.model.mass * every.own(k)[2, 2]
        offset = approach.offset(touch.gap, free[k][2, 0], before[2, 0], c.restitution, limited, heavy)
        g[k] = free[k] + offset * up
        pushes.append(xp.where(offset < 0, -offset, 0.0))
        if heavy is not None and not c.restitution:
            lifts[k] = SLACK * approach.weight(motion.model.mass, touch.gap)
        if isinstance(c, RoundContact) and c.rolls:
            m = rolled(c.moves(motion, touch, ground, h), before, every.own(k), xp)
            whole = approach.offset(touch.gap, free[k][2, 0], before[2, 0], c.restitution, m[2, 0], heavy)
            m = xp.vstack([m[0:2, :], (whole - offset) * xp.eye(1)])
            g[k] = g[k] + m
            rolls[k] = m
        laws.append(Cone(every.own(k), friction[k, 0], xp))
    for i, (k, _, _) in enumerate(turns, start=n):
        laws.append(Stop(every.own(i), every.own(i)[0, 0], -math.inf, math.inf, 0.0, xp, of=k))
    for k, i in enumerate(joints, start=n + len(turns)):
        q, limits = motion.joint_q(i)[0, 0], motion.model.links[i].limits
        lower, upper = approach.stopped(limits.lower - q, limits.upper - q)
        first = motion.model.topology.v_slices[i].start
        resists = float(motion.model.links[i].passive.friction[0]) if dry is None else dry[first, 0]
        sides = limits.lower > -math.inf, limits.upper < math.inf
        laws.append(Stop(every.own(k), mobility.factor.pivots[first], lower, upper, resists * h, xp, sides=sides))

    def impulse(p: Sequence[Array]) -> Array:
        return transposed(J, every.wrenches(p), motion)

    def accelerations(impulse: Array) -> Array:
        return a_free + mobility.applied(impulse) / h

    def moved(impulse: Array) -> Array:
        return of_ports(mobility.applied(impulse))

    def forces(impulse: Array) -> Array:
        return mobility.forces(tau, impulse, h)

    axes = [touch.axes for touch in touches]
    does = impulse, accelerations, forces, mobility.opened, moved
    return Problem(every, g, laws, axes, speed, *does, free, rolls, pushes, lifts)


def turning_rows(contacts: Sequence[Contact | Pair]) -> list[tuple[int, int, float]]:
    """Contacts that resist turning: number, axis (0, 1 tangential, 2 the normal), coefficient."""
    out = []
    for k, c in enumerate(contacts):
        out += [(k, axis, by) for axis, by in ((2, c.torsion), (0, c.rolling), (1, c.rolling)) if by]
    return out


def floats(model: Model, c: Contact | Pair) -> bool:
    """Whether a contact is between two bodies, or on a free joint: its mobility is 1 / mass or more."""
    if not isinstance(c, Contact):
        return True
    link = model.frame(c.frame).link
    while model.links[link].parent:
        link = model.links[link].parent
    return model.links[link].joint.kind == "free"


def _spin(touch: Touch, axis: int, by: float, xp: Ops) -> dict[int, Array]:
    """The row of the angular velocity about one of the contact's axes, times a length."""
    along = by * touch.axes[:, axis : axis + 1].T
    return {i: xp.hstack([xp.zeros(1, 3), along @ R]) for i, R in touch.turns.items()}


def stopped_joints(model: Model, dry: bool = False) -> list[int]:
    """The links whose joints have one degree of freedom, and a limit or friction; all if `dry`."""
    links = model.links
    single = [i for i in model.topology.links if links[i].joint.nq == 1]
    limited = [min(-links[i].limits.lower, links[i].limits.upper) < float("inf") for i in single]
    return [i for i, stops in zip(single, limited, strict=True) if dry or stops or links[i].passive.friction.any()]
