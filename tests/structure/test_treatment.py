"""Embedded, penalised or propagated: every mixture solves the same problem, and the chosen one is little work."""

from __future__ import annotations

import random
from itertools import chain, combinations, product

import numpy as np
import pytest

import linkwork as lw
from helpers import motion
from linkwork.algorithms.common.iteration import Prox, run
from linkwork.algorithms.constrained.kkt import kkt
from linkwork.algorithms.constrained.prox_bbo import on_tree
from linkwork.constraints import jacobian
from linkwork.constraints.rows import constraint_rows, holders
from linkwork.robots import mechanisms as mech
from linkwork.robots.scenarios import scenario
from linkwork.structure.clusters import links_alone
from linkwork.structure.constraint_treatment import (
    EMBEDDED,
    PENALISED,
    PROPAGATED,
    Mixture,
    Ways,
    chosen,
    play,
    treated,
    tree_of,
)
from linkwork.structure.local_loops import local_loops


def tangled(seed: int) -> lw.Model:
    """A random tree with welds and points between links, and some links held by the world."""
    rng = random.Random(seed)
    tree = mech.random_tree(rng.randint(5, 10), seed=seed)
    names = [link.name for link in tree.links[1:]]
    between = [(lw.Weld, lw.Connect)[k % 2](*rng.sample(names, 2), name=f"pair {k}") for k in range(rng.randint(2, 4))]
    return tree.with_constraints(*between, *(lw.point(rng.choice(names), name=f"held {k}") for k in range(2)))


def subsets(items: list[int]) -> list[frozenset[int]]:
    return [frozenset(x) for x in chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))]


def mixtures(model: lw.Model) -> list[Mixture]:
    """All that a search chooses from, and some in which rows on one link are carried too."""
    m = motion(model, *states(model, 0))
    rows = constraint_rows(m)
    held, sizes = [holders(model, r) for r in rows], [r.k.shape[0] for r in rows]
    nodes, loops = links_alone(model).clusters, [c for c, r in enumerate(rows) if len(r.links) > 1]
    others = frozenset(range(len(rows))).difference(loops)
    return [
        play(model.topology, held, sizes, nodes, penalised | alone)
        for alone in (others, frozenset())
        for penalised in subsets(loops)
    ]


def gripping() -> lw.Model:
    """A free gripper of two linkages and a coupling; its tips are tied, and one of them is held."""
    hand = mech.gripper("four_bar", base="free")
    return hand.with_constraints(lw.Connect("left_tip", "right_tip", name="tips"), lw.point("left_tip", name="held"))


def ways(model: lw.Model) -> list[tuple[str, ...]]:
    """All that can be done with the constraints of a model whose local loops come first."""
    local = {n for _, group in local_loops(model) for n in group}
    rows = constraint_rows(motion(model, *states(model, 0)))
    able = [
        [PENALISED, *([PROPAGATED] if len(r.links) > 1 else []), *([EMBEDDED] if n in local else [])]
        for n, r in enumerate(rows)
    ]
    return list(product(*able))


def states(model: lw.Model, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return model.random_q(rng), rng.normal(size=model.nv)


@pytest.mark.parametrize("seed", range(12))
def test_every_mixture_is_right(seed: int) -> None:
    """Also where rows travel past links that penalties couple, so that these hold them too."""
    model = tangled(seed)
    m, tau = motion(model, *states(model, seed)), np.random.default_rng(seed).normal(size=(model.nv, 1))
    right, _ = kkt(m, tau)
    scale = np.abs(right).max()
    travelled = 0
    for mix in mixtures(model):
        travelled += mix.couples and bool(mix.ends)
        step = on_tree(m, links_alone(model), tau, None, 1e5, None, None, mix)
        a, lam, *_ = run(step, Prox(tolerance=1e-11, max_iterations=60))
        np.testing.assert_allclose(a, right, atol=1e-6 * scale, err_msg=str(sorted(mix.penalised)))
        assert lam.shape == (model.rows, 1)
    assert travelled


def test_embedded_loops_mix_with_the_others() -> None:
    """All ways to treat a coupling, two linkages, a loop through both, and a contact."""
    model = gripping()
    q, v = lw.random_state(model, 0)
    m, tau = motion(model, q, v), np.random.default_rng(0).normal(size=(model.nv, 1))
    right, forces = kkt(m, tau)
    J, seen = jacobian(m), set[int]()
    for way in ways(model):
        embedded, penalised = ({c for c, w in enumerate(way) if w == x} for x in (EMBEDDED, PENALISED))
        tree = tree_of(model, embedded)
        rows = constraint_rows(m)
        held, sizes = [holders(model, r) for r in rows], [r.k.shape[0] for r in rows]
        mix = play(model.topology, held, sizes, tree.clusters, frozenset(penalised))
        assert mix.embedded == embedded
        step = on_tree(m, tree, tau, None, 1e5, None, None, mix.among(tree.outer))
        a, lam, *_ = run(step, Prox(tolerance=1e-11, max_iterations=60))
        np.testing.assert_allclose(a, right, atol=1e-6 * np.abs(right).max(), err_msg=str(way))
        np.testing.assert_allclose(J.T @ lam, J.T @ forces, atol=1e-5 * np.abs(J.T @ forces).max(), err_msg=str(way))
        seen.add(len(embedded))
    assert seen == {0, 1, 2, 3, 4}


def test_couplings_are_embedded_and_linkages_only_if_they_may_be() -> None:
    """Tello's motors sit on differentials, its knees on linkages: without a promise, only couplings are in clusters."""
    model = gripping()
    couplings = {n for n, c in enumerate(model.constraints) if isinstance(c, lw.Coupling)}
    assert chosen(model).embedded == set()
    assert chosen(model, "couplings").embedded == couplings
    assert chosen(model, "loops").embedded > couplings
    assert chosen(model, "loops").work < chosen(model, "couplings").work < chosen(model).work


def test_a_cam_is_embedded_only_by_promise() -> None:
    """Where a polynomial is level, the joint that drives does not follow from the one that is driven."""
    b = lw.Builder("cam")
    for name in ("driven", "cam"):
        b.link(
            name,
            "world",
            "revolute",
            axis="y",
            inertia=lw.BodyInertia(1.0, np.array([0.1, 0, 0]), np.eye(3)),
            joint_name=f"{name}_joint",
            actuated=name == "driven",
        )
    b.constraints.append(lw.Coupling("driven_joint", {"cam_joint": [0.0, 2.0]}))
    model = b.build()
    assert not chosen(model, "couplings").embedded
    picked = lw.forward_dynamics(model)
    assert not picked.method.startswith("c_")
    right = lw.forward_dynamics(model, method="kkt", backend="numpy")(np.zeros(2), np.ones(2), np.ones(2)).a
    np.testing.assert_allclose(picked(np.zeros(2), np.ones(2), np.ones(2)).a, right, atol=1e-6 * np.abs(right).max())


def test_each_loop_decides_for_itself() -> None:
    """A linkage belongs into a cluster; a closed rope beside it, whose joints stay free but for three, does not."""
    base = lw.Builder("base")
    base.link("base", "world", "free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
    both = lw.combine(
        base.build(),
        lw.Part(mech.four_bar(), "bars/", to="base"),
        lw.Part(mech.chain(6, ["spherical"]), "rope/", to="base"),
    )
    model = both.with_constraints(lw.Connect(both.links[-1].name, "base", name="closed"))
    mix = chosen(model, "loops")
    assert [model.constraints[n].name for n in mix.ends] == ["closed"]
    assert len(mix.embedded) == 1

    def operations(method: str) -> int:
        program = lw.forward_dynamics(model, method=method, frames="given").program
        return program.operations + program.iterate.operations

    assert operations("c_mixed") < 0.6 * operations("c_prox_bbo")
    # less work but for the look at the equation of motion, which only methods with linkages in clusters need
    assert operations("c_mixed") < 1.25 * min(operations("mixed"), operations("prox_bbo"), operations("lcaba"))
    reasons = {c.method: c.reason for c in lw.plan(model, independent=True).candidates}
    assert not reasons["c_mixed"]
    assert "identical to c_lcaba" in reasons["c_prox_bbo"], "there is nothing outside of clusters"
    assert "more work than c_mixed" in reasons["c_lcaba"]


def test_penalties_do_not_pass_through_linkages_in_clusters() -> None:
    """A contact behind a linkage would: near a singular posture of the linkage, its penalty has too few digits left."""
    base = lw.Builder("base")
    base.link("base", "world", "free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
    robot = lw.combine(base.build(), lw.Part(mech.four_bar(), "bars/", to="base"))
    behind, before = (
        robot.with_constraints(*robot.constraints, lw.point(link, name="contact"))
        for link in (robot.links[-1].name, "base")
    )

    def reasons(model: lw.Model) -> dict[str, str]:
        return {c.method: c.reason for c in lw.plan(model, independent=True).candidates}

    held = [c.name for c in behind.constraints].index("contact")
    assert treated(behind, Ways("loops", penalises=True)).strained == {held}
    assert "digits" in reasons(behind)["c_lcaba"]
    mix = chosen(behind, "loops")
    assert not mix.strained
    assert not mix.embedded or mix.ends[held] == 0, "the contact is propagated through the linkage to the world"
    assert not treated(before, Ways("loops", penalises=True)).strained
    assert "digits" not in reasons(before)["c_lcaba"]


def test_the_search_finds_the_least_work_or_nearly() -> None:
    """One change at a time, against all mixtures there are."""
    losses = []
    for seed in range(30):
        model = tangled(seed)
        least = min(m.work for m in mixtures(model))
        losses.append(chosen(model).work / least)
    assert np.mean(np.array(losses) < 1.01) > 0.9
    assert max(losses) < 1.15


def test_rows_are_propagated_to_the_root_of_their_loop_and_contacts_to_the_world() -> None:
    loops = mech.chain_of_loops(2)
    model = loops.with_constraints(*loops.constraints, lw.point("loop1_3", name="held"))
    propagated = min((m for m in mixtures(model)), key=lambda m: len(m.penalised))
    t = model.topology
    for c, end in propagated.ends.items():
        links = model.constraints[c].touches(model)
        common = set.intersection(*({0, *t.supports[l]} for l in links))
        assert end in common
        assert not [l for l in common if t.depth[l] > t.depth[end]], "it could have gone earlier"


def test_what_couplings_and_contacts_choose() -> None:
    assert not chosen(mech.geared_chain(3)).ends
    standing = mech.quadruped().with_constraints(lw.point("front_left_foot"))
    assert not chosen(standing).ends
    assert not chosen(standing).couples
    assert chosen(mech.ring(4)).couples


@pytest.mark.parametrize("name", ["digit_rods_standing", "two_digits_rods_box"])
def test_mixing_saves_a_sixth_where_loops_are_carried_and_contacts_penalised(name: str) -> None:
    """Operations of two solves, against the better of both without mixing."""
    try:
        model = scenario(name)
    except lw.LinkworkError as missing:
        pytest.skip(str(missing))

    def operations(method: str) -> int:
        program = lw.forward_dynamics(model, method=method, frames="given").program
        return program.operations + program.iterate.operations

    assert operations("mixed") < 0.83 * min(operations("lcaba"), operations("prox_bbo"))
