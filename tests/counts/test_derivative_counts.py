"""Operation counts of derivatives: half of plain forward differentiation and less."""

from __future__ import annotations

import pytest

import linkwork as lw
from linkwork.errors import LinkworkError


@pytest.fixture(scope="module")
def talos():
    try:
        return lw.load("talos_reduced", base="free")
    except LinkworkError as problem:
        pytest.skip(f"talos_reduced is in example-robot-data, which is not installed: {problem}")


@pytest.fixture(scope="module")
def standing(talos):
    return talos.with_constraints(lw.surface("leg_left_6_link"), lw.surface("leg_right_6_link"))


BOUNDS = {"rnea": 29_850, "forward": 101_200, "vjp": 18_900, "constrained vjp": 27_400}


@pytest.mark.parametrize("name", BOUNDS)
def test_talos(talos, standing, name):
    """Straight-line code takes as many operations for forward, as much time in batches, and longer to compile.

    rnea: 61 700 by plain forward differentiation (35 900 by q and 41 400 by v, apart); aba: 201 400."""
    function = {
        "rnea": lambda: lw.inverse_dynamics(talos).derivatives(("q", "v")),
        "forward": lambda: lw.forward_dynamics(talos, method="aba").derivatives(),
        "vjp": lambda: lw.forward_dynamics(talos, method="aba").vjp(),
        "constrained vjp": lambda: lw.forward_dynamics(standing, method="pv_early").vjp(),
    }[name]()
    assert function.operations <= BOUNDS[name]
    assert function.operations > 0.9 * BOUNDS[name], "well below the bound: lower it"


def test_reverse_products_take_less_than_three_times_the_operations(talos, standing):
    for model in (talos, standing):
        f = lw.forward_dynamics(model)
        assert f.vjp().operations <= 2.7 * f.operations


def test_derivatives_of_rnea_take_half_the_operations(talos):
    from linkwork.kernels.programs.differentiate import jacobian

    f = lw.inverse_dynamics(talos, frames="given")
    plain = sum(jacobian(f.program, "tau", n).operations for n in ("q", "v"))
    assert lw.inverse_dynamics(talos).derivatives(("q", "v")).operations <= plain / 2
