"""Configurations moved and compared, compiled: `model.integrate` and `model.difference` for batches.

integrate(q, v) = q (+) v,    difference(q0, q) = q (-) q0:    q0 (+) (q (-) q0) = q
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from linkwork.backends import Array, Ops
from linkwork.checks import checked
from linkwork.functions.function import Function
from linkwork.functions.options import OPTIONS
from linkwork.functions.recipes import factory
from linkwork.functions.traced import marked
from linkwork.model import Model
from linkwork.model.model import MODEL
from linkwork.model.unit_quaternions import unit_guard


class IntegrateResult(NamedTuple):
    """`q_next` (nq,)."""

    q_next: np.ndarray


class DifferenceResult(NamedTuple):
    """`v` (nv,)."""

    v: np.ndarray


@checked(model=MODEL, **OPTIONS)
@factory
def integrate(
    model: Model, *, backend: str = "kernel", dtype: str = "float64", threads: int | None = None
) -> Function[IntegrateResult]:
    """`move(q, v) -> (q_next,)`: the configuration after moving with velocity `v` for unit time.

    `model.integrate`, compiled, with derivatives; quaternions are [x y z w].

    Examples:
        >>> lw.integrate(chain(2))([0.5, 0.0], [0.25, 1.0]).q_next
        array([0.75, 1.  ])
    """

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        t = model.topology
        moved = [
            model.links[i].joint.integrate(x["q"][t.q_slices[i], :], x["v"][t.v_slices[i], :], xp) for i in t.links
        ]
        return {"q_next": xp.vstack([xp.zeros(0), *moved])}

    sizes = {"q": model.nq, "v": model.nv}
    named = {"backend": backend, "dtype": dtype, "threads": threads}
    return Function("integrate", model, sizes, body, result=IntegrateResult, identity=(), **named)  # type: ignore[arg-type]


@checked(model=MODEL, **OPTIONS)
@factory
def difference(
    model: Model, *, backend: str = "kernel", dtype: str = "float64", threads: int | None = None
) -> Function[DifferenceResult]:
    """`between(q0, q) -> (v,)`: the constant velocity that takes `q0` to `q` in unit time.

    `model.difference`, compiled, with derivatives by `q` in tangent space, as costs of optimal control need them;
    quaternions are [x y z w].

    Examples:
        >>> lw.difference(chain(2))([0.5, 0.0], [0.75, 1.0]).v
        array([0.25, 1.  ])
    """

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        places = [(i, model.topology.q_slices[i]) for i in model.topology.links]
        gone = [model.links[i].joint.difference(x["q0"][at, :], x["q"][at, :], xp) for i, at in places]
        return {"v": marked(xp, xp.vstack([xp.zeros(0), *gone]), unit_guard(model, x["q0"], xp))}

    sizes = {"q0": model.nq, "q": model.nq}
    named = {"backend": backend, "dtype": dtype, "threads": threads}
    return Function("difference", model, sizes, body, result=DifferenceResult, identity=(), **named)  # type: ignore[arg-type]
