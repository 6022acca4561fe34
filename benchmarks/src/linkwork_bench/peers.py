"""The peers: Pinocchio and MuJoCo.

Best through the C++ harness, whose build folders are given with ``--peers`` or in the environment variable
LINKWORK_PEERS (several, separated like PATH): one compiled for this machine, and one compiled like the wheel that pip
installs. Otherwise Pinocchio's Python bindings, if they are installed: then every figure contains the cost of a call
from Python, which is measured and reported.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from linkwork.cli.bench import ACCURACY, relative_errors
from linkwork.constraints import Closure
from linkwork.errors import InputError, KernelError
from linkwork_bench.inputs import Robot
from linkwork_bench.measure import Conditions, Contender, Reading

VARIABLE = "LINKWORK_PEERS"
CHECKED = 200
"""How many states are checked, evenly spread: the same ones on both sides (see `checked_states`)."""

NEAR, MOST = 1.4, 4
"""How near to the fastest in a first measurement an algorithm must be to run in the rounds, and how many do at most."""

LARGEST = 400
"""The most degrees of freedom for Pinocchio: its data has four tensors of their cube, 32 GB for a thousand."""

ALGORITHMS = {
    "rnea": r"rnea",
    "crba": r"crba-(local|world)",
    "aba": r"aba-(local|world)",
    "forward_dynamics": r"aba-(local|world)|(constraintDynamics|pv)-(mu0-1it|mu1e-6-conv)(-LWA)?"
    r"|(constrainedABA|lcaba)-mu1e-6-conv|contactABA-1e6-conv|proxLTLs-1e6-3it",
    "constraintDynamics": r"constraintDynamics-(mu0-1it|mu1e-6-conv)(-LWA)?",
    "delassus": r"computeDelassusMatrix-EFPA|computePvDelassusMatrix-PVOSIMr|crba\+ConstraintCholesky\+OSIMinverse",
}
"""The harness's names of what computes a function exactly or to convergence."""

MUJOCO = {
    "rnea": "kinematics+comPos+comVel+rne",
    "crba": "kinematics+comPos+makeM+factorM",
    "aba": "mj_forward",
    "forward_dynamics": "mj_forward",
    "constraintDynamics": "mj_forward",
}


@dataclass(frozen=True)
class Peer:
    """One algorithm of one library in one build: its worst `error`, and `us` of a first run."""

    role: str
    library: str
    algorithm: str
    contender: Contender
    us: float
    error: float | None = None
    note: str = ""


@dataclass
class Build:
    """A build folder of the harness."""

    folder: Path
    role: str
    flags: str
    _seen: dict[tuple[str, ...], dict[str, Peer]] = field(default_factory=dict)

    @staticmethod
    def at(folder: Path) -> Build:
        if not (folder / "pin_bench").is_file():
            raise InputError(f"'{folder}' is not a build folder of the peers' harness: it has no program pin_bench")
        cache = folder / "CMakeCache.txt"
        flags = re.search(r"^PB_ARCH:\w+=(.*)$", cache.read_text(), re.M) if cache.is_file() else None
        arch = flags.group(1) if flags else "-march=native"
        return Build(folder, "wheel" if "x86-64" in arch else "best", arch)

    @property
    def inputs(self) -> Path | None:
        return self.folder / "inputs" if (self.folder / "inputs").is_dir() else None

    def scout(self, program: str, inputs: Path, robot: str, case: str, host: Host) -> dict[str, Peer]:
        """Every algorithm of a program on a case, checked and measured once."""
        key = (program, robot, case)
        if key not in self._seen:
            binary = self.folder / program
            command = [str(binary), str(inputs), robot, "--case", case]
            glance = ["--check", str(CHECKED), "--budget", "0.003"]
            text = host.run([*command, *glance]) if binary.is_file() else ""
            lines = [line.split(",") for line in text.splitlines()]
            worst = {w[2]: float(w[8]) for w in lines if w[0] == "check"}
            self._seen[key] = {
                w[2]: Peer(
                    self.role,
                    f"{w[1]} {self.flags}".replace("-march=", ""),
                    w[2],
                    Harness(tuple(command), w[2], host),
                    float(w[7]),
                    worst.get(w[2]),
                )
                for w in lines
                if w[0] == "time"
            }
        return self._seen[key]


@dataclass(frozen=True)
class Host:
    """How the harness's programs run: on which core, in which environment (see `measure.processor_time`)."""

    cpu: int | None = None
    environment: Mapping[str, str] | None = None

    def run(self, command: Sequence[str]) -> str:
        on = [] if self.cpu is None else ["--cpu", str(self.cpu)]
        done = subprocess.run([*command, *on], capture_output=True, text=True, check=False, env=self.environment)
        if done.returncode:
            raise KernelError(f"the harness failed: {Path(command[0]).name}: {done.stderr.strip()[-300:]}")
        return done.stdout


class Harness:
    """One algorithm in the harness's own C++ loop; a round is one run of its program."""

    def __init__(self, command: tuple[str, ...], algorithm: str, host: Host) -> None:
        self.command, self.algorithm, self.host = command, algorithm, host

    def round(self, budget: float) -> Reading:
        wall, busy = time.perf_counter(), _children()
        text = self.host.run([*self.command, "--only", self.algorithm, "--check", "0", "--budget", str(budget)])
        share = (_children() - busy) / (time.perf_counter() - wall)
        for line in text.splitlines():
            words = line.split(",")
            if words[0] == "time" and words[2] == self.algorithm:
                return Reading(float(words[7]), share if self.host.environment is None else 1.0)
        raise KernelError(f"the harness did not time '{self.algorithm}'")


@dataclass
class Peers:
    """All available peers; `note` says what is missing. `python`: bindings replace a missing harness."""

    builds: list[Build]
    inputs: Path | None
    note: str = ""
    python: bool = True

    def fastest(self, function: str, robot: Robot, case: str, host: Host) -> list[Peer]:
        """For each role the algorithms that solve the case and may be the fastest, and MuJoCo's.

        A first measurement only excludes what is clearly slower; the rest runs in the rounds, and the fastest there
        counts, as for our own methods.
        """
        if robot.model.nv > LARGEST:
            return []
        if not self.builds or robot.folder is None:
            return python_peers(function, robot, case, host) if self.python else []
        found: list[Peer] = []
        for role in ("best", "wheel"):
            seen = [
                p
                for b in self.builds
                if b.role == role
                for p in b.scout("pin_bench", robot.folder, robot.name, case, host).values()
            ]
            able = [
                p
                for p in seen
                if re.fullmatch(ALGORITHMS[function], p.algorithm) and p.error is not None and p.error <= ACCURACY
            ]
            limit = NEAR * min((p.us for p in able), default=0.0)
            found += sorted((p for p in able if p.us <= limit), key=lambda p: p.us)[:MOST]
        if function in MUJOCO:
            for build in self.builds[:1]:
                seen_too = build.scout("mujoco_bench", robot.folder, robot.name, case, host)
                found += [
                    Peer("mujoco", p.library.split()[0], p.algorithm, p.contender, p.us, None, "soft constraints")
                    for p in seen_too.values()
                    if p.algorithm == MUJOCO[function]
                ]
        return found


def find(folders: Sequence[Path] = ()) -> Peers:
    """The peers in these folders, or in those that the environment names."""
    named = list(folders) or [Path(p) for p in os.environ.get(VARIABLE, "").split(os.pathsep) if p]
    builds = [Build.at(folder) for folder in named]
    inputs = next((b.inputs for b in builds if b.inputs is not None), None)
    if builds and inputs is None:
        raise InputError("none of the peers' build folders has the folder 'inputs' that prepare.py writes")
    if builds:
        absent = "" if any(b.role == "wheel" for b in builds) else "no build like pip's wheel (PB_ARCH=-march=x86-64)"
        return Peers(builds, inputs, absent)
    how = f"give the harness's build folders with --peers or in {VARIABLE} for their C++"
    try:
        import pinocchio
    except ImportError:
        return Peers([], None, f"no peers here, only our own figures: install 'linkwork[bench]', or {how}")
    return Peers([], None, f"Pinocchio {pinocchio.__version__} through its Python bindings, calls included; {how}")


def python_peers(function: str, robot: Robot, case: str, host: Host) -> list[Peer]:
    """Pinocchio's Python bindings on the same tree and states.

    Nothing without them, or if it lacks the constraints.
    """
    try:
        import pinocchio as pin
    except ImportError:
        return []
    closures = all(isinstance(c, Closure) and c.joint in ("spherical", "fixed") for c in robot.cases[case])
    if function not in ALGORITHMS or not closures:
        return []
    from linkwork.interop.pinocchio_ import to_pinocchio

    model = to_pinocchio(robot.model)
    data = model.createData()
    states = list(zip(robot.q, robot.v, robot.tau, strict=True))[:256]
    calls = {
        "rnea": lambda q, v, tau: pin.rnea(model, data, q, v, tau),
        "crba": lambda q, v, tau: pin.crba(model, data, q),
        "aba": lambda q, v, tau: pin.aba(model, data, q, v, tau),
    }
    name, call = function, calls.get(function)
    if function in ("forward_dynamics", "constraintDynamics"):
        name, call = (
            ("constraintDynamics", _constraint_dynamics(pin, model, data, robot, case))
            if robot.cases[case]
            else ("aba", calls["aba"])
        )
    if call is None:
        return []
    error = None
    if name in ("aba", "constraintDynamics"):
        error = float(np.max(relative_errors(np.array([call(*s) for s in states[:20]]), robot.reference(case)[:20])))
        if error > ACCURACY:
            return []
    nothing, hollow = pin.Model(), np.zeros(0)
    empty = nothing.createData()
    conditions = Conditions(host.cpu, processor_time=host.environment is not None)
    idle = _Loop(lambda *_: pin.aba(nothing, empty, hollow, hollow, hollow), states, conditions)
    note = f"Python bindings: a call alone takes {idle.round(0.02).us:.2f} us"
    loop = _Loop(call, states, conditions)
    return [Peer("python", f"pinocchio-{pin.__version__} Python", name, loop, loop.round(0.003).us, error, note)]


class _Loop:
    """A Python loop over states."""

    def __init__(
        self, call: Callable[..., Any], states: Sequence[tuple[np.ndarray, ...]], conditions: Conditions
    ) -> None:
        self.call, self.states, self.conditions = call, states, conditions

    def round(self, budget: float) -> Reading:
        def run() -> None:
            for state in self.states:
                self.call(*state)

        return self.conditions.passes(run, len(self.states), budget)


def _constraint_dynamics(pin: Any, model: Any, data: Any, robot: Robot, case: str) -> Callable[..., Any]:
    from linkwork.interop.pinocchio_ import _se3

    contacts, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for c in robot.constrained(case).constraints:
        kind = {3: pin.ContactType.CONTACT_3D, 6: pin.ContactType.CONTACT_6D}[c.rows]
        ends = [robot.model.frame(name) for name in (c.a, c.b)]  # type: ignore[attr-defined]
        sides = [x for f in ends for x in (f.link, _se3(pin, f.placement))]
        contacts.append(pin.RigidConstraintModel(kind, model, *sides, pin.ReferenceFrame.LOCAL))
        datas.append(contacts[-1].createData())
    pin.initConstraintDynamics(model, data, contacts, datas)
    settings = pin.ProximalSettings(1e-10, 1e-6, 10)
    return lambda q, v, tau: pin.constraintDynamics(model, data, q, v, tau, contacts, datas, settings)


def checked_states(states: int) -> list[int]:
    """The states that the harness checks."""
    return [k * states // CHECKED for k in range(CHECKED)] if states > CHECKED else list(range(states))


def _children() -> float:
    """Seconds of processor time of the programs that were run so far."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
