"""Base parameters against lumping and singular values; identification against the robot that made the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, random_model
from linkwork.functions.identification.base_parameters import _stacked
from linkwork.functions.identification.physical_fit import from_log_cholesky_slope
from linkwork.io.zoo import find
from linkwork.model.body import Moments
from linkwork.model.log_cholesky import from_log_cholesky, log_cholesky
from linkwork.rewrite.inertia_lumping import lumped
from linkwork.robots import mechanisms

GROUPS = ("inertia", "damping", "joint_friction")


def lumped_moments(model: lw.Model, pi: np.ndarray) -> np.ndarray:
    """What lumping makes of parameters, which may be those of no body: masses, moments and inertias of all links."""
    bodies = []
    for x in pi.reshape(-1, 10):
        I = np.array([[x[4], x[5], x[7]], [x[5], x[6], x[8]], [x[7], x[8], x[9]]])
        bodies.append(Moments(x[0], np.zeros(3), I, x[1:4]))
    links = (replace(l, inertia=b) for l, b in zip(model.links[1:], bodies, strict=True))
    out = lumped(replace(model, links=(model.links[0], *links)))
    parts = [(l.inertia.mass, *l.inertia.first_moment, *l.inertia.about_origin.ravel()) for l in out.links[1:]]
    return np.concatenate(parts)


@pytest.mark.parametrize("seed", range(4))
def test_free_robots_have_the_base_parameters_that_lumping_leaves(seed):
    model = random_model(seed, 5, ("revolute", "prismatic", "spherical"), base="free", armature=False)
    T = np.array([lumped_moments(model, e) for e in np.eye(10 * model.nlinks)]).T
    base = lw.base_parameters(model)
    assert base.rank == np.linalg.matrix_rank(T)
    # both have the same null space: what lumping does not see no joint force shows
    assert_close(T @ base.unidentifiable, np.zeros((len(T), T.shape[1] - base.rank)), 1e3)


@pytest.mark.parametrize("make", [mechanisms.four_bar, lambda: mechanisms.geared_chain(2), lambda: mechanisms.chain(4)])
def test_base_parameters_are_all_that_forces_depend_on(make):
    model = make()
    base = lw.base_parameters(model)
    W = _stacked(model, ("inertia",))
    lengths = np.linalg.norm(W, axis=0)
    some = lengths > 1e-9 * lengths.max()
    s = np.linalg.svd(W[:, some] / lengths[some], compute_uv=False)
    assert base.rank == np.count_nonzero(s > 1e-9 * s[0])
    assert base.rank < W.shape[1]
    assert_close(W[:, base.columns] @ base.B, W, 1e3)
    # in states that were not used to find them
    q, v = lw.random_state(model, 77)
    a = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, np.ones(model.nv)).a
    Y = lw.regressor(model, backend="numpy")(q, v, a).Y
    assert_close(Y @ base.unidentifiable, np.zeros((model.nv, 10 * model.nlinks - base.rank)), 1e3)


def test_contacts_do_not_change_base_parameters():
    """Constraints outside clusters belong to tau, wherever they are among the others."""
    loop = mechanisms.four_bar()
    held = replace(loop, constraints=(lw.point(loop.links[2].name), *loop.constraints))
    assert_close(lw.base_parameters(held).B, lw.base_parameters(loop).B, 1e3)
    q, v = lw.random_state(loop, 5)
    Y, same = (lw.regressor(m, backend="numpy")(q, v, v).Y for m in (held, loop))
    assert_close(Y, same)


def test_numbers_of_base_parameters_in_the_literature():
    """Of the UR5 there are 36; free robots of hinges have 10 and 7 for each hinge."""
    assert lw.base_parameters(lw.load(find("ur5").path)).rank == 36
    quadruped = mechanisms.quadruped().without_constraints()
    assert lw.base_parameters(quadruped).rank == 10 + 7 * 12


def test_names_of_a_pendulum():
    b = lw.Builder("pendulum")
    b.link("bob", joint="revolute", axis="y", joint_name="pin", inertia=lw.BodyInertia(1.0, [0, 0, -1], np.eye(3)))
    base = lw.base_parameters(b.build(), ("inertia", "armature", "damping"))
    assert base.names == ("bob.hx", "bob.hz", "bob.Iyy + pin.armature", "pin.damping")
    assert_close(base.values, [0.0, -1.0, 2.0, 0.0])


def arms(seed: int = 0) -> tuple[lw.Model, lw.Model]:
    """A chain with damping and friction, and what somebody believes of it."""
    rng, true = np.random.default_rng(seed), random_model(7, 4, ("revolute",), armature=False)
    given = true
    for l in true.links[1:]:
        true = true.with_damping(l.joint_name, 0.4).with_friction(l.joint_name, 0.2)
        m, c, I = l.inertia.mass * rng.uniform(0.7, 1.3), l.inertia.com + 0.02 * rng.normal(size=3), l.inertia.I
        given = given.with_inertia(l.name, lw.BodyInertia(m, c, I * rng.uniform(0.8, 1.2)))
    return true, given


def data(model: lw.Model, count: int, noise: float, seed: int = 0):
    rng = np.random.default_rng(seed)
    q, (v, a) = model.random_q(seed, batch=count), 2.0 * rng.normal(size=(2, count, model.nv))
    exact = lw.regressor(model, parameters=GROUPS)(q, v, a).Y @ lw.parameter_vector(model, GROUPS)
    return q, v, a, exact + noise * rng.normal(size=exact.shape)


def test_exact_data_give_the_base_parameters():
    true, given = arms()
    found = lw.identify(given, *data(true, 60, 0.0), parameters=GROUPS, backend="numpy")
    expected = found.base.B @ lw.parameter_vector(true, GROUPS)
    assert found.converged
    assert found.condition < 1e3
    assert_close(found.values, expected, found.condition**2)
    # the prior's share of physical parameters is as small as the noise that is assumed
    assert_close(found.base.B @ found.parameters, expected, scale=100.0, eps=1e-8)
    assert_close(lw.parameter_vector(found.model, GROUPS), found.parameters, 1e3)


def test_noisy_data_give_them_within_the_confidence():
    true, given = arms()
    found = lw.identify(given, *data(true, 400, 0.3), parameters=GROUPS)
    off = (found.values - found.base.B @ lw.parameter_vector(true, GROUPS)) / found.std
    # of a chi-squared mean of this many, 5 standard deviations
    assert abs(np.mean(off**2) - 1) < 5 * np.sqrt(2 / len(off))
    assert np.all(np.abs(found.noise - 0.3) < 5 * 0.3 / np.sqrt(2 * 400))
    for l in found.model.links[1:]:
        log_cholesky(l.inertia.parameters)  # every link is a body
    before = (found.base.values - found.base.B @ lw.parameter_vector(true, GROUPS)) / found.std
    assert np.mean(off**2) < 0.1 * np.mean(before**2)


def test_what_is_not_measured_or_not_seen_stays():
    true, given = arms()
    q, v, a, tau = data(true.without_passive(), 200, 0.01)
    last = true.links[-1].joint_name
    found = lw.identify(given, q, v, a, tau, joints=[last], backend="numpy")
    assert np.isnan(found.noise[:-1]).all()
    assert found.noise[-1] < 0.02
    assert np.isinf(found.std).any()
    assert np.isinf(found.condition)
    first = lw.parameter_vector(given)[:10]
    assert_close(found.parameters[:10], first, 1e3)  # the last joint does not carry the first link


@pytest.mark.parametrize("damping", [0.0, 0.7])
def test_forces_of_dependent_joints_count_by_the_loop(damping):
    loop = mechanisms.four_bar()
    model = replace(loop, constraints=tuple(replace(c, damping=damping) for c in loop.constraints))
    q, v = lw.random_state(model, 1, batch=30)
    rng, base = np.random.default_rng(0), lw.base_parameters(model)
    tau = rng.normal(size=(30, model.nv))  # forces on all joints, dependent ones too
    fd = lw.forward_dynamics(model, method="kkt", backend="numpy")
    a = np.array([fd(*x).a for x in zip(q, v, tau, strict=True)])
    found = lw.identify(model, q, v, a, tau, backend="numpy")
    assert_close(found.values, base.values, found.condition**2, scale=10.0)
    assert np.nanmax(found.residual) < 1e-6


def test_joint_parameters_do_not_become_negative():
    true, given = arms()
    q, v, a, tau = data(true.without_passive(), 100, 0.0)
    found = lw.identify(given, q, v, a, tau - 0.2 * v, parameters=("inertia", "damping"), backend="numpy")
    assert found.converged
    assert np.array_equal(found.model.parameters().damping, np.zeros(4))


def test_kernels_identify_the_same():
    true, given = arms()
    measured = data(true, 50, 0.1)
    slow, fast = (lw.identify(given, *measured, parameters=GROUPS, backend=b) for b in ("numpy", "kernel"))
    assert_close(fast.values, slow.values, slow.condition**2)
    assert lw.excitation(given, *measured[:3], parameters=GROUPS) == pytest.approx(
        lw.excitation(given, *measured[:3], parameters=GROUPS, backend="numpy"), rel=1e-9
    )


def test_slopes_of_log_cholesky_parameters():
    x, h = np.random.default_rng(1).normal(size=10), 1e-5
    numeric = np.array([from_log_cholesky(x + h * e) - from_log_cholesky(x - h * e) for e in np.eye(10)]).T / (2 * h)
    assert np.allclose(from_log_cholesky_slope(x), numeric, rtol=0, atol=1e-9 * np.abs(numeric).max())


def test_too_few_data_are_refused():
    true, given = arms()
    q, v, a, tau = data(true, 5, 0.0)
    with pytest.raises(lw.LinkworkError, match="give more states"):
        lw.identify(given, q, v, a, tau)
    with pytest.raises(lw.LinkworkError, match="as many of each"):
        lw.identify(given, q, v, a, tau[:4])
    with pytest.raises(lw.LinkworkError, match="at least one joint"):
        lw.identify(given, q, v, a, tau, joints=[])
    still = np.zeros((40, given.nv))
    with pytest.raises(lw.LinkworkError, match="all joint forces are zero"):
        lw.identify(given.with_gravity(np.zeros(3)), still, still, still, still, backend="numpy")
