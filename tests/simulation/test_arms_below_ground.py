"""Arms on the world whose contacts start where they cannot be: steps stay bounded, and are a start for the next one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends.numpy_ import NUMPY
from linkwork.errors import ConvergenceWarning
from linkwork.model import Motion
from linkwork.model.link import Limits


def arm(joints: list[tuple[str, str]], limits: Limits | None = None) -> lw.Model:
    b, parent = lw.Builder("arm"), "world"
    body = lw.BodyInertia(1.0, np.array([0.15, 0.0, 0.0]), 0.01 * np.eye(3))
    for k, (kind, axis) in enumerate(joints):
        place = lw.Placement.at((0.3 if k else 0.0, 0.0, 0.0))
        b.link(f"l{k}", parent, joint=kind, axis=axis, placement=place, inertia=body, limits=limits or Limits())
        parent = f"l{k}"
    return b.build()


def stepped(step, *state, **start):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return step(*state, **start)


@pytest.mark.parametrize("kind", ["prismatic", "revolute"])
@pytest.mark.parametrize("turns", [{"torsion": 0.05}, {"rolling": 0.02}, {"torsion": 0.05, "rolling": 0.02}])
def test_torsion_of_a_link_that_cannot_turn(kind, turns):
    """The mobility of such a row is zero: 0 / 0 was reported as a singular mass matrix."""
    model = arm([(kind, "z" if kind == "prismatic" else "y")])
    step = lw.step(model, [lw.Contact("l0", (0.3, 0, 0), friction=0.5, **turns)], backend="numpy")
    after = step(np.zeros(1), np.array([-1.0 if kind == "prismatic" else 1.0]), np.zeros(1), 1e-3)
    assert after.converged
    assert abs(after.v[0]) < 1e-9
    assert after.forces[2] > 0


@pytest.mark.parametrize("method", ["gauss_seidel", "active_set", "admm"])
@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_a_contact_that_moves_along_a_line(method, axis):
    """The tangential block of a single joint has a determinant of rounding, which was divided by."""
    rng = np.random.default_rng(3)
    for _ in range(8):
        contacts = [lw.Contact("l0", rng.normal(size=3), friction=1.5) for _ in range(2)]
        model = arm([("revolute", axis)])
        q, v = rng.uniform(-1.5, 1.5, 1), rng.normal(size=1)
        step = lw.step(model, contacts, ground=lw.Ground(height=2.0), method=method, backend="numpy")
        after = stepped(step, q, v, np.zeros(1), 1e-2)
        again = stepped(step, after.q, after.v, np.zeros(1), 1e-2, impulses=after.impulses)
        assert np.isfinite(again.v).all()


def test_coming_out_of_the_ground_takes_no_more_energy_than_lifting():
    """A contact nearly above the joint, 4.6 cm deep, can hardly rise: at 1 m/s the arm got thousands of joules."""
    depth = 0.046
    for across in (1e-3, 1e-2, 0.1, 0.3):
        model = arm([("revolute", "y"), ("prismatic", "x")])
        place = (-0.3 + across, 0.0, -1.0)  # of the second link, whose frame is 0.3 m from the joint
        step = lw.step(
            model, [lw.Contact("l1", place, friction=0.0)], ground=lw.Ground(height=-1.0 + depth), backend="numpy"
        )
        energy = lw.energy(model, backend="numpy")
        q, v = np.zeros(2), np.zeros(2)
        before = sum(float(np.sum(x)) for x in energy(q, v))
        after = stepped(step, q, v, np.zeros(2), 1e-3)
        gained = sum(float(np.sum(x)) for x in energy(after.q, after.v)) - before
        assert after.converged
        assert 0 < gained <= 1.1 * model.mass * 9.81 * depth, across


@pytest.mark.parametrize("backend", ["numpy", "kernel"])
def test_a_seesaw_below_the_ground_cannot_come_out(backend):
    """Both ends are pushed up, but one goes down with the other: there was no solution, and no end to impulses."""
    ends = [lw.Contact("l0", (x, 0, 0), friction=0.5) for x in (-0.3, 0.3)]
    step = lw.step(arm([("revolute", "y")]), ends, ground=lw.Ground(height=0.1), backend=backend)
    after = stepped(step, np.array([0.02]), np.array([0.1]), np.zeros(1), 1e-2)
    assert after.converged
    assert abs(after.v[0]) < 1e-8


def test_random_arms_below_the_ground_take_no_more_energy_than_lifting():
    """16 % of these had no solution, and up to 1.4e5 J where friction jams a contact that is pushed out."""
    rng, solved, count, h = np.random.default_rng(4), 0, 60, 1e-2
    for _ in range(count):
        b, joints = lw.Builder("arm"), int(rng.integers(1, 5))
        for k in range(joints):
            place = lw.Placement.at(tuple(0.2 * rng.normal(size=3)), rpy=tuple(rng.normal(size=3)))
            body = lw.BodyInertia(rng.uniform(0.2, 3), 0.1 * rng.normal(size=3), 0.01 * np.eye(3))
            kind, axis = str(rng.choice(["revolute", "prismatic"])), str(rng.choice(["x", "y", "z"]))
            b.link(f"l{k}", f"l{k - 1}" if k else "world", joint=kind, axis=axis, placement=place, inertia=body)
        model, places = b.build(), 0.3 * rng.normal(size=(int(rng.integers(1, 4)), 3))
        contacts = [lw.Contact(f"l{joints - 1}", x, friction=float(rng.choice([0.0, 0.5, 1.5]))) for x in places]
        q, v = rng.uniform(-1.5, 1.5, model.nq), rng.normal(size=model.nv)
        motion = Motion(model, q[:, None], v[:, None], NUMPY)
        gaps = np.array([float(c.evaluate(motion, lw.Ground()).gap) for c in contacts])
        ground = lw.Ground(height=gaps.min() + 0.3)
        kinetic = lw.energy(model, backend="numpy")
        without, after = (
            stepped(lw.step(model, some, ground=ground, backend="numpy"), q, v, np.zeros(model.nv), h)
            for some in ([], contacts)
        )
        most = float(kinetic(q, without.v).kinetic_energy)
        most += model.mass * 9.81 * np.maximum(ground.height - gaps, 0).sum()
        assert float(kinetic(q, after.v).kinetic_energy) <= most * (1 + 1e-6)
        solved += bool(after.converged)
    assert solved >= 0.95 * count
