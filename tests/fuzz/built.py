"""Linkwork's model of a recipe."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwork.constraints import (
    CentreOfMass,
    Closure,
    Constraint,
    Coupling,
    Custom,
    Distance,
    LinkRows,
    Stabilisation,
)
from linkwork.joints import Joint, make
from linkwork.model import BodyInertia, Builder, Model, Placement

Recipe = dict[str, Any]


def build(recipe: Recipe) -> Model:
    """The model; links are called link1, link2, ... in the order of the recipe."""
    b = Builder(f"mechanism {recipe['seed']}", gravity=np.array(recipe["gravity"]))
    for i, l in enumerate(recipe["links"], 1):
        b.link(
            _name(i),
            _name(l["parent"]),
            _joint(l["joint"]),
            placement=_placement(l),
            joint_name=f"joint{i}",
            inertia=BodyInertia(l["mass"], np.array(l["com"]), np.array(l["I"])),
            armature=np.array(l["armature"]),
        )
    for n, c in enumerate(recipe["constraints"]):
        for end in ("a", "b") if "a" in c else ():
            b.frame(f"{end}{n}", _name(c[end]["link"]), _placement(c[end]))
    model = b.build(merge_fixed=False)
    return model.with_constraints(*(_constraint(c, n) for n, c in enumerate(recipe["constraints"])))


def _name(i: int) -> str:
    return f"link{i}" if i else "world"


def _placement(at: Recipe) -> Placement:
    return Placement(np.array(at["R"]), np.array(at["p"]))


def _joint(joint: Recipe) -> Joint:
    kind = joint["kind"]
    options: dict[str, Any] = (
        {"axis": joint["axis"]} if kind in ("revolute", "prismatic", "helical", "cylindrical", "universal") else {}
    )
    if kind == "helical":
        options["pitch"] = joint["pitch"]
    if kind == "universal":
        options["second"] = joint["second"]
    return make(kind, **options)


def _constraint(c: Recipe, n: int) -> Constraint:
    name, kind, pull = f"constraint{n}", c["type"], Stabilisation(**c["stabilised"]) if "stabilised" in c else None
    if kind == "closure":
        return Closure(f"a{n}", f"b{n}", c["joint"], c["axis"], c["second"], c["pitch"], name, pull)
    if kind == "distance":
        return Distance(f"a{n}", f"b{n}", c["length"], name, pull)
    if kind == "coupling":
        return Coupling(
            f"joint{c['joint']}", {f"joint{i}": cs for i, cs in c["terms"].items()}, c["offset"], name, pull
        )
    if kind == "rows":
        return LinkRows({_name(int(i)): K for i, K in c["K"].items()}, c["k"], name)
    if kind == "com":
        return CentreOfMass(name=name)
    curve, slope, rest = np.array(c["curve"]), np.array(c["slope"]), c["rest"]

    def phi(*x: Any) -> Any:
        return (
            rest
            + sum(s * xi for s, xi in zip(slope, x, strict=True))
            + sum(curve[i, j] * x[i] * x[j] / 2 for i in range(len(x)) for j in range(len(x)))
        )

    return Custom(phi, [f"joint{i}" for i in c["joints"]], name, pull)


def with_directions(recipe: Recipe, model: Model) -> Recipe:
    """The recipe with the basis of forbidden directions that the model's closures use: any basis would do."""
    constraints = [
        {**r, "directions": c.directions.tolist()} if isinstance(c, Closure) else r
        for r, c in zip(recipe["constraints"], model.constraints, strict=True)
    ]
    return {**recipe, "constraints": constraints}
