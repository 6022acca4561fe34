"""Joints and constraints."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import linkwork as lw
from linkwork import joints
from linkwork.robots import mechanisms
from public_calls.common import Call, key, loop, robot


def joint_types() -> Iterator[Call]:
    for kind in ("Revolute", "Prismatic", "Cylindrical"):
        yield Call(kind, getattr(joints, kind), {"axis": "z"})
    yield Call("Helical", joints.Helical, {"axis": [0, 0, 1], "pitch": 0.1})
    yield Call("Universal", joints.Universal, {"axis": "x", "second": [0, 1, 0]})
    yield Call("make", joints.make, {"kind": "helical", "axis": "z", "pitch": 0.1})
    yield Call("Composite", joints.Composite, {"joints": joints.Revolute("x")}, ("joints",))
    yield Call("Free", joints.Free, {"armature_axes": "parent"})
    yield Call("unit_axis", joints.unit_axis, {"axis": [0, 0, 2]})


def constraints() -> Iterator[Call]:
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
    yield Call("Coupling's other", lambda x: lw.Coupling("arm_joint", {key(x): [1.0]}), {"x": "hand_joint"})
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
        "LinkRows' link", lambda x: robot().with_constraints(lw.LinkRows({key(x): np.ones((2, 6))})), {"x": "arm"}
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
