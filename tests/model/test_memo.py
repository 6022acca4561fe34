"""The memo of a model: computed once, its own, and gone with it."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import linkwork as lw
from linkwork.model.memo import cached
from linkwork.robots.mechanisms import chain, four_bar
from surroundings import forked_meanwhile

CALLS: list[tuple[object, ...]] = []


@cached
def counted(model: lw.Model, n: int = 2, name: str = "x") -> list[object]:
    """What was asked for."""
    CALLS.append((model, n, name))
    return [model.nv, n, name]


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


def test_a_value_is_computed_once_for_each_argument() -> None:
    m = chain(2)
    first = counted(m)
    assert first == [2, 2, "x"]
    assert all(
        x is first for x in (counted(m), counted(m, 2), counted(m, n=2), counted(m, 2, "x"), counted(m, name="x"))
    )
    assert len(CALLS) == 1
    assert counted(m, 3) == [2, 3, "x"]
    assert counted(m, name="y", n=3) is counted(m, 3, "y")
    assert len(CALLS) == 3
    assert counted.__doc__ == "What was asked for."


def test_models_have_each_their_own() -> None:
    a, b = chain(2), chain(2).with_gravity([0, 0, -1.62])
    assert counted(a) is not counted(b)
    assert counted(chain(2)) is not counted(a)  # equal, and yet another object
    assert len(CALLS) == 3


def test_two_functions_do_not_share() -> None:
    @cached
    def other(model: lw.Model, n: int = 2, name: str = "x") -> str:
        return "other"

    m = chain(2)
    assert counted(m) != other(m)


def test_nothing_is_kept_of_an_error() -> None:
    tried = []

    @cached
    def fails(model: lw.Model) -> int:
        tried.append(model)
        if len(tried) == 1:
            raise ValueError("not yet")
        return 1

    m = chain(2)
    with pytest.raises(ValueError, match="not yet"):
        fails(m)
    assert fails(m) == fails(m) == 1
    assert len(tried) == 2


def test_none_is_a_value() -> None:
    tried = []

    @cached
    def nothing(model: lw.Model) -> None:
        tried.append(model)

    m = chain(2)
    assert nothing(m) is nothing(m) is None
    assert len(tried) == 1


def test_values_are_neither_pickled_nor_copied() -> None:
    m = chain(2)
    counted(m)
    for other in (pickle.loads(pickle.dumps(m)), copy.copy(m), copy.deepcopy(m)):
        assert "_memo" not in vars(other)
        assert counted(other) is not counted(m)


def test_values_die_with_the_model() -> None:
    class Large:
        def __init__(self, model: lw.Model) -> None:
            self.model = model

    @cached
    def large(model: lw.Model) -> Large:
        return Large(model)

    m = chain(2)
    seen, value = weakref.ref(m), weakref.ref(large(m))
    assert value() is not None
    del m
    gc.collect()
    assert seen() is None
    assert value() is None


def test_models_that_were_worked_with_die() -> None:
    def work() -> weakref.ref[lw.Model]:
        m = four_bar()
        lw.forward_dynamics(m, method="c_aba", backend="numpy")(m.neutral(), [0] * 3, [0] * 3)
        lw.assemble(m, m.neutral())
        return weakref.ref(m)

    seen = work()
    gc.collect()
    assert seen() is None


def test_threads_get_the_first_value() -> None:
    gate = threading.Barrier(8)

    @cached
    def slow(model: lw.Model) -> object:
        gate.wait(20)  # all of them compute it
        return object()

    m = chain(2)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: slow(m), range(8)))
    assert len(set(found)) == 1
    assert slow(m) is found[0]


def test_a_fork_in_the_middle_computes_for_itself() -> None:
    entered, gate = threading.Event(), threading.Event()

    @cached
    def slow(model: lw.Model) -> int:
        entered.set()
        gate.wait(20)
        return 7

    m = chain(2)
    assert forked_meanwhile(entered, gate, lambda: slow(m)) == 7
    assert slow(m) == 7


def test_no_module_keeps_results_by_the_identity_of_models() -> None:
    root = Path(lw.__file__).parent
    for path in root.rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"\bid\((model|m|self\.model|source)\)", text), path
        assert "weakref.finalize" not in text, path
