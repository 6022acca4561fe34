"""Solver iterations of a method on a mechanism, counted by running its program on a few states.

That takes milliseconds once a program is traced (the interpreter works on all states at once), and is more accurate
than rules: gears in clusters are exact in the first iteration, three loops at a link are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from linkwork.algorithms.common.iteration import Prox
from linkwork.closure.random_states import closed_states
from linkwork.errors import AssemblyError
from linkwork.kernels.codegen.target import Target
from linkwork.kernels.programs.iterate import IterativeProgram
from linkwork.model import Model
from linkwork.model.memo import cached

STATES, NUMBERS = 256, 8192
CLOSED, FEW, SMALL = 16, 6, 40
"""How many states at least (more of small mechanisms: of so many numbers), and how many if loops must be closed: fewer
beyond SMALL degrees of freedom."""


@cached
def samples(model: Model) -> dict[str, np.ndarray]:
    """Sample states, by the names of a function's inputs; found once for a model.

    Random ones where all constraints are with the world. With loops random closed ones, with velocities that keep them
    closed: in others redundant rows are in conflict. Nothing if loops do not close.
    """
    rng = np.random.default_rng(1)
    if any(sum(l > 0 for l in c.touches(model)) > 1 for c in model.constraints):
        plain = replace(model, constraints=tuple(c.original for c in model.constraints))
        count = CLOSED if model.nv <= SMALL else FEW
        try:
            q, v = closed_states(plain, rng, count)
        except AssemblyError:
            return {}
    else:
        count = max(STATES, NUMBERS // max(1, model.nv))  # of a few joints, rare singular postures decide the mean
        q = np.stack([model.random_q(rng) for _ in range(count)])
        v = rng.uniform(-1, 1, (count, model.nv))
    return {"q": q, "v": v, "tau": rng.uniform(-1, 1, v.shape), "active": np.ones(len(model.constraints))}


def settings(prox: Prox | None) -> dict[str, np.ndarray]:
    """The inputs with which a program iterates, by name."""
    return {} if prox is None else {name: np.array([x]) for name, x in prox.controls.items()}


def count(program: IterativeProgram, prox: Prox, given: Mapping[str, np.ndarray]) -> tuple[dict[str, float], float]:
    """The mean number of solver iterations by use, and the share of states that did not converge.

    The first iteration is included. Nothing and 0 if it takes inputs that are not given.

    In a batch the states of a register are solved together, as often as the slowest of them needs: the mean of that
    over all registers that could be filled with these states, of which a share F(x) needs at most x,

        sum over x of  x (F(x)^lanes - F(x-1)^lanes).
    """
    known = {**given, **settings(prox)}
    if any(port.name not in known for port in program.inputs):
        return {}, 0.0
    with np.errstate(all="ignore"):
        out = program.interpret(*(known[port.name] for port in program.inputs))
    report = dict(zip((port.name for port in program.outputs), out, strict=True))["report"]
    needed, missed = np.sort(report[:, 0]), report[:, 2] != 1
    slowest = np.diff(np.linspace(0, 1, len(needed) + 1) ** Target.host().lanes("float64"))
    return {"state": float(needed.mean()), "batch": float(needed @ slowest)}, float(missed.mean())
