"""Actuators: from controls u to joint forces, through gears and fixed tendons.

The length of an actuator is a linear function of joint positions, and its force acts on the joints by the same gears:

    l = sum_j g_j x_j,     l' = sum_j g_j v_j,     tau_j = g_j f,     x_j the position of joint j (nv numbers)

    f = (gain . [1 l l']) u + bias . [1 l l']          u within its control range, f within its force range

which is MuJoCo's affine actuator: a motor has the gain [1 0 0], a position servo the gain [kp 0 0] and the bias
[0 -kp -kd], a velocity servo [kd 0 0] and [0 0 -kd]. An actuator with a state has its activation in place of u
(activation.py). All actuators of a joint together push with at most its effort
limit, where it has one above zero. What they make of `u` is in model/joint_forces.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linkwork.checks import (
    ARRAY,
    NAME,
    NOT_NEGATIVE,
    NUMBER,
    Kind,
    Refused,
    checked,
    checked_class,
    choice,
    either,
    mapping,
)
from linkwork.checks import real_array as any_numbers
from linkwork.errors import ModelError, listing
from linkwork.value_objects import Value, read_only, short

if TYPE_CHECKING:
    from linkwork.model.model import Model


def _range(value: object) -> tuple[float, float]:
    given = any_numbers(value)
    if given.shape != (2,):
        raise Refused
    x = given.astype(float)
    if not x[0] <= x[1]:
        raise Refused
    return float(x[0]), float(x[1])


RANGE = Kind("a pair (lower, upper), infinite where there is no bound", _range)
JOINTS = either(NAME, mapping(ARRAY, "the name of a joint, or a dictionary from joints to gears"))
EVERYTHING = (-np.inf, np.inf)


STATES = ("", "integrator", "filter", "filterexact")
"""What kind of state an actuator may have; "" is none."""


@checked_class(
    joints=JOINTS,
    gain=ARRAY,
    bias=ARRAY,
    control_range=RANGE,
    force_range=RANGE,
    name=NAME,
    state=choice("state of an actuator", STATES),
    time_constant=NOT_NEGATIVE,
    state_range=RANGE,
)
@dataclass(frozen=True, eq=False, repr=False)
class Actuator(Value):
    """What makes joint forces of one control u: f = (gain . [1 l l']) u + bias . [1 l l'], tau_j = g_j f.

    `joints` names a joint, or is a dictionary from names to gears g_j: a number, or one for each degree of freedom of
    the joint. With several joints it is a fixed tendon, or a differential. `gain` and `bias` have up to three numbers,
    for 1, the length l = sum g_j q_j and its rate; ball joints count by their rotation vector. The default `name` is
    that of the first joint. `lw.Motor`, `lw.PositionServo` and `lw.VelocityServo` are short names for common ones.

    With a `state` the force is that of an activation w instead of u: w' = u ("integrator") or w' = (u - w) /
    time_constant ("filter", and "filterexact", whose steps are exact for a control that is held), w within its
    `state_range`. Functions then take w as `act`, zero by default; rollouts and simulations integrate it.

    Examples:
        >>> tendon = lw.Actuator({"index": 1.0, "middle": 0.8}, gain=3.0, bias=(0.0, -2.0), force_range=(0, 20))
        >>> tendon.name, tendon.gain, dict(tendon.joints)
        ('index', array([3., 0., 0.]), {'index': (1.0,), 'middle': (0.8,)})
        >>> chain(2).with_actuators(lw.Actuator("link1_joint", state="filter", time_constant=0.1)).na  # activations
        1
    """

    joints: Mapping[str, tuple[float, ...]]
    gain: np.ndarray = 1.0  # type: ignore[assignment]
    bias: np.ndarray = 0.0  # type: ignore[assignment]
    control_range: tuple[float, float] = EVERYTHING
    force_range: tuple[float, float] = EVERYTHING
    name: str = ""
    state: str = ""
    time_constant: float = 0.0
    state_range: tuple[float, float] = EVERYTHING

    def __post_init__(self) -> None:
        gears = gears_of(self.joints, "an actuator acts on at least one joint")
        object.__setattr__(self, "joints", read_only(gears))
        object.__setattr__(self, "name", self.name or next(iter(gears)))
        for what in ("gain", "bias"):
            x = np.atleast_1d(np.array(getattr(self, what), dtype=float))
            if x.ndim != 1 or len(x) > 3:
                raise ModelError(f"actuator '{self.name}': {what} has up to three numbers, for 1, length and velocity")
            object.__setattr__(self, what, read_only(np.concatenate([x, np.zeros(3 - len(x))])))
        if self.state.startswith("filter") and not self.time_constant > 0:
            raise ModelError(f"actuator '{self.name}': a filter has a time_constant above 0 s")

    def check(self, model: Model) -> None:
        """Raise unless the model has its joints, with as many degrees of freedom as it has gears."""
        check_gears(f"actuator '{self.name}'", self.joints, model)

    def renamed(self, new: Callable[[str], str]) -> Actuator:
        """The same with the new names of its joints and its own."""
        return replace(self, joints={new(n): g for n, g in self.joints.items()}, name=new(self.name))

    @property
    def is_servo(self) -> bool:
        """Whether its force depends on length or velocity."""
        return bool(self.bias[1:].any() or self.gain[1:].any())

    def describe(self) -> str:
        """What it is, in a few words."""
        g, b = self.gain, self.bias
        if not self.is_servo:
            kind = "motor" if g[0] == 1 and not b[0] else f"motor, gain {g[0]:.4g}"
        elif not g[1:].any() and not b[0] and b[1] == -g[0]:
            kind = f"position servo, kp {g[0]:.4g}, kd {-b[2] + 0.0:.4g}"
        elif not g[1:].any() and not b[:2].any() and b[2] == -g[0]:
            kind = f"velocity servo, kd {g[0]:.4g}"
        else:
            kind = f"gain {short(g)}, bias {short(b)}"
        lag = f", {self.time_constant:.4g} s" if self.time_constant else ""
        return f"{kind}; {self.state}{lag}" if self.state else kind

    def __repr__(self) -> str:
        return f"Actuator({short(self.name)} on {listing(self.joints, 3)}: {self.describe()})"


def gears_of(joints: object, otherwise: str) -> dict[str, tuple[float, ...]]:
    """Gears by joint from the name of one, or a dictionary; `otherwise` is the error without any."""
    given = {joints: 1.0} if isinstance(joints, str) else joints
    assert isinstance(given, Mapping)
    if not given:
        raise ModelError(otherwise)
    return {n: tuple(float(x) for x in np.ravel(g)) for n, g in given.items()}


def check_gears(owner: str, joints: Mapping[str, tuple[float, ...]], model: Model) -> None:
    """Raise unless the model has these joints, with as many degrees of freedom as there are gears."""
    for name, gears in joints.items():
        joint = model.links[model.joint(name)].joint
        if len(gears) != joint.nv:
            raise ModelError(
                f"{owner} has {len(gears)} gears for joint '{name}', which has {joint.nv} degrees of freedom; give one "
                "for each"
            )


@checked(joints=JOINTS, gear=NUMBER)
def Motor(joints: object, gear: float = 1.0, **options: object) -> Actuator:
    """A motor: tau = gear u.

    `joints` names a joint, or is a dictionary from names to their own gears, each times `gear`. `options` are those of
    `Actuator`: control_range, force_range, name.

    Examples:
        >>> model = chain(2).with_actuators(lw.Motor("link1_joint", gear=9.0, control_range=(-1, 1)))
        >>> lw.actuation(model)(np.zeros(2), np.zeros(2), [3.0]).tau
        array([9., 0.])
    """
    return Actuator(_geared(joints, gear), 1.0, **options)  # type: ignore[arg-type]


@checked(joints=JOINTS, kp=NOT_NEGATIVE, kd=NOT_NEGATIVE, gear=NUMBER)
def PositionServo(joints: object, kp: float, kd: float = 0.0, gear: float = 1.0, **options: object) -> Actuator:
    """A position servo: f = kp (u - l) - kd l', with l = gear q.

    `joints` and `options` are those of `lw.Motor`; stiffness `kp` and damping `kd` are those of the length l.

    Examples:
        >>> lw.PositionServo("knee", kp=80.0, kd=2.0, force_range=(-40, 40))
        Actuator('knee' on 'knee': position servo, kp 80, kd 2)
    """
    return Actuator(_geared(joints, gear), kp, (0.0, -kp, -kd), **options)  # type: ignore[arg-type]


@checked(joints=JOINTS, kd=NOT_NEGATIVE, gear=NUMBER)
def VelocityServo(joints: object, kd: float, gear: float = 1.0, **options: object) -> Actuator:
    """A velocity servo: f = kd (u - l'), with l = gear q.

    `joints` and `options` are those of `lw.Motor`; `kd` is the force for each rad/s or m/s off.

    Examples:
        >>> lw.VelocityServo("wheel", kd=0.5, gear=2.0)
        Actuator('wheel' on 'wheel': velocity servo, kd 0.5)
    """
    return Actuator(_geared(joints, gear), kd, (0.0, 0.0, -kd), **options)  # type: ignore[arg-type]


def _geared(joints: object, gear: float) -> dict[str, object]:
    gears = {joints: 1.0} if isinstance(joints, str) else joints
    assert isinstance(gears, Mapping)
    return {n: gear * np.asarray(g, dtype=float) for n, g in gears.items()}
