"""Crocoddyl's solvers on Linkwork's steps: the same solution as with its own contact models.

It runs in an environment of its own (pip install 'linkwork[crocoddyl]'): its wheel needs another Pinocchio than the
one that other tests are written for.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError
from linkwork.robots.mechanisms import planar_leg, quadruped, standing

crocoddyl = pytest.importorskip("crocoddyl", reason="Crocoddyl is not installed: it needs an environment of its own")
pinocchio = pytest.importorskip("pinocchio")

FEET = [f"{leg}_foot" for leg in ("front_left", "front_right", "rear_left", "rear_right")]
DT, T = 0.01, 20


def costs(state, target, nu, scale, weights):
    total = crocoddyl.CostModelSum(state, nu)
    residual = crocoddyl.ResidualModelState(state, target, nu)
    activation = crocoddyl.ActivationModelWeightedQuad(weights)
    total.addCost("state", crocoddyl.CostModelResidual(state, activation, residual), scale)
    if nu:
        effort = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, nu))
        total.addCost("control", effort, 1e-3 * scale)
    return total


def test_the_same_solution_as_with_their_contact_models() -> None:
    """A quadruped crouches on four feet, then on two."""
    import linkwork.learn.crocoddyl as lc

    robot = quadruped()
    model = robot.with_constraints(*(lw.point(foot, axes="world") for foot in FEET))
    active = np.ones((T, 4))
    active[T // 2 :, [0, 3]] = 0
    state, x0 = lc.state(robot), np.concatenate([standing(robot), np.zeros(18)])
    target = x0.copy()
    target[[0, 2]] += 0.02, -0.05
    weights = np.concatenate([[50.0] * 6, [1.0] * 30])

    step = lw.discrete_step(model, dt=DT, modes=True, threads=1)
    running = [costs(state, target, 12, DT, weights) for _ in range(T)]
    horizon = lc.Horizon(step, state, [*running, costs(state, target, 0, 1.0, 10 * weights)], active)

    actuation = crocoddyl.ActuationModelFloatingBase(state)

    def theirs(feet, dt, factor):
        contacts, aligned = crocoddyl.ContactModelMultiple(state, 12), pinocchio.LOCAL_WORLD_ALIGNED
        for foot in feet:
            frame = state.pinocchio.getFrameId(foot)
            contact = crocoddyl.ContactModel3D(state, frame, np.zeros(3), aligned, 12, np.zeros(2))
            contacts.addContact(foot, contact)
        sums = costs(state, target, 12, 1.0, factor * weights)
        args = state, actuation, contacts, sums, 0.0, True
        return crocoddyl.IntegratedActionModelEuler(crocoddyl.DifferentialActionModelContactFwdDynamics(*args), dt)

    own = [theirs([f for f, on in zip(FEET, row, strict=True) if on], DT, 1) for row in active]
    problems = horizon.problem(x0), crocoddyl.ShootingProblem(x0, own, theirs([], 0.0, 10))
    found = []
    for problem in problems:
        solver = crocoddyl.SolverFDDP(problem)
        solver.th_stop = 1e-12
        assert solver.solve([x0] * (T + 1), [np.zeros(12)] * T, 50, False)
        found.append((np.array(solver.xs), np.array(solver.us), solver.cost, solver.iter))
    (xs, us, cost, count), (xs_, us_, cost_, count_) = found
    assert count == count_
    assert abs(cost - cost_) < 1e-8 * cost_
    assert np.abs(xs - xs_).max() < 1e-6
    assert np.abs(us - us_).max() < 1e-5 * np.abs(us_).max()


def test_derivatives_are_at_the_states_asked_for() -> None:
    """Whatever was evaluated before: a leg with a closed loop, which Crocoddyl's models do not have."""
    import linkwork.learn.crocoddyl as lc

    model, rng = planar_leg(), np.random.default_rng(0)
    step, state = lw.discrete_step(model, dt=DT, threads=1), lc.state(model)
    n = model.nv
    sums = [costs(state, np.zeros(2 * n), nu, 1.0, np.ones(2 * n)) for nu in (2, 2, 0)]
    horizon = lc.Horizon(step, state, sums)
    assert list(horizon.driven) == [0, 2]  # hip and crank
    q, v = lw.random_state(model, seed=1)
    x, u, B = np.concatenate([q, v]), rng.standard_normal((2, 2)), np.eye(n)[:, [0, 2]]
    knot, data = horizon.models[0], horizon.models[0].createData()
    knot.calc(data, x, u[0])
    after = step(q, v, B @ u[0])
    assert np.allclose(data.xnext, np.concatenate([after.q, after.v]), atol=1e-12)
    for force in u:  # the second was not evaluated before
        knot.calcDiff(data, x, force)
        wanted = step.linearize(q, v, B @ force)
        assert np.allclose(data.Fx, wanted.A, atol=1e-9)
        assert np.allclose(data.Fu, wanted.B @ B, atol=1e-9)
    with pytest.raises(InputError, match="active"):
        lc.Horizon(step, state, sums, np.ones((7, 1)))
