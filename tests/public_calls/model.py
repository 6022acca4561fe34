"""Models, links, frames, actuators, robot files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import linkwork as lw
from linkwork import joints
from linkwork.model import Frame, Limits, Link, Passive, Visual
from linkwork.model.visual import Box, Collider
from public_calls.common import OPTIONS, URDF, Call, arm, loop, robot


def models() -> Iterator[Call]:
    I, z = 0.1 * np.eye(3), np.zeros(3)
    body, place = lw.BodyInertia(1.0, z, I), lw.Placement()
    inertia, there = lw.BodyInertia(1.0, z, I), lw.Placement.at((0, 0, 1))
    yield Call("BodyInertia.moved", inertia.moved, {"X": there})
    yield Call("BodyInertia's sum", lambda other: inertia + other, {"other": inertia})
    yield Call("Placement's product", lambda other: there @ other, {"other": there})
    yield Call("BodyInertia.from_parameters", lw.BodyInertia.from_parameters, {"parameters": body.parameters})
    yield Call("BodyInertia", lw.BodyInertia, {"mass": 1.0, "com": z, "I": I})
    yield Call("Placement", lw.Placement, {"R": np.eye(3), "p": z})
    yield Call("Placement.at", lw.Placement.at, {"xyz": (0, 0, 1), "rpy": (0.1, 0.2, 0.3)})
    yield Call("Placement.from_quaternion", lw.Placement.from_quaternion, {"xyz": z, "xyzw": [0, 0, 0, 1]})

    def built(**fields: Any) -> lw.Model:
        b = lw.Builder(**fields)
        b.link("bob", joint="revolute", inertia=body)
        return b.build()

    options = {"constraints": [], "independent": [], "strict": True, "actuators": [], "tendons": []}
    yield Call("Builder", built, {"name": "b", "gravity": [0, 0, -9.81], **options})

    def with_link(**given: Any) -> lw.Model:
        b = lw.Builder()
        b.link(**given)
        return b.build()

    yield Call(
        "Builder.link",
        with_link,
        {
            "name": "bob",
            "parent": "world",
            "joint": "revolute",
            "axis": "z",
            "placement": place,
            "inertia": body,
            "armature": 0.1,
            "joint_name": "j",
            "limits": Limits(-1, 1),
            "actuated": True,
            "weightless": lw.BodyInertia(),
            "damping": 0.1,
            "stiffness": 2.0,
            "rest": 0.3,
            "friction": 0.2,
        },
    )
    yield Call("Builder.link of a joint", with_link, {"name": "bob", "joint": joints.Free(), "inertia": body})

    def with_more(**given: Any) -> lw.Model:
        b = lw.Builder()
        b.link("bob", joint="revolute", inertia=body)
        {"frame": b.frame, "load": b.load, "visual": b.visual, "collider": b.collider}[given.pop("_")](*given.values())
        return b.build()

    yield Call("Builder.frame", partial(with_more, _="frame"), {"name": "f", "link": "bob", "placement": place})
    yield Call("Builder.load", partial(with_more, _="load"), {"link": "bob", "inertia": body})
    yield Call(
        "Builder.collider", partial(with_more, _="collider"), {"link": "bob", "colliders": Collider(Box((1, 1, 1)))}
    )
    yield Call("Builder.visual", partial(with_more, _="visual"), {"link": "bob", "visuals": Visual(Box((1, 1, 1)))})
    yield Call("Builder.build", lambda **given: lw.Builder().build(**given), {"merge_fixed": True})
    yield Call("Limits", Limits, {"lower": -1.0, "upper": 1.0, "effort": 1.0, "velocity": 1.0})
    yield Call("Frame", Frame, {"link": 0, "placement": place})
    link = {
        "name": "l",
        "parent": 0,
        "joint": joints.Revolute(),
        "joint_name": "j",
        "placement": place,
        "inertia": body,
        "armature": np.zeros(1),
        "limits": Limits(),
        "actuated": True,
        "looks": (),
        "weightless": body,
        "passive": arm().links[1].passive,
    }
    yield Call("Link", Link, link)
    yield Call("Passive", Passive, {"damping": [0.1], "stiffness": [0.2], "rest": [0.3], "friction": [0.4]})
    yield Call(
        "Model",
        lw.Model,
        {
            "name": "m",
            "links": arm().links,
            "frames": dict(arm().frames),
            "gravity": [0, 0, -9.81],
            "constraints": (),
            "independent": (),
            "actuators": (),
            "tendons": (),
        },
    )
    m = robot()
    yield Call("Model.with_constraints", m.with_constraints, {"c": lw.surface("base")}, ("c",))
    yield Call("Model.with_frame", m.with_frame, {"name": "f", "on": "arm", "placement": place})
    yield Call("Model.with_gravity", m.with_gravity, {"gravity": [0, 0, -1.62]})
    yield Call("Model.with_inertia", m.with_inertia, {"link": "arm", "inertia": body, "weightless": lw.BodyInertia()})
    yield Call("Model.with_armature", m.with_armature, {"joint": "arm_joint", "armature": 0.1})
    yield Call("Model.with_damping", m.with_damping, {"joint": "arm_joint", "damping": 0.1})
    yield Call("Model.with_springs", m.with_springs, {"joint": "arm_joint", "stiffness": 10.0, "rest": 0.1})
    yield Call("Model.with_friction", m.with_friction, {"joint": "arm_joint", "friction": 0.1})
    yield Call("Model.with_actuators", m.with_actuators, {"a": lw.Motor("arm_joint")}, ("a",))
    yield Call("Model.with_tendons", m.with_tendons, {"t": lw.Tendon("arm_joint", 3.0)}, ("t",))
    yield from actuators()
    yield Call("Model.without", m.without, {"names": "tip~world"}, ("names",))
    yield Call("Model.with_independent", loop().with_independent, {"joints": "crank_joint"}, ("joints",))
    for method, valid in (("link", "arm"), ("joint", "arm_joint"), ("frame", "tip")):
        yield Call(f"Model.{method}", getattr(m, method), {"name": valid})
    for method in ("q_slice", "v_slice"):
        yield Call(f"Model.{method}", getattr(m, method), {"joint": "arm_joint"})
    yield Call("Model.neutral", m.neutral, {"batch": 2})
    yield Call("Model.random_q", m.random_q, {"seed": 0, "batch": 2})
    yield Call("Model.velocity", m.velocity, {"q": m.neutral(), "qdot": np.zeros(m.nq)})
    yield Call("Model.interpolate", m.interpolate, {"q0": m.neutral(), "q1": m.random_q(0), "t": 0.5})
    for method in ("integrate", "rate"):
        yield Call(f"Model.{method}", getattr(m, method), {"q": m.neutral(), "v": np.zeros(m.nv)})
    yield Call("Model.difference", m.difference, {"q0": m.neutral(), "q1": m.random_q(0)})
    yield Call("Model.normalised", m.normalised, {"q": m.neutral()})
    yield Call("Model.check_position", m.check_position, {"q": m.neutral()})
    yield Call("Part", lw.Part, {"model": m, "prefix": "p/", "to": "world", "placement": place, "base": "keep"})
    yield Call(
        "combine",
        lw.combine,
        {"part": m, "other": lw.Part(arm(), "a/"), "name": "both", "gravity": [0, 0, -9.81], "merge_fixed": False},
        ("part", "other"),
    )
    yield Call(
        "load",
        lw.load,
        {
            "source": URDF,
            "base": "fixed",
            "format": "urdf",
            "merge_fixed": True,
            "gravity": [0, 0, -9.81],
            "cut": (),
            "model": None,
            "passive": True,
        },
    )


def actuators() -> Iterator[Call]:
    ranges = {"control_range": (-1.0, 1.0), "force_range": (-np.inf, 2.0), "name": "drive"}
    springs = {"stiffness": 3.0, "damping": 0.1, "rest": (0.0, 0.1), "name": "t"}
    yield Call("Tendon", lw.Tendon, {"joints": {"a": 2.0}, **springs})
    lag = {"state": "filter", "time_constant": 0.1, "state_range": (-1.0, 1.0)}
    yield Call("Actuator", lw.Actuator, {"joints": {"a": 2.0}, "gain": 1.0, "bias": (0.0, -1.0), **ranges, **lag})
    ten = lw.BodyInertia(1.0, np.zeros(3), np.eye(3)).parameters
    yield Call("log_cholesky", lw.log_cholesky, {"inertia": ten})
    yield Call("from_log_cholesky", lw.from_log_cholesky, {"parameters": np.zeros(10)})
    yield Call("Motor", lw.Motor, {"joints": "a", "gear": 2.0})
    yield Call("PositionServo", lw.PositionServo, {"joints": "a", "kp": 2.0, "kd": 0.1, "gear": 1.0})
    yield Call("VelocityServo", lw.VelocityServo, {"joints": "a", "kd": 2.0, "gear": 1.0})
    driven, flat = arm().with_actuators(lw.PositionServo("link1_joint", 3.0)), np.full(2, 0.1)
    yield Call("actuation", lw.actuation, {"model": driven, "parameters": ("gain",), **OPTIONS})
    act = lw.actuation(driven, parameters=("gain", "bias"), backend="numpy")
    given = {"gain": driven.parameters().gain, "bias": driven.parameters().bias}
    yield Call("actuation()", act, {"q": flat, "v": flat, "u": [0.1], **given})
