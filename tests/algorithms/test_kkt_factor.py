"""The sparse factorisation of the KKT matrix: its products, its solves, what is extracted from it, where it is zero."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, col, cond, motion
from linkwork.algorithms.constrained.kkt_factor import kkt_factor
from linkwork.algorithms.delassus.ltl import joint_columns
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.ltl import LTL, elimination_parents
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints import jacobian
from linkwork.constraints.rows import constraint_rows
from linkwork.functions.kkt_systems import KKTCholesky
from linkwork.robots.mechanisms import chain_of_loops, humanoid, quadruped
from row_cases import FEET, LIMBS, loop_cases, one_link_cases, random_rows

CASES = {
    k: m
    for k, m in {**one_link_cases(), **loop_cases()}.items()
    if k.startswith(("humanoid", "tree", "floating", "mechanism", "four", "chain", "quadruped", "fingers"))
}


def factor_of(model, seed=0, damping=0.1):
    """The factor, the matrix that it stands for, and that matrix' condition."""
    m = motion(model, model.random_q(seed))
    R = [col(damping * np.arange(1, c.rows + 1)) for c in model.constraints]
    J, M = jacobian(m), crba(m)
    damped = np.diag(np.concatenate([np.zeros(0), *(r[:, 0] for r in R)]))
    K = np.block([[-damped, J], [J.T, M]])
    return kkt_factor(m, constraint_rows(m), R), K, cond(K)


@pytest.mark.parametrize("case", CASES)
def test_products_and_solves(case):
    factor, K, kappa = factor_of(CASES[case])
    one = np.eye(len(K))
    U, D = factor.multiply_U(one), factor.multiply_D(one)
    assert np.array_equal(U, np.triu(U))
    assert np.array_equal(np.diag(U), np.ones(len(U)))
    assert np.array_equal(D, np.diag(np.diag(D)))
    assert (np.diag(D)[: factor.m] < 0).all()
    assert (np.diag(D)[factor.m :] > 0).all()
    scale = np.abs(K).max()
    assert_close(U @ D @ U.T, K, kappa)
    assert_close(factor.multiply(one), K, kappa)
    assert_close(factor.multiply_UT(one), U.T, cond(U))
    assert_close(factor.solve_U(U), one, cond(U))
    assert_close(factor.solve_UT(U.T), one, cond(U))
    assert_close(factor.solve_D(D), one)
    b = np.random.default_rng(0).normal(size=(len(K), 3))
    assert_close(K @ factor.solve(b), b, kappa, scale=scale)


@pytest.mark.parametrize("case", CASES)
def test_operational_space_inertia_is_extracted(case):
    """carpentier2021_proximal_sparse IV-E: the upper left blocks of U and D factorise the damped Delassus matrix."""
    factor, K, kappa = factor_of(CASES[case])
    m = factor.m
    J, M = K[:m, m:], K[m:, m:]
    expected = J @ np.linalg.solve(M, J.T) - K[:m, :m]
    assert_close(factor.delassus, expected, kappa)
    one = np.eye(len(K))
    Uc, Dc = factor.multiply_U(one)[:m, :m], factor.multiply_D(one)[:m, :m]
    assert_close(-Uc @ Dc @ Uc.T, expected, kappa)
    assert_close(factor.osim @ expected, np.eye(m), cond(expected))


def test_only_joints_that_carry_a_constraint_are_touched():
    model = humanoid(hands=False).with_constraints(*(lw.surface(f) for f in LIMBS))
    t, (factor, _, _) = model.topology, factor_of(model)
    for c, U in zip(model.constraints, factor.Uj, strict=True):
        (link,) = (l for l in c.touches(model) if l)
        assert set(U) == {k for i in t.supports[link] for k in range(t.v_slices[i].start, t.v_slices[i].stop)}


def test_rows_of_loops_start_at_the_loop():
    """J of a loop has entries only for the joints in it; its factor fills in towards the base, and nowhere else."""
    model = chain_of_loops(3, 4)
    t, m = model.topology, motion(model, model.random_q(0))

    def dofs(links):
        return {k for i in links for k in range(t.v_slices[i].start, t.v_slices[i].stop)}

    factor, _, _ = factor_of(model)
    for r, U in zip(constraint_rows(m), factor.Uj, strict=True):
        paths = [set(t.supports[l]) for l in r.links]
        assert r.relative
        assert set(joint_columns(m, r)) == dofs(set.union(*paths) - set.intersection(*paths))
        assert set(U) == dofs(set.union(*paths))


def test_constraints_that_no_joint_couples_stay_apart():
    """Fixed bases: limbs on the world make the dense block block diagonal, and its factor too."""
    model = lw.Builder("two arms")
    for arm in "ab":
        for i in range(4):
            model.link(
                f"{arm}{i}",
                f"{arm}{i - 1}" if i else "world",
                "revolute",
                axis="xyzx"[i],
                placement=lw.Placement.at((0.1, 0.2, 0.3)),
                inertia=quadruped().links[1].inertia,
            )
    two = model.build().with_constraints(random_rows("a3", 3), random_rows("b3", 3))
    factor, K, kappa = factor_of(two)
    assert all(set(row) <= {0, 1, 2} for row in factor.constraints.L[:3])
    assert all(set(row) <= {3, 4, 5} for row in factor.constraints.L[3:])
    b = np.arange(1.0, len(K) + 1)[:, None]
    assert_close(K @ factor.solve(b), b, kappa)


@pytest.mark.parametrize("seed", range(4))
def test_any_matrix_with_the_pattern_of_a_tree(seed):
    """carpentier2021_proximal_sparse IV-F: M need not be a mass matrix; a diagonal one is a special case."""
    rng = np.random.default_rng(seed)
    n, sizes = 12, (2, 3, 1)
    parent = [-1, *(int(rng.integers(-1, k)) for k in range(1, n))]
    L = np.eye(n)
    for k in range(n):
        p = parent[k]
        while p >= 0:
            L[k, p] = 0 if seed == 0 else rng.normal()
            p = parent[p]
    M = L.T @ np.diag(rng.uniform(1, 2, n)) @ L
    rows = [{int(k): rng.normal(size=(1, s)) for k in rng.choice(n, 4, replace=False)} for s in sizes]
    R = [col(rng.uniform(0.1, 1, s)) for s in sizes]
    J = np.zeros((sum(sizes), n))
    for start, s, r in zip((0, 2, 5), sizes, rows, strict=True):
        for k, c in r.items():
            J[start : start + s, k] = c[0]
    K = np.block([[-np.diag(np.vstack(R)[:, 0]), J], [J.T, M]])
    factor = KKTCholesky(M, rows, R, parent)
    b = rng.normal(size=(len(K), 2))
    assert_close(factor.solve(b), np.linalg.solve(K, b), cond(K))
    assert_close(factor.multiply(b), K @ b, cond(K))


def test_elimination_parents_hold_every_entry_of_the_factor():
    rng = np.random.default_rng(3)
    for _ in range(20):
        n = 10
        parent = [-1, *(int(rng.integers(-1, k)) for k in range(1, n))]
        cliques = [set(rng.choice(n, 3, replace=False).tolist()) for _ in range(2)]
        A = 20 * np.eye(n)
        for k in range(n):
            p = parent[k]
            while p >= 0:
                A[k, p] = A[p, k] = rng.normal()
                p = parent[p]
        for clique in cliques:
            for i in clique:
                for j in clique - {i}:
                    A[i, j] = A[j, i] = rng.normal()
        b = rng.normal(size=(n, 1))
        factor = LTL(A, elimination_parents(parent, cliques), NUMPY)
        assert_close(factor.solve(b), np.linalg.solve(A, b), cond(A))
    assert elimination_parents([-1, 0, 1, 0], []) == [-1, 0, 1, 0]
    assert elimination_parents([-1, 0, 0], [(1, 2)]) == [-1, 0, 1]
    assert elimination_parents([], []) == []


def test_singular_rows_without_damping_give_nan():
    model = quadruped().with_constraints(lw.point(FEET[0]), lw.point(FEET[0]))
    factor, _, _ = factor_of(model, damping=0.0)
    assert np.isnan(factor.solve(np.ones((model.rows + model.nv, 1)))).any()
    assert np.isfinite(factor.delassus).all()
