"""Configurations in which a robot with a free base stands on the ground."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.collisions import Pair
from linkwork.constraints.contact import Contact, Ground
from linkwork.model import Model, Motion


def on_ground(model: Model, q: np.ndarray, feet: Sequence[Contact | Pair], height: float = 0.0) -> np.ndarray:
    """The configuration with its free base, the first joint, raised until the lowest foot is this high."""
    motion = Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY)
    out = q.copy()
    out[2] += height - min(float(foot.evaluate(motion, Ground()).gap) for foot in feet)
    return out
