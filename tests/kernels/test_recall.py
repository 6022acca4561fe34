"""A function that was compiled before is called again without being traced."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.kernels.recall import Sketch
from linkwork.model.digest import digest
from linkwork.robots.mechanisms import chain, four_bar, quadruped


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LINKWORK_CACHE", str(tmp_path))
    return tmp_path


def never(*args):
    raise AssertionError("it was traced")


@pytest.mark.parametrize("model", [chain(3), four_bar()], ids=["straight", "iterative"])
def test_the_second_time_nothing_is_traced(empty_cache, monkeypatch, model) -> None:
    state = (model.neutral(), np.zeros(model.nv), np.ones(model.nv))
    first = lw.forward_dynamics(model)(*state).a
    monkeypatch.setattr(lw.function.Function, "_written", never)
    again = lw.forward_dynamics(model)
    assert isinstance(again._known, Sketch)
    assert np.array_equal(again(*state).a, first)


def test_what_is_asked_beyond_ports_comes_from_the_program(empty_cache) -> None:
    model = chain(3)
    first = lw.forward_dynamics(model)
    first(model.neutral(), np.zeros(3), np.zeros(3))
    again = lw.forward_dynamics(model)
    assert again.kernel.operations == first.operations


def test_damaged_notes_are_ignored(empty_cache) -> None:
    model = chain(2)
    state = (model.neutral(), np.zeros(2), np.ones(2))
    expected = lw.forward_dynamics(model)(*state).a
    for path in empty_cache.iterdir():
        data = bytearray(path.read_bytes())
        data[-1] ^= 0xFF
        path.write_bytes(bytes(data))
    again = lw.forward_dynamics(model)
    assert not isinstance(again._known, Sketch)
    assert np.array_equal(again(*state).a, expected)


def test_the_digest_sees_every_part_of_a_model() -> None:
    base = quadruped()
    held = base.with_constraints(lw.point("front_left_foot"))
    variants = [
        base,
        base.with_gravity((0, 0, -1.62)),
        held,
        base.with_constraints(lw.point("front_right_foot")),
        base.with_constraints(lw.surface("front_left_foot")),
        base.with_constraints(lw.point("front_left_foot", stabilisation=lw.Stabilisation())),
        chain(4),
        chain(4, length=0.31),
        chain(4, "prismatic"),
    ]
    digests = [digest(m) for m in variants]
    assert None not in digests
    assert len(set(digests)) == len(variants)
    assert digest(quadruped()) == digest(base)


def test_functions_have_no_digest() -> None:
    model = chain(2).with_constraints(lw.Custom(lambda a, b: a - b, joints=[l.joint_name for l in chain(2).links[1:]]))
    assert digest(model) is None


def test_steps_of_rollouts_and_simulations_are_recalled_too(empty_cache, monkeypatch) -> None:
    """And with them the kernel: the second time nothing is compiled either."""
    from linkwork.kernels import rollout
    from linkwork.simulate.rollout import Step

    def run():
        model = four_bar()
        rolled = lw.rollout(model, steps=4)(np.tile(model.neutral(), (3, 1)), np.zeros(3))
        return rolled.q, lw.simulate(model, model.neutral(), duration=2e-3).q

    first = run()
    monkeypatch.setattr(Step, "__call__", never)
    monkeypatch.setattr(rollout, "lower_rollout", never)
    for x, y in zip(run(), first, strict=True):
        assert np.array_equal(x, y)
    with pytest.raises(AssertionError, match="traced"):
        lw.rollout(four_bar(), steps=4, stabilisation=True)(four_bar().neutral(), np.zeros(3))
