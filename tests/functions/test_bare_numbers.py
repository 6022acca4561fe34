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


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bare_numbers_take_the_native_path(dtype: str) -> None:
    fd = lw.forward_dynamics(mech.chain(1), dtype=dtype)
    for number in (0.1, np.float64(0.3), 2, -0.0, 0, -3):
        as_arrays = fd(np.full(1, 0.2, dtype), np.full(1, number, dtype), np.full(1, number, dtype))
        native = fd.kernel.finite()(np.full(1, 0.2, dtype), number, number)
        np.testing.assert_array_equal(native.a, as_arrays.a)
        assert native.residual == 0


def test_bare_numbers_that_machine_code_leaves_to_python() -> None:
    """Python tells the number -1 from its error value, and says why others are invalid."""
    fd, entry = lw.forward_dynamics(mech.chain(1)), np.full(1, -1.0)
    expected = fd(entry, entry, entry).a
    for number in (-1, np.float32(-1), np.int64(-1), np.array(-1), [-1], (-1.0,)):
        assert fd.kernel.finite()(number, number, number) is None
        np.testing.assert_array_equal(fd(number, number, number).a, expected)
    np.testing.assert_array_equal(fd(-1, entry, 1).a, fd(entry, entry, -entry).a)
    for wrong in (10**400, "0.3", None, True, 1j, [0.1, 0.2]):
        with pytest.raises(InputError, match="'tau'"):
            fd(entry, entry, wrong)


def test_results_with_bare_numbers_have_residuals() -> None:
    """A direct method computes them from the inputs of the call."""
    fd = lw.forward_dynamics(mech.chain(1).with_constraints(lw.Coupling("link1_joint", {})), method="kkt")
    assert fd(np.ones(1), np.ones(1), np.ones(1)).residual < 1e-12
    found = fd.kernel.finite()(1.0, 1, np.float64(1.0))
    found.a[0] += 0.5
    assert found.residual == pytest.approx(0.5)


def of_one_state() -> dict[str, Any]:
    x = np.array([0.25, 0.5])
    frozen = x.view()
    frozen.flags.writeable = False
    unaligned = np.frombuffer(b"-" + x.tobytes(), np.uint8)[1:].view(float)
    return {
        "a list": [0.25, 0.5], "a tuple": (0.25, 0.5), "strided": np.repeat(x, 2)[::2], "float32": x.astype("float32"),
        "read-only": frozen, "unaligned": unaligned, "numbers of NumPy": list(x), "big-endian": x.astype(">f8"),
        "0-d arrays": [np.array(0.25), np.array(0.5)], "a matrix's row": np.ma.array(x),
    }  # fmt: skip


@pytest.mark.parametrize("given", of_one_state())
def test_inputs_of_one_state_take_the_native_path_once_converted(given: str) -> None:
    x, array = of_one_state()[given], np.array([0.25, 0.5])
    fd = lw.forward_dynamics(mech.chain(2))
    expected = fd(array, array, array)

    def general(*_: Any) -> Any:
        raise AssertionError("the general way, with a task and its threads, was taken")

    fd.kernel._general = general  # type: ignore[method-assign]
    for found in (fd(x, x, x), fd(array, x, array), fd(x, v=array, tau=x), fd(x, x, x, out=fd(array, array, array))):
        np.testing.assert_array_equal(found.a, expected.a)
