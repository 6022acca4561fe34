"""Where a batch is cut, and what travels to workers; no cluster is needed for this."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linkwork as lw
from linkwork import scale
from linkwork.errors import ClusterError, InputError
from linkwork.kernels.calls.rollout import RolloutKernel
from linkwork.robots.mechanisms import four_bar
from linkwork.scale.program_transfer import packed, unpacked
from linkwork.scale.shards import LARGEST, cuts, state_bytes


@given(st.integers(0, 5000), st.integers(1, 100), st.integers(1, LARGEST))
def test_shards_cover_the_batch_and_none_is_a_single_state(batch, wanted, each):
    pieces = cuts(batch, wanted, each)
    assert [row for begin, end in pieces for row in range(begin, end)] == list(range(batch))
    if batch > 1:
        assert min(end - begin for begin, end in pieces) >= 2
        # a state more than fits is the one that would have been alone
        assert max((end - begin - 1) * each for begin, end in pieces) <= max(LARGEST, 2 * each)


def run_of(model: lw.Model, **options) -> lw.Rollout:
    return scale.rollout(model, steps=20, every=5, record=("lam",), **options)


def test_a_program_that_travelled_computes_the_same_to_the_bit():
    run = run_of(four_bar())
    again = RolloutKernel(unpacked(packed(run.program)))
    rng = np.random.default_rng(1)
    inputs = {
        "q": four_bar().neutral(),
        "v": np.zeros(3),
        "tau": rng.normal(size=(9, 4, 3)),
        "dt": np.array([1e-3]),
        "work": np.zeros(2),
        "worst": np.zeros(1),
        "limit": np.array([1e6]),
    }
    here, there = run.kernel(20, 5, inputs, 9), again(20, 5, inputs, 9)
    assert here.keys() == there.keys()
    for name, values in here.items():
        np.testing.assert_array_equal(there[name], values)


def test_what_is_no_program_is_refused():
    good = packed(run_of(four_bar()).program)
    other = packed_with(good, '"mul"', '"call"'), packed_with(good, '"state"', '"st"')
    for bad in (b"", good[:50], b"x" + good, *other):
        with pytest.raises(ClusterError, match="not a program"):
            unpacked(bad)


def packed_with(data: bytes, old: str, new: str) -> bytes:
    import zlib

    text = zlib.decompress(data).decode()
    assert old in text
    return zlib.compress(text.replace(old, new).encode())


def test_bytes_of_a_state_are_its_own_inputs_and_records():
    model = four_bar()
    program = run_of(model).program
    shared = {
        "q": np.zeros(3),
        "v": np.zeros(3),
        "work": np.zeros(2),
        "tau": np.zeros((7, 3)),
        "dt": np.ones(1),
        "limit": np.ones(1),
    }
    last = 1  # the largest error; iterations start from zero forces
    recorded = 8 * (4 * (3 + 3 + 2 + model.rows) + last + 1)
    assert state_bytes(program, shared, 4, 8) == recorded
    own = {**shared, "q": np.zeros((50, 3)), "tau": np.zeros((50, 7, 3))}
    assert state_bytes(program, own, 4, 8) == recorded + 8 * (3 + 21)


@pytest.mark.parametrize("shards", [None, 1, 5])
def test_without_a_cluster_it_is_a_local_rollout(shards):
    model, rng = four_bar(), np.random.default_rng(0)
    tau = rng.normal(size=(37, 4, 3))
    here = lw.rollout(model, steps=20, every=5, record=("lam",))(model.neutral(), np.zeros(3), tau)
    there = run_of(model, shards=shards)(model.neutral(), np.zeros(3), tau)
    for name in ("t", "q", "v", "lam", "ok", "survived", "residual", "converged"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))


def test_without_a_cluster_no_dask_is_needed(missing):
    import sys

    for name in [n for n in sys.modules if n.split(".")[0] in ("dask", "distributed")] or ["distributed"]:
        missing(name)
    model = four_bar()
    assert run_of(model)(model.neutral(), np.zeros(3)).ok
    with pytest.raises(ImportError, match=r"linkwork\[cluster\]"):
        run_of(model, cluster="tcp://127.0.0.1:1")(model.neutral(), np.zeros(3))


def test_a_bar_is_shown_when_asked_for(capfd):
    model = four_bar()
    run_of(model, progress=True)(np.tile(model.neutral(), (300, 1)), np.zeros(3))
    assert "300 states" in capfd.readouterr().err
    run_of(model, progress=False)(np.tile(model.neutral(), (300, 1)), np.zeros(3))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("options", "message"), [
    ({"shards": 0}, "at least 1"), ({"backend": "numpy"}, "use lw.rollout"),
])  # fmt: skip
def test_options_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        run_of(four_bar(), **options)
