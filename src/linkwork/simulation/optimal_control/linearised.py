"""The derivatives of a step by its operations: A and B from derivatives of accelerations.

    q+ = q (+) h v+,   v+ = v + h a:     [dq+; dv+] = D_x dx + D_a (da/dx dx + da/du du)

D are derivatives of the step itself, by q, v and a as if these were independent; activations depend on themselves and
on controls alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from linkwork.backends import Array, Ops
from linkwork.functions.differentiation.row_slopes import configuration_seeds, put
from linkwork.kernels.programs.differentiate import tangents
from linkwork.kernels.programs.matrices import Matrix, Tracer
from linkwork.kernels.programs.value_numbering import ZERO
from linkwork.model import Model, Motion
from linkwork.simulation.optimal_control.step_gradients import stepped_state


def linearised(model: Model, dt: float, xp: Tracer, x: Mapping[str, Array], slopes: Array) -> dict[str, Array]:
    """The step from accelerations `a`, whose derivatives by q, v, (act,) u are `slopes`, and its own."""
    n, a = model.nv, xp.held(x["a"])
    there, after, *act = stepped_state(model, dt, xp, {**x, "a": a})
    seeds = configuration_seeds(Motion(model, x["q"], x["v"], xp), x["q"])
    for k in range(n):
        put(seeds, x["v"][k : k + 1, :], n + k, xp.eye(1))
        if a.refs[k] >> 1 not in seeds:  # equal entries are one
            put(seeds, a[k : k + 1, :], 2 * n + k, xp.eye(1))
    found = tangents(xp.values, [r >> 1 for y in (there, after) for r in y.refs], seeds)
    dq, dv = (_whole(xp, found, y, 3 * n) for y in (there, after))
    D = xp.vstack([_tangent(model, there, dq, xp), dv])  # by q, v and a: a few blocks
    through = D[:, 2 * n :] @ slopes
    A, B = D[:, 0 : 2 * n] + through[:, 0 : 2 * n], through[:, 2 * n :]
    if not act:
        return {"q_next": there, "v_next": after, "A": A, "B": B}
    na = model.na
    seeds = {}
    for k, entry in enumerate([*x["act"].refs, *x["u"].refs]):  # activations depend on themselves and on controls
        put(seeds, Matrix(xp.values, (1, 1), [entry]), k, xp.eye(1))
    dw = _whole(xp, tangents(xp.values, [r >> 1 for r in act[0].refs], seeds), act[0], na + model.nu)
    A = xp.vstack([xp.hstack([A, B[:, 0:na]]), xp.hstack([xp.zeros(na, 2 * n), dw[:, 0:na]])])
    B = xp.vstack([B[:, na:], dw[:, na:]])
    return {"q_next": there, "v_next": after, "act_next": act[0], "A": A, "B": B}


def _whole(xp: Tracer, found: Mapping[int, Mapping[int, int]], y: Matrix, width: int) -> Matrix:
    """The derivatives of a column, entry by entry."""
    refs = list[int]()
    for r in y.refs:
        row = [found.get(r >> 1, {}).get(c, ZERO) for c in range(width)]
        refs += [xp.values.neg(d) if r & 1 else d for d in row]
    return Matrix(xp.values, (len(y.refs), width), refs)


def _tangent(model: Model, q: Array, dq: Array, xp: Ops) -> Array:
    """Changes of q's entries in the chart of `integrate`: the rates of all joints are orthogonal."""
    t, rows = model.topology, [dq[0:0, :]]
    for i in t.links:
        joint, at = model.links[i].joint, t.q_slices[i]
        for k in range(joint.nv):
            rate = joint.rate(q[at, :], xp.eye(joint.nv)[:, k : k + 1], xp)
            rows.append((rate.T @ dq[at, :]) / (rate.T @ rate)[0, 0])
    return xp.vstack(rows)
