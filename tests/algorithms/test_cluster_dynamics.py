"""Cluster methods against dense linear algebra, each other, and the plain ones where there is no loop."""

from __future__ import annotations

import numpy as np
import pytest

import cluster_cases as cases
import linkwork as lw
from helpers import assert_close, col, cond, motion
from linkwork.algorithms.clusters.approximate import approximate_forward, approximate_rnea
from linkwork.algorithms.clusters.c_aba import c_aba
from linkwork.algorithms.clusters.c_efpa import c_efpa, c_efpa_published
from linkwork.algorithms.clusters.c_pv import c_pv
from linkwork.algorithms.clusters.c_pv_r import c_pv_r
from linkwork.algorithms.clusters.c_rnea import c_rnea
from linkwork.algorithms.clusters.lagrange import lagrange
from linkwork.algorithms.clusters.projected_efpa import projected_dense, projected_efpa
from linkwork.algorithms.clusters.projected_rnea import projected_rnea
from linkwork.algorithms.clusters.projection import projection
from linkwork.algorithms.common.embedding import embeddings
from linkwork.algorithms.constrained.kkt import kkt
from linkwork.algorithms.delassus.efpa import efpa
from linkwork.algorithms.tree.aba import aba
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.closure.approximate import reflected_inertia
from linkwork.constraints import jacobian
from linkwork.constraints.local import local_rows
from linkwork.robots import mechanisms as mech
from linkwork.structure.clusters import clusters

REDUNDANT = ("ring", "loops in a row", "ball joints", "six_bar file", "four-bar, 6-D")
"""Rows that depend on each other in the closed position, which `lagrange` does not take."""


def kappa_of(m) -> float:
    """How much cluster methods may lose: solving for dependent joints, and the projected mass matrix."""
    tree = clusters(m.model)
    G, _ = embeddings(m, tree)
    worst = cond(crba(m)) * cond(G) ** 2
    for c in tree.clusters:
        if c.constraints:
            worst = max(worst, cond(crba(m)) * cond(local_rows(m, c.bodies, c.constraints)[0][:, c.dependent]) ** 2)
    return worst


def check_forward(method, m, tau, fext=None) -> None:
    a0, lam0 = kkt(m, tau, fext)
    a, lam = method(m, tau, fext)
    kappa = kappa_of(m) * cond(jacobian(m)) ** 2
    scale = float(np.abs(aba(motion(m.model.without_constraints(), m.q, m.v), tau, fext)).max())
    assert_close(a, a0, kappa, scale=scale)
    J, M = jacobian(m), crba(m)
    assert_close(J.T @ lam, J.T @ lam0, kappa, scale=float(np.abs(M).max()) * scale)


@pytest.mark.parametrize("name", cases.ALL)
@pytest.mark.parametrize("method", [c_aba, projection, lagrange], ids=lambda f: f.__name__)
def test_forward_dynamics(method, name) -> None:
    model = cases.ALL[name]()
    if method is lagrange and name in REDUNDANT:
        pytest.skip("rows depend on each other")
    q, v, tau = cases.state(model)
    check_forward(method, motion(model, q, v), col(tau))


@pytest.mark.parametrize("name", cases.ALL)
def test_inverse_dynamics_and_round_trip(name) -> None:
    model = cases.ALL[name]()
    q, v, tau = cases.state(model, 1)
    m, tree = motion(model, q, v), clusters(model)
    G, _ = embeddings(m, tree)
    # forces of the independent joints alone, and the motion that they cause
    tau = np.where(np.isin(np.arange(model.nv), tree.velocities), tau, 0.0)
    a, _ = c_aba(m, col(tau))
    kappa, scale = kappa_of(m), float(np.abs(crba(m)).max() * np.abs(a).max())
    assert_close(c_rnea(m, a), col(tau), kappa, scale=scale)
    assert_close(projected_rnea(m, a), c_rnea(m, a), cond(G), scale=scale)
    assert_close(c_rnea(m, a)[tree.velocities], G.T @ rnea(m, a), cond(G), scale=scale)


TIPS = {
    "gears": ("tip",),
    "gears, free": ("tip", "link2"),
    "belts": ("tip", "link3", "rotor5"),
    "belts of three": ("tip", "rotor4"),
    "differential": ("tip", "link1"),
    "leg linkage": ("foot",),
    "ball joints": ("tail", "right_hand"),
    "cam": ("linktip",),
    "mini_cheetah": ("FL_knee_link", "FR_knee_link", "HL_knee_link", "HR_knee_link"),
    "tello": ("left-foot",),
}


def held(name: str, kind=lw.point) -> lw.Model:
    """The mechanism with contacts at its tips."""
    model = cases.ALL[name]()
    tips = [n for n in TIPS[name] if n in model.frames or any(l.name == n for l in model.links)]
    return model.with_constraints(*(kind(n) for n in tips or [model.links[-1].name]))


@pytest.mark.parametrize("name", TIPS)
def test_delassus_of_contacts_with_loops_resolved(name) -> None:
    model = held(name)
    q, _, _ = cases.state(model, 2)
    m, tree = motion(model, q), clusters(model)
    G, _ = embeddings(m, tree)
    rows = np.concatenate([[n] * c.rows for n, c in enumerate(model.constraints)])
    J = jacobian(m)[np.isin(rows, tree.outer)] @ G
    My = G.T @ crba(m) @ G
    expected = J @ np.linalg.solve(My, J.T)
    for method in (c_efpa, c_efpa_published, c_pv, c_pv_r, projected_efpa, projected_dense):
        assert_close(method(m), expected, kappa_of(m))


@pytest.mark.parametrize(
    "name", ["gears, free", "belts of three", "differential", "leg linkage", "ball joints", "mini_cheetah"]
)
@pytest.mark.parametrize("method", [c_aba, projection], ids=lambda f: f.__name__)
def test_contacts_and_clusters_together(method, name) -> None:
    """What neither paper does: local loops in clusters, contacts carried to the base through them."""
    model = held(name)
    q, v, tau = cases.state(model, 3)
    check_forward(method, motion(model, q, v), col(tau))


@pytest.mark.parametrize("name", ["gears, free", "belts of three", "leg linkage", "mini_cheetah"])
def test_contacts_by_penalties_and_clusters_together(name) -> None:
    """Contacts twice, so that rows are redundant; gears hold exactly all the while."""
    model = held(name)
    twice = model.with_constraints(*(model.constraints[n] for n in clusters(model).outer))
    q, v, tau = cases.state(twice, 5)
    expected = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau)
    result = lw.forward_dynamics(twice, method="c_lcaba", backend="numpy")(q, v, tau)
    size = np.abs(expected.a).max()
    assert result.iterations <= 5
    assert np.abs(result.a - expected.a).max() < 1e-6 * size
    m = motion(twice, q, v)
    force, J = jacobian(m).T @ result.lam, jacobian(motion(model, q, v))
    assert np.abs(force - J.T @ expected.lam).max() < 1e-6 * np.abs(crba(m)).max() * size


def test_feet_of_a_geared_robot_are_switched_at_run_time() -> None:
    model = mech.geared_chain(5, base="free").with_constraints(lw.point("tip"), lw.point("base"))
    q, v, tau = cases.state(model, 6)
    fd = lw.forward_dynamics(model, method="c_lcaba", modes=True, backend="numpy")
    for tip, base in ((1, 0), (0, 1), (0, 0)):
        active = np.array([1.0] * 5 + [tip, base])
        kept = [c for c, w in zip(model.constraints, active, strict=True) if w]
        only = model.without_constraints().with_constraints(*kept)
        expected = lw.forward_dynamics(only, method="kkt", backend="numpy")(q, v, tau).a
        assert np.abs(fd(q, v, tau, active).a - expected).max() < 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize("method", [c_aba, projection, lagrange], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["gears, free", "four-bar", "belts", "ball joints"])
def test_external_forces(method, name) -> None:
    """On rotors too, whose axes then do turn."""
    model = cases.ALL[name]()
    if method is lagrange and name in REDUNDANT:
        pytest.skip("rows depend on each other")
    q, v, tau = cases.state(model, 4)
    fext = np.random.default_rng(4).normal(size=6 * model.nlinks) * 10
    m = motion(model, q, v)
    check_forward(method, m, col(tau), col(fext))
    a, _ = c_aba(m, col(tau), col(fext))
    assert_close(c_rnea(m, a, col(fext)), projected_rnea(m, a, col(fext)), kappa_of(m), scale=100.0)


def test_stabilised_loops() -> None:
    """Off the closed position, c_aba pulls back as kkt does: exactly for couplings."""
    model = mech.geared_chain(3)
    soft = [lw.Coupling(c.joint, c.terms, stabilisation=lw.Stabilisation(0.1)) for c in model.constraints]
    model = model.without_constraints().with_constraints(*soft)
    rng = np.random.default_rng(5)
    m = motion(model, rng.normal(size=model.nq), rng.normal(size=model.nv))
    tau = col(rng.normal(size=model.nv))
    assert_close(c_aba(m, tau)[0], kkt(m, tau)[0], kappa_of(m), scale=1e3)


@pytest.mark.parametrize("seed", range(3))
def test_trees_without_loops(seed) -> None:
    """The plain algorithms, bit for bit."""
    model = mech.random_tree(9, seed=seed, joints=["revolute", "spherical", "prismatic"], base="free", armature=0.1)
    rng = np.random.default_rng(seed)
    q, v, tau = model.random_q(rng), rng.normal(size=model.nv), col(rng.normal(size=model.nv))
    m = motion(model, q, v)
    assert np.array_equal(c_aba(m, tau)[0], aba(m, tau))
    assert np.array_equal(c_rnea(m, tau), rnea(m, tau))
    tips = [model.links[i].name for i in model.topology.links if not model.topology.children[i]]
    # many contacts, which meet at common bodies, and few, which are coupled joint by joint
    for contacts in (1, 3):
        m = motion(model.with_constraints(*(lw.point(t) for t in tips for _ in range(contacts))), q)
        assert_close(c_efpa(m), efpa(m), cond(crba(m)))


@pytest.mark.parametrize("name", ["gears, free", "belts", "four-bar", "ball joints"])
def test_kernels(name) -> None:
    """Compiled, in batches: the same as NumPy."""
    model = cases.ALL[name]()
    states = [cases.state(model, s) for s in range(3)]
    q, v, tau = (np.array(x) for x in zip(*states, strict=True))
    fd = {b: lw.forward_dynamics(model, method="c_aba", backend=b)(q, v, tau) for b in ("kernel", "numpy")}
    kappa = max(kappa_of(motion(model, x, y)) for x, y, _ in states)
    assert_close(fd["kernel"].a, fd["numpy"].a, kappa)
    tau = {b: lw.inverse_dynamics(model, backend=b)(q, v, fd["numpy"].a).tau for b in ("kernel", "numpy")}
    assert_close(tau["kernel"], tau["numpy"], kappa, scale=float(np.abs(fd["numpy"].a).max()))


def test_impulses_and_operational_space() -> None:
    model = held("gears, free")
    q, v, _ = cases.state(model, 6)
    jump = lw.impulse(model, method="c_aba", backend="numpy")(q, v)
    expected = lw.impulse(model, method="kkt", backend="numpy")(q, v)
    assert_close(jump.v_after, expected.v_after, kappa_of(motion(model, q)))
    matrix = lw.delassus(model, method="c_efpa", backend="numpy")(q).matrix
    assert matrix.shape == (6, 6)
    osim = lw.operational_space_inertia(model, method="c_efpa", backend="numpy")
    assert_close(matrix @ osim(q, np.ones(6)).force, np.ones(6), cond(matrix))


def test_refusals() -> None:
    model = held("gears")
    with pytest.raises(lw.LinkworkError, match="neither a coupling nor a local loop"):
        lw.inverse_dynamics(model, method="c_rnea")
    far = mech.geared_chain(3).with_constraints(lw.LinkRows({"link1": np.eye(6)[:1], "link3": np.eye(6)[:1]}))
    with pytest.raises(lw.LinkworkError, match="neither a coupling nor a local loop"):
        lw.delassus(far, method="c_efpa")
    flat = mech.four_bar(angle=0.0)
    with pytest.raises(lw.LinkworkError, match="singular"):
        lw.forward_dynamics(flat, method="c_aba", backend="numpy")(flat.neutral(), np.zeros(3), np.zeros(3))


def test_explicit_rotor_is_armature_where_it_is() -> None:
    """A motor on the ground: reflected inertia N^2 I is exact. On a moving link it is not."""
    one = mech.geared_chain(1)
    q, v, tau = cases.state(one, 7)
    plain = lw.approximate(one)
    assert_close(plain.links[1].armature, [36 * one.links[2].inertia.I[2, 2]])
    tau[1] = 0.0
    a, _ = c_aba(motion(one, q, v), col(tau))
    assert_close(a[:1], aba(motion(plain, q[:1], v[:1]), col(tau[:1])), 10.0)
    three = mech.geared_chain(3)
    q, v, tau = cases.state(three, 7)
    at = clusters(three).velocities
    tau = np.where(np.isin(np.arange(6), at), tau, 0.0)
    a, _ = c_aba(motion(three, q, v), col(tau))
    off = a[at] - aba(motion(lw.approximate(three), q[at], v[at]), col(tau[at]))
    assert 1e-4 < np.abs(off).max() / np.abs(a[at]).max() < 1


def test_full_reflected_inertia_is_exact_where_rotors_only_turn() -> None:
    """Parallel belts in a plane on the ground: all that the approximation misses is the rotors' turning with links."""
    model = mech.belt_chain(2, group=2)
    H, plain = reflected_inertia(model), lw.approximate(model, reflected=False)
    I = model.links[model.link("rotor1")].inertia.I[2, 2]
    assert_close(H, 36 * I * np.array([[2.0, 1.0], [1.0, 1.0]]))
    q, v, tau = cases.state(model, 8)
    at = clusters(model).velocities
    tau = np.where(np.isin(np.arange(4), at), tau, 0.0)
    a, _ = c_aba(motion(model, q, v), col(tau))
    m = motion(plain, q[at], v[at])
    assert_close(approximate_forward(m, col(tau[at]), H), a[at], 100.0)
    assert_close(approximate_rnea(m, a[at], H), col(tau[at]), 1.0, scale=float(np.abs(a).max()))


@pytest.mark.parametrize("seed", range(10))
def test_random_couplings_on_random_trees(seed) -> None:
    """Any joint may follow any others: clusters over branches, overlapping ones, with links in between."""
    rng = np.random.default_rng(seed)
    model = mech.random_tree(10, seed=seed, joints=["revolute", "prismatic", "spherical"], base="free", armature=0.05)
    single = [l.joint_name for l in model.links[1:] if l.joint.nv == 1]
    rng.shuffle(single)
    couplings = [
        lw.Coupling(single[3 * k], {n: rng.normal(size=2) for n in single[3 * k + 1 : 3 * k + 3]})
        for k in range(len(single) // 3)
    ]
    model = model.with_constraints(*couplings)
    q, v, tau = cases.state(model, seed)
    m = motion(model, q, v)
    check_forward(c_aba, m, col(tau))
    a, _ = c_aba(m, col(tau))
    assert_close(c_rnea(m, a), projected_rnea(m, a), kappa_of(m), scale=float(np.abs(a).max()))
