"""Robots, rows and functions that several papers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

import linkwork as lw
from linkwork.algorithms.constrained.kkt import joint_space
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends import get
from linkwork.constraints import LinkRows
from linkwork.functions.function import Function
from linkwork.joints import Free, Revolute
from linkwork.model import BodyInertia, Builder, Frame, Model, Motion, Placement

ATLAS_LIMBS = ("l_foot", "r_foot", "l_hand", "r_hand")
TALOS_LIMBS = ("leg_left_6_link", "leg_right_6_link", "arm_left_7_link", "arm_right_7_link")
GO1_FEET = ("FL_calf", "FR_calf", "RL_calf", "RR_calf")
SOLE = tuple((x, y, -0.08) for x in (-0.1, 0.15) for y in (-0.06, 0.06))
"""Corners of a foot (m)."""


@cache
def robot(name: str) -> Model:
    """An installed robot as a tree: loops and mimic joints of its file are left out."""
    return lw.load(name, passive=False).without_constraints()


TUBE = BodyInertia(1.0, np.array([0.5, 0.0, 0.0]), np.diag([0.0025, 1.015 / 12, 1.015 / 12]))
"""A thin tube along x, 1 m and 1 kg: the links of the scaling studies of both papers on PV (their autoTree)."""
STEM_SKEW, BRANCH_SKEW = 1.0, np.pi / 3
"""Angles between the axes of a tube (rad), as in the authors' scripts: frames of no special kind."""


def _tubes(b: Builder, prefix: str, count: int, parent: str, skew: float, first: Placement) -> str:
    """A chain of tubes on `parent`, the first at `first`; returns the last."""
    for k in range(1, count + 1):
        place = first if k == 1 else Placement.at((1.0, 0.0, 0.0), (skew, 0.0, 0.0))
        b.link(f"{prefix}{k}", parent, Revolute("z"), placement=place, inertia=TUBE)
        parent = f"{prefix}{k}"
    return parent


def _welded(b: Builder, ends: Sequence[str], rows: int = 0) -> Model:
    return b.build().with_constraints(*(random_rows(e, rows, k) if rows else lw.surface(e) for k, e in enumerate(ends)))


def tube_chain(n: int) -> Model:
    """n tubes, the last one welded (sathya2023_pv_lqr, fig. 4a)."""
    b = Builder(f"{n} tubes")
    return _welded(b, [_tubes(b, "tube", n, "world", STEM_SKEW, Placement())])


def tube_stem(n: int, branches: int, links: int = 7, rows: int = 0) -> Model:
    """A floating stem of n tubes with branches on both ends, welded (fig. 2e; PV-OSIMr, fig. 3a).

    With `rows`, they are held by so many random rows instead.
    """
    b = Builder(f"stem of {n}, {branches} branches of {links}")
    b.link("stem1", joint=Free(), inertia=TUBE)
    last = _tubes(b, "stem_", n - 1, "stem1", STEM_SKEW, Placement.at((1.0, 0.0, 0.0), (STEM_SKEW, 0.0, 0.0)))
    ends = [
        _tubes(b, f"{side}{k}_", links, link, BRANCH_SKEW, Placement())
        for side, link in (("near", "stem1"), ("far", last))
        for k in range(branches)
    ]
    return _welded(b, ends, rows)


def tube_star(branches: int, links: int) -> Model:
    """Branches of tubes on one floating link, their last links welded."""
    b = Builder(f"star of {branches} branches of {links}")
    b.link("hub", joint=Free(), inertia=TUBE)
    return _welded(b, [_tubes(b, f"branch{k}_", links, "hub", BRANCH_SKEW, Placement()) for k in range(branches)])


def tube_ladder(rungs: int, rung_links: int = 7, segment_links: int = 3) -> Model:
    """A rail with rungs of tubes whose last links are welded (sathya2023_pv_lqr, fig. 4b)."""
    b, rail, ends = Builder(f"ladder of {rungs}"), "world", []
    onward = Placement.at((1.0, 0.0, 0.0), (STEM_SKEW, 0.0, 0.0))
    for k in range(1, rungs + 1):
        rail = _tubes(b, f"rail{k}_", segment_links, rail, STEM_SKEW, onward if k > 1 else Placement())
        ends.append(
            _tubes(b, f"rung{k}_", rung_links, rail, BRANCH_SKEW, Placement.at((1.0, 0.0, 0.0), (0.5, 0.7, 0.0)))
        )
    return _welded(b, ends)


def random_rows(link: str, rows: int, seed: int = 0) -> LinkRows:
    """A general constraint on one link, K random as in the papers."""
    rng = np.random.default_rng([seed, rows])
    K, k = rng.normal(size=(rows, 6)).tolist(), rng.normal(size=rows).tolist()
    return LinkRows({link: K}, k, name=f"{link} {rows} {seed}")


def held_by_rows(name: str, links: Sequence[str], rows: int) -> Model:
    """A robot with random rows on links."""
    return robot(name).with_constraints(*(random_rows(l, rows, k) for k, l in enumerate(links)))


def held(name: str, links: Sequence[str], rows: int = 6) -> Model:
    """A robot whose links are welded to the world (6 rows) or held by a point (3)."""
    hold = lw.surface if rows == 6 else lw.point
    return robot(name).with_constraints(*(hold(l) for l in links))


def with_points(model: Model, link: str, points: Sequence[Sequence[float]]) -> Model:
    """Points of a link, all of them held."""
    frames = {f"{link}@{k}": Frame(model.link(link), Placement.at(p)) for k, p in enumerate(points)}
    model = replace(model, frames={**model.frames, **frames})
    return model.with_constraints(*(lw.point(f) for f in frames))


def kkt_pattern(model: Model) -> np.ndarray:
    """Where K_mu = [-mu 1, J; J^T, M] has entries: rows first."""
    t, m = model.topology, model.rows
    K = np.eye(m + model.nv, dtype=bool)
    for k in range(model.nv):
        above = k
        while above >= 0:
            K[m + k, m + above] = K[m + above, m + k] = True
            above = t.dof_parent[above]
    first = 0
    for c in model.constraints:
        dofs = {
            k
            for link in c.touches(model)
            for i in t.supports[link]
            for k in range(t.v_slices[i].start, t.v_slices[i].stop)
        }
        for row in range(first, first + c.rows):
            for k in dofs:
                K[row, m + k] = K[m + k, row] = True
        first += c.rows
    return K


def forward(method: str, **options: Any) -> Callable[[Model], Function]:
    return partial(lw.forward_dynamics, method=method, frames="given", **options)


def free(model: Model) -> Function:
    """The dynamics of the same robot without its rows."""
    return forward("aba")(model.without_constraints())


def delassus(method: str) -> Callable[[Model], Function]:
    return partial(lw.delassus, method=method, frames="given")


def osim(method: str) -> Callable[[Model], Function]:
    """The Delassus matrix, factorised and solved with once."""
    return partial(lw.operational_space_inertia, method=method, frames="given")


def of_position(name: str, compute: Callable[[Motion], Any]) -> Callable[[Model], Function]:
    """Matrices at a configuration, as a function to count."""

    def way(model: Model) -> Function:
        def body(xp: Any, x: Mapping[str, Any]) -> dict[str, Any]:
            parts = compute(Motion(model, x["q"], xp.zeros(model.nv), xp))
            return {f"part{k}": part for k, part in enumerate(parts)}

        return Function(name, model, {"q": model.nq}, body, method=name)

    return way


def accelerations(model: Model, states: Mapping[str, np.ndarray]) -> np.ndarray:
    """By the dense reference on NumPy."""
    solve = lw.forward_dynamics(model, method="kkt", backend="numpy")
    return np.asarray(solve(states["q"], states["v"], states["tau"])[0])


def soft_accelerations(model: Model, states: Mapping[str, np.ndarray], R: float) -> np.ndarray:
    """(M + J^T J / R) a = tau - c + J^T k / R, dense."""
    out = []
    for q, v, tau in zip(states["q"], states["v"], states["tau"], strict=True):
        motion = Motion(model, q[:, None], v[:, None], get("numpy"))
        J, k = joint_space(motion)
        c = rnea(motion, np.zeros((model.nv, 1)))
        out.append(np.linalg.solve(crba(motion) + J.T @ J / R, tau[:, None] - c + J.T @ k / R)[:, 0])
    return np.array(out)
