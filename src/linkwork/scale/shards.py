"""Shards of a batch, cut so that no result depends on where the cuts are.

Every state is computed in a lane of its own, independent of the others. Only the form of the kernel matters: one state
alone runs in scalar code, several in vector code, which may round differently. So a batch of one is one shard, and of a
larger batch no shard has fewer than two states.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwork.kernels.calls.rollout import RolloutProgram

TILE = 16
"""Shards are whole tiles of this many states where there are enough: the most lanes that any CPU has."""

LARGEST = 32 << 20
"""Bytes of inputs and results that one shard may have."""


def cuts(batch: int, wanted: int, bytes_each: int) -> list[tuple[int, int]]:
    """(begin, end) of about `wanted` shards of this batch, none too large and none of a single state."""
    if batch <= 2:
        return [(0, batch)] if batch else []
    fitting = max(LARGEST // max(bytes_each, 1), 2)
    size = max(min(-(-batch // max(wanted, 1)), fitting), 2)
    if size >= TILE:
        size -= size % TILE
    starts = list(range(0, batch, size))
    if batch - starts[-1] == 1 and len(starts) > 1:
        starts.pop()
    return list(zip(starts, [*starts[1:], batch], strict=True))


def taken(program: RolloutProgram, inputs: Mapping[str, np.ndarray], begin: int, end: int) -> dict[str, Any]:
    """The inputs of these states; those that all states share are left as they are."""
    timed = {p.name for p in program.timed}
    return {n: x[begin:end] if x.ndim == (3 if n in timed else 2) else x for n, x in inputs.items()}


def state_bytes(program: RolloutProgram, inputs: Mapping[str, np.ndarray], frames: int, itemsize: int) -> int:
    """Bytes that one state transfers: its own inputs and its record."""
    own = sum(int(x.nbytes) for n, x in taken(program, inputs, 0, 1).items() if x is not inputs[n])
    return own + itemsize * (sum(n * p.size for p, n in program.frames(frames).items()) + 1)


def empty(program: RolloutProgram, batch: int, frames: int, dtype: np.dtype[Any]) -> dict[str, np.ndarray]:
    """Arrays for the results of all states, as a `RolloutKernel` gives them."""
    out = {p.name: np.empty((batch, n, p.size), dtype) for p, n in program.frames(frames).items()}
    return {**out, "survived": np.zeros(batch, dtype=int)}
