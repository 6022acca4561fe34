"""Inputs of one entry may be given as a bare number, in functions of one state and of batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwork as lw
from linkwork.checks import bare_as_entry
from linkwork.errors import InputError
from linkwork.robots import mechanisms as mech


@pytest.mark.parametrize("backend", ["kernel", "numpy"])
@pytest.mark.parametrize("bare", [1e-3, np.float64(1e-3), np.array(1e-3), np.float32(1e-3)], ids=lambda x: repr(x))
def test_the_time_of_a_step(backend: str, bare: Any) -> None:
    model = mech.chain(2)
    step, q, v = lw.step(model, [lw.Contact("linktip")], backend=backend), np.array([0.3, 0.4]), np.ones(2)
    expected = step(q, v, v, [float(bare)])
    for found in (step(q, v, v, bare), step(q, v, v, dt=bare)):
        np.testing.assert_array_equal(found.v, expected.v)
    many = step(np.array([q, q, q]), v, v, bare)
    assert many.v.shape == (3, 2)
    np.testing.assert_array_equal(many.v[2], expected.v)


@pytest.mark.parametrize("backend", ["kernel", "numpy", "casadi"])
def test_a_mechanism_with_one_joint(backend: str) -> None:
    fd = lw.forward_dynamics(mech.chain(1), backend=backend)
    expected = fd([0.3], [0.1], [2.0]).a
    assert expected.shape == (1,)
    np.testing.assert_array_equal(fd(0.3, 0.1, 2).a, expected)
    np.testing.assert_array_equal(fd(np.full((4, 1), 0.3), 0.1, 2).a, np.tile(expected, (4, 1)))


def test_weights_and_discrete_steps() -> None:
    model, q = mech.chain(3), np.ones(3)
    gradient = lw.energy(model, backend="numpy").vjp(["q"])
    np.testing.assert_array_equal(gradient(q, q, 0, 1.0).g_q, gradient(q, q, [0.0], [1.0]).g_q)
    step = lw.discrete_step(mech.chain(1), dt=1e-2)
    np.testing.assert_array_equal(step(0.3, 0.1, 2.0).v, step([0.3], [0.1], [2.0]).v)


def test_what_has_more_entries_takes_no_bare_number() -> None:
    fd = lw.forward_dynamics(mech.chain(2), backend="numpy")
    with pytest.raises(InputError, match=r"'q' has shape \(\); this model needs \(2,\)"):
        fd(0.3, [0.1, 0.1], [0.0, 0.0])
    with pytest.raises(InputError, match="NaN or infinite"):
        lw.forward_dynamics(mech.chain(1), backend="numpy")(float("nan"), 0.0, 0.0)
    assert bare_as_entry(np.array(3.0), (1, 1)).shape == ()


def test_empty_results_of_batches_have_strides_of_whole_numbers() -> None:
    """PyTorch refused forces of models without constraints, whose rows are of no bytes."""
    lam = lw.forward_dynamics(mech.chain(1))(np.full((3, 1), 0.3), 0.1, 2.0).lam
    assert lam.shape == (3, 0)
    assert all(stride % lam.itemsize == 0 for stride in lam.strides)
