"""Numbers with derivatives: every operation against 40 digits, in every backend, and what relations must not do."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from linkwork.backends import get
from linkwork.backends.jets import TIME, Jet
from linkwork.backends.ops import FUNCTIONS
from linkwork.kernels.programs.trace import trace

EPS = float(np.finfo(float).eps)

FORMS = {
    "sum": (lambda x, y: 2.0 + x - y + np.float64(3.0) - (1 - x), lambda x, y: 2 + x - y + 3 - (1 - x)),
    "product": (lambda x, y: 0.3 * x * y * 7, lambda x, y: mpmath.mpf(0.3) * x * y * 7),
    "quotient": (lambda x, y: x / y / 3 + 2 / y, lambda x, y: x / y / 3 + 2 / y),
    "signs": (lambda x, y: -x + abs(-y) + +x * abs(y), lambda x, y: -x + abs(-y) + x * abs(y)),
    "whole powers": (lambda x, y: x**0 + x**1 + x**2 * y + y**3 + x**-2, lambda x, y: 1 + x + x**2 * y + y**3 + x**-2),
    "powers": (lambda x, y: x**0.5 + y**1.7 + x**y + 2.0**x, lambda x, y: x**0.5 + y ** mpmath.mpf(1.7) + x**y + 2**x),
    "sqrt": (lambda x, y: np.sqrt(x * y), lambda x, y: mpmath.sqrt(x * y)),
    "hypot": (lambda x, y: np.hypot(x, y) + np.hypot(x, 2.0), lambda x, y: mpmath.hypot(x, y) + mpmath.hypot(x, 2)),
    "exp": (lambda x, y: np.exp(x * y), lambda x, y: mpmath.exp(x * y)),
    "log": (lambda x, y: np.log(x + y), lambda x, y: mpmath.log(x + y)),
    "sin": (lambda x, y: np.sin(x * y), lambda x, y: mpmath.sin(x * y)),
    "cos": (lambda x, y: np.cos(x - y), lambda x, y: mpmath.cos(x - y)),
    "tan": (lambda x, y: np.tan(x * y), lambda x, y: mpmath.tan(x * y)),
    "arcsin": (lambda x, y: np.arcsin(x * y), lambda x, y: mpmath.asin(x * y)),
    "arccos": (lambda x, y: np.arccos(x * y), lambda x, y: mpmath.acos(x * y)),
    "arctan": (lambda x, y: np.arctan(x * y), lambda x, y: mpmath.atan(x * y)),
    "sinh": (lambda x, y: np.sinh(x * y), lambda x, y: mpmath.sinh(x * y)),
    "cosh": (lambda x, y: np.cosh(x * y), lambda x, y: mpmath.cosh(x * y)),
    "tanh": (lambda x, y: np.tanh(x * y), lambda x, y: mpmath.tanh(x * y)),
    "arctan2": (
        lambda x, y: np.arctan2(x, y * y) + np.arctan2(y, 2.0),
        lambda x, y: mpmath.atan2(x, y * y) + mpmath.atan2(y, 2),
    ),
    "arrays": (
        lambda x, y: np.array([x, y]) @ np.array([[1.0, 2.0], [0.0, 3.0]]) @ np.sin(np.stack([y, x])),
        lambda x, y: x * mpmath.sin(y) + (2 * x + 3 * y) * mpmath.sin(x),
    ),
    "norm": (lambda x, y: np.linalg.norm(np.array([x, 2 * y, x * y])), lambda x, y: mpmath.norm([x, 2 * y, x * y])),
    "cross": (lambda x, y: np.cross(np.array([x, y, 1.0]), np.array([y, 2.0, x]))[0], lambda x, y: x * y - 2),
}
"""A function of two numbers as users write it, and for mpmath."""

AT, RATE, BEND = (0.7, 0.6), (0.4, -1.1), (0.3, 0.8)
"""x, y, and their derivatives by time."""


def jets(xp, columns) -> list[Jet]:
    return [Jet(xp, columns[0][k, 0], {k: 1.0, TIME: columns[1][k, 0]}, columns[2][k, 0]) for k in range(2)]


def read(jet: Jet) -> list:
    return [jet.x, jet.d.get(0, 0.0 * jet.x), jet.d.get(1, 0.0 * jet.x), 0.0 * jet.x if jet.dd is None else jet.dd]


def exact(f) -> list[float]:
    """The value, the derivatives by x and y, and the second derivative along the motion, from 40 digits."""
    with mpmath.workdps(40):
        x, y = map(mpmath.mpf, AT)
        along = [lambda t, k=k: AT[k] + t * mpmath.mpf(RATE[k]) + t * t * mpmath.mpf(BEND[k]) / 2 for k in range(2)]
        second = mpmath.diff(lambda t: f(along[0](t), along[1](t)), 0, 2)
        found = [f(x, y), mpmath.diff(f, (x, y), (1, 0)), mpmath.diff(f, (x, y), (0, 1)), second]
        return [float(z) for z in found]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("backend", ["numpy", "casadi", "tracing"])
def test_derivatives_to_40_digits(form: str, backend: str) -> None:
    f, judge = FORMS[form]
    given = [np.array(x)[:, None] for x in (AT, RATE, BEND)]
    if backend == "tracing":

        def body(xp, symbol):
            x = jets(xp, [symbol(n, 2) for n in ("q", "v", "a")])
            return {"y": xp.matrix([[z] for z in read(f(*x))])}

        (found,) = trace("jets", body).interpret(*(x[:, 0] for x in given))
    else:
        xp = get(backend)
        found = np.array([float(z) for z in read(f(*jets(xp, [xp.constant(x) for x in given])))])
    true = np.array(exact(judge))
    assert np.abs(found - true).max() <= 200 * EPS * max(1.0, np.abs(true).max())


def test_every_function_of_the_contract_is_reached() -> None:
    used = set()
    for form, _ in FORMS.values():
        spy = Spy(used)
        form(*jets(spy, [np.array(x)[:, None] for x in (AT, RATE, BEND)]))
    assert used == set(FUNCTIONS)


class Spy:
    """NumPy's backend, which notes the functions that are applied."""

    def __init__(self, used: set[str]) -> None:
        self.used = used

    def __getattr__(self, name: str):
        return getattr(get("numpy"), name)

    def apply(self, function: str, x):
        self.used.add(function)
        return get("numpy").apply(function, x)


def test_what_is_zero_by_structure_is_left_out() -> None:
    x, y = jets(get("numpy"), [np.array(z)[:, None] for z in (AT, RATE, BEND)])
    assert set((2.0 * x).d) == {0, TIME}
    assert set((x * y).d) == {0, 1, TIME}
    still = Jet(get("numpy"), np.float64(0.3))
    assert not (np.sin(still) * 3 + 1).d
    assert (still * still).dd is None


BRANCHES = {
    "comparison": lambda x: x if x > 0 else -x,
    "equality": lambda x: x == 0.0,
    "truth": lambda x: x or 1.0,
    "maximum": lambda x: np.maximum(x, 0.0),
    "math": math.sin,
    "float": float,
}


@pytest.mark.parametrize("form", BRANCHES)
def test_branches_are_refused_with_a_reason(form: str) -> None:
    with pytest.raises(TypeError, match="run once for all configurations"):
        BRANCHES[form](Jet(get("numpy"), np.float64(0.3), {0: 1.0}))


def test_strangers_are_left_to_themselves() -> None:
    x = Jet(get("numpy"), np.float64(0.3))
    for name in ("add", "sub", "rsub", "mul", "truediv", "rtruediv", "pow", "rpow"):
        assert getattr(x, f"__{name}__")("text") is NotImplemented
    assert repr(x).startswith("Jet(")
