"""The functions of terms are functions like all others: batches, `out`, `bind`, pickles, C; and their own errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, random_model, random_state
from linkwork.functions.results import FrameJacobianResult

MODEL = random_model(3, 4, ("revolute", "prismatic"), base="free")
Q, V, A = random_state(MODEL, 3)


@pytest.fixture(scope="module")
def function():
    return lw.terms(MODEL, ["M", "J", "c"], ["f3", "f1"], reference="world_aligned")


def test_results_have_names_shapes_and_one_class(function):
    found = function(Q, V)
    assert found._fields == ("M", "J", "c")
    assert (found.M.shape, found.J.shape, found.c.shape) == ((MODEL.nv,) * 2, (2, 6, MODEL.nv), (MODEL.nv,))
    assert type(found) is type(lw.terms(MODEL, ("M", "J", "c"), "f1", backend="numpy")(Q, V))
    batch = function(np.stack([Q, Q, Q]), V)
    assert_close(batch.J[2], found.J, c=0)


def test_one_frame_has_no_axis_of_frames():
    many, one = (lw.frame_jacobian(MODEL, f, backend="numpy")(Q) for f in (["f3"], "f3"))
    assert isinstance(one, FrameJacobianResult)
    assert one.J.shape == (6, MODEL.nv)
    assert_close(many.J[0], one.J, c=0)
    place = lw.forward_kinematics(MODEL, "f3")(np.stack([Q, Q]))
    assert (place.positions.shape, place.rotations.shape) == ((2, 3), (2, 3, 3))


def test_out_bind_and_pickles(function):
    found = function(Q, V)
    out = tuple(np.zeros_like(x) for x in found)
    function(Q, V, out=out)
    bound = function.bind()
    bound.inputs.q[:], bound.inputs.v[:] = Q, V
    copies = [out, bound(), pickle.loads(pickle.dumps(function))(Q, V), pickle.loads(pickle.dumps(found))]
    for copy in copies:
        for x, y in zip(copy, found, strict=True):
            assert_close(x, y, c=0)
    assert type(copies[-1]) is type(found)


def test_c_and_casadi(function):
    assert "double" in function.c_source()
    traced = function.casadi()
    assert (traced.name_in(), traced.name_out()) == (["q", "v"], ["M", "J", "c"])


@pytest.mark.parametrize(
    ("names", "frames", "message"),
    [
        ([], (), "at least one"),
        ("Q", (), "no term called 'Q'"),
        ("J", (), "term of frames"),
        ("M", ["f1"], "none of these"),
        ("J", ["f9"], "no frame called 'f9'"),
    ],
)
def test_errors_say_what_is_valid(names, frames, message):
    with pytest.raises(lw.LinkworkError, match=message):
        lw.terms(MODEL, names, frames)
    with pytest.raises(lw.LinkworkError, match="world_aligned"):
        lw.frame_velocity(MODEL, "f1", reference="aligned")


def test_derivatives_of_classical_accelerations_are_named_as_these_are() -> None:
    f = lw.frame_acceleration(lw.robots.mechanisms.chain(2), "linktip", classical=True, backend="numpy")
    assert f.derivatives(["a"])(*np.zeros((3, 2)))._fields == ("daccelerations_da",)
