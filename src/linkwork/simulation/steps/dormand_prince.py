"""Dormand and Prince's method of orders 5 and 4, with steps chosen by the error and dense output.

The reference for other integrators.

Runs in NumPy on y = (q, v) with rates dq/dt; quaternions are normalised after every step. `Solution` evaluates the
motion at any time by Shampine's interpolant of order 4, which belongs to the method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linkwork.errors import InputError, SingularError
from linkwork.model import Model

C = np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
A = [
    np.array([]),
    np.array([1 / 5]),
    np.array([3 / 40, 9 / 40]),
    np.array([44 / 45, -56 / 15, 32 / 9]),
    np.array([19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729]),
    np.array([9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656]),
    np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]),
]
E = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
"""Weights of order 5 less those of order 4."""
P = np.array(
    [
        [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
        [0, 0, 0, 0],
        [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
    ]
)
"""Shampine's interpolant: y(t + s h) = y + h sum_i k_i (P s^1..4)_i."""


@dataclass(frozen=True)
class Solution:
    """The motion from t[0] to t[-1]: states at the steps, between them `solution(time) -> (q, v)`."""

    model: Model
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    slopes: tuple[np.ndarray, ...]
    evaluations: int

    def __call__(self, time: object) -> tuple[np.ndarray, np.ndarray]:
        """q and v at one time, or rows of them at several; quaternions are [x y z w]."""
        times = np.asarray(time, dtype=float)
        low, high, slack = self.t[0], self.t[-1], 1e-12 * (1 + abs(self.t[-1]))
        if np.any(times < low - slack) or np.any(times > high + slack):
            raise InputError(f"the solution runs from {low:g} to {high:g} s; {time!r} is outside")
        rows = [self._at(float(x)) for x in times.ravel()]
        q, v = (np.array([r[i] for r in rows]) for i in (0, 1))
        return (q[0], v[0]) if times.ndim == 0 else (q, v)

    def _at(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        if not self.slopes:
            return self.q[0], self.v[0]
        k = int(np.clip(np.searchsorted(self.t, time) - 1, 0, len(self.slopes) - 1))
        h = self.t[k + 1] - self.t[k]
        s = (time - self.t[k]) / h
        y = np.concatenate([self.q[k], self.v[k]]) + h * (self.slopes[k].T @ (P @ s ** np.arange(1, 5)))
        return self.model.normalised(y[: self.model.nq]), y[self.model.nq :]


def dormand_prince(
    model: Model,
    a: Callable[[float, np.ndarray, np.ndarray], np.ndarray],
    q0: np.ndarray,
    v0: np.ndarray,
    duration: float,
    *,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    first_step: float = 1e-4,
    max_steps: int = 1_000_000,
) -> Solution:
    """Integrate from t = 0 with accelerations `a(t, q, v)`, steps' errors below atol + rtol |y|."""
    nq, t, h = model.nq, 0.0, min(first_step, duration)
    if not duration >= 0:
        raise InputError(f"duration is at least 0 s, not {duration!r}")

    def rate(time: float, y: np.ndarray) -> np.ndarray:
        q, v = y[:nq], y[nq:]
        return np.concatenate([model.rate(q, v), a(time, model.normalised(q), v)])

    y = np.concatenate([model.normalised(q0), v0])
    first, previous, evaluations = rate(0.0, y), 1e-4, 1
    times, states, slopes = [0.0], [y], []
    for _ in range(max_steps):
        if t >= duration:
            break
        h = min(h, duration - t)
        k = [first]
        for c, weights in zip(C[1:], A[1:], strict=True):
            k.append(rate(t + c * h, y + h * np.asarray(weights @ np.array(k))))
        K = np.array(k)
        evaluations += 6
        new = y + h * (A[6] @ K[:6])
        error = float(np.max(np.abs(h * (E @ K)) / (atol + rtol * np.maximum(np.abs(y), np.abs(new))), initial=1e-10))
        if not np.isfinite(error):
            raise SingularError(f"the motion is not a number after {t:g} s")
        if error <= 1:
            t = duration if duration - t - h < 1e-14 * duration else t + h
            new[:nq] = model.normalised(new[:nq])
            y, first = new, rate(t, new) if model.nq != model.nv else K[6]
            times.append(t)
            states.append(y)
            slopes.append(K)
            h *= float(np.clip(0.9 * error**-0.14 * previous**0.08, 0.2, 5.0))
            previous = max(error, 1e-4)
        else:
            h *= float(max(0.9 * error**-0.2, 0.1))
        if h < 1e-14 * (1 + t):
            raise SingularError(f"the step became too small at {t:g} s: the motion is singular there")
    else:
        raise SingularError(f"{max_steps} steps end at {t:g} of {duration:g} s; allow more, or a larger rtol")
    Y = np.array(states)
    return Solution(model, np.array(times), Y[:, :nq], Y[:, nq:], tuple(slopes), evaluations)
