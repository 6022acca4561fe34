"""Joints made of others: the same mechanism as a chain of simple joints with massless links between them."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, body, cond, rotation
from linkwork.joints import Composite, Cylindrical, Helical, Prismatic, Revolute, Spherical, SphericalZYX, Translation
from linkwork.model import Placement

CASES = {
    "spherical_zyx": (SphericalZYX(), [Revolute("z"), Revolute("y"), Revolute("x")]),
    "translation": (Translation(), [Prismatic("x"), Prismatic("y"), Prismatic("z")]),
    "composite": (Composite(Prismatic("y"), Spherical()), [Prismatic("y"), Spherical()]),
}


def pair(name):
    """A hinge, the joint, and another hinge: with the composed joint, and with its parts."""
    joint, parts = CASES[name]
    rng = np.random.default_rng(4)
    places = [Placement(rotation(rng), rng.normal(size=3) * 0.3) for _ in range(3)]
    bodies = [body(rng) for _ in range(3)]
    whole, chain = lw.Builder("whole"), lw.Builder("chain")
    for b in (whole, chain):
        b.link("a", "world", Revolute("x"), placement=places[0], inertia=bodies[0])
    whole.link("b", "a", joint, placement=places[1], inertia=bodies[1])
    before = "a"
    for k, part in enumerate(parts):
        last = k == len(parts) - 1
        chain.link(
            "b" if last else f"between{k}",
            before,
            part,
            placement=places[1] if k == 0 else Placement(),
            inertia=bodies[1] if last else lw.BodyInertia(),
        )
        before = f"between{k}"
    for b in (whole, chain):
        b.link("c", "b", Revolute("y"), placement=places[2], inertia=bodies[2])
    return tuple(b.build().with_constraints(lw.point("c")) for b in (whole, chain))


@pytest.mark.parametrize("backend", ["numpy", "kernel"])
@pytest.mark.parametrize("name", CASES)
def test_dynamics_are_those_of_the_chain(name, backend):
    whole, chain = pair(name)
    q, rng = whole.random_q(3), np.random.default_rng(3)
    v, tau = rng.normal(size=whole.nv), rng.normal(size=whole.nv)
    M = lw.mass_matrix(chain, backend="numpy")(q).M
    names = ("M", "C", "c", "h", "J", "Jdot_v") if backend == "numpy" else ("M", "c", "J")
    for mine, theirs in zip(
        *(lw.terms(m, names, ["b", "c"], backend=backend)(q, v) for m in (whole, chain)), strict=True
    ):
        assert_close(mine, theirs, scale=10.0)
    for method in ("ltl", "prox_pv", "constrained_aba") if backend == "numpy" else ("constrained_aba",):
        a, b = (lw.forward_dynamics(m, method=method, backend=backend)(q, v, tau) for m in (whole, chain))
        J = lw.constraint_jacobian(chain, backend="numpy")(q).J
        lost = lw.Prox().mu if method == "constrained_aba" else 1e2  # a penalty loses as many digits as it has
        assert_close(a.a, b.a, cond(M) * cond(J) ** 2, scale=10 * lost * np.abs(b.a).max())
    integrated = [m.integrate(q, 0.1 * v) for m in (whole, chain)]
    assert_close(integrated[0], integrated[1])


def test_quaternions_inside_are_checked_and_found():
    whole, _ = pair("composite")
    assert whole.unit_parts(whole.link("b")) == [slice(2, 6)]
    bad = whole.random_q(0)
    bad[2:6] *= 1.1
    with pytest.raises(lw.LinkworkError, match="quaternion"):
        lw.mass_matrix(whole)(bad)
    assert_close(whole.normalised(bad)[2:6], whole.random_q(0)[2:6])


def test_what_cannot_be_composed_is_refused():
    with pytest.raises(lw.LinkworkError, match="at least one"):
        Composite()
    with pytest.raises(lw.LinkworkError, match="joint"):
        Composite("revolute")


def test_a_coupled_cylindrical_joint_is_a_screw():
    """Entries of one joint are coupled: length = pitch * angle."""
    rng, pitch = np.random.default_rng(8), 0.05
    place, bodies = Placement(rotation(rng), rng.normal(size=3)), [body(rng) for _ in range(2)]
    models = []
    for joint in (Helical("y", pitch), Cylindrical("y")):
        b = lw.Builder()
        b.link("a", "world", Revolute("x"), inertia=bodies[0])
        b.link("b", "a", joint, placement=place, inertia=bodies[1])
        models.append(b.build())
    screw, coupled = models[0], models[1].with_constraints(lw.Coupling("b_joint[0]", {"b_joint[1]": [pitch]}))
    q, v, tau = rng.normal(size=(3, 2))
    expected = lw.forward_dynamics(screw, method="aba", backend="numpy")(q, v, tau).a
    longer = [np.array([x[0], pitch * x[1], x[1]]) for x in (q, v)]
    force = np.array([tau[0], 0.0, tau[1]])
    kappa = cond(lw.mass_matrix(coupled, backend="numpy")(longer[0]).M)
    for method in ("kkt", "c_aba", "prox_ltl", "lcaba", "prox_bbo", "mixed"):
        penalised = lw.Prox().mu if method in ("lcaba", "mixed") else 1.0  # which loses as many digits as mu has
        a = lw.forward_dynamics(coupled, method=method, backend="numpy")(*longer, force).a
        assert_close(a, [expected[0], pitch * expected[1], expected[1]], kappa * penalised, scale=100.0)
    assert coupled.constraints[0].renamed(lambda n: f"x/{n}").joint == "x/b_joint[0]"


def test_any_entry_of_any_joint_mimics_another():
    """A yaw-pitch-roll joint whose roll follows a hinge, against the same chain of hinges."""
    whole, chain = (m.without_constraints() for m in pair("spherical_zyx"))
    whole = whole.with_constraints(lw.Coupling("b_joint[2]", {"a_joint": [0.5, 0.2]}, offset=0.1))
    chain = chain.with_constraints(lw.Coupling("b_joint", {"a_joint": [0.5, 0.2]}, offset=0.1))
    q, rng = whole.random_q(3), np.random.default_rng(3)
    v, tau = rng.normal(size=whole.nv), rng.normal(size=whole.nv)
    for method in ("kkt", "prox_pv", "c_aba"):
        a, b = (lw.forward_dynamics(m, method=method, backend="numpy")(q, v, tau).a for m in (whole, chain))
        assert_close(a, b, 1e4, scale=10.0)


@pytest.mark.parametrize("name", ["b_joint", "b_joint[3]", "c_joint[1]"])
def test_couplings_of_what_is_not_there_are_refused(name):
    whole, _ = pair("spherical_zyx")
    with pytest.raises(lw.LinkworkError, match="degrees of freedom"):
        whole.with_constraints(lw.Coupling(name, {"a_joint": [1.0]}))
