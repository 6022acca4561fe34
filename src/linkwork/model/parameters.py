"""The parameters of a model as arrays: defaults of functions that take them as inputs.

An inertia is ten numbers, in Pinocchio's order: mass, first moments h = m c, and the inertia about the link's origin,

    [m  hx hy hz  Ixx Ixy Iyy Ixz Iyz Izz]

which forces are linear in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from linkwork.model.model import Model

UNITS = {
    "inertia": "kg, kg m, kg m^2",
    "armature": "kg m^2, kg",
    "gravity": "m/s^2",
    "damping": "N m s/rad, N s/m",
    "stiffness": "N m/rad, N/m",
    "rest": "rad, m, quaternions",
    "tendon_stiffness": "N per unit of length",
    "tendon_damping": "N s per unit of length",
    "tendon_rest": "units of length",
    "joint_friction": "N m, N",
    "targets": "rad/s^2, m/s^2",
    "gain": "N m, N per unit of u; per rad, m; per rad/s, m/s",
    "bias": "N m, N; per rad, m; per rad/s, m/s",
    "link_rows": "1",
}
"""The groups of parameters, and their units for rotations and translations."""


class Parameters(Mapping[str, np.ndarray]):
    """Named arrays of a model's parameters; `units` says what their numbers are.

    `inertia` (nlinks, 10), `armature`, `damping`, `stiffness`, `joint_friction` (nv,), `rest` (nq,), `gravity` (3,),
    `tendon_stiffness`, `tendon_damping` (n,) and `tendon_rest` (n, 2) of n tendons, `targets` (m,), which are added to
    the right-hand sides of constraint rows, `gain` and `bias` (nu, 3) of actuators; `link_rows` (k, 6), K of all
    `LinkRows`, constraint after constraint and link after link. The arrays are copies.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = dict(arrays)
        self.units = {n: UNITS[n] for n in arrays}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def __getattr__(self, name: str) -> np.ndarray:
        try:
            return self.__dict__["_arrays"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(f"there is no parameter '{name}'") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"Parameters({', '.join(f'{n} {x.shape}' for n, x in self.items())})"


def parameters_of(model: Model) -> Parameters:
    """The parameters of a model."""
    links = model.links[1:]

    def joined(parts: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([np.zeros(0), *parts])

    return Parameters(
        {
            "inertia": np.array([l.inertia.parameters for l in links]).reshape(-1, 10),
            "armature": joined([l.armature for l in links]),
            "gravity": np.array(model.gravity),
            "damping": joined([l.passive.damping for l in links]),
            "stiffness": joined([l.passive.stiffness for l in links]),
            "rest": joined([l.passive.rest for l in links]),
            "tendon_stiffness": np.array([t.stiffness for t in model.tendons]),
            "tendon_damping": np.array([t.damping for t in model.tendons]),
            "tendon_rest": np.array([t.rest for t in model.tendons]).reshape(-1, 2),
            "joint_friction": joined([l.passive.friction for l in links]),
            "targets": np.zeros(model.rows),
            "gain": np.array([a.gain for a in model.actuators]).reshape(-1, 3),
            "bias": np.array([a.bias for a in model.actuators]).reshape(-1, 3),
            "link_rows": np.vstack([np.zeros((0, 6)), *(c.coefficients for c in model.constraints)]),
        }
    )
