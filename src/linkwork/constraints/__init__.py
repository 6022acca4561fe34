"""Constraints between links, and with the world: each one only produces rows over links and joints."""

from __future__ import annotations

from linkwork.constraints.base import Constraint, Rows
from linkwork.constraints.closure import CUT_JOINTS, Closure, Connect, Hinge, Weld, point, surface
from linkwork.constraints.collisions import Ball, Block, Pair, Rod, touching
from linkwork.constraints.contact import Contact, Ground
from linkwork.constraints.coupling import Coupling
from linkwork.constraints.custom import Custom
from linkwork.constraints.distance import Distance
from linkwork.constraints.ellipsoids import EllipsoidContact
from linkwork.constraints.ground_shapes import BoxContact
from linkwork.constraints.link_rows import CentreOfMass, LinkRows
from linkwork.constraints.meshes import MeshBody, MeshPair, mesh_pairs
from linkwork.constraints.rims import RimContact
from linkwork.constraints.rows import constraint_rows, jacobian, position_error, velocity_error
from linkwork.constraints.stabilisation import Stabilisation
from linkwork.constraints.terrain import HeightField, Terrain

__all__ = [
    "CUT_JOINTS",
    "Ball",
    "Block",
    "BoxContact",
    "CentreOfMass",
    "Closure",
    "Connect",
    "Constraint",
    "Contact",
    "Coupling",
    "Custom",
    "Distance",
    "EllipsoidContact",
    "Ground",
    "HeightField",
    "Hinge",
    "LinkRows",
    "MeshBody",
    "MeshPair",
    "Pair",
    "RimContact",
    "Rod",
    "Rows",
    "Stabilisation",
    "Terrain",
    "Weld",
    "constraint_rows",
    "jacobian",
    "mesh_pairs",
    "point",
    "position_error",
    "surface",
    "touching",
    "velocity_error",
]
