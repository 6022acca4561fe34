"""Scaling mechanisms with internal loops, after sathya2025_lcaba_proxbbo, section VI-C.

All have hinges in Denavit-Hartenberg frames that step up a staircase, and cut joints that fit at neutral q.
"""

from __future__ import annotations

import numpy as np

from linkwork.checks import NAME, checked, choice
from linkwork.model import Builder, Model, Placement
from linkwork.robots.mechanisms.parts import BASE, LENGTH, closed, count
from linkwork.robots.mechanisms.trees import Pattern, add_chain, add_root


@checked(n=count(3), cut=NAME, length=LENGTH, base=BASE)
def ring(n: int, *, cut: str = "fixed", length: float = 0.2, base: str = "fixed") -> Model:
    """A cycle of n links `link1` ... `linkn`.

    A chain whose end is joined to its first link by the cut joint (fig. 6).

    The first link is on a hinge (base="fixed") or floats. Welded, 6 rows and mobility n - 6 (n >= 7; one of them is
    the first link's hinge); afloat 5 more. Closed at neutral q.
    """
    b, pattern = Builder(f"ring {n}"), Pattern(length)
    add_root(b, "link1", base, pattern)
    add_chain(b, "link", range(2, n + 1), "link1", pattern.onward(1), pattern)
    return closed(b.build(), "linktip", "link1", cut)


@checked(loops=count(1), links=count(2), cut=NAME, length=LENGTH, base=BASE)
def chain_of_loops(
    loops: int, links: int = 7, *, cut: str = "fixed", length: float = 0.2, base: str = "fixed"
) -> Model:
    """Loops in a row, each of `links` links besides one that it shares with the loop before (fig. 7).

    `root` carries the first loop `loop1_1` ... `loop1_<links>`, whose end is joined to `root` again; its middle link
    carries the next loop, and so on. 1 + loops links links, 6 loops rows, mobility 1 + loops (links - 6) when
    welded; closed at neutral q.
    """
    b, pattern, carriers = Builder(f"chain of {loops} loops of {links}"), Pattern(length), ["root"]
    add_root(b, "root", base, pattern)
    for k in range(1, loops + 1):
        start = pattern.onward(1) if k == 1 else pattern.onward(middle(links)) @ Placement.at(rpy=(np.pi / 2, 0, 0))
        add_chain(b, f"loop{k}_", range(1, links + 1), carriers[-1], start, pattern)
        carriers.append(f"loop{k}_{middle(links)}")
    model = b.build()
    for k in range(1, loops + 1):
        model = closed(model, f"loop{k}_tip", carriers[k - 1], cut)
    return model


def middle(links: int) -> int:
    """The number of the link in the middle of a loop: the one that carries the next loop."""
    return (links + 1) // 2


@checked(loops=count(1), spacing=count(1), cut=NAME, length=LENGTH, base=BASE)
def all_coupled_loops(
    loops: int, spacing: int = 4, *, cut: str = "fixed", length: float = 0.2, base: str = "fixed"
) -> Model:
    """A chain in which every loop shares a joint with every other loop: the worst case (fig. 8).

    2 loops spacing links `link1` ...; link k spacing is joined to the link loops spacing further on, so that every
    loop runs through the middle of the chain. 6 loops rows; closed at neutral q.
    """
    b, pattern, n = Builder(f"{loops} coupled loops"), Pattern(length), loops * spacing
    add_root(b, "link1", base, pattern)
    add_chain(b, "link", range(2, 2 * n + 1), "link1", pattern.onward(1), pattern)
    for k in range(1, loops + 1):
        b.frame(f"end{k}", f"link{n + k * spacing}", pattern.end(n + k * spacing))
    model = b.build()
    for k in range(1, loops + 1):
        model = closed(model, f"end{k}", f"link{k * spacing}", cut)
    return model


@checked(
    branches=count(2),
    links=count(1),
    joined=choice("way to join branches", ("hub", "row", "pairs")),
    cut=NAME,
    length=LENGTH,
    base=BASE,
)
def star_of_loops(
    branches: int, links: int = 7, *, joined: str = "hub", cut: str = "fixed", length: float = 0.2, base: str = "fixed"
) -> Model:
    """Branches of `links` links from one link, `root`, with their tips joined to each other (fig. 9).

    `joined` says how: "hub" joins every tip to that of the first branch (no link that is eliminated has then more
    than one neighbour), "row" each to the next, "pairs" two by two. 1 + branches links links, 6 rows for each of the
    branches - 1 (pairs: branches / 2) cut joints. Branches are `branch<k>_<i>`; closed at neutral q.
    """
    b, pattern = Builder(f"star of {branches} branches of {links}"), Pattern(length)
    add_root(b, "root", base, pattern)
    for k in range(1, branches + 1):
        spread = Placement.at(rpy=(2 * np.pi * k / branches, 0, 0)) @ Placement.at(rpy=(0, np.pi / 2, 0))
        add_chain(b, f"branch{k}_", range(1, links + 1), "root", pattern.end(1) @ spread, pattern)
    model = b.build()
    pairs = {
        "hub": [(k, 1) for k in range(2, branches + 1)],
        "row": [(k, k - 1) for k in range(2, branches + 1)],
        "pairs": [(k, k - 1) for k in range(2, branches + 1, 2)],
    }[joined]
    for k, other in pairs:
        model = closed(model, f"branch{k}_tip", f"branch{other}_{links}", cut)
    return model
