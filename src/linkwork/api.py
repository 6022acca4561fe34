"""The factories: from a model to a function of its dynamics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linkwork.algorithms import registry
from linkwork.backends import Array, Ops
from linkwork.function import Function
from linkwork.model import Model, Motion


def forward_dynamics(
    model: Model,
    *,
    method: str | None = None,
    backend: str = "kernel",
    dtype: str = "float64",
    threads: int | None = None,
    external_forces: bool = False,
) -> Function:
    """`fd(q, v, tau) -> (a, lam)`: M a + c = tau + J^T lam, J a = k.

    `q` has quaternions as [x y z w]; `a` are the joint accelerations, `lam` the forces that the constraints exert on
    the robot. `method=None` leaves the choice to Linkwork. With `external_forces=True` there is a fourth input,
    `fext`, with [force; torque] at each moving link's origin, in link axes, one after the other.
    """
    model.check_forward()
    chosen = registry.pick("forward_dynamics", method, model)
    solve = chosen.load()

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        out = solve(Motion(model, x["q"], x["v"], xp), x["tau"], x.get("fext"))
        a, lam = out if isinstance(out, tuple) else (out, xp.zeros(0))
        return {"a": a, "lam": lam}

    inputs = {"q": model.nq, "v": model.nv, "tau": model.nv}
    return Function("forward_dynamics", model, _with_forces(inputs, model, external_forces), body,
                    method=chosen.name, backend=backend, dtype=dtype, threads=threads)


def inverse_dynamics(
    model: Model,
    *,
    method: str | None = None,
    backend: str = "kernel",
    dtype: str = "float64",
    threads: int | None = None,
    external_forces: bool = False,
) -> Function:
    """`id(q, v, a) -> (tau,)`: the joint forces M a + c for accelerations `a`; quaternions in `q` are [x y z w]."""
    chosen = registry.pick("inverse_dynamics", method, model)
    solve = chosen.load()

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        return {"tau": solve(Motion(model, x["q"], x["v"], xp), x["a"], x.get("fext"))}

    inputs = {"q": model.nq, "v": model.nv, "a": model.nv}
    return Function("inverse_dynamics", model, _with_forces(inputs, model, external_forces), body,
                    method=chosen.name, backend=backend, dtype=dtype, threads=threads)


def mass_matrix(model: Model, **options: Any) -> Function:
    """`mm(q) -> (M,)`: the joint-space mass matrix, nv x nv; quaternions in `q` are [x y z w]."""
    from linkwork.algorithms.tree.crba import crba

    options["shapes"] = {"M": (model.nv, model.nv)}
    return _of_position("mass_matrix", model, lambda m: {"M": crba(m)}, "crba", options)


def constraint_jacobian(model: Model, **options: Any) -> Function:
    """`cj(q) -> (J,)`: the constraint rows over joint velocities, m x nv; quaternions in `q` are [x y z w]."""
    from linkwork.constraints import jacobian

    options["shapes"] = {"J": (model.rows, model.nv)}
    return _of_position("constraint_jacobian", model, lambda m: {"J": jacobian(m)}, "", options)


def constraint_error(model: Model, **options: Any) -> Function:
    """`ce(q, v) -> (phi, rate)`: how far the constraints are from holding, in position and in velocity J v."""
    from linkwork.constraints import position_error, velocity_error

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        motion = Motion(model, x["q"], x["v"], xp)
        return {"phi": position_error(motion), "rate": velocity_error(motion)}

    return Function("constraint_error", model, {"q": model.nq, "v": model.nv}, body, **options)


def forward_kinematics(model: Model, frames: Sequence[str] | None = None, **options: Any) -> Function:
    """`fk(q) -> (positions, rotations)`: (F, 3) and (F, 3, 3) of frames (default: all links) in the world."""
    from linkwork.algorithms.tree.kinematics import frame_placement

    names = [l.name for l in model.links[1:]] if frames is None else list(frames)
    places = [model.frame(n) for n in names]

    def body(m: Motion) -> Mapping[str, Array]:
        poses = [frame_placement(m, f) for f in places]
        none = m.xp.zeros(0, 3)
        return {"positions": m.xp.vstack([none, *(p.T for _, p in poses)]),
                "rotations": m.xp.vstack([none, *(R for R, _ in poses)])}

    options["shapes"] = {"positions": (len(names), 3), "rotations": (len(names), 3, 3)}
    return _of_position("forward_kinematics", model, body, "", options)


def _of_position(name: str, model: Model, of: Any, method: str, options: dict[str, Any]) -> Function:
    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        result: Mapping[str, Array] = of(Motion(model, x["q"], xp.zeros(model.nv), xp))
        return result

    return Function(name, model, {"q": model.nq}, body, method=method, **options)


def _with_forces(inputs: dict[str, int], model: Model, external: bool) -> dict[str, int]:
    return {**inputs, "fext": 6 * model.nlinks} if external else inputs
