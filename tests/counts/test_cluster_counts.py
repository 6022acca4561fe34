"""Operation counts: the order of the paper's tables II to IV, and growth with the number of links.

Our figures differ from the paper's times because a trace leaves zeros out of every method alike: the dense products
with G that cost `projected_rnea` its time are free here, and so is most of the projected mass matrix of short legs
(docs/choosing-an-algorithm.md has both, robot by robot).
What `c_rnea` and `c_aba` save instead is rotors: they are never turned, and weigh on what carries them (but for JVRC-1,
most of whose rotors are not symmetric about their axes).
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest

import cluster_cases as cases
import linkwork as lw
from linkwork.robots import mechanisms as mech
from linkwork.robots import scenarios

# algorithms as the papers have them: in the frames of the model
forward_dynamics = partial(lw.forward_dynamics, frames="given")
inverse_dynamics = partial(lw.inverse_dynamics, frames="given")
delassus = partial(lw.delassus, frames="given")

CHAINS = {"gears": lambda: mech.geared_chain(12), "belts": lambda: mech.belt_chain(12)}
ROBOTS = {**CHAINS, **{n: cases.ROBOTS[n] for n in ("mini_cheetah", "mit_humanoid", "jvrc1_humanoid", "tello")}}


@cache
def forward(name: str, method: str) -> int:
    return forward_dynamics(ROBOTS[name](), method=method).operations


@pytest.mark.parametrize("name", ROBOTS)
def test_inverse_dynamics_as_in_table_2(name) -> None:
    model = ROBOTS[name]()
    exact, projected = (inverse_dynamics(model, method=m).operations for m in ("c_rnea", "projected_rnea"))
    assert 1.03 < projected / exact < 1.6
    if name != "jvrc1_humanoid":
        assert projected / exact > 1.22
    if name != "tello":
        assert 0.5 < inverse_dynamics(lw.approximate(model)).operations / exact < 1


@pytest.mark.parametrize("name", ROBOTS)
def test_forward_dynamics_as_in_table_3(name) -> None:
    exact = forward(name, "c_aba")
    assert 1.15 < forward(name, "projection") / exact < 3
    if name != "jvrc1_humanoid":  # tracing that takes longest
        assert forward(name, "projection") < forward(name, "lagrange")
        # c_aba looks at the equation of motion where a cluster has a linkage, lagrange does not
        assert 1.5 < forward(name, "lagrange") / exact < 3.2
    if name != "tello":
        approximate = forward_dynamics(lw.approximate(ROBOTS[name]()), method="aba").operations
        assert 0.75 < approximate / exact < 1.05


FEET = {
    "gears": ["tip"],
    "belts": ["tip"],
    "tello": ["left-foot", "right-foot"],
    "mini_cheetah": [f"{leg}_knee_link" for leg in ("FL", "FR", "HL", "HR")],
    "mit_humanoid": ["left_ankle_link", "right_ankle_link"],
    "jvrc1_humanoid": ["left-ankle-pitch", "right-ankle-pitch"],
}


@pytest.mark.parametrize("contact", [lw.surface, lw.point], ids=["6-D", "3-D"])
@pytest.mark.parametrize("name", FEET)
def test_delassus_and_table_4(name, contact) -> None:
    """`projected_efpa` costs more on all robots, by less than in the paper on short limbs: its factor and its products
    leave out all zeros. With a dense factor it costs 50 to 550 % more.
    """
    model = ROBOTS[name]().with_constraints(*(contact(f) for f in FEET[name]))
    efpa, pv, projected, dense = (
        delassus(model, method=m).operations for m in ("c_efpa", "c_pv", "projected_efpa", "projection")
    )
    assert 1 < projected / efpa < 1.5
    assert 1.4 < dense / efpa < 7
    assert abs(efpa / pv - 1) < 0.01
    if name != "tello":
        assert efpa < delassus(lw.approximate(model), method="efpa").operations


def test_many_constraints_on_one_way_meet_at_their_common_body() -> None:
    """The way back of accelerations pays where a long stem carries many tips, and keeps the order of `efpa`."""
    model = mech.stem(10, 8, branch_links=2).without_constraints()
    model = model.with_constraints(*(lw.surface(f"far{k}_tip") for k in range(1, 9)))
    efpa, pv, plain = (delassus(model, method=m).operations for m in ("c_efpa", "c_pv", "efpa"))
    assert efpa <= plain
    assert efpa < 0.95 * pv


def held(n: int, chain) -> lw.Model:
    return chain(n).with_constraints(lw.point("tip"))


@pytest.mark.parametrize(("method", "degree"), [("c_aba", 1), ("projection", 3), ("lagrange", 3)])
@pytest.mark.parametrize("chain", [mech.geared_chain, mech.belt_chain], ids=["gears", "belts"])
def test_counts_are_polynomials_of_the_number_of_links(chain, method: str, degree: int) -> None:
    """Differences of this order are one positive number: exactly linear for clusters, cubic for the references."""
    counts = [forward_dynamics(chain(n), method=method).operations for n in range(8, 13 + 4 * degree, 4)]
    differences = np.diff(counts, degree)
    assert np.ptp(differences) == 0, differences
    assert differences[0] > 0


def test_operational_space_inertias_of_clusters_grow_linearly() -> None:
    """Exactly; the reference bends upwards by a tenth and more every four links."""
    for method in ("c_efpa", "projected_efpa"):
        counts = np.array([delassus(held(n, mech.geared_chain), method=method).operations for n in range(7, 16, 4)])
        bend = np.diff(counts, 2) / np.diff(counts)[0]
        assert np.all(np.abs(bend) < 2e-2) if method == "c_efpa" else np.all(bend > 0.1), (method, bend)


def test_trees_without_loops_cost_what_the_plain_algorithms_cost() -> None:
    model = mech.humanoid(hands=False)
    assert forward_dynamics(model, method="c_aba").operations == forward_dynamics(model, method="aba").operations
    assert inverse_dynamics(model, method="c_rnea").operations == inverse_dynamics(model, method="rnea").operations
    model = model.with_constraints(lw.surface("left_foot"), lw.surface("right_foot"))
    assert delassus(model, method="c_efpa").operations <= delassus(model, method="efpa").operations


def test_contacts_on_geared_robots() -> None:
    """Four feet of Mini Cheetah: gears in clusters cost half of what they cost as rows, and iterate less."""
    model = ROBOTS["mini_cheetah"]().with_constraints(*(lw.point(f) for f in FEET["mini_cheetah"]))
    counts = {m: forward_dynamics(model, method=m).operations for m in ("c_aba", "pv", "c_lcaba", "lcaba", "prox_bbo")}
    assert counts["c_aba"] < 0.5 * counts["pv"]
    assert counts["c_lcaba"] < 0.9 * counts["lcaba"] < counts["prox_bbo"]


@pytest.mark.parametrize("hands", [False, True], ids=["standing", "holding hands"])
def test_a_geared_humanoid_that_stands_and_holds_its_hands(hands) -> None:
    """MIT Humanoid: gears in clusters save a sixth to a third of the start and a fifth to a half of every step."""
    model = ROBOTS["mit_humanoid"]().with_constraints(*(lw.surface(f) for f in FEET["mit_humanoid"]))
    if hands:
        model = model.with_constraints(lw.Weld("left_elbow_link", "right_elbow_link"))
    made = {m: forward_dynamics(model, method=m) for m in ("c_lcaba", "lcaba", "c_prox_bbo", "prox_bbo", "prox_ltl")}
    start = {m: f.operations for m, f in made.items()}
    step = {m: f.program.iterate.operations for m, f in made.items()}
    assert start["c_lcaba"] < 0.85 * start["lcaba"] < 0.5 * start["prox_ltl"]
    assert start["c_prox_bbo"] < 0.8 * start["prox_bbo"]
    assert step["c_lcaba"] < 0.85 * step["lcaba"]
    assert step["c_prox_bbo"] < 0.6 * step["prox_bbo"]
    exact = forward_dynamics(model, method="c_aba").operations
    assert exact < start["c_lcaba"] + 4 * step["c_lcaba"]


def test_rotors_cost_little_where_nobody_can_tell_that_they_turn() -> None:
    """Mini Cheetah with twelve rotors: exact forward dynamics for the price of approximate ones."""
    exact = forward("mini_cheetah", "c_aba")
    bare = forward_dynamics(lw.approximate(ROBOTS["mini_cheetah"]()), method="aba").operations
    assert exact < 1.01 * bare


def test_at_most_six_rows_are_propagated_through_many_clusters() -> None:
    """The open point of chignoli2023_clusters, PV-OSIMr on clusters: twelve rows on the tip of a geared arm."""
    model = mech.geared_chain(10)
    for k, place in enumerate([(0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1), (0.1, 0.1, 0.1)]):
        model = model.with_frame(f"p{k}", "tip", lw.Placement.at(place))
    model = model.with_constraints(*(lw.point(f"p{k}") for k in range(4)))
    ours, reduced, published = (delassus(model, method=m) for m in ("c_pv", "c_pv_r", "c_efpa_published"))
    assert reduced.operations < 0.8 * ours.operations
    assert reduced.operations < 0.8 * published.operations
    q = model.random_q(0)
    assert reduced(q).matrix == pytest.approx(ours(q).matrix, rel=1e-9, abs=1e-9 * np.abs(ours(q).matrix).max())


def test_what_checking_embedded_rows_costs() -> None:
    """Rows of points are over links there: over joints each has a column for all of Cassie's (14 351 and 15 413)."""
    try:
        model = scenarios.cassie()
    except lw.LinkworkError as missing:
        pytest.skip(str(missing))
    for method, most in {"c_aba": 12_542, "c_lcaba": 13_482}.items():
        assert lw.forward_dynamics(model, method=method).operations <= most
