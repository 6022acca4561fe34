"""A valid call of everything public, by package: what is attacked, one argument at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from public_calls.closure import states
from public_calls.common import URDF, Call, arm
from public_calls.constraints import constraints, joint_types
from public_calls.functions import factories
from public_calls.learn import learning
from public_calls.model import models
from public_calls.others import others
from public_calls.robots import built_in
from public_calls.simulation import motions
from public_calls.viewer import viewers

__all__ = ["ATTACKED_ELSEWHERE", "URDF", "Call", "arm", "public_calls"]


def public_calls(folder: Any) -> Iterator[Call]:
    """All of them; files are written below `folder`."""
    yield from models()
    yield from joint_types()
    yield from constraints()
    yield from factories()
    yield from states()
    yield from motions(folder)
    yield from viewers(folder)
    yield from built_in()
    yield from others(folder)
    yield from learning()


ATTACKED_ELSEWHERE = {
    "ActuationError",
    "AssemblyError",
    "LinkworkError",
    "__version__",  # not called with arguments
    "RolloutResult",
    "Viewer",  # made by rollout and view
}
