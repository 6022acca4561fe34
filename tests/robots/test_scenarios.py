"""Cassie, Digit, hands and robots that hold a box: sizes of the paper, closed in one line, consistent states."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, cond, motion
from linkwork.algorithms.tree.crba import crba
from linkwork.closure.velocities import REDUNDANT
from linkwork.constraints import jacobian, position_error, velocity_error
from linkwork.errors import LinkworkError, LoadError, NotFound
from linkwork.model import Model
from linkwork.robots.scenarios import SCENARIOS, cassie, digit, scenario

SIZES = {
    "four_bar": (3, 5),
    "six_bar": (5, 10),
    "bricard": (6, 6),
    "cassie": (32, 12),
    "cassie_sdf": (28, 12),
    "digit": (54, 18),
    "digit_cut": (72, 36),
    "digit_rods_standing": (48, 30),
    "digit_rods_box": (54, 36),
    "two_digits_rods_box": (102, 72),
    "allegro_cube": (22, 12),
    "two_allegros_cube": (38, 24),
    "humanoid_allegros_cube": (73, 24),
    "humanoid_allegros_cube_standing": (73, 36),
    "digit_standing": (44, 48),
    "digit_box": (50, 54),
    "two_digits_box": (94, 108),
}


def built(name: str) -> Model:
    try:
        return scenario(name)
    except LoadError as problem:
        pytest.skip(f"{name}: {problem}")


@pytest.mark.parametrize("name", SIZES)
def test_sizes_and_closed_states(name: str) -> None:
    model = built(name)
    assert (model.nv, model.rows) == SIZES[name]
    model.check_forward()
    q = lw.assemble(model, model.neutral())
    assert np.abs(position_error(motion(model, q))).max() <= 1e-12
    v = lw.project_velocity(model, q, np.ones(model.nv))
    scale = np.linalg.norm(jacobian(motion(model, q)), 2) * np.linalg.norm(v)
    assert np.abs(velocity_error(motion(model, q, v))).max() <= REDUNDANT * scale


@pytest.mark.parametrize(
    "name", ["cassie", "cassie_sdf", "digit", "digit_cut", "digit_rods_standing", "two_allegros_cube", "digit_standing"]
)
def test_random_states(name: str) -> None:
    model = built(name)
    for seed in range(2):
        q, v = lw.random_state(model, seed)
        assert np.abs(position_error(motion(model, q))).max() <= 1e-12
        scale = np.linalg.norm(jacobian(motion(model, q)), 2) * np.linalg.norm(v)
        assert np.abs(velocity_error(motion(model, q, v))).max() <= REDUNDANT * scale


def test_every_scenario_is_tested() -> None:
    assert set(SIZES) == set(SCENARIOS)
    with pytest.raises(NotFound, match="digit_box"):
        scenario("digit_bocks")


def test_missing_robots_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from linkwork.io import zoo

    monkeypatch.setattr(zoo, "robots", list)
    monkeypatch.setattr(zoo, "_described", dict)
    with pytest.raises(LoadError, match="LINKWORK_ROBOTS"):
        digit()
    with pytest.raises(LinkworkError, match="mjcf"):
        cassie("urdf")
    with pytest.raises(LinkworkError, match="connect"):
        digit("glue")


def test_cut_rods_move_like_whole_ones() -> None:
    """Digit with every rod cut into halves that are welded has the accelerations of the robot with whole rods."""
    whole, halves = built("digit"), built("digit_cut")
    assert halves.mass == pytest.approx(whole.mass)
    q, v = lw.random_state(whole, 2)
    common = {l.joint_name: i for i, l in enumerate(whole.links) if i}
    rows_q, rows_v = [], []
    for name, i in common.items():
        k = halves.joint(name)
        rows_q.append((whole.topology.q_slices[i], halves.topology.q_slices[k]))
        rows_v.append((whole.topology.v_slices[i], halves.topology.v_slices[k]))
    start = halves.neutral()
    for here, there in rows_q:
        start[there] = q[here]
    q2 = lw.assemble(halves, start, locked=list(common))
    J = jacobian(motion(halves, q2))
    v2, tau, tau2 = np.zeros(halves.nv), np.random.default_rng(1).normal(size=whole.nv), np.zeros(halves.nv)
    taken = np.zeros(halves.nv, dtype=bool)
    for here, there in rows_v:
        v2[there], tau2[there], taken[there] = v[here], tau[here], True
    v2[~taken] = np.linalg.lstsq(J[:, ~taken], -J @ v2, rcond=None)[0]
    assert_close(J @ v2, np.zeros(36), cond(J))
    a = lw.forward_dynamics(whole, method="kkt", backend="numpy")(q, v, tau).a
    a2 = lw.forward_dynamics(halves, method="kkt", backend="numpy")(q2, v2, tau2).a
    expected = np.zeros(halves.nv)
    for here, there in rows_v:
        expected[there] = a[here]
    kappa = cond(crba(motion(halves, q2))) * cond(J)
    assert_close(a2[taken], expected[taken], kappa)


def test_hands_touch_the_cube_where_they_should() -> None:
    from linkwork.robots.mechanisms import frame_pose

    model = built("two_allegros_cube")
    q = lw.assemble(model, model.neutral())
    for c in model.constraints:
        on_cube = frame_pose(model, "box", q).inverse() @ frame_pose(model, c.a, q)
        assert np.abs(on_cube.p).max() == pytest.approx(0.04)  # on a face of the cube
