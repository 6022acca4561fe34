"""Actuators of a compiled MJCF model: those with an affine gain and bias, on joints or fixed tendons.

Their activation may be an integrator or a filter of first order. MuJoCo's length is gear times the joint's position, or
gear times sum c_j q_j of a fixed tendon, with positions as they are here (`ref` included). Not modelled: muscles and
other activations, or those that act a step early; sites, bodies and slider cranks as transmissions, free joints,
spatial tendons, delays, plugins, and controllers with several controls.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from linkwork.model.actuator import EVERYTHING, STATES, Actuator

SHORTEST = 1e-15
"""The least time constant of a filter (mjMINVAL)."""


def read_actuators(m: Any, mj: Any, joints: list[str], wraps: Any) -> tuple[list[Actuator], Counter[str]]:
    """The actuators, and how many of each kind are left out; `wraps(n)` are the joints of tendon n."""
    made, left_out = list[Actuator](), Counter[str]()
    if int(m.opt.disableflags) & int(mj.mjtDisableBit.mjDSBL_ACTUATION):
        return made, left_out
    for a in range(len(m.actuator_trntype)):
        if int(m.opt.disableactuator) >> int(m.actuator_group[a]) & 1 and 0 <= m.actuator_group[a] <= 30:
            continue
        gears = _gears(m, mj, a, joints, wraps)
        why = _strange(m, mj, a) or (gears if isinstance(gears, str) else "")
        if why:
            left_out[why] += 1
        elif not isinstance(gears, str):
            made.append(_actuator(m, mj, a, gears))
    return made, left_out


def _strange(m: Any, mj: Any, a: int) -> str:
    """What is not modelled of an actuator's law; "" if it is affine and has no state."""
    if m.actuator_plugin[a] >= 0:
        return "actuator plugin"
    kind = _state(m, mj, a)
    if kind not in STATES:
        return f"actuator with a state ({kind})"
    if kind and m.actuator_actearly[a]:
        return "actuator with a state that acts early"
    gains = int(mj.mjtGain.mjGAIN_FIXED), int(mj.mjtGain.mjGAIN_AFFINE)
    biases = int(mj.mjtBias.mjBIAS_NONE), int(mj.mjtBias.mjBIAS_AFFINE)
    if m.actuator_gaintype[a] not in gains or m.actuator_biastype[a] not in biases:
        return "actuator that is not affine"
    if _held(m, mj, a) is not None and len(_alike(m, mj, a)) > 1:
        return "actuator of several on a tendon with a force limit"
    delayed = getattr(m, "actuator_delay", None)
    return "actuator with a delay" if delayed is not None and delayed[a] else ""


def _state(m: Any, mj: Any, a: int) -> str:
    """The kind of an actuator's activation: "" for none."""
    kind = str(mj.mjtDyn(int(m.actuator_dyntype[a])).name).rpartition("_")[2].lower()
    return "" if kind == "none" else kind


def _gears(m: Any, mj: Any, a: int, joints: list[str], wraps: Any) -> dict[str, np.ndarray] | str:
    """The gears of an actuator by joint, or what is not modelled of its transmission."""
    kinds, target, gear = mj.mjtTrn, int(m.actuator_trnid[a][0]), np.array(m.actuator_gear[a])
    kind = kinds(int(m.actuator_trntype[a]))
    if kind == kinds.mjTRN_TENDON:
        along = wraps(target)
        if along is None:
            return "actuator on a spatial tendon"
        return {joints[j]: np.array([gear[0] * c]) for j, c in along.items()}
    if kind not in (kinds.mjTRN_JOINT, kinds.mjTRN_JOINTINPARENT):
        return f"actuator on a {str(kind.name).rpartition('_')[2].lower()}"
    joint = mj.mjtJoint(int(m.jnt_type[target]))
    if joint in (mj.mjtJoint.mjJNT_HINGE, mj.mjtJoint.mjJNT_SLIDE):
        return {joints[target]: gear[:1]}
    if joint == mj.mjtJoint.mjJNT_BALL and kind == kinds.mjTRN_JOINT:
        return {joints[target]: gear[:3]}
    return "actuator on a free or ball joint in its parent's axes"


def _actuator(m: Any, mj: Any, a: int, gears: dict[str, np.ndarray]) -> Actuator:
    """One that is affine."""
    control = int(m.actuator_ctrladr[a]) if hasattr(m, "actuator_ctrladr") else a
    output = int(m.actuator_outadr[a]) if hasattr(m, "actuator_outadr") else a
    clamps = not int(m.opt.disableflags) & int(mj.mjtDisableBit.mjDSBL_CLAMPCTRL)
    state = _state(m, mj, a)
    gain, bias = np.array(m.actuator_gainprm[a][:3]), np.array(m.actuator_biasprm[a][:3])
    return Actuator(
        gears,  # type: ignore[arg-type]
        gain if m.actuator_gaintype[a] == int(mj.mjtGain.mjGAIN_AFFINE) else gain[:1],
        bias if m.actuator_biastype[a] == int(mj.mjtBias.mjBIAS_AFFINE) else np.zeros(1),
        tuple(m.actuator_ctrlrange[control]) if clamps and m.actuator_ctrllimited[control] else EVERYTHING,
        _narrower(m.actuator_forcerange[output] if m.actuator_forcelimited[output] else EVERYTHING, _held(m, mj, a)),
        m.actuator(a).name or f"actuator{a}",
        state,
        max(float(m.actuator_dynprm[a][0]), SHORTEST) if state.startswith("filter") else 0.0,
        tuple(m.actuator_actrange[a]) if state and m.actuator_actlimited[a] else EVERYTHING,
    )


def _held(m: Any, mj: Any, a: int) -> Any:
    """The range of the force on an actuator's tendon; None where it has no tendon, or that no range."""
    if m.actuator_trntype[a] != int(mj.mjtTrn.mjTRN_TENDON) or not hasattr(m, "tendon_actfrclimited"):
        return None
    tendon = int(m.actuator_trnid[a][0])
    return m.tendon_actfrcrange[tendon] if m.tendon_actfrclimited[tendon] else None


def _alike(m: Any, mj: Any, a: int) -> list[int]:
    """The actuators on the tendon of an actuator."""
    on = [b for b in range(len(m.actuator_trntype)) if m.actuator_trntype[b] == int(mj.mjtTrn.mjTRN_TENDON)]
    return [b for b in on if m.actuator_trnid[b][0] == m.actuator_trnid[a][0]]


def _narrower(one: Any, two: Any) -> tuple[float, float]:
    """What two ranges have in common; the second may be None."""
    return (float(one[0]), float(one[1])) if two is None else (max(one[0], two[0]), min(one[1], two[1]))
