"""What the header of an exported function says.

Robot, method, order of joints and rows, units, settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from typing import TYPE_CHECKING

from linkwork.kernels.export.c_source import REAL, targets

if TYPE_CHECKING:
    from linkwork.functions.traced import Traced

SETTINGS = {
    "mu": "penalty on violated rows, in units of their effective inertia",
    "flat": "least share of a step along which rows count as independent",
    "tolerance": "largest |J a - k|, relative to the rows' terms",
    "max_iterations": "solver iterations after the first",
}
"""The inputs of a method that iterates which calls in Python take from its `prox`."""

MEANINGS = {
    "q": "configuration",
    "v": "velocity",
    "tau": "joint forces",
    "u": "controls of actuators",
    "act": "activations of actuators that have a state",
    "a": "acceleration",
    "lam": "constraint forces on the robot",
    "positions": "origins of frames in the world",
    "rotations": "axes of frames in the world",
    "velocities": "velocities of frames, V = J v",
    "accelerations": "accelerations of frames, J a + Jdot_v",
    "J": "Jacobian",
    "Jdot_v": "rate of the Jacobian times v",
    "com": "centre of mass in the world",
    "com_J": "Jacobian of the centre of mass",
    "h": "momentum about the centre of mass",
    "A": "momentum matrix, h = A v",
    "M": "mass matrix",
    "Minv": "inverse of the mass matrix",
    "C": "Coriolis matrix",
    "g": "gravity forces",
    "c": "joint forces without acceleration, C v + g",
    "Y": "regressor: joint forces, or momenta, are Y times the parameters",
    "active": "1 for each active constraint, 0 for others",
    "report": "solver iterations; the largest |J a - k|; 1, or NaN if that is too large",
    **SETTINGS,
}


def described(function: Traced) -> list[str]:
    """The lines of the header's comment."""
    return [*_title(function), "", *_arrays(function), "", *_joints(function), *_rows(function)]


def _title(function: Traced) -> Iterator[str]:
    model = function.model
    try:
        release = version("linkwork")
    except PackageNotFoundError:  # run from its sources
        release = "(not installed)"
    size = f"{model.nlinks} links, nq {model.nq}, nv {model.nv}, {model.rows} constraint rows"
    yield f"robot    {model.name}: {size}"
    yield f"function {_call(function)}"
    yield f"method   {function.method or function.name}, {function.operations} operations"
    yield f"version  Linkwork {release}"
    yield f"gravity  {' '.join(f'{x:g}' for x in model.gravity)} m/s^2 in the world"
    yield f"units    m, rad, kg, s, N, Nm; spatial vectors are [linear; angular] in {function._axes}"
    yield "q        free joints [x y z  qx qy qz qw], spherical [qx qy qz qw], planar [x y cos sin]; angles in rad"


def _call(function: Traced) -> str:
    """The call in Python that made the function."""
    if function.recipe is None:
        return function.name
    module, name, args, named = function.recipe
    given = dict(zip(signature(getattr(import_module(module), name)).parameters, args, strict=False)) | named
    options = "".join(f", {n}={x!r}" for n, x in given.items() if n != "model")
    return f"{name}(model{options})"


def _arrays(function: Traced) -> Iterator[str]:
    program = function.program
    kind = REAL[function.dtype].kind
    yield f"Arrays of {kind}; matrices row by row; no two may overlap. What cannot be computed is NaN."
    ports = [(p.name, p, "in ") for p in program.inputs]
    ports += [(n, p, "out") for n, p in zip(targets(program.inputs, program.outputs), program.outputs, strict=True)]
    wide = max(len(n) for n, _, _ in ports)
    for name, port, way in ports:
        shape = " x ".join(str(n) for n in port.shape)
        default = f", default {function._settings[port.name][0]:g}" if port.name in function._settings else ""
        yield f"  {way} {name:{wide}}  {shape:9} {MEANINGS.get(port.name, '')}{default}".rstrip()


def _joints(function: Traced) -> Iterator[str]:
    model, t = function.model, function.model.topology
    moving = [i for i in t.links if model.links[i].joint.nq]
    names = [f"{model.links[i].joint_name} ({model.links[i].joint.kind})" for i in moving]
    wide = max((len(n) for n in names), default=0)
    yield f"  {'joints':{wide}}  {'q':>9}  {'v':>9}"
    for i, name in zip(moving, names, strict=True):
        yield f"  {name:{wide}}  {_span(t.q_slices[i]):>9}  {_span(t.v_slices[i]):>9}"


def _rows(function: Traced) -> Iterator[str]:
    constraints = function.model.constraints
    if not constraints or not function._constrained:
        return
    wide = max(len(c.name) for c in constraints)
    yield ""
    yield "  constraints, with their rows"
    start = 0
    for c in constraints:
        yield f"  {c.name:{wide}}  {_span(slice(start, start + c.rows)):>9}  {c.describe()}"
        start += c.rows


def _span(part: slice) -> str:
    """Places as C counts them: "3", or "3..5"."""
    return str(part.start) if part.stop == part.start + 1 else f"{part.start}..{part.stop - 1}"
