"""A method of forward dynamics with its settings, and its results in the user's coordinates.

Factories, rollouts and projections call methods only by this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwork.algorithms.common.activation import violation
from linkwork.algorithms.common.iteration import Iteration, unrolled
from linkwork.algorithms.registry import Method
from linkwork.backends import Array, Ops
from linkwork.functions.softness import felt_softness
from linkwork.model import Motion
from linkwork.model.joint_forces import joint_forces
from linkwork.rewrite.rewritten import Rewritten

Pair = tuple[Array, Array]


@dataclass(frozen=True)
class Solved:
    """Accelerations and constraint forces, or the iteration that results in them.

    `violation` of a direct solution is the largest error of a row, relative to the size of the rows' terms.
    """

    pair: Pair | None
    iteration: Iteration | None
    violation: Callable[[], Array] | None = None

    def then(self, change: Callable[[Array, Array], Pair]) -> Solved:
        """The same with accelerations and forces computed from those found."""
        if self.iteration is None:
            assert self.pair is not None
            return replace(self, pair=change(*self.pair))
        finish = self.iteration.finish
        return Solved(None, replace(self.iteration, finish=lambda *state: change(*finish(*state))))

    def straight(self, iterations: int, flat: Array | float) -> Pair:
        """Accelerations and forces as straight operations, after so many solver iterations."""
        if self.iteration is None:
            assert self.pair is not None
            return self.pair
        return unrolled(self.iteration, iterations, flat)[:2]

    def verified(self, iterations: int, flat: Array | float, weak: bool = False) -> tuple[Array, Array, Array]:
        """The same, and the largest |J a - k| of a row, relative to the size of the rows' terms.

        With `weak` it counts more in directions in which rows are nearly redundant.
        """
        if self.iteration is None:
            assert self.pair is not None
            assert self.violation is not None
            return *self.pair, self.violation()
        return unrolled(self.iteration, iterations, flat, weak)


@dataclass(frozen=True)
class Solver:
    """A method on a rewritten model; `at` makes another problem of a motion (impacts), `softness` is R."""

    method: Method
    within: Rewritten
    at: Callable[[Motion], Motion] | None = None
    softness: Sequence[np.ndarray] | None = None

    def __call__(
        self,
        xp: Ops,
        q: Array,
        v: Array,
        tau: Array,
        fext: Array | None = None,
        mu: Array | float | None = None,
        active: Array | None = None,
        given: Mapping[str, Array] | None = None,
        lam0: Array | None = None,
    ) -> Solved:
        """The method's solution for a state of the user's model.

        Only methods that iterate use the penalty `mu` and the forces `lam0` to start from. Parameters that are inputs
        are in `given`. Passive joint forces count, but for other problems than motion.
        """
        options: dict[str, Any] = {}
        if self.method.prox is not None:
            options |= {"mu": mu, "lam0": lam0}
        if self.softness is not None:
            options["R"] = felt_softness(self.within.model, self.softness, given, xp)
        if active is not None:
            options["active"] = active
        motion = self.within.motion(q, v, xp, given)
        model = self.within.source or self.within.model
        passive = None if self.at is not None else joint_forces(model, q, v, xp, given)
        tau = tau if passive is None else tau + passive
        problem = motion if self.at is None else self.at(motion)
        out = self.method.load()(problem, self.within.force(tau, xp), fext, **options)
        if isinstance(out, Iteration):
            found = Solved(None, out)
        else:
            pair = out if isinstance(out, tuple) else (out, xp.zeros(0))
            found = Solved(pair, None, lambda: violation(problem, pair[0], pair[1], options.get("R"), active))
        return found.then(lambda a, lam: (self.within.acceleration(a, xp), lam))
