"""The approximate tree of a robot with differentials: chignoli2023_clusters, II-C, for Tello."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.algorithms.common.embedding import embeddings
from linkwork.algorithms.tree.crba import crba
from linkwork.backends.numpy_ import NUMPY
from linkwork.closure.approximate import reflected_inertia
from linkwork.errors import NotFound, UnsupportedError
from linkwork.model import Motion
from linkwork.robots.tello import tello
from linkwork.structure.clusters import clusters


def mass(model: lw.Model) -> tuple[np.ndarray, Motion]:
    motion = Motion(model, model.neutral()[:, None], np.zeros((model.nv, 1)), NUMPY)
    return crba(motion), motion


def test_tello_with_rotors_reflected_through_its_differentials() -> None:
    """Rotors are most of the inertia of a knee: without them it is 93 % off, reflected 4 %."""
    try:
        model = tello()
    except NotFound:
        pytest.skip("the robot 'tello_humanoid' is not installed; LINKWORK_ROBOTS lists where to look")
    with pytest.raises(UnsupportedError, match="with_independent"):
        lw.approximate(model)
    model = model.with_independent(*(l.joint_name for l in model.links[1:] if "rotor" not in l.joint_name))
    M, motion = mass(model)
    G, _ = embeddings(motion, clusters(model))
    exact = G.T @ M @ G
    size = np.sqrt(np.diagonal(exact))
    bare, _ = mass(lw.approximate(model, reflected=False))
    geared, _ = mass(lw.approximate(model))

    def error(found: np.ndarray) -> float:
        return float(np.abs((found - exact) / np.outer(size, size)).max())

    assert error(bare) > 0.9
    assert error(geared) < 0.05
    assert error(bare + reflected_inertia(model)) < 0.05
