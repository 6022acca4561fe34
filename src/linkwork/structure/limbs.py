"""Trunk and limbs: how a mechanism falls apart when some joints near its base are taken out.

The trunk is the set of degrees of freedom that carry at least some number of others; limbs are the parts of the tree
that are left, those that a constraint connects taken as one. Columns of derivatives by the joints of a limb are zero in
all other limbs, and limbs meet in the trunk alone: systems with many columns are solved limb by limb, and then for the
trunk. Its size is chosen by the products that this takes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Limb(NamedTuple):
    """Degrees of freedom, the rows that act on them, and the places in the trunk of those that carry it."""

    dofs: tuple[int, ...]
    rows: tuple[int, ...]
    carriers: tuple[int, ...]


class Limbs(NamedTuple):
    """The trunk's degrees of freedom, and the limbs."""

    trunk: tuple[int, ...]
    limbs: tuple[Limb, ...]


def limbs(parent: Sequence[int], rows: Sequence[tuple[Sequence[int], Collection[int]]]) -> Limbs:
    """The trunk and the limbs for which `products` are the fewest.

    `parent` is that of each degree of freedom (-1: none); `rows` has for each constraint its rows, and the degrees of
    freedom on which these act.
    """
    carried = [1] * len(parent)
    for k in reversed(range(len(parent))):
        if parent[k] >= 0:
            carried[parent[k]] += carried[k]
    sizes = [len(parent) + 1, *sorted(set(carried), reverse=True)]
    trunks = [tuple(k for k in range(len(parent)) if carried[k] >= size) for size in sizes]
    return min((_around(trunk, parent, rows) for trunk in trunks), key=lambda found: products(found, _rows(rows)))


def independent(parent: Sequence[int], rows: Sequence[tuple[Sequence[int], Collection[int]]]) -> tuple[Limb, ...]:
    """The parts of a mechanism that nothing connects."""
    return _around((), parent, rows).limbs


def products(parts: Limbs, rows: int) -> int:
    """Products that solving for a column of each degree of freedom takes (limb_columns.py)."""
    trunk, columns = len(parts.trunk), sum(len(x.dofs) for x in parts.limbs) + len(parts.trunk)
    joined = trunk + rows
    total = columns * sum(len(x.dofs) * (len(x.carriers) + len(x.rows)) for x in parts.limbs) + trunk * joined * joined
    for limb in parts.limbs:
        n, seen = len(limb.dofs), len(limb.carriers) + len(limb.rows)
        # its own columns and those of the trunk
        total += (n + trunk) * n * (n + seen) + n * seen * joined
    return total


def _rows(rows: Sequence[tuple[Sequence[int], Collection[int]]]) -> int:
    return sum(len(r) for r, _ in rows)


def _around(
    trunk: tuple[int, ...], parent: Sequence[int], rows: Sequence[tuple[Sequence[int], Collection[int]]]
) -> Limbs:
    """The limbs of this trunk."""
    place = {k: n for n, k in enumerate(trunk)}
    name = list(range(len(parent)))

    def limb_of(k: int) -> int:
        while name[k] != k:
            k = name[k]
        return k

    for k, p in enumerate(parent):
        if k not in place and p >= 0 and p not in place:
            name[k] = limb_of(p)
    held: list[list[int]] = []
    for _, dofs in rows:
        held.append(sorted(k for k in dofs if k not in place))
        for k in held[-1][1:]:
            name[limb_of(k)] = limb_of(held[-1][0])
    members: dict[int, list[int]] = {}
    for k in range(len(parent)):
        if k not in place:
            members.setdefault(limb_of(k), []).append(k)
    own: dict[int, list[int]] = {}
    for (numbers, _), dofs in zip(rows, held, strict=True):
        if dofs:
            own.setdefault(limb_of(dofs[0]), []).extend(numbers)
    found = []
    for first, dofs in members.items():
        carriers = set[int]()
        for k in dofs:
            p = parent[k]
            while p >= 0 and p in place and p not in carriers:
                carriers.add(p)
                p = parent[p]
        found.append(Limb(tuple(dofs), tuple(own.get(first, ())), tuple(sorted(place[p] for p in carriers))))
    return Limbs(trunk, tuple(found))
