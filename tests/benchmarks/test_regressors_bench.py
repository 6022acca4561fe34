"""linkwork bench regressors: figures of a small robot, compared with Pinocchio's before they are timed."""

from __future__ import annotations

import pytest

pytest.importorskip("pinocchio")

from linkwork_bench.regressors import figure


def test_figures_of_an_arm() -> None:
    found = figure("ur5", rounds=1, size=16)
    assert found.shape == (6, 60)
    assert found.nonzeros < 6 * 60 / 1.5
    assert min(found.one, found.one_packed, found.bound, found.batch, found.batch_packed, found.pinocchio) > 0
