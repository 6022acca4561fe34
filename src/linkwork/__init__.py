"""Linkwork: constrained rigid-body dynamics, compiled for your robot."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from linkwork.algorithms.common.iteration import Prox
from linkwork.closure.approximate import approximate
from linkwork.closure.assembly import assemble, project_velocity, random_state
from linkwork.closure.expansion import expand
from linkwork.constraints import (
    CentreOfMass,
    Closure,
    Connect,
    Contact,
    Coupling,
    Custom,
    Distance,
    Ground,
    Hinge,
    LinkRows,
    Stabilisation,
    Weld,
    point,
    surface,
)
from linkwork.errors import ActuationError, AssemblyError, LinkworkError
from linkwork.functions.actuation import actuation
from linkwork.functions.dynamics import constrained_inverse_dynamics, forward_dynamics, impulse, inverse_dynamics
from linkwork.functions.inverse_kinematics import ik
from linkwork.functions.kinematics import (
    constraint_error,
    constraint_jacobian,
    forward_kinematics,
    mass_matrix,
    mass_pattern,
)
from linkwork.functions.kkt import kkt_solve
from linkwork.functions.operational_space import delassus, factored_solve, operational_space_inertia
from linkwork.functions.planning import best_cuts, plan
from linkwork.functions.terms import (
    bias_forces,
    centre_of_mass,
    centroidal_momentum,
    coriolis_matrix,
    energy,
    frame_acceleration,
    frame_jacobian,
    frame_velocity,
    gravity_forces,
    inverse_mass_matrix,
    terms,
)
from linkwork.io.load import load
from linkwork.model import Actuator, BodyInertia, Builder, Model, Placement
from linkwork.model.actuator import Motor, PositionServo, VelocityServo
from linkwork.model.combine import Part, combine
from linkwork.model.log_cholesky import from_log_cholesky, log_cholesky
from linkwork.structure.clusters import clusters

if TYPE_CHECKING:
    from linkwork.functions.kkt import KKTCholesky
    from linkwork.simulation.linear_step import discrete_step
    from linkwork.simulation.rollout import Rollout, RolloutResult, rollout
    from linkwork.simulation.simulate import simulate
    from linkwork.simulation.stepping import step
    from linkwork.simulation.trajectory import Event, Trajectory
    from linkwork.viewer.html import write_html
    from linkwork.viewer.server import Viewer, view

__version__ = "0.2.0"

__all__ = [
    "ActuationError",
    "Actuator",
    "AssemblyError",
    "BodyInertia",
    "Builder",
    "CentreOfMass",
    "Closure",
    "Connect",
    "Contact",
    "Coupling",
    "Custom",
    "Distance",
    "Event",
    "Ground",
    "Hinge",
    "KKTCholesky",
    "LinkRows",
    "LinkworkError",
    "Model",
    "Motor",
    "Part",
    "Placement",
    "PositionServo",
    "Prox",
    "Rollout",
    "RolloutResult",
    "Stabilisation",
    "Trajectory",
    "VelocityServo",
    "Viewer",
    "Weld",
    "__version__",
    "actuation",
    "approximate",
    "assemble",
    "best_cuts",
    "bias_forces",
    "centre_of_mass",
    "centroidal_momentum",
    "clusters",
    "combine",
    "constrained_inverse_dynamics",
    "constraint_error",
    "constraint_jacobian",
    "coriolis_matrix",
    "delassus",
    "discrete_step",
    "energy",
    "expand",
    "factored_solve",
    "forward_dynamics",
    "forward_kinematics",
    "frame_acceleration",
    "frame_jacobian",
    "frame_velocity",
    "from_log_cholesky",
    "gravity_forces",
    "ik",
    "impulse",
    "inverse_dynamics",
    "inverse_mass_matrix",
    "kkt_solve",
    "load",
    "log_cholesky",
    "mass_matrix",
    "mass_pattern",
    "operational_space_inertia",
    "plan",
    "point",
    "project_velocity",
    "random_state",
    "rollout",
    "simulate",
    "step",
    "surface",
    "terms",
    "view",
    "write_html",
]

LATER = {
    "Event": "simulation.trajectory",
    "KKTCholesky": "functions.kkt",
    "Rollout": "simulation.rollout",
    "RolloutResult": "simulation.rollout",
    "Trajectory": "simulation.trajectory",
    "Viewer": "viewer.server",
    "discrete_step": "simulation.linear_step",
    "rollout": "simulation.rollout",
    "simulate": "simulation.simulate",
    "step": "simulation.stepping",
    "view": "viewer.server",
    "write_html": "viewer.html",
}
"""Names that are imported when they are first asked for, and from where: who only computes need not wait for them."""


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'linkwork' has no attribute '{name}'")
    found = getattr(import_module(f"linkwork.{LATER[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *LATER})
