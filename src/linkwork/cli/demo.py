"""`linkwork demo`: a humanoid stands, one squats on four-bar legs, one is pushed, quadrupeds fall."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

import linkwork as lw
from linkwork.algorithms import registry
from linkwork.cli.arguments import table_of, terminal
from linkwork.cli.falling import show_fall
from linkwork.cli.pushed import show_push
from linkwork.cli.solve import residuals_of, show_solution
from linkwork.model import Model
from linkwork.robots.mechanisms import humanoid, standing

TIMED = 3
"""How many methods are compiled and timed: those with the fewest operations."""


def demo_command(
    html: Annotated[Path, typer.Option(help="Where the replay of the squatting goes.")] = Path("out/squat.html"),
) -> None:
    """Load the embedded humanoid, stand it on two feet, solve its constrained dynamics.

    Let it squat, and film it; push it, and let it recover; then a thousand quadrupeds fall onto the ground.
    """
    console = terminal()
    model = humanoid(hands=False)
    model = model.with_constraints(lw.surface("left_foot"), lw.surface("right_foot"))
    state = {"q": standing(model), "v": np.zeros(model.nv), "tau": np.zeros(model.nv)}
    console.print(f"{model!r}\nstanding on two feet, joints limp:")
    fd = lw.forward_dynamics(model, method="kkt", backend="numpy")
    a, lam = fd(**state)
    show_solution(model, fd.method, a, lam, residuals_of(model, state, a, lam))
    free = lw.forward_dynamics(model.without_constraints())
    console.print(
        f"compiled without contacts: {free.operations} operations, {free.method}; "
        f"a = {np.array2string(free(**state).a[:6], precision=3, suppress_small=True)} ... for the base"
    )
    run = show_squat(console)
    show_methods(console)
    write_replay(console, run, html)
    show_push(console, html.with_name("pushed.html"))
    show_fall(console, html.with_name("falling.html"))


def squatting_humanoid() -> tuple[Model, np.ndarray, Callable[[float, np.ndarray, np.ndarray], np.ndarray]]:
    """The model on two feet, where it starts, and the controller that makes it squat every two seconds.

    The controller is PD in every motor: stiff and well damped in legs and waist, soft in the arms.
    """
    model = humanoid(hands=False, four_bar_legs=True)
    model = model.with_constraints(lw.surface("left_foot"), lw.surface("right_foot"))
    up, down = standing(model, 0.15), standing(model, 0.7)
    t = model.topology
    motors = [i for i in t.links if model.links[i].actuated and model.links[i].joint.nv == 1]
    at, to = [t.v_slices[i].start for i in motors], [t.q_slices[i].start for i in motors]
    effort = np.array([model.links[i].limits.effort for i in motors])
    stiff = np.array(
        [any(word in model.links[i].joint_name for word in ("hip", "crank", "ankle", "waist")) for i in motors]
    )
    kp, kd = effort * np.where(stiff, 12.0, 1.0), effort * np.where(stiff, 0.6, 0.03)

    def controller(time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        share = (1 - np.cos(np.pi * time)) / 2
        target = (1 - share) * up[to] + share * down[to]
        tau = np.zeros(model.nv)
        tau[at] = kp * (target - q[to]) - kd * v[at]
        return tau

    return model, up, controller


def show_squat(console: Console) -> lw.Trajectory:
    """Two seconds of squatting, as a table."""
    model, q0, controller = squatting_humanoid()
    console.print(f"\n{model!r}\na four-bar linkage in each leg; squatting under PD control, contacts unilateral:")
    started = time.perf_counter()
    run = lw.simulate(model, q0, None, controller, duration=2.0, ground=0.0, projection=True)
    seconds = time.perf_counter() - started
    loops = model.without_constraints().with_constraints(*model.constraints[:2])
    gaps = np.abs(lw.constraint_error(loops, backend="numpy")(run.q[::20], run.v[::20]).phi)
    headings = ("t [s]", "pelvis height [m]", "knee [rad]", "crank torque [Nm]", "left foot carries [N]")
    title = f"2 s simulated in {seconds:.1f} s (compiling included), 1 ms steps"
    table = table_of(title, *headings, right=headings)
    height, carries = run.q[:, 2], run.column("lam", "left_foot~world[2]")
    knee, crank = run.column("q", "left_knee"), run.column("tau", "left_crank")
    for k in range(0, len(run), 200):
        table.add_row(f"{run.t[k]:.1f}", f"{height[k]:.3f}", f"{knee[k]:.3f}", f"{crank[k]:.1f}", f"{carries[k]:.0f}")
    console.print(table)
    console.print(f"loops closed within {gaps.max():.1e} (m, rad); {len(run.events)} contacts changed")
    return run


def write_replay(console: Console, run: lw.Trajectory, path: Path) -> None:
    """The squatting as a page for the browser."""
    model, _, _ = squatting_humanoid()
    path.parent.mkdir(parents=True, exist_ok=True)
    lw.write_html(path, model, run, title="Humanoid with four-bar legs, squatting")
    size = path.stat().st_size / 1e6
    console.print(
        f"\nwatch it: open {path.resolve()} in a browser ({size:.2f} MB, needs no network)",
        highlight=False,
        soft_wrap=True,
    )


def show_methods(console: Console) -> None:
    """Every method that can solve the squatting humanoid: operations, and times of the best."""
    model, q0, _ = squatting_humanoid()
    able = [
        m
        for m in registry.methods("forward_dynamics").values()
        if m.refusal(model) is None and m.redundant and not m.reference
    ]
    functions = {m.name: lw.forward_dynamics(model, method=m.name, threads=1) for m in able}
    counts = {
        name: (fd.operations, getattr(getattr(fd.program, "iterate", None), "operations", 0))
        for name, fd in functions.items()
    }
    best = sorted(counts, key=lambda name: sum(counts[name]))[:TIMED]
    headings = ("method", "first solve [operations]", "each further one", "us per state, one core")
    title = "its constrained dynamics, method by method (22 rows, 6 of them redundant)"
    table = table_of(title, *headings, right=headings[1:])
    for name in sorted(counts, key=lambda name: sum(counts[name])):
        took = f"{microseconds(functions[name], q0):.2f}" if name in best else ""
        table.add_row(name, str(counts[name][0]), str(counts[name][1]), took)
    console.print(table)


def microseconds(fd: Any, q0: np.ndarray, batch: int = 256) -> float:
    """The time for one state of a batch, by a kernel on buffers of its own."""
    bound = fd.bind(batch)
    bound.inputs.q[:] = q0
    bound()
    times = []
    for _ in range(10):
        started = time.perf_counter()
        bound()
        times.append(time.perf_counter() - started)
    return min(times) / batch * 1e6
