"""linkwork bench environments: both sides are the same task, and what is measured is shown."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="these need gymnasium: pip install -e '.[test]'")
pytest.importorskip("mujoco.batch", reason="mujoco.batch is in MuJoCo 4: pip install -e '.[test]'")

from linkwork.learn.environments import GO2, Walking
from linkwork_bench import environments as suite
from linkwork_bench.measure import Conditions


def test_both_sides_are_the_same_task() -> None:
    """Observations at the start are equal; after 40 ms, postures agree as far as soft contacts and hard ones do."""
    if not suite._there("go2.xml"):
        pytest.skip("no go2.xml: set LINKWORK_ROBOTS")
    ours, theirs = Walking(2, robot=GO2, simulation={"backend": "numpy"}), suite.MuJoCoWalking(2)
    assert np.array_equal(ours.reset(seed=1)[0], theirs.reset(seed=1)[0])
    action = np.random.default_rng(0).uniform(-0.3, 0.3, ours.action_space.shape)
    for _ in range(2):
        mine, expected = ours.step(action), theirs.step(action)
    assert np.abs(ours.q[:, :3] - theirs.q[:, :3]).max() < 4e-3
    assert np.abs(ours.q[:, 7:] - theirs.q[:, 7:]).max() < 0.05
    assert np.abs(mine[1] - expected[1]).max() < 0.5


def test_what_is_measured_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(suite, "STEPS", 1)
    monkeypatch.setattr(suite, "ANTS", 1)
    made = {"Ant-v5, Gymnasium": suite.Timed(suite._stepping(suite._ants()), 1, Conditions())}
    monkeypatch.setattr(suite, "contenders", lambda conditions: (made, dict.fromkeys(made, 5)))
    (found,) = suite.measured(2, 0.001, Conditions())
    assert found["us_per_time_step"] == pytest.approx(found["us"][0] / 5)
    suite.save(tmp_path / "found.jsonl", {"cores": 2}, [found])
    assert json.loads((tmp_path / "found.jsonl").read_text().splitlines()[1]) == found
    assert suite.table([found]).row_count == 1
