"""Functions for JAX: values, transformations, first and second derivatives, rollouts, errors; by machine code."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import linkwork as lw
from helpers import derivative
from linkwork.errors import InputError, UnsupportedError
from linkwork.robots import mechanisms

jax = pytest.importorskip("jax", reason="these need jax: pip install -e '.[test]'")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy
from jax.test_util import check_grads  # noqa: E402

from linkwork.learn import jax as learn  # noqa: E402


@pytest.fixture(scope="module")
def fd(plain):
    return learn.function(plain)


@pytest.fixture(scope="module")
def states(numbers):
    return numbers


def unit(q):
    """q with its quaternion normalised."""
    return jnp.concatenate([q[:4] / jnp.linalg.norm(q[:4]), q[4:]])


def test_values_of_states_and_batches(plain, fd, states):
    """With any axes in front, broadcast; to the bit what NumPy gets."""
    expected = plain(*states)
    assert np.array_equal(fd(*states).a, expected.a)
    assert np.array_equal(jax.jit(jax.vmap(fd))(*states).lam, expected.lam)
    one = jax.jit(fd)(*(x[3] for x in states))
    assert one._fields == ("a", "lam", "converged")
    assert bool(one.converged)
    assert np.array_equal(one.a, plain(*(x[3] for x in states)).a)
    grid = fd(states[0][:, None], states[1][:, None], tau=states[2][:5])
    assert grid.a.shape == (12, 5, 4)
    assert np.array_equal(grid.a[7, 2], plain(states[0][7], states[1][7], states[2][2]).a)
    assert fd(*(x[:0] for x in states)).a.shape == (0, 4)
    assert learn.function(lw.mass_matrix(plain.model))(states[0]).M.shape == (12, 4, 4)


def test_inside_a_scan(plain, fd, states):
    q, v, tau = (x[0] for x in states)

    def body(c, _):
        a = fd(q, v, c).a
        return 0.1 * a, a

    found = jax.jit(lambda t: jax.lax.scan(body, t, None, length=5)[1])(tau)
    for a in found:
        assert np.allclose(a, plain(q, v, tau).a, rtol=1e-12, atol=0)
        tau = 0.1 * plain(q, v, tau).a


def test_large_batches_are_shared_with_threads(plain, fd, states):
    """With those of XLA's pool: each result is written once, whoever computes it."""
    many = [np.tile(x, (3000, 1)) for x in states]
    call, expected = jax.jit(fd), plain(*many).a
    for _ in range(50):
        differ = np.flatnonzero((np.asarray(call(*many).a) != expected).any(axis=1))
        assert not differ.size, f"{differ.size} states from {differ[:1]} to {differ[-1:]}"


def test_float32(model, fd, states):
    short = learn.function(lw.forward_dynamics(model, dtype="float32"))
    found = short(*states)
    assert found.a.dtype == np.float32
    assert np.allclose(found.a, fd(*states).a, rtol=1e-3, atol=1e-2)
    q, v, tau = (x[2] for x in states)
    ours, theirs = (jax.grad(lambda t, f=f: f(q, v, t).a.sum())(jnp.asarray(tau)) for f in (short, fd))
    assert np.allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def test_first_and_second_derivatives(fd, states):
    """By quaternions, velocities, forces and inertias, forward and in reverse and both ways round."""
    q, v, tau = (jnp.asarray(x[1]) for x in states)
    w, u = np.random.default_rng(3).normal(size=(2, 4))
    inertia = jnp.asarray(fd.of.model.parameters().inertia)

    def weighed(q, v, tau, inertia):
        r = fd(unit(q), v, tau, inertia=inertia)
        return r.a @ w + u[0] * r.lam[0]

    check_grads(jax.jit(weighed), (q, v, tau, inertia), order=1, modes=("fwd", "rev"), eps=1e-5)
    smooth = partial(weighed, inertia=inertia)
    check_grads(jax.jit(smooth), (q, v, tau), order=2, modes=("rev",), eps=1e-5)
    there, back = jax.jacfwd(jax.grad(smooth))(q, v, tau), jax.jacrev(jax.grad(smooth))(q, v, tau)
    other = jax.jacrev(jax.jacfwd(smooth))(q, v, tau)
    size = float(np.abs(there).max())
    assert np.allclose(there, there.T, rtol=0, atol=1e-11 * size)
    assert np.allclose(back, there, rtol=0, atol=1e-11 * size)
    assert np.allclose(other, there, rtol=0, atol=1e-11 * size)


def test_gradients_by_q_are_in_its_tangent_space(fd, states):
    """They equal the compiled products in the chart, and are orthogonal to the quaternion."""
    q, v, tau = (x[4] for x in states)
    w = np.random.default_rng(5).normal(size=4)
    g = np.asarray(jax.grad(lambda q: fd(q, v, tau).a @ w)(jnp.asarray(q)))
    assert abs(g[:4] @ q[:4]) < 1e-12 * np.abs(g).max()
    back = fd.of.vjp()(q, v, tau, w, np.zeros(1)).g_q
    for k, e in enumerate(np.eye(4)):
        rate = derivative(lambda h, e=e: fd.of.model.integrate(q, h * e))
        assert g @ rate == pytest.approx(back[k], rel=1e-8, abs=1e-8)


def test_vmap_of_gradients(fd, states):
    """Nested, with inputs that are shared: as one by one; and what is shared gets the sum."""
    q, v, tau = (jnp.asarray(x) for x in states)
    w = np.random.default_rng(6).normal(size=4)

    def weighed(q, v, tau):
        return fd(q, v, tau).a @ w

    both = jax.grad(weighed, argnums=(0, 2))
    grid = jax.vmap(jax.vmap(both, (None, None, 0)), (0, 0, None))(q[:3], v[:3], tau[:4])
    for i in range(3):
        for k in range(4):
            for mine, theirs in zip(grid, both(q[i], v[i], tau[k]), strict=True):
                assert np.allclose(mine[i, k], theirs, rtol=1e-11, atol=1e-11)
    shared = jax.grad(lambda t: jax.vmap(lambda q, v: weighed(q, v, t))(q, v).sum())(tau[0])
    assert np.allclose(shared, sum(both(a, b, tau[0])[1] for a, b in zip(q, v, strict=True)), rtol=1e-11, atol=1e-11)


def test_the_code_outlives_the_function(model, states):
    q, v, tau = (x[0] for x in states)
    plain = lw.inverse_dynamics(model.without_constraints(), dtype="float64")
    expected = plain(q, v, tau).tau
    called = jax.jit(learn.function(plain))
    called(q, v, tau)
    compiled = called.lower(q, v, tau).compile()
    del plain, called
    gc.collect()
    assert np.array_equal(compiled(q, v, tau).tau, expected)


def test_what_has_no_solution_is_not_a_number(fd, states):
    q, v, tau = (x[0] for x in states)
    r = fd(2 * q, v, tau)
    assert np.isnan(r.a).any()
    assert not fd(q, np.nan * v, tau).converged


def test_rollouts_are_those_of_linkwork(model, states):
    """Bit by bit almost; with gradients that match differences, by controls, gains, parameters and the start."""
    run = lw.rollout(model, dt=5e-3, stabilisation=True, pd=True, parameters=("inertia",))
    roll = learn.rollout(run)
    q, v, _ = (x[5] for x in states)
    tau = np.random.default_rng(8).normal(size=(20, 4))
    inertia = jnp.asarray(model.parameters().inertia)
    settings = {"kp": 3.0, "kd": 0.2, "target": q}
    expected, found = run(q, v, tau, **settings), jax.jit(roll)(q, v, tau, **settings)
    assert np.allclose(found.q, expected.q, rtol=0, atol=1e-12)
    assert np.allclose(found.v, expected.v, rtol=0, atol=1e-10)
    w = np.random.default_rng(9).normal(size=4)

    def end(tau, kp, inertia):
        r = roll(q, v, tau, kp=kp, kd=0.2, target=q, inertia=inertia)
        return (r.q[-1] + 0.1 * r.v[-1].sum()) @ np.append(w, 0.3)

    check_grads(jax.jit(end), (jnp.asarray(tau), 3.0, inertia), order=1, modes=("rev",), eps=1e-5, rtol=1e-5)
    many = roll(np.tile(q, (3, 1)), v, tau[:, None] * np.array([1.0, 0.5, 2.0])[:, None], **settings)
    assert many.q.shape == (20, 3, 5)
    assert np.allclose(many.q[:, 0], expected.q, rtol=0, atol=1e-12)


def test_a_hundred_steps_of_cassie(cassie):
    """Closed loops, springs and both feet on the ground: one gradient, by all motor torques, as differences have it."""
    roll = learn.rollout(cassie.run)

    @jax.jit
    def end(tau):
        return roll(*cassie.start, tau, **cassie.held).q[-1] @ cassie.weights

    found = np.asarray(jax.grad(end)(cassie.tau))
    size, along = np.linalg.norm(found), np.where(cassie.driven, found, 0.0)
    for change, step in [(along, 1e-2), *((x, 1.0) for x in cassie.changes)]:
        d = change / np.linalg.norm(change)
        expected = derivative(lambda h, d=d: end(cassie.tau + h * d), step)
        assert (found * d).sum() == pytest.approx(float(expected), rel=1e-6, abs=1e-9 * size)


def test_discrete_steps(states):
    step = lw.discrete_step(mechanisms.four_bar(), dt=1e-3)
    q, v = lw.random_state(step.model, seed=2)
    u = np.array([0.3, 0.1, -0.2])
    mine, r = learn.function(step), step.linearize(q, v, u)
    assert np.allclose(mine(q, v, u).v, r.v, rtol=1e-9, atol=1e-9)
    B = jax.jacrev(lambda u: jnp.concatenate(mine(q, v, u)[:2]))(u)
    assert np.allclose(B, r.B, rtol=1e-6, atol=1e-9)


def test_steps_with_contacts_have_values_only(model, states):
    free = model.without_constraints()
    plain = lw.step(free, [lw.Contact("tip")])
    mine = learn.function(plain)
    q, v, tau = (x[0] for x in states)
    expected = plain(q, v, tau, np.array([1e-3]))
    assert np.allclose(mine(q, v, tau, jnp.array([1e-3])).v, expected.v, rtol=1e-12, atol=1e-12)
    with pytest.raises(UnsupportedError, match="through its contacts"):
        jax.grad(lambda t: mine(q, v, t, jnp.array([1e-3])).v.sum())(jnp.asarray(tau))
    with pytest.raises(UnsupportedError, match="rollouts with contacts"):
        learn.rollout(lw.rollout(free, contacts=[lw.Contact("tip")]))


@pytest.mark.parametrize("position", range(3))
def test_what_is_no_array_of_real_numbers_is_refused(fd, states, position):
    for x in (None, "1", b"1", {}, object(), 1j, [[1], [1, 2]], np.ones(4) * 1j, jax.random.key(0)):
        given = [y[0] for y in states]
        given[position] = x
        with pytest.raises(InputError, match="real numbers"):
            fd(*given)
    with pytest.raises(InputError, match="not an array of complex128"):
        jax.jit(fd)(*(y[0] * 1j for y in states))


def test_copies_are_of_the_same_function(plain, states):
    fd = learn.function(plain)
    jax.grad(lambda tau: fd(*states[:2], tau).a.sum())(states[2])
    for other in (copy.deepcopy(fd), pickle.loads(pickle.dumps(fd))):
        assert np.array_equal(other(*states).a, fd(*states).a)


def test_errors_are_sentences(model, fd, states):
    q, v, tau = (jnp.asarray(x[0]) for x in states)
    with pytest.raises(UnsupportedError, match="third derivatives"):
        jax.grad(jax.grad(jax.grad(lambda s: fd(q, v, s * tau).a.sum())))(1.0)
    with pytest.raises(InputError, match="shape"):
        fd(q[:3], v, tau)
    with pytest.raises(InputError, match="do not fit"):
        fd(jnp.zeros((2, 5)), jnp.zeros((3, 4)), tau)
    with pytest.raises(lw.LinkworkError, match="no input of"):
        fd(q, v, torque=tau)
    with pytest.raises(InputError, match="backend='kernel'"):
        learn.function(lw.forward_dynamics(model, backend="numpy"))
    for absurd in (None, "fd", 3, model):
        with pytest.raises(InputError, match="of is a function"):
            learn.function(absurd)
        with pytest.raises(InputError, match="of is a rollout"):
            learn.rollout(absurd)
    with pytest.raises(InputError, match="time is the first axis"):
        learn.rollout(lw.rollout(model))(q, v, tau)
    with pytest.raises(UnsupportedError, match="another device"):
        jax.jit(fd).trace(q, v, tau).lower(lowering_platforms=("cuda",))


def test_float64_needs_x64(model, states):
    code = (
        "import numpy as np, linkwork as lw\nfrom linkwork.learn import jax\n"
        "from linkwork.robots import mechanisms\n"
        "f = jax.function(lw.mass_matrix(mechanisms.chain(1)))\n"
        "try:\n    f(np.zeros(1))\nexcept lw.LinkworkError as e:\n    print(e)\n"
        "print(jax.function(lw.mass_matrix(mechanisms.chain(1), dtype='float32'))(np.zeros(1)).M.dtype)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "jax_enable_x64" in out
    assert out.endswith("float32\n")


def test_buffers_that_do_not_fit_are_refused(fd, states):
    """The handler looks at what it gets, whoever calls it."""
    q, v, tau = (jnp.asarray(x[0]) for x in states)
    fd(q, v, tau)
    inertia = jnp.asarray(fd.of.model.parameters().inertia)
    target = learn._registered(fd.of.kernel, batch=False)
    shapes = [jax.ShapeDtypeStruct(p.shape, np.float64) for p in fd.of.kernel.outputs]
    call = jax.ffi.ffi_call(target, shapes)
    assert np.array_equal(call(q, v, tau, inertia)[0], fd(q, v, tau).a)
    for wrong in (
        (q, v, tau[:3], inertia),
        (q, v, tau.astype(np.float32), inertia),
        (q, v, tau),
        (q[None, None], v, tau, inertia),
    ):
        with pytest.raises(jax.errors.JaxRuntimeError, match="another type or shape"):
            jax.block_until_ready(call(*wrong))


def test_inputs_of_one_entry_may_be_bare_numbers():
    f = lw.forward_dynamics(mechanisms.chain(1))
    many = learn.function(f)(jnp.full((3, 1), 0.3), 0.1, 2.0).a
    np.testing.assert_array_equal(many, np.tile(f([0.3], [0.1], [2.0]).a, (3, 1)))


def test_truth_values_are_no_numbers(fd, states):
    """But where they say which constraints hold; what is traced may be in lists."""
    q, v, tau = (x[0] for x in states)
    for wrong in ([*tau[:-1].tolist(), True], jnp.ones(len(tau), bool), np.ones(len(tau), bool)):
        with pytest.raises(InputError, match=r"'tau'.*bool"):
            fd(q, v, wrong)
    assert np.array_equal(jax.jit(lambda x: fd(q, v, [*x]).a)(tau), fd(q, v, tau).a)
    model = mechanisms.quadruped()
    feet = model.with_constraints(*(lw.point(f) for f in [*model.frames][-4:]))
    weighed = learn.function(lw.forward_dynamics(feet, modes=True))
    state = feet.neutral(), np.zeros(feet.nv), np.zeros(feet.nv)
    on = [True, False, True, True]
    assert np.array_equal(weighed(*state, active=on).a, weighed(*state, active=np.array(on, float)).a)
