"""`linkwork solve`: the forward dynamics of one state, with residuals."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

import linkwork as lw
from linkwork.cli.arguments import (
    BaseOption,
    ConnectOption,
    ContactOption,
    FileArg,
    JsonOption,
    ModelOption,
    constrained,
    load_robot,
    numbers,
    print_json,
    table_of,
    terminal,
)
from linkwork.model import Model

console = terminal()


def solve_command(
    file: FileArg,
    base: BaseOption = None,
    one: ModelOption = None,
    method: Annotated[str | None, typer.Option(help="A forward dynamics method; default: Linkwork's choice.")] = None,
    backend: Annotated[str, typer.Option(help="numpy, casadi or kernel.")] = "numpy",
    contact: ContactOption = None,
    connect: ConnectOption = None,
    q: Annotated[str | None, typer.Option(help="Configuration, comma-separated (quaternions x,y,z,w).")] = None,
    v: Annotated[str | None, typer.Option(help="Velocity, comma-separated.")] = None,
    tau: Annotated[str | None, typer.Option(help="Joint forces, comma-separated.")] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Random q, v and tau from this seed where none is given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve the constrained forward dynamics of one state and show accelerations, forces and residuals."""
    model = constrained(load_robot(file, base, one), contact, connect)
    rng = np.random.default_rng(seed)
    state = {
        "q": numbers("q", q, model.nq, model.neutral() if seed is None else model.random_q(rng)),
        "v": numbers("v", v, model.nv, np.zeros(model.nv) if seed is None else rng.uniform(-1, 1, model.nv)),
        "tau": numbers("tau", tau, model.nv, np.zeros(model.nv) if seed is None else rng.uniform(-1, 1, model.nv)),
    }
    fd = lw.forward_dynamics(model, method=method, backend=backend)
    a, lam = fd(**state)
    residuals = residuals_of(model, state, a, lam)
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
    show_solution(model, fd.method, a, lam, residuals)


def residuals_of(model: Model, state: dict[str, np.ndarray], a: np.ndarray, lam: np.ndarray) -> dict[str, float]:
    """How well M a + c = tau + J^T lam and J a = k hold."""
    from linkwork.algorithms.constrained.kkt import joint_space
    from linkwork.algorithms.tree.rnea import rnea
    from linkwork.backends import get
    from linkwork.model import Motion
    from linkwork.model.joint_forces import joint_forces

    motion = Motion(model, state["q"][:, None], state["v"][:, None], get("numpy"))
    J, k = joint_space(motion)
    applied = joint_forces(model, motion.q, motion.v, motion.xp)
    force = rnea(motion, a[:, None], None, applied) - state["tau"][:, None] - J.T @ lam[:, None]
    return {
        "dynamics_residual": float(np.abs(force).max(initial=0)),
        "constraint_residual": float(np.abs(J @ a[:, None] - k).max(initial=0)),
    }


def show_solution(model: Model, method: str, a: np.ndarray, lam: np.ndarray, residuals: dict[str, float]) -> None:
    table = table_of(f"joint accelerations ({method})", "joint", "a", right=["a"])
    for i in model.topology.links:
        part = a[model.topology.v_slices[i]]
        if part.size:
            table.add_row(model.links[i].joint_name, "  ".join(f"{x:10.4f}" for x in part))
    console.print(table)
    if lam.size:
        title = "constraint forces on the robot [N, Nm], in the axes of the first frame"
        table = table_of(title, "constraint", "lam", right=["lam"])
        start = 0
        for c in model.constraints:
            table.add_row(c.describe(), "  ".join(f"{x:9.3f}" for x in lam[start : start + c.rows]))
            start += c.rows
        console.print(table)
    console.print(
        f"|M a + c - tau - J^T lam| = {residuals['dynamics_residual']:.2e},  "
        f"|J a - k| = {residuals['constraint_residual']:.2e}"
    )
