"""Spatial algebra over any backend: vectors [linear; angular], moves, inertias, rotations."""

from __future__ import annotations

from linkwork.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwork.spatial.transforms import Move, Rotate, Transform, Translate, Turn
from linkwork.spatial.vectors import angular, cross_force, cross_motion, linear, skew

__all__ = [
    "ArticulatedInertia",
    "Move",
    "RigidInertia",
    "Rotate",
    "Transform",
    "Translate",
    "Turn",
    "angular",
    "cross_force",
    "cross_motion",
    "linear",
    "skew",
]
