"""Large arrays in turns: the same as NumPy gives at once, and no turn is long."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork import chunked_arrays as interruptible
from linkwork.robots.mechanisms import chain

SHAPES = [(), (0,), (7,), (0, 3), (3, 0), (100, 3), (2, 50), (3, 4, 5), (2, 1, 70)]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruptible, "TURN", 64)
    monkeypatch.setattr(interruptible, "ENTRIES", 4)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_as_numpy(shape: tuple[int, ...]) -> None:
    x = np.asarray(np.random.default_rng(0).normal(size=shape))
    for y in (x, x.T, x.astype("f4"), np.stack([x, x], axis=-1)[..., 0]):
        assert all(y[at].nbytes <= interruptible.TURN for at in interruptible.pieces(y))
        copy = interruptible.copied(y, float)
        assert np.array_equal(copy, y)
        assert copy.flags.c_contiguous
        assert not np.shares_memory(copy, y)
        assert np.array_equal(interruptible.packed(y), y)
        assert np.array_equal(interruptible.typed(y, "f4"), y.astype("f4"))
        assert interruptible.largest(y) == np.abs(y).max(initial=0.0)
        assert interruptible.all_finite(y)
        assert np.array_equal(interruptible.stacked([y, 2 * y]), np.stack([y, 2 * y]))
        assert np.array_equal(interruptible.as_array(y.tolist()), np.asarray(y.tolist()))
    assert interruptible.packed(x) is x
    assert interruptible.typed(x, float) is x
    if x.size:
        x.flat[-1] = np.nan
        assert np.isnan(interruptible.largest(x))
        assert not interruptible.all_finite(x)


@pytest.mark.usefixtures("short")
def test_lists_keep_their_types_and_are_refused_as_before() -> None:
    assert interruptible.as_array([1] * 10).dtype == int
    assert interruptible.as_array([1] * 9 + [0.5]).dtype == float
    for ragged in ([[1, 2]] * 9 + [[1]], [[1] * 9, [1] * 8]):
        with pytest.raises(ValueError):
            interruptible.as_array(ragged)


@pytest.mark.usefixtures("short")
def test_calls_on_large_inputs_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of input that is converted, in a function, a rollout, steps and their gradient."""
    model, rng = chain(2), np.random.default_rng(1)
    q, v, u = rng.normal(size=(9, 2)), rng.normal(size=(9, 2)), rng.normal(size=(5, 9, 2))
    f, run, step = lw.forward_dynamics(model, method="aba"), lw.rollout(model, method="aba"), lw.discrete_step(model)

    def results(q: object, v: object, u: np.ndarray) -> list[np.ndarray]:
        found = step.rollout(q, v, u)
        back = step.rollout_vjp(q, v, u, np.ones_like(found.v), found.v)
        return [f(q, v, u[0]).a, run(q, v, steps=4).q, *found, *back[:3]]

    ours = results(q.tolist(), np.asfortranarray(v), u[:, :, ::-1])
    monkeypatch.undo()
    for x, y in zip(ours, results(q, v, np.ascontiguousarray(u[:, :, ::-1])), strict=True):
        assert np.array_equal(x, y)
