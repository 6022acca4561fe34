"""Consistent states."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import linkwork as lw
from public_calls.common import OPTIONS, Call, arm, loop, robot


def states() -> Iterator[Call]:
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
