"""Linkwork: constrained rigid-body dynamics, compiled for your robot."""

from __future__ import annotations

from linkwork.algorithms.constrained.kkt_factor import KKTCholesky
from linkwork.algorithms.iteration import Prox
from linkwork.api import (
    best_cuts,
    constrained_inverse_dynamics,
    constraint_error,
    constraint_jacobian,
    delassus,
    forward_dynamics,
    forward_kinematics,
    impulse,
    inverse_dynamics,
    mass_matrix,
    mass_pattern,
    operational_space_inertia,
    plan,
)
from linkwork.constraints import (
    CentreOfMass,
    Closure,
    Connect,
    Coupling,
    Custom,
    Distance,
    Hinge,
    LinkRows,
    Stabilisation,
    Weld,
    point,
    surface,
)
from linkwork.constraints.approximate import approximate
from linkwork.constraints.clusters import clusters
from linkwork.errors import ActuationError, AssemblyError, LinkworkError
from linkwork.model import BodyInertia, Builder, Model, Placement
from linkwork.model.combine import Part, combine
from linkwork.model.load import load
from linkwork.simulate.assembly import assemble, project_velocity, random_state
from linkwork.simulate.expansion import expand
from linkwork.simulate.rollout import Rollout, RolloutResult, rollout
from linkwork.simulate.simulate import simulate
from linkwork.simulate.trajectory import Event, Trajectory
from linkwork.view.html import write_html
from linkwork.view.server import Viewer, view

__version__ = "0.1.0"

__all__ = [
    "ActuationError",
    "AssemblyError",
    "BodyInertia",
    "Builder",
    "CentreOfMass",
    "Closure",
    "Connect",
    "Coupling",
    "Custom",
    "Distance",
    "Event",
    "Hinge",
    "KKTCholesky",
    "LinkRows",
    "LinkworkError",
    "Model",
    "Part",
    "Placement",
    "Prox",
    "Rollout",
    "RolloutResult",
    "Stabilisation",
    "Trajectory",
    "Viewer",
    "Weld",
    "__version__",
    "approximate",
    "assemble",
    "best_cuts",
    "clusters",
    "combine",
    "constrained_inverse_dynamics",
    "constraint_error",
    "constraint_jacobian",
    "delassus",
    "expand",
    "forward_dynamics",
    "forward_kinematics",
    "impulse",
    "inverse_dynamics",
    "load",
    "mass_matrix",
    "mass_pattern",
    "operational_space_inertia",
    "plan",
    "point",
    "project_velocity",
    "random_state",
    "rollout",
    "simulate",
    "surface",
    "view",
    "write_html",
]
