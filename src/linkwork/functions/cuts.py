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
    """Where to cut the loops of a file's joint graph (SDF).

    For ``lw.load(file, cut=lw.best_cuts(file).joints)``. The spanning tree is searched for by exchanging cut joints,
    with forward dynamics planned for each (a second or two for each tree). `use` and `independent` are those of
    `plan`, `options` those of `load`, without `cut`.
    """

    def predict(model: Model) -> float:
        return plan(model, use=use, independent=independent).best.predicted[use]

    return search(lambda cut: load(source, cut=cut, **options), predict)
