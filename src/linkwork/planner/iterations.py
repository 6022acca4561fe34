"""How many solves an iterative method needs on a mechanism: its program is run on a few states, and they are counted.

That takes milliseconds once a program is traced (the interpreter works on all states at once), and says more than any
rule: gears in clusters are exact in the first solve, three loops at a link are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from linkwork.algorithms.iteration import Prox
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints import jacobian, position_error
from linkwork.constraints.clusters import closed_positions
from linkwork.kernels.iterate import IterativeProgram
from linkwork.kernels.target import Target
from linkwork.model import Model, Motion

STATES, SMALL = 32, 40
"""How many states, and up to how many degrees of freedom several positions are closed, which takes a while."""

DISTANCES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Of these positions from the neutral one: mean changes of the joint coordinates."""


def samples(model: Model) -> dict[str, np.ndarray]:
    """States to count on, by the names of a function's inputs.

    Random ones where every constraint holds on to the world. With loops closed ones at some DISTANCES from the neutral
    one, in motion that keeps them closed: in others redundant rows contradict each other. Nothing if loops do not close
    from there.
    """
    rng = np.random.default_rng(0)
    v, tau = rng.uniform(-1, 1, (2, STATES, model.nv))
    if any(sum(l > 0 for l in c.touches(model)) > 1 for c in model.constraints):
        plain = replace(model, constraints=tuple(c.original for c in model.constraints))
        found = closed_positions(plain, DISTANCES if model.nv <= SMALL else DISTANCES[:1])
        q = np.stack([found[k % len(found)] for k in range(STATES)])
        at = [Motion(plain, x[:, None], np.zeros((model.nv, 1)), NUMPY) for x in found]
        if np.abs(position_error(at[0])).max(initial=0.0) > 1e-6:
            return {}
        opening = [np.linalg.pinv(J, rcond=1e-9) @ J for J in map(jacobian, at)]
        v = v - np.stack([opening[k % len(at)] @ v[k] for k in range(STATES)])
    else:
        q = np.stack([model.random_q(rng) for _ in range(STATES)])
    return {"q": q, "v": v, "tau": tau, "active": np.ones(len(model.constraints))}


def settings(prox: Prox | None) -> dict[str, np.ndarray]:
    """The inputs with which a program iterates, by name."""
    if prox is None:
        return {}
    numbers = {"mu": prox.mu, "tolerance": prox.tolerance, "max_iterations": prox.max_iterations - 1}
    return {name: np.array([float(x)]) for name, x in numbers.items()}


def solves(program: IterativeProgram, prox: Prox, given: Mapping[str, np.ndarray]) -> dict[str, float] | None:
    """The mean number of solves, the first included, by use; None if it takes inputs that nobody gave.

    In a batch the states of a register are solved together, as often as the slowest of them needs.
    """
    known = {**given, **settings(prox)}
    if any(port.name not in known for port in program.inputs):
        return None
    with np.errstate(all="ignore"):
        iterations = program.interpret(*(known[port.name] for port in program.inputs))[-2]
    together = np.resize(iterations, (len(iterations), Target.host().lanes("float64"))).max(axis=1)
    return {"state": 1.0 + float(np.mean(iterations)), "batch": 1.0 + float(np.mean(together))}
