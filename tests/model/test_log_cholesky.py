"""Log-Cholesky parameters: there and back, always a body, and what has none."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError
from linkwork.robots.mechanisms import humanoid


def test_there_and_back() -> None:
    inertia = humanoid().parameters().inertia
    x = lw.log_cholesky(inertia)
    np.testing.assert_allclose(lw.from_log_cholesky(x), inertia, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.exp(2 * x[:, 0]), inertia[:, 0], rtol=1e-12)  # mass
    np.testing.assert_allclose(x[:, 7:], inertia[:, 1:4] / inertia[:, :1], atol=1e-12)  # centre


def test_any_ten_numbers_are_a_body() -> None:
    x = np.random.default_rng(0).normal(size=(50, 4, 10))
    for ten in lw.from_log_cholesky(x).reshape(-1, 10):
        body = lw.BodyInertia.from_parameters(ten)
        body.check("any")
        one, two, three = np.linalg.eigvalsh(body.I)
        assert body.mass > 0
        assert one > 0
        assert one + two > three * (1 - 1e-9)
    np.testing.assert_allclose(lw.log_cholesky(lw.from_log_cholesky(x)), x, atol=1e-9)


def test_what_is_no_body() -> None:
    point = lw.BodyInertia(1.0, np.array([0.1, 0, 0]), np.zeros((3, 3))).parameters
    with pytest.raises(InputError, match=r"1 of 2 .*entry 1"):
        lw.log_cholesky([lw.BodyInertia(1.0, np.zeros(3), np.eye(3)).parameters, point])
    with pytest.raises(InputError, match="ten numbers"):
        lw.from_log_cholesky(np.zeros(9))
