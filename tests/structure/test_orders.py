"""Orders of elimination: what a short search finds beyond minimum degree, and that results do not depend on it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.kernels.cache import program_cache
from linkwork.robots import mechanisms as mech
from linkwork.structure import elimination
from linkwork.structure.elimination import best_order, coupled_links, eliminate, ordered
from surroundings import Environment


def tangled(seed: int) -> lw.Model:
    """A random tree of 6 to 12 links with 2 to 5 welds between any two of them."""
    rng = random.Random(seed)
    tree = mech.random_tree(rng.randint(6, 12), seed=seed)
    names = [link.name for link in tree.links[1:]]
    return tree.with_constraints(*(lw.Weld(*rng.sample(names, 2), name=f"weld {k}") for k in range(rng.randint(2, 5))))


def test_a_short_search_finds_the_best_order_and_beats_minimum_degree_on_some() -> None:
    better = 0
    for seed in range(60):
        model = tangled(seed)
        coupled = coupled_links(model)
        plain, found, best = (
            eliminate(model.topology, coupled),
            ordered(model.topology, coupled),
            best_order(model.topology, coupled),
        )
        assert best is not None
        assert best.fill == found.fill <= plain.fill
        better += found.fill < plain.fill
        left = {i: set(model.topology.children[i]) for i in model.topology.links}
        for k, i in enumerate(found.order):
            assert left[i] <= set(found.order[:k]), "a link left before those that it carries"
    assert better >= 5


def test_a_search_that_is_cut_short_still_has_minimum_degree() -> None:
    model = tangled(3)
    assert ordered(model.topology, coupled_links(model), steps=1) == eliminate(model.topology, coupled_links(model))
    assert best_order(model.topology, coupled_links(model), limit=1) is None


def test_better_orders_save_operations_and_change_no_result(
    environment: Environment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gains = {}
    for seed in range(60):
        coupled = coupled_links(model := tangled(seed))
        gains[seed] = ordered(model.topology, coupled).fill / eliminate(model.topology, coupled).fill
    model = tangled(min(gains, key=lambda k: gains[k]))
    q, v, tau = model.random_q(1), np.zeros(model.nv), np.linspace(-1, 1, model.nv)
    exact = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau)[0]
    operations = []
    for steps in (elimination.SEARCHED, 1):
        monkeypatch.setattr(elimination, "SEARCHED", steps)
        program_cache.invalidate()
        environment["LINKWORK_CACHE"] = str(tmp_path / str(steps))
        function = lw.forward_dynamics(model, method="lcaba")
        operations.append(function.operations)
        assert np.abs(function(q, v, tau)[0] - exact).max() < 1e-5 * np.abs(exact).max()
    assert operations[0] < 0.95 * operations[1]


@pytest.mark.parametrize("make", [mech.four_bar, lambda: mech.chain_of_loops(3), lambda: mech.star_of_loops(3)])
def test_minimum_degree_is_the_best_on_well_known_mechanisms(make) -> None:
    model = make()
    assert ordered(model.topology, coupled_links(model)).fill == eliminate(model.topology, coupled_links(model)).fill
