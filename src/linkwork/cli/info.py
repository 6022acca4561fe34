"""`linkwork info`: what is in a robot file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from linkwork.cli.arguments import BaseOption, FileArg, JsonOption, load_robot, print_json, terminal
from linkwork.structure.elimination import coupled_links, loop_roots, ordered, picture

console = terminal()
RESISTS = ("damping", "stiffness", "friction")
"""The properties of joints that resist motion."""


def info_command(file: FileArg, base: BaseOption = None, as_json: JsonOption = False) -> None:
    """Show links, joints, degrees of freedom, loops, couplings and mass of a robot."""
    model = load_robot(file, base)
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
    if as_json:
        elimination = {
            "order": [model.links[i].name for i in order.order],
            "cut_joints": len(model.constraints),
            "most_neighbours": order.most_neighbours,
        }
        print_json(
            {
                **facts,
                "frames": sorted(model.frames),
                "joints": links,
                "constraints": constraints,
                "elimination": elimination,
            }
        )
        return
    size = f"{model.nlinks} links, nq {model.nq}, nv {model.nv}, depth {facts['depth']}"
    title = f"{model.name}: {size}, {model.mass:.4g} kg"
    table = Table(title=title)
    for heading in ("#", "link", "parent", "joint", "type", "q", "v", "mass [kg]"):
        table.add_column(heading, justify="right" if heading in ("#", "q", "v", "mass [kg]") else "left")
    for row in links:
        index = [_span(row[k]) for k in ("q", "v")]
        table.add_row(
            str(row["index"]),
            str(row["link"]),
            str(row["parent"]),
            str(row["joint"]),
            str(row["type"]),
            *index,
            f"{row['mass']:.4g}",
        )
    console.print(table)
    resisting = [row for row in links if any(any(row[n]) for n in RESISTS)]
    if resisting:
        table = Table(title=f"{len(resisting)} joints with springs, damping or friction")
        for heading in ("joint", *RESISTS, "rest"):
            table.add_column(heading, justify="left" if heading == "joint" else "right")
        for row in resisting:
            table.add_row(str(row["joint"]), *(_numbers(row[n]) for n in RESISTS), _numbers(row["rest"]))
        console.print(table)
    if constraints:
        table = Table(title=f"{len(constraints)} constraints, {model.rows} rows")
        for heading in ("name", "what", "rows", "loop root"):
            table.add_column(heading)
        for c in constraints:
            table.add_row(*(str(x) for x in c.values()))
        console.print(table)
        console.print(
            f"order of elimination (-> parent, ~ neighbours): {len(constraints)} cut joints, "
            f"at most {order.most_neighbours} neighbours"
        )
        console.print(picture(model, order), highlight=False)


def _numbers(values: Sequence[float]) -> str:
    """Numbers of a joint, or one where all are equal."""
    return " ".join(f"{x:.4g}" for x in (values[:1] if len(set(values)) == 1 else values))


def _span(bounds: list[int]) -> str:
    start, stop = bounds
    return "" if start == stop else str(start) if stop == start + 1 else f"{start}..{stop - 1}"
