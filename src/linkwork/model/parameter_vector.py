"""Parameters as one vector pi, which joint forces are linear in, and their names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwork.checks import checked, choice, several
from linkwork.model.model import MODEL, Model

LINEAR = ("inertia", "armature", "damping", "stiffness", "joint_friction")
"""The groups that joint forces are linear in."""

GROUPS = several(choice("group of parameters", LINEAR))

OF_A_LINK = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


@checked(model=MODEL, parameters=GROUPS)
def parameter_vector(model: Model, parameters: Sequence[str] = ("inertia",)) -> np.ndarray:
    """pi (p,): groups of `model.parameters()` one after another: the columns of `lw.regressor`.

    `parameters` names the groups: "inertia", "armature", "damping", "stiffness", "joint_friction".

    Examples:
        >>> lw.parameter_vector(chain(2), ("inertia", "damping")).shape
        (22,)
    """
    known = model.parameters()
    return np.concatenate([np.zeros(0), *(known[n].ravel() for n in parameters)])


def parameter_names(model: Model, parameters: Sequence[str] = ("inertia",)) -> tuple[str, ...]:
    """The names of these: "forearm.Ixx", "elbow.damping", or "base_joint.damping[3]"."""
    names = list[str]()
    for group in parameters:
        for link in model.links[1:]:
            if group == "inertia":
                names += [f"{link.name}.{x}" for x in OF_A_LINK]
            else:
                n = link.joint.nv
                name = f"{link.joint_name}.{group.removeprefix('joint_')}"
                names += [f"{name}[{k}]" if n > 1 else name for k in range(n)]
    return tuple(names)
