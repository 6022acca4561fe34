"""Mechanisms that need no file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import linkwork as lw
from linkwork.robots import mechanisms
from public_calls.common import Call, arm


def built_in() -> Iterator[Call]:
    made: dict[str, dict[str, Any]] = {
        "all_coupled_loops": {"loops": 2, "spacing": 4, "cut": "fixed", "length": 0.2, "base": "fixed"},
        "arm": {"n": 2},
        "ball": {"mass": 1.0, "radius": 0.1, "centre": (0, 0, 0)},
        "belt_chain": {
            "n": 2,
            "ratio": 6.0,
            "group": 2,
            "length": 0.3,
            "twist": 0.1,
            "base": "fixed",
            "rotor": lw.BodyInertia(0.1),
            "name": "b",
        },
        "box": {"mass": 1.0, "size": (1, 2, 3), "centre": (0, 0, 0)},
        "bricard": {"length": 0.5, "cut": "fixed"},
        "chain": {"n": 2, "joint": "revolute", "seed": 0, "length": 0.3, "twist": 0.1, "turn": 0.1, "base": "fixed"},
        "chain_of_loops": {"loops": 1, "links": 3, "cut": "fixed", "length": 0.2, "base": "fixed"},
        "closed": {
            "model": arm(),
            "a": "linktip",
            "b": "world",
            "cut": "fixed",
            "axis": "z",
            "q": arm().neutral(),
            "name": "c",
        },
        "cylinder": {"mass": 1.0, "radius": 0.1, "length": 1.0, "axis": "z", "centre": (0, 0, 0)},
        "differential": {"stages": 1, "ratio": 6.0, "length": 0.3, "base": "fixed", "rotor": lw.BodyInertia(0.1)},
        "four_bar": {
            "ground": 1.0,
            "crank": 0.5,
            "coupler": 1.0,
            "rocker": 0.5,
            "angle": 1.0,
            "crossed": False,
            "cut": "revolute",
        },
        "frame_pose": {"model": arm(), "frame": "linktip", "q": arm().neutral()},
        "geared_chain": {
            "n": 2,
            "ratio": 6.0,
            "length": 0.3,
            "twist": 0.1,
            "base": "fixed",
            "rotor": lw.BodyInertia(0.1),
        },
        "gripper": {"kind": "parallel", "base": "fixed"},
        "grounded": {
            "model": mechanisms.quadruped(),
            "q": mechanisms.quadruped().neutral(),
            "feet": ("front_left_foot",),
        },
        "humanoid": {"hands": False, "four_bar_legs": False},
        "ladder": {"rungs": 1, "rung_links": 2, "segment_links": 1, "length": 0.2, "cut": "fixed", "base": "fixed"},
        "planar_leg": {"thigh": 0.3, "shank": 0.3, "lever": 0.06, "base": "fixed"},
        "posture": {"model": arm(), "joints": {"link1_joint": 0.1}},
        "quadruped": {},
        "biped": {},
        "random_mechanism": {
            "seed": 0,
            "n": 3,
            "joints": ("revolute",),
            "branching": 0.4,
            "loops": 1,
            "cuts": ("fixed",),
            "contacts": 1,
            "couplings": 1,
            "distances": 1,
            "duplicates": 1,
        },
        "random_tree": {"n": 2, "seed": 0, "joints": "revolute", "branching": 0.5, "base": "fixed", "armature": 0.1},
        "ring": {"n": 3, "cut": "fixed", "length": 0.2, "base": "fixed"},
        "rod": {"mass": 1.0, "tip": (0, 0, 1), "radius": 0.03},
        "six_bar": {"ground": 1.0, "crank": 0.3, "coupler": 0.9, "rocker": 0.6, "angle": 1.0, "cut": "revolute"},
        "standing": {"model": mechanisms.quadruped(), "crouch": 0.5},
        "star_of_loops": {"branches": 2, "links": 2, "joined": "hub", "cut": "fixed", "length": 0.2, "base": "fixed"},
        "stem": {"n_stem": 1, "branches": 1, "branch_links": 2, "length": 0.2, "cut": "fixed", "base": "free"},
    }
    for name, arguments in made.items():
        yield Call(name, getattr(mechanisms, name), arguments)
