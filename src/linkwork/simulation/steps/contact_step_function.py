"""One time step with contacts, as a function that users call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.algorithms.contact.residuals import residuals
from linkwork.backends import Array, Ops
from linkwork.backends.numpy_ import NUMPY
from linkwork.checks import ARRAY, FLAG, check_memory, checked, choice, optional
from linkwork.constraints.collisions import CONTACTS, Pair
from linkwork.constraints.contact import GROUND, Contact, Ground, Surface
from linkwork.errors import InputError, warn_many, warn_unsolved
from linkwork.functions.actuation import activations
from linkwork.functions.function import Function
from linkwork.functions.options import OPTIONS
from linkwork.functions.parameters import PARAMETERS
from linkwork.functions.recipes import factory
from linkwork.functions.results import ActivatedStepResult, ContactResidualsResult, StepResult
from linkwork.functions.softness import softness_of
from linkwork.model import Model
from linkwork.model.model import MODEL
from linkwork.rewrite.rewritten import Rewritten, rewritten
from linkwork.simulation.steps.contact_step import METHODS, ContactStep, Solving, contact_step

if TYPE_CHECKING:
    from linkwork.kernels.calls.kernel import Results
    from linkwork.kernels.programs.iterate import IterativeProgram
    from linkwork.kernels.programs.program import Program

BACKEND = choice("backend for steps", ("kernel", "numpy"))
METHOD = optional(choice("method for contacts", tuple(METHODS)))

PATIENCE = 150
"""Contacts that compile in less than half a minute."""


@checked(
    model=MODEL,
    contacts=CONTACTS,
    ground=optional(GROUND),
    pd=FLAG,
    R=optional(ARRAY),
    actuators=FLAG,
    parameters=PARAMETERS,
    **(OPTIONS | {"method": METHOD, "backend": BACKEND}),
)
@factory
def step(
    model: Model,
    contacts: Sequence[Contact | Pair] = (),
    *,
    ground: Surface | None = None,
    pd: bool = False,
    method: str | None = None,
    R: object = None,
    actuators: bool = False,
    parameters: Sequence[str] = (),
    backend: str = "kernel",
    dtype: str = "float64",
    threads: int | None = None,
) -> StepFunction:
    """`step(q, v, tau, dt) -> (q, v, forces, impulses)`: one time step with contacts and limits.

    `contacts` may touch the `ground` (default: the plane z = 0) and, as a `Pair`, each other. At the end of the step
    Signorini's and Coulomb's laws hold for the velocities of all contacts, without relaxation:

        gap >= 0, normal force >= 0, one of them zero;   |tangential force| <= mu normal force, against the slip if any

    Joints stay within their limits and have their dry friction (those with one degree of freedom), and the model's own
    constraints (loops, couplings) hold. `forces` (3 per contact, world axes) are means over the step. Further inputs,
    with defaults: `friction`, a coefficient for each contact, and `impulses` (4 for each contact, 1 for each joint with
    limits or friction; zeros), from which the solver starts: give it those of the last result, as below, and most steps
    take one sweep. The result also has `iterations`, `residual` (the largest violation of a law, m/s) and `converged`.

    - `method` is "newton", the default for contacts with the ground, which ends with an interior-point method where it
      has to; or "gauss_seidel", the default for up to four contacts with torsion, rolling or dry joint friction, or
      "active_set", which also solves many of these, pairs, stacks and large mass ratios in few iterations. "admm" takes
      ten times as long, and also solves states in which others run in circles. Unless a method is named, states that
      the default does not solve go to "admm" (up to 32 rows: 3 for each contact, 1 for each joint with limits).
    - `R` (a number, or one per row) makes the model's own constraints soft: J a + R lam = k.
    - `pd=True` adds `kp`, `kd`, `target`, `target_v` of joint control.
    - `actuators=True` makes it `step(q, v, u, dt)`, with controls of the model's actuators; `tau` may be added.
      Activations of those with a state are the input `act` (na,), zero by default; the result has those after the step.
    - `parameters` names groups that become inputs, as in `lw.rollout`: "inertia", "damping", "joint_friction", ...

    Quaternions in `q` are [x y z w].

    Examples:
        >>> model = quadruped()
        >>> legs = ("front_left", "front_right", "rear_left", "rear_right")
        >>> feet = [lw.Contact(f"{leg}_foot", friction=0.8) for leg in legs]
        >>> step = lw.step(model, feet)
        >>> after = step(standing(model), np.zeros(model.nv), np.zeros(model.nv), 1e-3)
        >>> again = step(after.q, after.v, np.zeros(model.nv), 1e-3, impulses=after.impulses)
        >>> again.forces.shape, bool(again.converged)
        ((12,), True)
    """
    model.check_forward()
    options = {"pd": pd, "dtype": dtype, "actuators": actuators, "parameters": parameters, "method": method}
    of = contact_step(model, contacts, ground or Ground(), softness=softness_of(model, R), **options)  # type: ignore[arg-type]
    if backend == "kernel" and len(contacts) > PATIENCE:
        warn_many("step", len(contacts))
    return StepFunction(of, backend, threads)


class StepFunction(Function[StepResult]):
    """A step as a function; see `step`."""

    differentiable = False
    factors_mass = True

    def __init__(self, of: ContactStep, backend: str, threads: int | None) -> None:
        self.of = of
        self._type = ActivatedStepResult if "act" in of.state else StepResult
        driven = ("u", "dt", "tau", "act") if of.actuators else ("tau", "dt")
        control = ("kp", "kd", "target", "target_v")
        names = ("q", "v", *driven, "places", *control, "friction", "impulses", *of.own)
        sizes: dict[str, int] = {n: of.inputs[n] for n in names if n in of.inputs}
        friction = np.array([c.friction for c in of.contacts])
        tau = {"tau": np.zeros(of.model.nv), **activations(of.model)} if of.actuators else {}
        super().__init__(
            "step",
            of.model,
            sizes,
            self._solving,
            method=of.solver,
            backend=backend,
            dtype=of.dtype,
            threads=threads,
            defaults={**tau, "friction": friction, "impulses": np.zeros(sizes["impulses"]), **of.own},
            shapes={n: x.shape for n, x in of.own.items() if x.ndim > 1},
            identity=(of.contacts, of.ground, of.pd, tuple(of.chain), of.actuators, of.parameters, of.softness),
            result=self._type,
        )

    def residuals(self) -> Function[ContactResidualsResult]:
        """The function `(q, v, tau, dt, impulses) -> complementarity, cone, dissipation` of contacts.

        It takes the inputs of a step and the `impulses` of its result. For each contact, how far each law is off, m/s:

            complementarity   |min(u_n, A p_n)|                     A: the contact's mean mobility
            cone              A max(|p_t| - mu p_n, 0)
            dissipation       |A p_t - P(A p_t - u_t)|              P: onto the cone's circle, |x| <= A mu p_n

        The `residual` of a step is the largest violation of all laws at once; these say which one it is.

        Examples:
            >>> model = quadruped()
            >>> step = lw.step(model, [lw.Contact("front_left_foot", friction=0.8)])
            >>> given = standing(model), np.zeros(model.nv), np.zeros(model.nv), 1e-3
            >>> left = step.residuals()(*given, impulses=step(*given).impulses)
            >>> left.cone.shape, bool(max(x.max() for x in left) < 1e-9)
            ((1,), True)
        """
        first = [n for n in self.inputs if n == "impulses" or n not in self.defaults]
        sizes = {n: self.inputs[n] for n in sorted(self.inputs, key=lambda n: n not in first)}

        def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
            problem = self._solving(xp, x).problem
            return residuals(problem, problem.split(x["impulses"]), xp)._asdict()

        return Function(
            "contact_residuals",
            self.model,
            sizes,
            body,
            backend=self.backend,
            dtype=self.dtype,
            threads=self.threads,
            defaults={n: x for n, x in self.defaults.items() if n != "impulses"},
            shapes=self._shapes,
            identity=self._identity,
            result=ContactResidualsResult,
        )

    def _solving(self, xp: Ops, x: Mapping[str, Array]) -> Solving:
        return Solving(self.of, rewritten(self.model) if self.backend == "kernel" else Rewritten(self.model), xp, x)

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        solving = self._solving(xp, inputs)
        x = symbol("x", solving.size)
        after = solving.after(x)
        ends = {name: getattr(after, name) for name in self._type._fields}
        ends |= {"excess": after.excess} if self.of.further else {}
        return {**solving.loops_from(x, symbol), **ends, "violation": after.violation, "bound": after.speed}

    def _guard(self, xp: Ops, inputs: Mapping[str, Array]) -> Array:
        """Comparisons alone use some of the impulses to start from, and NaN is on one side of these.

        Slips, which are remembered beside them, may be as large as laws.py allows.
        """
        start, most = inputs["impulses"], float(np.finfo(self.dtype).max)
        return super()._guard(xp, inputs) + xp.where(start.T @ start < most, 0.0, float("nan"))

    def _looped(self, program: Program) -> IterativeProgram:
        from linkwork.kernels.programs.hoist import hoist

        return hoist(program, further=self.of.further, uneven=True)

    @property
    def _settings(self) -> Mapping[str, Any]:
        return self.of.settings

    def _execute(self, arrays: list[np.ndarray], xp: Ops = NUMPY) -> dict[str, np.ndarray]:
        solving = self._solving(xp, {n: x[:, None] for n, x in zip(self.inputs, arrays, strict=True)})
        x, used = solving.solved()
        after = solving.after(x)
        violation, speed = float(after.violation[0, 0]), float(after.speed[0, 0])
        good = 1.0 if violation <= self.of.tolerance * speed else np.nan
        ends = {name: np.asarray(getattr(after, name)) for name in self._type._fields}
        return {**ends, "report": np.array([used, violation, good])}

    def _checked(self, name: str, value: Any) -> np.ndarray:
        x = super()._checked(name, value)
        if name == "dt" and not (x > 0).all():
            raise InputError(f"{self.name}: 'dt' is a time above 0 s")
        if name == "friction" and (x < 0).any():
            raise InputError(f"{self.name}: 'friction' has negative entries")
        return x

    def _results(self, names: tuple[str, ...]) -> Results:
        from linkwork.kernels.calls.kernel import Results

        return Results(self._type, (*self._type._fields, "_report"))

    def _into(self, out: Any) -> list[Any]:
        arrays = super()._into([*out] if isinstance(out, StepResult) else out)
        report = getattr(out, "_report", None)
        if report is None:
            batch = arrays[0].shape[:-1] if arrays and type(arrays[0]) is np.ndarray else ()
            check_memory(f"a report of {batch} states", 3 * math.prod(batch), "give fewer states at a time")
            report = np.empty((*batch, 3), self.dtype)
        return [*arrays, report]

    def _sound(self, result: Any, arrays: list[np.ndarray], batch: int | None) -> Any:
        """The result, if it is finite, or that of more digits; one that has not converged gives a warning."""
        bad = self._odd([*result, result._report[..., :2]], batch)
        for b in bad:
            state = self._state(arrays, b)
            found = self._in_more_digits(state)
            if found is None:
                raise self._singular("" if batch is None else f" in {len(bad)} of {batch} states", state)
            for part, x in zip([*result, result._report], found, strict=True):
                part[b] = x.reshape(part[b].shape)
        if not result.converged.all():
            warn_unsolved(self.name, result.converged)
        return result
