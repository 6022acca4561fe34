"""A tree with points and welds as MuJoCo reads it, for the harness that times MuJoCo.

One body per link; no geometry, so nothing collides. Constraints are as hard as MuJoCo takes them, without a reference
acceleration, and pull with neither stiffness nor damping: J a = k as nearly as a soft constraint can have it.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints import Closure
from linkwork.errors import UnsupportedError
from linkwork.model import Model
from linkwork.model.link import Link
from linkwork.spatial.rotations import matrix_quaternion

JOINTS = {"revolute": "hinge", "prismatic": "slide"}
HARD = {"solref": "-1e-9 -1e-9", "solimp": "0.9999 0.9999 0.001 0.5 2"}
"""No pull towards closed positions, and the largest impedance."""


def mjcf_text(name: str, model: Model) -> str:
    """The MJCF file of a model with hinges, slides and free joints; else UnsupportedError."""
    root = ET.Element("mujoco", model=name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="false", balanceinertia="true")
    option = ET.SubElement(root, "option", gravity=_numbers(model.gravity), timestep="0.001")
    switched_off = ("contact", "limit", "frictionloss", "sensor", "actuation")
    ET.SubElement(option, "flag", dict.fromkeys(switched_off, "disable"))
    ET.SubElement(root, "size", memory="8M")
    bodies = [ET.SubElement(root, "worldbody")]
    for i, link in enumerate(model.links[1:], 1):
        bodies.append(_body(bodies[link.parent], i, link))
    equality = ET.SubElement(root, "equality")
    for c in model.constraints:
        _tie(equality, model, c)
    return ET.tostring(root, encoding="unicode")


def _body(parent: ET.Element, i: int, link: Link) -> ET.Element:
    """Link i; the harness finds its joint by the name "j" + its number."""
    x, y, z, w = np.asarray(matrix_quaternion(link.placement.R, NUMPY))[:, 0]
    pose = {"pos": _numbers(link.placement.p), "quat": _numbers((w, x, y, z))}
    body = ET.SubElement(parent, "body", {"name": f"b{i}", **pose})
    I, weight = link.inertia.I, link.inertia
    full = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
    ET.SubElement(body, "inertial", pos=_numbers(weight.com), mass=_numbers([weight.mass]), fullinertia=_numbers(full))
    if link.joint.kind == "free":
        ET.SubElement(body, "freejoint", name=f"j{i}")
        return body
    if link.joint.kind not in JOINTS:
        raise UnsupportedError(f"MuJoCo's file has no {link.joint.kind} joint here ('{link.joint_name}')")
    axis = link.joint.axis  # type: ignore[attr-defined]
    kind = JOINTS[link.joint.kind]
    ET.SubElement(body, "joint", name=f"j{i}", type=kind, axis=_numbers(axis), armature=_numbers(link.armature))
    return body


def _tie(equality: ET.Element, model: Model, c: object) -> None:
    """A point, or a weld with the world."""
    if not isinstance(c, Closure) or c.joint not in ("spherical", "fixed"):
        raise UnsupportedError("MuJoCo's file has points and welds only")
    a, b = model.frame(c.a), model.frame(c.b)
    if c.joint == "fixed":
        if b.link:
            raise UnsupportedError("welds are with the world only")
        anchor = _numbers(a.placement.p)  # a weld's is in the frame of its second body
        ET.SubElement(equality, "weld", {"body1": "world", "body2": f"b{a.link}", "anchor": anchor, **HARD})
        return
    other = {"body2": f"b{b.link}"} if b.link else {}
    ends = {"body1": f"b{a.link}", "anchor": _numbers(a.placement.p), **other}
    ET.SubElement(equality, "connect", {**ends, **HARD})


def _numbers(x: Iterable[float]) -> str:
    return " ".join(repr(float(v)) for v in x)
