"""The command line: look at a robot, solve one state, simulate, export C, manage the cache, see the demo."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

import linkwork as lw
from linkwork.algorithms import registry
from linkwork.cli.arguments import (
    BaseOption,
    ConnectOption,
    ContactOption,
    FileArg,
    JsonOption,
    constrained,
    load_robot,
    numbers,
    print_json,
    printable,
    terminal,
)
from linkwork.cli.bench import bench_app
from linkwork.cli.simulate import simulate_command
from linkwork.cli.view import view_command
from linkwork.errors import InputError, LinkworkError, not_found
from linkwork.model import Model
from linkwork.planner.plan import USES, Plan
from linkwork.structure.elimination import coupled_links, loop_roots, ordered, picture
from linkwork.structure.local_loops import local_loops
from linkwork.structure.pivots import chosen

app = typer.Typer(
    help="Constrained rigid-body dynamics, compiled for your robot.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
cache_app = typer.Typer(help="The disk cache of compiled kernels.", no_args_is_help=True)
app.add_typer(cache_app, name="cache")
app.command("simulate")(simulate_command)
app.command("view")(view_command)
app.add_typer(bench_app, name="bench")
console = terminal()


@app.command()
def info(file: FileArg, base: BaseOption = None, as_json: JsonOption = False) -> None:
    """Show links, joints, degrees of freedom, loops, couplings and mass of a robot."""
    model = load_robot(file, base)
    facts = {
        "name": model.name,
        "nq": model.nq,
        "nv": model.nv,
        "links": model.nlinks,
        "depth": max(model.topology.depth),
        "mass": model.mass,
        "constraint_rows": model.rows,
    }
    links = [
        {
            "index": i,
            "link": l.name,
            "parent": model.links[l.parent].name,
            "joint": l.joint_name,
            "type": l.joint.kind,
            "q": [model.topology.q_slices[i].start, model.topology.q_slices[i].stop],
            "v": [model.topology.v_slices[i].start, model.topology.v_slices[i].stop],
            "mass": l.inertia.mass,
            "armature": l.armature.tolist(),
        }
        for i, l in enumerate(model.links)
        if i
    ]
    order = ordered(model.topology, coupled_links(model))
    roots = loop_roots(model, coupled_links(model), [c.rows for c in model.constraints])
    constraints = [
        {"name": c.name, "what": c.describe(), "rows": c.rows, "loop_root": model.links[r].name}
        for c, r in zip(model.constraints, roots, strict=True)
    ]
    if as_json:
        elimination = {
            "order": [model.links[i].name for i in order.order],
            "cut_joints": len(model.constraints),
            "most_neighbours": order.most_neighbours,
        }
        print_json(
            {
                **facts,
                "frames": sorted(model.frames),
                "joints": links,
                "constraints": constraints,
                "elimination": elimination,
            }
        )
        return
    size = f"{model.nlinks} links, nq {model.nq}, nv {model.nv}, depth {facts['depth']}"
    title = f"{model.name}: {size}, {model.mass:.4g} kg"
    table = Table(title=title)
    for heading in ("#", "link", "parent", "joint", "type", "q", "v", "mass [kg]"):
        table.add_column(heading, justify="right" if heading in ("#", "q", "v", "mass [kg]") else "left")
    for row in links:
        index = [_span(row[k]) for k in ("q", "v")]
        table.add_row(
            str(row["index"]),
            str(row["link"]),
            str(row["parent"]),
            str(row["joint"]),
            str(row["type"]),
            *index,
            f"{row['mass']:.4g}",
        )
    console.print(table)
    if constraints:
        table = Table(title=f"{len(constraints)} constraints, {model.rows} rows")
        for heading in ("name", "what", "rows", "loop root"):
            table.add_column(heading)
        for c in constraints:
            table.add_row(*(str(x) for x in c.values()))
        console.print(table)
        console.print(
            f"order of elimination (-> parent, ~ neighbours): {len(constraints)} cut joints, "
            f"at most {order.most_neighbours} neighbours"
        )
        console.print(picture(model, order), highlight=False)


@app.command("plan")
def plan_command(
    file: Annotated[str | None, typer.Argument(help="A robot file or an installed robot's name.")] = None,
    base: BaseOption = None,
    contact: ContactOption = None,
    connect: ConnectOption = None,
    task: Annotated[str, typer.Option(help="forward_dynamics or delassus.")] = "forward_dynamics",
    use: Annotated[str, typer.Option(help="state (one at a time) or batch.")] = "state",
    independent: Annotated[
        bool,
        typer.Option(
            "--independent",
            help="Promise that rows are never redundant and postures never singular: direct methods "
            "and clusters of linkages count too.",
        ),
    ] = False,
    modes: Annotated[bool, typer.Option("--modes", help="Constraints are switched at run time.")] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Compile and time the methods that come near the best; the quickest is remembered, and used "
            "from then on where no method is named.",
        ),
    ] = False,
    cuts: Annotated[
        bool, typer.Option("--cuts", help="Search the joints of an SDF file's loops for those to cut, too.")
    ] = False,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Measure some twenty kernels on this machine first (a minute or two) and keep what "
            "operations cost on it.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Which algorithm for this robot, and why: exact operation counts and predicted times of all of them."""
    if calibrate:
        from linkwork.planner.cost import remember_machine
        from linkwork.simulation.progress import bar
        from linkwork_bench import planning

        with bar(None, "measuring kernels", len(planning.SAMPLES)) as tick:
            fitted, off = planning.calibrate(tick)
        remember_machine(fitted)
        console.print(
            f"fitted to this machine: predictions are off by {100 * off:.0f} % (root mean square)", highlight=False
        )
    if file is None:
        if calibrate:
            return
        raise InputError("a robot file or name is needed, or --calibrate")
    cut = _best_cuts(file, base, use, independent) if cuts else ()
    model = constrained(load_robot(file, base, cut), contact, connect)
    made = lw.plan(model, task, use=use, independent=independent, modes=modes, measure=measure)
    order = ordered(model.topology, coupled_links(model))
    inside = [[model.links[i].name for i in links] for links, _ in local_loops(model)]
    if as_json:
        print_json(
            {
                "model": model.name,
                "task": task,
                "use": use,
                "method": made.method,
                "clusters": inside,
                "elimination": [model.links[i].name for i in order.order],
                "candidates": [{k: x for k, x in asdict(c).items() if x != float("inf")} for c in made.candidates],
            }
        )
        return
    console.print(_plan_table(made))
    for c in made.candidates:
        if not c.possible:
            console.print(f"  {c.method}: {c.why_not}", style="dim", highlight=False)
    if inside:
        console.print(f"local loops: {'; '.join(', '.join(names) for names in inside)}", highlight=False)
    if made.method in ("mixed", "c_mixed"):
        mix = chosen(model, "loops" if made.method == "c_mixed" else "nothing" if modes else "couplings")
        name = [c.name for c in model.constraints]
        ends = [f"{name[c]} ({model.links[i].name})" for c, i in mix.ends.items()]
        for what, of in (
            ("embedded", [name[c] for c in sorted(mix.embedded)]),
            ("penalised", [name[c] for c in sorted(mix.penalised)]),
            ("carried (to the link)", ends),
        ):
            if of:
                console.print(f"{what}: {', '.join(of)}", highlight=False)
    if any(order.neighbours.values()):
        console.print(f"order of elimination (-> parent, ~ neighbours), at most {order.most_neighbours} neighbours:")
        console.print(picture(model, order), highlight=False)


def _best_cuts(file: str, base: str | None, use: str, independent: bool) -> tuple[str, ...]:
    """The joints to cut, and what that gains, said."""
    found = lw.best_cuts(file, base=base, use=use, independent=independent)
    gain = (
        f"{100 * (1 - found.us / found.rule):.0f} % quicker than where the rule cuts"
        if found.us < found.rule
        else ("where the rule cuts, nothing is quicker")
    )
    console.print(f"cut={list(found.joints)}: {gain}" if found.joints else "there are no loops to cut", highlight=False)
    return found.joints


def _plan_table(made: Plan) -> Table:
    how = "one state at a time" if made.use == "state" else "batches"
    table = Table(title=f"{made.task.replace('_', ' ')} of {made.model} for {how}: {made.method}")
    headings = ["method", "operations", "each iteration", "solves", "state us", "batch us"]
    uses = USES if made.measured else ()
    for heading in (*headings, *(f"measured, {use}" for use in uses)):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for c in made.candidates:
        if c.possible:
            loop = (str(c.again), f"{c.solves:g}") if c.again else ("", "")
            seen = [f"{c.measured[use]:.4f}" if use in c.measured else "-" for use in uses]
            table.add_row(c.method, str(c.operations), *loop, f"{c.state:.3f}", f"{c.batch:.4f}", *seen)
    return table


@app.command()
def solve(
    file: FileArg,
    base: BaseOption = None,
    method: Annotated[str | None, typer.Option(help="A forward dynamics method; default: Linkwork's choice.")] = None,
    backend: Annotated[str, typer.Option(help="numpy, casadi or kernel.")] = "numpy",
    contact: ContactOption = None,
    connect: ConnectOption = None,
    q: Annotated[str | None, typer.Option(help="Positions, comma-separated (quaternions x,y,z,w).")] = None,
    v: Annotated[str | None, typer.Option(help="Velocities, comma-separated.")] = None,
    tau: Annotated[str | None, typer.Option(help="Joint forces, comma-separated.")] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Random q, v and tau from this seed where none is given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve the constrained forward dynamics of one state and show accelerations, forces and residuals."""
    model = constrained(load_robot(file, base), contact, connect)
    rng = np.random.default_rng(seed)
    state = {
        "q": numbers("q", q, model.nq, model.neutral() if seed is None else model.random_q(rng)),
        "v": numbers("v", v, model.nv, np.zeros(model.nv) if seed is None else rng.uniform(-1, 1, model.nv)),
        "tau": numbers("tau", tau, model.nv, np.zeros(model.nv) if seed is None else rng.uniform(-1, 1, model.nv)),
    }
    fd = lw.forward_dynamics(model, method=method, backend=backend)
    a, lam = fd(**state)
    residuals = _residuals(model, state, a, lam)
    if as_json:
        print_json(
            {
                "method": fd.method,
                "a": a.tolist(),
                "lam": lam.tolist(),
                **residuals,
                **{k: x.tolist() for k, x in state.items()},
            }
        )
        return
    _show_solution(model, fd.method, a, lam, residuals)


@app.command()
def export(
    file: FileArg,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for the C files.")],
    base: BaseOption = None,
    function: Annotated[str, typer.Option(help="forward_dynamics, inverse_dynamics, mass_matrix")] = "forward_dynamics",
    method: Annotated[str | None, typer.Option(help="A method of that function; default: Linkwork's choice.")] = None,
    contact: ContactOption = None,
    connect: ConnectOption = None,
) -> None:
    """Write a dynamics function as standalone C99, with a header and a CMakeLists.txt."""
    model = constrained(load_robot(file, base), contact, connect)
    factories: dict[str, Any] = {
        "forward_dynamics": lw.forward_dynamics,
        "inverse_dynamics": lw.inverse_dynamics,
        "mass_matrix": lw.mass_matrix,
    }
    if function not in factories:
        raise not_found("function to export", function, factories)
    options = {} if method is None else {"method": method}
    made = factories[function](model, **options)
    for path in made.export(output):
        console.print(printable(path))


@app.command()
def methods(as_json: JsonOption = False) -> None:
    """List every method: what it computes, its source, its cost."""
    rows = [
        {"task": m.task, "method": m.name, "what": m.summary, "source": m.source, "cost": m.cost, "rows": m.rows}
        for m in registry.METHODS
    ]
    if as_json:
        print_json(rows)
        return
    table = Table()
    for heading in rows[0]:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row.values())
    console.print(table)


@app.command()
def demo(
    html: Annotated[Path, typer.Option(help="Where the replay of the squatting goes.")] = Path("out/squat.html"),
) -> None:
    """Load the embedded humanoid, stand it on two feet, solve its constrained dynamics; let it squat, and film it."""
    from linkwork.cli.demo import show_methods, show_squat, write_replay
    from linkwork.robots.mechanisms import humanoid, standing

    model = humanoid(hands=False)
    model = model.with_constraints(lw.surface("left_foot"), lw.surface("right_foot"))
    state = {"q": standing(model), "v": np.zeros(model.nv), "tau": np.zeros(model.nv)}
    console.print(f"{model!r}\nstanding on two feet, joints limp:")
    fd = lw.forward_dynamics(model, method="kkt", backend="numpy")
    a, lam = fd(**state)
    _show_solution(model, fd.method, a, lam, _residuals(model, state, a, lam))
    free = lw.forward_dynamics(model.without_constraints())
    console.print(
        f"compiled without contacts: {free.operations} operations, {free.method}; "
        f"a = {np.array2string(free(**state).a[:6], precision=3, suppress_small=True)} ... for the base"
    )
    run = show_squat(console)
    show_methods(console)
    write_replay(console, run, html)


@cache_app.command("info")
def cache_info(as_json: JsonOption = False) -> None:
    """Where the cache is, how many kernels it holds and how large it is."""
    from linkwork.kernels import cache

    facts = {k: str(x) if isinstance(x, Path) else x for k, x in cache.info()._asdict().items()}
    if as_json:
        print_json(facts)
        return
    for key, value in facts.items():
        console.print(f"{key}: {value}")


@cache_app.command("clear")
def cache_clear() -> None:
    """Delete every cached kernel; they are compiled again when needed."""
    from linkwork.kernels import cache

    console.print(f"deleted {cache.clear()} kernels")


def _residuals(model: Model, state: dict[str, np.ndarray], a: np.ndarray, lam: np.ndarray) -> dict[str, float]:
    """How well M a + c = tau + J^T lam and J a = k hold."""
    from linkwork.algorithms.constrained.kkt import joint_space
    from linkwork.algorithms.tree.rnea import rnea
    from linkwork.backends import get
    from linkwork.model import Motion

    motion = Motion(model, state["q"][:, None], state["v"][:, None], get("numpy"))
    J, k = joint_space(motion)
    force = rnea(motion, a[:, None]) - state["tau"][:, None] - J.T @ lam[:, None]
    return {
        "dynamics_residual": float(np.abs(force).max(initial=0)),
        "constraint_residual": float(np.abs(J @ a[:, None] - k).max(initial=0)),
    }


def _show_solution(model: Model, method: str, a: np.ndarray, lam: np.ndarray, residuals: dict[str, float]) -> None:
    table = Table(title=f"joint accelerations ({method})")
    table.add_column("joint")
    table.add_column("a", justify="right")
    for i in model.topology.links:
        part = a[model.topology.v_slices[i]]
        if part.size:
            table.add_row(model.links[i].joint_name, "  ".join(f"{x:10.4f}" for x in part))
    console.print(table)
    if lam.size:
        table = Table(title="constraint forces on the robot [N, Nm], in the axes of the first frame")
        table.add_column("constraint")
        table.add_column("lam", justify="right")
        start = 0
        for c in model.constraints:
            table.add_row(c.describe(), "  ".join(f"{x:9.3f}" for x in lam[start : start + c.rows]))
            start += c.rows
        console.print(table)
    console.print(
        f"|M a + c - tau - J^T lam| = {residuals['dynamics_residual']:.2e},  "
        f"|J a - k| = {residuals['constraint_residual']:.2e}"
    )


def _span(bounds: list[int]) -> str:
    start, stop = bounds
    return "" if start == stop else str(start) if stop == start + 1 else f"{start}..{stop - 1}"


def main() -> None:
    """Run the command line; errors of the user's making are one sentence and exit code 2."""
    try:
        app(standalone_mode=True)
    except LinkworkError as problem:
        said = Text.assemble(("error:", "bold red"), f" {problem}")
        terminal(stderr=True).print(said, highlight=False, soft_wrap=True)
        sys.exit(2)
