"""Warm starts: methods that iterate start from given forces, and end where they end without."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.algorithms import registry
from linkwork.errors import ConvergenceWarning
from linkwork.robots import mechanisms as mech

ITERATIVE = [m.name for m in registry.methods("forward_dynamics").values() if m.prox is not None]


def standing() -> lw.Model:
    model = mech.quadruped()
    return model.with_constraints(*(lw.point(f) for f in model.frames))


def geared() -> lw.Model:
    """A chain with gears, which clusters embed, held by its tip."""
    return mech.geared_chain(6).with_constraints(lw.point("tip"))


def states(model: lw.Model, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = np.stack([model.random_q(rng) for _ in range(count)])
    return q, rng.uniform(-1, 1, (count, model.nv)), rng.uniform(-1, 1, (count, model.nv))


def off(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


@pytest.mark.parametrize("method", ITERATIVE)
def test_the_solution_is_a_start_from_which_one_iteration_is_enough(method) -> None:
    model = standing()
    q, v, tau = (x[0] for x in states(model, 1))
    fd = lw.forward_dynamics(model, method=method, warm_start=True, backend="numpy")
    cold = fd(q, v, tau)
    again = fd(q, v, tau, lam0=cold.lam)
    assert again.iterations == 1
    assert again.converged
    assert off(again.a, cold.a) < 1e-9
    elsewhere = fd(q, v, tau, lam0=np.random.default_rng(1).normal(size=model.rows) * np.abs(cold.lam).max())
    assert elsewhere.converged
    assert off(elsewhere.a, cold.a) < 1e-9
    plain = lw.forward_dynamics(model, method=method, backend="numpy")(q, v, tau)
    assert np.array_equal(plain.a, cold.a)
    assert np.array_equal(plain.lam, cold.lam)


@pytest.mark.parametrize("method", [m for m in ITERATIVE if m != "pv_early"])
def test_a_quadruped_a_millisecond_later(method) -> None:
    """carpentier2021 IV, mu = 1e6: one iteration from the last forces is some hundred times better than from zero."""
    model, gains = standing(), []
    exact = lw.forward_dynamics(model, method="kkt", backend="numpy")
    one = lw.forward_dynamics(model, method=method, warm_start=True, prox=lw.Prox(1e6, 1.0, 1), backend="numpy")
    for q, v, tau in zip(*states(model, 3), strict=True):
        now = exact(q, v, tau)
        v = v + 1e-3 * now.a
        q = model.integrate(q, 1e-3 * v)
        later = exact(q, v, tau)
        errors = [off(one(q, v, tau, lam0=lam).a, later.a) for lam in (0 * now.lam, now.lam)]
        assert errors[0] < 1e-3
        gains.append(errors[0] / errors[1])
    assert np.median(gains) > 30


@pytest.mark.parametrize("method", [m for m in ITERATIVE if registry.methods("forward_dynamics")[m].modes])
def test_forces_of_contacts_that_are_switched_off_do_not_act(method) -> None:
    model = standing()
    q, v, tau = (x[0] for x in states(model, 1))
    fd = lw.forward_dynamics(model, method=method, modes=True, warm_start=True, backend="numpy")
    for active in ([1, 0, 1, 1], [0.3, 0, 1, 0]):
        cold, start = fd(q, v, tau, np.array(active)), np.full(model.rows, 50.0)
        warm = fd(q, v, tau, np.array(active), start)
        assert off(warm.a, cold.a) < 1e-9
        for c in (c for c, w in enumerate(active) if not w):
            assert not warm.lam[3 * c : 3 * c + 3].any()
        assert fd(q, v, tau, np.array(active), cold.lam).iterations == 1


@pytest.mark.parametrize("method", ["constrained_aba", "prox_bbo", "prox_ltl"])
def test_a_lane_does_not_depend_on_its_neighbours(method) -> None:
    """Lanes that start well, badly or cold, in any company: the same to the bit."""
    model = standing()
    fd = lw.forward_dynamics(model, method=method, warm_start=True)
    q, v, tau = states(model, 32)
    rng = np.random.default_rng(2)
    lam0 = fd(q, v, tau).lam * rng.choice([0.0, 1.0, 1.01, 5.0], (32, 1))
    here = fd(q, v, tau, lam0=lam0)
    assert len({*here.iterations}) > 1
    order = rng.permutation(32)
    there = fd(q[order], v[order], tau[order], lam0=lam0[order])
    for name in ("a", "lam", "iterations", "residual"):
        assert np.array_equal(getattr(here, name)[order], getattr(there, name)), name
    some = fd(q[:8], v[:8], tau[:8], lam0=lam0[:8])
    assert np.array_equal(some.a, here.a[:8])


def test_clusters_and_loops_start_from_their_forces_too() -> None:
    model = geared()
    q, v, tau = (x[0] for x in states(model, 1))
    for method in ("c_lcaba", "c_prox_bbo", "c_mixed", "lcaba", "prox_bbo"):
        fd = lw.forward_dynamics(model, method=method, warm_start=True, backend="numpy")
        cold = fd(q, v, tau)
        again = fd(q, v, tau, lam0=cold.lam)
        assert off(again.a, cold.a) < 1e-9
        assert again.iterations <= cold.iterations


def test_direct_methods_do_not_look_at_forces_to_start_from() -> None:
    model = standing()
    q, v, tau = (x[0] for x in states(model, 1))
    fd = lw.forward_dynamics(model, method="pv", warm_start=True)
    assert np.array_equal(fd(q, v, tau).a, fd(q, v, tau, lam0=np.ones(model.rows)).a)
    with pytest.raises(lw.LinkworkError, match="lam0"):
        fd(q, v, tau, lam0=np.ones(model.rows + 1))
    with pytest.raises(lw.LinkworkError, match="lam0"):
        fd(q, v, tau, lam0=np.full(model.rows, np.nan))


@pytest.mark.parametrize("method", ["constrained_aba", "lcaba", "prox_bbo", "prox_pv", "prox_ltl", "prox_ltl_soft"])
def test_rows_in_conflict_end_an_iteration_soon(method) -> None:
    """Where forces cannot change what is left: prox_pv and prox_ltl took all 20 iterations, and lost digits."""
    model = mech.chain(6)
    rng = np.random.default_rng(3)
    rows = lw.LinkRows({model.links[-1].name: rng.normal(size=(6, 6)).tolist()}, rng.normal(size=6).tolist())
    model = model.with_constraints(lw.point("linktip"), rows)
    q, v, tau = (x[0] for x in states(model, 1))
    with pytest.warns(ConvergenceWarning):
        found = lw.forward_dynamics(model, method=method, backend="numpy")(q, v, tau)
    assert found.iterations <= 10
    assert not found.converged
    assert off(found.a, lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau).a) < 1e-5


# steps in time


def test_steps_of_a_rollout_have_one_iteration_and_are_right() -> None:
    """A crouching quadruped: the accelerations of all steps, against those of one iteration from zero."""
    model = standing()
    q0, target = model.neutral(), model.neutral()
    target[7:] += 0.2
    run = lw.rollout(model, method="constrained_aba", pd=True, record=("a", "tau"))
    found = run(q0, np.zeros(model.nv), kp=50.0, kd=2.0, target=target, steps=60)
    at = found.q[:-1], found.v[:-1], found.tau[1:]
    exact = lw.forward_dynamics(model, method="pv_early")(*at).a
    cold = lw.forward_dynamics(model, method="constrained_aba", prox=lw.Prox(3e6, 1.0, 1))(*at).a
    errors = [np.abs(a - exact).max(axis=1) / np.abs(exact).max(axis=1) for a in (found.a[1:], cold)]
    assert np.all(errors[0] < 1e-5)
    assert np.median(errors[0]) < 0.07 * np.median(errors[1])
    # the first step starts from what a step from zero finds
    first = lw.forward_dynamics(model, method="pv_early")(q0, np.zeros(model.nv), found.tau[0]).a
    assert off(found.a[0], first) < 1e-6


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_rollouts_by_numpy_start_as_kernels_do(integrator) -> None:
    model = mech.four_bar()
    q, v, _ = states(model, 2)
    options = {"method": "lcaba", "modes": True, "record": ("lam",), "integrator": integrator}
    active = np.array([[1.0], [0.0], [1.0]])
    here, there = (
        lw.rollout(model, backend=b, **options)(q, 0.1 * v, steps=6, active=active) for b in ("kernel", "numpy")
    )
    for name in ("q", "v", "lam"):
        assert np.abs(getattr(here, name) - getattr(there, name)).max() <= 1e-7 * (1 + np.abs(here.lam).max())
    assert not here.lam[:, 2:4].any()


def test_rows_in_conflict_do_not_pile_up_forces() -> None:
    """Every step adds to the forces along which rows do nothing; what is kept of them decays."""
    model = mech.chain(1)
    link = model.links[-1].name
    K = np.eye(6)[5:].tolist()
    model = model.with_constraints(lw.LinkRows({link: K}, (1e-3,), "one"), lw.LinkRows({link: K}, (-1e-3,), "other"))
    found = lw.rollout(model, method="lcaba", record=("lam",), dt=1e-4)(
        model.neutral() + 0.3, np.zeros(model.nv), steps=600_000, every=300_000
    )
    assert found.ok
    first, last = np.abs(found.lam[:, 0] - found.lam[:, 1])
    assert first > 1e3 * model.mass * 9.81
    assert last < 1.1 * first
