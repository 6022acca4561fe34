"""The penalty of a model: measured, less than usual where forces would lose digits, and found in the cache later."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.algorithms.registry import methods
from linkwork.closure.random_states import closed_states
from linkwork.functions import penalty_fit
from linkwork.functions.dense_judge import Judge
from linkwork.kernels.cache import result_cache as notes
from linkwork.model import Model
from linkwork.robots.mechanisms.linkages import four_bar
from linkwork.robots.mechanisms.quadrupeds import quadruped
from linkwork.robots.mechanisms.trees import chain
from linkwork.robots.scenarios import scenario


def standing() -> Model:
    return quadruped().with_constraints(*(lw.point(f) for f in ("front_left_foot", "rear_right_foot")))


@pytest.mark.parametrize("make", [four_bar, standing])
def test_usual_mechanisms_keep_the_usual_penalty(make) -> None:
    model = make()
    for method in methods("forward_dynamics").values():
        if method.prox is not None and not method.soft and not method.refusal(model):
            assert penalty_fit.fitted(method.prox, model, method) == method.prox, method.name


def test_what_was_measured_is_found_by_the_next_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The share is in the cache: an equal model, which has nothing in its memo, does not measure again."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("LINKWORK_CACHE", str(tmp_path))
    method = methods("forward_dynamics")["lcaba"]
    assert method.prox is not None

    def held() -> Model:
        return chain(2).with_constraints(lw.point("link2"))

    monkeypatch.setattr(penalty_fit, "_missing", lambda *_: 1e-6)
    lowered = penalty_fit.fitted(method.prox, held(), method)
    assert lowered.mu == pytest.approx(1e-3 * method.prox.mu)
    monkeypatch.setattr(penalty_fit, "_missing", lambda *_: pytest.fail("measured again"))
    assert penalty_fit.fitted(method.prox, held(), method) == lowered


@pytest.mark.parametrize("note", [{}, {"share": "1"}, {"share": -1.0}, {"share": float("nan")}, {"share": 1e9}])
def test_notes_with_nonsense_are_measured_anew(note: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    method = methods("forward_dynamics")["lcaba"]
    monkeypatch.setattr(notes, "get", lambda _: note)
    monkeypatch.setattr(notes, "put", lambda _, made: made)
    assert method.prox is not None
    assert penalty_fit.fitted(method.prox, four_bar(), method) == method.prox


def test_penalties_through_linkages_lose_no_digits_of_forces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digit with a box: forces were up to 6e-7 off, and 7 of 200 such states were reported as not converged."""
    try:
        model = scenario("digit_rods_box")
    except lw.LinkworkError:
        pytest.skip("digit_v3.xml is not installed")
    method, rng = methods("forward_dynamics")["c_lcaba"], np.random.default_rng(0)
    assert method.prox is not None
    with monkeypatch.context() as measured:  # states in which nothing is missing decide nothing
        measured.setattr(penalty_fit, "_missing", lambda *_: 0.0)
        assert penalty_fit._measured(model, method) < 0.3
    assert penalty_fit.fitted(method.prox, model, method).mu < 0.3 * method.prox.mu
    q, v = closed_states(model, rng, 24)
    tau = rng.uniform(-1, 1, v.shape)
    found, judge = lw.forward_dynamics(model, method="c_lcaba")(q, v, tau), Judge(model)
    assert found.converged.all()
    for b in range(len(q)):
        exact = judge.redundant({"q": q[b], "v": v[b], "tau": tau[b]}, method.prox.redundant)
        assert exact is not None
        off = exact.pushes @ (found.lam[b] - exact.lam)
        assert np.linalg.norm(off) < 1e-7 * np.sqrt(exact.energy)
