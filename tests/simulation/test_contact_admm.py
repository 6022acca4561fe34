"""ADMM for contacts: right where the other methods are, and where sweeps run in circles."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import EPS
from linkwork.algorithms.common.tridiagonal import Tridiagonal
from linkwork.backends.numpy_ import NUMPY
from linkwork.errors import ConvergenceWarning
from linkwork.model import Limits
from linkwork.robots.mechanisms import quadruped

CYCLING = (-4.9, 3.1, -0.1, -2.0, 0.0, 2.0, 2.5, 0.1, 2.3, -3.1, 2.5, 1.9, 1.6, 0.4, -3.4, 1.3, -0.2, -2.5)
"""A velocity near which straight legs that hit the ground make sweeps cycle in one state of fifteen."""


@pytest.mark.parametrize("size", [1, 2, 3, 12])
@pytest.mark.parametrize("rank", [0, 1, 7])
def test_solves_by_tridiagonal_form(size: int, rank: int) -> None:
    rng = np.random.default_rng(size)
    B, b = rng.standard_normal((size, rank)), rng.standard_normal((size, 1))
    A = B @ B.T
    form = Tridiagonal(A, NUMPY)
    for rho in (1e-3, 1.0):
        x, right = form.solve(rho, b), np.linalg.solve(A + rho * np.eye(size), b)
        kappa = 1 + np.linalg.norm(A, 2) / rho
        assert np.abs(x - right).max() <= 100 * size * kappa * EPS * np.abs(right).max()


def test_columns_that_are_nearly_zero() -> None:
    """Not reflected, whether their squares are numbers or not."""
    for tiny in (1e-320, 1e-160, 1e-100, 1e-18):
        A = np.diag([1.3, 1.2, 0.4, 1.0]) + tiny * (np.ones((4, 4)) - np.eye(4))
        x = Tridiagonal(A, NUMPY).solve(1.0, np.ones((4, 1)))
        assert x[:, 0] == pytest.approx(1 / (np.diag(A) + 1), abs=10 * EPS)


def test_states_in_which_sweeps_cycle() -> None:
    model, rng = quadruped(), np.random.default_rng(0)
    feet = [n for n in model.frames if n.endswith("foot")]
    contacts = [lw.Contact(n, friction=0.6) for n in feet]
    q, tau = model.neutral(), np.zeros(model.nv)
    q[2] -= lw.forward_kinematics(model, feet)(q).positions[:, 2].min()
    v = np.array(CYCLING) + 0.3 * rng.standard_normal((60, model.nv))
    with pytest.warns(ConvergenceWarning):
        swept = lw.step(model, contacts, method="gauss_seidel")(q, v, tau, [1e-3])
    hard, easy = np.flatnonzero(~swept.converged)[:2], np.flatnonzero(swept.converged)[:2]
    after = lw.step(model, contacts, method="admm", backend="numpy")(q, v[[*hard, *easy]], tau, [1e-3])
    assert len(hard) == 2
    assert after.converged.all()
    assert np.abs(after.v[2:] - swept.v[easy]).max() < 1e-6 * np.abs(after.v).max()


def test_kernels_and_numpy_agree() -> None:
    """A cube on three points (on four, forces are not unique) and a hinge with limits; every lane has its own rho."""
    b = lw.Builder("cube")
    b.link("cube", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3) / 600))
    b.link(
        "lever",
        joint="revolute",
        axis="y",
        inertia=lw.BodyInertia(0.1, (0.1, 0, 0), 1e-3 * np.eye(3)),
        limits=Limits(-0.1, 0.1),
    )
    model, rng = b.build(), np.random.default_rng(1)
    corners = [lw.Contact("cube", (x, y, -0.05), friction=0.5) for x, y in ((-0.05, 0), (0.05, -0.05), (0.05, 0.05))]
    q = np.tile([0, 0, 0.05, 0, 0, 0, 1, 0.0999], (6, 1))
    v, tau = rng.standard_normal((6, 7)) * [1, 1, 0.1, 0.1, 0.1, 1, 3], np.zeros(7)
    native, reference, others = (
        lw.step(model, corners, method=m, backend=by)(q, v, tau, [1e-3])
        for m, by in (("admm", "kernel"), ("admm", "numpy"), ("active_set", "numpy"))
    )
    assert native.converged.all()
    assert (native.iterations == reference.iterations).all()
    assert len(set(native.iterations)) > 1
    assert native.v == pytest.approx(reference.v, abs=1e-9)
    assert native.v == pytest.approx(others.v, abs=1e-6)
    again = lw.step(model, corners, method="admm")(q, v, tau, [1e-3], impulses=native.impulses)
    assert again.iterations.max() <= 2
