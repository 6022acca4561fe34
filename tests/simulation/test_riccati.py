"""Riccati's recursion in machine code: the same as in NumPy, and as one dense system for the whole horizon."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError

EPS = np.finfo(float).eps


def problem(T: int, n: int, m: int, *lead: int) -> dict[str, np.ndarray]:
    """A random convex problem, with cross terms, gaps and a start."""
    rng = np.random.default_rng(T + n + m)
    G = rng.normal(size=(*lead, T + 1, n + m, n + m))
    H = G @ np.swapaxes(G, -1, -2) / (n + m) + 0.1 * np.eye(n + m)
    out = {"A": np.eye(n) + 0.3 * rng.normal(size=(*lead, T, n, n)), "B": rng.normal(size=(*lead, T, n, m))}
    out |= {"Q": H[..., :n, :n], "R": H[..., :-1, n:, n:], "S": H[..., :-1, n:, :n]}
    out |= {"q": rng.normal(size=(*lead, T + 1, n)), "r": rng.normal(size=(*lead, T, m))}
    return {**out, "b": rng.normal(size=(*lead, T, n)), "x0": rng.normal(size=(*lead, n))}


def recursion(A, B, Q, R, S, q, r, b, x0):
    """The recursion in NumPy, and the largest condition number of a knot: V is a Schur complement in [F G'; G H]."""
    T, V, s, policy, slopes, kappa = len(A), Q[-1], q[-1], [], [], 1.0
    for t in reversed(range(T)):
        p = s + V @ b[t]
        F, G, H = Q[t] + A[t].T @ V @ A[t], S[t] + B[t].T @ V @ A[t], R[t] + B[t].T @ V @ B[t]
        f, h = q[t] + A[t].T @ p, r[t] + B[t].T @ p
        policy.append((-np.linalg.solve(H, G), -np.linalg.solve(H, h), 0.5 * h @ np.linalg.solve(H, h)))
        V, s = F + G.T @ policy[-1][0], f + G.T @ policy[-1][1]
        slopes.insert(0, s)
        kappa = max(kappa, np.linalg.cond(np.block([[F, G.T], [G, H]])))
    K, k, decrease = (np.array(y)[::-1] for y in zip(*policy, strict=True))
    x, u = [x0], []
    for t in range(T):
        u.append(k[t] + K[t] @ x[-1])
        x.append(A[t] @ x[-1] + B[t] @ u[-1] + b[t])
    return (np.array(x), np.array(u), K, k, np.array(slopes), decrease.sum(), T), kappa


def agree(mine, theirs, kappa: float, eps: float = EPS) -> None:
    for x, y in zip(mine, theirs, strict=True):
        assert np.abs(np.asarray(x) - y).max() <= 100 * kappa * eps * np.abs(y).max()


@pytest.mark.parametrize(("T", "n", "m"), [(12, 19, 5), (6, 3, 2)])
def test_the_same_as_in_numpy(T, n, m):
    """Sizes that fill registers in part; with 3 states, problems of a batch are in lanes."""
    many = problem(T, n, m, 9)
    sweep = lw.riccati(n, m, threads=1)
    whole = sweep(**many)
    for k in (0, 8):
        one = {name: x[k] for name, x in many.items()}
        expected, kappa = recursion(**one)
        agree(sweep(**one), expected, kappa)
        agree([x[k] for x in whole], expected, kappa)


def test_single_precision():
    given = problem(6, 3, 2)
    expected, kappa = recursion(**given)
    agree(lw.riccati(3, 2, dtype="float32", threads=1)(**given), expected, kappa, float(np.finfo(np.float32).eps))


def test_the_minimum_of_the_whole_horizon():
    """All states, controls and multipliers by one dense solve: an independent judge."""
    T, n, m = 6, 3, 2
    p = problem(T, n, m)
    size, at = (T + 1) * n + T * m, (T + 1) * n
    H, g = np.zeros((size, size)), np.concatenate([p["q"].ravel(), p["r"].ravel()])
    C, d = np.zeros(((T + 1) * n, size)), np.concatenate([p["x0"], p["b"].ravel()])
    C[:n, :n] = np.eye(n)
    for t in range(T + 1):
        here = slice(n * t, n * (t + 1))
        H[here, here] = p["Q"][t]
        if t < T:
            there, u = slice(n * (t + 1), n * (t + 2)), slice(at + m * t, at + m * (t + 1))
            H[u, u], H[u, here], H[here, u] = p["R"][t], p["S"][t], p["S"][t].T
            C[there, there], C[there, here], C[there, u] = np.eye(n), -p["A"][t], -p["B"][t]
    whole = np.block([[H, C.T], [C, np.zeros((len(C), len(C)))]])
    found = np.linalg.solve(whole, np.concatenate([-g, d]))
    sweep = lw.riccati(n, m, threads=1)
    agree(sweep(**p)[:2], (found[:at].reshape(-1, n), found[at:size].reshape(-1, m)), np.linalg.cond(whole))


def test_without_a_minimum_it_says_how_far_it_came_and_damping_helps():
    many = problem(6, 3, 2, 9)
    many["R"][4, 2] -= 100 * np.eye(2)
    sweep = lw.riccati(3, 2, threads=1)
    found = sweep(**many)
    assert found.factored.tolist() == [6, 6, 6, 6, 3, 6, 6, 6, 6]
    assert not found.u[4].any()
    assert found.u[5].any()
    one = {name: x[4] for name, x in many.items()}
    assert sweep(**one).factored == 3
    damped = sweep(**one, damping=100.0)
    assert damped.factored == 6
    expected, kappa = recursion(**{**one, "R": one["R"] + 100 * np.eye(2)})
    agree(damped, expected, kappa)


def test_matrices_of_all_knots_once_and_arrays_that_do_not_fit():
    p, sweep = problem(6, 3, 2), lw.riccati(3, 2, threads=1)
    same = {**p, "B": p["B"][0], "R": p["R"][0], "S": p["S"][0], "b": p["b"][0]}
    spread = {name: np.broadcast_to(same[name], p[name].shape) for name in p}
    agree(sweep(**same), sweep(**spread), 1.0)
    agree(sweep(**{**p, "B": np.repeat(p["B"], 2, -1)[..., ::2]}), sweep(**p), 1.0)
    for name, wrong in (("Q", p["Q"][:-1]), ("r", p["r"][:-1]), ("A", p["A"][0]), ("B", p["B"][..., :1])):
        with pytest.raises(InputError, match=f"{name} has shape"):
            sweep(**{**p, name: wrong})
    with pytest.raises(InputError, match="numbers of problems"):
        sweep(**{**p, "A": p["A"][None], "x0": np.zeros((2, 3))})
    with pytest.raises(InputError, match="not all numbers of 'A' are finite"):
        sweep(**{**p, "A": np.full_like(p["A"], np.nan)})
