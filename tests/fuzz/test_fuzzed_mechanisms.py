"""Random mechanisms with random, often redundant, constraints: hypothesis prints the seeds of what fails."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from helpers import (
    EPS,
    KINDS,
    assert_close,
    closed_at,
    closures,
    col,
    cond,
    constraints_of,
    motion,
    random_model,
    random_state,
)
from linkwork.algorithms.constrained.kkt import joint_space, kkt
from linkwork.algorithms.tree.aba import aba
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import crba_ltl
from linkwork.algorithms.tree.rnea import rnea
from linkwork.constraints import LinkRows, jacobian, position_error, velocity_error
from linkwork.robots.mechanisms import random_mechanism

SEEDS = st.integers(0, 2**32 - 1)
MODELS = st.builds(
    random_model,
    SEEDS,
    st.integers(1, 10),
    st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=4).map(tuple),
    base=st.sampled_from([None, "free", "planar", "fixed"]),
    armature=st.booleans(),
)


@given(MODELS, SEEDS)
def test_tree_algorithms_agree_with_each_other(model, seed):
    q, v, tau = random_state(model, seed)
    f = col(np.random.default_rng(seed).normal(size=6 * model.nlinks))
    m = motion(model, q, v)
    M, c = crba(m), rnea(m, None, f)
    a = aba(m, col(tau), f)
    size = max(float(np.abs(c).max(initial=1.0)), float(np.abs(a).max(initial=1.0)))
    kappa = cond(M)
    assert_close(rnea(m, a, f), col(tau), kappa, scale=size)
    assert_close(crba_ltl(m, col(tau), f), a, kappa, scale=size)
    assert_close(M @ a + c, col(tau), kappa, scale=size)


@given(MODELS, SEEDS)
def test_integrate_and_difference_are_inverse(model, seed):
    q, v, _ = random_state(model, seed)
    assert_close(model.difference(q, model.integrate(q, 0.5 * v)), 0.5 * v)
    p = model.random_q(seed + 1)
    reached = model.integrate(q, model.difference(q, p))
    assert_close(model.difference(reached, p), np.zeros(model.nv), c=1000)


@given(SEEDS, st.integers(3, 7), st.integers(1, 5), st.booleans())
def test_oracle_satisfies_the_equations_whatever_the_rank(seed, n, count, floating):
    """Gauss: the equation of motion holds, |J a - k| cannot be smaller, and repeating a row changes nothing."""
    model = random_model(seed, n, base="free" if floating else None)
    rng = np.random.default_rng(seed)
    q, v, tau = random_state(model, seed)
    pool = [*constraints_of(model, seed)]
    i, j = rng.choice(n, 2, replace=False)
    model = closed_at(model, q, f"f{i}", f"l{j}", "meet")
    if model.frame(f"f{i}").link != model.frame("meet").link:
        pool += closures(f"f{i}", "meet", rng)
    chosen = [pool[k] for k in rng.integers(len(pool), size=count)]
    model = model.with_constraints(*chosen, chosen[0])
    m = motion(model, q, v)
    a, lam = kkt(m, col(tau))
    J, k = joint_space(m)
    L = np.linalg.cholesky(crba(m)) if model.nv else np.zeros((0, 0))
    W = np.linalg.solve(L, J.T).T
    kappa = cond(W) * cond(L) ** 2
    size = max(10.0, *(float(np.abs(x).max(initial=0.0)) for x in (a, lam, k)))
    assert_close(crba(m) @ a + rnea(m, None), col(tau) + J.T @ lam, kappa, scale=size)
    assert_close(W.T @ (J @ a - k), np.zeros((model.nv, 1)), kappa, scale=size)
    assert_close(J @ col(v), velocity_error(m))
    assert_close(J, jacobian(m))


@given(SEEDS, st.integers(1, 4))
def test_random_rows_as_in_the_papers(seed, m_rows):
    """Numeric rows on random links: met exactly where the rank allows."""
    model = random_model(seed, 5, base="free", armature=False)
    rng = np.random.default_rng(seed)
    K = {f"l{i}": rng.normal(size=(m_rows, 6)) for i in rng.choice(5, 2, replace=False)}
    model = model.with_constraints(LinkRows(K, rng.normal(size=m_rows)))
    q, v, tau = random_state(model, seed)
    mo = motion(model, q, v)
    a, _ = kkt(mo, col(tau))
    J, k = joint_space(mo)
    kappa = cond(J) * cond(crba(mo))
    assert_close(J @ a, k, kappa, scale=float(np.abs(a).max()))


@given(SEEDS, st.integers(2, 8), st.integers(0, 2), st.integers(0, 2), st.integers(0, 3))
def test_mechanisms_with_loops_stay_closed_and_repeated_constraints_do_nothing(seed, n, loops, contacts, duplicates):
    """At the assembled position, with a velocity that the constraints allow: J a = k where the rank allows."""
    options = {"loops": loops, "contacts": contacts}
    model, more = (random_mechanism(seed, n, duplicates=d, **options) for d in (0, duplicates))
    q, (_, v, tau) = model.neutral(), random_state(model, seed)
    assert_close(position_error(motion(more, q)), np.zeros((more.rows, 1)), c=1000)
    J = jacobian(motion(model, q))
    v = v - np.linalg.pinv(J, rcond=1e-10) @ (J @ v)
    m, again = motion(model, q, v), motion(more, q, v)
    (a, lam), (b, mu) = kkt(m, col(tau)), kkt(again, col(tau))
    L = np.linalg.cholesky(crba(m)) if model.nv else np.zeros((0, 0))
    W = np.linalg.solve(L, J.T).T
    kappa = cond(W) ** 2 * cond(L) ** 2
    Jr, k = joint_space(m)
    size = max(10.0, *(float(np.abs(x).max(initial=0.0)) for x in (a, J.T @ lam, k)))
    free = np.linalg.solve(L.T, np.linalg.solve(L, col(tau) - rnea(m, None)))
    residual = float(np.abs(W.T @ (Jr @ a - k)).max(initial=0.0))
    assert residual <= 100 * kappa * EPS * size * max(1.0, float(np.abs(W).max(initial=0.0)))
    if np.abs(Jr @ a - k).max(initial=0.0) <= 100 * kappa * EPS * size:  # no conflict, so repeating means nothing
        size = max(size, float(np.abs(free).max(initial=0.0)))
        assert_close(b, a, kappa, scale=size)
        assert_close(jacobian(again).T @ mu, J.T @ lam, kappa, scale=size)
