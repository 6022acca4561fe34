"""Geared robots: cluster methods beside projection and Lagrange multipliers (chignoli2023).

Tables II to IV of the paper have overheads in time over the cluster method; `PAPER` has them, and our table sets them
beside ours, in operations and in time. Also measured: the cost of exact rotors against Pinocchio's `aba` of the same
robot without them, and how methods grow with the number of links (fig. 11 and 13).
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

import linkwork as lw
from linkwork.errors import LinkworkError, NotFound, not_found
from linkwork.functions.function import Function
from linkwork.model import Model
from linkwork.robots import mechanisms as mech
from linkwork.robots.tello import tello
from linkwork_bench.inputs import Robot, read_robot
from linkwork_bench.loops import CASE, model_text, states
from linkwork_bench.ours import Entry
from linkwork_bench.peers import Peers
from linkwork_bench.records import Record
from linkwork_bench.suites import Job, errors

SUITE, GROWTH = "clusters", "growth"
ROBOTS: dict[str, tuple[Callable[[], Model], tuple[str, ...]]] = {
    "gears12": (partial(mech.geared_chain, 12), ("tip",)),
    "belts12": (partial(mech.belt_chain, 12), ("tip",)),
    "mini_cheetah": (partial(lw.load, "mini_cheetah"), tuple(f"{x}_knee_link" for x in ("FL", "FR", "HL", "HR"))),
    "mit_humanoid": (partial(lw.load, "mit_humanoid"), ("left_ankle_link", "right_ankle_link")),
    "tello": (tello, ("left-foot", "right-foot")),
    "jvrc1_humanoid": (partial(lw.load, "jvrc1_humanoid"), ("left-ankle-pitch", "right-ankle-pitch")),
}
"""The paper's robots, and the links on whose contacts the Delassus matrix is."""

PAPER = {
    "projected_rnea": (38.0, 37.8, 36.7, 35.9, 22.4, 36.6),
    "projection": (86.8, 73.5, 21.0, 32.5, 22.2, 87.3),
    "lagrange": (133.1, 119.8, 76.3, 106.2, 82.7, 212.8),
    "projected_efpa": (51.8, 6.3, 19.0, 23.2, 7.8, 107.4),
}
"""Overheads of the references over the cluster methods in the paper, %, robot by robot."""

CHAINS = {"gears": mech.geared_chain, "belts": mech.belt_chain}
SIZES, FEW_SIZES = (2, 4, 8, 12, 16, 20, 24), (2, 6, 12, 24)
STANDING = ("c_aba", "c_lcaba", "c_prox_bbo", "lcaba", "prox_bbo", "prox_ltl")
HANDS = {
    "mit_humanoid": ("left_elbow_link", "right_elbow_link"),
    "tello": ("left-elbow", "right-elbow"),
    "jvrc1_humanoid": ("left-wrist-yaw", "right-wrist-yaw"),
}


def jobs(names: Sequence[str], peers: Peers, folder: Path, quick: bool) -> list[Job]:
    """All measurements; robots whose files are missing are left out unless they are asked for."""
    for name in names:
        if name not in ROBOTS:
            raise not_found("robot of this suite", name, ROBOTS)
    out: list[Job] = []
    for name in names or ROBOTS:
        make, feet = ROBOTS[name]
        try:
            model = make()
        except NotFound:
            if names:
                raise
            continue
        robot = geared(name, model)
        out += [
            inverse_job(robot),
            forward_job(robot, "forward", (), ("c_aba", "projection", "lagrange")),
            delassus_job(robot, feet),
        ]
        if name in HANDS or name == "mini_cheetah":
            contact = lw.point if name == "mini_cheetah" else lw.surface
            standing = [contact(f) for f in feet]
            out.append(forward_job(robot, "standing", standing, STANDING))
            if name in HANDS:
                out.append(forward_job(robot, "holding hands", [*standing, lw.Weld(*HANDS[name])], STANDING))
            out += rotors_job(robot, peers, folder)
    if not names:
        for kind, chain in CHAINS.items():
            for n in FEW_SIZES if quick else SIZES:
                robot = geared(f"{kind}{n}", chain(n))
                out.append(
                    replace(
                        forward_job(robot, str(n), (), ("c_aba", "projection", "lagrange")),
                        suite=GROWTH,
                        function=f"{kind} forward",
                    )
                )
                out.append(
                    replace(
                        delassus_job(robot, ("tip",), str(n)),
                        suite=GROWTH,
                        function=f"{kind} delassus",
                        methods=("c_efpa", "projected_efpa"),
                    )
                )
    return out


def geared(name: str, model: Model) -> Robot:
    """The robot with its gears, states that they allow, and joint forces."""
    x = states(model)
    q, v, tau = (np.ascontiguousarray(y) for y in np.split(x, [model.nq, model.nq + model.nv], axis=1))
    return Robot(name, model, {}, q, v, tau)


def in_case(robot: Robot, case: str, constraints: Sequence[Any]) -> Robot:
    return replace(robot, cases={case: tuple(constraints)})


def forward_job(robot: Robot, case: str, constraints: Sequence[Any], methods: tuple[str, ...]) -> Job:
    """Forward dynamics, with contacts and long loops besides gears or without; checked against `kkt`."""
    at = in_case(robot, case, constraints)
    model = at.constrained(case)
    reference = cache(lambda: at.reference(case))
    return Job(
        SUITE,
        case,
        at,
        case,
        methods,
        ("latency", "batch"),
        partial(_make, lw.forward_dynamics, model),
        lambda method, function: Entry(
            method, function, (at.q, at.v, at.tau), lambda out, kernel: errors(out[0], reference())
        ),
    )


def inverse_job(robot: Robot) -> Job:
    """Forces of the independent joints; judged by those that caused the accelerations, by `kkt`."""
    at, tree = in_case(robot, "inverse", ()), lw.clusters(robot.model)
    tau = np.where(np.isin(np.arange(robot.model.nv), tree.velocities), robot.tau, 0.0)
    caused = cache(lambda: replace(at, tau=tau).reference("inverse"))
    return Job(
        SUITE,
        "inverse",
        at,
        "inverse",
        ("c_rnea", "projected_rnea"),
        ("latency", "batch"),
        partial(_make, lw.inverse_dynamics, robot.model),
        lambda method, function: Entry(
            method, function, (at.q, at.v, caused()), lambda out, kernel: errors(out[0], tau)
        ),
    )


def delassus_job(robot: Robot, feet: Sequence[str], case: str = "delassus") -> Job:
    """The Delassus matrix of contacts of six rows; judged by dense algebra with gears as rows."""
    at = in_case(robot, case, [lw.surface(f) for f in feet])
    model = at.constrained(case)
    outer = np.repeat(
        np.isin(np.arange(len(model.constraints)), lw.clusters(model).outer), [c.rows for c in model.constraints]
    )

    @cache
    def reference() -> np.ndarray:
        J, M = lw.constraint_jacobian(model)(at.q)[0], lw.mass_matrix(model)(at.q)[0]
        whole = J @ np.linalg.solve(M, J.transpose(0, 2, 1))
        L, C, E = whole[:, outer][:, :, outer], whole[:, outer][:, :, ~outer], whole[:, ~outer][:, :, ~outer]
        return np.asarray(L - C @ np.linalg.solve(E, C.transpose(0, 2, 1)))

    return Job(
        SUITE,
        "delassus",
        at,
        case,
        ("c_efpa", "c_pv", "projected_efpa", "projection"),
        ("latency", "batch"),
        partial(_make, lw.delassus, model),
        lambda method, function: Entry(method, function, (at.q,), lambda out, kernel: errors(out[0], reference())),
    )


def rotors_job(robot: Robot, peers: Peers, folder: Path) -> list[Job]:
    """`c_aba` with rotors beside Pinocchio's and our `aba` of the tree without them.

    Nothing without the harness.
    """
    if not peers.builds:
        return []
    try:
        bare = lw.approximate(robot.model, reflected=False)
        text = model_text(robot.name, bare)
    except LinkworkError:
        return []  # differentials: no tree is left without them
    (folder / f"{robot.name}.model").write_text(text)
    states(bare).astype("<f8").tofile(folder / f"{robot.name}.states")
    subprocess.run(
        [str(peers.builds[0].folder / "pin_reference"), str(folder), robot.name], capture_output=True, check=False
    )
    plain = read_robot(folder, robot.name)
    bare_a = cache(lambda: plain.reference(CASE))
    geared_a = cache(lambda: in_case(robot, CASE, ()).reference(CASE))
    sides = {"c_aba": (robot, robot.model, geared_a), "aba": (plain, plain.model, bare_a)}

    def entry(method: str, function: Function) -> Entry:
        side, _, reference = sides[method]
        return Entry(method, function, (side.q, side.v, side.tau), lambda out, kernel: errors(out[0], reference()))

    return [
        Job(
            SUITE,
            "aba",
            plain,
            CASE,
            ("c_aba", "aba"),
            ("latency", "batch"),
            lambda method: lw.forward_dynamics(sides[method][1], method=method),
            entry,
        )
    ]


def _make(factory: Callable[..., Function], model: Model, method: str) -> Function:
    return factory(model, method=method)


def table(records: Sequence[Record]) -> RenderableType:
    """Overheads over the cluster method beside the paper's; rotors against none; exponents of growth."""
    measured = [r for r in records if r.suite == SUITE]
    main = Table(
        title="geared robots: operations, us per state, and overheads over the cluster method",
        title_justify="left",
        caption="An iterative method's operations are those up to its first solution. "
        "The paper's figures are times of its C++ library on an M1.",
        caption_justify="left",
    )
    for head in ("robot", "case", "method", "operations", "+%", "one state", "+%", "batch", "+%", "paper +%"):
        main.add_column(head, justify="left" if head in ("robot", "case", "method") else "right", no_wrap=True)
    cases = dict.fromkeys((r.robot, r.function) for r in measured if r.function != "aba")
    for robot, function in cases:
        group = {(r.method, r.measure): r for r in measured if (r.robot, r.function) == (robot, function) and r.samples}
        methods = list(dict.fromkeys(m for m, _ in group))
        for method in methods:
            cells = [_count(group, method), _over(_count, group, method, methods[0])]
            for measure in ("latency", "batch"):
                us = partial(_us, measure)
                cells += [us(group, method), _over(us, group, method, methods[0])]
            main.add_row(escape(robot), function, method, *(_shown(c) for c in cells), _paper(robot, function, method))
    parts: list[RenderableType] = [main] if cases else []
    if exact := [r for r in measured if r.function == "aba" and r.samples]:
        parts.append(_rotors(exact))
    if growth := [r for r in records if r.suite == GROWTH and r.samples]:
        parts.append(_growth(growth))
    timed = [r for r in records if r.shares]
    if doubt := sum(r.disturbed for r in timed):
        parts.append(f"[yellow]{doubt} of {len(timed)} figures had to share their core with other work: in doubt[/]")
    parts += [
        f"[yellow]{escape(f'{r.robot} {r.function} {r.method} ({r.measure}): {r.note}')}[/]"
        for r in records
        if not r.samples and r.note
    ]
    return Group(*parts)


Group_ = dict[tuple[str, str], Record]


def _count(group: Group_, method: str) -> float | None:
    r = group.get((method, "latency"))
    return None if r is None or r.operations is None else float(r.operations)


def _us(measure: str, group: Group_, method: str) -> float | None:
    r = group.get((method, measure))
    return None if r is None else r.us


def _over(figure: Callable[[Group_, str], float | None], group: Group_, method: str, base: str) -> float | None:
    a, b = figure(group, method), figure(group, base)
    return None if a is None or not b or method == base else round(100 * (a / b - 1))


def _shown(x: float | None) -> str:
    return "" if x is None else f"{x:.0f}" if x == round(x) else f"{x:.3f}"


def _paper(robot: str, function: str, method: str) -> str:
    known = {"inverse": ("projected_rnea",), "forward": ("projection", "lagrange"), "delassus": ("projected_efpa",)}
    return f"{PAPER[method][list(ROBOTS).index(robot)]:.0f}" if method in known.get(function, ()) else ""


def _rotors(records: Sequence[Record]) -> Table:
    out = Table(title="exact rotors (ours) against none (theirs): us per state and ratios", title_justify="left")
    for head in ("robot", "Pinocchio aba", "build", "our aba", "c_aba", "x", "c_aba batch", "x"):
        out.add_column(head, justify="left" if head in ("robot", "build") else "right")
    for robot in dict.fromkeys(r.robot for r in records):
        here = [r for r in records if r.robot == robot]
        ours = {(r.method, r.measure): r.us for r in here if r.role == "ours"}
        for role in ("best", "wheel"):
            if theirs := min((r for r in here if r.role == role), key=lambda r: r.us, default=None):
                one, batch = ours["c_aba", "latency"], ours["c_aba", "batch"]
                out.add_row(
                    escape(robot),
                    f"{theirs.us:.2f}",
                    theirs.library,
                    f"{ours['aba', 'latency']:.2f}",
                    f"{one:.2f}",
                    f"{theirs.us / one:.1f}",
                    f"{batch:.3f}",
                    f"{theirs.us / batch:.1f}",
                )
    return out


def _growth(records: Sequence[Record]) -> Table:
    """The degree of the polynomial of counts, and exponents p of n^p through eight and more links.

    Up to 24 links the lower powers of a cubic still weigh as much as n^3, so its exponent is between 2 and 3.
    """
    out = Table(title="growth with the number of links: exponents from 8 (quick: 6) links on", title_justify="left")
    for head in ("chain", "method", "degree", "operations", "one state", "batch", "us at most links"):
        out.add_column(head, justify="left" if head in ("chain", "method") else "right")
    for function, method in dict.fromkeys((r.function, r.method) for r in records):
        by = {
            m: {int(r.case): r for r in records if (r.function, r.method, r.measure) == (function, method, m)}
            for m in ("latency", "batch")
        }
        ops = {n: float(r.operations or 0) for n, r in by["latency"].items()}
        us = [{n: r.us for n, r in by[m].items()} for m in ("latency", "batch")]
        exponents = (f"{exponent(x):.2f}" for x in (ops, *us))
        out.add_row(function, method, degree(ops), *exponents, f"{us[0][max(us[0])]:.2f}")
    return out


def degree(counts: dict[int, float]) -> str:
    """The degree of the polynomial through counts at evenly spaced sizes, if it is one.

    It is d if the differences of order d are all the same and not zero; there must be two of them to say so.
    """
    differences = np.array([counts[n] for n in sorted(counts) if n >= 8 and n % 4 == 0])
    for d in range(len(differences) - 1):
        if np.ptp(differences) == 0:
            return str(d)
        differences = np.diff(differences)
    return "?"


def exponent(figures: dict[int, float]) -> float:
    """p of the line p log n + c through figures by number of links, of six or more."""
    n = np.array([k for k in figures if k >= 6], dtype=float)
    y = np.log([figures[int(k)] for k in n])
    return float(np.polyfit(np.log(n), y, 1)[0]) if len(n) > 1 else float("nan")
