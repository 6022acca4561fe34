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
from linkwork.model import Frame, Model, Motion, Placement

ATLAS_LIMBS = ("l_foot", "r_foot", "l_hand", "r_hand")
TALOS_LIMBS = ("leg_left_6_link", "leg_right_6_link", "arm_left_7_link", "arm_right_7_link")
GO1_FEET = ("FL_calf", "FR_calf", "RL_calf", "RR_calf")
SOLE = tuple((x, y, -0.08) for x in (-0.1, 0.15) for y in (-0.06, 0.06))
"""Corners of a foot (m)."""


@cache
def robot(name: str) -> Model:
    """An installed robot as a tree: loops and mimic joints of its file are left out."""
    return lw.load(name, passive=False).without_constraints()


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


def forward(method: str, **options: Any) -> Callable[[Model], Function]:
    return partial(lw.forward_dynamics, method=method, frames="given", **options)


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
