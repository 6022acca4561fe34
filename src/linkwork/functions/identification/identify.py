"""Identification: physically consistent parameters of a model from measured joint forces.

    minimise  sum over joints |Y_j pi(x) - tau_j|^2 / s_j^2  +  |x - x0|^2 / spread^2

over log-Cholesky parameters x of the links (physical_fit.py). x0 is the model's own: what joint forces do not show
stays there. s_j is the noise of joint j, found by least squares over base parameters. Data are reduced to one triangle
for each joint, [Y_j tau_j] = Q R_j, as they come: what follows does not depend on how many there are. Gautier, 1991,
for weights and confidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linkwork.algorithms.clusters.projected_rows import projected_rows
from linkwork.backends import Array, Ops
from linkwork.checks import NAMES, POSITIONS, POSITIVE, VELOCITIES, checked, optional
from linkwork.errors import InputError, listing
from linkwork.functions.function import Function
from linkwork.functions.identification.base_parameters import (
    BACKEND,
    BaseParameters,
    base_parameters,
    condition_number,
    triangle,
)
from linkwork.functions.identification.physical_fit import PhysicalFit
from linkwork.functions.identification.regressors import force_columns, regressor
from linkwork.functions.results import InverseDynamicsResult
from linkwork.model import BodyInertia, Model
from linkwork.model.joint_forces import cut_force
from linkwork.model.model import MODEL
from linkwork.model.motion import motion_of
from linkwork.model.parameter_vector import GROUPS, LINEAR, parameter_vector
from linkwork.structure.clusters import clusters

SETTERS = {
    "armature": "with_armature",
    "damping": "with_damping",
    "stiffness": "with_springs",
    "joint_friction": "with_friction",
}
"""The methods of a model that change parameters of a joint."""

EXACT = 1e-9
"""The least noise of a joint that is assumed, relative to its forces: simulated data have none."""


@dataclass(frozen=True)
class Identification:
    """What was identified, and how certain it is.

    - `model`: the same robot with the identified parameters; `parameters`: these as one vector pi;
    - `base`: the base parameters, whose `values` are those of the given model;
    - `values`, `std` (rank,), `covariance` (rank, rank): base parameters by least squares alone, without the prior and
      without asking whether they are physical, and their standard deviations, infinite where the motion does not excite
      them;
    - `noise` (nv,): standard deviation of the joint forces around the fit, NaN where they are not used;
    - `residual` (nv,): the same for the identified, physical parameters;
    - `condition`: the condition number of the data (`lw.excitation`);
    - `kept`: links whose inertias were not identified, because no body with volume has them (no mass, points, plates);
    - `iterations`, `converged`.
    """

    model: Model
    parameters: np.ndarray
    base: BaseParameters
    values: np.ndarray
    std: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    residual: np.ndarray
    condition: float
    kept: tuple[str, ...]
    iterations: int
    converged: bool

    def __repr__(self) -> str:
        said = "converged" if self.converged else "not converged"
        return (
            f"<{self.base.rank} base parameters of '{self.model.name}' identified, condition {self.condition:.3g}, "
            f"{said} after {self.iterations} iterations>"
        )


@checked(
    model=MODEL,
    q=POSITIONS,
    v=VELOCITIES,
    a=VELOCITIES,
    tau=VELOCITIES,
    parameters=GROUPS,
    joints=optional(NAMES),
    spread=POSITIVE,
    backend=BACKEND,
)
def identify(
    model: Model,
    q: object,
    v: object,
    a: object,
    tau: object,
    *,
    parameters: Sequence[str] = ("inertia",),
    joints: Sequence[str] | None = None,
    spread: float = 0.5,
    backend: str = "kernel",
) -> Identification:
    """Parameters from measured motions and joint forces, physically consistent, with confidence.

    - `q`, `v`, `a`, `tau` have one row for each state: positions, velocities, accelerations and joint forces. Filter
      measurements before: noise in `a` is not modelled.
    - `parameters` are the groups to identify, as `lw.regressor` takes them; others keep the model's values, and their
      forces are subtracted. All but inertias stay at or above zero, and those of free, ball and planar joints stay as
      they are.
    - `joints` names those whose forces were measured (default: all). With local loops forces of dependent joints act
      through the independent ones (G^T tau), whose names count here.
    - `spread` is how far parameters may be from the model's own (standard deviation of a prior, 0.5: by half). Data
      outweigh it where they say anything; what they do not show stays as it is.

    Returns an `Identification`: the new `model`, base parameters with standard deviations, noise, and the condition
    number of the data.

    Examples:
        >>> robot, rng = chain(3), np.random.default_rng(0)
        >>> q, v, a = rng.normal(size=(3, 100, robot.nv))
        >>> tau = lw.inverse_dynamics(robot)(q, v, a).tau + 0.01 * rng.normal(size=q.shape)
        >>> believed = robot.with_inertia("link3", lw.BodyInertia(2.0, [0.2, 0, 0], 0.01 * np.eye(3)))
        >>> found = lw.identify(believed, q, v, a, tau)
        >>> found.converged, bool((abs(found.values - lw.base_parameters(robot).values) < 5 * found.std).all())
        (True, True)
    """
    data = [np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, v, a, tau)]
    if len({len(x) for x in data}) > 1:
        raise InputError(f"q, v, a and tau are of {listing(str(len(x)) for x in data)} states: give as many of each")
    base = base_parameters(model, parameters)
    used, count = _measured(model, joints), len(data[0])
    if count * len(used) <= base.rank:
        raise InputError(
            f"{count} states with {len(used)} measured joint forces do not determine {base.rank} base parameters; "
            "give more states"
        )
    triangles = _triangles(model, base.groups, data, used, backend)
    noise, weighted = _weighted(triangles, base, count)
    values, covariance = _least_squares(weighted, base)
    fit = PhysicalFit(model, base.groups, weighted, spread)
    pi, iterations, converged = fit.solved()
    own = np.array([np.linalg.norm(R[:, :-1] @ pi - R[:, -1]) for R in triangles]) / np.sqrt(count)
    return Identification(
        _with_parameters(model, base.groups, pi),
        pi,
        base,
        values,
        np.sqrt(np.diag(covariance)),
        covariance,
        _spread_over(model, used, noise),
        _spread_over(model, used, own),
        condition_number(weighted[:, base.columns]),
        tuple(fit.kept),
        iterations,
        converged,
    )


# data


def _measured(model: Model, joints: Sequence[str] | None) -> list[int]:
    """The degrees of freedom whose forces are used."""
    free = set(clusters(model).velocities.tolist())
    named = range(model.nv) if joints is None else [k for j in joints for k in _dofs(model, j)]
    used = sorted(free & set(named))
    if not used:
        raise InputError("name at least one joint whose forces were measured, and that is independent")
    return used


def _dofs(model: Model, joint: str) -> range:
    at = model.topology.v_slices[model.joint(joint)]
    return range(at.start, at.stop)


def _triangles(
    model: Model, groups: tuple[str, ...], data: list[np.ndarray], used: list[int], backend: str
) -> np.ndarray:
    """R_j of [Y_j tau_j] = Q R_j over all states, for each measured joint: (joints, p + 1, p + 1)."""
    Y, forces = regressor(model, parameters=groups, backend=backend), _remaining(model, groups, backend)
    size = len(parameter_vector(model, groups)) + 1
    R, at_once = np.zeros((len(used), size, size)), 2 * size
    for k in range(0, len(data[0]), at_once):
        q, v, a, tau = (x[k : k + at_once] for x in data)
        new = np.concatenate([Y(q, v, a).Y, forces(q, v, a, tau).tau[..., None]], axis=-1)[:, used]
        R = triangle(np.concatenate([R, new.swapaxes(0, 1)], axis=1))
    return R


def _remaining(model: Model, groups: tuple[str, ...], backend: str) -> Function[InverseDynamicsResult]:
    """`f(q, v, a, tau) -> (tau,)`: measured forces less those known, projected."""
    known = {n: x for n in LINEAR if n not in groups and (x := parameter_vector(model, (n,))).any()}

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        motion, tau = motion_of(model, x["q"], x["v"], xp), x["tau"]
        for name, pi in known.items():
            tau = tau - force_columns(name, motion, x["a"]) @ xp.constant(pi)
        cut = cut_force(model, x["q"], x["v"], xp)
        tau = tau if cut is None else tau + cut
        return {"tau": projected_rows(motion, tau) if model.constraints else tau}

    sizes = {"q": model.nq, "v": model.nv, "a": model.nv, "tau": model.nv}
    return Function(
        "remaining_forces", model, sizes, body, backend=backend, identity=(groups,), result=InverseDynamicsResult
    )


def _spread_over(model: Model, used: list[int], x: np.ndarray) -> np.ndarray:
    out = np.full(model.nv, np.nan)
    out[used] = x
    return out


# linear least squares over base parameters


def _weighted(triangles: np.ndarray, base: BaseParameters, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The noise of each joint, and one triangle of all data in units of it."""
    forces = np.linalg.norm(triangles[:, :, -1], axis=1) / np.sqrt(count)
    if not forces.max() > np.sqrt(np.finfo(float).tiny):
        raise InputError("all joint forces are zero, which says nothing about inertias: measure a robot that moves")
    least = EXACT * np.maximum(forces, forces.max()) + np.finfo(float).tiny
    noise, freedom = np.ones(len(triangles)), max(count - base.rank / len(triangles), 1.0)
    for _ in range(3):
        W = triangle(np.concatenate(triangles / noise[:, None, None]))
        beta = _least_squares(W, base)[0]
        off = np.array([np.linalg.norm(R[:, base.columns] @ beta - R[:, -1]) for R in triangles])
        noise = np.maximum(off / np.sqrt(freedom), least)
    return noise, triangle(np.concatenate(triangles / noise[:, None, None]))


def _least_squares(W: np.ndarray, base: BaseParameters) -> tuple[np.ndarray, np.ndarray]:
    """beta and its covariance, infinite where data do not show a parameter; data are in units of noise."""
    A = W[:, base.columns]
    lengths = np.linalg.norm(A, axis=0)
    scale = np.where(lengths > 0, lengths, 1.0)
    U, s, Vt = np.linalg.svd(A / scale, full_matrices=False)
    good = s > base.rank * np.finfo(float).eps * s.max(initial=0.0)
    beta = Vt[good].T @ ((U.T @ W[:, -1])[good] / s[good]) / scale
    covariance = (Vt[good].T / s[good] ** 2) @ Vt[good]
    hidden = (np.abs(Vt[~good]) > np.sqrt(np.finfo(float).eps)).any(axis=0)
    covariance[hidden, hidden] = np.inf
    return beta, covariance / np.outer(scale, scale)


# the identified model


def _with_parameters(model: Model, groups: tuple[str, ...], pi: np.ndarray) -> Model:
    """The model with these parameters."""
    at = 0
    for group in groups:
        for link in model.links[1:]:
            n = 10 if group == "inertia" else link.joint.nv
            new, at = pi[at : at + n], at + n
            if group == "inertia" and (new != link.inertia.parameters).any():
                body = BodyInertia.from_parameters(new)
                share = link.weightless.mass / link.inertia.mass if link.inertia.mass else 0.0
                held = BodyInertia(share * body.mass, body.com, share * body.I) if share else BodyInertia()
                model = model.with_inertia(link.name, body, held)
            elif group != "inertia" and n:
                model = getattr(model, SETTERS[group])(link.joint_name, new)
    return model
