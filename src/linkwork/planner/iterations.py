"""How many solves an iterative method needs on a mechanism: its program is run on a few states, and they are counted.

That takes milliseconds once a program is traced (the interpreter works on all states at once), and says more than any
rule: gears in clusters are exact in the first solve, three loops at a link are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from linkwork.algorithms.iteration import Prox
from linkwork.constraints.clusters import closed_positions
from linkwork.kernels.iterate import IterativeProgram
from linkwork.model import Model

STATES = 8


def samples(model: Model) -> dict[str, np.ndarray]:
    """States to count on, by the names of a function's inputs.

    Random ones where every constraint holds on to the world; with loops the neutral one, closed and at rest, because
    redundant rows contradict each other in most others.
    """
    rng = np.random.default_rng(0)
    loops = any(sum(l > 0 for l in c.touches(model)) > 1 for c in model.constraints)
    if loops:
        plain = replace(model, constraints=tuple(c.original for c in model.constraints))
        q = np.repeat([closed_positions(plain, (0.0,))[0]], STATES, axis=0)
    else:
        q = np.stack([model.random_q(rng) for _ in range(STATES)])
    v, tau = rng.uniform(-1, 1, (2, STATES, model.nv))
    v = 0 * v if loops else v
    return {"q": q, "v": v, "tau": tau, "active": np.ones(len(model.constraints))}


def solves(program: IterativeProgram, prox: Prox, given: Mapping[str, np.ndarray]) -> float | None:
    """The mean number of solves, the first included; None if it never converges, or takes inputs that nobody gave."""
    settings = {"mu": prox.mu, "tolerance": prox.tolerance, "max_iterations": prox.max_iterations - 1}
    known = {**given, **{name: np.array([float(x)]) for name, x in settings.items()}}
    if any(port.name not in known for port in program.inputs):
        return None
    with np.errstate(all="ignore"):
        iterations = program.interpret(*(known[port.name] for port in program.inputs))[-2]
    return None if (iterations >= prox.max_iterations - 1).all() else 1.0 + float(np.mean(iterations))
