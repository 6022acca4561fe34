"""A symmetric matrix in constraint space, by the blocks of pairs of coupled constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwork.backends.ops import Array, Ops


@dataclass(frozen=True)
class Blocks:
    """The blocks (c, d) with c <= d; those not stored are zero. `sizes` are the constraints' rows."""

    sizes: list[int]
    blocks: dict[tuple[int, int], Array]
    xp: Ops

    def matrix(self) -> Array:
        """All of it, dense."""
        every, xp = range(len(self.sizes)), self.xp
        rows = [xp.hstack([self._block(c, d) for d in every]) for c in every]
        return xp.vstack([xp.zeros(0, sum(self.sizes)), *rows])

    def plus_diagonal(self, R: Sequence[Array]) -> Blocks:
        """With a column for each constraint added to the diagonal."""
        out, xp = dict(self.blocks), self.xp
        for c, Rc in enumerate(R):
            unit = xp.eye(self.sizes[c])
            out[c, c] = self._block(c, c) + xp.hstack([unit[:, i : i + 1] * Rc[i, 0] for i in range(self.sizes[c])])
        return Blocks(self.sizes, out, xp)

    def coupled_rows(self) -> list[list[int]]:
        """For each block that is there, the rows of the matrix that it couples."""
        start = [sum(self.sizes[:c]) for c in range(len(self.sizes))]
        rows = [list(range(s, s + n)) for s, n in zip(start, self.sizes, strict=True)]
        return [sorted({*rows[c], *rows[d]}) for c, d in self.blocks]

    def _block(self, c: int, d: int) -> Array:
        if (c, d) in self.blocks:
            return self.blocks[c, d]
        if (d, c) in self.blocks:
            return self.blocks[d, c].T
        return self.xp.zeros(self.sizes[c], self.sizes[d])
