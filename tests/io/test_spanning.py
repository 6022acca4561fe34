"""Which joints of a graph stay in the tree and which are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linkwork as lw
from helpers import assert_close, motion
from linkwork.constraints import position_error
from linkwork.errors import LoadError, ModelError, NotFound
from linkwork.io.spanning import GraphJoint, spanning_tree


def ring(n: int, **options: dict[int, dict[str, object]]) -> list[GraphJoint]:
    return [GraphJoint(f"j{k}", f"l{k}", f"l{(k + 1) % n}", **options.get(f"j{k}", {})) for k in range(n)]


def names(n: int) -> list[str]:
    return [f"l{k}" for k in range(n)]


@pytest.mark.parametrize("n", [3, 6, 7, 12])
def test_a_ring_is_cut_opposite_to_its_root(n: int) -> None:
    _, (cut,) = spanning_tree(names(n), ring(n), ["l0"])
    assert abs(int(cut.name[1:]) - (n - 1) / 2) <= 1


def test_joints_with_more_freedom_are_cut_first_and_driven_ones_last() -> None:
    cases = [
        ({"j1": {"freedom": 3}, "j2": {"freedom": 2}}, "j1"),
        ({"j1": {"freedom": 0}}, "j2"),
        ({"j2": {"driven": True}, "j3": {"driven": True}, "j0": {"driven": True}}, "j1"),
    ]
    for options, expected in cases:
        _, (cut,) = spanning_tree(names(4), ring(4, **options), ["l0"])
        if expected == "j2":
            assert cut.freedom == 1
        else:
            assert cut.name == expected


def test_the_user_cuts() -> None:
    kept, (cut,) = spanning_tree(names(5), ring(5), ["l0"], cut=["j0"])
    assert cut.name == "j0"
    assert [j.name for j in kept] == ["j1", "j2", "j3", "j4"]
    with pytest.raises(ModelError, match=r"'tail' cannot be cut.*'t'"):
        spanning_tree([*names(3), "t"], [*ring(3), GraphJoint("tail", "l1", "t")], ["l0"], cut=["tail"])
    with pytest.raises(ModelError, match="closes no loop"):
        spanning_tree(names(3), ring(3), ["l0"], cut=["j0", "j1"])
    with pytest.raises(NotFound, match="j2"):
        spanning_tree(names(3), ring(3), ["l0"], cut=["j7"])


@given(st.integers(2, 12), st.integers(0, 8), st.integers(0, 10**6))
def test_any_graph_becomes_a_forest(n: int, extra: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    joints = [
        GraphJoint(f"j{k}", f"l{a}", f"l{b}", int(rng.integers(4)), bool(rng.integers(2)))
        for k, (a, b) in enumerate(rng.integers(0, n, (n + extra, 2)))
        if a != b
    ]
    kept, cut = spanning_tree(names(n), joints, ["l0"])
    assert sorted(j.name for j in [*kept, *cut]) == sorted(j.name for j in joints)
    part = {l: {l} for l in names(n)}
    for j in kept:
        assert part[j.parent] is not part[j.child]  # no loop
        part[j.parent] |= part[j.child]
        for l in part[j.parent]:
            part[l] = part[j.parent]
    for j in cut:
        assert part[j.child] is part[j.parent]  # and nothing lost
        # it could not have replaced a joint of less freedom on its loop
    assert spanning_tree(names(n), joints, ["l0"]) == (kept, cut)


SQUARE = """<sdf version="1.7"><model name="square"><link name="a"/><link name="b"><pose>1 0 0 0 0 0</pose></link>
  <link name="c"><pose>1 1 0 0 0 0</pose></link><link name="d"><pose>0 1 0 0 0 0</pose></link>{}</model></sdf>"""
AXIS = "<axis><xyz>0 0 1</xyz></axis>"
SIDES = "".join(
    f'<joint name="{p}{c}" type="revolute"><parent>{p}</parent><child>{c}</child>{AXIS}</joint>'
    for p, c in ("ab", "bc", "cd", "da")
)


@pytest.mark.parametrize("cut", ["ab", "bc", "cd", "da"])
def test_a_file_is_cut_where_the_user_says(cut: str) -> None:
    model = lw.load(SQUARE.format(SIDES), cut=[cut])
    assert [c.name for c in model.constraints] == [cut]
    assert_close(position_error(motion(model, model.neutral())), np.zeros((5, 1)))
    q, v = lw.random_state(model, 1)
    assert model.nv - np.linalg.matrix_rank(lw.constraint_jacobian(model, backend="numpy")(q).J, 1e-9) == 7
    assert np.abs(v[6:]).max() > 1e-3


def test_a_file_without_a_cut_is_cut_far_from_its_base() -> None:
    (loop,) = lw.load(SQUARE.format(SIDES)).constraints
    assert loop.name in ("bc", "cd")
    with pytest.raises(LoadError, match="joint to cut"):
        lw.load(SQUARE.format(SIDES), cut=["xy"])
    with pytest.raises(LoadError, match="cannot be cut"):
        lw.load(SQUARE.format(SIDES), cut=["ab", "cd"])
    with pytest.raises(LoadError, match="no joint to cut called 'ab'"):
        lw.load('<robot name="r"><link name="a"/></robot>', cut=["ab"])
