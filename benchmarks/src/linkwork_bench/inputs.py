"""The robots, states and constraint cases of a benchmark.

With the peers' harness, all come from its input folder, so that both sides have the same joints, inertias,
states and constraints to the last bit:

- ``ROBOT.model``, text: ``gravity``, one ``joint INDEX PARENT KIND axis placement mass com inertia armature NAME`` per
  joint (KIND is R, P or F; a placement is a position and a rotation row by row; the inertia is about the centre of
  mass, Ixx Ixy Iyy Ixz Iyz Izz), and ``case NAME COUNT`` followed by ``con DIM joint1 placement joint2 placement``;
- ``ROBOT.states``: rows of [q v tau], float64; quaternions are [x y z w];
- ``ROBOT__CASE.qdd``: the accelerations of a dense solve, one row per state.

Without it, robots that are installed on this machine are used, with random states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from linkwork.constraints import Closure, Connect, Weld
from linkwork.constraints.base import Constraint
from linkwork.errors import LoadError, ModelError, not_found
from linkwork.model import BodyInertia, Builder, Model, Placement

STATES, FEW_STATES = 1000, 64
SEED = 20240607


@dataclass(frozen=True)
class Robot:
    """A robot without constraints, the cases that constrain it, and states (rows) to run it on."""

    name: str
    model: Model
    cases: Mapping[str, tuple[Constraint, ...]]
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    folder: Path | None = None

    def constrained(self, case: str) -> Model:
        """The model with the constraints of a case."""
        if case not in self.cases:
            raise not_found(f"case of '{self.name}'", case, self.cases)
        return self.model.with_constraints(*self.cases[case])

    def reference(self, case: str) -> np.ndarray:
        """Accelerations for every state: the harness's, or else those of our dense reference on NumPy."""
        file = self.folder / f"{self.name}__{case}.qdd" if self.folder else None
        if file is not None and file.is_file():
            return _rows(file, self.model.nv)[: len(self.q)]
        from linkwork.functions.dynamics import forward_dynamics

        solve = forward_dynamics(self.constrained(case), method="kkt", backend="numpy")
        return np.asarray(solve(self.q, self.v, self.tau)[0])


def harness_robots(folder: Path) -> list[str]:
    """The robots that the harness has inputs for."""
    return sorted(f.stem for f in folder.glob("*.model") if f.with_suffix(".states").is_file())


def read_robot(folder: Path, name: str) -> Robot:
    """A robot of the harness's input folder."""
    if name not in harness_robots(folder):
        raise not_found("robot in the harness's inputs", name, harness_robots(folder))
    model, cases = read_model(folder / f"{name}.model")
    states = _rows(folder / f"{name}.states", model.nq + 2 * model.nv)
    q, v, tau = np.split(states, [model.nq, model.nq + model.nv], axis=1)
    q, v, tau = (np.ascontiguousarray(x) for x in (q, v, tau))
    return Robot(name, model, cases, q, v, tau, folder)


def read_model(file: Path) -> tuple[Model, dict[str, tuple[Constraint, ...]]]:
    """The tree of a .model file, with a frame for each end of a constraint, and its cases."""
    builder, names, frames = Builder(file.stem, strict=False), ["world"], _Frames()
    cases: dict[str, tuple[Constraint, ...]] = {}
    lines = (line.split() for line in file.read_text().splitlines() if line.strip())
    try:
        for word, *rest in lines:
            if word == "gravity":
                builder.gravity = np.array(rest, dtype=float)
            elif word == "joint":
                names.append(_add_joint(builder, rest, names))
            elif word == "case":
                cases[rest[0]] = tuple(_constraint(next(lines)[1:], names, frames) for _ in range(int(rest[1])))
    except (ValueError, IndexError, KeyError, StopIteration, ModelError) as problem:
        raise LoadError(f"{file.name} is not a harness model file as its prepare.py writes it ({problem})") from None
    for name, link, placement in frames:
        builder.frame(name, link, placement)
    model = builder.build()
    if [l.name for l in model.links] != names:
        raise LoadError(f"{file.name}: the joints are not depth first")
    return model, cases


def installed_robot(name: str, states: int = STATES) -> Robot:
    """A robot that is installed on this machine, with random states.

    Its case "file" has the file's own loops.
    """
    from linkwork.io.load import load

    whole = load(name, passive=False)
    model = whole.without_constraints()
    rng = np.random.default_rng(SEED)
    q = np.array([model.random_q(rng) for _ in range(states)])
    v, tau = (rng.uniform(-1, 1, (states, model.nv)) for _ in range(2))
    cases: dict[str, tuple[Constraint, ...]] = {"none": ()}
    if whole.constraints:
        cases["file"] = tuple(whole.constraints)
    tips = [i for i in model.topology.links if i not in {l.parent for l in model.links[1:]}]
    for k in range(1, min(len(tips), 4) + 1):
        cases[f"{k}x3D"] = tuple(Connect(model.links[i].name) for i in tips[:k])
        cases[f"{k}x6D"] = tuple(Weld(model.links[i].name) for i in tips[:k])
    return Robot(name, model, cases, q, v, tau)


class _Frames:
    """The ends of constraints that need a name, each once."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], tuple[str, str, Placement]] = {}

    def at(self, link: str, numbers: list[str]) -> str:
        if link == "world":
            return link
        entry = (f"{link}_at{len(self._ends)}", link, _placement(numbers))
        return self._ends.setdefault((link, " ".join(numbers)), entry)[0]

    def __iter__(self) -> Iterator[tuple[str, str, Placement]]:
        return iter(self._ends.values())


def _constraint(words: list[str], names: list[str], frames: _Frames) -> Closure:
    dimension, joint1, joint2 = int(words[0]), int(words[1]), int(words[14])
    a, b = frames.at(names[joint1], words[2:14]), frames.at(names[joint2], words[15:27])
    if dimension not in (3, 6):
        raise ValueError(f"a constraint has 3 or 6 rows, not {dimension}")
    return Connect(a, b) if dimension == 3 else Weld(a, b)


def _add_joint(builder: Builder, words: list[str], names: list[str]) -> str:
    parent, kind = names[int(words[1])], {"R": "revolute", "P": "prismatic", "F": "free"}[words[2]]
    axis, placement = np.array(words[3:6], dtype=float), _placement(words[6:18])
    mass, com = float(words[18]), np.array(words[19:22], dtype=float)
    xx, xy, yy, xz, yz, zz = (float(x) for x in words[22:28])
    inertia = BodyInertia(mass, com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    name = words[29]
    builder.link(
        name,
        parent,
        kind,
        axis=None if kind == "free" else axis,
        placement=placement,
        inertia=inertia,
        armature=float(words[28]),
        joint_name=name,
    )
    return name


def _placement(numbers: list[str]) -> Placement:
    x = np.array(numbers, dtype=float)
    return Placement(x[3:12].reshape(3, 3), x[:3])


def _rows(file: Path, width: int) -> np.ndarray:
    numbers = np.fromfile(file, "<f8")
    if numbers.size == 0 or numbers.size % width:
        raise LoadError(f"{file.name} does not hold rows of {width} numbers")
    return numbers.reshape(-1, width)
