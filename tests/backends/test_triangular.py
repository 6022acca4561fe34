"""Cholesky factors and triangular solves: in the longest type no digit is lost to float64, in float64 none to LU."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from linkwork.algorithms.tree.aba import aba
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.longer import LONGER
from linkwork.backends.numpy_ import NUMPY
from linkwork.backends.triangular import cholesky, solve_lower, solve_upper
from linkwork.model import Motion
from linkwork.robots.mechanisms import chain

N = 8
EPS = np.finfo(np.longdouble).eps


def hilbert():
    """Entries 1 / (i + j + 1) times their least common multiple: whole numbers, condition 1e10."""
    common = np.lcm.reduce(range(1, 2 * N))
    return np.array([[common // (i + j + 1) for j in range(N)] for i in range(N)])


def exactly(A, b):
    """A^-1 b in fractions."""
    rows = [[Fraction(x) for x in (*row, y)] for row, y in zip(A, b, strict=True)]
    for i, row in enumerate(rows):
        row[:] = [x / row[i] for x in row]
        for other in rows[:i] + rows[i + 1 :]:
            other[:] = [x - other[i] * y for x, y in zip(other, row, strict=True)]
    return np.array([np.longdouble(row[-1].numerator) / np.longdouble(row[-1].denominator) for row in rows])


def test_a_solution_has_the_digits_of_the_longest_type():
    A, b = hilbert(), np.arange(1, N + 1)
    L = cholesky(A.astype(np.longdouble))
    x = solve_upper(L.T, solve_lower(L, b[:, None]))[:, 0]
    expected = exactly(A.tolist(), b.tolist())
    assert x.dtype == np.longdouble
    # componentwise: the condition number, 2 (N + 1) roundings for each of the factor and the two solves
    assert np.abs(x / expected - 1).max() < 6 * N * np.linalg.cond(A.astype(float)) * EPS


def test_small_pivots_keep_their_digits():
    """In float64, too: NumPy's own solve exchanges rows, and was 1e-11 off where a light link follows a heavy one."""
    L = np.array([[7.0, 0, 0], [1e-3, 1e-6, 0], [3.0, 1e-7, 3e-9]])
    b = np.array([1.0, 2e-4, 0.5])
    whole = [[Fraction(x) for x in row] for row in L.tolist()]
    expected = exactly(whole, [Fraction(x) for x in b.tolist()])
    x = NUMPY.solve_lower(L, b[:, None])[:, 0]
    # substitution is backward stable row by row: |dx| <= (3 n + 2) eps |L^-1| |L| |x|
    bound = (3 * 3 + 2) * 2**-53 * np.abs(np.linalg.inv(L)) @ np.abs(L) @ np.abs(x)
    assert (np.abs(x - expected) <= bound).all()
    assert (np.abs(NUMPY.solve_upper(L[::-1, ::-1], b[::-1, None])[::-1, 0] - expected) <= bound).all()


def test_a_matrix_that_is_not_definite_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(np.array([[1, 2], [2, 1]], dtype=np.longdouble))


def test_algorithms_run_in_the_longest_type():
    """What LAPACK does elsewhere: accelerations by sweeps are those by the mass matrix, to its rounding."""
    model = chain(6)
    q, v, tau = (np.asarray(x, dtype=np.longdouble)[:, None] for x in (model.random_q(1), np.ones(6), np.arange(6.0)))
    motion = Motion(model, q, v, LONGER)
    M = crba(motion)
    factor = LONGER.factor_spd(M)
    a = factor.solve(tau - rnea(motion, None))
    found = aba(motion, tau)
    condition = np.linalg.cond(M.astype(float))
    assert a.dtype == np.longdouble
    assert np.abs(found - a).max() <= 100 * condition * EPS * np.abs(a).max()
