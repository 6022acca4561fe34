"""Arguments as users give them first: NumPy's types, a bare ratio, one name instead of a list."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError, NotFound
from linkwork.robots.mechanisms import arm, chain, four_bar


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32")])
def test_precisions_of_numpy(dtype) -> None:
    assert lw.mass_matrix(chain(2), dtype=dtype)(np.zeros(2)).M.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.int32, np.dtype("float16"), float, int, "double"])
def test_other_types_are_refused(dtype) -> None:
    with pytest.raises(NotFound, match="Valid: 'float64', 'float32'"):
        lw.mass_matrix(chain(2), dtype=dtype)


def test_a_ratio_is_a_list_of_one_coefficient() -> None:
    assert lw.Coupling("a", {"b": 6}) == lw.Coupling("a", {"b": [6.0]})
    with pytest.raises(InputError, match="a list of finite numbers or a finite number"):
        lw.Coupling("a", {"b": "6"})


def test_one_name_is_a_list_of_it() -> None:
    model, q = arm(3), np.array([0.3, 0.5, 0.7])
    there = lw.forward_kinematics(model, "tool")(q).positions
    found = lw.ik(model, {"tool": there}, q, locked="link1_joint")
    np.testing.assert_array_equal(found.q, lw.ik(model, {"tool": there}, q, locked=["link1_joint"]).q)
    assert lw.mass_matrix(model).derivatives(wrt="q")(q)[0].shape == (3, 3, 3)
    assert lw.constrained_inverse_dynamics(four_bar(), "crank_joint").program.outputs[0].name == "tau"


def test_a_constraint_that_is_not_there() -> None:
    model = four_bar()
    assert model.row_span(0) == model.row_span(-1) == (0, model.constraints[0].rows)
    for n in (1, -2):
        with pytest.raises(InputError, match="no constraint"):
            model.row_span(n)
