"""What rollouts and simulations need to know of a time step, whatever it computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from linkwork.backends import Array, Ops
from linkwork.model import Model


class TimeStep(Protocol):
    """One step of a model as a function of named columns: `Step`, or `ContactStep`.

    `state` names what it changes and rollouts record; `carried` is what it hands to the next step besides, with sizes:
    forces to start from, the largest error so far. Those of `carried` that are not `inputs` start from what one step
    from zero gives. `extras` are returned besides, in these `shapes`. `defaults` are inputs that may be left out,
    `settings` inputs of the program that no caller gives. A motion whose largest error exceeds `bound` has not
    converged.
    """

    @property
    def model(self) -> Model: ...
    @property
    def integrator(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def state(self) -> tuple[str, ...]: ...
    @property
    def carried(self) -> Mapping[str, int]: ...
    @property
    def inputs(self) -> Mapping[str, int]: ...
    @property
    def defaults(self) -> Mapping[str, np.ndarray]: ...
    @property
    def parameters(self) -> tuple[str, ...]: ...
    @property
    def settings(self) -> Mapping[str, np.ndarray]: ...
    @property
    def extras(self) -> tuple[str, ...]: ...
    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]: ...
    @property
    def bound(self) -> float: ...

    @property
    def conflicts(self) -> bool:
        """Whether rows come into conflict as loops drift open."""
        ...

    @property
    def retried(self) -> TimeStep | None:
        """The step for motions that have not converged by this one, if there is another."""
        ...

    @property
    def solver(self) -> str:
        """The name of the method; planned when first needed."""
        ...

    @property
    def settled(self) -> str | None:
        """The same, if it has been chosen already."""
        ...

    @property
    def traced(self) -> Any:
        """The step as a program."""
        ...

    @property
    def cached_program(self) -> Any:
        """The same, or its cached sketch."""
        ...

    def __call__(self, xp: Ops, x: Mapping[str, Array]) -> dict[str, Array]:
        """The state and what is carried after the step, and the extras."""
        ...

    def warn(self, by: str, fine: np.ndarray | bool) -> None:
        """Warn that not all states are `fine`: some have not converged."""
        ...
