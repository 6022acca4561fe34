"""Mechanisms with contacts, loops and random rows, on which every joint-space and Delassus method is compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import casadi
import numpy as np

import linkwork as lw
from helpers import constraints_of, random_model
from linkwork.backends.casadi_ import CASADI
from linkwork.backends.ops import Array, Ops
from linkwork.constraints import Constraint, LinkRows
from linkwork.kernels.programs.trace import Symbol, trace
from linkwork.model import Builder, Frame, Model, Motion, Placement
from linkwork.robots.mechanisms import chain, four_bar, humanoid, ladder, quadruped, random_mechanism, stem

LIMBS = ("left_foot", "right_foot", "left_hand", "right_hand")
FEET = tuple(f for f in quadruped().frames if "foot" in f)
ANY_ROWS = ("ltl", "pv", "kkt_cholesky")
ONE_LINK = ("kjr", "efpa", "pv_r")


def method(name: str, family: str = "delassus") -> Callable[..., Any]:
    """The function of a method, by its name."""
    return getattr(import_module(f"linkwork.algorithms.{family}.{name}"), name)  # type: ignore[no-any-return]


def random_rows(link: str, m: int, seed: int = 0) -> LinkRows:
    rng = np.random.default_rng([seed, m])
    return LinkRows({link: rng.normal(size=(m, 6))}, rng.normal(size=m), name=f"{link} {m} {seed}")


def tree_with_rows(seed: int, base: str | None) -> Model:
    """All joint types; random rows on every third link, twice on one of them: constrained links carry others."""
    model = random_model(seed, 9, base=base)
    rows = [random_rows(f"l{i}", 1 + (i + seed) % 3, seed) for i in range(2, 9, 3)]
    return model.with_constraints(*rows, random_rows("l5", 2, seed + 1))


@cache
def one_link_cases() -> dict[str, Model]:
    """Rows on single links: contacts and random K, 0 to 4 of them, nested, several on a link."""
    legs, body, hands = quadruped(), humanoid(hands=False), humanoid()
    tips = [f for f in hands.frames if f.endswith("_tip")]
    out = {
        "chain 7 weld": chain(7).with_constraints(lw.surface("linktip")),
        "chain 9 nested": chain(9).with_constraints(lw.point("linktip"), random_rows("link5", 2), lw.point("link9")),
        "chain all joints": chain(8, ["spherical", "revolute", "cylindrical"], base="free", seed=1).with_constraints(
            random_rows("link8", 6), random_rows("link4", 4), lw.point("link8")
        ),
        "ladder 3": ladder(3),
        "stem 6": stem(6, 3),
        "stem fixed": stem(5, 2, base="fixed"),
        "stem of 1": stem(1, 2, branch_links=2),
        "fingers": hands.with_constraints(*(lw.point(f) for f in tips), lw.surface("left_foot"), lw.surface("torso")),
        "fingers, random": hands.with_constraints(
            *(
                random_rows(f"{s}_{f}_distal", 4, k)
                for s in ("left", "right")
                for k, f in enumerate(("index", "ring", "thumb"))
            ),
            random_rows("pelvis", 3),
            random_rows("left_sole", 12),
        ),
    }
    for k in range(5):
        out[f"quadruped {k}"] = legs.with_constraints(*(lw.point(f) for f in FEET[:k]))
        out[f"humanoid {k}"] = body.with_constraints(*(lw.surface(f) for f in LIMBS[:k]))
    ends = ("left_sole", "right_sole", "left_palm", "right_palm")
    out["humanoid random"] = body.with_constraints(*(random_rows(l, 6, k) for k, l in enumerate(ends)))
    out["humanoid mixed"] = body.with_constraints(
        lw.point("left_foot"), random_rows("left_shank", 2), lw.surface("right_foot"), random_rows("torso", 3)
    )
    for seed in range(4):
        out[f"tree {seed}"] = tree_with_rows(seed, None)
        out[f"floating tree {seed}"] = tree_with_rows(seed, "free")
    return out


@cache
def loop_cases() -> dict[str, Model]:
    """Rows over several links and joints."""
    out = {"four bar": four_bar(), "humanoid four bar": humanoid(hands=False, four_bar_legs=True)}
    for seed in range(4):
        out[f"mechanism {seed}"] = random_mechanism(seed, 9, loops=2, contacts=1, couplings=1, distances=1)
    for seed in range(3):
        model = random_model(seed, 7)
        for k, c in enumerate(constraints_of(model, seed)[seed::9]):
            out[f"{type(c).__name__} {seed} {k}"] = model.with_constraints(c)
    return out


def without_repetition(model: Model, q: np.ndarray) -> Model:
    """The model with only those constraints that the ones before them leave independent in this posture."""
    from helpers import motion
    from linkwork.constraints import jacobian

    kept: list[Constraint] = []
    for c in model.constraints:
        trial = model.without_constraints().with_constraints(*kept, c)
        s = np.linalg.svd(jacobian(motion(trial, q)), compute_uv=False)
        if trial.rows <= trial.nv and s[-1] > 1e-4 * s[0]:
            kept.append(c)
    return model.without_constraints().with_constraints(*kept)


def operations(model: Model, f: Callable[[Motion], Any]) -> int:
    """Exact operations of a function of the motion, traced as for a kernel."""

    def body(xp: Ops, symbol: Symbol) -> dict[str, Array]:
        out = f(Motion(model, symbol("q", model.nq), symbol("v", model.nv), xp))
        return {f"out{k}": x for k, x in enumerate(out if isinstance(out, tuple) else (out,))}

    return trace("f", body).operations


def traced(model: Model, f: Callable[[Motion], Any]) -> Any:
    """A CasADi function of q and v."""
    q, v = casadi.SX.sym("q", model.nq), casadi.SX.sym("v", model.nv)
    out = f(Motion(model, q, v, CASADI))
    outputs = out if isinstance(out, tuple) else (out,)
    return casadi.Function("f", [q, v], [casadi.densify(casadi.SX(x)) for x in outputs])


def with_points(model: Model, link: str, points: Sequence[Sequence[float]]) -> Model:
    """Point contacts at places on a link, all of them constrained."""
    frames = {f"{link}@{k}": Frame(model.link(link), Placement.at(p)) for k, p in enumerate(points)}
    model = replace(model, frames={**model.frames, **frames})
    return model.with_constraints(*(lw.point(f) for f in frames))


def attached(model: Model, part: Model, link: str, prefix: str) -> Model:
    """A model with another one, its names prefixed, on one of its links."""
    b = Builder(f"{model.name} with {part.name}")
    for source, before in ((model, ""), (part, prefix)):
        names = {0: "world" if source is model else link}
        for i, l in enumerate(source.links[1:], 1):
            names[i] = before + l.name
            b.link(
                names[i],
                names[l.parent],
                l.joint,
                placement=l.placement,
                inertia=l.inertia,
                armature=l.armature,
                joint_name=before + l.joint_name,
            )
    return b.build(merge_fixed=False)
