"""Linkwork: constrained rigid-body dynamics, compiled for your robot."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkwork.algorithms.common.iteration import Prox
    from linkwork.closure.approximate import approximate
    from linkwork.closure.assembly import assemble
    from linkwork.closure.expansion import expand
    from linkwork.closure.random_states import random_state
    from linkwork.closure.velocities import project_velocity
    from linkwork.constraints import (
        Ball,
        Block,
        BoxContact,
        CentreOfMass,
        Closure,
        Connect,
        Contact,
        Coupling,
        Custom,
        Distance,
        EllipsoidContact,
        Ground,
        HeightField,
        Hinge,
        LinkRows,
        MeshBody,
        MeshPair,
        Pair,
        RimContact,
        Rod,
        Stabilisation,
        Terrain,
        Weld,
        mesh_pairs,
        point,
        surface,
        touching,
    )
    from linkwork.errors import ActuationError, AssemblyError, LinkworkError
    from linkwork.functions.actuation import actuation
    from linkwork.functions.configurations import difference, integrate
    from linkwork.functions.dynamics import constrained_inverse_dynamics, forward_dynamics, impulse, inverse_dynamics
    from linkwork.functions.export.acados import export_acados
    from linkwork.functions.identification.base_parameters import base_parameters, excitation
    from linkwork.functions.identification.identify import identify
    from linkwork.functions.identification.regressors import regressor, regressor_pattern
    from linkwork.functions.inverse_kinematics import ik
    from linkwork.functions.kinematics import (
        constraint_error,
        constraint_jacobian,
        forward_kinematics,
        mass_matrix,
        mass_pattern,
    )
    from linkwork.functions.kkt_systems import KKTCholesky, kkt_solve
    from linkwork.functions.loop_cuts import best_cuts
    from linkwork.functions.operational_space import delassus, factored_solve, operational_space_inertia
    from linkwork.functions.planning import plan
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
    from linkwork.model import Actuator, BodyInertia, Builder, Model, Placement, Tendon
    from linkwork.model.actuator import Motor, PositionServo, VelocityServo
    from linkwork.model.combine import Part, combine
    from linkwork.model.log_cholesky import from_log_cholesky, log_cholesky
    from linkwork.model.parameter_vector import parameter_vector
    from linkwork.simulation.ground.contact_points import contacts
    from linkwork.simulation.ground.floors import ground
    from linkwork.simulation.ground.mesh_bodies import mesh_bodies
    from linkwork.simulation.ground.mesh_places import find_contacts
    from linkwork.simulation.ground.self_contacts import self_contacts
    from linkwork.simulation.optimal_control.discrete_step import discrete_step
    from linkwork.simulation.optimal_control.riccati import riccati
    from linkwork.simulation.records.trajectory import Event, Trajectory
    from linkwork.simulation.rollouts.rollout import Rollout, RolloutResult, rollout
    from linkwork.simulation.simulate import simulate
    from linkwork.simulation.steps.contact_step_function import step
    from linkwork.structure.clusters import clusters
    from linkwork.viewer.html import write_html
    from linkwork.viewer.server import Viewer, view

__version__ = "0.2.0"

__all__ = [
    "ActuationError",
    "Actuator",
    "AssemblyError",
    "Ball",
    "Block",
    "BodyInertia",
    "BoxContact",
    "Builder",
    "CentreOfMass",
    "Closure",
    "Connect",
    "Contact",
    "Coupling",
    "Custom",
    "Distance",
    "EllipsoidContact",
    "Event",
    "Ground",
    "HeightField",
    "Hinge",
    "KKTCholesky",
    "LinkRows",
    "LinkworkError",
    "MeshBody",
    "MeshPair",
    "Model",
    "Motor",
    "Pair",
    "Part",
    "Placement",
    "PositionServo",
    "Prox",
    "RimContact",
    "Rod",
    "Rollout",
    "RolloutResult",
    "Stabilisation",
    "Tendon",
    "Terrain",
    "Trajectory",
    "VelocityServo",
    "Viewer",
    "Weld",
    "__version__",
    "actuation",
    "approximate",
    "assemble",
    "base_parameters",
    "best_cuts",
    "bias_forces",
    "centre_of_mass",
    "centroidal_momentum",
    "clusters",
    "combine",
    "constrained_inverse_dynamics",
    "constraint_error",
    "constraint_jacobian",
    "contacts",
    "coriolis_matrix",
    "delassus",
    "difference",
    "discrete_step",
    "energy",
    "excitation",
    "expand",
    "export_acados",
    "factored_solve",
    "find_contacts",
    "forward_dynamics",
    "forward_kinematics",
    "frame_acceleration",
    "frame_jacobian",
    "frame_velocity",
    "from_log_cholesky",
    "gravity_forces",
    "ground",
    "identify",
    "ik",
    "impulse",
    "integrate",
    "inverse_dynamics",
    "inverse_mass_matrix",
    "kkt_solve",
    "load",
    "log_cholesky",
    "mass_matrix",
    "mass_pattern",
    "mesh_bodies",
    "mesh_pairs",
    "operational_space_inertia",
    "parameter_vector",
    "plan",
    "point",
    "project_velocity",
    "random_state",
    "regressor",
    "regressor_pattern",
    "riccati",
    "rollout",
    "self_contacts",
    "simulate",
    "step",
    "surface",
    "terms",
    "touching",
    "view",
    "write_html",
]

MODULES = {
    "algorithms.common.iteration": ("Prox",),
    "closure.approximate": ("approximate",),
    "closure.assembly": ("assemble",),
    "closure.expansion": ("expand",),
    "closure.random_states": ("random_state",),
    "closure.velocities": ("project_velocity",),
    "constraints": (
        "Ball",
        "Block",
        "BoxContact",
        "CentreOfMass",
        "Closure",
        "Connect",
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
        "Stabilisation",
        "Terrain",
        "Weld",
        "mesh_pairs",
        "point",
        "surface",
        "touching",
    ),
    "errors": ("ActuationError", "AssemblyError", "LinkworkError"),
    "functions.export.acados": ("export_acados",),
    "functions.actuation": ("actuation",),
    "functions.configurations": ("difference", "integrate"),
    "functions.identification.base_parameters": ("base_parameters", "excitation"),
    "functions.loop_cuts": ("best_cuts",),
    "functions.dynamics": ("constrained_inverse_dynamics", "forward_dynamics", "impulse", "inverse_dynamics"),
    "functions.identification.identify": ("identify",),
    "functions.inverse_kinematics": ("ik",),
    "functions.kinematics": (
        "constraint_error",
        "constraint_jacobian",
        "forward_kinematics",
        "mass_matrix",
        "mass_pattern",
    ),
    "functions.kkt_systems": ("KKTCholesky", "kkt_solve"),
    "functions.operational_space": ("delassus", "factored_solve", "operational_space_inertia"),
    "functions.planning": ("plan",),
    "functions.identification.regressors": ("regressor", "regressor_pattern"),
    "functions.terms": (
        "bias_forces",
        "centre_of_mass",
        "centroidal_momentum",
        "coriolis_matrix",
        "energy",
        "frame_acceleration",
        "frame_jacobian",
        "frame_velocity",
        "gravity_forces",
        "inverse_mass_matrix",
        "terms",
    ),
    "io.load": ("load",),
    "model": ("Actuator", "BodyInertia", "Builder", "Model", "Placement", "Tendon"),
    "model.actuator": ("Motor", "PositionServo", "VelocityServo"),
    "model.combine": ("Part", "combine"),
    "model.log_cholesky": ("from_log_cholesky", "log_cholesky"),
    "model.parameter_vector": ("parameter_vector",),
    "simulation.ground.contact_points": ("contacts",),
    "simulation.ground.floors": ("ground",),
    "simulation.ground.mesh_bodies": ("mesh_bodies",),
    "simulation.ground.mesh_places": ("find_contacts",),
    "simulation.ground.self_contacts": ("self_contacts",),
    "simulation.optimal_control.discrete_step": ("discrete_step",),
    "simulation.optimal_control.riccati": ("riccati",),
    "simulation.rollouts.rollout": ("Rollout", "RolloutResult", "rollout"),
    "simulation.simulate": ("simulate",),
    "simulation.steps.contact_step_function": ("step",),
    "simulation.records.trajectory": ("Event", "Trajectory"),
    "structure.clusters": ("clusters",),
    "viewer.html": ("write_html",),
    "viewer.server": ("Viewer", "view"),
}
"""Public names by module. A name is imported when it is first used: a program waits for what it needs, and no more."""

PLACES = {name: module for module, names in MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in PLACES:
        found = getattr(import_module(f"linkwork.{PLACES[name]}"), name)
    elif not name.startswith("_") and find_spec(f"linkwork.{name}") is not None:
        found = import_module(f"linkwork.{name}")
    else:
        # with name and object Python proposes names like it
        raise AttributeError(f"module 'linkwork' has no attribute '{name}'", name=name, obj=sys.modules[__name__])
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *PLACES})
