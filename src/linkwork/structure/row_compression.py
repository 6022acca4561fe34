"""Links on which the rows that meet are replaced by the link's own six motions, by operations.

Propagating r rows through a joint costs about r^2 operations, and six rows a constant. But rows that were replaced are
expanded again at the end, which costs their square once, too. So replacing pays if the path from there to the base is
long for so many rows; and the more meetings there are on a path, the more rows would be propagated along it. The links
are found by exchanging: from none and from all of them, link after link is added or left out while operations fall.
Operations are estimated by four numbers, so this is a guess: who has a trace compares it with others (`Ops.fewest`).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add

from linkwork.model.topology import Topology

MOVE = 24
"""Operations that move a row to the next frame: a turn about an axis of force and torque, and a lever."""

THROUGH = 13
"""Operations of a row at a degree of freedom, besides its products with others: K^T - V e^T, d^-1 e^T."""

EXPAND = 12
"""Operations that make one entry of six: a product with a row of K."""

DENSE = (0.25, 0.5, 0.8, 1.0)
"""The share of a row's six entries that are not zeros or ones, after none, one, two or more degrees of freedom."""

Ages = tuple[int, ...]
"""Rows by the degrees of freedom that they were propagated through, as DENSE counts these."""


def meetings(t: Topology, ends: Sequence[int], rows: Sequence[int]) -> frozenset[int]:
    """The links whose motions replace their rows; the rows[c] rows of constraint c hold link ends[c]."""
    crowded = crowds(t, ends, rows)
    held = [0] * len(t.parent)
    for link, n in zip(ends, rows, strict=True):
        held[link] += n
    found = [_exchanged(t, held, crowded, frozenset(start)) for start in ((), crowded)]
    return min(found, key=lambda chosen: _operations(t, held, chosen))


def crowds(t: Topology, ends: Sequence[int], rows: Sequence[int]) -> list[int]:
    """The links on which more than six rows meet."""
    arriving = [0] * len(t.parent)
    for link, n in zip(ends, rows, strict=True):
        for i in t.supports[link]:
            arriving[i] += n
    return [i for i in t.links if arriving[i] > 6 and (len(t.children[i]) != 1 or i in ends)]


def _exchanged(t: Topology, held: Sequence[int], crowded: Sequence[int], chosen: frozenset[int]) -> frozenset[int]:
    """Improve `chosen` by one link at a time, until that saves nothing."""
    best = _operations(t, held, chosen)
    while True:
        before = best
        for i in crowded:
            cost = _operations(t, held, chosen ^ {i})
            if cost < best:
                chosen, best = chosen ^ {i}, cost
        if best == before:
            return chosen


def _operations(t: Topology, held: Sequence[int], chosen: frozenset[int]) -> float:
    """About how many operations propagating and expanding take."""
    at = [_new(n) for n in held]
    met, count, root = list[tuple[int, int, float]](), 0.0, _roots(t)
    for i in reversed(t.links):
        rows = at[i]
        if i in chosen:
            met.append((root[i], sum(rows), _dense(rows)))
            rows = _new(6)
        for _ in range(t.v_slices[i].start, t.v_slices[i].stop):
            n = _dense(rows)
            count += THROUGH * n + n * (n + 1)
            rows = (0, *rows[:-2], rows[-2] + rows[-1])
        count += MOVE * _dense(rows)
        at[t.parent[i]] = tuple(map(add, at[t.parent[i]], rows))
    known = {i: 6 if i in chosen else sum(at[i]) for i in t.links if t.parent[i] == 0}
    for tree, m, n in reversed(met):
        others = known[tree] - 6
        count += EXPAND * n * others + EXPAND * n * 6 + (EXPAND * n + m) * (m + 1) / 2
        known[tree] = others + m
    return count


def _new(rows: int) -> Ages:
    return (rows, *(0 for _ in DENSE[1:]))


def _dense(rows: Ages) -> float:
    """Rows, counted by their entries that are not zeros or ones."""
    return sum(n * share for n, share in zip(rows, DENSE, strict=True))


def _roots(t: Topology) -> list[int]:
    """For each link the one next to the world that carries it: only rows of the same tree are coupled."""
    root = list(range(len(t.parent)))
    for i in t.links:
        root[i] = root[t.parent[i]] if t.parent[i] else i
    return root
