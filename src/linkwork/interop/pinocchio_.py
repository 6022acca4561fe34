"""Pinocchio's coordinates, ours but for continuous joints ([cos sin] there), and models both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwork.checks import NUMBERS, checked, like
from linkwork.errors import InputError, MissingExtra, UnsupportedError, listing
from linkwork.interop.codecs import CosineSine, Same
from linkwork.interop.map import PAIRED, Foreign, Map, matched, mismatch, paired
from linkwork.joints import (
    Composite,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    SphericalZYX,
    Translation,
    Universal,
    unit_axis,
)
from linkwork.model import BodyInertia, Builder, Limits, Model, Placement
from linkwork.model.model import MODEL

KINDS = {
    "Revolute": "revolute",
    "R": "revolute",
    "RUB": "revolute",
    "Prismatic": "prismatic",
    "P": "prismatic",
    "Helical": "helical",
    "H": "helical",
    "Universal": "universal",
    "Spherical": "spherical",
    "Planar": "planar",
    "FreeFlyer": "free",
    "RevoluteUnbounded": "revolute",
    "Translation": "translation",
    "SphericalZYX": "spherical_zyx",
}
"""Pinocchio's joint models, without "JointModel", a final axis letter or "Unaligned", in our words."""


def _pin(purpose: str) -> Any:
    try:
        import pinocchio as pin
    except ImportError:
        raise MissingExtra("pin", "pinocchio", purpose) from None
    return pin


def _kind(joint: Any) -> tuple[str, bool]:
    """Our name of a Pinocchio joint ("" if there is none), and whether it writes its angle as [cos sin]."""
    name = str(joint.shortname()).removeprefix("JointModel")
    if name == "Composite":
        parts = list(joint.extract().joints)
        slides = [_kind(j)[0] for j in parts] == ["prismatic", "revolute"]
        one_axis = slides and (unit_axis(_axis(parts[0])) == unit_axis(_axis(parts[1]))).all()
        return ("cylindrical" if one_axis else "composite"), False
    stem = name.removesuffix("Unaligned")
    stem = stem[:-1] if stem[-1:] in "XYZ" and stem[:-1] in KINDS else stem
    return KINDS.get(stem, ""), stem in ("RUB", "RevoluteUnbounded")


THEIRS = like("a pinocchio.Model", "njoints", "joints", "idx_qs")


@checked(model=MODEL, pin_model=THEIRS, names=PAIRED)
def pinocchio(model: Model, pin_model: Any, names: Mapping[str, str] | None = None) -> Map:
    """The map between a model and a `pinocchio.Model` of the same robot.

    Joints are paired by name; `names` ({ours: theirs}) gives others.
    """
    theirs = []
    for k in range(1, pin_model.njoints):
        q, v, joint = int(pin_model.idx_qs[k]), int(pin_model.idx_vs[k]), pin_model.joints[k]
        kind = _kind(joint)[0] or str(joint.shortname())
        theirs.append(Foreign(str(pin_model.names[k]), kind, range(q, q + joint.nq), range(v, v + joint.nv)))
    pairs = []
    for i, parts in matched(model, theirs, names, "Pinocchio"):
        joint = model.links[i].joint
        if parts[0].kind != joint.kind:
            raise mismatch(model, i, parts, "Pinocchio")
        wrapped = len(parts[0].q) == 2 and joint.nq == 1
        pairs.append(paired(model, i, parts, CosineSine(joint) if wrapped else Same(joint), "Pinocchio"))
    return Map(model, pairs, int(pin_model.nq), int(pin_model.nv), "Pinocchio")


@checked(model=MODEL, pin_model=THEIRS, fext=NUMBERS, names=PAIRED)
def fext_to_pinocchio(model: Model, pin_model: Any, fext: np.ndarray, names: Mapping[str, str] | None = None) -> Any:
    """Forces on links, ours (6 nlinks,) in link axes, as the list by joint that Pinocchio takes."""
    pin = _pin("converting external forces")
    f = np.asarray(fext, dtype=float)
    if f.shape != (6 * model.nlinks,):
        raise InputError(f"fext has shape {f.shape}; this model needs ({6 * model.nlinks},)")
    out = pin.StdVec_Force()
    for _ in range(pin_model.njoints):
        out.append(pin.Force.Zero())
    index = {str(n): k for k, n in enumerate(pin_model.names)}
    for i in model.topology.links:
        name = model.links[i].joint_name
        if model.links[i].joint.nv:
            out[index[(names or {}).get(name, name)]] = pin.Force(f[6 * (i - 1) : 6 * i])
        elif f[6 * (i - 1) : 6 * i].any():
            raise UnsupportedError(
                f"link '{model.links[i].name}' is fixed to its parent and no body of its own in "
                "Pinocchio: put the force on the parent"
            )
    return out


@checked(pin_model=THEIRS)
def from_pinocchio(pin_model: Any) -> Model:
    """Our model of a `pinocchio.Model`: joints, inertias, armature, limits, frames, gravity.

    Links have the names of the bodies (of the joint where there is none). Joints that we do not have (translation,
    Euler angles, mimic, composites other than prismatic then revolute about one axis) are an UnsupportedError.
    """
    b = Builder(str(pin_model.name) or "model", gravity=np.array(pin_model.gravity.linear))
    links = ["world", *_link_names(pin_model)]
    for k in range(1, pin_model.njoints):
        joint, inertia, v = pin_model.joints[k], pin_model.inertias[k], slice(pin_model.idx_vs[k], None)
        b.link(
            links[k],
            links[pin_model.parents[k]],
            _joint(joint, str(pin_model.names[k])),
            placement=_placement(pin_model.jointPlacements[k]),
            joint_name=str(pin_model.names[k]),
            inertia=BodyInertia(inertia.mass, inertia.lever, inertia.inertia),
            armature=np.array(pin_model.armature)[v][: joint.nv],
            limits=_limits(pin_model, k),
        )
    taken = {*links, "universe"}
    for frame in pin_model.frames:
        name = str(frame.name)
        if name not in taken and str(frame.type) in ("BODY", "OP_FRAME", "FIXED_JOINT", "SENSOR"):
            b.frame(name, links[frame.parentJoint], _placement(frame.placement))
            taken.add(name)
    return b.build(merge_fixed=False)


def _link_names(pin_model: Any) -> list[str]:
    """The body at the origin of each joint, if it has one with a name of its own."""
    names = [str(n) for n in pin_model.names][1:]
    found: set[int] = set()
    for frame in pin_model.frames:
        k, name = int(frame.parentJoint), str(frame.name)
        usable = str(frame.type).endswith("BODY") and k and k not in found and name not in (*names, "world")
        if usable and np.abs(frame.placement.homogeneous - np.eye(4)).max() < 1e-12:
            names[k - 1] = name
            found.add(k)
    return names


def _limits(pin_model: Any, k: int) -> Limits:
    q, v, joint = int(pin_model.idx_qs[k]), int(pin_model.idx_vs[k]), pin_model.joints[k]
    if joint.nq != 1:
        return Limits()
    bounded = [
        float(x)
        for x in (
            pin_model.lowerPositionLimit[q],
            pin_model.upperPositionLimit[q],
            pin_model.upperEffortLimit[v],
            pin_model.upperVelocityLimit[v],
        )
    ]
    huge = np.finfo(float).max / 2
    return Limits(*(np.sign(x) * np.inf if abs(x) > huge else x for x in bounded))


def _joint(joint: Any, name: str) -> Joint:
    kind, _ = _kind(joint)
    inner = joint.extract()
    if kind in ("cylindrical", "composite"):
        parts = [_joint(j, name) for j in inner.joints]
        offset = max(np.abs(p.homogeneous - np.eye(4)).max() for p in inner.jointPlacements)
        if offset > 1e-12:
            raise UnsupportedError(f"joint '{name}' is a composite with placements between its joints")
        return Cylindrical(_axis(inner.joints[0])) if kind == "cylindrical" else Composite(*parts)
    if kind == "universal":
        return Universal(inner.axis1, inner.axis2)
    if kind in ("revolute", "prismatic", "helical"):
        axis = _axis(joint)
        if kind == "helical":
            return Helical(axis, inner.pitch)
        return Revolute(axis) if kind == "revolute" else Prismatic(axis)
    plain: dict[str, type[Joint]] = {
        "spherical": Spherical,
        "planar": Planar,
        "free": Free,
        "translation": Translation,
        "spherical_zyx": SphericalZYX,
    }
    if kind not in plain:
        known = listing(sorted(set(KINDS.values())))
        raise UnsupportedError(f"joint '{name}' is a {joint.shortname()}; known are {known} and composites of these")
    return plain[kind]()


def _axis(joint: Any) -> object:
    """A joint's axis: from its attribute, the end of its type's name, or its motion subspace."""
    inner, name = joint.extract(), str(joint.shortname())
    if hasattr(inner, "axis"):
        return np.array(inner.axis)
    if name[-1] in "XYZ":
        return name[-1].lower()
    data, q = joint.createData(), np.zeros(joint.idx_q + joint.nq)
    q[joint.idx_q] = 1.0  # the cosine
    joint.calc(data, q)
    return np.array(data.S)[3:6]


def _placement(X: Any) -> Placement:
    return Placement(np.array(X.rotation), np.array(X.translation))


@checked(model=MODEL)
def to_pinocchio(model: Model) -> Any:
    """A `pinocchio.Model` of the tree: joints, inertias, armature, limits, frames, gravity.

    Constraints are left out.

    Links behind fixed joints become part of their parents, as Pinocchio does it. Joints keep their order, so that q, v
    and tau are the same arrays. What Pinocchio cannot represent is an UnsupportedError: links without weight, and
    armature of a free joint in its parent's axes (MuJoCo's).
    """
    pin = _pin("building a Pinocchio model")
    for link in model.links:
        if link.weightless.mass:
            raise UnsupportedError(f"gravity does not pull all of link '{link.name}', which Pinocchio cannot express")
        if isinstance(link.joint, Free) and link.joint.armature_axes == "parent" and link.armature[:3].any():
            raise UnsupportedError(
                f"the armature of joint '{link.joint_name}' acts in its parent's axes, Pinocchio's "
                "in those of the link; leave it out, or build the joint with Free('link')"
            )
    out = pin.Model()
    out.name = model.name
    out.gravity.linear = np.array(model.gravity)
    at: list[tuple[int, Placement]] = [(0, Placement())]
    for i in model.topology.links:
        link = model.links[i]
        parent, before = at[link.parent]
        placement = before @ link.placement
        body = _inertia(pin, link.inertia)
        if isinstance(link.joint, Fixed):
            at.append((parent, placement))
        else:
            k = out.addJoint(parent, _pin_joint(pin, link.joint), _se3(pin, placement), link.joint_name)
            out.addJointFrame(k)
            at.append((k, Placement()))
            v = model.topology.v_slices[i]
            out.armature[v] = link.armature
            if link.joint.nq == 1:
                q = model.topology.q_slices[i]
                out.lowerPositionLimit[q], out.upperPositionLimit[q] = link.limits.lower, link.limits.upper
                out.upperEffortLimit[v], out.upperVelocityLimit[v] = link.limits.effort, link.limits.velocity
        carrier, place = at[i]
        out.appendBodyToJoint(carrier, body, _se3(pin, place))
        out.addFrame(pin.Frame(link.name, carrier, 0, _se3(pin, place), pin.FrameType.BODY), False)
    for name, frame in model.frames.items():
        carrier, place = at[frame.link]
        out.addFrame(pin.Frame(name, carrier, 0, _se3(pin, place @ frame.placement), pin.FrameType.OP_FRAME), False)
    return out


def _se3(pin: Any, X: Placement) -> Any:
    return pin.SE3(np.array(X.R), np.array(X.p))


def _pin_joint(pin: Any, joint: Joint) -> Any:
    if isinstance(joint, Revolute):
        return pin.JointModelRevoluteUnaligned(joint.axis)
    if isinstance(joint, Prismatic):
        return pin.JointModelPrismaticUnaligned(joint.axis)
    if isinstance(joint, Helical):
        return pin.JointModelHelicalUnaligned(joint.axis, joint.pitch)
    if isinstance(joint, Universal):
        return pin.JointModelUniversal(joint.axis, joint.second)
    if isinstance(joint, Cylindrical):
        pair = pin.JointModelComposite(pin.JointModelPrismaticUnaligned(joint.axis), pin.SE3.Identity())
        pair.addJoint(pin.JointModelRevoluteUnaligned(joint.axis), pin.SE3.Identity())
        return pair
    plain = {
        "spherical": "Spherical",
        "planar": "Planar",
        "free": "FreeFlyer",
        "translation": "Translation",
        "spherical_zyx": "SphericalZYX",
    }
    if isinstance(joint, Composite) and joint.kind not in plain:
        whole = pin.JointModelComposite()
        for part in joint.joints:
            whole.addJoint(_pin_joint(pin, part), pin.SE3.Identity())
        return whole
    return getattr(pin, f"JointModel{plain[joint.kind]}")()


def _inertia(pin: Any, body: BodyInertia) -> Any:
    """By inertial parameters: the constructor refuses inertias that are inconsistent in the last digits."""
    if body.mass == 0:
        return pin.Inertia(0.0, np.array(body.com), np.array(body.I))
    I = body.about_origin
    parameters = [body.mass, *(body.mass * body.com), I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]]
    return pin.Inertia.FromDynamicParameters(np.array(parameters))
