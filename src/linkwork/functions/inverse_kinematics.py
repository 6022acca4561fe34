"""Inverse kinematics: Levenberg-Marquardt as a native loop, which `ik` starts where needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwork.algorithms.common.iteration import largest
from linkwork.algorithms.tree.inverse_kinematics import Guess, InverseKinematics, Target
from linkwork.backends import Array, Ops
from linkwork.backends.numpy_ import NUMPY
from linkwork.checks import (
    ANY_ARRAY,
    NAMES,
    POSITIONS,
    POSITIVE,
    SEED,
    checked,
    either,
    instance,
    mapping,
    optional,
    whole,
)
from linkwork.errors import InputError, UnsupportedError
from linkwork.functions.function import Function
from linkwork.functions.options import OPTIONS
from linkwork.functions.results import IKResult
from linkwork.model import Model, Placement
from linkwork.model.memo import cached
from linkwork.model.model import MODEL

if TYPE_CHECKING:
    from linkwork.kernels.programs.iterate import IterativeProgram
    from linkwork.kernels.programs.program import Program

GOAL = replace(
    either(instance(Placement, "a linkwork.Placement"), ANY_ARRAY),
    what="a position [x y z] or a pose: a linkwork.Placement, a 4 x 4 matrix or [x y z  qx qy qz qw]",
)
GOALS = mapping(GOAL, "a dictionary from names of frames to positions or poses")
SIZES = {True: 7, False: 3}
"""Numbers of a target: a pose, or a position."""

ROUGH = 1e-2
"""How far the length of a quaternion, or entries of R^T R, may be from one: poses are written with few digits."""


class _Found(NamedTuple):
    """What the native loop gives."""

    q: np.ndarray
    error: np.ndarray
    iterations: np.ndarray
    left: np.ndarray


@checked(
    model=MODEL,
    targets=GOALS,
    q=optional(POSITIONS),
    locked=NAMES,
    tolerance=POSITIVE,
    max_iterations=whole(1, 100_000),
    attempts=whole(1, 1000),
    seed=SEED,
    **OPTIONS,
)
def ik(
    model: Model,
    targets: Mapping[str, Any],
    q: object = None,
    *,
    locked: Sequence[str] = (),
    tolerance: float = 1e-8,
    max_iterations: int = 50,
    attempts: int = 50,
    seed: int = 0,
    backend: str = "kernel",
    dtype: str = "float64",
    threads: int | None = None,
) -> IKResult:
    """A configuration in which frames are at their targets, within joint limits and with all loops closed.

    `targets` has for each frame (or link) its place in the world: three numbers are a position; a `Placement`, a 4 x 4
    matrix or seven numbers [x y z  qx qy qz qw] a pose. One axis more, (B, 3), (B, 4, 4), (B, 7), is a batch, which is
    solved in one call; targets without it serve all of it. `q`, (nq,) or (B, nq), is where the search starts (default:
    neutral, moved into its limits). Joints named in `locked` keep their positions.

    A search that ends with an error above `tolerance` (in metres and radians) starts again from a random configuration
    (by `seed`), `attempts` times in all; with attempts=1 the result is the one near `q`. The best is returned:
    `converged` says whether it is within the tolerance, and nothing is raised where targets are out of reach. Each
    takes at most `max_iterations` steps. The first call compiles; others with the same model, frames and kinds of
    targets do not.

    Examples:
        >>> model = arm(7)
        >>> target = lw.forward_kinematics(model, "tool")(model.random_q(0)).positions
        >>> found = lw.ik(model, {"tool": target})
        >>> bool(found.converged)
        True
    """
    if not targets:
        raise InputError("name at least one target, as in lw.ik(model, {'hand': (0.5, 0, 0.3)})")
    goals = {name: _goal(name, x) for name, x in targets.items()}
    kinds = tuple((name, x.shape[-1] == SIZES[True]) for name, x in goals.items())
    fixed = tuple(k for name in locked for k in range(model.nv)[model.v_slice(name)])
    solve = _solver(model, kinds, fixed, (tolerance, max_iterations), backend, dtype, threads)

    start = model.neutral() if q is None else np.asarray(q, dtype=float)
    batch = {len(x) for x in (start, *goals.values()) if x.ndim == 2}
    if len(batch) > 1:
        raise InputError(f"targets and q have different batch sizes: {sorted(batch)}")
    lead = tuple(batch)
    count = lead[0] if lead else 1
    wanted = np.concatenate([np.broadcast_to(x, (count, x.shape[-1])) for x in goals.values()], axis=1)
    best = _search(solve, np.array(np.broadcast_to(start, (count, model.nq))), wanted, locked, attempts, seed)
    return best if lead else IKResult(*(x[0] for x in best))


def _search(
    solve: IKFunction, start: np.ndarray, goals: np.ndarray, locked: Sequence[str], attempts: int, seed: Any
) -> IKResult:
    """Each row's best result; rows that have not converged start again, all of them in one call."""
    model, rng, tolerance = solve.model, np.random.default_rng(seed), solve.limits[0]
    kept = [k for name in locked for k in range(model.nq)[model.q_slice(name)]]
    q, error = start.copy(), np.full(len(start), np.inf)
    iterations = np.zeros(len(start), dtype=int)
    rows, begin = np.arange(len(start)), start
    for attempt in range(attempts):
        if not len(rows):
            break
        if attempt:
            begin = model.random_q(rng, batch=len(rows))
            begin[:, kept] = start[rows][:, kept]
        found = solve(begin, goals[rows])
        iterations[rows] += np.asarray(found.iterations).reshape(-1).astype(int)
        better = found.error < error[rows]
        q[rows[better]], error[rows[better]] = found.q[better], found.error[better]
        rows = rows[error[rows] > tolerance]
    return IKResult(q, error, error <= tolerance, iterations)


def _goal(name: str, target: Any) -> np.ndarray:
    """A target as a position (..., 3) or a pose (..., 7)."""
    if isinstance(target, Placement):
        return np.concatenate([target.p, quaternions(target.R)])
    x = np.asarray(target, dtype=float)
    if x.shape[-2:] == (4, 4) and x.ndim in (2, 3):
        R, last = x[..., :3, :3], x[..., 3, :]
        square = np.abs(R.swapaxes(-1, -2) @ R - np.eye(3)).max(initial=0.0) < ROUGH
        if not (square and (np.linalg.det(R) > 0).all() and (np.abs(last - [0, 0, 0, 1]) < ROUGH).all()):
            raise InputError(f"the target of '{name}' is no pose: a rotation and a place, above the row 0 0 0 1")
        return np.concatenate([x[..., :3, 3], quaternions(x[..., :3, :3])], axis=-1)
    if x.ndim not in (1, 2) or x.shape[-1] not in SIZES.values():
        raise InputError(
            f"the target of '{name}' has shape {x.shape}; it is a position (3,), a pose (7,) or (4, 4), a Placement, "
            "or a batch of positions or poses, (B, 3), (B, 7) or (B, 4, 4)"
        )
    if x.shape[-1] == SIZES[True]:
        length = np.linalg.norm(x[..., 3:], axis=-1, keepdims=True)
        if not np.all(np.abs(length - 1) < ROUGH):
            raise InputError(f"the target of '{name}' has a quaternion [x y z w] that is not of length one")
        x = np.concatenate([x[..., :3], x[..., 3:] / length], axis=-1)
    return x


def quaternions(R: np.ndarray) -> np.ndarray:
    """Unit quaternions [x y z w] (..., 4) of rotation matrices (..., 3, 3).

    K = 4 q q^T: its row with the largest diagonal entry has all digits.
    """
    (a, b, c), (d, e, f), (g, h, i) = (np.moveaxis(R, (-2, -1), (0, 1))[k] for k in range(3))
    rows = [
        [1 + a - e - i, b + d, c + g, h - f],
        [b + d, 1 - a + e - i, f + h, c - g],
        [c + g, f + h, 1 - a - e + i, d - b],
        [h - f, c - g, d - b, 1 + a + e + i],
    ]
    K = np.moveaxis(np.array(rows), (0, 1), (-2, -1))
    largest_one = np.argmax(np.diagonal(K, axis1=-2, axis2=-1), axis=-1)
    q = np.take_along_axis(K, largest_one[..., None, None], axis=-2)[..., 0, :]
    return np.asarray(q / np.linalg.norm(q, axis=-1, keepdims=True))


@cached
def _solver(
    model: Model,
    kinds: tuple[tuple[str, bool], ...],
    locked: tuple[int, ...],
    limits: tuple[float, int],
    backend: str,
    dtype: str,
    threads: int | None,
) -> IKFunction:
    """The function for frames with a pose or a position, compiled once."""
    return IKFunction(model, kinds, locked, limits, backend=backend, dtype=dtype, threads=threads)


class IKFunction(Function[_Found]):
    """`f(q, goals) -> (q, error, iterations, left)`.

    The search from one configuration, or a batch of them.

    `kinds` are frames and whether their targets are poses, `limits` the tolerance and the largest number of iterations.
    """

    def __init__(
        self,
        model: Model,
        kinds: Sequence[tuple[str, bool]],
        locked: Sequence[int],
        limits: tuple[float, int],
        *,
        backend: str,
        **options: Any,
    ) -> None:
        self.limits = limits
        if backend == "casadi":
            raise UnsupportedError("inverse kinematics is a loop; it needs backend='kernel' or 'numpy'")
        targets = [Target(model.frame(name), pose) for name, pose in kinds]

        def problem(xp: Ops, goals: Array) -> InverseKinematics:
            return InverseKinematics(model, targets, goals, xp, frozenset(locked))

        inputs = {"q": model.nq, "goals": sum(SIZES[pose] for _, pose in kinds)}
        shapes = {"error": ()}
        identity = (tuple(kinds), tuple(locked))
        super().__init__(
            "inverse_kinematics",
            model,
            inputs,
            problem,
            backend=backend,
            shapes=shapes,
            identity=identity,
            result=_Found,
            **options,
        )

    def _traced(self, xp: Ops, inputs: dict[str, Array], symbol: Callable[[str, int], Array]) -> dict[str, Array]:
        problem = self._body(xp, inputs["goals"])
        first = problem.first(inputs["q"])
        x, n = symbol("x", self.model.nq + 2), self.model.nq
        here = Guess(x[0:n, :], x[n : n + 1, :], x[n + 1 : n + 2, :])
        after = problem.next(here)
        return {
            "x_first": xp.vstack(list(first)),
            "residual_first": problem.left(first),
            "x_next": xp.vstack(list(after)),
            "residual": problem.left(after),
            "q": here.q,
            "error": largest(xp, problem.error(here.q, 1.0)),
        }

    def _looped(self, program: Program) -> IterativeProgram:
        from linkwork.kernels.programs.hoist import hoist

        return hoist(program)

    @property
    def _settings(self) -> Mapping[str, Any]:
        return {"tolerance": [self.limits[0]], "max_iterations": [float(self.limits[1])]}

    def _execute(self, arrays: list[np.ndarray], xp: Ops = NUMPY) -> dict[str, np.ndarray]:
        q, goals = (x[:, None] for x in arrays)
        problem = self._body(xp, goals)
        guess, used = problem.first(q), 0
        while used < self.limits[1] and float(problem.left(guess)[0, 0]) > self.limits[0]:
            guess, used = problem.next(guess), used + 1
        error = largest(NUMPY, problem.error(guess.q, 1.0))
        return {
            "q": guess.q,
            "error": error,
            "iterations": np.array([[float(used)]]),
            "left": problem.left(guess),
        }
