"""linkwork bench derivatives: trees and contacts are measured, without peers too."""

from __future__ import annotations

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import chain
from linkwork_bench import derivatives
from linkwork_bench.inputs import Robot
from linkwork_bench.peers import Host, Peers


def test_both_tasks_are_measured() -> None:
    model = chain(3)
    tip = model.links[-1].name
    q, v, tau = (np.random.default_rng(k).normal(size=(5, model.nv)) for k in range(3))
    robot = Robot("chain", model, {"none": (), "tip": (lw.point(tip),)}, q, v, tau)
    found = [f for case in robot.cases for f in derivatives.measured(robot, case, Peers([], None), Host(), 1)]
    assert [(f.case, f.task, f.rows) for f in found] == [
        ("none", "inverse", 0),
        ("none", "forward", 0),
        ("tip", "forward", 3),
    ]
    assert all(f.batch > 0 and f.one > 0 and f.pinocchio is None for f in found)
    derivatives._show(found)
