"""Terms of kinematics and dynamics: any of them in one function, and factories for the usual ones.

    V = J v,    dV/dt = J a + Jdot_v                    of frames
    m com_velocity = h[:3],    h = A v,    dh/dt = A a + Adot_v
    M a + C v + g = M a + c = tau

What several terms share is computed once: that is what one function for all of them is for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from linkwork.algorithms.tree.coriolis import coriolis_matrix as coriolis
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.energy import kinetic_energy, potential_energy
from linkwork.algorithms.tree.gravity import gravity_forces as gravity
from linkwork.algorithms.tree.inverse_mass import inverse_mass_matrix as inverse_mass
from linkwork.algorithms.tree.kinematics import (
    REFERENCES,
    frame_placement,
)
from linkwork.algorithms.tree.kinematics import frame_acceleration as acceleration
from linkwork.algorithms.tree.kinematics import frame_jacobian as jacobian
from linkwork.algorithms.tree.kinematics import frame_velocity as velocity
from linkwork.algorithms.tree.momentum import centre_of_mass as centre
from linkwork.algorithms.tree.momentum import centroidal_matrix, centroidal_rate, total_mass
from linkwork.algorithms.tree.momentum import centroidal_momentum as centroidal
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends import Array, Ops
from linkwork.checks import FLAG, NAME, NAMES, checked, choice, either, several
from linkwork.errors import InputError
from linkwork.functions.function import Function
from linkwork.functions.kinematics import chosen_frames
from linkwork.functions.options import OPTIONS
from linkwork.functions.parameters import BY_MASS, PARAMETERS, Inputs
from linkwork.functions.recipes import factory
from linkwork.functions.results import (
    BiasForcesResult,
    CentreOfMassResult,
    CentroidalMomentumResult,
    CoriolisMatrixResult,
    EnergyResult,
    FrameAccelerationResult,
    FrameJacobianResult,
    FrameVelocityResult,
    GravityForcesResult,
    InverseMassMatrixResult,
    terms_result,
)
from linkwork.model import Frame, Model, Motion
from linkwork.model.model import MODEL
from linkwork.rewrite.rewritten import in_place


class FrameTerm(NamedTuple):
    """A term of frames: its inputs, its shape ("n" is nv), and (motion, frame, reference, a) -> matrix."""

    inputs: str
    shape: tuple[int | str, ...]
    of: Callable[[Motion, Frame, str, Array], Array]
    by: tuple[str, ...] = ()


class Term(NamedTuple):
    """A term of the mechanism: inputs, shape ("n" is nv), (motion, a) -> matrix, parameters it depends on."""

    inputs: str
    shape: tuple[int | str, ...]
    of: Callable[[Motion, Array], Array]
    by: tuple[str, ...] = ("inertia",)


BY_WEIGHT = ("inertia", "gravity")
"""The parameters of what gravity does."""

FRAME_TERMS = {
    "positions": FrameTerm("q", (3,), lambda m, f, ref, a: frame_placement(m, f)[1]),
    "rotations": FrameTerm("q", (3, 3), lambda m, f, ref, a: frame_placement(m, f)[0]),
    "velocities": FrameTerm("qv", (6,), lambda m, f, ref, a: velocity(m, f, ref)),
    "accelerations": FrameTerm("qva", (6,), lambda m, f, ref, a: acceleration(m, f, a, ref)),
    "classical_accelerations": FrameTerm("qva", (6,), lambda m, f, ref, a: acceleration(m, f, a, ref, classical=True)),
    "J": FrameTerm("q", (6, "n"), lambda m, f, ref, a: jacobian(m, f, ref)),
    "Jdot_v": FrameTerm("qv", (6,), lambda m, f, ref, a: acceleration(m, f, None, ref)),
}
"""Positions and rotations are those in the world; everything else is seen from the reference."""

TERMS = {
    "com": Term("q", (3,), lambda m, a: centre(m)),
    "com_velocity": Term("qv", (3,), lambda m, a: centroidal(m)[0:3, :] / total_mass(m)),
    "com_acceleration": Term("qva", (3,), lambda m, a: centroidal_rate(m, a)[0:3, :] / total_mass(m)),
    "com_J": Term("q", (3, "n"), lambda m, a: centroidal_matrix(m)[0:3, :] / total_mass(m)),
    "com_Jdot_v": Term("qv", (3,), lambda m, a: centroidal_rate(m, None)[0:3, :] / total_mass(m)),
    "h": Term("qv", (6,), lambda m, a: centroidal(m)),
    "hdot": Term("qva", (6,), centroidal_rate),
    "A": Term("q", (6, "n"), lambda m, a: centroidal_matrix(m)),
    "Adot_v": Term("qv", (6,), lambda m, a: centroidal_rate(m, None)),
    "kinetic_energy": Term("qv", (), lambda m, a: kinetic_energy(m), BY_MASS),
    "potential_energy": Term("q", (), lambda m, a: potential_energy(m), BY_WEIGHT),
    "M": Term("q", ("n", "n"), lambda m, a: crba(m), BY_MASS),
    "Minv": Term("q", ("n", "n"), lambda m, a: inverse_mass(m), BY_MASS),
    "C": Term("qv", ("n", "n"), lambda m, a: coriolis(m), BY_MASS),
    "g": Term("q", ("n",), lambda m, a: gravity(m), BY_WEIGHT),
    "c": Term("qv", ("n",), lambda m, a: rnea(m, None), (*BY_MASS, "gravity")),
}
"""In world axes; momenta are about the centre of mass."""

TERM = choice("term", (*FRAME_TERMS, *TERMS))
TERM_NAMES = either(TERM, several(TERM, "the names of terms"))
FRAME_NAMES = either(NAME, NAMES)
REFERENCE = choice("reference", REFERENCES)


@checked(model=MODEL, names=TERM_NAMES, frames=FRAME_NAMES, reference=REFERENCE, parameters=PARAMETERS, **OPTIONS)
@factory
def terms(
    model: Model,
    names: str | Sequence[str],
    frames: str | Sequence[str] = (),
    *,
    reference: str = "local",
    **options: Any,
) -> Function[Any]:
    """`f(q, v, a) -> (...)`: any terms of kinematics and dynamics, by name, in one function.

    `names` are one or several of those below. Its inputs are those that the terms need: `q`, `q, v` or `q, v, a`;
    quaternions in `q` are [x y z w]. The result has the terms by name, in the order given. Constraints do not matter.
    `parameters` names groups that become inputs: "inertia", and "armature" and "gravity" where the terms depend on it.

    Of each frame, (F, ...) for a list of frames, without that axis for one name:

    - `positions` (3), `rotations` (3, 3): origin and axes in the world;
    - `velocities` (6): V = [linear; angular], `J` (6, nv): V = J v;
    - `accelerations` (6): dV/dt = J a + Jdot_v, `Jdot_v` (6); gravity is not in them;
    - `classical_accelerations` (6): those of the point itself, w x v more in "local" and "world".

    `reference` is "local" (origin and axes of the frame), "world" (both of the world) or "world_aligned" (origin of
    the frame, axes of the world: there V has the derivative of the frame's position).

    Of the mechanism:

    - `com`, `com_velocity`, `com_acceleration` (3), `com_J` (3, nv), `com_Jdot_v` (3): centre of mass in the world;
    - `h`, `hdot` (6), `A` (6, nv), `Adot_v` (6): momentum [linear; angular about the centre of mass] in world axes;
    - `kinetic_energy`, `potential_energy`;
    - `M`, `Minv` (nv, nv); `C` (nv, nv), with dM/dt - 2 C skew-symmetric; `g`, `c` = C v + g (nv).

    Examples:
        >>> model = quadruped()
        >>> feet = ["front_left_foot", "rear_right_foot"]
        >>> f = lw.terms(model, ["M", "c", "J", "Jdot_v"], feet, reference="world_aligned")
        >>> t = f(standing(model), np.zeros(model.nv))
        >>> t.M.shape, t.c.shape, t.J.shape, t.Jdot_v.shape
        ((18, 18), (18,), (2, 6, 18), (2, 6))
    """
    names = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    return _function("terms", model, names, frames, reference, terms_result(names), options)


@checked(model=MODEL, frames=FRAME_NAMES, reference=REFERENCE, **OPTIONS)
@factory
def frame_velocity(
    model: Model, frames: str | Sequence[str], *, reference: str = "local", **options: Any
) -> Function[FrameVelocityResult]:
    """`fv(q, v) -> (velocities,)`: [linear; angular] of frames, (F, 6), or (6,) for one name.

    `reference` is "local", "world" or "world_aligned" (see `terms`); quaternions in `q` are [x y z w].

    Examples:
        >>> fv = lw.frame_velocity(chain(3), "linktip", reference="world_aligned")
        >>> np.allclose(fv(np.zeros(3), np.array([1.0, 0, 0])).velocities, [0, 0.9, 0, 0, 0, 1])
        True
    """
    return _function("frame_velocity", model, ("velocities",), frames, reference, FrameVelocityResult, options)


@checked(model=MODEL, frames=FRAME_NAMES, reference=REFERENCE, classical=FLAG, **OPTIONS)
@factory
def frame_acceleration(
    model: Model,
    frames: str | Sequence[str],
    *,
    reference: str = "local",
    classical: bool = False,
    **options: Any,
) -> Function[FrameAccelerationResult]:
    """`fa(q, v, a) -> (accelerations,)`: J a + Jdot_v of frames, (F, 6), or (6,) for one name.

    In "local" and "world" that is the spatial acceleration, in "world_aligned" that of the frame's origin; with
    `classical=True` it is that of the point in all three. Gravity is not in it: an accelerometer reads less g.
    `reference` is one of these three (see `terms`).

    Examples:
        >>> fa = lw.frame_acceleration(chain(3), ["link2", "linktip"])
        >>> fa(np.zeros(3), np.ones(3), np.zeros(3)).accelerations.shape
        (2, 6)
    """
    name = "classical_accelerations" if classical else "accelerations"
    return _function("frame_acceleration", model, (name,), frames, reference, FrameAccelerationResult, options)


@checked(model=MODEL, frames=FRAME_NAMES, reference=REFERENCE, **OPTIONS)
@factory
def frame_jacobian(
    model: Model, frames: str | Sequence[str], *, reference: str = "local", **options: Any
) -> Function[FrameJacobianResult]:
    """`fj(q) -> (J,)`: Jacobians of frames, V = J v, (F, 6, nv), or (6, nv) for one name.

    `reference` is "local", "world" or "world_aligned" (see `terms`); quaternions in `q` are [x y z w].

    Examples:
        >>> model, q, v = chain(3), np.zeros(3), np.ones(3)
        >>> J = lw.frame_jacobian(model, "linktip")(q).J
        >>> np.allclose(J @ v, lw.frame_velocity(model, "linktip")(q, v).velocities)
        True
    """
    return _function("frame_jacobian", model, ("J",), frames, reference, FrameJacobianResult, options)


@checked(model=MODEL, parameters=PARAMETERS, **OPTIONS)
@factory
def centre_of_mass(model: Model, **options: Any) -> Function[CentreOfMassResult]:
    """`cm(q) -> (com, com_J)`: the centre of mass in the world, and its Jacobian, 3 x nv.

    Examples:
        >>> com, J = lw.centre_of_mass(chain(3))(np.zeros(3))
        >>> com.shape, J.shape
        ((3,), (3, 3))
    """
    return _function("centre_of_mass", model, CentreOfMassResult._fields, (), "local", CentreOfMassResult, options)


@checked(model=MODEL, parameters=PARAMETERS, **OPTIONS)
@factory
def centroidal_momentum(model: Model, **options: Any) -> Function[CentroidalMomentumResult]:
    """`cm(q, v) -> (h, A, Adot_v)`: momentum about the centre of mass, h = A v and dh/dt = A a + Adot_v.

    [linear; angular] in world axes.

    Examples:
        >>> model = chain(3)
        >>> h, A, _ = lw.centroidal_momentum(model)(np.zeros(3), np.ones(3))
        >>> np.allclose(A @ np.ones(3), h)
        True
    """
    result = CentroidalMomentumResult
    return _function("centroidal_momentum", model, result._fields, (), "local", result, options)


@checked(model=MODEL, parameters=PARAMETERS, **OPTIONS)
@factory
def energy(model: Model, **options: Any) -> Function[EnergyResult]:
    """`en(q, v) -> (kinetic_energy, potential_energy)`, in joules.

    The latter is zero at the world's origin.

    Examples:
        >>> float(lw.energy(chain(3))(np.zeros(3), np.zeros(3)).kinetic_energy)
        0.0
    """
    return _function("energy", model, EnergyResult._fields, (), "local", EnergyResult, options)


@checked(model=MODEL, parameters=PARAMETERS, **OPTIONS)
@factory
def coriolis_matrix(model: Model, **options: Any) -> Function[CoriolisMatrixResult]:
    """`cm(q, v) -> (C,)`: the Coriolis matrix, nv x nv, with C v + g = c and dM/dt - 2 C skew-symmetric.

    Examples:
        >>> model, q, v = chain(3), np.ones(3), np.ones(3)
        >>> C, g, c = lw.coriolis_matrix(model)(q, v).C, lw.gravity_forces(model)(q).g, lw.bias_forces(model)(q, v).c
        >>> np.allclose(C @ v + g, c)
        True
    """
    return _function("coriolis_matrix", model, ("C",), (), "local", CoriolisMatrixResult, options)


@checked(model=MODEL, parameters=PARAMETERS, **OPTIONS)
@factory
def gravity_forces(model: Model, **options: Any) -> Function[GravityForcesResult]:
    """`gf(q) -> (g,)`: the joint forces that hold the robot at rest, nv.

    Examples:
        >>> model = chain(3)
        >>> g = lw.gravity_forces(model)(np.ones(3)).g
        >>> np.allclose(lw.forward_dynamics(model)(np.ones(3), np.zeros(3), g).a, 0)
        True
    """
    return _function("gravity_forces", model, ("g",), (), "local", GravityForcesResult, options)


@checked(model=MODEL, parameters=PARAMETERS, **OPTIONS)
@factory
def bias_forces(model: Model, **options: Any) -> Function[BiasForcesResult]:
    """`bf(q, v) -> (c,)`: nonlinear effects, C v + g: the joint forces without acceleration, nv.

    Examples:
        >>> lw.bias_forces(chain(3))(np.ones(3), np.ones(3)).c.shape
        (3,)
    """
    return _function("bias_forces", model, ("c",), (), "local", BiasForcesResult, options)


@checked(model=MODEL, parameters=PARAMETERS, **OPTIONS)
@factory
def inverse_mass_matrix(model: Model, **options: Any) -> Function[InverseMassMatrixResult]:
    """`im(q) -> (Minv,)`: the inverse of the joint-space mass matrix, nv x nv.

    Examples:
        >>> model = chain(3)
        >>> np.allclose(lw.inverse_mass_matrix(model)(np.ones(3)).Minv @ lw.mass_matrix(model)(np.ones(3)).M, np.eye(3))
        True
    """
    return _function("inverse_mass_matrix", model, ("Minv",), (), "local", InverseMassMatrixResult, options)


def _function(
    name: str,
    model: Model,
    names: Sequence[str],
    frames: str | Sequence[str],
    reference: str,
    result: Any,
    options: dict[str, Any],
) -> Function[Any]:
    """The function of these terms."""
    where = (frames,) if isinstance(frames, str) else tuple(frames)
    _check(model, names, where)
    # frames alone take fewest operations where the user has them; a rewritten model pays with inertias
    within = "given" if not set(names) & set(TERMS) else chosen_frames("best", options.get("backend", "kernel"))
    needs = set().union(*((FRAME_TERMS.get(n) or TERMS[n]).inputs for n in names))
    outputs = dict(zip(names, result._fields, strict=True))
    shapes = {outputs[n]: _shape(n, model.nv, None if isinstance(frames, str) else len(where)) for n in names}

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        m = in_place(model, within).motion(x["q"], x.get("v", xp.zeros(model.nv)), xp, x)
        places = [m.model.frame(f) for f in where]
        return {outputs[n]: _value(n, m, places, reference, x.get("a")) for n in names}

    valid = dict.fromkeys(p for n in names for p in (FRAME_TERMS.get(n) or TERMS[n]).by)
    sizes = {n: size for n, size in (("q", model.nq), ("v", model.nv), ("a", model.nv)) if n in needs}
    inputs = Inputs(model, options.pop("parameters", ()), tuple(valid), None, None, **sizes)
    identity = (tuple(outputs.items()), where, isinstance(frames, str), reference, within, *inputs.identity)
    made: dict[str, Any] = {"shapes": {**shapes, **inputs.shapes}, "defaults": inputs.defaults, "identity": identity}
    found: Function[Any] = Function(name, model, inputs.sizes, body, result=result, **made, **options)
    found.factors_mass = "Minv" in names
    found._constrained, found._axes = False, f"'{reference}'" if where else "world axes"
    return found


def _check(model: Model, names: Sequence[str], frames: Sequence[str]) -> None:
    """Refuse no terms at all, terms of frames without frames, and frames without such terms."""
    of_frames = [n for n in names if n in FRAME_TERMS]
    if not names:
        raise InputError(f"name at least one term: {', '.join((*FRAME_TERMS, *TERMS))}")
    if of_frames and not frames:
        raise InputError(f"'{of_frames[0]}' is a term of frames; name them, as in frames=['{model.links[-1].name}']")
    if frames and not of_frames:
        raise InputError(f"none of these terms is one of frames; those are {', '.join(FRAME_TERMS)}")
    for f in frames:
        model.frame(f)
    if "Minv" in names:
        model.check_forward()


def _shape(name: str, nv: int, frames: int | None) -> tuple[int, ...]:
    """The shape of a term, of so many frames, or of one."""
    term = FRAME_TERMS.get(name) or TERMS[name]
    one = tuple(nv if n == "n" else int(n) for n in term.shape)
    return (frames, *one) if name in FRAME_TERMS and frames is not None else one


def _value(name: str, m: Motion, frames: Sequence[Frame], reference: str, a: Array) -> Array:
    """A term as one matrix, frames below each other."""
    if name in TERMS:
        return TERMS[name].of(m, a)
    return m.xp.vstack([FRAME_TERMS[name].of(m, f, reference, a) for f in frames])
