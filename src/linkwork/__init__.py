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
from linkwork.errors import ActuationError, AssemblyError, LinkworkError
from linkwork.functions.dynamics import constrained_inverse_dynamics, forward_dynamics, impulse, inverse_dynamics
from linkwork.functions.kinematics import (
    constraint_error,
    constraint_jacobian,
    forward_kinematics,
    mass_matrix,
    mass_pattern,
)
from linkwork.functions.operational_space import delassus, operational_space_inertia
from linkwork.functions.planning import best_cuts, plan
from linkwork.io.load import load
from linkwork.model import BodyInertia, Builder, Model, Placement
from linkwork.model.combine import Part, combine
from linkwork.structure.clusters import clusters

if TYPE_CHECKING:
    from linkwork.algorithms.constrained.kkt_factor import KKTCholesky
    from linkwork.simulation.linear_step import discrete_step
    from linkwork.simulation.rollout import Rollout, RolloutResult, rollout
    from linkwork.simulation.simulate import simulate
    from linkwork.simulation.trajectory import Event, Trajectory
    from linkwork.viewer.html import write_html
    from linkwork.viewer.server import Viewer, view

__version__ = "0.2.0"

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
    "discrete_step",
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

LATER = {
    "Event": "simulation.trajectory",
    "KKTCholesky": "algorithms.constrained.kkt_factor",
    "Rollout": "simulation.rollout",
    "RolloutResult": "simulation.rollout",
    "Trajectory": "simulation.trajectory",
    "Viewer": "viewer.server",
    "discrete_step": "simulation.linear_step",
    "rollout": "simulation.rollout",
    "simulate": "simulation.simulate",
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
