"""Sine and cosine against mpmath and extended precision, for every kind of target this machine can run."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from linkwork.kernels.codegen.lower import ATTRIBUTES
from linkwork.kernels.codegen.target import Target
from linkwork.kernels.codegen.vector_math import sincos_function
from linkwork.kernels.object_code.compile import Linked, emit

Pair = tuple[np.ndarray, np.ndarray]


def targets() -> list[str]:
    host = Target.host()
    narrower = ["avx2", "sse2"] if host.triple.startswith("x86_64") and host.register_bits >= 256 else []
    return ["host", *narrower]


def sincos(target_name: str, dtype: str) -> Callable[[np.ndarray], Pair]:
    target = Target.host() if target_name == "host" else Target.named(target_name)
    scalar, width = {"float64": "double", "float32": "float"}[dtype], target.lanes(dtype)
    code = Linked(emit([sincos_function(scalar, width, target.has_fma) + ATTRIBUTES], target), ["sincos_array"])
    pointer = ctypes.c_void_p
    native = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, ctypes.c_int64)(code.address("sincos_array"))

    def function(x: np.ndarray) -> Pair:
        padded = np.zeros(-(-x.size // 16) * 16, dtype)
        padded[: x.size] = x
        s, c = np.empty_like(padded), np.empty_like(padded)
        native(padded.ctypes.data, s.ctypes.data, c.ctypes.data, padded.size)
        assert code
        return s[: x.size], c[: x.size]

    return function


def points(dtype: str) -> np.ndarray:
    """Millions: everywhere, small, tiny, and next to every multiple of pi/4 below the limit."""
    rng = np.random.default_rng(1)
    multiples = np.arange(-127_000, 127_001) * (np.pi / 4)
    spread = [
        rng.uniform(-1e5, 1e5, 400_000),
        rng.uniform(-7, 7, 250_000),
        rng.choice([-1, 1], 50_000) * 10.0 ** rng.uniform(-30, 0, 50_000),
        multiples,
        multiples + rng.normal(size=multiples.size) * 1e-6,
    ]
    x = np.concatenate(spread).astype(dtype)
    big = np.dtype(dtype).type(np.inf)
    x = np.concatenate([x, np.nextafter(x[-multiples.size :], big), np.nextafter(x[-multiples.size :], -big)])
    return x[np.abs(x) < 1e5]


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs extended precision as the reference")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_two_units_in_the_last_place_on_millions_of_points(dtype: str) -> None:
    x = points(dtype)
    exact = [function(x.astype(np.longdouble)) for function in (np.sin, np.cos)]  # takes longest
    spacing = [np.spacing(np.abs(right).astype(dtype)).astype(np.longdouble) for right in exact]
    for target in targets():
        for found, right, unit in zip(sincos(target, dtype)(x), exact, spacing, strict=True):
            assert (np.abs(found.astype(np.longdouble) - right) <= 2 * unit).all(), target


@pytest.mark.parametrize("target", targets())
def test_multiples_of_half_pi_against_mpmath(target: str) -> None:
    multiples = np.arange(1, 63_662, 19) * (np.pi / 2)
    x = np.concatenate([multiples, -np.nextafter(multiples, 0)])
    results = sincos(target, "float64")(x)
    with mpmath.workprec(160):
        for function, values in zip((mpmath.sin, mpmath.cos), results, strict=True):
            for argument, value in zip(x, values, strict=True):
                exact = function(mpmath.mpf(float(argument)))
                assert abs(mpmath.mpf(float(value)) - exact) <= 2 * np.spacing(abs(float(exact)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("target", targets())
def test_huge_arguments_are_exact_too(target: str, dtype: str) -> None:
    x = np.array([1e5, -1e5, 100000.01, 1.7e7, -3e15, 1e22, 3e38], dtype)
    if dtype == "float64":
        x = np.append(x, [1e300, -np.finfo(float).max])
    s, c = sincos(target, dtype)(np.concatenate([x, [0.5]]).astype(dtype))
    with mpmath.workprec(1300):
        for k, argument in enumerate(x):
            for function, value in ((mpmath.sin, s[k]), (mpmath.cos, c[k])):
                exact = float(function(mpmath.mpf(float(argument))))
                assert abs(float(value) - exact) <= np.spacing(np.dtype(dtype).type(abs(exact)))
    assert abs(s[-1] - np.sin(0.5)) < 1e-7


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_infinities_nans_and_zeros(dtype: str) -> None:
    s, c = sincos("host", dtype)(np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-45, 0.25], dtype))
    assert np.isnan(s[:3]).all()
    assert np.isnan(c[:3]).all()
    np.testing.assert_array_equal(c[3:6], 1)
    np.testing.assert_array_equal(s[3:5], 0)
    np.testing.assert_allclose(s[6], np.sin(0.25), rtol=1e-6)
