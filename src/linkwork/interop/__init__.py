"""The same states in the coordinates of Pinocchio, MuJoCo and Drake, and models to and from Pinocchio.

>>> to_mujoco = linkwork.interop.mujoco(model, mj_model)        # doctest: +SKIP
>>> data.qpos[:], data.qvel[:] = to_mujoco.q_to(q), to_mujoco.v_to(q, v)  # doctest: +SKIP
"""

from __future__ import annotations

from linkwork.interop.drake_ import drake
from linkwork.interop.map import Map
from linkwork.interop.mujoco_ import mujoco
from linkwork.interop.pinocchio_ import fext_to_pinocchio, from_pinocchio, pinocchio, to_pinocchio

__all__ = ["Map", "drake", "fext_to_pinocchio", "from_pinocchio", "mujoco", "pinocchio", "to_pinocchio"]
