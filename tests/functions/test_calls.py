"""One call protocol: results of one class for each task, native calls, out=, bind(), pickles; constructing is cheap."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import time
import weakref
from types import BuiltinFunctionType

import numpy as np
import pytest

import linkwork as lw
from linkwork.algorithms import registry
from linkwork.errors import InputError, NotFound, UnsupportedError
from linkwork.functions import results
from linkwork.functions.function import Function
from linkwork.functions.method_choice import Choice
from linkwork.robots.mechanisms import chain, four_bar, quadruped

BACKENDS = ("numpy", "casadi", "kernel")


@pytest.fixture(scope="module")
def model() -> lw.Model:
    return quadruped().with_constraints(lw.point("front_left_foot"), lw.point("rear_right_foot"))


def state(model: lw.Model, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return model.random_q(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)


def every(model: lw.Model) -> dict[str, tuple[Function, tuple[np.ndarray, ...], type]]:
    """Each factory's function, with inputs and the class of its results."""
    q, v, tau = state(model)
    b = np.ones(model.rows)
    free = quadruped()
    cid = lw.constrained_inverse_dynamics(model, [l.joint_name for l in model.links[1:]])
    a = lw.forward_dynamics(model)(q, v, tau).a
    return {
        "forward": (lw.forward_dynamics(model), (q, v, tau), results.ForwardDynamicsResult),
        "direct": (lw.forward_dynamics(model, method="ltl"), (q, v, tau), results.ForwardDynamicsResult),
        "free": (lw.forward_dynamics(free), (q, v, tau), results.ForwardDynamicsResult),
        "forces": (
            lw.forward_dynamics(model, external_forces=True, modes=True),
            (q, v, tau),
            results.ForwardDynamicsResult,
        ),
        "impulse": (lw.impulse(model), (q, v), results.ImpulseResult),
        "inverse": (lw.inverse_dynamics(free), (q, v, tau), results.InverseDynamicsResult),
        "constrained inverse": (cid, (q, v, a), results.ConstrainedInverseDynamicsResult),
        "mass matrix": (lw.mass_matrix(model), (q,), results.MassMatrixResult),
        "entries": (lw.mass_matrix(model, packed=True), (q,), results.MassEntriesResult),
        "jacobian": (lw.constraint_jacobian(model), (q,), results.ConstraintJacobianResult),
        "error": (lw.constraint_error(model), (q, v), results.ConstraintErrorResult),
        "kinematics": (lw.forward_kinematics(model), (q,), results.ForwardKinematicsResult),
        "delassus": (lw.delassus(model), (q,), results.DelassusResult),
        "operator": (lw.delassus(model, method="pv_fast"), (q, b), results.DelassusOperatorResult),
        "inertia": (lw.operational_space_inertia(model), (q, b), results.OperationalSpaceInertiaResult),
    }


def parts(result) -> list[np.ndarray]:
    more = ("iterations", "residual", "converged") if isinstance(result, results.Solution) else ()
    return [*result, *(getattr(result, n) for n in more)]


def test_every_function_has_one_native_path_with_one_class(model) -> None:
    for name, (f, inputs, kind) in every(model).items():
        first = f(*inputs)
        assert type(first) is kind, name
        assert isinstance(type(f).__call__, BuiltinFunctionType), f"{name} is not native"
        direct = f.kernel.finite()(*inputs)
        assert type(direct) is kind, f"{name} is not native"
        rows = [np.stack([x, x, x]) for x in inputs]
        batch, by_name = f(*rows), f(**dict(zip(f.inputs, inputs, strict=False)))
        assert type(batch) is type(by_name) is kind, name
        for one, again, several, other in zip(*map(parts, (direct, first, batch, by_name)), strict=True):
            assert one.shape == again.shape == other.shape == several.shape[1:], name
            np.testing.assert_array_equal(one, again)
            np.testing.assert_array_equal(one, other)
            np.testing.assert_allclose(several[2], one, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("method", ["prox_pv", "pv", "ltl", "kkt", None])
def test_forward_dynamics_gives_the_same_fields_whatever_the_method(model, method, backend) -> None:
    q, v, tau = state(model)
    fd = lw.forward_dynamics(model, method=method, backend=backend)
    for lead, result in (((), fd(q, v, tau)), ((2,), fd(np.stack([q, q]), v, tau))):
        a, lam = result
        assert result.a is a
        assert result.lam is lam
        assert len(result) == 2
        assert result.iterations.shape == result.residual.shape == result.converged.shape == lead
        assert result.iterations.dtype.kind == "i"
        assert (result.iterations >= 1).all()
        assert result.converged.all()
        assert (result.residual < 1e-7).all()
        assert "residual=" in repr(result)


def test_the_residual_of_a_direct_method_is_that_of_its_rows(model) -> None:
    """Also with modes, soft rows and impulses: |J a - k|, |J a + R lam - k|, |J v+ + e J v|."""
    q, v, tau = state(model)
    J = lw.constraint_jacobian(model)(q).J
    fd = lw.forward_dynamics(model, method="ltl")
    result = fd(q, v, tau)
    assert result.residual < 1e-9
    result.a[0] += 1e-3
    assert result.residual == pytest.approx(1e-3 * np.abs(J[:, 0]).max(), rel=1e-5)
    soft = lw.forward_dynamics(model, method="ltl_soft", R=1e-2)(q, v, tau)
    assert soft.residual < 1e-9
    switched = lw.forward_dynamics(model, method="ltl_soft", R=1e-2, modes=True)(q, v, tau, np.array([1.0, 0.0]))
    assert switched.residual < 1e-9
    jump = lw.impulse(model, method="ltl", restitution=0.5)(q, v)
    assert jump.residual < 1e-9
    assert np.abs(J @ (jump.v_after + 0.5 * v)).max() < 1e-9
    assert lw.forward_dynamics(quadruped())(q, v, tau).residual == 0


def test_results_hold_their_inputs_only_as_long_as_they_live(model) -> None:
    q, v, tau = state(model)
    fd = lw.forward_dynamics(model, method="ltl")
    fd(q, v, tau)

    def counts() -> list[int]:
        return [sys.getrefcount(x) for x in (q, v, tau, fd.rows)]

    gc.collect()
    before = counts()
    found = [fd(q, v, tau) for _ in range(100)]
    assert counts() == [before[0] + 100, before[1] + 100, before[2], before[3] + 100]
    del found
    assert counts() == before


@pytest.mark.parametrize("backend", ["numpy", "kernel"])
@pytest.mark.parametrize("method", ["prox_pv", "ltl"])
def test_results_are_written_where_one_asks_for_them(model, backend, method) -> None:
    q, v, tau = state(model)
    fd = lw.forward_dynamics(model, method=method, backend=backend)
    for inputs in ((q, v, tau), (np.stack([q, q]), np.stack([v, -v]), tau)):
        expected = fd(*inputs)
        a, lam = np.empty_like(expected.a), np.empty_like(expected.lam)
        for out in ((a, lam), [a, lam], fd(*inputs)):
            result = fd(*inputs, out=out)
            assert all(x is y for x, y in zip(result, out, strict=True))
            for x, y in zip(parts(result), parts(expected), strict=True):
                np.testing.assert_array_equal(x, y)
    with pytest.raises(InputError, match="out= for 'lam'"):
        fd(q, v, tau, out=(np.empty(model.nv), np.empty(1)))
    with pytest.raises(InputError, match="NaN"):
        fd(q * np.nan, v, tau, out=(np.empty(model.nv), np.empty(model.rows)))
    M = np.empty((model.nv, model.nv))
    assert lw.mass_matrix(model, backend=backend)(q, out=M).M is M


@pytest.mark.parametrize("batch", [None, 5])
def test_bound_functions_work_on_fixed_buffers(model, batch) -> None:
    q, v, tau = state(model)
    for method in ("prox_pv", "ltl"):
        fd = lw.forward_dynamics(model, method=method)
        bound = fd.bind(batch)
        assert bound.inputs._fields == ("q", "v", "tau")
        for buffer, x in zip(bound.inputs, (q, v, tau), strict=True):
            buffer[...] = x
        found, expected = bound(), fd(q, v, tau)
        assert found is bound.outputs
        for x, y in zip(parts(found), parts(expected), strict=True):
            np.testing.assert_allclose(x if batch is None else x[-1], y, rtol=1e-9, atol=1e-10)
    with pytest.raises(InputError, match="backend='kernel'"):
        lw.mass_matrix(model, backend="numpy").bind()
    with pytest.raises(InputError, match="batch"):
        fd.bind(-1)


def test_settings_of_a_method_are_no_inputs_and_defaults_may_be_left_out(model) -> None:
    q, v, tau = state(model)
    fd = lw.forward_dynamics(model, method="prox_pv", external_forces=True, modes=True)
    expected = fd(q, v, tau)
    forces = np.zeros(6 * model.nlinks)
    for inputs in ((q, v, tau), (q, v, tau, forces), (q, v, tau, forces, np.ones(2))):
        assert np.array_equal(fd.kernel.finite()(*inputs).a, expected.a)
    with pytest.raises(InputError, match="takes 5 inputs"):
        fd(q, v, tau, forces, np.ones(2), np.ones(1))
    with pytest.raises(InputError, match="needs tau too"):
        fd(q, v)


def test_what_has_not_converged_goes_the_slow_way(model) -> None:
    q, v, tau = state(model)
    fd = lw.forward_dynamics(model, method="prox_pv", prox=lw.Prox(mu=10.0, max_iterations=1))
    for inputs in ((q, v, tau), (np.stack([q, q]), v, tau)):
        for _ in range(2):
            with pytest.warns(lw.errors.ConvergenceWarning, match="has not converged"):
                assert not fd(*inputs).converged.any()
    assert fd.kernel.finite()(q, v, tau) is None


def test_a_native_function_is_like_any_other() -> None:
    """It has a class of its own, which nobody sees, and dies when it is dropped."""
    fd, q = lw.forward_dynamics(chain(2)), np.zeros(2)
    kind, expected = type(fd), fd(q, q, q).a
    assert type(fd) is not kind
    assert (isinstance(fd, kind), type(fd).__name__, type(fd).__doc__) == (True, kind.__name__, kind.__doc__)
    for again in (fd(q, q, tau=q), fd(q.tolist(), q, q), fd(q, q, q, out=[np.empty(2), np.empty(0)])):
        np.testing.assert_array_equal(again.a, expected)
    with pytest.raises(lw.LinkworkError, match="q"):
        fd(np.full(2, np.nan), q, q)
    with pytest.raises(InputError, match="takes 3 inputs"):
        fd(q, q, q, q)
    assert lw.forward_dynamics(chain(2))(q, q, q).a.shape == (2,)
    gone = weakref.ref(fd)
    del fd
    gc.collect()
    assert gone() is None


def test_functions_pickle_and_copy(model) -> None:
    q, v, tau = state(model)
    fd = lw.forward_dynamics(model, use="batch", external_forces=True)
    for again in (pickle.loads(pickle.dumps(fd)), copy.deepcopy(fd), copy.copy(fd)):
        assert again.choice.settled is None
        assert again.inputs == fd.inputs
    expected, method = fd(q, v, tau), fd.method
    for again in (pickle.loads(pickle.dumps(fd)), copy.deepcopy(fd)):
        assert again.choice.settled == method
        assert np.array_equal(again(q, v, tau).a, expected.a)
    for name, (f, inputs, kind) in every(model).items():
        again = pickle.loads(pickle.dumps(f))
        assert type(again(*inputs)) is kind, name
    result = pickle.loads(pickle.dumps(lw.forward_dynamics(model, method="ltl")(q, v, tau)))
    assert isinstance(result, results.ForwardDynamicsResult)
    assert result.converged
    with pytest.raises(pickle.PicklingError, match="body of its own"):
        pickle.dumps(Function("twice", model, {"v": model.nv}, lambda xp, x: {"w": 2 * x["v"]}))


# constructing


def test_constructing_plans_and_traces_nothing(model) -> None:
    fd = lw.forward_dynamics(model)
    assert "to be planned" in repr(fd)
    made = [f(model) for f in (lw.impulse, lw.delassus, lw.mass_matrix, lw.operational_space_inertia)]
    for f in (fd, *made, lw.forward_kinematics(model)):
        assert not {"program", "_cached_program", "kernel"} & vars(f).keys()
        assert not isinstance(f.choice, Choice) or "plan" not in vars(f.choice)
    assert fd.method in repr(fd)
    with pytest.raises(NotFound, match="abba"):
        lw.forward_dynamics(model, method="abba")
    with pytest.raises(UnsupportedError, match="'aba' cannot handle"):
        lw.forward_dynamics(four_bar(), method="aba")
    with pytest.raises(InputError, match="does not iterate"):
        lw.forward_dynamics(model, method="ltl", prox=lw.Prox())
    with pytest.raises(InputError, match="does not iterate"):
        lw.forward_dynamics(chain(2), prox=lw.Prox())


def test_constructing_takes_no_time(model) -> None:
    lw.forward_dynamics(model)
    took = []
    for _ in range(5):
        begin = time.process_time()
        lw.forward_dynamics(model)
        took.append(time.process_time() - begin)
    assert min(took) < 5e-3


def test_a_method_is_chosen_by_prediction_and_explained(model) -> None:
    unmeasured = chain(2).with_gravity((0.0, 0.1, -9.7))  # plans that were measured are kept on disk
    fd = lw.forward_dynamics(unmeasured)
    assert not fd.plan.measured
    assert fd.method == fd.plan.method == lw.plan(unmeasured).method
    assert fd.method in fd.explain()
    held = lw.forward_dynamics(model, independent=True, prox=lw.Prox(mu=1e6))
    assert held.prox == lw.Prox(mu=1e6)
    assert registry.methods("forward_dynamics")[held.method].prox is not None
    with pytest.raises(InputError, match="nothing to plan"):
        _ = lw.forward_kinematics(model).plan


def test_a_choice_is_one_of_the_registry(model) -> None:
    assert Choice("mass_matrix", None, model).method.name == "crba"
    with pytest.raises(NotFound, match="no mass matrix method"):
        Choice("mass_matrix", "rnea", model)


WAIT = """
import sys, time
from linkwork import progress_line
progress_line.PATIENCE = 0.05
with progress_line.waiting("compiling"):
    time.sleep(0.3)
with progress_line.waiting("nothing"):
    pass
time.sleep(0.2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_a_terminal_is_told_what_takes_long_and_a_file_is_not() -> None:
    quiet = subprocess.run([sys.executable, "-c", WAIT], capture_output=True, text=True, check=True)
    assert quiet.stderr == ""
    master, slave = os.openpty()
    try:
        subprocess.run([sys.executable, "-c", WAIT], stdout=subprocess.DEVNULL, stderr=slave, check=True)
        assert os.read(master, 1000).decode().strip() == "linkwork: compiling ..."
    finally:
        os.close(master)
        os.close(slave)


def test_a_function_that_nobody_holds_goes(model) -> None:
    q, v, tau = state(model)
    fd = lw.forward_dynamics(model, method="ltl")
    fd(q, v, tau)
    gone = weakref.ref(fd)
    del fd
    gc.collect()
    assert gone() is None
