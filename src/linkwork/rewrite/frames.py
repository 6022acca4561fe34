"""The same mechanism in link frames that take fewer operations to move between.

A link's frame may sit anywhere on the axis of its joint and be turned about it: that changes neither positions nor
velocities of joints (rewrite/frame_choice.py picks). Inertias, frames and rows on links follow:

    placement' = W_p^-1 placement W,    axis' = W^-1 axis,    frame' = W^-1 frame,    W the new frame in the old one

A frame with the name of the link stays where the user's link frame is, so names, external forces and constraints keep
their meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linkwork.algorithms.tree.aba import aba
from linkwork.backends.ops import Array, Ops
from linkwork.constraints import CentreOfMass, Closure, Constraint, Coupling, Custom, Distance, LinkRows
from linkwork.model import Frame, Model, Motion, Placement
from linkwork.model.body import Moments
from linkwork.model.digest import digest
from linkwork.model.memo import cached
from linkwork.rewrite.frame_choice import between, choose, turned
from linkwork.rewrite.inertia_lumping import lumped

if TYPE_CHECKING:
    from linkwork.kernels.programs.trace import Symbol

KEPT = (CentreOfMass, Closure, Coupling, Custom, Distance, LinkRows)
"""The types of constraints that hold in any frames: they name frames, links or joints."""


@cached
def reframed(model: Model) -> Model:
    """The same mechanism with lumped inertias and link frames that take fewer operations.

    q, v, a, tau and the constraints' forces are the same. So are external forces, rows and frames on links: a frame
    with the link's name stands for the user's. Returns whichever of the lumped model and the one in new frames takes
    fewer operations (in `aba`); the model itself, if that takes fewer than lumped in the same frames, or has
    constraints of unknown types.
    """
    if any(type(c) not in KEPT for c in model.constraints):
        return model
    light = lumped(model)
    best = min((light, lumped(moved(light, choose(light)))), key=operations)
    return min((model, light), key=operations) if best is light else best


@cached
def operations(model: Model) -> int:
    """Operations of the forward dynamics of the tree alone; later processes find them in the cache."""
    from linkwork.kernels.cache import result_cache as notes

    tree = model.without_constraints()
    content = digest("operations of the tree", tree)
    return int(notes.get_or_put(content, lambda: {"operations": _counted(tree)})["operations"])


def _counted(tree: Model) -> int:
    from linkwork.kernels.programs.trace import trace

    n = tree.topology

    def body(xp: Ops, symbol: Symbol) -> dict[str, Array]:
        motion = Motion(tree, symbol("q", n.nq), symbol("v", n.nv), xp)
        return {"a": aba(motion, symbol("tau", n.nv))}

    return trace("aba", body).operations


def moved(model: Model, W: Sequence[Placement]) -> Model:
    """The same mechanism in new link frames, W[i] being that of link i in its old one."""
    back = [w.inverse() for w in W]
    links, frames = [model.links[0]], {}
    for i in model.topology.links:
        link = model.links[i]
        after = Placement() if link.joint.kind == "free" else W[i]  # a free joint's position has the offset behind it
        place = Placement(*between(W[link.parent], link.placement, after))
        body = Moments.of(link.inertia).moved(back[i])
        links.append(
            replace(
                link,
                joint=turned(link.joint, W[i].R),
                placement=place,
                inertia=body,
                weightless=Moments.of(link.weightless).moved(back[i]),
            )
        )
        frames[link.name] = Frame(i, back[i])
    for name, f in model.frames.items():
        frames[name] = Frame(f.link, Placement(*between(W[f.link], f.placement, Placement())))
    same = {l.name for i, l in enumerate(model.links) if is_identity(W[i])} - set(model.frames)
    rows = tuple(_rows_moved(c, frames) for c in model.constraints)
    return replace(
        model, links=tuple(links), constraints=rows, frames={name: f for name, f in frames.items() if name not in same}
    )


def is_identity(X: Placement) -> bool:
    return bool(np.array_equal(X.R, np.eye(3)) and not X.p.any())


def _rows_moved(c: Constraint, frames: dict[str, Frame]) -> Constraint:
    """Rows over links in new frames: K' = K X, X from the new frame to the old."""
    if not isinstance(c, LinkRows):
        return c
    K = {}
    for l, block in c.K.items():
        R, p = (frames[l].placement.R, frames[l].placement.p) if l in frames else (np.eye(3), np.zeros(3))
        lin, ang = np.asarray(block)[:, :3] @ R.T, np.asarray(block)[:, 3:] @ R.T
        K[l] = np.hstack([lin, ang + np.cross(p, lin)])  # lin (v - p x w) = lin v + (p x lin) w
    return replace(c, K=K)  # type: ignore[arg-type]
