"""Optimal control by feasibility-driven DDP: a quadruped jumps, a leg with a closed loop swings up.

    min sum_k 1/2 |q_k (-) r_k|^2_W + 1/2 |v_k|^2_W' + 1/2 w |u_k|^2,    x_{k+1} = f(x_k, u_k),    x = (q, v)

The guess need not obey the dynamics: steps close the gaps f(x_k, u_k) (-) x_{k+1}, as they do in multiple shooting
(Giftthaler et al., IROS 2018; Mastalli et al., ICRA 2020). One call linearises the whole horizon, whose knots are in
different contact modes. The whole step is linearised where it leads, as the next iteration needs it; where it leads
nowhere, one more call evaluates all shorter ones, times all knots.
"""

import time
from dataclasses import dataclass

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import planar_leg, quadruped, standing

LENGTHS = np.ones(1), 0.5 ** np.arange(1, 5)  # of steps: the whole one, then all shorter ones at once
ENOUGH = 0.1  # of the decrease that the slope predicts (Armijo)
PENALTY = 100.0  # what gaps cost in the line search


@dataclass
class Problem:
    """T steps in contact modes `active` (T, constraints), with forces in the degrees of freedom `driven`."""

    model: lw.Model
    dt: float
    active: np.ndarray
    driven: slice | list[int]
    reference: np.ndarray  # (T + 1, nq)
    weights: np.ndarray  # (T + 1, 2 nv): of q (-) reference, and of v
    effort: float

    def __post_init__(self):
        self.step = lw.discrete_step(self.model, dt=self.dt, modes=True, threads=1)
        self.between, self.move = lw.difference(self.model, threads=1), lw.integrate(self.model, threads=1)
        self.slope = self.between.derivatives(wrt=("q",))
        n, self.B = self.model.nv, np.eye(self.model.nv)[:, self.driven]
        self.Q = np.zeros((len(self.active) + 1, 2 * n, 2 * n))
        self.Q[:, range(n, 2 * n), range(n, 2 * n)] = self.weights[:, n:]
        self.R = self.effort * np.eye(self.B.shape[1])
        self.sweep = lw.riccati(2 * n, self.B.shape[1], threads=1)

    def evaluate(self, f, q, v, u):
        """Trajectories (N, T + 1, n): the step `f` from each knot, the merit, q (-) reference, and gaps."""
        N, (nq, nv) = len(u), (q.shape[-1], v.shape[-1])
        to = f(q[:, :-1], v[:, :-1], u @ self.B.T, self.active)
        off = self.between(np.tile(self.reference, (N, 1)), q.reshape(-1, nq)).v.reshape(v.shape)
        gaps = np.empty((N, len(self.active), 2 * nv))
        gaps[..., :nv] = self.between(q[:, 1:].reshape(-1, nq), to.q.reshape(-1, nq)).v.reshape(N, -1, nv)
        np.subtract(to.v, v[:, 1:], out=gaps[..., nv:])
        x = np.concatenate([off, v], axis=-1).reshape(N, -1)
        cost = 0.5 * (x**2 @ self.weights.ravel() + self.effort * (u**2).reshape(N, -1).sum(1))
        return to, cost + PENALTY * np.abs(gaps).reshape(N, -1).sum(1), off, gaps

    def quadratic(self, q, v, u, off):
        """The gradients of the cost by x and u and its Gauss-Newton Hessian by x, at each knot."""
        n, J = self.model.nv, self.slope(self.reference, q).dv_dq
        weighted = self.weights[:, :n, None] * J
        np.matmul(np.swapaxes(J, 1, 2), weighted, out=self.Q[:, :n, :n])
        g = np.hstack([(off[:, None] @ weighted)[:, 0], self.weights[:, n:] * v])
        return self.Q, g, self.effort * u


def solve(p, q, v, u, iterations=100, damping=1e-6):
    """Iterate from a guess (T + 1, nq), (T + 1, nv), (T, driven) until steps no longer change the merit."""
    n, spent = p.model.nv, []
    r, *found = p.evaluate(p.step.linearize, q[None], v[None], u[None])
    before, off, gaps = (x[0] for x in found)
    for _ in range(iterations):
        begin = time.process_time()
        Q, g, h = p.quadratic(q, v, u, off)
        dx, du, *_ = p.sweep(r.A[0], r.B[0][..., p.driven], Q, p.R, g, h, b=gaps, damping=damping)
        slope = (g * dx).sum() + (h * du).sum() - PENALTY * np.abs(gaps).sum()  # of the merit, along the step
        for lengths in LENGTHS:
            a, whole = lengths[:, None, None], lengths is LENGTHS[0]
            moved = p.move(np.tile(q, (len(a), 1)), (a * dx[:, :n]).reshape(-1, n)).q_next.reshape(-1, *q.shape)
            tried = moved, v + a * dx[:, n:], u + a * du
            to, merit, *found = p.evaluate(p.step.linearize if whole else p.step, *tried)
            best = int(merit.argmin())
            if enough := merit[best] < before + ENOUGH * lengths[best] * slope:
                break
        damping, change = np.clip(damping * (0.1 if whole else 10), 1e-9, 1e6), abs(before - merit[best])
        if enough:
            (q, v, u, off, gaps), before = (x[best] for x in (*tried, *found)), merit[best]
            r = to if whole else p.step.linearize(q[None, :-1], v[None, :-1], (u @ p.B.T)[None], p.active)
        spent.append(time.process_time() - begin)
        if change < 1e-4 * before:
            break
    time_each = f"{len(spent)} iterations of {1e3 * np.median(spent):.1f} ms"
    print(f"{p.model.name}: cost {before:.3f} after {time_each}, largest gap {np.abs(gaps).max():.0e}")
    return q, v, u


def jump(distance=0.3, push=30, flight=30, land=25, dt=0.01):
    """A quadruped on four feet jumps ahead: contacts are on, off, and on again."""
    stops = lw.Stabilisation(period=100.0, damping=25 / np.pi / dt)  # feet that touch down stop there within a step
    model, feet = quadruped(), [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]
    stand, T = standing(model), push + flight + land
    reference = np.tile(stand, (T + 1, 1))
    reference[push + flight :, 0] += distance
    weights = np.tile([0.0] * 6 + [1.0] * 12 + [0.1] * 18, (T + 1, 1))
    weights[[push + flight, T], :18] = 1e6
    weights[T, 18:] = 1e2
    active = np.ones((T, 4))
    active[push : push + flight] = 0
    model = model.with_constraints(*(lw.point(f, axes="world", stabilisation=stops) for f in feet))
    p = Problem(model, dt, active, slice(6, 18), reference, weights, 1e-3)
    q, v, u = solve(p, reference, np.zeros((T + 1, 18)), np.zeros((T, 12)))
    places = lw.forward_kinematics(model, feet)(q).positions
    print(f"lands {q[-1, 0]:.3f} m ahead; feet were {places[..., 2].max():.3f} m high, trunk {q[:, 2].max():.3f} m")
    assert np.allclose(places[-1], places[0] + [distance, 0, 0], atol=2e-3), "feet should land ahead, on the ground"
    return q, v, u


def swing_up(T=150, dt=0.02):
    """A leg hangs on its hip and is to stand on it; its knee is driven through a closed loop."""
    model = planar_leg()
    reference = np.tile([np.pi, 0.0, np.pi, 0.0], (T + 1, 1))
    weights = np.tile([0.1] * 4 + [0.01] * 4, (T + 1, 1))
    weights[T] = 1e3
    p = Problem(model, dt, np.ones((T, 1)), [0, 2], reference, weights, 1.0)  # hip and crank
    q, v, u = solve(p, np.zeros((T + 1, 4)), np.zeros((T + 1, 4)), np.zeros((T, 2)))
    off = np.abs(lw.constraint_error(model)(q, v).phi).max()
    print(f"stands at {q[-1, 0]:.3f} rad by at most {np.abs(u).max():.1f} N m; the loop is closed to {off:.0e}")
    assert max(20 * off, abs(q[-1, 0] - np.pi)) < 0.05, "the leg should stand, and its loop be closed"
    return q, v, u


if __name__ == "__main__":
    swing_up()
    jump()
