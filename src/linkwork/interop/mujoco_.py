"""MuJoCo's coordinates.

Free joints: qpos = [x y z  w x y z], qvel = [linear in world axes; angular in body axes]. Ball joints: qpos =
[w x y z], angular velocity in body axes, as ours. Hinges and slides: one number; a joint with `ref` is at `ref` in the
file's pose. MuJoCo has no planar, universal or cylindrical joint: they are hinges and slides of one body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linkwork.checks import FLAG, checked, like
from linkwork.errors import MissingExtra
from linkwork.interop.codecs import FreeInWorld, PlanarAngle, Same, Shifted, WFirst
from linkwork.interop.map import PAIRED, Foreign, Map, matched, mismatch, paired
from linkwork.joints import Free, Planar, Spherical
from linkwork.model import Model
from linkwork.model.model import MODEL

WIDTHS = {"free": (7, 6), "ball": (4, 3), "slide": (1, 1), "hinge": (1, 1)}


@checked(model=MODEL, mj_model=like("an mujoco.MjModel", "njnt", "jnt_type", "qpos0"), names=PAIRED, from_ref=FLAG)
def mujoco(
    model: Model, mj_model: Any, names: Mapping[str, str | Sequence[str]] | None = None, *, from_ref: bool = False
) -> Map:
    """The map between a model and an `mujoco.MjModel` of the same robot.

    Joints are paired by name (as `lw.load` does, an unnamed one is called `<body>_joint`, an unnamed body
    `body<number>`); `names` gives other pairs, a list where one of our joints is several of theirs: {"base": ["x", "y",
    "yaw"]} for a planar one. `lw.load` keeps MuJoCo's own values of joints with `ref`; pass `from_ref=True` for a model
    that is at zero in the file's pose.
    """
    joints = _joints(mj_model)
    pairs = []
    for i, parts in matched(model, joints, names, "MuJoCo"):
        joint, kinds = model.links[i].joint, [f.kind for f in parts]
        codec: Same
        if isinstance(joint, Free) and kinds == ["free"]:
            codec = FreeInWorld(joint, model.links[i].placement, rotation_first=False, spin_in_world=False)
        elif isinstance(joint, Spherical) and kinds == ["ball"]:
            codec = WFirst(joint)
        elif isinstance(joint, Planar) and kinds == ["slide", "slide", "hinge"]:
            codec = PlanarAngle(joint)
        elif joint.kind in SINGLES and kinds == SINGLES[joint.kind]:
            shift = from_ref and len(parts) == 1
            codec = Shifted(joint, float(mj_model.qpos0[parts[0].q[0]])) if shift else Same(joint)
        else:
            raise mismatch(model, i, parts, "MuJoCo")
        pairs.append(paired(model, i, parts, codec, "MuJoCo"))
    return Map(model, pairs, int(mj_model.nq), int(mj_model.nv), "MuJoCo")


SINGLES = {
    "revolute": ["hinge"],
    "prismatic": ["slide"],
    "universal": ["hinge", "hinge"],
    "cylindrical": ["slide", "hinge"],
}
"""Our joints whose coordinates are those of hinges and slides, unchanged."""


def _joints(mj_model: Any) -> list[Foreign]:
    try:
        import mujoco as mj
    except ImportError:
        raise MissingExtra("mujoco", "mjcf", "converting to MuJoCo's coordinates") from None
    kinds = {int(getattr(mj.mjtJoint, f"mjJNT_{k.upper()}")): k for k in WIDTHS}
    out = []
    for j in range(mj_model.njnt):
        kind = kinds[int(mj_model.jnt_type[j])]
        q, v = int(mj_model.jnt_qposadr[j]), int(mj_model.jnt_dofadr[j])
        nq, nv = WIDTHS[kind]
        out.append(Foreign(mj_model.joint(j).name or _unnamed(mj_model, j), kind, range(q, q + nq), range(v, v + nv)))
    return out


def _unnamed(mj_model: Any, j: int) -> str:
    body = int(mj_model.jnt_bodyid[j])
    number = str(j - int(mj_model.body_jntadr[body])) if mj_model.body_jntnum[body] > 1 else ""
    return f"{mj_model.body(body).name or f'body{body}'}_joint{number}"
