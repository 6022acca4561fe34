"""Derivatives of forward dynamics in float32 against float64: products and dense ones, on contacts and with loops.

Rows of surfaces are of unequal inertia: in units of the largest mobility, that of moving a hand is 1e-4, which a
damping of 3e-5 (as float32 needs it) changes by a third.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.robots import mechanisms as mech

BOUND = 5e-3
"""Of the largest entry of an output: what docs/promises.md states."""
STATES = 12

ROBOTS = {
    "talos": ("free", lw.surface, ("leg_left_6_link", "leg_right_6_link", "arm_left_7_link", "arm_right_7_link")),
    "icub_reduced": ("free", lw.surface, ("l_ankle_2", "r_ankle_2", "l_hand", "r_hand")),
    "icub_arms": ("fixed", lw.surface, ("l_hand", "r_hand")),
    "go1": ("free", lw.point, ("FL_foot", "FR_foot", "RL_foot", "RR_foot")),
}


def robot(name: str) -> lw.Model:
    if name == "four_bar":
        return mech.four_bar()
    base, kind, frames = ROBOTS[name]
    try:
        return lw.load(name.replace("arms", "reduced"), base=base, passive=False).with_constraints(*map(kind, frames))
    except lw.LinkworkError as problem:
        pytest.skip(f"the robot is not on this machine: {problem}")


def inputs(model: lw.Model, product: str, batch: int = STATES) -> list[np.ndarray]:
    """States that float32 has, too, and weights or changes."""
    rng = np.random.default_rng(5)
    weights, changes = [model.nv, model.rows], [model.nv] * 3
    more = {"derivatives": [], "jvp": changes, "vjp": weights, "hvp": weights + changes}[product]
    random = [rng.normal(size=(batch, n)) for n in (model.nv, *more)]
    return [x.astype(np.float32).astype(float) for x in (*lw.random_state(model, 0, batch=batch), *random)]


def off(found, right) -> np.ndarray:
    """The largest error of each output, relative to its largest entry, in each state."""
    pairs = [(np.asarray(x, float), np.asarray(y)) for x, y in zip(found, right, strict=True)]
    each = [np.abs(x - y).reshape(len(y), -1).max(1) / np.abs(y).reshape(len(y), -1).max(1) for x, y in pairs]
    return np.max(each, axis=0)


def both(model: lw.Model, product: str, **options):
    return [getattr(lw.forward_dynamics(model, dtype=kind, **options), product)() for kind in ("float32", "float64")]


def bare(function, given: list[np.ndarray]) -> list[np.ndarray]:
    """What the machine code gives, without float64."""
    bound = function.bind(len(given[0]))
    for buffer, x in zip(bound.inputs, given, strict=True):
        buffer[...] = x
    bound()
    return [np.array(x) for x in bound.outputs]


CASES = [(n, p) for n in ("go1", "four_bar") for p in ("jvp", "vjp", "derivatives")]
CASES += [("icub_reduced", "vjp"), ("talos", "derivatives"), ("go1", "hvp")]


@pytest.mark.parametrize(("name", "product"), CASES)
def test_derivatives_keep_their_bound(name, product):
    model = robot(name)
    given = inputs(model, product)
    single, double = both(model, product)
    right = double.program.interpret(*given)  # by NumPy: its machine code is for other tests
    assert off(single(*given), right).max() <= BOUND
    # and not because float64 has solved it: machine code in float32 does most states by itself
    found = bare(single, given)
    fine = np.all([np.isfinite(x).reshape(STATES, -1).all(1) for x in found], axis=0)
    assert fine.mean() > 0.5
    assert off([x[fine] for x in found], [x[fine] for x in right]).max() <= BOUND


@pytest.mark.parametrize("product", ["jvp", "vjp", "derivatives"])
@pytest.mark.parametrize("kind", [lw.point, lw.surface])
def test_what_float32_does_not_resolve_float64_solves(kind, product):
    # an arm that is stretched but for a little: one direction of its tip is neither held nor redundant
    model = mech.chain(7).with_constraints(kind("linktip"))
    given = inputs(model, product, 3)
    given[0][1] = 0.0
    given[0][1, 1::2] = np.float32(3e-3)
    single, double = both(model, product)
    assert np.isnan(np.concatenate([x[1].ravel() for x in bare(single, given)])).any()
    found, right = single(*given), double(*given)
    np.testing.assert_array_less(off(found, right), BOUND)
    assert all(x.dtype == np.float32 for x in found)
    one = single(*(x[1] for x in given))
    for x, y in zip(one, found, strict=True):
        np.testing.assert_array_equal(x, y[1])
    out = [np.zeros_like(x) for x in found]
    single(*given, out=out)
    np.testing.assert_array_less(off(out, right), BOUND)


def test_joints_in_line():
    # shoulders of three axes, two of which are nearly in line: mass matrices with condition numbers up to 1e8
    model = robot("icub_arms")
    q = np.array([model.random_q(seed) for seed in range(600)])
    M = np.asarray(lw.mass_matrix(model)(q)).reshape(-1, model.nv, model.nv)
    root = np.sqrt(np.einsum("bii->bi", M))
    worst = np.argsort(np.linalg.cond(M / (root[:, :, None] * root[:, None, :])))[-STATES:]
    given = inputs(model, "vjp")
    given[0] = q[worst].astype(np.float32).astype(float)
    single, double = both(model, "vjp")
    assert np.isnan(np.concatenate([x.ravel() for x in bare(single, given)])).any()
    assert off(single(*given), double(*given)).max() <= BOUND


@pytest.mark.parametrize("kind", [lw.point, lw.surface])
def test_rows_that_are_switched_off_do_not_count(kind):
    model = mech.quadruped().with_constraints(*map(kind, ("front_left_foot", "rear_right_foot")))
    given = inputs(mech.quadruped(), "vjp")[:3]
    modes = np.tile([1.0, 0.0], (STATES, 1))
    one, two = (np.random.default_rng(1).normal(size=(STATES, n)) for n in (model.nv, model.rows))
    single, double = both(model, "vjp", modes=True)
    named = dict(zip(("q", "v", "tau", "active", "w_a", "w_lam"), (*given, modes, one, two), strict=True))
    right = double(**named)
    assert off(single(**named), right).max() <= BOUND
    found = bare(single, [named[n] for n in single.inputs])
    fine = np.all([np.isfinite(x).reshape(STATES, -1).all(1) for x in found], axis=0)
    assert fine.any() or kind is lw.surface  # six rows on three joints are redundant
