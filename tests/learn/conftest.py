"""What tests of several frameworks share: a small mechanism, its dynamics, states."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import LinkworkError


@pytest.fixture(scope="module")
def model():
    """A ball joint with an arm, whose tip is held at a distance: quaternions, a constraint, few operations."""
    b = lw.Builder("arm")
    body = lw.BodyInertia(1.2, (0.1, 0.05, 0.2), np.diag([0.02, 0.03, 0.025]))
    b.link("upper", "world", "spherical", inertia=body)
    b.link("lower", "upper", "revolute", axis="y", inertia=body, placement=lw.Placement.at((0, 0, 0.3)))
    b.frame("tip", "lower", lw.Placement.at((0, 0, 0.2)))
    return b.build().with_constraints(lw.Distance("tip", "world", length=0.4))


@pytest.fixture(scope="module")
def plain(model):
    return lw.forward_dynamics(model, parameters=("inertia",))


@pytest.fixture(scope="module")
def numbers(model):
    """q, v and tau of twelve states."""
    rng = np.random.default_rng(1)
    q, v = (np.array(x) for x in zip(*(lw.random_state(model, seed=s) for s in range(12)), strict=True))
    return q, v, rng.normal(size=(12, model.nv))


class Cassie(NamedTuple):
    """A hundred steps on both feet, and random changes of the torques of motors."""

    run: lw.Rollout
    start: tuple[np.ndarray, np.ndarray]
    held: dict[str, Any]
    tau: np.ndarray
    driven: np.ndarray
    changes: np.ndarray
    weights: np.ndarray


@pytest.fixture(scope="session")
def cassie():
    pytest.importorskip("mujoco", reason="Cassie is an MJCF file: pip install -e '.[test]'")
    try:
        model = lw.load("cassie.xml")
    except LinkworkError as why:
        pytest.skip(f"cassie.xml is in a folder of LINKWORK_ROBOTS: {why}")
    t, q, sides = model.topology, model.neutral(), ("left", "right")
    for side in sides:
        for name, x in (("hip-pitch", 0.5), ("knee", -1.2), ("tarsus", 1.43), ("foot", -1.6), ("foot-crank", -1.52)):
            q[t.q_slices[model.joint(f"{side}-{name}")]] = x
    still = [f"{side}-{name}" for side in sides for name in ("hip-pitch", "knee", "shin", "heel-spring", "foot")]
    q = lw.assemble(model, q, locked=still)
    for side in sides:
        model = model.with_frame(f"{side}-sole", f"{side}-foot", lw.Placement.at((0.018, 0.052, 0)))
    model = model.with_constraints(*(lw.point(f"{side}-sole") for side in sides))
    driven = np.zeros(model.nv, bool)
    driven[[t.v_slices[i].start for i in t.links if model.links[i].actuated]] = True
    rng, random = np.random.default_rng(0), np.random.default_rng(5)
    tau = np.zeros((100, model.nv))
    tau[:, driven] = rng.normal(size=(100, driven.sum()))
    changes = np.where(driven, random.normal(size=(3, *tau.shape)), 0.0)
    # a method, so that nothing is planned
    run = lw.rollout(model, dt=1e-3, stabilisation=True, pd=True, method="mixed")
    held = {"kp": 30.0, "kd": 1.0, "target": q}
    return Cassie(run, (q, np.zeros(model.nv)), held, tau, driven, changes, rng.normal(size=model.nq))
