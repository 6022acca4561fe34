"""Optimal control by feasibility-driven DDP: a quadruped jumps, a leg with a closed loop swings up.

    min sum_k 1/2 |q_k (-) r_k|^2_W + 1/2 |v_k|^2_W' + 1/2 w |u_k|^2,    x_{k+1} = f(x_k, u_k),    x = (q, v)

The guess need not obey the dynamics: steps close the gaps f(x_k, u_k) (-) x_{k+1}, as they do in multiple shooting
(Giftthaler et al., IROS 2018; Mastalli et al., ICRA 2020). One call linearises the whole horizon, whose knots are in
different contact modes, and one call evaluates the line search: all step lengths times all knots.
"""

import time
from dataclasses import dataclass

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import planar_leg, quadruped, standing

LENGTHS = 0.5 ** np.arange(4)  # of steps: all tried at once
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

    def merit(self, q, v, u):
        """Cost and gaps of trajectories (N, T + 1, n)."""
        N, ends = len(u), q[:, 1:].reshape(-1, q.shape[-1])
        off = self.between(np.tile(self.reference, (N, 1)), q.reshape(-1, q.shape[-1])).v.reshape(v.shape)
        x = np.concatenate([off, v], axis=-1)
        cost = 0.5 * (self.weights * x**2).sum((1, 2)) + 0.5 * self.effort * (u**2).sum((1, 2))
        to = self.step(q[:, :-1], v[:, :-1], u @ self.B.T, self.active)
        gaps = np.abs(self.between(ends, to.q.reshape(ends.shape)).v).reshape(N, -1).sum(1)
        return cost + PENALTY * (gaps + np.abs(to.v - v[:, 1:]).sum((1, 2)))

    def quadratic(self, q, v, u):
        """The gradients of the cost by x and u and its Gauss-Newton Hessian by x, at each knot."""
        n, off, J = self.model.nv, self.between(self.reference, q).v, self.slope(self.reference, q).dv_dq
        weighted = self.weights[:, :n, None] * J
        self.Q[:, :n, :n] = np.swapaxes(J, 1, 2) @ weighted
        g = np.hstack([(off[:, None] @ weighted)[:, 0], self.weights[:, n:] * v])
        return self.Q, g, self.effort * u


def solve(p, q, v, u, iterations=100, damping=1e-6):
    """Iterate from a guess (T + 1, nq), (T + 1, nv), (T, driven) until steps no longer change the merit."""
    n, a, spent = p.model.nv, LENGTHS[:, None, None], []
    before = p.merit(q[None], v[None], u[None])[0]
    for _ in range(iterations):
        begin = time.process_time()
        r = p.step.linearize(q[:-1], v[:-1], u @ p.B.T, p.active)
        gaps = np.hstack([p.between(q[1:], r.q).v, r.v - v[1:]])
        Q, g, h = p.quadratic(q, v, u)
        dx, du, *_ = p.sweep(r.A, r.B[..., p.driven], Q, p.R, g, h, b=gaps, damping=damping)
        moved = p.move(np.tile(q, (len(a), 1)), (a * dx[:, :n]).reshape(-1, n)).q_next.reshape(-1, *q.shape)
        tried = moved, v + a * dx[:, n:], u + a * du
        merit = p.merit(*tried)
        best = int(merit.argmin())
        spent.append(time.process_time() - begin)
        damping = np.clip(damping * (0.1 if best < 3 and merit[best] < before else 10), 1e-9, 1e6)
        if merit[best] < before:
            q, v, u = (x[best] for x in tried)
        if abs(before - merit[best]) < 1e-4 * before:
            break
        before = min(before, merit[best])
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
