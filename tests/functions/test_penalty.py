"""The penalty of a model: measured, less than usual where forces would lose digits, and found in the cache later."""

from __future__ import annotations

from pathlib import Path

import pytest

import linkwork as lw
from linkwork.algorithms.registry import methods
from linkwork.functions import penalty
from linkwork.kernels import notes
from linkwork.model import Model
from linkwork.robots.mechanisms.linkages import four_bar
from linkwork.robots.mechanisms.quadrupeds import quadruped
from linkwork.robots.mechanisms.trees import chain


def standing() -> Model:
    return quadruped().with_constraints(*(lw.point(f) for f in ("front_left_foot", "rear_right_foot")))


@pytest.mark.parametrize("make", [four_bar, standing])
def test_usual_mechanisms_keep_the_usual_penalty(make) -> None:
    model = make()
    for method in methods("forward_dynamics").values():
        if method.prox is not None and not method.soft and not method.refusal(model):
            assert penalty.fitted(method.prox, model, method) == method.prox, method.name


def test_what_was_measured_is_found_by_the_next_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The share is in the cache: an equal model, which has nothing in its memo, does not measure again."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("LINKWORK_CACHE", str(tmp_path))
    method = methods("forward_dynamics")["lcaba"]
    assert method.prox is not None

    def held() -> Model:
        return chain(2).with_constraints(lw.point("link2"))

    monkeypatch.setattr(penalty, "_missing", lambda *_: 1e-6)
    lowered = penalty.fitted(method.prox, held(), method)
    assert lowered.mu == pytest.approx(1e-3 * method.prox.mu)
    monkeypatch.setattr(penalty, "_missing", lambda *_: pytest.fail("measured again"))
    assert penalty.fitted(method.prox, held(), method) == lowered


@pytest.mark.parametrize("note", [{}, {"share": "1"}, {"share": -1.0}, {"share": float("nan")}, {"share": 1e9}])
def test_notes_with_nonsense_are_measured_anew(note: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    method = methods("forward_dynamics")["lcaba"]
    monkeypatch.setattr(notes, "get", lambda _: note)
    monkeypatch.setattr(notes, "put", lambda _, made: made)
    assert method.prox is not None
    assert penalty.fitted(method.prox, four_bar(), method) == method.prox
