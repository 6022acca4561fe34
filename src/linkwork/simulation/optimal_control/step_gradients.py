"""Gradients through one step, and back through many.

    x_{t+1} = f(x_t, u_t, p),    p_t = w_t + A_t^T p_{t+1},    g_u[t] = B_t^T p_{t+1},    g_p = sum C_t^T p_{t+1}

Products with A^T, B^T and C^T = (df/dp)^T are one function (`StepReverse`): the step backwards, one more solve with the
factor of the step, and one sweep back through the equation of motion. States are stored every k steps and computed
again in between: k + T / k of them at a time, 2 sqrt(T) by default.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from linkwork.backends import Array, Ops, get
from linkwork.functions.differentiation.derivative_products import Reverse, by_node
from linkwork.functions.differentiation.differentiated import Differentiated
from linkwork.functions.differentiation.motion_equations import MotionEquations
from linkwork.functions.function import Function
from linkwork.functions.parameters import BY_CONTROL, BY_TENDON
from linkwork.kernels.programs.differentiate import adjoints
from linkwork.kernels.programs.matrices import Matrix, Tracer
from linkwork.kernels.programs.value_numbering import ZERO
from linkwork.model import Model
from linkwork.model.activation import activation_after
from linkwork.model.joint_forces import implicit_inertia
from linkwork.simulation.steps.constrained_step import stiffened
from linkwork.simulation.steps.integrators import semi_implicit


class StepGradient(NamedTuple):
    """Gradients by `q` (in tangent space), `v`, `u`, each of the `parameters`, activations `act`."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    parameters: dict[str, np.ndarray]
    act: np.ndarray | None = None


class StepReverse(Reverse):
    """(q, v, u, w_q, w_v, ...) -> g_q, g_v, g_tau, ...; weights of the next q are in tangent space.

    Where activations are part of the state, they have weights `w_act` and a gradient, too.
    """

    def __init__(self, of: Function[Any], model: Model, dt: float, wrt: Sequence[str]) -> None:
        self._armed = "armature" in wrt
        weights = {"w_q": model.nv, "w_v": model.nv, **({"w_act": model.na} if "act" in wrt else {})}
        Differentiated.__init__(self, "step_vjp", of, wrt, weights)
        self._stepped, self._dt = model, dt
        self._shapes.update({"g_" + n: of._shapes[n] for n in wrt if n in of._shapes})
        if self._identity is not None:
            self._identity = (*self._identity, model, dt)

    def _of_solution(self, xp: Tracer, inputs: Mapping[str, Array]) -> dict[str, Array]:
        p = MotionEquations(self.of, xp, stiff_inputs(self._stepped, self._dt, xp, inputs, self._armed))
        solved = p.solved()
        a = xp.held(solved.a)
        there, after, *act = stepped_state(self._stepped, self._dt, xp, {**inputs, "a": a})
        next_state = [(there, _covector(self._stepped, there, inputs["w_q"], xp)), (after, inputs["w_v"])]
        next_state += [(x, inputs["w_act"]) for x in act]
        u, s = solved.solve(_gradient(xp, next_state, a), xp.zeros(self.model.rows))
        needed, residual = p.balance(solved)
        weighted = [*next_state, (needed, -u), (residual, s)]
        out = self._swept(xp, inputs, weighted, [solved.a, a, solved.multipliers])
        return out | {"g_tau": u} if "tau" in self.wrt else out


def stiff_inputs(model: Model, dt: float, xp: Ops, x: Mapping[str, Array], armed: bool = False) -> Mapping[str, Array]:
    """The inputs, where armature is one: with what makes springs, damping and servos implicit.

    They have the user's armature if it is `armed`, else the model's own counts.
    """
    if "armature" not in x:
        return x
    own = {n: y for n, y in x.items() if armed or n != "armature"}
    return {**x, **stiffened(model, xp.constant([[dt]])[0, 0], xp, own, x["q"], x["v"])}


def varies(model: Model, actuators: bool, parameters: Collection[str] = ()) -> bool:
    """Whether what makes forces implicit is computed in each step.

    It depends on the state, because servos saturate and tendons get slack, or on parameters that are inputs.
    """
    slack = any(n.stiffness and n.rest[0] < n.rest[1] for n in model.tendons)
    stiff = implicit_inertia(model, np.ones(()), get("numpy")) is not None
    changes = {*parameters} & {*BY_STIFFNESS, *(("armature",) if stiff else ())}
    return slack or bool(changes) or (actuators and any(a.is_servo for a in model.actuators))


BY_STIFFNESS = ("damping", "stiffness", *BY_TENDON, *BY_CONTROL)
"""The parameters that what makes forces implicit depends on, beside armature."""


def stepped_state(model: Model, dt: float, xp: Ops, x: Mapping[str, Array]) -> tuple[Array, ...]:
    """The next q and v, for accelerations `a`, and the next activations, where there are some."""
    h = xp.constant([[dt]])[0, 0]
    after = semi_implicit(model, lambda q, v: x["a"], x["q"], x["v"], h, xp)
    return (*after, activation_after(model, h, xp, x)) if "act" in x else after


def _covector(model: Model, q: Array, w: Array, xp: Ops) -> Array:
    """Weights of the entries of q, for those of its changes in tangent space: rates are orthogonal."""
    t, parts = model.topology, [xp.zeros(0)]
    for i in t.links:
        joint, at, total = model.links[i].joint, t.q_slices[i], xp.zeros(model.links[i].joint.nq)
        for k in range(joint.nv):
            rate = joint.rate(q[at, :], xp.eye(joint.nv)[:, k : k + 1], xp)
            first = t.v_slices[i].start + k
            total = total + rate * (w[first : first + 1, :] / (rate.T @ rate)[0, 0])[0, 0]
        parts.append(total)
    return xp.vstack(parts)


def _gradient(xp: Tracer, weighted: Sequence[tuple[Matrix, Matrix]], of: Matrix) -> Matrix:
    """The gradient of weighted values by a column; of equal entries, the first one has it."""
    values, weights = xp.values, by_node(xp, weighted)
    nodes = [r >> 1 for r in of.refs]
    found, refs, seen = adjoints(values, weights, nodes), list[int](), set[int]()
    for r, g in zip(of.refs, found, strict=True):
        new = values.value(r) is None and r >> 1 not in seen
        refs.append((values.neg(g) if r & 1 else g) if new else ZERO)
        seen.add(r >> 1)
    return Matrix(values, of.shape, refs)


State = tuple[np.ndarray, ...]


def pulled_back(
    start: State,
    steps: int,
    step: Callable[[int, State], State],
    back: Callable[[int, State, State], tuple[State, dict[str, np.ndarray]]],
    weights: Callable[[int], State],
    stored: int | None,
) -> tuple[State, list[dict[str, np.ndarray]]]:
    """The gradient by the start, and what `back` says of each step besides, from the first on.

    `step(t, x)` is the next state, `back(t, x, p)` the gradient by x and by other inputs of the step from x,
    `weights(t)` those of the state at t; every `stored` steps a state is stored.
    """
    every = stored or max(isqrt(steps), 1)
    kept, x = [start], start
    for t in range(steps - 1):
        x = step(t, x)
        if (t + 1) % every == 0:
            kept.append(x)
    p, found = weights(steps), list[dict[str, np.ndarray]]()
    for segment in reversed(range(len(kept))):
        first, states = segment * every, [kept.pop()]
        for t in range(first, min(first + every, steps) - 1):
            states.append(step(t, states[-1]))
        for k in reversed(range(len(states))):
            gradient, others = back(first + k, states[k], p)
            found.append(others)
            p = tuple(g + w for g, w in zip(gradient, weights(first + k), strict=True))
    return p, found[::-1]
