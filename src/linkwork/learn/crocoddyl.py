"""Linkwork's steps as action models of Crocoddyl, for its solvers: FDDP, BoxFDDP and others.

    import linkwork.learn.crocoddyl as lc

    step = lw.discrete_step(model, dt=0.01, modes=True)
    state = lc.state(model)                                  # their StateMultibody of the same robot
    horizon = lc.Horizon(step, state, costs, active)         # costs: T + 1 of their CostModelSum; active: (T, contacts)
    solver = crocoddyl.SolverFDDP(horizon.problem(x0))

The dynamics of all knots, with loops and whatever contacts are active in each, are linearised by one call when a solver
asks for the derivatives of any: it has evaluated each of them before, and the horizon remembers where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwork.checks import ARRAY, MODES, checked, instance, optional
from linkwork.errors import InputError, MissingExtra, UnsupportedError
from linkwork.interop import to_pinocchio
from linkwork.model import Model
from linkwork.model.model import MODEL
from linkwork.simulation.optimal_control.discrete_step import DiscreteStep

try:
    import crocoddyl
except ImportError as missing:
    raise MissingExtra("crocoddyl", "crocoddyl", "linkwork.learn.crocoddyl") from missing

STEP = instance(DiscreteStep, "a step, as lw.discrete_step(model, dt=0.01) is")


@checked(model=MODEL)
def state(model: Model) -> Any:
    """The states (q, v) of a model for Crocoddyl; its tangent space is that of Linkwork.

    A free base is called "root_joint" in it: so do Crocoddyl's actuation models recognise one.
    """
    theirs = to_pinocchio(model)
    if theirs.njoints > 1 and theirs.joints[1].nv == 6:
        theirs.names[1] = "root_joint"
    return crocoddyl.StateMultibody(theirs)


class Horizon:
    """T action models and a terminal one, whose dynamics are one step of Linkwork.

    `costs` are T + 1 of Crocoddyl's `CostModelSum`, of residuals of states and controls (those of frames need
    Pinocchio's data). `active` (T, constraints) are the contact modes of each knot, for steps with modes. Controls are
    those of the step's actuators, or the forces of all joints that are actuated.
    """

    @checked(step=STEP, active=optional(MODES))
    def __init__(self, step: DiscreteStep, state: Any, costs: Sequence[Any], active: object = None) -> None:
        model, self.step, self.knots = step.model, step, len(costs) - 1
        if step.na:
            raise UnsupportedError(
                f"{step.na} actuators have a state, and those of StateMultibody are q and v: take "
                "lw.discrete_step(model), whose controls are joint forces"
            )
        if self.knots < 1:
            raise InputError("costs of at least two knots are needed: one that is followed by a step, and the last")
        links = [i for i in model.topology.links if model.links[i].actuated]
        forces = [k for i in links for k in range(model.nv)[model.topology.v_slices[i]]]
        self.driven = np.array(forces if step.nu == model.nv and not step.uses_actuators else range(step.nu))
        count = len(model.constraints)
        self.active = None if active is None else np.ascontiguousarray(active, float)
        if self.active is not None and self.active.shape != (self.knots, count):
            raise InputError(f"active has shape {self.active.shape}; {self.knots} knots need ({self.knots}, {count})")
        self._q, self._v = np.tile(model.neutral(), (self.knots, 1)), np.zeros((self.knots, model.nv))
        self._u = np.zeros((self.knots, step.nu))
        self._dynamics, self._move = step.dynamics.bind(), step.integrator.bind()  # solvers evaluate knot by knot
        self._found: Any = None
        self._fresh = np.zeros(self.knots, bool)
        self.models = [Knot(self, k, state, cost) for k, cost in enumerate(costs)]

    @checked(x0=ARRAY)
    def problem(self, x0: object) -> Any:
        """The shooting problem from a state x0 = (q, v) on."""
        return crocoddyl.ShootingProblem(np.asarray(x0, float), self.models[:-1], self.models[-1])

    def after(self, k: int, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The state after knot k, which is remembered."""
        nq = self.step.model.nq
        self._q[k], self._v[k] = x[:nq], x[nq:]
        self._u[k, self.driven] = u
        self._fresh[k] = False
        if self.step.varying:
            mode = () if self.active is None else (self.active[k],)
            return np.concatenate(self.step(self._q[k], self._v[k], self._u[k], *mode))
        given = self._dynamics.inputs
        given.q[:], given.v[:], given[2][:] = self._q[k], self._v[k], self._u[k]
        if self.active is not None:
            given.active[:] = self.active[k]
        then = self._move.inputs
        then.q[:], then.v[:], then.a[:] = given.q, given.v, self._dynamics().a
        return np.concatenate(self._move())

    def linearised(self, k: int, x: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A and B of knot k: those of all knots are computed at once, where each was evaluated last."""
        nq = self.step.model.nq
        there = np.concatenate([self._q[k], self._v[k], self._u[k, self.driven]])
        if not np.array_equal(there, np.concatenate([x, u])):
            self._q[k], self._v[k], self._fresh[k] = x[:nq], x[nq:], False
            self._u[k, self.driven] = u
        if not self._fresh[k]:
            self._found = self.step.linearize(self._q, self._v, self._u, self.active)
            self._fresh[:] = True
        return self._found.A[k], self._found.B[k][:, self.driven]


class Knot(crocoddyl.ActionModelAbstract):  # type: ignore[misc]
    """One knot of a horizon."""

    def __init__(self, horizon: Horizon, k: int, state: Any, costs: Any) -> None:
        last = k == horizon.knots
        super().__init__(state, 0 if last else len(horizon.driven), costs.nr)
        self.horizon, self.k, self.costs, self.last = horizon, k, costs, last

    def createData(self) -> Any:
        return KnotData(self)

    def calc(self, data: Any, x: np.ndarray, u: np.ndarray | None = None) -> None:
        """The next state and the cost."""
        if self.last or u is None:
            self.costs.calc(data.costs, x)
        else:
            data.xnext[:] = self.horizon.after(self.k, x, u)
            self.costs.calc(data.costs, x, u)
        data.cost = data.costs.cost

    def calcDiff(self, data: Any, x: np.ndarray, u: np.ndarray | None = None) -> None:
        """Their derivatives."""
        if self.last or u is None:
            self.costs.calcDiff(data.costs, x)
        else:
            data.Fx[:], data.Fu[:] = self.horizon.linearised(self.k, x, u)
            self.costs.calcDiff(data.costs, x, u)


class KnotData(crocoddyl.ActionDataAbstract):  # type: ignore[misc]
    """What a knot computes; derivatives of costs are written into it by Crocoddyl."""

    def __init__(self, model: Knot) -> None:
        super().__init__(model)
        self.shared = crocoddyl.DataCollectorAbstract()
        self.costs = model.costs.createData(self.shared)
        self.costs.shareMemory(self)
