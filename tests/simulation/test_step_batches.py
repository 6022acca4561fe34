"""Batches of one step: a state's result is the same to the bit beside any others, whichever loops they need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_activated_steps import LAGGING
from test_contact import cube

import linkwork as lw
from linkwork.kernels.programs.iterate import FEW
from linkwork.robots.mechanisms import quadruped, standing

LANES = 16
"""At most so many states are in one tile: it takes the step as a whole."""


def tumbling(batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Cubes of 0.1 m at random attitudes, near the ground or in it, thrown."""
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(batch, 7)), rng.normal(size=(batch, 6))
    q[:, 2] = rng.uniform(0.03, 0.1, batch)
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
    return q, 3 * v


def assert_same_in_any_company(f: Any, *arrays: Any, **options: Any) -> lw.StepResult:
    """All at once, two tiles at a time, and a tile at a time in another order; the first."""

    def given(rows: Any) -> list[Any]:
        return [x[rows] if np.ndim(x) == 2 else x for x in arrays]

    batch = len(arrays[0])
    together = f(*arrays, **options)
    order = np.random.default_rng(1).permutation(batch)
    for size, rows in ((2 * LANES, np.arange(batch)), (2, order)):
        for k in range(0, batch, size):
            some = rows[k : k + size]
            part = f(*given(some), **options)
            for name, x in zip((*part._fields, "report"), (*part, part._report), strict=True):
                whole = together._report if name == "report" else getattr(together, name)
                np.testing.assert_array_equal(whole[some], x, err_msg=name)
    return together


@pytest.mark.parametrize(
    ("method", "dtype"),
    [
        (None, "float64"),
        ("newton", "float32"),
        ("gauss_seidel", "float64"),
        ("active_set", "float64"),
        ("admm", "float64"),
    ],
)
@pytest.mark.filterwarnings("ignore::linkwork.errors.ConvergenceWarning")
def test_any_solver(method, dtype):
    model, corners = cube()
    f = lw.step(model, corners, method=method, dtype=dtype, threads=1)
    q, v = tumbling(75)
    together = assert_same_in_any_company(f, q, v, np.zeros(6), [1e-3])
    assert together.iterations.max() > FEW
    threaded = lw.step(model, corners, method=method, dtype=dtype, threads=2)
    many = [np.tile(x, (20, 1)) for x in (q, v)]
    for x, y in zip(threaded(*many, np.zeros(6), [1e-3]), together, strict=True):
        np.testing.assert_array_equal(x, np.concatenate([y] * 20))


def test_activations():
    f, rng = lw.step(LAGGING, [lw.Contact("linktip", radius=0.05)], actuators=True, threads=1), np.random.default_rng(0)
    q, v, u = (0.3 * rng.normal(size=(40, n)) for n in (2, 2, 3))
    together = assert_same_in_any_company(f, q, v, u, [1e-2], act=np.array([0.1, -0.2]))
    assert len(np.unique(together.act, axis=0)) == 40
    assert together.forces.any()


def test_limits_are_met_in_some_lanes_only():
    """The solver's last loops are for these."""
    model = quadruped()
    legs = ("front_left", "front_right", "rear_left", "rear_right")
    f = lw.step(model, [lw.Contact(f"{leg}_foot", friction=0.8) for leg in legs], threads=1)
    rng = np.random.default_rng(0)
    q, v = np.tile(standing(model), (60, 1)), rng.normal(size=(60, model.nv))
    q[::4, 9], v[::4, 8] = -2.79, -20.0
    together = assert_same_in_any_company(f, q, v, np.zeros(model.nv), [2e-3])
    assert (together.impulses[::4, 4 * len(legs) :] != 0).any()
    assert 0.1 < (together.iterations > FEW).mean() < 0.5


def test_a_batch_that_fills_no_tile_ends_with_all_its_steps() -> None:
    """Lanes beyond the last state are left by attempts, too: a tile stopped for them, and its records were memory."""
    model = quadruped()
    feet = [lw.Contact(name, friction=0.6) for name in model.frames if name.endswith("foot")]
    run = lw.rollout(model, dt=1e-3, contacts=feet, pd=True, threads=1)
    q = model.neutral()
    q[2] += 0.1 - lw.forward_kinematics(model, [c.frame for c in feet])(q).positions[:, 2].min()
    v = np.zeros((24, model.nv))
    v[:, :3] = 0.3 * np.random.default_rng(0).standard_normal((24, 3))
    control = {"target": q, "kp": 60.0, "kd": 2.0, "steps": 300, "every": 100}
    right = run(np.tile(q, (24, 1)), v, **control)
    for count in (12, 17, 20, 22):
        found = run(np.tile(q, (count, 1)), v[:count], **control)
        assert found.ok.all()
        np.testing.assert_array_equal(found.q, right.q[:count])
