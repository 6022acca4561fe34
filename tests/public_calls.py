"""A valid call of everything public: what is attacked, one argument at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import linkwork as lw
from linkwork import interop, joints, scale
from linkwork.io import zoo
from linkwork.model import Frame, Limits, Link, Passive, Visual
from linkwork.model.visual import Box, Collider
from linkwork.robots import mechanisms, scenarios

NUMPY_BACKEND = {"backend": "numpy"}
OPTIONS = {"backend": "numpy", "dtype": "float64", "threads": 1}
"""Of every factory; nothing is compiled."""


@dataclass(frozen=True)
class Call:
    """A function and arguments with which it works, those in `several` by their places."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    several: tuple[str, ...] = ()

    def __call__(self, **changed: Any) -> Any:
        given = {**self.arguments, **changed}
        first = [given.pop(n) for n in self.several]
        return self.function(*first, **given)


def _key(x: Any) -> Any:
    """What can be a key at all."""
    try:
        hash(x)
    except TypeError:
        return None
    return x


@cache
def robot() -> lw.Model:
    """A free base with an arm, and a contact."""
    b = lw.Builder("robot")
    body = lw.BodyInertia(1.0, np.array([0.0, 0.1, 0.2]), 0.1 * np.eye(3))
    b.link("base", joint="free", inertia=body, actuated=False)
    b.link("arm", "base", "revolute", axis="y", inertia=body)
    b.link("hand", "arm", "revolute", axis="x", inertia=body, placement=lw.Placement.at((0, 0, 0.3)))
    b.frame("tip", "hand", lw.Placement.at((0, 0, 0.2)))
    return b.build().with_constraints(lw.point("tip"))


@cache
def loop() -> lw.Model:
    return mechanisms.four_bar()


@cache
def arm() -> lw.Model:
    """Two joints and nothing else."""
    return mechanisms.chain(2)


@cache
def run() -> lw.Trajectory:
    return lw.simulate(arm(), arm().neutral(), duration=0.003, backend="numpy", method="aba")


URDF = (
    '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
    'ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="revolute"><parent link="a"/><child link="b"/>'
    '<limit effort="1" velocity="1" lower="-1" upper="1"/></joint></robot>'
)


def public_calls(folder: Any) -> Iterator[Call]:
    """All of them; files are written below `folder`."""
    yield from _models()
    yield from _joints()
    yield from _constraints()
    yield from _factories()
    yield from _states()
    yield from _motions(folder)
    yield from _mechanisms()
    yield from _others(folder)
    yield from _learning()


def _models() -> Iterator[Call]:
    I, z = 0.1 * np.eye(3), np.zeros(3)
    body, place = lw.BodyInertia(1.0, z, I), lw.Placement()
    yield Call("BodyInertia.from_parameters", lw.BodyInertia.from_parameters, {"parameters": body.parameters})
    yield Call("BodyInertia", lw.BodyInertia, {"mass": 1.0, "com": z, "I": I})
    yield Call("Placement", lw.Placement, {"R": np.eye(3), "p": z})
    yield Call("Placement.at", lw.Placement.at, {"xyz": (0, 0, 1), "rpy": (0.1, 0.2, 0.3)})
    yield Call("Placement.from_quaternion", lw.Placement.from_quaternion, {"xyz": z, "xyzw": [0, 0, 0, 1]})

    def built(**fields: Any) -> lw.Model:
        b = lw.Builder(**fields)
        b.link("bob", joint="revolute", inertia=body)
        return b.build()

    options = {"constraints": [], "independent": [], "strict": True, "actuators": [], "tendons": []}
    yield Call("Builder", built, {"name": "b", "gravity": [0, 0, -9.81], **options})

    def with_link(**given: Any) -> lw.Model:
        b = lw.Builder()
        b.link(**given)
        return b.build()

    yield Call(
        "Builder.link",
        with_link,
        {
            "name": "bob",
            "parent": "world",
            "joint": "revolute",
            "axis": "z",
            "placement": place,
            "inertia": body,
            "armature": 0.1,
            "joint_name": "j",
            "limits": Limits(-1, 1),
            "actuated": True,
            "weightless": lw.BodyInertia(),
            "damping": 0.1,
            "stiffness": 2.0,
            "rest": 0.3,
            "friction": 0.2,
        },
    )
    yield Call("Builder.link of a joint", with_link, {"name": "bob", "joint": joints.Free(), "inertia": body})

    def with_more(**given: Any) -> lw.Model:
        b = lw.Builder()
        b.link("bob", joint="revolute", inertia=body)
        {"frame": b.frame, "load": b.load, "visual": b.visual, "collider": b.collider}[given.pop("_")](*given.values())
        return b.build()

    yield Call("Builder.frame", partial(with_more, _="frame"), {"name": "f", "link": "bob", "placement": place})
    yield Call("Builder.load", partial(with_more, _="load"), {"link": "bob", "inertia": body})
    yield Call(
        "Builder.collider", partial(with_more, _="collider"), {"link": "bob", "colliders": Collider(Box((1, 1, 1)))}
    )
    yield Call("Builder.visual", partial(with_more, _="visual"), {"link": "bob", "visuals": Visual(Box((1, 1, 1)))})
    yield Call("Builder.build", lambda **given: lw.Builder().build(**given), {"merge_fixed": True})
    yield Call("Limits", Limits, {"lower": -1.0, "upper": 1.0, "effort": 1.0, "velocity": 1.0})
    yield Call("Frame", Frame, {"link": 0, "placement": place})
    link = {
        "name": "l",
        "parent": 0,
        "joint": joints.Revolute(),
        "joint_name": "j",
        "placement": place,
        "inertia": body,
        "armature": np.zeros(1),
        "limits": Limits(),
        "actuated": True,
        "looks": (),
        "weightless": body,
        "passive": arm().links[1].passive,
    }
    yield Call("Link", Link, link)
    yield Call("Passive", Passive, {"damping": [0.1], "stiffness": [0.2], "rest": [0.3], "friction": [0.4]})
    yield Call(
        "Model",
        lw.Model,
        {
            "name": "m",
            "links": arm().links,
            "frames": dict(arm().frames),
            "gravity": [0, 0, -9.81],
            "constraints": (),
            "independent": (),
            "actuators": (),
            "tendons": (),
        },
    )
    m = robot()
    yield Call("Model.with_constraints", m.with_constraints, {"c": lw.surface("base")}, ("c",))
    yield Call("Model.with_frame", m.with_frame, {"name": "f", "on": "arm", "placement": place})
    yield Call("Model.with_gravity", m.with_gravity, {"gravity": [0, 0, -1.62]})
    yield Call("Model.with_inertia", m.with_inertia, {"link": "arm", "inertia": body, "weightless": lw.BodyInertia()})
    yield Call("Model.with_armature", m.with_armature, {"joint": "arm_joint", "armature": 0.1})
    yield Call("Model.with_damping", m.with_damping, {"joint": "arm_joint", "damping": 0.1})
    yield Call("Model.with_springs", m.with_springs, {"joint": "arm_joint", "stiffness": 10.0, "rest": 0.1})
    yield Call("Model.with_friction", m.with_friction, {"joint": "arm_joint", "friction": 0.1})
    yield Call("Model.with_actuators", m.with_actuators, {"a": lw.Motor("arm_joint")}, ("a",))
    yield Call("Model.with_tendons", m.with_tendons, {"t": lw.Tendon("arm_joint", 3.0)}, ("t",))
    yield from _actuators()
    yield Call("Model.without", m.without, {"names": "tip~world"}, ("names",))
    yield Call("Model.with_independent", loop().with_independent, {"joints": "crank_joint"}, ("joints",))
    for method, valid in (("link", "arm"), ("joint", "arm_joint"), ("frame", "tip")):
        yield Call(f"Model.{method}", getattr(m, method), {"name": valid})
    for method in ("q_slice", "v_slice"):
        yield Call(f"Model.{method}", getattr(m, method), {"joint": "arm_joint"})
    yield Call("Model.neutral", m.neutral, {"batch": 2})
    yield Call("Model.random_q", m.random_q, {"seed": 0, "batch": 2})
    yield Call("Model.velocity", m.velocity, {"q": m.neutral(), "qdot": np.zeros(m.nq)})
    yield Call("Model.interpolate", m.interpolate, {"q0": m.neutral(), "q1": m.random_q(0), "t": 0.5})
    for method in ("integrate", "rate"):
        yield Call(f"Model.{method}", getattr(m, method), {"q": m.neutral(), "v": np.zeros(m.nv)})
    yield Call("Model.difference", m.difference, {"q0": m.neutral(), "q1": m.random_q(0)})
    yield Call("Model.normalised", m.normalised, {"q": m.neutral()})
    yield Call("Model.check_position", m.check_position, {"q": m.neutral()})
    yield Call("Part", lw.Part, {"model": m, "prefix": "p/", "to": "world", "placement": place, "base": "keep"})
    yield Call(
        "combine",
        lw.combine,
        {"part": m, "other": lw.Part(arm(), "a/"), "name": "both", "gravity": [0, 0, -9.81], "merge_fixed": False},
        ("part", "other"),
    )
    yield Call(
        "load",
        lw.load,
        {
            "source": URDF,
            "base": "fixed",
            "format": "urdf",
            "merge_fixed": True,
            "gravity": [0, 0, -9.81],
            "cut": (),
            "model": None,
            "passive": True,
        },
    )


def _joints() -> Iterator[Call]:
    for kind in ("Revolute", "Prismatic", "Cylindrical"):
        yield Call(kind, getattr(joints, kind), {"axis": "z"})
    yield Call("Helical", joints.Helical, {"axis": [0, 0, 1], "pitch": 0.1})
    yield Call("Universal", joints.Universal, {"axis": "x", "second": [0, 1, 0]})
    yield Call("make", joints.make, {"kind": "helical", "axis": "z", "pitch": 0.1})
    yield Call("Composite", joints.Composite, {"joints": joints.Revolute("x")}, ("joints",))
    yield Call("Free", joints.Free, {"armature_axes": "parent"})
    yield Call("unit_axis", joints.unit_axis, {"axis": [0, 0, 2]})


def _constraints() -> Iterator[Call]:
    soft = lw.Stabilisation()
    yield Call("Stabilisation", lw.Stabilisation, {"period": 0.1, "damping": 1.0})
    yield Call(
        "Closure",
        lambda **given: robot().with_constraints(lw.Closure(**given)),
        {
            "a": "tip",
            "b": "base",
            "joint": "universal",
            "axis": "z",
            "second": [1, 0, 0],
            "pitch": 0.1,
            "name": "c",
            "stabilisation": soft,
            "axes": "a",
        },
    )
    resists = {"damping": 0.1, "stiffness": 2.0, "rest": 0.3}
    yield Call("Closure that resists", partial(lw.Closure, "tip", "base", "revolute"), resists)
    for name in ("Weld", "Connect", "Hinge"):
        make = getattr(lw, name)
        yield Call(
            name,
            lambda make=make, **given: robot().with_constraints(make(**given)),
            {"a": "tip", "b": "world", "name": "c", "stabilisation": soft},
        )
    yield Call("Hinge's axis", lw.Hinge, {"a": "tip", "axis": [0, 0, 1], "second": "x"})
    for name in ("point", "surface"):
        make = getattr(lw, name)
        yield Call(
            name,
            lambda make=make, **given: robot().with_constraints(make(**given)),
            {"frame": "tip", "axes": "world", "name": "c", "stabilisation": soft},
        )
    yield Call(
        "Coupling",
        lambda **given: robot().with_constraints(lw.Coupling(**given)),
        {"joint": "arm_joint", "terms": {"hand_joint": [6.0]}, "offset": 0.1, "name": "c", "stabilisation": soft},
    )
    yield Call("Coupling's terms", lambda x: lw.Coupling("arm_joint", {"hand_joint": x}), {"x": [1.0, 2.0]})
    yield Call("Coupling's coefficient", lambda x: lw.Coupling("arm_joint", {"hand_joint": [x]}), {"x": 1.0})
    yield Call("Coupling's other", lambda x: lw.Coupling("arm_joint", {_key(x): [1.0]}), {"x": "hand_joint"})
    yield Call(
        "Distance",
        lambda **given: robot().with_constraints(lw.Distance(**given)),
        {"a": "tip", "b": "world", "length": 0.5, "name": "c", "stabilisation": soft},
    )
    yield Call(
        "LinkRows",
        lambda **given: robot().with_constraints(lw.LinkRows(**given)),
        {"K": {"arm": np.ones((2, 6))}, "k": [0.0, 1.0], "name": "c", "stabilisation": None},
    )
    yield Call("LinkRows' K", lambda x: lw.LinkRows({"arm": x}), {"x": np.ones((2, 6))})
    yield Call(
        "LinkRows' link", lambda x: robot().with_constraints(lw.LinkRows({_key(x): np.ones((2, 6))})), {"x": "arm"}
    )
    yield Call(
        "CentreOfMass",
        lambda **given: robot().with_constraints(lw.CentreOfMass(**given)),
        {"target": (0.0, 0.0, 1.0), "name": "c", "stabilisation": soft},
    )
    yield Call(
        "Custom",
        lambda **given: robot().with_constraints(lw.Custom(**given)),
        {"phi": lambda a, b: a - b, "joints": ("arm_joint", "hand_joint"), "name": "c", "stabilisation": soft},
    )
    yield Call("Prox", lw.Prox, {"mu": 1e6, "tolerance": 1e-8, "max_iterations": 20, "redundant": 1e-6})
    yield Call("clusters", lw.clusters, {"model": loop(), "embed": None})
    yield Call("approximate", lw.approximate, {"model": mechanisms.geared_chain(1), "reflected": True, "lump": True})
    one = np.eye(1)
    yield Call(
        "KKTCholesky",
        lw.KKTCholesky,
        {"M": one, "rows": [{0: one}], "R": [one], "parent": (-1,), "least": None},
    )
    factor = lw.KKTCholesky(one, [{0: one}], [one], (-1,))
    for method in ("multiply", "multiply_U", "multiply_UT", "multiply_D"):
        yield Call(f"KKTCholesky.{method}", getattr(factor, method), {"x": np.ones((2, 1))})
    for method in ("solve", "solve_U", "solve_UT", "solve_D"):
        yield Call(f"KKTCholesky.{method}", getattr(factor, method), {"b": np.ones((2, 1))})


def _actuators() -> Iterator[Call]:
    ranges = {"control_range": (-1.0, 1.0), "force_range": (-np.inf, 2.0), "name": "drive"}
    springs = {"stiffness": 3.0, "damping": 0.1, "rest": (0.0, 0.1), "name": "t"}
    yield Call("Tendon", lw.Tendon, {"joints": {"a": 2.0}, **springs})
    lag = {"state": "filter", "time_constant": 0.1, "state_range": (-1.0, 1.0)}
    yield Call("Actuator", lw.Actuator, {"joints": {"a": 2.0}, "gain": 1.0, "bias": (0.0, -1.0), **ranges, **lag})
    ten = lw.BodyInertia(1.0, np.zeros(3), np.eye(3)).parameters
    yield Call("log_cholesky", lw.log_cholesky, {"inertia": ten})
    yield Call("from_log_cholesky", lw.from_log_cholesky, {"parameters": np.zeros(10)})
    yield Call("Motor", lw.Motor, {"joints": "a", "gear": 2.0})
    yield Call("PositionServo", lw.PositionServo, {"joints": "a", "kp": 2.0, "kd": 0.1, "gear": 1.0})
    yield Call("VelocityServo", lw.VelocityServo, {"joints": "a", "kd": 2.0, "gear": 1.0})
    driven, flat = arm().with_actuators(lw.PositionServo("link1_joint", 3.0)), np.full(2, 0.1)
    yield Call("actuation", lw.actuation, {"model": driven, "parameters": ("gain",), **OPTIONS})
    act = lw.actuation(driven, parameters=("gain", "bias"), backend="numpy")
    given = {"gain": driven.parameters().gain, "bias": driven.parameters().bias}
    yield Call("actuation()", act, {"q": flat, "v": flat, "u": [0.1], **given})


def _factories() -> Iterator[Call]:
    m, q, v = robot(), robot().random_q(0), np.full(robot().nv, 0.1)
    a, flat = arm(), np.full(2, 0.1)
    prox = lw.Prox()
    yield Call(
        "forward_dynamics",
        lw.forward_dynamics,
        {
            "model": m,
            "method": "prox_ltl",
            "use": "state",
            "independent": False,
            **OPTIONS,
            "external_forces": False,
            "prox": prox,
            "R": None,
            "modes": False,
            "warm_start": False,
            "frames": "given",
            "measure": False,
            "parameters": ("inertia", "gravity"),
            "targets": True,
            "actuators": False,
        },
    )
    yield Call(
        "forward_dynamics softly",
        lw.forward_dynamics,
        {"model": m, "R": [1.0, 2.0, 3.0], "method": "ltl_soft", **NUMPY_BACKEND},
    )
    yield Call(
        "inverse_dynamics",
        lw.inverse_dynamics,
        {
            "model": a,
            "method": "rnea",
            **OPTIONS,
            "external_forces": False,
            "frames": "given",
            "parameters": ("damping",),
        },
    )
    yield Call(
        "constrained_inverse_dynamics",
        lw.constrained_inverse_dynamics,
        {
            "model": a,
            "actuated": ["link1_joint", "link2_joint"],
            "weight": 1e-3,
            "underactuated": True,
            **OPTIONS,
            "external_forces": False,
            "parameters": ("stiffness",),
        },
    )
    given = {"parameters": ("inertia", "armature")}
    yield Call(
        "impulse",
        lw.impulse,
        {"model": m, "restitution": 0.5, "method": "prox_ltl", **OPTIONS, "prox": prox, "modes": False, **given},
    )
    weighted = {"model": m, "method": "ltl", "damping": True, "modes": True, **OPTIONS, "frames": "given", **given}
    yield Call("delassus", lw.delassus, {**weighted, "measure": False})
    yield Call("operational_space_inertia", lw.operational_space_inertia, {**weighted, "output": "matrix"})
    yield Call("factored_solve", lw.factored_solve, {"model": m, **OPTIONS})
    yield Call("kkt_solve", lw.kkt_solve, {"model": m, "diagonal": True, **OPTIONS})
    yield Call(
        "mass_matrix",
        lw.mass_matrix,
        {
            "model": m,
            "method": "crba",
            "packed": False,
            **OPTIONS,
            "frames": "given",
            **given,
        },
    )
    yield Call("mass_pattern", lw.mass_pattern, {"model": m})
    columns = {"parameters": ("inertia", "damping")}
    linear = {"model": a, "kind": "torque", **columns, "projected": True}
    yield Call("regressor", lw.regressor, {**linear, "packed": True, **OPTIONS})
    yield Call("regressor_pattern", lw.regressor_pattern, linear)
    yield Call("parameter_vector", lw.parameter_vector, {"model": a, **columns})
    yield Call("base_parameters", lw.base_parameters, {"model": a, **columns})
    rng = np.random.default_rng(0)
    states = {n: rng.normal(size=(20, 2)) for n in ("q", "v", "a", "tau")}
    moved = {n: x for n, x in states.items() if n != "tau"}
    yield Call("excitation", lw.excitation, {"model": a, **moved, **columns, **NUMPY_BACKEND})
    driven = {"joints": ["link1_joint", "link2_joint"], "spread": 0.5}
    yield Call("identify", lw.identify, {"model": a, **states, **columns, **driven, **NUMPY_BACKEND})
    yield Call("constraint_jacobian", lw.constraint_jacobian, {"model": m, **OPTIONS})
    yield Call("constraint_error", lw.constraint_error, {"model": m, **OPTIONS})
    yield Call("difference", lw.difference, {"model": m, **OPTIONS})
    yield Call("integrate", lw.integrate, {"model": m, **OPTIONS})
    yield Call("forward_kinematics", lw.forward_kinematics, {"model": m, "frames": ["tip"], **OPTIONS})
    yield Call("forward_kinematics of one", lw.forward_kinematics, {"model": m, "frames": "tip", **OPTIONS})
    where = {"model": m, "frames": ["tip", "arm"], "reference": "world", **OPTIONS}
    yield Call("terms", lw.terms, {"names": ["M", "J"], **where})
    yield Call("frame_velocity", lw.frame_velocity, where)
    yield Call("frame_jacobian", lw.frame_jacobian, where)
    yield Call("frame_acceleration", lw.frame_acceleration, {**where, "classical": True})
    for name in ("centre_of_mass", "centroidal_momentum", "energy", "coriolis_matrix", "gravity_forces"):
        yield Call(name, getattr(lw, name), {"model": m, **OPTIONS})
    yield Call("bias_forces", lw.bias_forces, {"model": m, **OPTIONS})
    yield Call("inverse_mass_matrix", lw.inverse_mass_matrix, {"model": m, **OPTIONS})
    yield Call(
        "plan",
        lw.plan,
        {
            "model": a,
            "task": "forward_dynamics",
            "use": "state",
            "independent": False,
            "soft": False,
            "modes": False,
            "measure": False,
        },
    )
    yield Call("best_cuts", lw.best_cuts, {"source": URDF, "use": "state", "independent": False, "base": "fixed"})

    fd = lw.forward_dynamics(m, method="ltl", backend="numpy", external_forces=True)
    prox_fd = lw.forward_dynamics(m, method="prox_ltl", backend="numpy", modes=True)
    yield Call("Function()", fd, {"q": q, "v": v, "tau": v, "fext": np.zeros(18)})
    yield Call("Function() in order", lambda q, v, tau: fd(q, v, tau), {"q": q, "v": v, "tau": v})
    yield Call("Function() with modes", prox_fd, {"q": q, "v": v, "tau": v, "active": [1.0]})
    yield Call("Function.derivatives", fd.derivatives, {"wrt": ["q", "tau"]})
    yield Call("Function.jvp", fd.jvp, {"wrt": ["q"]})
    yield Call("Function.vjp", fd.vjp, {"wrt": ["v"]})
    yield Call("Function.hvp", fd.hvp, {"wrt": ["v"]})
    slopes, back = fd.derivatives(["v"]), fd.vjp(["q"])
    yield Call("Function.derivatives()", slopes, {"q": q, "v": v, "tau": v})
    yield Call("Function.vjp()", back, {"q": q, "v": v, "tau": v, "w_a": v, "w_lam": np.ones(3)})
    yield Call("Function.casadi", prox_fd.casadi, {"iterations": 3})
    external = lw.mass_matrix(a).casadi_external
    yield Call("Function.casadi_external", external, {"wrt": ["q"], "gauss_newton": True})
    traced = lw.forward_dynamics(m, method="prox_ltl", backend="casadi")
    yield Call("Function() by CasADi", traced, {"q": q, "v": v, "tau": v})
    two = {n: np.stack([x, x, x]) for n, x in {"q": q, "v": v, "tau": v}.items()}
    yield Call("Function() of a batch", fd, dict(two))
    native = lw.forward_dynamics(a, method="aba")
    yield Call("a kernel's Function()", lambda q, v, tau: native(q, v, tau), {"q": flat, "v": flat, "tau": flat})
    yield Call("a kernel's Function() by name", native, {"q": flat, "v": flat, "tau": flat})
    free = lw.forward_dynamics(m, method="prox_ltl")
    yield Call("a free robot's kernel", lambda q, v, tau: free(q, v, tau), {"q": q, "v": v, "tau": v})
    yield Call("a free robot's kernel for batches", free, dict(two))
    small = lw.forward_dynamics(m, method="ltl", dtype="float32")
    yield Call("a kernel of float32", lambda q, v, tau: small(q, v, tau), {"q": q, "v": v, "tau": v})
    yield Call("a kernel's mass_matrix()", lw.mass_matrix(m), {"q": q})
    yield Call("a kernel's forward_kinematics()", lw.forward_kinematics(m), {"q": q})
    yield Call("a kernel's terms()", lw.terms(m, ["J", "g"], "tip"), {"q": q})
    yield Call("a kernel's constraint_error()", lw.constraint_error(m), {"q": q, "v": v})
    yield Call("Kernel()", lambda q, v, tau: native.kernel(q, v, tau), {"q": flat, "v": flat, "tau": flat})


def _states() -> Iterator[Call]:
    m, l = robot(), loop()
    q, v = m.random_q(0), np.full(m.nv, 0.1)
    yield Call(
        "assemble",
        lw.assemble,
        {
            "model": l,
            "q": l.neutral() + 0.01,
            "locked": ["crank_joint"],
            "only": ["coupler_end~rocker_end"],
            "tolerance": 1e-9,
            "max_iterations": 50,
            "attempts": 2,
            "seed": 0,
        },
    )
    yield Call(
        "ik",
        lw.ik,
        {
            "model": arm(),
            "targets": {"link2": (0.1, 0.0, 0.5)},
            "q": arm().neutral(),
            "locked": ["link1_joint"],
            "tolerance": 1e-6,
            "max_iterations": 5,
            "attempts": 2,
            "seed": 0,
            **OPTIONS,
        },
    )
    yield Call("ik's target", lambda x: lw.ik(arm(), {"link2": x}, attempts=1, **OPTIONS), {"x": np.eye(4)})
    yield Call("assemble a batch", lw.assemble, {"model": l, "q": np.stack([l.neutral(), l.neutral() + 0.01])})
    yield Call(
        "project_velocity of a batch",
        lw.project_velocity,
        {"model": m, "q": np.stack([q, q]), "v": np.stack([v, v]), "norm": "joint"},
    )
    yield Call("expand a motion", lw.expand, {"model": l, "y": [[0.01], [0.02]], "ydot": [[0.1], [0.2]]})
    yield Call("project_velocity", lw.project_velocity, {"model": m, "q": q, "v": v, "norm": "mass"})
    yield Call("random_state", lw.random_state, {"model": l, "seed": 0, "batch": 2, "only": None, "tolerance": 1e-9})
    yield Call("expand", lw.expand, {"model": l, "y": [0.01], "ydot": [0.1], "guess": l.neutral()})


def _motions(folder: Any) -> Iterator[Call]:
    a, flat = arm(), np.full(2, 0.1)
    yield Call(
        "rollout",
        lw.rollout,
        {
            "model": a,
            "dt": 1e-3,
            "integrator": "rk4",
            "steps": 4,
            "every": 2,
            "method": "aba",
            "modes": False,
            "pd": False,
            "prox": None,
            "iterations": 2,
            "stabilisation": None,
            "record": ("a",),
            "contacts": None,
            "ground": None,
            "limit": 1e6,
            "parameters": ("inertia",),
            "actuators": False,
            "pushes": ["link2"],
            "push_axes": "world",
            **OPTIONS,
        },
    )
    ball = lw.Contact("tip", (0.0, 0.0, 0.1), radius=0.1)
    yield Call(
        "Contact",
        lambda **given: lw.step(robot(), [lw.Contact(**given)], backend="numpy"),
        {"frame": "tip", "offset": (0, 0, 0.1), "radius": 0.1, "friction": 0.5, "restitution": 0.0, "name": "ball"}
        | {"torsion": 0.01, "rolling": 0.001},
    )
    yield Call(
        "Ground",
        lambda **given: lw.step(robot(), [ball], ground=lw.Ground(**given), backend="numpy"),
        {"normal": "z", "height": 0.0},
    )
    yield Call("Terrain", lw.Terrain, {"function": lambda x, y: 0.1 * x * y})
    yield Call("HeightField", lw.HeightField, {"heights": np.eye(3), "size": (2.0, 1.0), "centre": (0.0, 0.0)})
    on_tip = {"frame": "tip", "offset": (0, 0, 0.1), "radius": 0.0, "friction": 0.5, "restitution": 0.0, "name": "c"}
    on_tip |= {"torsion": 0.0, "rolling": 0.0}
    for made, more in (
        (lw.BoxContact, {"size": (1, 1, 1), "corner": 0, "placement": None}),
        (lw.RimContact, {"axis": "z", "rim": 0.1, "turn": 0.0}),
        (lw.EllipsoidContact, {"radii": (0.1, 0.2, 0.3), "placement": None}),
    ):
        yield Call(made.__name__, made, on_tip | more)
    yield Call("Ball", lw.Ball, {"frame": "tip", "offset": (0, 0, 0.1), "radius": 0.1})
    yield Call("Rod", lw.Rod, {"frame": "tip", "start": (0, 0, 0), "end": (0, 0, 1), "radius": 0.1})
    yield Call("Block", lw.Block, {"frame": "tip", "size": (1, 1, 1), "placement": None})
    pair = {"a": lw.Ball("tip"), "b": lw.Block("world"), "friction": 0.5, "restitution": 0.0}
    yield Call("Pair", lw.Pair, pair | {"corner": 0, "name": "p"})
    yield Call("touching", lw.touching, pair)
    yield Call("contacts", lw.contacts, {"model": robot(), "links": None, "friction": 0.5})
    given = {"model": robot(), "contacts": [ball], "ground": lw.Ground(), "pd": False, "method": None}
    given |= {"actuators": False, "parameters": ("damping",)}
    yield Call("step", lw.step, given | OPTIONS)
    moving = lw.step(robot(), [ball], backend="numpy", pd=True)
    still = np.zeros(robot().nv)
    yield Call(
        "step()",
        moving,
        {
            "q": robot().neutral(),
            "v": still,
            "tau": still,
            "dt": [1e-3],
            "kp": still,
            "kd": still,
            "target": robot().neutral(),
            "target_v": still,
            "friction": [0.5],
            "impulses": np.zeros(4),
        },
    )
    changing = lw.rollout(a, backend="numpy", method="aba", parameters=("inertia", "rest"))
    yield Call(
        "Rollout() with parameters",
        changing,
        {"q0": flat, "v0": flat, "inertia": a.parameters().inertia, "rest": flat, "steps": 1},
    )
    varied = lw.forward_dynamics(a, backend="numpy", method="aba", parameters=("inertia", "damping"))
    yield Call(
        "Function() with parameters",
        varied,
        {"q": flat, "v": flat, "tau": flat, "inertia": a.parameters().inertia, "damping": flat},
    )
    yield Call(
        "discrete_step",
        lw.discrete_step,
        {
            "model": a,
            "dt": 1e-3,
            "method": "aba",
            "modes": False,
            "actuators": False,
            "parameters": ("gravity",),
            "stabilisation": True,
            "dtype": "float64",
            "threads": 1,
        },
    )
    step, one = lw.discrete_step(a, method="aba"), {"q": a.neutral(), "v": np.zeros(a.nv), "u": np.zeros(a.nv)}
    yield Call("DiscreteStep()", step, dict(one))
    yield Call("DiscreteStep.linearize", step.linearize, dict(one))
    yield Call("DiscreteStep.vjp", step.vjp, {**one, "w_q": np.zeros(a.nv), "w_v": np.zeros(a.nv)})
    moving = {**one, "u": np.zeros((2, a.nv))}
    yield Call("DiscreteStep.rollout", step.rollout, dict(moving))
    weights = {"w_q": np.zeros((3, a.nv)), "w_v": np.zeros((3, a.nv))}
    yield Call("DiscreteStep.rollout_vjp", step.rollout_vjp, {**moving, **weights, "stored": 1})
    yield Call("riccati", lw.riccati, {"n": 2, "m": 1, "dtype": "float64", "threads": 1})
    yield Call(
        "Riccati()",
        lw.riccati(2, 1, threads=1),
        {
            "A": np.ones((3, 2, 2)),
            "B": np.ones((3, 2, 1)),
            "Q": np.ones((4, 2, 2)),
            "R": np.ones((3, 1, 1)),
            "q": np.ones((4, 2)),
            "r": np.ones((3, 1)),
            "S": np.ones((3, 1, 2)),
            "b": np.ones((3, 2)),
            "x0": np.ones(2),
            "damping": 0.1,
        },
    )
    roll = lw.rollout(a, backend="numpy", method="aba", pd=True)
    yield Call(
        "Rollout()",
        roll,
        {
            "q0": flat,
            "v0": flat,
            "tau": flat,
            "steps": 4,
            "every": 2,
            "dt": 1e-3,
            "target": flat,
            "target_v": flat,
            "kp": 1.0,
            "kd": flat,
        },
    )
    native = lw.rollout(a, method="aba", pd=True)
    yield Call(
        "a kernel's Rollout()",
        native,
        {
            "q0": flat,
            "v0": flat,
            "tau": flat,
            "steps": 4,
            "every": 2,
            "dt": 1e-3,
            "target": flat,
            "target_v": flat,
            "kp": 1.0,
            "kd": flat,
        },
    )
    switched = lw.rollout(robot(), backend="numpy", method="constrained_aba", modes=True)
    yield Call(
        "Rollout() with modes", switched, {"q0": robot().neutral(), "v0": np.zeros(8), "active": [1.0], "steps": 1}
    )
    yield Call(
        "Rollout",
        lw.Rollout,
        {
            "step": roll.step,
            "dt": 1e-3,
            "steps": 4,
            "every": 2,
            "backend": "numpy",
            "dtype": "float64",
            "threads": 1,
            "limit": 1e6,
        },
    )
    yield Call(
        "simulate",
        lw.simulate,
        {
            "model": a,
            "q0": flat,
            "v0": flat,
            "controller": lambda t, q, v: np.zeros(2),
            "dt": 0.05,
            "duration": 0.1,
            "integrator": "semi_implicit",
            "method": "aba",
            "prox": None,
            "iterations": 2,
            "stabilisation": True,
            "projection": False,
            "contacts": None,
            "ground": None,
            "restitution": 0.0,
            "every": 1,
            "actuators": False,
            "pushes": {"link2": np.ones(6)},
            "push_axes": "frame",
            "backend": "numpy",
            "progress": False,
        },
    )
    yield Call(
        "simulate's controller",
        lambda tau: lw.simulate(a, flat, None, lambda t, q, v: tau, duration=0.001, method="aba", backend="numpy"),
        {"tau": flat},
    )
    yield Call(
        "simulate continuously",
        lambda tau: lw.simulate(
            a,
            flat,
            None,
            lambda t, q, v: tau,
            duration=0.001,
            method="aba",
            backend="numpy",
            integrator="dormand_prince",
        ),
        {"tau": flat},
    )
    yield Call(
        "simulate on the ground",
        lw.simulate,
        {
            "model": robot(),
            "q0": robot().neutral(),
            "dt": 0.05,
            "duration": 0.05,
            "ground": -1.0,
            "restitution": 0.5,
            "method": "constrained_aba",
            "backend": "numpy",
        },
    )
    t = run()
    yield Call("Event", lw.Event, {"t": 0.1, "kind": "touchdown", "contact": "c"})
    yield Call(
        "Trajectory",
        lw.Trajectory,
        {n: getattr(t, n) for n in ("t", "q", "v", "tau", "lam", "active", "names", "events", "model_name", "units")},
    )
    yield Call("Trajectory.column", t.column, {"table": "q", "name": "link1_joint"})
    yield Call("Trajectory.save", t.save, {"path": folder / "run.npz"})
    yield Call("Trajectory.read", lw.Trajectory.read, {"path": t.save(folder / "read.csv")})
    yield Call("Trajectory.plot", t.plot, {"tables": ["q"], "names": ["link1_joint"]})
    yield Call(
        "write_html",
        lw.write_html,
        {
            "path": folder / "a.html",
            "model": a,
            "trajectory": t,
            "q": None,
            "fps": 50.0,
            "triangles": 100,
            "title": "a",
            "contacts": None,
            "ground": None,
        },
    )
    yield Call("write_html at", lw.write_html, {"path": folder / "b.html", "model": robot(), "q": robot().neutral()})
    yield Call(
        "write_html live",
        lw.write_html,
        {
            "path": folder / "c.html",
            "model": robot(),
            "live": True,
            "dt": 1e-3,
            "contacts": [lw.Contact("hand")],
            "ground": lw.Ground(),
        },
    )
    yield Call(
        "view",
        lambda **given: lw.view(**given).stop(),
        {
            "model": a,
            "trajectory": None,
            "q": flat,
            "host": "127.0.0.1",
            "port": 18080,
            "fps": 50.0,
            "triangles": 100,
            "open_browser": False,
        },
    )
    yield Call(
        "scale.rollout",
        scale.rollout,
        {
            "model": a,
            "cluster": None,
            "shards": 2,
            "progress": False,
            "patience": 1.0,
            "threads": 1,
            "method": "aba",
            "dt": 1e-3,
        },
    )


def _mechanisms() -> Iterator[Call]:
    made: dict[str, dict[str, Any]] = {
        "all_coupled_loops": {"loops": 2, "spacing": 4, "cut": "fixed", "length": 0.2, "base": "fixed"},
        "arm": {"n": 2},
        "ball": {"mass": 1.0, "radius": 0.1, "centre": (0, 0, 0)},
        "belt_chain": {
            "n": 2,
            "ratio": 6.0,
            "group": 2,
            "length": 0.3,
            "twist": 0.1,
            "base": "fixed",
            "rotor": lw.BodyInertia(0.1),
            "name": "b",
        },
        "box": {"mass": 1.0, "size": (1, 2, 3), "centre": (0, 0, 0)},
        "bricard": {"length": 0.5, "cut": "fixed"},
        "chain": {"n": 2, "joint": "revolute", "seed": 0, "length": 0.3, "twist": 0.1, "turn": 0.1, "base": "fixed"},
        "chain_of_loops": {"loops": 1, "links": 3, "cut": "fixed", "length": 0.2, "base": "fixed"},
        "closed": {
            "model": arm(),
            "a": "linktip",
            "b": "world",
            "cut": "fixed",
            "axis": "z",
            "q": arm().neutral(),
            "name": "c",
        },
        "cylinder": {"mass": 1.0, "radius": 0.1, "length": 1.0, "axis": "z", "centre": (0, 0, 0)},
        "differential": {"stages": 1, "ratio": 6.0, "length": 0.3, "base": "fixed", "rotor": lw.BodyInertia(0.1)},
        "four_bar": {
            "ground": 1.0,
            "crank": 0.5,
            "coupler": 1.0,
            "rocker": 0.5,
            "angle": 1.0,
            "crossed": False,
            "cut": "revolute",
        },
        "frame_pose": {"model": arm(), "frame": "linktip", "q": arm().neutral()},
        "geared_chain": {
            "n": 2,
            "ratio": 6.0,
            "length": 0.3,
            "twist": 0.1,
            "base": "fixed",
            "rotor": lw.BodyInertia(0.1),
        },
        "gripper": {"kind": "parallel", "base": "fixed"},
        "grounded": {
            "model": mechanisms.quadruped(),
            "q": mechanisms.quadruped().neutral(),
            "feet": ("front_left_foot",),
        },
        "humanoid": {"hands": False, "four_bar_legs": False},
        "ladder": {"rungs": 1, "rung_links": 2, "segment_links": 1, "length": 0.2, "cut": "fixed", "base": "fixed"},
        "planar_leg": {"thigh": 0.3, "shank": 0.3, "lever": 0.06, "base": "fixed"},
        "posture": {"model": arm(), "joints": {"link1_joint": 0.1}},
        "quadruped": {},
        "biped": {},
        "random_mechanism": {
            "seed": 0,
            "n": 3,
            "joints": ("revolute",),
            "branching": 0.4,
            "loops": 1,
            "cuts": ("fixed",),
            "contacts": 1,
            "couplings": 1,
            "distances": 1,
            "duplicates": 1,
        },
        "random_tree": {"n": 2, "seed": 0, "joints": "revolute", "branching": 0.5, "base": "fixed", "armature": 0.1},
        "ring": {"n": 3, "cut": "fixed", "length": 0.2, "base": "fixed"},
        "rod": {"mass": 1.0, "tip": (0, 0, 1), "radius": 0.03},
        "six_bar": {"ground": 1.0, "crank": 0.3, "coupler": 0.9, "rocker": 0.6, "angle": 1.0, "cut": "revolute"},
        "standing": {"model": mechanisms.quadruped(), "crouch": 0.5},
        "star_of_loops": {"branches": 2, "links": 2, "joined": "hub", "cut": "fixed", "length": 0.2, "base": "fixed"},
        "stem": {"n_stem": 1, "branches": 1, "branch_links": 2, "length": 0.2, "cut": "fixed", "base": "free"},
    }
    for name, arguments in made.items():
        yield Call(name, getattr(mechanisms, name), arguments)


def _others(folder: Any) -> Iterator[Call]:
    m = robot()
    q, v = m.random_q(0), np.full(m.nv, 0.1)
    yield Call(
        "interop.drake",
        interop.drake,
        {"model": arm(), "plant": None, "names": None, "order": ["link1_joint", "link2_joint"]},
    )
    to = interop.drake(m)
    yield Call("Map.q_to", to.q_to, {"q": q})
    yield Call("Map.q_from", to.q_from, {"q": to.q_to(q)})
    yield Call("Map.v_to", to.v_to, {"q": q, "v": v})
    yield Call("Map.v_from", to.v_from, {"q": q, "v": v})
    yield Call("Map.tau_to", to.tau_to, {"q": q, "tau": v})
    yield Call("Map.tau_from", to.tau_from, {"q": q, "tau": v})
    yield Call("Map.a_to", to.a_to, {"q": q, "v": v, "a": v})
    yield Call("Map.a_from", to.a_from, {"q": q, "v": v, "a": v})
    yield Call("Map.velocity_matrix", to.velocity_matrix, {"q": q})
    yield Call("scenario", scenarios.scenario, {"name": "four_bar"})
    yield Call(
        "export", lw.forward_dynamics(arm(), method="aba").export, {"directory": folder / "c", "overwrite": True}
    )
    small = {"model": arm(), "directory": folder / "acados", "name": "arm", "method": "aba"}
    yield Call("export_acados", lw.export_acados, {**small, "modes": False, "overwrite": True})
    if zoo.names():
        yield Call("zoo.find", zoo.find, {"name": zoo.names()[0]})


def _learning() -> Iterator[Call]:
    """What linkwork.learn has, as far as the packages that it needs are installed."""
    f, run = lw.mass_matrix(arm()), lw.rollout(arm(), method="aba", **NUMPY_BACKEND)
    if find_spec("jax"):
        from linkwork.learn import jax

        yield Call("learn.jax.function", jax.function, {"of": f})
        yield Call("learn.jax.rollout", jax.rollout, {"of": run})
    if find_spec("torch"):
        from linkwork.learn import torch

        yield Call("learn.torch.function", torch.function, {"of": f})
        yield Call("learn.torch.rollout", torch.rollout, {"of": run})
    if find_spec("gymnasium"):
        yield from _environments(run)
    if find_spec("mujoco"):
        yield from _in_the_dialect_of_mujoco()


def _environments(run: lw.Rollout) -> Iterator[Call]:
    from linkwork.learn.environments import Standing, Walking
    from linkwork.learn.gym import VectorEnv

    class Pushed(VectorEnv):
        def control(self, actions: np.ndarray) -> Any:
            return {"tau": actions}

        def reward(self) -> Any:
            return self.actions.sum(axis=1)

    sizes = {"num_envs": 2, "actions": 2, "observations": 4, "substeps": 1, "max_episode_steps": 9}

    def made(**given: Any) -> Any:
        env = Pushed(**given)
        env.reset(seed=1)
        return env.step(np.zeros((env.num_envs, 2)))[0]

    yield Call("VectorEnv", made, {"run": run, **sizes, "autoreset_mode": "NextStep"})
    env = Pushed(run, **sizes, autoreset_mode="SameStep")
    env.reset(seed=1)
    mask = np.array([True, False])
    yield Call("VectorEnv.step", env.step, {"actions": np.zeros((2, 2))})
    yield Call("VectorEnv.reset", env.reset, {"seed": 1, "options": {"reset_mask": mask}})
    yield Call("Walking", partial(Walking, simulation=NUMPY_BACKEND), {"num_envs": 2, "robot": "quadruped"})
    yield Call("Standing", partial(Standing, simulation=NUMPY_BACKEND), {"num_envs": 2, "robot": "biped"})
    if find_spec("torch"):
        from linkwork.learn.ppo import Settings, train

        def trained(**given: Any) -> Any:
            return train(**given)[1]

        short = {"iterations": 1, "seed": 0, "settings": Settings(horizon=2), "policy": None, "threads": 1}
        yield Call("ppo.train", trained, {"env": env, **short})
        yield Call("ppo.Settings", Settings, {"horizon": 2, "epochs": 1, "clip": 0.2, "rate": 1e-3})


def _in_the_dialect_of_mujoco() -> Iterator[Call]:
    import mujoco

    from linkwork.learn import mujoco as dialect

    bob = '<body><joint name="j"/><inertial pos="0 0 -1" mass="1" diaginertia="1 1 1"/></body>'
    drive = '<actuator><motor joint="j"/></actuator>'
    m = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bob}</worldbody>{drive}</mujoco>")
    scene = {"contacts": [], "ground": None}
    yield Call("Batch", dialect.Batch, {"model": m, "nsim": 2, "nthread": 1, "persistent": False, **scene})
    b = dialect.Batch(m, 2, 1)
    yield Call("Batch.bind", b.bind, {"name": "qpos"})
    yield Call("Batch.step", b.step, {"ids": [0], "nstep": 1})
    yield Call("Batch.reset", b.reset, {"ids": [0], "keyframe": -1})
    yield Call("Batch.forward", b.forward, {"ids": [0]})
    control = {"control": np.zeros((2, 3, 1)), "control_spec": 64}
    yield Call("Batch.rollout", b.rollout, {"nstep": 3, **control, "record": ("qpos",), "ids": [0, 1], "out": None})
    given = {"model": m, "data": None, "initial_state": np.zeros((2, 3)), **control, "nstep": 3, **scene}
    ignored = {"skip_checks": False, "initial_warmstart": None, "chunk_size": None, "persistent_pool": False}
    written = {"state": None, "sensordata": None}
    yield Call("learn.mujoco.rollout", dialect.rollout, {**given, **ignored, **written})


ATTACKED_ELSEWHERE = {
    "ActuationError",
    "AssemblyError",
    "LinkworkError",
    "__version__",  # not called with arguments
    "RolloutResult",
    "Viewer",  # made by rollout and view
}
