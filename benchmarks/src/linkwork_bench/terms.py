"""`linkwork bench terms`: terms of kinematics and dynamics beside Pinocchio's C++, on the same states.

Pinocchio's side is `native/pin_terms.cpp`, built once with the compiler, flags and headers of the harness's build
folder and kept there. Frames are the ends of the robot's largest set of contacts. Results of both sides are compared
before anything is timed; then all run in turns, one thread. One state: machine code in a loop over states. Batches:
many states in one call, every one with its own results in memory, where Pinocchio's loop overwrites the last ones.
"""

from __future__ import annotations

import json as written
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import linkwork as lw
from linkwork.cli.bench import words
from linkwork.errors import InputError, KernelError, not_found
from linkwork.functions.function import Function
from linkwork.kernels import Kernel
from linkwork_bench.commands.options import (
    CpuOption,
    JsonOption,
    PeersOption,
    ProcessorOption,
    QuickOption,
    RobotsOption,
    RoundsOption,
    clock,
    settings_of,
)
from linkwork_bench.commands.show import print_circumstances, terminal
from linkwork_bench.inputs import Robot, read_robot
from linkwork_bench.measure import Conditions, Contender, Summary, circumstances, interleave, ratio, summary
from linkwork_bench.measure import processor_time as in_processor_time
from linkwork_bench.ours import Native
from linkwork_bench.peers import Build, Harness, Host, find

ROBOTS = ("ur5", "panda", "anymal_b", "go1", "icub_reduced", "talos_reduced")
GOALS = {"one": 3.0, "batch": 10.0}
NEAR, CHECKED = 1e-9, 20
"""How near results of both sides are, relative to the largest entry, and in how many states that is checked."""

PROGRAM = "pin_terms"
SOURCE = Path(__file__).parent / "native" / f"{PROGRAM}.cpp"
DEFINITIONS = (
    "BOOST_MPL_LIMIT_LIST_SIZE=30",
    "BOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "BOOST_FUSION_INVOKE_MAX_ARITY=12",
)


@dataclass(frozen=True)
class Case:
    """Our terms and Pinocchio's names of them; the fastest of several names counts."""

    names: tuple[str, ...]
    theirs: tuple[str, ...]
    frames: bool = False
    reference: str = "local"
    compared: bool = True


def cases() -> dict[str, Case]:
    """Every term by its name in tables."""
    made = {"placements": Case(("positions", "rotations"), ("placements",), True)}
    for reference in ("local", "world", "world_aligned"):
        names = (f"J-{reference}-get", f"J-{reference}-compute")
        made[f"velocities, {reference}"] = Case(("velocities",), (f"velocities-{reference}",), True, reference)
        made[f"J, {reference}"] = Case(("J",), names, True, reference)
    for name in ("com", "com_J", "h", "A", "C", "g", "c", "kinetic_energy", "potential_energy"):
        made[name] = Case((name,), (name,))
    made["M"] = Case(("M",), ("M-full-local", "M-full-world"))
    made["M, theirs upper"] = Case(("M",), ("M-upper-local", "M-upper-world"))
    made["M, packed"] = Case(("entries",), ("M-upper-local", "M-upper-world"))
    made["Minv"] = Case(("Minv",), ("Minv-full",))
    made["Minv, theirs upper"] = Case(("Minv",), ("Minv-upper",))
    made["regressor"] = Case(("Y",), ("regressor",))
    made["regressor, packed"] = Case(("Y packed",), ("regressor",), compared=False)
    every = ("M", "c", "g", "com", "com_J", "h", "A", "kinetic_energy", "potential_energy", "J")
    made["all"] = Case(every, ("all",), True, compared=False)
    return made


@dataclass(frozen=True)
class Figure:
    """Medians in us for one state, ratios with their 95 % intervals, and how far both sides are apart."""

    robot: str
    term: str
    nv: int
    operations: int
    one: float
    batch: float
    pinocchio: float
    algorithm: str
    one_x: tuple[float, float, float]
    batch_x: tuple[float, float, float]
    error: float | None


def program(build: Build) -> Path:
    """Pinocchio's side, built unless it is there and newer than its source."""
    binary = build.folder / PROGRAM
    if binary.is_file() and binary.stat().st_mtime >= SOURCE.stat().st_mtime:
        return binary
    text = (build.folder / "CMakeCache.txt").read_text()
    found = dict(re.findall(r"^(CMAKE_CXX_COMPILER|SITE_PACKAGES|CMAKE_HOME_DIRECTORY):\w+=(.*)$", text, re.M))
    if len(found) < 3:
        raise InputError(f"'{build.folder}' does not say how it was built: CMakeCache.txt lacks the compiler or paths")
    include = Path(found["SITE_PACKAGES"], "cmeel.prefix", "include")
    command = [found["CMAKE_CXX_COMPILER"], "-std=c++17", "-O3", "-DNDEBUG", *build.flags.split()]
    command += [f"-D{x}" for x in DEFINITIONS] + ["-isystem", str(include), "-isystem", str(include / "eigen3")]
    command += ["-I", str(Path(found["CMAKE_HOME_DIRECTORY"], "src")), "-Wno-deprecated-declarations"]
    print(f"building {binary}, once: a few minutes", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=build.folder) as folder:
        made = Path(folder, PROGRAM)
        done = subprocess.run([*command, str(SOURCE), "-o", str(made)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise KernelError(f"{SOURCE.name} does not compile: {done.stderr.strip()[-500:]}")
        made.replace(binary)
    return binary


def frames_of(robot: Robot) -> list[str]:
    """The ends of the case with the most contacts and no loop; the native side has the same rule."""
    contacts = [cs for cs in robot.cases.values() if all(c.b == "world" for c in cs)]  # type: ignore[attr-defined]
    return [c.a for c in max(contacts, key=len)]  # type: ignore[attr-defined]


def function(robot: Robot, case: Case) -> Function:
    """Our function of these terms."""
    if case.names == ("entries",):
        return lw.mass_matrix(robot.model, packed=True)
    if case.theirs == ("regressor",):
        return lw.regressor(robot.model, packed=case.names != ("Y",))
    return lw.terms(robot.model, case.names, frames_of(robot) if case.frames else (), reference=case.reference)


def inputs(f: Function, robot: Robot) -> list[np.ndarray]:
    return [{"q": robot.q, "v": robot.v, "a": robot.v}[port.name] for port in f.program.inputs]


def apart(f: Function, robot: Robot, command: Sequence[str], case: Case, host: Host) -> float:
    """The largest difference of both sides' results, relative to each state's largest entry."""
    chosen = [k * len(robot.q) // CHECKED for k in range(CHECKED)]
    out = f(*(x[chosen] for x in inputs(f, robot)))
    if case.names == ("positions", "rotations"):
        ours = np.concatenate([out[0], out[1].reshape(*out[1].shape[:-2], 9)], axis=-1).reshape(CHECKED, -1)
    elif case.names == ("entries",):
        rows, columns = lw.mass_pattern(robot.model)
        M = np.zeros((CHECKED, robot.model.nv, robot.model.nv))
        M[:, rows, columns] = M[:, columns, rows] = out[0]
        ours = M.reshape(CHECKED, -1)
    else:
        ours = np.concatenate([np.reshape(x, (CHECKED, -1)) for x in out], axis=1)
    worst = 0.0
    for name in case.theirs:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "values")
            environment = {**(host.environment or os.environ), "PIN_TERMS_VALUES": str(file)}
            Host(host.cpu, environment).run([*command, "--only", name, "--check", str(CHECKED)])
            theirs = np.fromfile(file).reshape(CHECKED, -1)
        worst = max(worst, float(np.max(np.abs(ours - theirs).max(axis=1) / np.abs(theirs).max(axis=1).clip(1e-12))))
    return worst


def measured(robot: Robot, named: Sequence[str], build: Build, host: Host, rounds: int, budget: float) -> list[Figure]:
    """The figures of a robot, term by term."""
    assert robot.folder is not None
    command = (str(program(build)), str(robot.folder), robot.name)
    conditions = Conditions(host.cpu, 0.002, host.environment is not None)
    found, known = [], cases()
    for term in named or known:
        case = known[term]
        f = function(robot, case)
        error = apart(f, robot, command, case, host) if case.compared else None
        if error is not None and not error <= NEAR:
            raise KernelError(f"{term} of {robot.name}: Linkwork and Pinocchio are {error:.1e} apart; nothing is timed")
        single, many = Kernel(f.program, lanes=1, threads=1), Kernel(f.program, threads=1)
        made: dict[str, Contender] = {
            "one": Native(single, inputs(f, robot), True, conditions),
            "batch": Native(many, inputs(f, robot), False, conditions),
            **{name: Harness(command, name, host) for name in case.theirs},
        }
        us = {n: [r.us for r in x] for n, x in interleave(made, rounds, budget).items()}
        fastest = min(case.theirs, key=lambda n: summary(us[n]).median)
        one, batch = (_triple(ratio(us[fastest], us[n])) for n in ("one", "batch"))
        us_one, us_batch, us_theirs = (summary(us[n]).median for n in ("one", "batch", fastest))
        of = (robot.name, term, robot.model.nv, f.operations)
        found.append(Figure(*of, us_one, us_batch, us_theirs, fastest, one, batch, error))
    return found


def _triple(x: Summary) -> tuple[float, float, float]:
    return x.median, x.low, x.high


def terms(
    robots: RobotsOption = None,
    named: Annotated[list[str] | None, typer.Option("--term", help="One term; repeat for more. Default: all.")] = None,
    peers: PeersOption = None,
    json: JsonOption = None,
    quick: QuickOption = False,
    rounds: RoundsOption = None,
    cpu: CpuOption = None,
    processor_time: ProcessorOption = False,
) -> None:
    """Placements, Jacobians, momentum, M, C, energies beside Pinocchio's C++, one thread."""
    build = next((b for b in find(peers or ()).builds if b.role == "best" and b.inputs is not None), None)
    if build is None or build.inputs is None:
        raise InputError("terms are compared in C++: give the harness's build folder with --peers or in LINKWORK_PEERS")
    for name in named or ():
        if name not in cases():
            raise not_found("term", name, cases())
    settings = settings_of(quick, rounds, cpu, 1)
    facts = {**circumstances(), "clock": clock(processor_time)}
    print_circumstances(facts)
    found: list[Figure] = []
    with in_processor_time() if processor_time else nullcontext() as environment:
        host = Host(settings.cpu, environment)
        for name in words(robots) or ROBOTS:
            robot = read_robot(build.inputs, name)
            found += measured(robot, named or (), build, host, settings.rounds, settings.budget)
            if json is not None:
                json.write_text("".join(written.dumps(x) + "\n" for x in (facts, *map(asdict, found))))
    _show(found)


def _show(found: Sequence[Figure]) -> None:
    from rich.table import Table

    for robot in dict.fromkeys(f.robot for f in found):
        table = Table(title=f"{robot}: us for one state, one thread")
        for heading in ("term", "operations", "one", "batch", "Pinocchio", "by", "one x", "batch x", "apart"):
            table.add_column(heading, justify="left" if heading in ("term", "by") else "right")
        for f in (f for f in found if f.robot == robot):
            us = [f"{x:.3f}" for x in (f.one, f.batch, f.pinocchio)]
            times = [
                f"{x[0]:.1f}{'' if x[0] >= goal else ' !'}"
                for x, goal in zip((f.one_x, f.batch_x), GOALS.values(), strict=True)
            ]
            table.add_row(
                f.term, str(f.operations), *us, f.algorithm, *times, "" if f.error is None else f"{f.error:.0e}"
            )
        terminal().print(table)
    for key, goal in GOALS.items():
        ratios = [getattr(f, f"{key}_x")[0] for f in found]
        print(f"{key}: {sum(x >= goal for x in ratios)} of {len(ratios)} at least {goal:g} x; least {min(ratios):.1f}")
