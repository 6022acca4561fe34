"""From a graph of links and joints to a tree and the joints that are cut.

Kruskal's algorithm keeps joints in order of preference as long as they join parts that are not joined yet; whatever is
left closes a loop and is cut. Joints that are expensive to cut are preferred: fixed ones (six rows), then those with
one freedom (five), driven ones first, then those with more. Among equals, joints near the root come first, so that a
loop is cut where it is farthest from the root: its two branches are equally long, which keeps trees shallow and
eliminations short.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from linkwork.errors import ModelError, listing, not_found


@dataclass(frozen=True)
class GraphJoint:
    """A joint between two links; `freedom` is its number of degrees of freedom."""

    name: str
    parent: str
    child: str
    freedom: int = 1
    driven: bool = False


def spanning_tree(
    links: Sequence[str], joints: Sequence[GraphJoint], roots: Iterable[str], cut: Sequence[str] = ()
) -> tuple[list[GraphJoint], list[GraphJoint]]:
    """The joints of the tree and those that are cut, both in the order given.

    `roots` are the links that count as near: the world, a canonical link. Joints named in `cut` are cut; it is an error
    if that disconnects the graph.
    """
    known = {j.name for j in joints}
    for name in cut:
        if name not in known:
            raise not_found("joint to cut", name, known)
    away = _distances(links, joints, roots)

    def preference(k: int) -> tuple[bool, int, bool, int, int]:
        j = joints[k]
        return j.name in cut, j.freedom, not j.driven, min(away[j.parent], away[j.child]), k

    part, kept = {name: name for name in links}, set()
    for k in sorted(range(len(joints)), key=preference):
        a, b = _part(part, joints[k].parent), _part(part, joints[k].child)
        if a == b:
            continue
        if joints[k].name in cut:
            lost = [l for l in links if _part(part, l) == (b if away[joints[k].parent] <= away[joints[k].child] else a)]
            raise ModelError(
                f"joint '{joints[k].name}' cannot be cut: it closes no loop, and without it nothing holds "
                f"{listing(lost)}"
            )
        part[a] = b
        kept.add(k)
    return [j for k, j in enumerate(joints) if k in kept], [j for k, j in enumerate(joints) if k not in kept]


def _part(part: dict[str, str], name: str) -> str:
    """The representative of the part that a link is in."""
    while part[name] != name:
        part[name] = part[part[name]]
        name = part[name]
    return name


def _distances(links: Sequence[str], joints: Sequence[GraphJoint], roots: Iterable[str]) -> dict[str, int]:
    """How many joints each link is away from the nearest root; links that no root reaches start anew."""
    beside: dict[str, list[str]] = {name: [] for name in links}
    for j in joints:
        beside[j.parent].append(j.child)
        beside[j.child].append(j.parent)
    away: dict[str, int] = {}
    for starts in (list(roots), *([name] for name in links)):
        front = [name for name in starts if name not in away]
        away.update(dict.fromkeys(front, 0))
        while front:
            inner = front.pop(0)
            for outer in beside[inner]:
                if outer not in away:
                    away[outer] = away[inner] + 1
                    front.append(outer)
    return away
