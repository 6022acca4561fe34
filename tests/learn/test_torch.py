"""Functions for PyTorch: values, autograd of first and second order, `vmap`, `torch.func`, `torch.compile`, rollouts.

PyTorch is not in the extra `test`: its wheel is half a gigabyte, and on Linux takes CUDA with it, which is more.
"""

from __future__ import annotations

import copy
import gc
import mmap
import os
import pickle
import signal
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError, UnsupportedError
from linkwork.robots import mechanisms

torch = pytest.importorskip("torch", reason="these need torch: pip install 'linkwork[torch]'")

from linkwork.learn import tensor_calls  # noqa: E402
from linkwork.learn import torch as learn  # noqa: E402


@pytest.fixture(scope="module")
def fd(plain):
    return learn.function(plain)


@pytest.fixture(scope="module")
def states(numbers):
    return [torch.tensor(x) for x in numbers]


def unit(q):
    """q with its quaternion normalised."""
    return torch.cat([q[..., :4] / q[..., :4].norm(dim=-1, keepdim=True), q[..., 4:]], -1)


def needing(*tensors):
    return tuple(x.clone().requires_grad_() for x in tensors)


def test_values_of_states_and_batches(plain, fd, states):
    expected, found = plain(*(x.numpy() for x in states)), fd(*states)
    assert found._fields == ("a", "lam", "converged")
    assert found.converged.all()
    assert np.array_equal(found.a, expected.a)
    grid = fd(states[0][:, None], states[1][:, None], tau=states[2][:5])
    assert grid.a.shape == (12, 5, 4)
    assert np.array_equal(grid.a[7, 2], plain(*(x.numpy() for x in (states[0][7], states[1][7], states[2][2]))).a)
    many = [x.repeat(2000, 1) for x in states]
    assert np.array_equal(fd(*many).a[:12], expected.a)
    short = learn.function(lw.forward_dynamics(plain.model, dtype="float32"))(*states)
    assert short.a.dtype == torch.float32
    assert torch.allclose(short.a.double(), found.a, rtol=1e-3, atol=1e-2)
    assert torch.isnan(fd(2 * states[0], *states[1:]).a).any()


def test_gradcheck_and_gradgradcheck(fd, states):
    """By quaternions, velocities, forces and inertias; for a state, and a batch that shares an input."""
    q, v, tau = (x[1] for x in states)
    inertia = torch.tensor(fd.of.model.parameters().inertia)

    def pair(q, v, tau, inertia=None):
        named = {} if inertia is None else {"inertia": inertia}
        return fd(unit(q), v, tau, **named)[:2]

    assert torch.autograd.gradcheck(pair, needing(q, v, tau, inertia))
    shared = needing(states[0][:2], v, states[2][:2])
    assert torch.autograd.gradcheck(pair, shared)
    assert torch.autograd.gradgradcheck(pair, shared)


def test_functions_made_without_gradients_have_them(plain, states):
    """Constants that a function keeps are no tensors of the mode in which it was made."""
    with torch.inference_mode():
        fd = learn.function(lw.forward_dynamics(plain.model, method="pv", parameters=("inertia",)))
        fd(*states)
    given = needing(states[2])
    (g,) = torch.autograd.grad(fd(*states[:2], *given).a.sum(), given, create_graph=True)
    assert torch.autograd.grad(g.sum(), given, allow_unused=True)[0] is not None
    (g,) = torch.autograd.grad(fd(*states[:2], *given).lam.sum(), given)  # a is not weighed
    expected = learn.function(plain)(*states[:2], *given)
    assert torch.allclose(g, torch.autograd.grad(expected.lam.sum(), given)[0], rtol=1e-9, atol=1e-9)


def test_operators_follow_the_rules_of_torch(fd, states):
    checks = torch.library.opcheck(fd._op.operator, needing(*states, torch.tensor(fd.of.model.parameters().inertia)))
    assert set(checks.values()) == {"SUCCESS"}


def test_vmap_and_torch_func(fd, states):
    q, v, tau = states

    def one(q, v, tau):
        return fd(q, v, tau).a

    assert torch.equal(torch.func.vmap(one)(*states), fd(*states).a)
    grid = torch.func.vmap(torch.func.vmap(one, (None, None, 0)), (0, 0, None))(*states)
    assert torch.equal(grid, fd(q[:, None], v[:, None], tau).a)
    each = torch.func.vmap(torch.func.grad(lambda t, q, v: one(q, v, t).sum()))(tau, q, v)
    (wanted,) = needing(tau)
    fd(q, v, wanted).a.sum().backward()
    assert torch.allclose(each, wanted.grad, rtol=1e-12, atol=1e-12)
    w = torch.tensor([1.0, -2.0, 0.5, 0.3], dtype=torch.float64)

    def weighed(q):
        return one(unit(q), v[0], tau[0]) @ w

    there = torch.func.hessian(weighed)(q[0])
    assert torch.allclose(there, there.T, rtol=0, atol=1e-10 * float(there.abs().max()))
    func = torch.func
    for outer, inner in ((func.jacrev, func.jacrev), (func.jacrev, func.jacfwd), (func.jacfwd, func.jacfwd)):
        assert torch.allclose(outer(inner(weighed))(q[0]), there, rtol=0, atol=1e-10 * float(there.abs().max()))


def test_gradients_of_products_with_directions(fd, states):
    """d/dq and d/dt of J(q) t, which is linear in t; `in_dims` that leave out an input."""
    q, v, tau = (x[1] for x in states)

    def along(q, t):
        return torch.func.jvp(lambda tau: fd(unit(q), v, tau).a, (tau,), (t,))[1]

    by_q, by_t = torch.func.jacrev(along, (0, 1))(q, tau)
    step = 1e-6 * torch.eye(5, dtype=q.dtype)
    differences = torch.stack([(along(q + h, tau) - along(q - h, tau)) / 2e-6 for h in step], -1)
    assert torch.allclose(by_q, differences, rtol=0, atol=1e-7 * float(by_q.abs().max()))
    assert torch.allclose(by_t @ tau, along(q, tau), rtol=1e-12, atol=1e-12)
    many = torch.func.vmap(torch.func.jacrev(along), (0, None))(torch.stack([q, q]), tau)
    assert torch.allclose(many, by_q.expand_as(many), rtol=1e-12, atol=1e-12)


def test_dual_numbers_keep_their_tangents(fd, states):
    forward, (q, v, tau) = torch.autograd.forward_ad, (x[0] for x in states)
    with forward.dual_level():
        found = forward.unpack_dual(fd(q, v, forward.make_dual(tau, tau)).a)
    expected = torch.func.jvp(lambda t: fd(q, v, t).a, (tau,), (tau,))
    assert torch.equal(found.primal, expected[0])
    assert torch.equal(found.tangent, expected[1])


def test_a_call_that_nobody_records_gives_the_same(fd, states):
    """Gradients off: the kernel without torch's operator; on: with it; with values that are not numbers, too."""
    wrong = 2 * states[0]
    for q in (states[0], states[0][3], wrong, wrong[3]):
        given = (q, *(x[3] if q.ndim == 1 else x for x in states[1:]))
        with torch.no_grad():
            alone = fd(*needing(*given))
        recorded = fd(*needing(*given))
        for x, y in zip(alone, recorded, strict=True):
            assert torch.equal(x.isfinite(), y.isfinite())
            assert torch.equal(x.nan_to_num(), y.nan_to_num())
        assert not alone.a.requires_grad
        assert recorded.a.requires_grad


def test_tensors_are_read_where_they_are_only_if_they_can_be(fd, states):
    """Machine code gets tensors of one state, or of a batch, as they are, and copies of what is stored otherwise."""
    given = [x[3].clone() for x in states]
    expected = fd(*given)
    fd(*states)
    assert expected.lam.requires_grad_() is not fd(*given).lam  # results of calls share nothing
    assert fd(*given).converged.logical_not_() is not None
    assert bool(fd(*given).converged)
    assert fd._direct(*given) is not None
    tau = given[2]
    apart = torch.zeros(2 * len(tau), dtype=tau.dtype)
    apart[::2] = tau
    unaligned = torch.frombuffer(bytearray(b"abc" + tau.numpy().tobytes()), dtype=tau.dtype, offset=3)
    assert unaligned.data_ptr() % 8
    for other in (apart[::2], torch._neg_view(-tau), unaligned, tau.to_sparse(), tau.float(), torch.nn.Parameter(tau)):
        with torch.no_grad():
            direct = fd._direct(*given[:2], other)
            assert (direct is None) == (type(other) is torch.Tensor)
            if not other.is_sparse:
                assert torch.allclose(fd(*given[:2], other).a, expected.a, rtol=1e-5, atol=1e-5)
    zero = torch._efficientzerotensor(tau.shape, dtype=tau.dtype)
    assert fd._direct(*given[:2], zero) is None
    assert torch.equal(fd(*given[:2], zero).a, fd(*given[:2], torch.zeros_like(tau)).a)


def test_rows_of_batches_are_read_where_they_are(plain, fd, states):
    q, v, tau = states
    fd(*states), fd(q[0], v[0], tau[0])  # compile what the next ones use
    rows = torch.zeros(12, 3, 4, dtype=tau.dtype)
    rows[:, 1] = tau
    for given in ((q, v, rows[:, 1]), (q[:1].expand(12, -1), v, tau), (q[3], v[3], tau), (q[:1], v[:1], tau[:1])):
        found = fd._direct(*given)
        assert np.array_equal(found.a, plain(*(x.numpy() for x in given)).a)
        assert found.a.is_contiguous()
        assert found.converged.shape == found.a.shape[:-1]
        assert found.converged.dtype == torch.bool
        assert found.converged.all()
    for given in ((q[:0], v[:0], tau[:0]), (q, v, tau[:5]), (q, v[:, :3], tau), (q, v, tau.T.contiguous().T), (q, v)):
        assert fd._direct(*given) is None
    many = [x.repeat(20_000, 1) for x in states]
    assert fd._direct(*many) is None  # would keep other threads of Python waiting


def test_without_functions_of_tensors_for_c_results_are_the_same(plain, states, monkeypatch):
    """Older versions of PyTorch do not have them."""
    monkeypatch.setattr(tensor_calls, "_exchange", lambda: None)
    fd = learn.function(plain)
    for given in (states, [x[3] for x in states]):
        for _ in range(2):
            assert np.array_equal(fd(*given).a, plain(*(x.numpy() for x in given)).a)
        assert fd._direct(*given) is None
        (tau,) = needing(given[2])
        fd(*given[:2], tau).a.sum().backward()
        assert tau.grad.isfinite().all()


def test_results_own_their_memory(plain, states):
    """Results outlive the function, and their memory goes with them."""
    fd = learn.function(lw.forward_dynamics(plain.model, method="pv"))
    expected = [x.clone() for x in (fd(*states), fd(*states))[1]]
    kept = fd(*states)
    del fd
    gc.collect()
    assert all(torch.equal(x, y) for x, y in zip(kept, expected, strict=True))
    fd, many = learn.function(plain), [x.repeat(20, 1) for x in states]
    fd(*many)

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    if not Path("/proc/self/statm").exists():
        pytest.skip("memory is measured by /proc")
    for _ in range(1000):
        fd(*many)
    before = resident()
    for _ in range(20_000):  # 200 MB of results
        fd(*many)
    assert resident() - before < 20e6


def test_two_threads_compute_at_once(plain, states):
    fd = learn.function(plain)
    wanted, failed = fd(*states).a, []

    def compute(k):
        for _ in range(2000):
            if not torch.equal(fd(*(x[k] for x in states)).a, wanted[k]):
                failed.append(k)

    threads = [threading.Thread(target=compute, args=(k,)) for k in (1, 7)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_computes_states_and_batches(plain, states):
    fd, many = learn.function(plain), [x.repeat(5000, 1) for x in states]
    expected = [fd(*given).a for given in (many, [x[0] for x in states])]
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends it if it waits for threads that it does not have
        found = [fd(*given) for given in (many, [x[0] for x in states])]
        os._exit(not all(np.array_equal(x.a, y) and x.converged.numpy().all() for x, y in zip(found, expected)))
    assert os.waitpid(child, 0)[1] == 0


def test_torch_compile(fd, states):
    def energy(q, v, tau):
        return (fd(unit(q), v, tau).a ** 2).sum()

    compiled = torch.compile(energy, backend="aot_eager", fullgraph=True)
    (mine,), (theirs,) = needing(states[2]), needing(states[2])
    compiled(*states[:2], mine).backward()
    energy(*states[:2], theirs).backward()
    assert torch.allclose(mine.grad, theirs.grad, rtol=1e-13, atol=0)


def test_rollouts_are_those_of_linkwork(model, states):
    run = lw.rollout(model, dt=5e-3, stabilisation=True)
    roll = learn.rollout(run)
    q, v, _ = (x[5] for x in states)
    tau = torch.tensor(np.random.default_rng(8).normal(size=(6, 4)))
    expected, found = run(q.numpy(), v.numpy(), tau.numpy()), roll(q, v, tau)
    assert np.allclose(found.q, expected.q, rtol=0, atol=1e-12)
    assert torch.autograd.gradcheck(lambda tau: roll(q, v, tau).q[-1], needing(tau))
    gain = torch.tensor(-0.5, dtype=torch.float64)
    by_policy = learn.rollout(lw.rollout(model, dt=5e-3, stabilisation=True, steps=4))
    assert torch.autograd.gradcheck(lambda g: by_policy(q, v, lambda q, v, k: g * v).v[-1], needing(gain))


def test_a_hundred_steps_of_cassie(cassie):
    """Closed loops, springs and both feet on the ground: one gradient, by all motor torques, as differences have it."""
    roll = learn.rollout(cassie.run)
    start, weights = [torch.tensor(x) for x in cassie.start], torch.tensor(cassie.weights)

    def end(tau):
        return roll(*start, tau, **cassie.held).q[-1] @ weights

    (tau,) = needing(torch.tensor(cassie.tau))
    end(tau).backward()
    for change in cassie.changes:
        change = torch.tensor(change / np.linalg.norm(change))
        with torch.no_grad():
            a, b = (float(end(tau + h * change) - end(tau - h * change)) / (2 * h) for h in (1.0, 0.5))
        scale = float(tau.grad.norm())
        assert float((tau.grad * change).sum()) == pytest.approx((4 * b - a) / 3, rel=1e-6, abs=1e-9 * scale)


def test_activations_move_in_rollouts_and_are_refused_in_discrete_steps():
    model = mechanisms.chain(1).with_actuators(lw.Motor("link1_joint", state="filter", time_constant=0.1))
    run, u = lw.rollout(model, dt=0.02, actuators=True), torch.tensor([[0.4], [-0.3], [0.5]], dtype=torch.float64)
    start = [torch.tensor([x], dtype=torch.float64) for x in (0.1, 0.0, 0.2)]
    roll = learn.rollout(run)
    expected = run(*(x.numpy() for x in start[:2]), u=u.numpy(), act=start[2].numpy())
    assert np.allclose(roll(*start[:2], u=u, act=start[2]).v, expected.v, rtol=0, atol=1e-13)
    assert torch.autograd.gradcheck(lambda u, w: roll(*start[:2], u=u, act=w).v[-1], needing(u, start[2]))
    with pytest.raises(UnsupportedError, match="have a state"):
        learn.function(lw.discrete_step(model, actuators=True))


def test_discrete_steps():
    step = lw.discrete_step(mechanisms.four_bar(), dt=1e-3)
    q, v = (torch.tensor(x) for x in lw.random_state(step.model, seed=2))
    u = torch.tensor([0.3, 0.1, -0.2], dtype=torch.float64)
    B = torch.autograd.functional.jacobian(lambda u: torch.cat(learn.function(step)(q, v, u)[:2]), u)
    assert np.allclose(B, step.linearize(q, v, u).B, rtol=1e-6, atol=1e-9)


def test_threads_are_those_that_torch_has(fd, states):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        fd(*(x.repeat(2000, 1) for x in states))  # few states are computed at once, on this thread
        assert fd._op.kernel.threads == 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("position", range(3))
def test_what_is_no_dense_tensor_of_numbers_is_refused(position: int) -> None:
    fd = learn.function(lw.forward_dynamics(mechanisms.chain(3), method="aba"))
    zero = torch.zeros(3, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        packed = torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.qint8)
        nested = torch.nested.nested_tensor([zero, zero])
    for x in (
        None,
        "1",
        b"1",
        {},
        object(),
        1j,
        [[1], [1, 2]],
        zero.to_sparse(),
        zero.to(torch.complex128),
        nested,
        packed,
    ):
        given = [zero, zero, zero]
        given[position] = x
        with pytest.raises(InputError):
            fd(*given)
    given[position] = np.zeros(6)[::-2]
    assert torch.equal(fd(*given).a, fd(zero, zero, zero).a)


def test_copies_are_of_the_same_function(plain, states):
    fd = learn.function(plain)
    fd(*states[:2], *needing(states[2])).a.sum().backward()
    for other in (copy.deepcopy(fd), pickle.loads(pickle.dumps(fd))):
        assert torch.equal(other(*states).a, fd(*states).a)


def test_errors_are_sentences(model, fd, states):
    q, v, tau = states
    with pytest.raises(InputError, match=r"shape \(3,\); this model needs \(..., 5\)"):
        fd(q[0, :3], v, tau)
    with pytest.raises(InputError, match="do not fit"):
        fd(q[:2], v[:3], tau[0])
    with pytest.raises(UnsupportedError, match="on 'meta'"):
        fd(q.to("meta"), v, tau)
    with pytest.raises(UnsupportedError, match="third derivatives"):
        torch.func.jacrev(torch.func.jacrev(torch.func.jacrev(lambda t: fd(q[0], v[0], t).a.sum())))(tau[0])
    step = learn.function(lw.step(model.without_constraints(), [lw.Contact("tip")]))
    with pytest.raises(UnsupportedError, match="through its contacts"):
        step(q[0], v[0], *needing(tau[0]), torch.tensor([1e-3])).v.sum().backward()


def test_inputs_of_one_entry_may_be_bare_numbers():
    f = lw.forward_dynamics(mechanisms.chain(1))
    many = learn.function(f)(torch.full((3, 1), 0.3, dtype=torch.float64), 0.1, 2.0).a
    np.testing.assert_array_equal(many, np.tile(f([0.3], [0.1], [2.0]).a, (3, 1)))


def test_truth_values_are_no_numbers(fd, states):
    """But where they say which constraints hold."""
    q, v, tau = (x[0] for x in states)
    for wrong in ([*tau[:-1].tolist(), True], torch.ones(len(tau), dtype=torch.bool), np.ones(len(tau), bool)):
        with pytest.raises(InputError, match="bool"):
            fd(q, v, wrong)
    model = mechanisms.quadruped()
    feet = model.with_constraints(*(lw.point(f) for f in [*model.frames][-4:]))
    weighed = learn.function(lw.forward_dynamics(feet, modes=True))
    state = feet.neutral(), np.zeros(feet.nv), np.zeros(feet.nv)
    on = [True, False, True, True]
    assert np.array_equal(weighed(*state, active=on).a, weighed(*state, active=np.array(on, float)).a)
