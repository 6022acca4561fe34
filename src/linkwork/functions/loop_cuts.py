"""Where to cut the loops of a file's joint graph."""

from __future__ import annotations

import os
from typing import Any

from linkwork.checks import FLAG, checked
from linkwork.functions.planning import USE, plan
from linkwork.io.load import SOURCE, load
from linkwork.model import Model
from linkwork.planner.trees import Cuts, search


@checked(source=SOURCE, use=USE, independent=FLAG)
def best_cuts(source: str | os.PathLike[str], *, use: str = "state", independent: bool = False, **options: Any) -> Cuts:
    """Where to cut the loops of a file (SDF, USD, URDF+, MJCF).

    For ``lw.load(file, cut=lw.best_cuts(file).joints)``. The spanning tree is searched for by exchanging cut joints,
    with forward dynamics planned for each (a second or two for each tree). Driven joints and those with limits stay in
    the tree; others that are cut keep what they have (`load`). `source` is a file or its text; `use` and `independent`
    are those of `plan`, `options` those of `load`, without `cut`.

    Examples:
        >>> ends = ("world", "bar0"), ("bar0", "bar1"), ("bar1", "bar2"), ("world", "bar2")
        >>> hinge = '<joint name="hinge{}" type="revolute"><parent>{}</parent><child>{}</child>{}</joint>'
        >>> axis = "<axis><xyz>0 1 0</xyz></axis>"
        >>> hinges = "".join(hinge.format(k, *pair, axis) for k, pair in enumerate(ends))
        >>> bars = "".join(f'<link name="bar{k}"><pose>0 0 {k} 0 0 0</pose></link>' for k in range(3))
        >>> found = lw.best_cuts(f'<sdf version="1.9"><model name="loop">{bars}{hinges}</model></sdf>')
        >>> len(found.joints)
        1
    """

    def predict(model: Model) -> float:
        return plan(model, use=use, independent=independent).best.predicted[use]

    return search(lambda cut: load(source, cut=cut, **options), predict)
