"""Pages, and the viewer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import linkwork as lw
from public_calls.common import Call, arm, robot, run


def viewers(folder: Any) -> Iterator[Call]:
    a, flat, t = arm(), np.full(2, 0.1), run()
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
