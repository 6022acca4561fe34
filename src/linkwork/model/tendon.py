"""Tendons: springs and dampers over several joints.

The length of a tendon is a linear function of joint positions, and its force acts on the joints by the same gears:

    l = sum_j g_j x_j,     l' = sum_j g_j v_j,     tau_j = g_j f,     x_j the position of joint j (nv numbers)

    f = -stiffness (l - rest) - damping l'          slack between two rest lengths: a spring outside of them only

which is MuJoCo's fixed tendon. What they add to joint forces is in model/springs_and_dampers.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linkwork.checks import NAME, NOT_NEGATIVE, NUMBER, checked_class, either
from linkwork.model.actuator import JOINTS, RANGE, check_gears, gears_of
from linkwork.value_objects import Value, read_only, short

if TYPE_CHECKING:
    from linkwork.model.model import Model


@checked_class(joints=JOINTS, stiffness=NOT_NEGATIVE, damping=NOT_NEGATIVE, rest=either(NUMBER, RANGE), name=NAME)
@dataclass(frozen=True, eq=False, repr=False)
class Tendon(Value):
    """A spring and damper over joints, on the length l = sum g_j q_j.

    Its force is f = -stiffness (l - rest) - damping l', and that of joint j g_j f.

    `joints` names a joint, or is a dictionary from names to gears g_j: a number, or one for each degree of freedom of
    the joint. `rest` is the length without force; a pair (lower, upper) is a tendon that is slack in between. The
    default `name` is that of the first joint.

    Examples:
        >>> model = chain(2).with_tendons(lw.Tendon({"link1_joint": 1.0, "link2_joint": -1.0}, stiffness=50.0))
        >>> float(lw.inverse_dynamics(model.with_gravity([0, 0, 0]))([0.3, 0.1], np.zeros(2), np.zeros(2)).tau[0])
        10.0
    """

    joints: Mapping[str, tuple[float, ...]]
    stiffness: float = 0.0
    damping: float = 0.0
    rest: tuple[float, float] = 0.0  # type: ignore[assignment]
    name: str = ""

    def __post_init__(self) -> None:
        gears = gears_of(self.joints, "a tendon runs over at least one joint")
        object.__setattr__(self, "joints", read_only(gears))
        object.__setattr__(self, "name", self.name or next(iter(gears)))
        for what in ("stiffness", "damping"):
            object.__setattr__(self, what, float(getattr(self, what)))
        lower, upper = np.broadcast_to(np.asarray(self.rest, dtype=float), (2,))
        object.__setattr__(self, "rest", (float(lower), float(upper)))

    def check(self, model: Model) -> None:
        """Raise unless the model has its joints, with as many degrees of freedom as it has gears."""
        check_gears(f"tendon '{self.name}'", self.joints, model)

    def renamed(self, new: Callable[[str], str]) -> Tendon:
        """The same with the new names of its joints and its own."""
        return replace(self, joints={new(n): g for n, g in self.joints.items()}, name=new(self.name))

    def describe(self) -> str:
        """What it is, in a few words."""
        lower, upper = self.rest
        rest = f"rest {lower:.4g}" if lower == upper else f"slack {lower:.4g} .. {upper:.4g}"
        return f"stiffness {self.stiffness:.4g}, damping {self.damping:.4g}, {rest}"

    def __repr__(self) -> str:
        return f"Tendon({short(self.name)} on {', '.join(self.joints)}: {self.describe()})"
