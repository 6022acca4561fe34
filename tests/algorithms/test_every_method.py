"""Every registered forward dynamics method against `kkt`, on the models that the registry says it can handle."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import linkwork as lw
from helpers import EPS, col, cond, motion
from linkwork.algorithms import registry
from linkwork.algorithms.common.iteration import Prox, run
from linkwork.algorithms.constrained.kkt import joint_space
from linkwork.algorithms.tree.aba import aba
from linkwork.algorithms.tree.crba import crba
from linkwork.constraints import jacobian
from linkwork.robots import mechanisms as mech

HARD = [m for m in registry.methods("forward_dynamics").values() if not m.soft and m.name != "kkt"]
REDUNDANT = [m for m in HARD if m.redundant]
EXACT = [m for m in HARD if not m.redundant and m.rows != "none"]


def contacts(model: lw.Model, *frames: str, kind=lw.surface) -> lw.Model:
    return model.with_constraints(*(kind(f) for f in frames))


def random_rows(model: lw.Model, seed: int, rows: int = 2) -> lw.Model:
    """Random K on every tip with enough joints below it, as in the papers' benchmarks."""
    rng, t = np.random.default_rng(seed), model.topology
    tips = [i for i in t.links if not t.children[i] and sum(model.links[j].joint.nv for j in t.supports[i]) > rows]
    return model.with_constraints(
        *(lw.LinkRows({model.links[i].name: rng.normal(size=(rows, 6))}, rng.normal(size=rows)) for i in tips)
    )


def random_rows_on(model: lw.Model, rows: dict[str, int]) -> lw.Model:
    rng = np.random.default_rng(9)
    return model.with_constraints(*(lw.LinkRows({l: rng.normal(size=(n, 6))}) for l, n in rows.items()))


FEET = ("front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot")
HUMANOID = ("left_foot", "right_foot", "left_hand", "right_hand")

TREES = {
    "chain, weld": lambda: contacts(mech.chain(9), "linktip"),
    "chain, two points": lambda: contacts(mech.chain(9), "linktip", "link5", kind=lw.point),
    "chain, point above weld": lambda: contacts(mech.chain(12), "linktip").with_constraints(lw.point("link4")),
    "quadruped, knees": lambda: contacts(mech.quadruped(), "front_left_shank", "rear_right_shank", kind=lw.point),
    "chain, balls": lambda: contacts(mech.chain(4, "spherical"), "linktip", kind=lw.point),
    "tree of everything": lambda: random_rows(
        mech.random_tree(12, seed=3, joints=["revolute", "spherical", "prismatic", "universal", "free"]), 1
    ),
    "tree with rotors": lambda: random_rows(mech.random_tree(14, seed=5, armature=0.2), 2, rows=3),
    "ladder": lambda: mech.ladder(3),
    "stem": lambda: mech.stem(3, 3),
    "arm": lambda: contacts(mech.arm(7), mech.arm(7).links[-1].name, kind=lw.point),
    **{f"quadruped, {n} points": (lambda n=n: contacts(mech.quadruped(), *FEET[:n], kind=lw.point)) for n in range(5)},
    **{f"humanoid, {n} welds": (lambda n=n: contacts(mech.humanoid(hands=False), *HUMANOID[:n])) for n in (1, 2, 4)},
    "hip below a foot": lambda: random_rows_on(
        mech.humanoid(hands=False), {"left_sole": 3, "left_hip_roll": 3}
    ).with_constraints(lw.surface("right_foot")),
    "pelvis and feet": lambda: contacts(mech.humanoid(hands=False), "left_foot", "right_foot").with_constraints(
        lw.Closure("pelvis", joint="point_on_plane")
    ),
}
LOOPS = {
    "ring": lambda: mech.ring(8),
    "chain of loops": lambda: mech.chain_of_loops(2),
    "coupled loops": lambda: mech.all_coupled_loops(3),
    "star of loops": lambda: mech.star_of_loops(3),
    "geared chain": lambda: mech.geared_chain(4),
    "belts": lambda: mech.belt_chain(4),
    "differential": lambda: mech.differential(2),
    "ring on a base, held": lambda: contacts(mech.ring(9, base="free"), "link5", kind=lw.point),
    "centre of mass": lambda: mech.quadruped().with_constraints(lw.CentreOfMass()),
}
SINGULAR = {
    "four-bar, hinge": lambda: mech.four_bar(),
    "four-bar, 6-D": lambda: mech.four_bar(cut="fixed"),
    "four-bar, flat": lambda: mech.four_bar(angle=0.0),
    "six-bar": lambda: mech.six_bar(),
    "Bricard": lambda: mech.bricard(),
    "four-bar legs": lambda: contacts(mech.humanoid(hands=False, four_bar_legs=True), "left_foot", "right_foot"),
    **{
        f"random {s}": (lambda s=s: mech.random_mechanism(s, n=7, loops=2, contacts=1, duplicates=s % 2))
        for s in range(10)
    },
}


@cache
def made(name: str) -> lw.Model:
    """The model of a name: one for all methods, because much of what they need is found once for a model."""
    return {**TREES, **LOOPS, **SINGULAR}[name]()


def solve(method: registry.Method, model: lw.Model, q, v, tau, fext=None):
    """The method on NumPy; one that iterates goes as far as it can."""
    options = {} if method.prox is None else {"mu": method.prox.mu}
    out = method.load()(motion(model, q, v), col(tau), None if fext is None else col(fext), **options)
    if method.prox is not None:
        a, lam, *_ = run(out, Prox(tolerance=1e-13, max_iterations=12))
        return a, lam
    return out if isinstance(out, tuple) else (out, np.zeros((0, 1)))


def state(model: lw.Model, posture: str, seed: int):
    rng = np.random.default_rng(seed)
    q = model.random_q(rng) if posture == "random" else model.neutral()
    return q, rng.normal(size=model.nv), rng.normal(size=model.nv) * 5


class Right(NamedTuple):
    """The solution of `kkt`, M, J, the condition number of both, and the acceleration without constraints."""

    a: np.ndarray
    lam: np.ndarray
    M: np.ndarray
    J: np.ndarray
    kappa: float
    unheld: np.ndarray


@cache
def right(model: lw.Model, *given: bytes) -> Right:
    """Of the bytes of q, v, tau and perhaps fext: all methods are judged in the same few states."""
    q, v, tau, *fext = map(np.frombuffer, given)
    at = motion(model, q, v)
    a, lam = registry.methods("forward_dynamics")["kkt"].load()(at, col(tau), *map(col, fext))
    M, J = crba(at), jacobian(at)
    W = J @ np.linalg.inv(np.linalg.cholesky(M)).T
    return Right(a, lam, M, J, cond(M) * cond(W) ** 2, aba(motion(model.without_constraints(), q, v), col(tau)))


def judge(method: registry.Method, model: lw.Model, q, v, tau, fext=None) -> None:
    """|a - a_kkt| and |J^T (lam - lam_kkt)| within c kappa eps; a penalty mu counts as a condition number."""
    a0, lam0, M, J, kappa, unheld = right(model, *(x.tobytes() for x in (q, v, tau, fext) if x is not None))
    a, lam = solve(method, model, q, v, tau, fext)
    if method.prox is not None:
        # penalties are eliminated along with inertias: they cost digits like mu W W^T over the smallest inertia
        kappa = max(kappa, method.prox.mu * (1 + np.linalg.norm(J, 2) ** 2 / np.linalg.eigvalsh(M)[0]))
    bound = 50 * kappa * EPS
    force, expected = J.T @ lam, J.T @ lam0
    free = max(1.0, float(np.abs(a0).max()), float(np.abs(unheld).max()))
    assert np.abs(a - a0).max() <= bound * free, (np.abs(a - a0).max() / free, bound)
    scale = max(1.0, float(np.abs(expected).max(initial=0)), float(np.abs(M).max() * free))
    assert np.abs(force - expected).max(initial=0) <= bound * scale, (np.abs(force - expected).max() / scale, bound)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("method", HARD, ids=lambda m: m.name)
def test_contacts_on_trees(method, name) -> None:
    model = made(name)
    if method.refusal(model):
        with pytest.raises(lw.LinkworkError, match=method.name):
            lw.forward_dynamics(model, method=method.name)
        return
    judge(method, model, *state(model, "random", 1))


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("method", [m for m in HARD if m.rows == "any"], ids=lambda m: m.name)
def test_closed_loops(method, name) -> None:
    model = made(name)
    q, v, tau = state(model, "neutral", 2)
    judge(method, model, q, v, tau)


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("method", [m for m in REDUNDANT if m.rows == "any"], ids=lambda m: m.name)
def test_redundant_and_singular_loops(method, name) -> None:
    model = made(name)
    q, v, tau = state(model, "neutral", 3)
    if method.local and name == "four-bar, flat":  # its independent joint cannot move it from there
        with pytest.raises(lw.LinkworkError, match="no solution"):
            lw.forward_dynamics(model, method=method.name, backend="numpy")(q, 0 * v, tau)
        return
    judge(method, model, q, 0 * v, tau)


@pytest.mark.parametrize("method", REDUNDANT, ids=lambda m: m.name)
@pytest.mark.parametrize("posture", ["random", "neutral"])
def test_duplicated_rows(method, posture) -> None:
    """carpentier2021 V-F: two feet held by six welds, 36 rows of rank 12; and straight legs, which lose rank."""
    model = contacts(mech.humanoid(hands=False), *(["left_foot", "right_foot"] * 3))
    assert model.rows == 36
    q, v, tau = state(model, posture, 4)
    judge(method, model, q, 0 * v if posture == "neutral" else v, tau)


@pytest.mark.parametrize("method", EXACT, ids=lambda m: m.name)
def test_methods_without_a_proximal_term_refuse_duplicated_rows_loudly(method) -> None:
    model = contacts(mech.quadruped(), FEET[0], FEET[0], kind=lw.point)
    fd = lw.forward_dynamics(model, method=method.name, backend="numpy")
    with pytest.raises(lw.LinkworkError, match="depend on each other"):
        fd(*state(model, "random", 5))


@pytest.mark.parametrize("method", [m for m in REDUNDANT if m.name != "pv_early"], ids=lambda m: m.name)
def test_conflicting_rows_are_solved_in_the_least_squares_sense(method) -> None:
    """A foot that must accelerate in two ways at once takes the mean; the forces do not matter."""
    q4 = mech.quadruped()
    K = np.eye(6)[:3]
    link = q4.links[q4.frame(FEET[0]).link].name
    model = q4.with_constraints(lw.LinkRows({link: K}, (1.0, 0, 0)), lw.LinkRows({link: K}, (3.0, 0, 0)))
    mean = q4.with_constraints(lw.LinkRows({link: K}, (2.0, 0, 0)))
    if method.refusal(model):
        pytest.skip(f"{method.name} takes no such rows")
    q, v, tau = state(model, "random", 6)
    expected = lw.forward_dynamics(mean, method="kkt", backend="numpy")(q, v, tau).a
    a, _ = solve(method, model, q, v, tau)
    assert np.abs(a[:, 0] - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("method", HARD, ids=lambda m: m.name)
def test_without_constraints_every_method_is_aba(method) -> None:
    model = mech.random_tree(8, seed=2, joints=["revolute", "spherical"], base="free")
    q, v, tau = state(model, "random", 7)
    a, lam = solve(method, model, q, v, tau)
    expected = aba(motion(model, q, v), col(tau))
    assert lam.shape == (0, 1)
    assert np.abs(a - expected).max() <= 100 * EPS * cond(crba(motion(model, q, v))) * np.abs(expected).max()


@pytest.mark.parametrize("method", [m for m in HARD if m.rows != "none"], ids=lambda m: m.name)
def test_external_forces(method) -> None:
    model = contacts(mech.quadruped(), *FEET[:2], kind=lw.point)
    q, v, tau = state(model, "random", 8)
    fext = np.random.default_rng(8).normal(size=6 * model.nlinks) * 10
    judge(method, model, q, v, tau, fext)


@pytest.mark.parametrize("method", [m for m in HARD if m.prox is not None], ids=lambda m: m.name)
def test_no_penalty_is_refused_and_a_penalty_converges(method) -> None:
    model = contacts(mech.quadruped(), FEET[0], FEET[0], kind=lw.point)
    q, v, tau = state(model, "random", 9)
    with pytest.raises(lw.LinkworkError, match="mu is a finite number above 0"):
        lw.forward_dynamics(model, method=method.name, backend="numpy", prox=lw.Prox(mu=0.0))
    result = lw.forward_dynamics(model, method=method.name, backend="numpy")(q, v, tau)
    J, k = joint_space(motion(model, q, v))
    assert result.converged
    assert np.abs(J @ result.a - k[:, 0]).max() <= 1e-6
    assert 1 <= result.iterations <= 5


@pytest.mark.parametrize("soft", [m.name for m in registry.methods("forward_dynamics").values() if m.soft])
def test_soft_rows_minimise_the_soft_gauss_function(soft) -> None:
    """(M + J^T R^-1 J) a = tau - c + J^T R^-1 k, and lam = R^-1 (k - J a)."""
    model = contacts(mech.quadruped(), *FEET[:3], kind=lw.point)
    q, v, tau = state(model, "random", 10)
    R = np.random.default_rng(3).uniform(1e-4, 1e-2, model.rows)
    a, lam = lw.forward_dynamics(model, method=soft, backend="numpy", R=R)(q, v, tau)
    at = motion(model, q, v)
    J, k = joint_space(at)
    M = crba(at)
    from linkwork.algorithms.tree.rnea import rnea

    A = M + J.T @ (J / R[:, None])
    expected = np.linalg.solve(A, col(tau) - rnea(at, None) + J.T @ (k / R[:, None]))[:, 0]
    assert np.abs(a - expected).max() <= 100 * EPS * cond(A) * np.abs(expected).max()
    np.testing.assert_allclose(lam, (k[:, 0] - J @ expected) / R, rtol=1e-7, atol=1e-7 * np.abs(lam).max())
