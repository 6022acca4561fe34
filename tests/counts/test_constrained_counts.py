"""Operation counts: exact and repeatable, so the papers' claims about cost can be assertions."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import linkwork as lw
from linkwork.robots import mechanisms as mech

# algorithms as the papers have them: in the frames of the model
forward_dynamics = partial(lw.forward_dynamics, frames="given")


def operations(model: lw.Model, method: str, **options: object) -> int:
    return forward_dynamics(model, method=method, **options).operations


def dh_chain(n: int) -> lw.Model:
    """A serial chain of hinges in Denavit-Hartenberg frames with no zero anywhere: Tx(a) Rx(alpha) Tz(d) Rz(q)."""
    rng, b, parent = np.random.default_rng(0), lw.Builder("dh"), "world"
    for i in range(n):
        alpha, a, d = rng.uniform(0.3, 1.0, 3)
        A = rng.normal(size=(3, 3))
        place = lw.Placement.at((a, 0, 0), (alpha, 0, 0)) @ lw.Placement.at((0, 0, d))
        b.link(
            f"l{i}",
            parent,
            "revolute",
            axis="z",
            placement=place,
            inertia=lw.BodyInertia(1.0, rng.normal(size=3), A @ A.T),
        )
        parent = f"l{i}"
    return b.build()


@pytest.mark.parametrize("n", [7, 30])
def test_aba_beats_the_published_hand_optimised_count(n) -> None:
    """224 n - 259 multiplications and 205 n - 248 additions for n hinges in Denavit-Hartenberg frames."""
    counts = forward_dynamics(dh_chain(n)).program.counts()
    multiplications = sum(counts.get(k, 0) for k in ("mul", "div", "sq"))
    additions = sum(counts.get(k, 0) for k in ("add", "sub", "neg"))
    assert multiplications <= 224 * n - 259
    assert additions <= 205 * n - 248


def tip_held(n: int) -> lw.Model:
    return mech.chain(n).with_constraints(lw.surface("linktip"))


@pytest.mark.parametrize(("method", "options"), [("pv_early", {}), ("constrained_aba", {}), ("pv_soft", {"R": 1e-3})])
def test_linear_growth_on_chains_and_on_the_ladder(method, options) -> None:
    """Equal steps in length cost equally much: the second difference is nothing beside the first."""
    for family, sizes in ((tip_held, (10, 20, 30)), (mech.ladder, (1, 2, 3))):
        small, middle, large = (operations(family(n), method, **options) for n in sizes)
        assert abs((large - middle) - (middle - small)) <= 0.02 * (middle - small), family


def test_joint_space_factorisation_grows_faster_than_the_chain() -> None:
    small, middle, large = (operations(tip_held(n), "ltl") for n in (8, 14, 20))
    assert (large - middle) > 1.3 * (middle - small)


def test_early_elimination_costs_less_the_more_rows_there_are() -> None:
    """PV carries all rows to the base, PV-early almost none."""
    h = mech.humanoid(hands=False)
    frames = ("left_foot", "right_foot", "left_hand", "right_hand")
    saved = []
    for n in (1, 2, 4):
        model = h.with_constraints(*(lw.surface(f) for f in frames[:n]))
        saved.append(operations(model, "pv") / operations(model, "pv_early"))
    assert saved[0] < saved[1] < saved[2]
    assert saved[2] > 1.3


def test_constraints_cost_constrained_aba_next_to_nothing() -> None:
    h = mech.humanoid(hands=False)
    held = h.with_constraints(*(lw.surface(f) for f in ("left_foot", "right_foot", "left_hand", "right_hand")))
    assert operations(held, "constrained_aba") <= 1.17 * operations(h, "aba")  # 0.02: errors weighed by inertias


def test_lcaba_without_loops_costs_what_constrained_aba_does() -> None:
    model = mech.quadruped().with_constraints(lw.point("front_left_foot"), lw.point("rear_right_foot"))
    assert operations(model, "lcaba") == operations(model, "constrained_aba")


def per_loop(family, method: str, sizes: tuple[int, ...]) -> list[int]:
    counts = [operations(family(n), method) for n in sizes]
    return [b - a for a, b in pairwise(counts)]


@pytest.mark.parametrize("method", ["lcaba", "prox_bbo"])
def test_rings_and_chains_of_loops_are_linear(method) -> None:
    first, second = per_loop(mech.ring, method, (8, 14, 20))
    assert abs(second - first) <= 0.03 * first
    first, second = per_loop(mech.chain_of_loops, method, (1, 2, 3))
    assert abs(second - first) <= 0.03 * first


@pytest.mark.parametrize(
    ("family", "size", "method", "most"),
    [(mech.ring, 8, "bbo", 3979), (mech.star_of_loops, 4, "bbo", 23951), (mech.ring, 8, "projection", 3747)],
)
def test_direct_methods_with_their_certificate(family, size: int, method: str, most: int) -> None:
    """The check that M vdot + c = tau + J^T lam takes 4 to 13 % of these; forces are propagated, not rows."""
    assert operations(family(size), method) <= most


def test_a_star_of_loops_is_linear_for_lcaba_only() -> None:
    """sathya2025 VI-C: no link that leaves has more than one neighbour, while carried rows pile up at the hub."""
    from linkwork.structure.elimination import eliminate

    star = mech.star_of_loops(6)
    order = eliminate(star.topology, [[l for l in c.touches(star) if l] for c in star.constraints])
    assert order.most_neighbours == 1
    lcaba = per_loop(mech.star_of_loops, "lcaba", (3, 5, 7))
    assert abs(lcaba[1] - lcaba[0]) <= 0.02 * lcaba[0]
    for method in ("prox_bbo", "prox_ltl"):
        first, second = per_loop(mech.star_of_loops, method, (2, 4, 6))
        assert second > 1.2 * first, method


def test_loops_that_are_all_coupled_cost_lcaba_at_most_a_third_more_than_joint_space() -> None:
    model = mech.all_coupled_loops(3)
    assert operations(model, "lcaba") <= 1.3 * operations(model, "prox_ltl")


def test_minimum_degree_is_close_to_the_best_order_on_small_mechanisms() -> None:
    from linkwork.structure.elimination import best_order, eliminate

    worst = 1.0
    for seed in range(12):
        model = mech.random_mechanism(seed, n=7, loops=3, contacts=0, couplings=0, distances=1)
        coupled = [[l for l in c.touches(model) if l] for c in model.constraints]
        best = best_order(model.topology, coupled)
        assert best is not None
        worst = max(worst, (1 + eliminate(model.topology, coupled).fill) / (1 + best.fill))
    assert worst <= 1.5
