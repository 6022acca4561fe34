"""One time step with contacts and joint limits, as a function of named columns: compiled, or by NumPy.

The contact problem of the step (algorithms/contact) is solved for impulses, starting from those of the last step; the
accelerations with them are integrated as without contacts (integrators.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from linkwork.algorithms.contact.active_set import ActiveSet
from linkwork.algorithms.contact.admm import Admm
from linkwork.algorithms.contact.energy import NoGain
from linkwork.algorithms.contact.gauss_seidel import GaussSeidel
from linkwork.algorithms.contact.interior_point import InteriorPoint, WholeInteriorPoint
from linkwork.algorithms.contact.joint_space import over_joints
from linkwork.algorithms.contact.laws import largest
from linkwork.algorithms.contact.link_contacts import port_rows
from linkwork.algorithms.contact.newton import Newton, WholeNewton
from linkwork.algorithms.contact.problem import contact_problem, floats, stopped_joints, turning_rows
from linkwork.algorithms.contact.slips import Slips
from linkwork.backends import Array, Ops
from linkwork.constraints.collisions import Pair
from linkwork.constraints.contact import Contact, Surface
from linkwork.constraints.meshes import PLACE, mesh_slots, placed
from linkwork.errors import InputError, warn_unsolved
from linkwork.functions.actuation import check_actuators
from linkwork.functions.parameters import BY_CONTACT, BY_CONTROL, Inputs
from linkwork.functions.softness import Softness, felt_softness, softness_vector
from linkwork.lazy import cached_property
from linkwork.model import Model
from linkwork.model.activation import activation_after
from linkwork.model.digest import digest
from linkwork.model.joint_forces import actuator_force, joint_forces
from linkwork.rewrite.rewritten import Rewritten, rewritten
from linkwork.simulation.steps.constrained_step import JOULE, controls, joint_control, stiffened
from linkwork.simulation.steps.energy_balance import constraint_power, passive_work
from linkwork.simulation.steps.gyroscopic import turning
from linkwork.simulation.steps.integrators import semi_implicit
from linkwork.simulation.steps.pushes import NO_PUSHES, Pushes

if TYPE_CHECKING:
    from linkwork.kernels.programs.iterate import Further, IterativeProgram

EXTRAS = ("a", "tau", "forces")
"""What can be recorded besides the state: mean accelerations and contact forces over the step, joint forces."""


@dataclass(frozen=True)
class ContactStep:
    """One step of a model whose `contacts` may touch the `ground`.

    Its state is q, v, `impulses` (those of contacts, then of limits, then what the solver remembers of each contact),
    `work` of joint and contact forces, and `worst`: the largest violation of a law so far, relative to velocities. With
    `pd` there are gains and targets of joint control, with `actuators` controls u; `pushes` are forces on frames,
    and `parameters` names those that are inputs. With `softness` the model's own rows are
    soft. If it `tries_again`, states that the solver leaves go to another one.
    """

    model: Model
    contacts: tuple[Contact | Pair, ...]
    ground: Surface
    tolerance: float
    pd: bool = False
    extras: tuple[str, ...] = ()
    dtype: str = "float64"
    solver: str = "gauss_seidel"
    actuators: bool = False
    pushes: Pushes = NO_PUSHES
    parameters: tuple[str, ...] = ()
    tries_again: bool = False
    softness: Softness | None = None

    integrator: ClassVar[str] = "semi_implicit"
    settled: ClassVar[str] = "contact"

    @property
    def state(self) -> tuple[str, ...]:
        """What it changes and rollouts record: activations, too, where actuators have them."""
        return ("q", "v", "act", "work") if self.actuators and self.model.na else ("q", "v", "work")

    @cached_property
    def carried(self) -> dict[str, int]:
        """What is handed to the next step: impulses to start from, and the largest error."""
        stops = stopped_joints(self.model, "joint_friction" in self.parameters)
        return {"impulses": 4 * len(self.contacts) + len(turning_rows(self.contacts)) + len(stops), "worst": 1}

    @cached_property
    def inputs(self) -> dict[str, int]:
        m, n = self.model, len(self.contacts)
        sizes = {"q": m.nq, "v": m.nv, "dt": 1, "tau": m.nv, "friction": n, **controls(m, self.actuators)}
        sizes |= {"impulses": self.carried["impulses"], "work": 2, "worst": 1}
        if self.pd:
            sizes |= {"kp": m.nv, "kd": m.nv, "target": m.nq, "target_v": m.nv}
        if self.pushes.frames:
            sizes["push"] = self.pushes.size
        if mesh_slots(self.contacts):
            sizes["places"] = PLACE * len(mesh_slots(self.contacts))
        return sizes | {n: x.size for n, x in self.own.items()}

    @property
    def bound(self) -> float:
        """The largest `worst` of a motion that has converged."""
        return CONVERGED[self.dtype]

    @property
    def conflicts(self) -> bool:
        """Never: rows that depend on each other are softened, and so is their conflict."""
        return False

    @property
    def retried(self) -> None:
        """Rollouts are not repeated: every step tries all that there is."""
        return None

    def warn(self, by: str, fine: np.ndarray | bool) -> None:
        """Warn that laws of contact were violated in the states that are not `fine`."""
        warn_unsolved(by, fine)

    @cached_property
    def defaults(self) -> dict[str, np.ndarray]:
        """Inputs that may be left out."""
        return {"friction": np.array([c.friction for c in self.contacts]), **self.own}

    @cached_property
    def own(self) -> dict[str, np.ndarray]:
        """The model's own values of the parameters that are inputs."""
        own = softness_vector(self.softness)
        return Inputs(self.model, self.parameters, by_contact(self.actuators), softness=own).defaults

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of EXTRAS."""
        return {"a": (self.model.nv,), "tau": (self.model.nv,), "forces": (len(self.contacts), 3)}

    def __call__(self, xp: Ops, x: Mapping[str, Array]) -> dict[str, Array]:
        """The state after the step, and the extras, by NumPy."""
        solving = Solving(self, Rewritten(self.model), xp, x)
        return self._accounted(xp, x, solving.after(solving.solved()[0]))

    def _accounted(self, xp: Ops, x: Mapping[str, Array], after: After) -> dict[str, Array]:
        """The whole state of a rollout after the step, and the extras."""
        work = JOULE * xp.matrix([[after.work], [xp.where(after.work < 0, -after.work, after.work)]])
        error = after.violation / after.speed
        worst = xp.where(error <= x["worst"], x["worst"], error)
        state = {"q": after.q, "v": after.v, "impulses": after.impulses, "work": x["work"] + work, "worst": worst}
        if after.act is not None:
            state["act"] = after.act
        return state | {name: getattr(after, name) for name in self.extras}

    @cached_property
    def traced(self) -> IterativeProgram:
        """The step as a program with a loop."""
        from linkwork.kernels.programs.hoist import hoist
        from linkwork.kernels.programs.trace import trace

        def body(xp: Ops, symbol: Any) -> dict[str, Array]:
            inputs = {n: symbol(n, k) for n, k in self.inputs.items()}
            solving = Solving(self, rewritten(self.model), xp, inputs)
            x = symbol("x", solving.size)
            after = solving.after(x)
            ends = {"excess": after.excess} if self.further else {}
            return solving.loops_from(x, symbol) | self._accounted(xp, inputs, after) | ends

        return hoist(trace("step", body, single=self.dtype == "float32"), further=self.further)

    @cached_property
    def cached_program(self) -> Any:
        """The program, or its cached sketch: a step that was compiled before is not traced again."""
        from linkwork.kernels.cache.program_cache import get_or_trace

        how = self.pd, self.extras, self.dtype, *self.chain, self.actuators, self.pushes, self.parameters
        content = digest("contact step", self.model, self.contacts, self.ground, self.softness, *how)
        return get_or_trace(content, lambda: self.traced)

    @cached_property
    def chain(self) -> list[str]:
        """The solvers of its loops, one after the other, each for what those before have left.

        The first three of "newton" know contacts, but not the limits of joints. In a system over joints limits cost
        next to nothing, so that for many contacts, whose programs are long, these are left out. The interior point of
        arms begins once more: contacts need not come out of the ground then (energy.py).
        """
        stops = stopped_joints(self.model, "joint_friction" in self.parameters)
        few = 3 * len(self.contacts) + len(turning_rows(self.contacts)) + len(stops) <= MANY
        if self.solver == "newton" and self._over_joints(len(stops)):
            return ["whole_newton", *self._interior("whole_interior_point")]
        if self.solver == "newton":
            whole = [] if not stops else ["gauss_seidel"] if few else ["whole_newton", "whole_interior_point"]
            return ["newton", "slips", *self._interior("interior_point"), *whole, *(["admm"] if few else [])]
        return [self.solver, *(["admm"] if self.tries_again and few else [])]

    def _interior(self, name: str) -> list[str]:
        """The interior point, once more for contacts of arms."""
        return [name] * (1 if all(floats(self.model, c) for c in self.contacts) else 2)

    def _over_joints(self, stops: int) -> bool:
        """Whether contacts are so many that joints are fewer."""
        bodies = [self.model.frame(c.frame).link if isinstance(c, Contact) else c.shared for c in self.contacts]
        rows, between = sum(c.rows for c in self.model.constraints), any(isinstance(c, Pair) for c in self.contacts)
        return over_joints(port_rows(bodies, self.ground) + stops, self.model.nv + rows, between)

    @property
    def max_iterations(self) -> int:
        """Of the first loop."""
        return MOST[self.chain[0]]

    @property
    def further(self) -> list[Further]:
        """The loops after the first: how many iterations they may take more than `max_iterations`."""
        from linkwork.kernels.programs.iterate import Further

        names = self.chain[1:]
        return [Further(sum(MOST[n] for n in names[: k + 1]), SOLVERS[n].anew) for k, n in enumerate(names)]

    @cached_property
    def settings(self) -> dict[str, np.ndarray]:
        """The inputs of the program's loop."""
        return {"tolerance": np.array([self.tolerance]), "max_iterations": np.array([self.max_iterations - 1.0])}


class Solving:
    """The contact problem of one step, and the state after it for given impulses."""

    def __init__(self, step: ContactStep, within: Rewritten, xp: Ops, x: Mapping[str, Array]) -> None:
        self.step, self.within, self.xp, self.x, self.h = step, within, xp, x, _valid_step(x, xp)
        self.motion = within.motion(x["q"], x["v"], xp, stiffened(step.model, self.h, xp, x, x["q"], x["v"]))
        self.tau = x["tau"]
        if step.pd:
            self.tau = self.tau + joint_control(step.model, xp, x, x["q"], x["v"])
        self.applied = step.pushes.added(self.tau, step.model, x["q"], x, xp)
        own = joint_forces(step.model, x["q"], x["v"], xp, x)
        force = self.applied if own is None else self.applied + own
        self.R = felt_softness(step.model, step.softness, x, xp)
        self.turn = within.velocity(turning(step.model, x["v"], xp), xp)
        self.problem = contact_problem(
            self.motion,
            within.force(force, xp),
            self.h,
            placed(step.contacts, x.get("places")),
            step.ground,
            x["friction"],
            self.turn,
            x.get("joint_friction"),
            self.R,
        )
        self.loops = [self._loop(name, name in step.chain[:k]) for k, name in enumerate(step.chain)]
        self.size = self.loops[0].size

    def _loop(self, name: str, again: bool) -> Loop:
        """A solver of this problem; where bodies roll, and of arms, one that gives no energy."""
        problem = self.problem
        loop = SOLVERS[name](problem, self.x["impulses"], self.xp)
        bounded = problem.rolls or problem.lifts
        return NoGain(loop, problem, self.step.tolerance, again, self.xp) if bounded else loop

    def solved(self) -> tuple[Array, int]:
        """The state of the last loop when it ends, and the iterations it took, by NumPy."""
        x, change = self.loops[0].first()
        used, tolerance = 1, self.step.tolerance
        while float(change[0, 0]) > tolerance and used < self.step.max_iterations:
            x, change = self.loops[0].next(x)
            used += 1
        if self._excess(x) > tolerance:
            for loop, how in zip(self.loops[1:], self.step.further, strict=True):
                change = self._excess(x) * self.xp.eye(1) if how.anew else change
                x = loop.enter(x)
                while float(change[0, 0]) > tolerance and used < self.step.max_iterations + how.limit:
                    x, change = loop.next(x)
                    used += 1
        return x, used

    def _excess(self, x: Array) -> float:
        """The largest violation of a law relative to velocities, by NumPy."""
        _, violation, speed = self.loops[0].finish(x)
        return float(violation[0, 0] / speed[0, 0])

    def loops_from(self, x: Array, symbol: Any) -> dict[str, Array]:
        """What a traced program says of its loops (hoist.py), where x is the state of the first."""
        (first, *others), kept = self.loops, self.loops[0].kept
        start, change = first.first()
        new, residual = first.next(x)
        out = {"x_first": start, "residual_first": change, "x_next": new, "residual": residual}
        for key, loop in zip("bcdef", others, strict=False):
            entered = loop.enter(x)
            z = symbol(f"z_{key}", loop.size - kept)
            new, residual = loop.next(self.xp.vstack([x[0:kept, :], z]))
            out |= {f"z_first_{key}": entered[kept:, :], f"z_next_{key}": new[kept:, :], f"residual_{key}": residual}
            out |= {f"x_next_{key}": self.xp.vstack([new[0:kept, :], x[kept:, :]])}
        return out

    def after(self, x: Array) -> After:
        """The mechanism after the step, for a state of the loop."""
        xp, v0, h, contacts = self.xp, self.x["v"], self.h, len(self.step.contacts)
        p, violation, speed = self.loops[0].finish(x)
        kick = self.problem.impulse(p)
        inside, excess = self.problem.accelerations(kick), violation / speed
        if self.step.model.constraints and self.R is None:
            open_by = largest(xp, self.problem.opened(kick))
            fast = speed + largest(xp, self.motion.v + h * inside)
            violation = xp.where(open_by > OPEN * fast, open_by, violation)
        a = self.within.acceleration(inside, xp)
        q, v = semi_implicit(self.step.model, lambda *_: a, self.x["q"], v0, h, xp)
        work = (kick.T @ (self.motion.v + (h / 2) * (inside + self.turn)))[0, 0]
        work = work + (h / 2) * (self.applied.T @ (v0 + v))[0, 0]
        passive = passive_work(self.step.model, "semi_implicit", h, self.x["q"], v0, v, xp, self.x)
        work = work if passive is None else work + passive[0, 0]
        if self.R is not None:
            work = work + h * constraint_power(self.motion, self.problem.forces(kick), h, self.R)
        forces = xp.vstack([xp.zeros(0), *(C @ f / h for C, f in zip(self.problem.axes, p[:contacts], strict=True))])
        driven = actuator_force(self.step.model, self.x["q"], v0, xp, self.x)
        tau = self.tau if driven is None else self.tau + driven
        impulses = xp.vstack([xp.zeros(0), *p, x[self.problem.rows : self.x["impulses"].shape[0], :]])
        act = activation_after(self.step.model, h, xp, self.x) if "act" in self.x else None
        return After(q, v, impulses, a, tau, forces, work, violation, speed, excess, act)


class After(NamedTuple):
    """What a step leads to; `violation` is the largest one of a law, `speed` what it is relative to.

    `excess` is their ratio, for laws of contacts and joints alone: that of loops is not for other solvers to mend.
    """

    q: Array
    v: Array
    impulses: Array
    a: Array
    tau: Array
    forces: Array
    work: Array
    violation: Array
    speed: Array
    excess: Array
    act: Array | None


CONVERGED = {"float64": 1e-6, "float32": 1e-4}
"""The largest violation of a law in any step, relative to velocities, of a motion that has converged: a sweep that
changes velocities by TOLERANCE may leave more than that (of tumbling cubes, 2e-7 in the worst of 1500 steps)."""

OPEN = 1e-4
"""The share of velocities with which loops may open before that is a violation: redundant rows are damped."""


def _valid_step(x: Mapping[str, Array], xp: Ops) -> Array:
    """dt, or NaN if it is not above zero, or if a coefficient of friction is negative or NaN."""
    h = xp.where(x["dt"][0, 0] > 0, x["dt"][0, 0], float("nan"))
    for k in range(x["friction"].shape[0]):
        h = xp.where(x["friction"][k, 0] >= 0, h, float("nan"))
    return h


Solver = GaussSeidel | Newton

Loop = Solver | NoGain

SOLVERS: dict[str, type[Solver]] = {
    "gauss_seidel": GaussSeidel,
    "active_set": ActiveSet,
    "admm": Admm,
    "newton": Newton,
    "slips": Slips,
    "interior_point": InteriorPoint,
    "whole_newton": WholeNewton,
    "whole_interior_point": WholeInteriorPoint,
}
"""By name."""

METHODS = ("gauss_seidel", "newton", "active_set", "admm")
"""Those that a user can name."""

FEW = 4
"""Contacts with the ground up to which sweeps alone are the default: they are cheaper, and find most solutions."""

MANY = 32
"""Rows up to which ADMM is the last try: its program grows with the cube of their number."""

TOLERANCE = 1e-8
"""The change of velocities in an iteration, relative to the largest, below which it stops."""

MOST = {"gauss_seidel": 200, "active_set": 80, "admm": 2000, "newton": 4, "slips": 6, "interior_point": 60}
MOST |= {"whole_newton": 20, "whole_interior_point": 120}
"""Iterations, by solver: those of ADMM are many, and get nearer all the time."""


def contact_step(
    model: Model,
    contacts: Sequence[Contact | Pair],
    ground: Surface,
    *,
    pd: bool = False,
    extras: tuple[str, ...] = (),
    dtype: str = "float64",
    method: str | None = None,
    actuators: bool = False,
    pushes: Pushes = NO_PUSHES,
    parameters: Sequence[str] = (),
    softness: Softness | None = None,
) -> ContactStep:
    """The step of a model with these contacts, checked."""
    if actuators:
        check_actuators(model)
    for c in contacts:
        c.check(model)
    tolerance = TOLERANCE if dtype == "float64" else TOLERANCE**0.5
    few = len(contacts) <= FEW and all(isinstance(c, Contact) for c in contacts)
    named = Inputs(model, parameters, by_contact(actuators), softness=softness_vector(softness)).named
    simple = only_cones(model, contacts, named)
    if method == "newton" and not simple:
        raise InputError("method 'newton' is for contacts without torsion, rolling and dry friction")
    again = method is None
    method = method or ("newton" if simple and contacts else "gauss_seidel" if few else "active_set")
    how = pd, extras, dtype, method, actuators, pushes, named, again, softness
    return ContactStep(model, tuple(contacts), ground, tolerance, *how)


def only_cones(model: Model, contacts: Sequence[Contact | Pair], parameters: Sequence[str]) -> bool:
    """Whether nothing but contacts with the ground and limits of joints can have impulses."""
    dry = "joint_friction" in parameters or any(link.passive.friction.any() for link in model.links[1:])
    return not dry and not turning_rows(contacts)


def by_contact(actuators: bool) -> tuple[str, ...]:
    """The parameters that can be inputs of steps with contacts."""
    return (*BY_CONTACT, *BY_CONTROL) if actuators else BY_CONTACT
