"""Closed-loop scenarios as inputs of the peers' harness.

Same trees, closures and consistent states for both sides.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from linkwork.closure.random_states import closed_states
from linkwork.constraints import Closure
from linkwork.errors import LinkworkError, UnsupportedError, not_found
from linkwork.model import Frame, Link, Model, Placement
from linkwork.progress_line import waiting
from linkwork.robots.mechanisms import chain
from linkwork.robots.scenarios import SCENARIOS, scenario
from linkwork_bench.inputs import SEED, Robot, read_robot
from linkwork_bench.mjcf import mjcf_text
from linkwork_bench.peers import LARGEST, Peers

STATES, FEW_STATES = 100, 16
CASE = "loops"
DEFAULT = (
    "allegro_cube",
    "two_allegros_cube",
    "humanoid_allegros_cube",
    "humanoid_allegros_cube_standing",
    "digit_rods_standing",
    "digit_rods_box",
    "two_digits_rods_box",
)
"""The scenarios of sathya2025's table II with the harness's joints (hinges, sliders, free). It closes loops by points
only: Digit's rods hang on universal joints and meet points."""


def scenario_robots(names: Sequence[str], peers: Peers, folder: Path, count: int = STATES) -> list[Robot]:
    """Write the scenarios, with so many states, and read them with the harness's accelerations."""
    robots = []
    for name in names or DEFAULT:
        if name not in SCENARIOS:
            raise not_found("scenario", name, SCENARIOS)
        try:
            with waiting(f"closing the loops of '{name}'"):
                model = scenario(name)
                robots.append(harness_robot(name, model, states(model, count), peers, folder))
        except LinkworkError:
            if names:
                raise
    return robots


def harness_robot(name: str, model: Model, rows: np.ndarray, peers: Peers, folder: Path) -> Robot:
    """A model with its closures as the harness reads it, with states [q v tau] and accelerations."""
    (folder / f"{name}.model").write_text(model_text(name, model))
    rows.astype("<f8").tofile(folder / f"{name}.states")
    with suppress(UnsupportedError):  # then MuJoCo's times are missing
        (folder / f"{name}__{CASE}.xml").write_text(mjcf_text(name, model))
    for build in peers.builds[:1]:
        program = build.folder / "pin_reference"
        if program.is_file():
            subprocess.run([str(program), str(folder), name], capture_output=True, check=False)
    return read_robot(folder, name)


def chain_robots(links: Sequence[int], peers: Peers, folder: Path) -> list[Robot]:
    """Chains of so many hinges in few states; the harness gets those that are not too long for it."""
    robots = []
    for name, model in ((f"chain{n}", chain(n)) for n in links):
        rng = np.random.default_rng(SEED)
        q, (v, tau) = rng.uniform(-1, 1, (FEW_STATES, model.nq)), rng.uniform(-1, 1, (2, FEW_STATES, model.nv))
        if model.nv <= LARGEST and peers.builds:
            robots.append(harness_robot(name, model, np.hstack([q, v, tau]), peers, folder))
        else:
            robots.append(Robot(name, model, {CASE: ()}, q, v, tau))
    return robots


def states(model: Model, count: int = STATES) -> np.ndarray:
    """Rows of [q v tau] with all loops closed and velocities that keep them so.

    Joint limits do not matter to what is measured, and keeping them makes hands that hold a cube a hundred times slower
    to close.
    """
    rng = np.random.default_rng(SEED)
    q, v = closed_states(model, rng, count)
    tau = rng.uniform(-1, 1, (count, model.nv))
    return np.hstack([q, v, tau])


def model_text(name: str, model: Model) -> str:
    """The harness's text of a tree with its closures; a universal joint becomes two hinges."""
    lines = ["pbmodel 1", f"name {name}", f"nq {model.nq}", f"nv {model.nv}", f"gravity {_numbers(model.gravity)}"]
    joints: list[str] = []
    place = [0] * len(model.links)
    for i, link in enumerate(model.links[1:], 1):
        parent = place[link.parent]
        *before, last = _hinges(link)
        at = link.placement
        for kind, axis in before:
            joints.append(_joint(len(joints) + 1, parent, kind, axis, at, np.zeros(10), 0.0, f"{link.name}/first"))
            parent, at = len(joints), Placement()
        I, body = link.inertia.I, link.inertia
        weight = np.array([body.mass, *body.com, I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]])
        rotor = float(link.armature[-1]) if link.armature.size else 0.0
        joints.append(_joint(len(joints) + 1, parent, *last, at, weight, rotor, link.name))
        place[i] = len(joints)
    lines += [f"njoints {len(joints)}", *joints, "ncases 1", f"case {CASE} {len(model.constraints)}"]
    for c in model.constraints:
        if not isinstance(c, Closure) or c.joint not in ("spherical", "fixed"):
            raise UnsupportedError(f"'{name}': the harness has no constraint like '{c.describe()}'")
        if c.joint == "fixed" and 0 not in c.touches(model):
            raise UnsupportedError(f"'{name}': the harness closes loops by points only, not like '{c.describe()}'")
        ends = (_end(model.frame(f), place) for f in (c.a, c.b))
        lines.append(f"con {c.rows} {' '.join(ends)}")
    return "\n".join([*lines, "end", ""])


def _hinges(link: Link) -> list[tuple[str, np.ndarray]]:
    kinds = {"revolute": "R", "prismatic": "P"}
    if link.joint.kind == "free":
        return [("F", np.zeros(3))]
    if link.joint.kind in kinds:
        return [(kinds[link.joint.kind], link.joint.axis)]  # type: ignore[attr-defined]
    if link.joint.kind == "universal":
        return [("R", link.joint.axis), ("R", link.joint.second)]  # type: ignore[attr-defined]
    raise UnsupportedError(f"the harness has no {link.joint.kind} joint ('{link.joint_name}')")


def _joint(
    i: int, parent: int, kind: str, axis: np.ndarray, at: Placement, weight: np.ndarray, rotor: float, name: str
) -> str:
    words = [_numbers(x) for x in (axis, at.p, at.R.ravel(), weight, [rotor])]
    return f"joint {i} {parent} {kind} {' '.join(words)} {name.replace(' ', '_')}"


def _end(frame: Frame, place: list[int]) -> str:
    return f"{place[frame.link]} {_numbers(frame.placement.p)} {_numbers(frame.placement.R.ravel())}"


def _numbers(x: Sequence[float] | np.ndarray) -> str:
    return " ".join(repr(float(v)) for v in x)
