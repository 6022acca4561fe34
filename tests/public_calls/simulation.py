"""Steps, rollouts, trajectories, clusters."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import linkwork as lw
from linkwork import scale
from public_calls.common import OPTIONS, Call, arm, robot, run


def motions(folder: Any) -> Iterator[Call]:
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
            "R": None,
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
        | {"torsion": 0.01, "rolling": 0.001, "margin": 0.01},
    )
    yield Call(
        "Ground",
        lambda **given: lw.step(robot(), [ball], ground=lw.Ground(**given), backend="numpy"),
        {"normal": "z", "height": 0.0},
    )
    yield Call("Terrain", lw.Terrain, {"function": lambda x, y: 0.1 * x * y})
    yield Call("HeightField", lw.HeightField, {"heights": np.eye(3), "size": (2.0, 1.0), "centre": (0.0, 0.0)})
    on_tip = {"frame": "tip", "offset": (0, 0, 0.1), "radius": 0.0, "friction": 0.5, "restitution": 0.0, "name": "c"}
    on_tip |= {"torsion": 0.0, "rolling": 0.0, "margin": 0.0}
    for made, more in (
        (lw.BoxContact, {"size": (1, 1, 1), "corner": 0, "placement": None}),
        (lw.RimContact, {"axis": "z", "rim": 0.1, "turn": 0.0}),
        (lw.EllipsoidContact, {"radii": (0.1, 0.2, 0.3), "placement": None, "further": 0}),
    ):
        yield Call(made.__name__, made, on_tip | more)
    yield Call("Ball", lw.Ball, {"frame": "tip", "offset": (0, 0, 0.1), "radius": 0.1})
    yield Call("Rod", lw.Rod, {"frame": "tip", "start": (0, 0, 0), "end": (0, 0, 1), "radius": 0.1})
    yield Call("Block", lw.Block, {"frame": "tip", "size": (1, 1, 1), "placement": None})
    pair = {"a": lw.Ball("tip"), "b": lw.Block("world"), "friction": 0.5, "restitution": 0.0}
    pair |= {"torsion": 0.01, "rolling": 0.001}
    yield Call("Pair", lw.Pair, pair | {"slot": 0, "name": "p", "margin": 0.01})
    yield Call("touching", lw.touching, pair)
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    given = {"frame": "tip", "vertices": corners, "faces": faces, "placement": None}
    yield Call("MeshBody", lw.MeshBody, given)
    meshed = pair | {"a": lw.MeshBody("tip", corners), "reach": 0.1}
    yield Call("MeshPair", lw.MeshPair, meshed | {"slot": 0, "name": "p", "margin": 0.01})
    yield Call("mesh_pairs", lw.mesh_pairs, meshed | {"slots": 3})
    slots = lw.mesh_pairs(lw.MeshBody("tip", corners), lw.Ground())
    finder = lw.find_contacts(robot(), slots, backend="numpy")
    yield Call("find_contacts()", finder, {"q": robot().neutral()})
    yield Call("find_contacts().placed", finder.placed, {"q": robot().neutral()})
    yield Call("find_contacts", lw.find_contacts, {"model": robot(), "contacts": slots, "backend": "numpy"})
    yield Call("mesh_bodies", lw.mesh_bodies, {"model": robot(), "links": None, "hull": True})
    yield Call("ground", lw.ground, {"model": robot()})
    yield Call("contacts", lw.contacts, {"model": robot(), "links": None, "friction": 0.5})
    given = {"model": robot(), "links": None, "others": None, "friction": 0.5, "near": 0.1}
    yield Call("self_contacts", lw.self_contacts, given)
    given = {"model": robot(), "contacts": [ball], "ground": lw.Ground(), "pd": False, "method": None}
    given |= {"actuators": False, "parameters": ("damping",), "R": None}
    yield Call("step", lw.step, given | OPTIONS)
    held, own = a.with_constraints(lw.LinkRows({"link2": np.eye(6)[:2]})), {"parameters": ("softness",)}
    yield Call("step of soft rows", lw.step, {"model": held, "R": [1.0, 2.0], **own, "backend": "numpy"})
    yielding = lw.rollout(held, R=1.0, **own, backend="numpy")
    yield Call("Rollout() of soft rows", yielding, {"q0": flat, "v0": flat, "steps": 2, "softness": [1.0, 2.0]})
    bending = lw.discrete_step(held, R=1.0, parameters=("softness", "damping", "armature"))
    softly = {"softness": [1.0, 2.0], "damping": flat, "armature": flat}
    yield Call("DiscreteStep() of soft rows", bending, {"q": flat, "v": flat, "u": flat, **softly})
    moving = lw.step(robot(), [ball], backend="numpy", pd=True)
    still = np.zeros(robot().nv)
    before = {"q": robot().neutral(), "v": still, "tau": still, "dt": [1e-3]}
    plain = lw.step(robot(), [ball], backend="numpy")
    yield Call("step() into", partial(plain, **before), {"out": plain(**before)})
    left = {**before, "impulses": np.zeros(moving.inputs["impulses"]), "friction": [0.5]}
    yield Call("step().residuals()", plain.residuals(), left)
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
            "R": None,
            "stabilisation": True,
            "dtype": "float64",
            "threads": 1,
        },
    )
    step, one = lw.discrete_step(a, method="aba"), {"q": a.neutral(), "v": np.zeros(a.nv), "u": np.zeros(a.nv)}
    yield Call("DiscreteStep()", step, dict(one))
    yield Call("DiscreteStep.linearize", step.linearize, dict(one))
    varied = lw.discrete_step(a, method="aba", parameters=("gravity",))
    yield Call("DiscreteStep.by_parameters", varied.by_parameters, dict(one))
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
    start = {"q0": flat, "v0": flat, "tau": flat, "steps": 4, "every": 2, "dt": 1e-3}
    control = {"target": flat, "target_v": flat, "kp": 1.0, "kd": flat}
    yield Call("Rollout()", roll, {**start, **control})
    yield Call("a kernel's Rollout()", lw.rollout(a, method="aba", pd=True), {**start, **control})
    made = lw.rollout(a, backend="numpy", method="aba")
    yield Call("trajectory", made.trajectory, {"result": made(flat, flat, steps=2), "state": 0})
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
