"""Contacts and long loops together with clusters, against dense linear algebra on the full model, gears as rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import cluster_cases as cases
import linkwork as lw
from helpers import motion
from linkwork.algorithms.tree.crba import crba
from linkwork.constraints import jacobian
from linkwork.errors import InputError
from linkwork.robots import mechanisms as mech


def legs_on_a_board(links: int = 3) -> lw.Model:
    """A free trunk on two geared legs, both feet welded to one free board, which stands on the ground with a corner."""
    b = lw.Builder("geared legs on a board")
    body = lw.BodyInertia(1.0, np.array([0.1, 0.02, -0.03]), np.diag([0.02, 0.03, 0.04]))
    rotor = lw.BodyInertia(0.2, np.zeros(3), np.diag([2e-4, 2e-4, 4e-4]))
    b.link("trunk", "world", "free", inertia=body)
    for side, y in (("left", 0.2), ("right", -0.2)):
        parent, at = "trunk", lw.Placement.at((0, y, 0), (0.2, 0.1, 0))
        for k in range(links):
            for name, inertia in ((f"{side}{k}", body), (f"{side}_rotor{k}", rotor)):
                b.link(name, parent, "revolute", placement=at, inertia=inertia, joint_name=f"{name}_joint")
            b.constraints.append(lw.Coupling(f"{side}_rotor{k}_joint", {f"{side}{k}_joint": [6.0]}))
            b.independent.append(f"{side}{k}_joint")
            parent, at = f"{side}{k}", lw.Placement.at((0.3, 0, 0), (np.pi / 2 - 0.2, 0.1, 0.3))
    b.link("board", "world", "free", inertia=body)
    b.frame("corner", "board", lw.Placement.at((0.3, 0.2, 0)))
    for side, y in (("left", 0.2), ("right", -0.2)):
        b.frame(f"{side}_place", "board", lw.Placement.at((0, y, 0)))
        b.constraints.append(lw.Weld(f"{side}{links - 1}", f"{side}_place"))
    b.constraints.append(lw.point("corner"))
    return b.build()


def within_a_cluster() -> lw.Model:
    """Belts over four joints in one cluster; rows tie two of its links, and its last to the next cluster's."""
    rng = np.random.default_rng(2)
    rows = [
        lw.LinkRows({a: rng.normal(size=(2, 6)), b: rng.normal(size=(2, 6))}, rng.normal(size=2), name=f"{a}-{b}")
        for a, b in (("link2", "link4"), ("link4", "link6"), ("link3", "link5"))
    ]
    return mech.belt_chain(8, group=4, base="free").with_constraints(*rows, lw.point("tip"))


def linkages_that_meet() -> lw.Model:
    """Two legs with linkages on one base, rows between whose feet are a long loop through clusters of four bodies."""
    b = lw.Builder("base")
    body = lw.BodyInertia(1.0, np.array([0.1, 0.02, -0.03]), np.diag([0.02, 0.03, 0.04]))
    b.link("base", "world", "free", inertia=body)
    legs = [
        lw.Part(mech.planar_leg(base="free"), f"{side}/", to="base", placement=lw.Placement.at((x, 0, 0)))
        for side, x in (("left", -0.1), ("right", 0.15))
    ]
    both = lw.combine(b.build(), *legs)
    rng = np.random.default_rng(3)
    ends = {both.links[both.frame(f"{side}/foot").link].name: rng.normal(size=(3, 6)) for side in ("left", "right")}
    return both.with_constraints(lw.LinkRows(ends, rng.normal(size=3)), lw.point("left/foot"))


def humanoid(name: str, feet: tuple[str, str], hands: tuple[str, str]) -> lw.Model:
    model = cases.ALL[name]()
    return model.with_constraints(*(lw.surface(f) for f in feet), lw.Weld(*hands, name="hands"))


MIXED: dict[str, Callable[[], lw.Model]] = {
    "legs on a board": legs_on_a_board,
    "within a cluster": within_a_cluster,
    "linkages that meet": linkages_that_meet,
    "mit_humanoid": lambda: humanoid(
        "mit_humanoid", ("left_ankle_link", "right_ankle_link"), ("left_elbow_link", "right_elbow_link")
    ),
    "tello": lambda: humanoid("tello", ("left-foot", "right-foot"), ("left-elbow", "right-elbow")),
}
METHODS = ("c_lcaba", "c_prox_bbo", "mixed", "c_mixed")


@cache
def mixed(name: str) -> tuple[lw.Model, np.ndarray, np.ndarray, np.ndarray]:
    model = MIXED[name]()
    return model, *cases.state(model, 1)


def check(model: lw.Model, result, q, v, tau, tolerance: float = 1e-6, truth: lw.Model | None = None) -> None:
    """Accelerations and forces of constraints in joint space are those of `kkt`, where nothing is a cluster."""
    truth = truth or model
    expected = lw.forward_dynamics(truth, method="kkt", backend="numpy")(q, v, tau)
    size = float(np.abs(expected.a).max())
    assert result.iterations <= 12
    assert np.abs(result.a - expected.a).max() < tolerance * size
    J, J0 = jacobian(motion(model, q, v)), jacobian(motion(truth, q, v))
    M = np.abs(crba(motion(model, q, v))).max()
    assert np.abs(J.T @ result.lam - J0.T @ expected.lam).max() < tolerance * M * size


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("method", METHODS)
def test_loops_between_clusters(method, name) -> None:
    """Velocities keep the gears, and break contacts and long loops, whose rows are solved as they are."""
    model, q, v, tau = mixed(name)
    assert len(lw.clusters(model).outer) >= 2
    result = lw.forward_dynamics(model, method=method, backend="numpy")(q, v, tau)
    check(model, result, q, v, tau)


@pytest.mark.parametrize("name", ["legs on a board", "mit_humanoid"])
@pytest.mark.parametrize("method", METHODS)
def test_consistent_velocities(method, name) -> None:
    model, q, v, tau = mixed(name)
    v = lw.project_velocity(model, q, v)
    assert np.abs(jacobian(motion(model, q)) @ v).max() < 1e-9 * max(1.0, np.abs(v).max())
    check(model, lw.forward_dynamics(model, method=method, backend="numpy")(q, v, tau), q, v, tau)


@pytest.mark.parametrize("name", ["legs on a board", "within a cluster"])
@pytest.mark.parametrize("method", METHODS)
def test_redundant_rows(method, name) -> None:
    """Every contact and long loop twice."""
    model, q, v, tau = mixed(name)
    twice = model.with_constraints(*(model.constraints[n] for n in lw.clusters(model).outer))
    check(twice, lw.forward_dynamics(twice, method=method, backend="numpy")(q, v, tau), q, v, tau, truth=model)


@pytest.mark.parametrize("method", METHODS)
def test_loops_and_contacts_are_switched_at_run_time(method) -> None:
    """One kernel, every state of the batch in another mode; gears stay."""
    model, q, v, tau = mixed("legs on a board")
    outer = lw.clusters(model).outer
    active = np.ones((8, len(model.constraints)))
    active[:, outer] = [[k & 1, k >> 1 & 1, k >> 2] for k in range(8)]
    result = lw.forward_dynamics(model, method=method, modes=True)(*(np.tile(x, (8, 1)) for x in (q, v, tau)), active)
    for k, a in enumerate(result.a):
        kept = [c for c, w in zip(model.constraints, active[k], strict=True) if w]
        only = model.without_constraints().with_constraints(*kept)
        expected = lw.forward_dynamics(only, method="kkt", backend="numpy")(q, v, tau).a
        assert np.abs(a - expected).max() < 1e-6 * np.abs(expected).max()
        off = [np.arange(c.rows) for c in model.constraints]
        start = np.cumsum([0, *(len(o) for o in off)])
        for n, w in enumerate(active[k]):
            assert w or not np.any(result.lam[k, start[n] : start[n + 1]])


@pytest.mark.parametrize("method", METHODS)
def test_external_forces_on_rotors(method) -> None:
    model, q, v, tau = mixed("legs on a board")
    fext = np.random.default_rng(4).normal(size=6 * model.nlinks) * 10
    fd = {m: lw.forward_dynamics(model, method=m, backend="numpy", external_forces=True) for m in (method, "kkt")}
    a, expected = (fd[m](q, v, tau, fext).a for m in fd)
    assert np.abs(a - expected).max() < 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize("backend", ["numpy", "kernel"])
@pytest.mark.parametrize("method", [m for m in METHODS if m != "mixed"])
def test_embedded_couplings_cannot_be_switched_off(method, backend) -> None:
    """A typed error that names the coupling and methods that can; where nobody looks at inputs, NaN."""
    model, q, v, tau = mixed("legs on a board")
    fd = lw.forward_dynamics(model, method=method, modes=True, backend=backend)
    active = np.ones(len(model.constraints))
    active[2] = 0.0
    with pytest.raises(InputError, match=rf"'{model.constraints[2].name}'.*cannot be switched off.*lcaba.*prox_bbo"):
        fd(q, v, tau, active)
    with pytest.raises(InputError, match="cannot be switched off"):
        fd(*(np.tile(x, (3, 1)) for x in (q, v, tau)), np.array([active, np.ones_like(active), active]))
    assert np.isnan(fd.kernel(q, v, tau, active).a).all()
    check(model, fd(q, v, tau), q, v, tau)
    switched = lw.forward_dynamics(model, method="lcaba", modes=True, backend=backend)(q, v, tau, active)
    kept = model.without_constraints().with_constraints(*(c for n, c in enumerate(model.constraints) if active[n]))
    expected = lw.forward_dynamics(kept, method="kkt", backend="numpy")(q, v, tau).a
    assert np.abs(switched.a - expected).max() < 1e-6 * np.abs(expected).max()
