"""`linkwork info`: what is in a robot file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwork.cli.arguments import (
    BaseOption,
    FileArg,
    JsonOption,
    ModelOption,
    load_robot,
    print_json,
    table_of,
    terminal,
)
from linkwork.structure.elimination import coupled_links, loop_roots, ordered, picture
from linkwork.value_objects import uncached

console = terminal()
RESISTS = ("damping", "stiffness", "friction")
"""The properties of joints that resist motion."""


def info_command(file: FileArg, base: BaseOption = None, one: ModelOption = None, as_json: JsonOption = False) -> None:
    """Show links, joints, frames, springs, damping, limits, actuators, tendons, loops and mass of a robot."""
    model = load_robot(file, base, one)
    facts = {
        "name": model.name,
        "nq": model.nq,
        "nv": model.nv,
        "links": model.nlinks,
        "depth": max(model.topology.depth),
        "mass": model.mass,
        "constraint_rows": model.rows,
    }
    links: list[dict[str, Any]] = [
        {
            "index": i,
            "link": l.name,
            "parent": model.links[l.parent].name,
            "joint": l.joint_name,
            "type": l.joint.kind,
            "q": [model.topology.q_slices[i].start, model.topology.q_slices[i].stop],
            "v": [model.topology.v_slices[i].start, model.topology.v_slices[i].stop],
            "mass": l.inertia.mass,
            "armature": l.armature.tolist(),
            **{n: getattr(l.passive, n).tolist() for n in ("damping", "stiffness", "rest", "friction")},
            "limits": {n: x for n, x in uncached(l.limits).items() if np.isfinite(x)},
        }
        for i, l in enumerate(model.links)
        if i
    ]
    order = ordered(model.topology, coupled_links(model))
    roots = loop_roots(model, coupled_links(model), [c.rows for c in model.constraints])
    constraints = [
        {"name": c.name, "what": c.describe(), "rows": c.rows, "loop_root": model.links[r].name}
        for c, r in zip(model.constraints, roots, strict=True)
    ]
    frames: list[dict[str, Any]] = [
        {
            "frame": name,
            "link": model.links[f.link].name,
            "position": f.placement.p.ravel().tolist(),
            "rpy": f.placement.rpy.tolist(),
        }
        for name, f in model.frames.items()
    ]
    actuators: list[dict[str, Any]] = [
        {
            "actuator": a.name,
            "joints": {n: list(g) for n, g in a.joints.items()},
            "what": a.describe(),
            "gain": a.gain.tolist(),
            "bias": a.bias.tolist(),
            "control_range": [x if np.isfinite(x) else None for x in a.control_range],
            "force_range": [x if np.isfinite(x) else None for x in a.force_range],
        }
        for a in model.actuators
    ]
    tendons: list[dict[str, Any]] = [
        {
            "tendon": t.name,
            "joints": {n: list(g) for n, g in t.joints.items()},
            "what": t.describe(),
            "stiffness": t.stiffness,
            "damping": t.damping,
            "rest": list(t.rest),
        }
        for t in model.tendons
    ]
    if as_json:
        elimination = {
            "order": [model.links[i].name for i in order.order],
            "cut_joints": len(model.constraints),
            "most_neighbours": order.most_neighbours,
        }
        found = {"frames": frames, "joints": links, "constraints": constraints, "actuators": actuators}
        found |= {"tendons": tendons, "elimination": elimination}  # type: ignore[dict-item]
        print_json({**facts, **found})
        return
    size = f"{model.nlinks} links, nq {model.nq}, nv {model.nv}, depth {facts['depth']}"
    headings = ("#", "link", "parent", "joint", "type", "q", "v", "mass [kg]")
    table = table_of(f"{model.name}: {size}, {model.mass:.4g} kg", *headings, right=("#", "q", "v", "mass [kg]"))
    for row in links:
        words = [str(row[k]) for k in ("index", "link", "parent", "joint", "type")]
        table.add_row(*words, _span(row["q"]), _span(row["v"]), f"{row['mass']:.4g}")
    console.print(table)
    if frames:
        title = f"{len(frames)} frames; links are frames too"
        table = table_of(title, "frame", "link", "position [m]", "roll, pitch, yaw [rad]")
        for f in frames:
            table.add_row(f["frame"], f["link"], _numbers(f["position"]), _numbers(f["rpy"]))
        console.print(table)
    resisting = [row for row in links if any(any(row[n]) for n in RESISTS)]
    if resisting:
        title = f"{len(resisting)} joints with springs, damping or friction"
        table = table_of(title, "joint", *RESISTS, "rest", right=(*RESISTS, "rest"))
        for row in resisting:
            table.add_row(str(row["joint"]), *(_by_dof(row[n]) for n in RESISTS), _by_dof(row["rest"]))
        console.print(table)
    limited = [row for row in links if row["limits"]]
    if limited:
        names = ("lower", "upper", "effort", "velocity")
        table = table_of(f"{len(limited)} joints with limits", "joint", *names, right=names)
        for row in limited:
            table.add_row(str(row["joint"]), *(f"{row['limits'][n]:.4g}" if n in row["limits"] else "" for n in names))
        console.print(table)
    if actuators:
        columns = ("actuator", "joint (gear)", "what", "controls", "forces")
        table = table_of(f"{len(actuators)} actuators", *columns)
        for a in actuators:
            ranges = _range(a["control_range"]), _range(a["force_range"])
            table.add_row(a["actuator"], _geared(a["joints"]), a["what"], *ranges)
        console.print(table)
    if tendons:
        table = table_of(f"{len(tendons)} tendons", "tendon", "joint (gear)", "what")
        for t in tendons:
            table.add_row(t["tendon"], _geared(t["joints"]), t["what"])
        console.print(table)
    if constraints:
        title = f"{len(constraints)} constraints, {model.rows} rows"
        table = table_of(title, "name", "what", "rows", "loop root", right=["rows"])
        for c in constraints:
            table.add_row(*(str(x) for x in c.values()))
        console.print(table)
        console.print(
            f"order of elimination (-> parent, ~ neighbours): {len(constraints)} cut joints, "
            f"at most {order.most_neighbours} neighbours"
        )
        console.print(picture(model, order), highlight=False)


def _numbers(values: list[float]) -> str:
    return "  ".join(f"{x:.4g}" for x in np.round(values, 12) + 0.0)


def _by_dof(values: Sequence[float]) -> str:
    """Numbers of a joint, or one where all are equal."""
    return " ".join(f"{x:.4g}" for x in (values[:1] if len(set(values)) == 1 else values))


def _geared(joints: dict[str, list[float]]) -> str:
    """Joints with their gears."""
    return ", ".join(f"{n} ({_by_dof(g)})" for n, g in joints.items())


def _range(bounds: Sequence[float | None]) -> str:
    """A range with its ends, empty where it has none."""
    lower, upper = ("" if x is None else f"{x:.4g}" for x in bounds)
    return f"{lower} .. {upper}" if lower or upper else ""


def _span(bounds: Any) -> str:
    start, stop = bounds
    return "" if start == stop else str(start) if stop == start + 1 else f"{start}..{stop - 1}"
