"""Coordinates of other libraries, scenarios, export."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import linkwork as lw
from linkwork import interop
from linkwork.io import zoo
from linkwork.robots import scenarios
from public_calls.common import Call, arm, robot


def others(folder: Any) -> Iterator[Call]:
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
