"""A replay, or a mechanism that is simulated live, as one HTML file.

It opens offline in any browser with WebGL 2, and makes no request.

The file holds the scene as JSON, its numbers as one block of bytes (deflated, base64), and the page's own script, which
draws them. Vertices are 16-bit fractions of their part's box, normals 8-bit, orientations 16-bit quaternions [x y z w];
the page interpolates between the states that it has.
"""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from linkwork.checks import FLAG, NAME, PATH, POSITIONS, TIME, checked, instance, number, optional, whole
from linkwork.constraints.collisions import CONTACTS, Pair
from linkwork.constraints.contact import GROUND, Contact, Ground, Surface
from linkwork.errors import InputError
from linkwork.model import Model
from linkwork.model.model import MODEL
from linkwork.output_files import saved_text, written
from linkwork.simulation.records.trajectory import Trajectory
from linkwork.viewer import live as simulated
from linkwork.viewer.contact_display import Touches, with_touches
from linkwork.viewer.live import Live
from linkwork.viewer.scene import TRIANGLES, Scene, make_scene
from linkwork.viewer.states import States, has_forces, is_contact, posture, quaternions, states_at, states_of

MOTION = optional(instance(Trajectory, "a linkwork.Trajectory"))
FPS = number(1e-6, 1e6, "a number of states per second above 0")
COUNT = whole(0, 10**9, "a number of triangles")


@checked(
    path=PATH,
    model=MODEL,
    trajectory=MOTION,
    q=optional(POSITIONS),
    fps=FPS,
    triangles=COUNT,
    title=optional(NAME),
    live=FLAG,
    dt=optional(TIME),
    contacts=optional(CONTACTS),
    ground=optional(GROUND),
)
def write_html(
    path: str | Path,
    model: Model,
    trajectory: Trajectory | None = None,
    *,
    q: object = None,
    fps: float = 50.0,
    triangles: int = TRIANGLES,
    title: str | None = None,
    live: bool = False,
    dt: float | None = None,
    contacts: Sequence[Contact | Pair] | None = None,
    ground: Surface | None = None,
) -> Path:
    """Write a page that replays a motion, or shows the model at `q` (default: neutral, loops closed).

    `path` is the file, `trajectory` the motion, `title` what stands above it (default: the model's name).
    `fps` states per second of motion are kept; meshes are thinned out to about `triangles` in all. Links are drawn from
    the visuals of the robot's file, or as inertia ellipsoids, bones and joint axes where it has none. Quaternions in
    `q` are [x y z w]. With the `contacts` (and `ground`) that the motion was simulated with, their places, forces and
    friction cones are drawn, in another colour where they slip. Needs no package beyond the core ones.

    With `live` the page simulates the mechanism from rest at `q`, as WebAssembly: links are dragged with the mouse,
    gravity, damping and joint forces have sliders. Its steps are those of `lw.rollout` with `dt` (default: 1 ms),
    `contacts` and `ground`, and a stabilisation of loops.

    Examples:
        >>> model = chain(3)
        >>> page = lw.write_html("run.html", model, lw.simulate(model, np.ones(3), dt=1e-3, duration=0.1))
        >>> page.exists()
        True
        >>> page = lw.write_html("play.html", four_bar(), live=True)
    """
    if trajectory is not None and q is not None:
        raise InputError("give a trajectory or a configuration q, not both")
    if live and trajectory is not None:
        raise InputError("a live page has no trajectory: it starts from a configuration q")
    if not live and dt is not None:
        raise InputError("dt= is for live=True: a replay simulates nothing")
    if not live and (contacts is not None or ground is not None) and (trajectory is None or contacts is None):
        raise InputError(
            "a replay simulates nothing: contacts= and ground= are for live=True, or for the trajectory they were in"
        )
    scene, touches = make_scene(model, triangles=triangles), None
    if trajectory is not None:
        states = states_of(model, trajectory, fps)
        if contacts is not None:
            states, touches = with_touches(states, model, trajectory, contacts, ground or Ground())
    elif q is not None:
        at = np.asarray(q, dtype=float)
        states = states_at(model, at)
    else:
        at, notes = posture(model)
        scene, states = replace(scene, notes=(*scene.notes, *notes)), states_at(model, at)
    out = Path(path)
    playing = simulated.live(model, at, dt, contacts, ground) if live else None
    text = page(scene, states, trajectory, title or model.name, playing, touches)
    written(out, lambda: saved_text(out, text))
    return out


def page(
    scene: Scene,
    states: States,
    trajectory: Trajectory | None,
    title: str,
    live: Live | None = None,
    touches: Touches | None = None,
) -> str:
    """The text of the page."""
    blob = _Blob()
    facts = _described(scene, states, trajectory, title, blob, touches)
    if live is not None:
        facts |= _simulated(live, scene, facts, blob)
    described = json.dumps(facts, separators=(",", ":"), allow_nan=False)
    assets = files("linkwork.viewer") / "page"
    text = {name: (assets / f"replay.{name}").read_text(encoding="utf-8") for name in ("html", "css", "js")}
    for name in ("pace.js", *(["live.js"] if live is not None else [])):
        text["js"] += (assets / name).read_text(encoding="utf-8")
    return _filled(
        text["html"],
        {
            "TITLE": html.escape(title),
            "STYLE": text["css"],
            "SCENE": described.replace("<", "\\u003c"),
            "DATA": base64.b64encode(zlib.compress(bytes(blob.data), 9)).decode(),
            "SCRIPT": text["js"],
        },
    )


def _filled(template: str, values: dict[str, str]) -> str:
    """Every @NAME@ of the template replaced, but not in the replacements."""
    start, *pieces = template.split("@")
    out = [start]
    for piece in pieces:
        out.append(values.get(piece, piece))
    return "".join(out)


class _Blob:
    """A growing block of bytes; every array starts at a multiple of four."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, array: np.ndarray, kind: str) -> list[Any]:
        """Append, and say where it is: [type, offset, count]."""
        self.data += b"\0" * (-len(self.data) % 4)
        place = [kind, len(self.data), int(array.size)]
        self.data += np.ascontiguousarray(array, dtype=np.dtype(kind).newbyteorder("<")).tobytes()
        return place


def _without_folders(note: str) -> str:
    """A note for a page that may be shared: files by their names, without their folders."""
    return re.sub(r"(?<![\w.:/])(?:[A-Za-z]:)?[/\\](?:[^\s'\"/\\]+[/\\])*([^\s'\"/\\]+)", r"\1", note)


def _described(
    scene: Scene, states: States, trajectory: Trajectory | None, title: str, blob: _Blob, touches: Touches | None
) -> dict[str, Any]:
    model, t = scene.model, states.t - states.t[0]
    forces = touches is not None or (trajectory is not None and has_forces(model, trajectory))
    notes = [_without_folders(note) for note in scene.notes]
    if trajectory is not None and not forces and trajectory.lam.shape[1]:
        notes.append("the motion has forces of constraints that this model does not have: they are not shown")
    return {
        "title": title,
        "facts": f"{model.nlinks} links, {model.nv} degrees of freedom, {model.mass:.4g} kg"
        + (f", {len(model.constraints)} constraints" if model.constraints else ""),
        "size": scene.size,
        "ground": ground_height(scene, states),
        "weight": float(np.linalg.norm(model.gravity)) * model.mass,
        "standIn": not any(l.visuals for l in model.links),
        "links": [
            {"name": l.name, "joint": f"{l.joint_name} ({l.joint.kind})" if i else "", "mass": l.inertia.mass}
            for i, l in enumerate(model.links)
        ],
        "parts": _parts(scene, blob),
        "t": blob.add(t, "f4"),
        "positions": blob.add(states.positions, "f4"),
        "quaternions": blob.add(np.round(quaternions(states.rotations) * 32767), "i2"),
        "com": blob.add(states.com, "f4"),
        "constraints": [{"name": c.name, "what": c.describe(), "contact": is_contact(c)} for c in states.named]
        + (touches.contacts if touches else []),
        "normals": blob.add(touches.normals, "f4") if touches else None,
        "ends": blob.add(states.ends, "f4"),
        "forces": blob.add(states.forces, "f4") if forces else None,
        "active": blob.add(states.active, "u1"),
        "events": [[e.t - float(states.t[0]), e.kind, e.contact] for e in (trajectory.events if trajectory else ())],
        "notes": notes,
    }


def _simulated(live: Live, scene: Scene, facts: dict[str, Any], blob: _Blob) -> dict[str, Any]:
    """What a live page has besides, and where the ground of its contacts is drawn."""
    binary = np.frombuffer(live.module.binary, dtype=np.uint8)
    out: dict[str, Any] = {"live": simulated.described(live, scene.size) | {"module": blob.add(binary, "u1")}}
    if live.ground is not None:
        touching = [{"name": c.name, "what": "contact", "contact": True} for c in live.contacts.values()]
        out["constraints"] = [*facts["constraints"], *touching]
        if isinstance(live.ground, Ground) and live.ground.axes[2, 2] == 1.0:
            out["ground"] = live.ground.height
        else:
            out["notes"] = [*facts["notes"], "the ground that contacts touch is not drawn: it is not level"]
    return out


def _parts(scene: Scene, blob: _Blob) -> list[dict[str, Any]]:
    """The offsets of each part's arrays; a surface that several parts share is stored once."""
    known: dict[int, dict[str, Any]] = {}
    out = []
    for part in scene.parts:
        s = part.surface
        if id(s) not in known:
            low, high = s.vertices.min(axis=0), s.vertices.max(axis=0)
            span = np.maximum(high - low, 1e-9)
            wide = len(s.vertices) > 65535
            known[id(s)] = {
                "low": [round(float(x), 6) for x in low],
                "span": [round(float(x), 6) for x in span],
                "vertices": blob.add(np.round((s.vertices - low) / span * 65535), "u2"),
                "normals": blob.add(np.round(s.normals * 127), "i1"),
                "faces": blob.add(s.faces, "u4" if wide else "u2"),
            }
        colour = [round(x, 3) for x in part.colour]
        out.append({"link": part.link, "kind": part.kind, "colour": colour, **known[id(s)]})
    return out


def ground_height(scene: Scene, states: States) -> float:
    """The height of the grid: zero, or the lowest point that the motion reaches."""
    lowest = 0.0
    for part in scene.parts:
        if part.kind == "body" and part.link:
            z = np.array([part.surface.vertices.min(axis=0), part.surface.vertices.max(axis=0)])
            corners = np.array(list(np.ndindex(2, 2, 2)))
            box = np.stack([z[corners[:, k], k] for k in range(3)], axis=1)
            heights = box @ states.rotations[:, part.link, 2].T + states.positions[:, part.link, 2]
            lowest = min(lowest, float(heights.min()))
    return lowest if lowest < -0.03 * scene.size else 0.0
