"""Mechanisms with local loops: built here, and loaded from robot files where there are any."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import LinkworkError
from linkwork.robots import mechanisms as mech
from linkwork.robots.tello import transmissions

NO_ROBOT = "no such robot file: name directories of robots in LINKWORK_ROBOTS"


def robot(name: str) -> lw.Model:
    try:
        return lw.load(name, passive=False)
    except LinkworkError:
        pytest.skip(f"{name}: {NO_ROBOT}")


def tello() -> lw.Model:
    return robot("tello_humanoid").with_constraints(*transmissions())


def ball_loop(base: str = "free") -> lw.Model:
    """Two arms of ball joints on a carried body, whose hands are hinged together: a cluster of joints with 3 dofs."""
    rng = np.random.default_rng(3)
    b = lw.Builder("ball loop")
    body = lw.BodyInertia(1.0, np.array([0.1, 0.02, -0.03]), np.diag([0.02, 0.03, 0.04]))
    b.link("base", "world", base, inertia=body)
    b.link("middle", "base", "revolute", placement=lw.Placement.at((0.1, 0, 0), (0.3, 0.2, 0.1)), inertia=body)
    for side, y in (("left", 0.2), ("right", -0.2)):
        b.link(f"{side}_arm", "middle", "spherical", placement=lw.Placement.at((0, y, 0)), inertia=body, armature=0.1)
        b.link(f"{side}_hand", f"{side}_arm", "revolute", placement=lw.Placement.at((0.4, 0, 0)), inertia=body)
    b.frame("left_tip", "left_hand", lw.Placement.at((0.3, -0.2, 0)))
    b.frame("right_tip", "right_hand", lw.Placement.at((0.3, 0.2, 0)))
    b.link("tail", "left_hand", "revolute", placement=lw.Placement.at((0, 0.3, 0), rng.normal(size=3)), inertia=body)
    b.constraints.append(lw.Hinge("left_tip", "right_tip", "y"))
    return b.build()


def cam() -> lw.Model:
    """A chain whose third joint follows the others by a polynomial, and whose fifth follows the fourth by a cam."""
    model = mech.chain(5)
    names = [l.joint_name for l in model.links[1:]]
    return model.with_constraints(
        lw.Coupling(names[2], {names[1]: [0.5, 0.3, -0.1], names[0]: [0.2]}, 0.1),
        lw.Custom(lambda x, y: np.sin(x) * 0.7 - y + 0.2 * y**3, (names[3], names[4])),
    ).with_independent(names[0], names[1], names[3])


BUILT: dict[str, Callable[[], lw.Model]] = {
    "gears": lambda: mech.geared_chain(4),
    "gears, free": lambda: mech.geared_chain(3, base="free"),
    "belts": lambda: mech.belt_chain(5),
    "belts of three": lambda: mech.belt_chain(6, group=3, base="free"),
    "differential": lambda: mech.differential(2, base="free"),
    "four-bar": lambda: mech.four_bar(1.0, 0.3, 0.9, 0.6),
    "four-bar, points": lambda: mech.four_bar(1.0, 0.3, 0.9, 0.6, cut="spherical"),
    "four-bar, 6-D": lambda: mech.four_bar(1.0, 0.3, 0.9, 0.6, cut="fixed"),
    "six-bar": mech.six_bar,
    "leg linkage": lambda: mech.planar_leg(base="free"),
    "ring": lambda: mech.ring(8),
    "loops in a row": lambda: mech.chain_of_loops(2),
    "ball joints": ball_loop,
    "cam": cam,
}
ROBOTS: dict[str, Callable[[], lw.Model]] = {
    "revolute_rotor_chain": lambda: robot("revolute_rotor_chain"),
    "four_bar file": lambda: robot("four_bar"),
    "six_bar file": lambda: robot("six_bar"),
    "mini_cheetah": lambda: robot("mini_cheetah"),
    "mit_humanoid": lambda: robot("mit_humanoid"),
    "jvrc1_humanoid": lambda: robot("jvrc1_humanoid"),
    "tello": tello,
}
ALL = {**BUILT, **ROBOTS}


def state(model: lw.Model, seed: int = 0, size: float = 0.4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A consistent position near the neutral one, a velocity that the loops allow, and joint forces."""
    rng, tree = np.random.default_rng(seed), lw.clusters(model)
    inside = [model.constraints[n].name for c in tree.clusters for n in c.constraints]
    moved = model.integrate(model.neutral(), size * rng.normal(size=model.nv))
    q = lw.assemble(model, moved, only=inside) if inside else moved
    free = model.without_constraints().with_constraints(*(c for c in model.constraints if c.name in inside))
    return q, lw.project_velocity(free, q, rng.normal(size=model.nv)), rng.normal(size=model.nv) * 5
