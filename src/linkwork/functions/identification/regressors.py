"""Regressors of a model: joint forces, momenta and energies as linear functions of its parameters.

tau = Y(q, v, a) pi,    M v = Y(q, v) pi,    T = kinetic(q, v) pi,    U = potential(q) pi
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np

from linkwork.algorithms.clusters.projected_rows import projected_rows
from linkwork.algorithms.tree.regressors import (
    kinetic_regressor,
    momentum_regressor,
    potential_regressor,
    torque_regressor,
)
from linkwork.backends import Array, Ops
from linkwork.checks import FLAG, checked, choice
from linkwork.errors import InputError, UnsupportedError, listing
from linkwork.functions.function import Function
from linkwork.functions.options import OPTIONS
from linkwork.functions.recipes import factory
from linkwork.functions.results import EnergyRegressorResult, RegressorEntriesResult, RegressorResult
from linkwork.joints import Free
from linkwork.model import Model, Motion
from linkwork.model.model import MODEL
from linkwork.model.motion import motion_of
from linkwork.model.parameter_vector import GROUPS, LINEAR

DEPENDS = {
    "torque": LINEAR,
    "momentum": ("inertia", "armature"),
    "energy": ("inertia", "armature", "stiffness"),
}
"""The parameters that each quantity is linear in."""

KIND = choice("kind of regressor", DEPENDS)


@overload
def regressor(model: Model, kind: Literal["energy"], **options: Any) -> Function[EnergyRegressorResult]: ...
@overload
def regressor(
    model: Model, kind: Literal["torque", "momentum"] = "torque", *, packed: Literal[False] = False, **options: Any
) -> Function[RegressorResult]: ...
@overload
def regressor(
    model: Model, kind: Literal["torque", "momentum"] = "torque", *, packed: Literal[True], **options: Any
) -> Function[RegressorEntriesResult]: ...
@overload
def regressor(model: Model, kind: str = "torque", **options: Any) -> Function[Any]: ...
@checked(model=MODEL, kind=KIND, parameters=GROUPS, projected=FLAG, packed=FLAG, **OPTIONS)
@factory
def regressor(
    model: Model,
    kind: str = "torque",
    *,
    parameters: Sequence[str] = ("inertia",),
    projected: bool = True,
    packed: bool = False,
    **options: Any,
) -> Function[Any]:
    """The function of the matrix Y with tau = Y pi, or momenta and energies, pi being parameters.

    - `kind="torque"`: `f(q, v, a) -> (Y,)`, tau = Y pi (nv, p): inverse dynamics;
    - `kind="momentum"`: `f(q, v) -> (Y,)`, M v = Y pi (nv, p);
    - `kind="energy"`: `f(q, v) -> (kinetic, potential)`, T = kinetic pi and U = potential pi, (p,) each.

    pi is `lw.parameter_vector(model, parameters)`: the groups of `model.parameters()` in the order given, flat.
    "inertia" has ten for each link, [m  hx hy hz  Ixx Ixy Iyy Ixz Iyz Izz], Pinocchio's order; "armature", "damping",
    "stiffness" (rest positions are the model's) and "joint_friction" (dry, sign(v)) one for each degree of freedom.
    What is not named is not in Y: all that act together give `inverse_dynamics`. Springs and damping of joints that
    close loops are in no column.

    With local loops rows are G^T Y, those of the independent joints alone, and zeros for the dependent ones, for states
    in which the loops are closed; `projected=False` gives the rows of the tree without loops. Other constraints do not
    matter: their forces J^T lam belong to tau. Quaternions in `q` are [x y z w].

    With `packed=True` the result is `(entries,)`, only those that are not zero in every state, at the rows and columns
    that `lw.regressor_pattern` gives with the same arguments: most of the time is spent on writing zeros otherwise.

    Examples:
        >>> model = chain(3)
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, model.nv))
        >>> Y = lw.regressor(model)(q, v, a).Y
        >>> np.allclose(Y @ lw.parameter_vector(model), lw.inverse_dynamics(model)(q, v, a).tau)
        True
    """
    names = _checked_groups(model, kind, parameters)
    loops = projected and kind != "energy" and bool(model.constraints)
    if packed and kind == "energy":
        raise InputError("regressors of energy have few zeros; leave packed=True out")

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        m = motion_of(model, x["q"], x["v"], xp)
        if kind == "energy":
            parts = [[_energies(n, m)[k] for n in names] for k in range(2)]
            return dict(zip(EnergyRegressorResult._fields, (xp.hstack(p) for p in parts), strict=True))
        Y = xp.hstack([xp.zeros(model.nv, 0), *(force_columns(n, m, x.get("a")) for n in names)])
        Y = projected_rows(m, Y) if loops else Y
        if not packed:
            return {"Y": Y}
        places = zip(*regressor_pattern(model, kind, parameters=names, projected=projected), strict=True)
        return {"entries": xp.vstack([xp.zeros(0), *(Y[i : i + 1, j : j + 1] for i, j in places)])}

    size = parameter_count(model, names)
    inputs = {"q": model.nq, "v": model.nv} | ({"a": model.nv} if kind == "torque" else {})
    shapes = {"Y": (model.nv, size)} if kind != "energy" else dict.fromkeys(EnergyRegressorResult._fields, (size,))
    result = EnergyRegressorResult if kind == "energy" else RegressorEntriesResult if packed else RegressorResult
    name, identity = f"{kind}_regressor", (names, loops, packed)
    return Function(name, model, inputs, body, shapes=shapes, result=result, identity=identity, **options)


@checked(model=MODEL, kind=KIND, parameters=GROUPS, projected=FLAG)
def regressor_pattern(
    model: Model, kind: str = "torque", *, parameters: Sequence[str] = ("inertia",), projected: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries of `lw.regressor(packed=True)`: those not zero in every state.

    `kind`, `parameters` and `projected` are those of the function. Entries are analytic in the state: what is zero in a
    random one is zero in all.

    Examples:
        >>> rows, columns = lw.regressor_pattern(chain(3))
        >>> Y = np.zeros((3, 30))
        >>> Y[rows, columns] = lw.regressor(chain(3), packed=True)(np.ones(3), np.ones(3), np.ones(3)).entries
    """
    if kind == "energy":
        raise InputError("regressors of energy have few zeros, and no pattern")
    f = regressor(model, kind, parameters=parameters, projected=projected, backend="numpy")
    rng = np.random.default_rng(0)
    v, a = rng.normal(size=(2, model.nv))
    rows, columns = np.nonzero(f(model.random_q(rng), v, a).Y if kind == "torque" else f(model.random_q(rng), v).Y)
    return rows, columns


def parameter_count(model: Model, names: Sequence[str]) -> int:
    """How many parameters these groups have."""
    return sum(10 * model.nlinks if n == "inertia" else model.nv for n in names)


def _checked_groups(model: Model, kind: str, names: Sequence[str]) -> tuple[str, ...]:
    """The groups, each once; refused if the quantity does not depend on one, or is not linear in it."""
    wrong = [n for n in names if n not in DEPENDS[kind]]
    if wrong:
        raise InputError(f"the {kind} does not depend on {listing(wrong)}; it does on {listing(DEPENDS[kind])}")
    if not names:
        raise InputError(f"name at least one group of parameters: {listing(DEPENDS[kind])}")
    for link in model.links[1:]:
        own, held = link.inertia.parameters[:4], link.weightless.parameters[:4]
        if held.any() and (not own[0] or abs(held * own[0] - own * held[0]).max() > 1e-12 * own[0] * abs(own).max()):
            raise UnsupportedError(
                f"gravity does not pull a part of link '{link.name}' with a centre of its own, so that forces are not "
                "linear in its inertia; model.with_inertia(...) without `weightless` leaves that out"
            )
    return tuple(dict.fromkeys(names))


def force_columns(name: str, m: Motion, a: Array | None) -> Array:
    """The columns of a group in joint forces, or in momenta without accelerations `a`: nv x its size."""
    if name == "inertia":
        return momentum_regressor(m) if a is None else torque_regressor(m, a)
    if name == "armature":
        return _diagonal(m.v, m.xp) if a is None else _diagonal(a, m.xp) + _turned(m)
    if name == "damping":
        return _diagonal(m.v, m.xp)
    if name == "stiffness":
        return _diagonal(_displacements(m), m.xp)
    return _diagonal(m.xp.where(m.v > 0, 1.0, m.xp.where(m.v < 0, -1.0, 0.0)), m.xp)


def _energies(name: str, m: Motion) -> tuple[Array, Array]:
    """The columns of a group in kinetic and in potential energy, 1 x its size each."""
    none = m.xp.zeros(1, m.model.nv)
    if name == "inertia":
        return kinetic_regressor(m), potential_regressor(m)
    if name == "armature":
        return (m.v * m.v).T / 2, none
    x = _displacements(m)
    return none, (x * x).T / 2


def _displacements(m: Motion) -> Array:
    """How far every joint is from the rest of its spring, nv x 1."""
    xp, parts = m.xp, [m.xp.zeros(0)]
    for i in m.model.topology.links:
        link = m.model.links[i]
        parts.append(link.joint.displacement(xp.constant(link.passive.rest), m.joint_q(i), xp))
    return xp.vstack(parts)


def _turned(m: Motion) -> Array:
    """The force w x v of armature of free joints in their parents' axes, by its first value, nv x nv."""
    xp, t, total = m.xp, m.model.topology, m.xp.zeros(m.model.nv, m.model.nv)
    for i in t.links:
        joint, at = m.model.links[i].joint, t.v_slices[i].start
        if isinstance(joint, Free) and joint.armature_axes == "parent":
            v = m.joint_v(i)
            f = xp.vstack([xp.zeros(at), xp.cross(v[3:6, :], v[0:3, :]), xp.zeros(m.model.nv - at - 3)])
            total = total + xp.hstack([xp.zeros(m.model.nv, at), f, xp.zeros(m.model.nv, m.model.nv - at - 1)])
    return total


def _diagonal(x: Array, xp: Ops) -> Array:
    """The diagonal matrix of a column."""
    n = x.shape[0]
    zero = xp.zeros(1)
    return xp.vstack(
        [xp.zeros(0, n), *(xp.hstack([x[k : k + 1, :] if j == k else zero for j in range(n)]) for k in range(n))]
    )
