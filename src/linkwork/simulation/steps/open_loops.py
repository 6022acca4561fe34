"""Loops that are open where a motion begins."""

from __future__ import annotations

import warnings
from collections.abc import Collection

import numpy as np

from linkwork.backends import get
from linkwork.closure.random_states import is_contact
from linkwork.errors import OpenLoopWarning, users_level
from linkwork.model import Model, Motion

OPEN = 1e-3
"""Metres or radians by which a loop is open rather than rounded."""


def open_loop(model: Model, q: np.ndarray, but: Collection[str] = ()) -> str:
    """What is to be said of the loop that is open most, of all `but` some; "" if none is.

    Points and surfaces on the world hold where they are.
    """
    motion = Motion(model, q[:, None], np.zeros((model.nv, 1)), get("numpy"))
    loops = [c for c in model.constraints if c.name not in but and not is_contact(c)]
    errors = {c.name: np.abs(c.position_error(motion)).max(initial=0.0) for c in loops}
    worst = max(errors, key=lambda name: errors[name], default="")
    if not worst or errors[worst] <= OPEN:
        return ""
    return f"At the start '{worst}' was violated by {errors[worst]:.2g} m or rad: begin with lw.assemble(model, q0)"


def warn_of_open_loop(model: Model, q: np.ndarray, but: Collection[str] = (), remedy: str = "") -> None:
    """Warn, once per place in the user's code as Python does, of a motion that begins and stays open."""
    settling = [c.name for c in model.constraints if c.stabilisation is not None]
    if said := open_loop(model, q, {*but, *settling}):
        warnings.warn(
            f"simulate: {said}{remedy}. Rows hold accelerations, and what is open stays so",
            OpenLoopWarning,
            stacklevel=users_level(),
        )
