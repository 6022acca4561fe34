"""What the factories give back and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, random_model, random_state
from linkwork.algorithms import registry
from linkwork.errors import InputError, NotFound, SingularError, UnsupportedError
from linkwork.model import BodyInertia, Builder

NUMPY = {"backend": "numpy"}


@pytest.fixture(scope="module")
def model():
    return random_model(0, 4, ("revolute", "spherical", "planar"), base="free")


@pytest.fixture
def state(model):
    return random_state(model, 0)


def test_results_are_named_and_batches_come_first(model, state):
    q, v, tau = state
    fd = lw.forward_dynamics(model, **NUMPY)
    one = fd(q, v, tau)
    a, lam = one
    assert (one.a is a, a.shape, lam.shape) == (True, (model.nv,), (0,))
    batch = fd(np.stack([q] * 3), v, np.stack([tau, tau, 2 * tau]))
    assert batch.a.shape == (3, model.nv)
    assert_close(batch.a[0], a, c=0)
    assert np.abs(batch.a[2] - a).max() > 0
    assert fd(q=q, v=v, tau=tau).a.tolist() == a.tolist()
    assert fd(q, tau=tau, v=v).a.tolist() == a.tolist()
    assert fd(list(q), tuple(v), tau).a.tolist() == a.tolist()


def test_matrices_keep_their_shape_for_one_degree_of_freedom_and_for_none():
    b = Builder()
    b.link("a", "world", "revolute", axis="y", inertia=BodyInertia(1.0, np.array([0, 0, -1.0]), np.eye(3)))
    one = b.build()
    assert lw.mass_matrix(one, **NUMPY)([0.1]).M.shape == (1, 1)
    assert lw.mass_matrix(one, **NUMPY)([[0.1], [0.2]]).M.shape == (2, 1, 1)
    held = one.with_constraints(lw.point("a"))
    assert lw.constraint_jacobian(held, **NUMPY)([0.1]).J.shape == (3, 1)
    assert lw.constraint_jacobian(one, **NUMPY)([0.1]).J.shape == (0, 1)
    for empty in (Builder().build(), b.build()):
        n = empty.nv
        assert lw.forward_dynamics(empty, **NUMPY)(np.zeros(n), np.zeros(n), np.zeros(n)).a.shape == (n,)


@pytest.mark.parametrize("backend", ["numpy", "casadi", "kernel"])
@pytest.mark.parametrize("method", ["aba", "crba_ltl", "kkt"])
def test_models_without_freedom_and_fixed_links_inside(backend, method):
    body = BodyInertia(1.0, np.ones(3), np.eye(3))
    b = Builder()
    b.link("plate", "world", "fixed", inertia=body)
    options = {"backend": backend, "method": method}
    still = b.build(merge_fixed=False)
    assert lw.forward_dynamics(still, **options)([], [], []).a.shape == (0,)
    b.link("arm", "plate", "revolute", inertia=body)
    b.link("tool", "arm", "fixed", inertia=body)
    apart, merged = b.build(merge_fixed=False), b.build()
    a, c = (lw.forward_dynamics(m, **options)([0.3], [0.2], [1.0]).a for m in (apart, merged))
    assert_close(a, c)


@pytest.mark.parametrize("backend", ["numpy", "casadi", "kernel"])
def test_an_empty_batch_is_a_batch(model, backend):
    """A kernel once wrote past the end of an empty array here."""
    nq, nv = model.nq, model.nv
    fd = lw.forward_dynamics(model, backend=backend)
    for _ in range(20):
        assert fd(np.zeros((0, nq)), np.zeros((0, nv)), np.zeros((0, nv))).a.shape == (0, nv)


def test_kinematics(model, state):
    q, *_ = state
    out = lw.forward_kinematics(model, ["f2", "world", "l0"], **NUMPY)(q)
    assert (out.positions.shape, out.rotations.shape) == ((3, 3), (3, 3, 3))
    assert_close(out.positions[1], np.zeros(3))
    assert_close(out.rotations[1], np.eye(3))
    assert_close(out.positions[2], q[:3])
    everything = lw.forward_kinematics(model, **NUMPY)(np.stack([q, q]))
    assert everything.rotations.shape == (2, model.nlinks, 3, 3)


def test_external_forces_are_a_fourth_input(model, state):
    q, v, tau = state
    with_forces = lw.forward_dynamics(model, external_forces=True, **NUMPY)
    assert with_forces.inputs["fext"] == 6 * model.nlinks
    zero = with_forces(q, v, tau, np.zeros(6 * model.nlinks)).a
    assert_close(zero, lw.forward_dynamics(model, **NUMPY)(q, v, tau).a, c=10)
    weight = np.zeros(6 * model.nlinks)
    weight[0] = 1.0
    assert np.abs(with_forces(q, v, tau, weight).a - zero).max() > 1e-3
    a = lw.inverse_dynamics(model, external_forces=True, **NUMPY)(q, v, tau, weight).tau
    b = lw.inverse_dynamics(model, **NUMPY)(q, v, tau).tau
    assert_close(b - a, np.eye(model.nv)[0])


def test_inputs_are_not_changed(model, state):
    q, v, tau = (np.array(x) for x in state)
    kept = [x.copy() for x in (q, v, tau)]
    for backend in ("numpy", "kernel"):
        lw.forward_dynamics(model, backend=backend)(q, v, tau)
    assert all(np.array_equal(x, y) for x, y in zip(kept, (q, v, tau), strict=True))


def test_the_function_says_what_it_is(model):
    fd = lw.forward_dynamics(model, method="crba_ltl", **NUMPY)
    assert fd.method == "crba_ltl"
    assert "crba_ltl" in repr(fd)
    assert "numpy" in repr(fd)
    assert lw.forward_dynamics(model).method == "aba"
    held = lw.forward_dynamics(model.with_constraints(lw.point("f1")))
    assert registry.methods("forward_dynamics")[held.method].rows != "none"
    assert fd.casadi().name_in() == ["q", "v", "tau"]
    assert fd.operations > 100
    assert "void random_0_mass_matrix(" in lw.mass_matrix(model).c_source()
    assert "void fd(" in lw.forward_dynamics(model.with_constraints(lw.point("f1"))).c_source("fd")


WRONG_CALLS = {
    "q too short": (lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)(q[1:], v, t), r"'q' has shape \(\d+,\)"),
    "v too long": (lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)(q, [*v, 0.0], t), r"this model needs.*\(batch"),
    "three axes": (lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)(q[None, None], v, t), "'q' has shape"),
    "scalar": (lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)(1.0, v, t), "'q' has shape"),
    "batches differ": (
        lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)(np.stack([q] * 2), np.stack([v] * 3), t),
        r"different batch sizes \[2, 3\]",
    ),
    "nan": (lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)(q, v * np.nan, t), "'v' has entries that are NaN"),
    "infinite": (lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)(q, v, t + np.inf), "'tau' has entries"),
    "text": (lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)("home", v, t), "'q' is not an array of numbers"),
    "complex": (lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)(q + 1j, v, t), "'q'"),
    "ragged": (lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)([[1.0], [1.0, 2.0]], v, t), "'q'"),
    "quaternion": (
        lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)(2 * q, v, t),
        r"quaternion \[x y z w\] of joint 'l0_joint' \(entries 3..6\) has length 2.*normalised",
    ),
    "too few": (lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)(q, v), r"needs tau too.*\(q, v, tau\)"),
    "too many": (lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)(q, v, t, t), "takes 3 inputs"),
    "twice": (lambda m, q, v, t: lw.forward_dynamics(m, **NUMPY)(q, v, t, q=q), "'q' is given twice"),
    "dtype on numpy": (lambda m, q, v, t: lw.forward_dynamics(m, dtype="float32", **NUMPY), "needs backend='kernel'"),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_wrong_inputs_are_refused(case, model, state):
    make, message = WRONG_CALLS[case]
    with pytest.raises(InputError, match=message):
        make(model, *state)


def test_planar_angles_must_be_a_cosine_and_a_sine():
    b = Builder()
    b.link("a", "world", "planar", inertia=BodyInertia(1.0, np.zeros(3), np.eye(3)))
    with pytest.raises(InputError, match=r"\[cos sin\] of joint 'a_joint'"):
        lw.mass_matrix(b.build(), **NUMPY)([0, 0, 1, 1])


def test_quaternions_are_checked_in_every_state_of_a_batch(model, state):
    q, v, tau = state
    bad = q.copy()
    bad[3:7] *= 1.01
    with pytest.raises(InputError, match=r"length 1\.01"):
        lw.forward_dynamics(model, **NUMPY)(np.stack([q, bad, q]), v, tau)


UNKNOWN = {
    "method": (lambda m: lw.forward_dynamics(m, method="abba"), "no forward dynamics method called 'abba'.*mean 'aba'"),
    "inverse method": (lambda m: lw.inverse_dynamics(m, method="aba"), "no inverse dynamics method.*'rnea'"),
    "backend": (lambda m: lw.mass_matrix(m, backend="numpi"), "no backend called 'numpi'.*'numpy'"),
    "dtype": (lambda m: lw.mass_matrix(m, dtype="float16"), "no dtype called 'float16'.*'float32'"),
    "frame": (lambda m: lw.forward_kinematics(m, ["f9"]), "no frame called 'f9'"),
    "input": (lambda m: lw.mass_matrix(m, **NUMPY)(p=[0.0]), "no input of mass_matrix called 'p'.*Valid: 'q'"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_unknown_names_list_the_valid_ones(case, model):
    make, message = UNKNOWN[case]
    with pytest.raises(NotFound, match=message):
        make(model)


def test_methods_that_cannot_handle_a_model_name_those_that_can(model):
    held = model.with_constraints(lw.point("f1"))
    with pytest.raises(UnsupportedError, match=r"'aba' cannot handle.*constraints.*Methods that can: .*'kkt'"):
        lw.forward_dynamics(held, method="aba")


def test_every_error_is_a_linkwork_error():
    from linkwork import errors

    kinds = [x for x in vars(errors).values() if isinstance(x, type) and issubclass(x, Exception)]
    assert all(issubclass(k, lw.LinkworkError) for k in kinds if not issubclass(k, Warning))
    assert issubclass(errors.NotFound, KeyError)
    assert issubclass(errors.InputError, ValueError)
    assert "pip install 'linkwork[view]'" in str(errors.MissingExtra("viser", "view", "the viewer"))
    assert str(errors.NotFound("plain text")) == "plain text"


@pytest.mark.parametrize("entry", registry.METHODS, ids=lambda m: f"{m.task}-{m.name}")
def test_every_registered_method_loads(entry):
    """Names are unique within a task only: `ltl` is one of forward dynamics and one of the Delassus matrix."""
    assert callable(entry.load())
    assert entry.summary
    assert "O(" in entry.cost


@pytest.mark.parametrize("backend", ["numpy", "casadi", "kernel"])
@pytest.mark.parametrize("method", ["aba", "crba_ltl", "kkt"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_joint_that_moves_no_inertia_is_told_not_answered(method, backend):
    """A point mass on the axis of its hinge: the mass matrix is zero, and so is no acceleration."""
    b = Builder()
    b.link("a", "world", "revolute", axis="z", inertia=BodyInertia(1.0, np.array([0, 0, 0.5])))
    with pytest.raises(SingularError, match="the joints 'a_joint' keep hardly any inertia"):
        lw.forward_dynamics(b.build(), method=method, backend=backend)([0.0], [0.0], [1.0])
