"""From accelerations to motion, on the manifold: one step of each method, over any backend.

Positions are not vectors (quaternions), so a step is taken in one of two ways. `integrate` follows a constant
velocity exactly, on the manifold. Runge-Kutta methods add rates dq/dt instead and normalise at the end: the manifold
is invariant under the exact flow, so the normalisation is as small as the step's error and keeps its order.

    semi_implicit    v+ = v + h a(q, v),            q+ = q (+) h v+                            order 1
                     with momentum in place of v for joints that turn in space (gyroscopic.py)
    rk4              the classical four stages on (q, v), then normalised                      order 4
    midpoint         w = v + h/2 a(q (+) h/2 w, w),  v+ = 2 w - v,  q+ = q (+) h w             order 2, implicit
    dormand_prince   stages of order 5 with an error estimate and dense output, see dormand_prince.py

The midpoint rule conserves quadratic invariants (the energy and momentum of a free body) and is symmetric in time. A
semi-implicit step keeps the energy of smooth motions within O(h) of what it was as long as velocity products are small:
as explicit terms they feed energy into links that turn by z rad in a step, by up to z^2 of it in every step. For free,
spherical and planar joints momentum takes their place; for chains of hinges energy_balance.py detects the gain.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwork.backends.ops import Array, Ops
from linkwork.errors import SingularError
from linkwork.model import Model
from linkwork.simulation.steps.gyroscopic import turned, turns

Acceleration = Callable[[Array, Array], Array]
"""a(q, v), of columns."""


def by_joint(model: Model, operation: str, q: Array, x: Array | None, xp: Ops) -> Array:
    """`integrate`, `rate` or `normalised` of all joints, on columns of any backend."""
    t, parts = model.topology, [xp.zeros(0)]
    for i in t.links:
        arguments = [q[t.q_slices[i], :]] + ([] if x is None else [x[t.v_slices[i], :]])
        if model.links[i].joint.nq:
            parts.append(getattr(model.links[i].joint, operation)(*arguments, xp))
    return xp.vstack(parts)


def semi_implicit(model: Model, a: Acceleration, q: Array, v: Array, h: Array, xp: Ops) -> tuple[Array, Array]:
    """One semi-implicit (symplectic) Euler step.

    Joints that turn in space keep their momentum (gyroscopic.py).
    """
    t, rate = model.topology, a(q, v)
    positions, speeds = [xp.zeros(0)], [xp.zeros(0)]
    for i in t.links:
        at, speed, slope = q[t.q_slices[i], :], v[t.v_slices[i], :], rate[t.v_slices[i], :]
        if not model.links[i].joint.nq:
            continue
        if turns(model, i):
            there, after = turned(model, i, at, speed, slope, h, xp)
        else:
            after = speed + h * slope
            there = model.links[i].joint.integrate(at, h * after, xp)
        positions.append(there)
        speeds.append(after)
    return xp.vstack(positions), xp.vstack(speeds)


def rk4(model: Model, a: Acceleration, q: Array, v: Array, h: Array, xp: Ops) -> tuple[Array, Array]:
    """One classical Runge-Kutta step."""
    k = [(by_joint(model, "rate", q, v, xp), a(q, v))]
    for part in (h / 2, h / 2, h):
        qs, vs = q + part * k[-1][0], v + part * k[-1][1]
        k.append((by_joint(model, "rate", qs, vs, xp), a(qs, vs)))
    after = [x + (h / 6) * (k[0][i] + 2 * (k[1][i] + k[2][i]) + k[3][i]) for i, x in enumerate((q, v))]
    return by_joint(model, "normalised", after[0], None, xp), after[1]


TRACEABLE: dict[str, Callable[..., tuple[Array, Array]]] = {"semi_implicit": semi_implicit, "rk4": rk4}
"""Explicit steps: they can be compiled."""

ORDERS = {"semi_implicit": 1, "rk4": 4, "midpoint": 2, "dormand_prince": 5}


def midpoint(
    model: Model,
    a: Callable[[np.ndarray, np.ndarray], np.ndarray],
    q: np.ndarray,
    v: np.ndarray,
    h: float,
    tolerance: float = 1e-13,
    max_iterations: int = 50,
) -> tuple[np.ndarray, np.ndarray]:
    """One implicit midpoint step, by Newton's method; `a` takes arrays (n,) or batches (B, n).

    Fixed-point iteration comes first; where it is slow, Newton's matrix is computed once from a batch of differences.
    It ends when w changes by at most `tolerance` of its size.
    """
    inverse: np.ndarray | None = None
    w, previous = v + (h / 2) * a(q, v), np.inf
    for _ in range(max_iterations):
        if not np.isfinite(w).all():
            break
        r = v + (h / 2) * a(model.integrate(q, (h / 2) * w), w) - w
        step = r if inverse is None else inverse @ r
        size = float(np.abs(step).max(initial=0.0))
        w = w + step
        if size <= tolerance * (1 + float(np.abs(w).max(initial=0.0))) or (size < 1e-9 and size >= previous):
            return model.integrate(q, h * w), 2 * w - v
        if inverse is None and size > 0.1 * previous:
            inverse = _newton_matrix(model, a, q, w, h)
        previous = size
    raise SingularError(
        f"implicit midpoint: no solution for a step of {h:g} s after {max_iterations} iterations; take a shorter one"
    )


def _newton_matrix(
    model: Model, a: Callable[[np.ndarray, np.ndarray], np.ndarray], q: np.ndarray, w: np.ndarray, h: float
) -> np.ndarray:
    """(1 - h/2 da/dw)^-1, by differences."""
    n, eps = model.nv, 1e-7 * (1 + float(np.abs(w).max(initial=0.0)))
    moved = np.vstack([w, w + eps * np.eye(n)])
    at = np.array([model.integrate(q, (h / 2) * x) for x in moved])
    value = a(at, moved)
    slope = (value[1:] - value[0]).T / eps
    try:
        return np.asarray(np.linalg.inv(np.eye(n) - (h / 2) * slope))
    except np.linalg.LinAlgError:
        raise SingularError(f"implicit midpoint: a step of {h:g} s has no solution of its own; shorten it") from None
