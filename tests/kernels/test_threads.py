"""Many threads, forks and failures: no deadlock, no mixed-up results."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from kernels_examples import chain, states

from linkwork.kernels import Kernel, Program
from linkwork.kernels.kernel import slices_of
from linkwork.kernels.pool import POOL, Pool

LINKS = 4


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return Kernel(Program.from_casadi(chain(LINKS)), threads=4).prepare()


@pytest.mark.parametrize("batch", [1000, 4099, 50_001])
def test_threads_change_nothing(kernel: Kernel, batch: int) -> None:
    inputs = states(LINKS, batch)
    alone = Kernel(kernel.program, threads=1)(*inputs)
    for a, b in zip(kernel(*inputs), alone, strict=True):
        np.testing.assert_array_equal(a, b)


def test_slices_cover_every_row_once(kernel: Kernel) -> None:
    form = kernel._form(kernel.lanes)
    for count in (1, 7, 8, 100, 4096, 4097, 99_999):
        slices = slices_of(form.image.cost, form.image.lanes, count, kernel.threads)
        assert [row for begin, end in slices for row in (begin, end)][1:-1:2] == [b for b, _ in slices[1:]]
        assert slices[0][0] == 0
        assert slices[-1][1] == count
        assert all(begin < end and begin % kernel.lanes == 0 for begin, end in slices)


def test_many_python_threads_at_once(kernel: Kernel) -> None:
    batches = [states(LINKS, 3000 + k, seed=k) for k in range(12)]
    expected = [kernel(*inputs).a for inputs in batches]
    singles = [kernel(*(x[0] for x in inputs)).a for inputs in batches]
    with ThreadPoolExecutor(12) as callers:
        for _ in range(3):
            for got, right in zip(callers.map(lambda inputs: kernel(*inputs).a, batches), expected, strict=True):
                np.testing.assert_array_equal(got, right)
            one = callers.map(lambda inputs: kernel(*(x[0] for x in inputs)).a, batches)
            for got, right in zip(one, singles, strict=True):
                np.testing.assert_array_equal(got, right)


def test_first_calls_from_many_threads_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKWORK_CACHE", "off")
    fresh = Kernel(Program.from_casadi(chain(3)))
    inputs = states(3, 10)
    with ThreadPoolExecutor(6) as callers:
        results = list(callers.map(lambda _: fresh(*inputs).a, range(6)))
    assert all(np.array_equal(r, results[0]) for r in results)
    assert len(fresh._forms) == 1


def test_an_exception_reaches_the_caller_and_the_pool_lives_on() -> None:
    pool = Pool()
    done: list[int] = []

    def work(begin: int, end: int) -> None:
        if begin == 3:
            raise ValueError("slice three")
        done.append(begin)

    with pytest.raises(ValueError, match="slice three"):
        pool.run(work, [(k, k + 1) for k in range(8)], 3)
    assert sorted(done) == [0, 1, 2, 4, 5, 6, 7]
    pool.run(lambda begin, end: done.append(100), [(0, 1), (1, 2)], 3)
    assert done.count(100) == 2


def test_a_busy_pool_does_not_hold_up_a_caller() -> None:
    pool, gate, entered = Pool(), threading.Event(), threading.Semaphore(0)

    def wait(begin: int, end: int) -> None:
        entered.release()
        assert gate.wait(20)

    hog = threading.Thread(target=pool.run, args=(wait, [(0, 1), (1, 2)], 2))
    hog.start()
    for _ in range(2):
        assert entered.acquire(timeout=20)  # the pool's only thread is taken
    rows: list[int] = []
    pool.run(lambda begin, end: rows.append(begin), [(0, 1), (1, 2), (2, 3)], 2)
    assert sorted(rows) == [0, 1, 2]
    gate.set()
    hog.join(20)
    assert not hog.is_alive()


def test_the_gil_is_free_while_a_kernel_runs(kernel: Kernel) -> None:
    inputs = states(LINKS, 400_000)
    single = Kernel(kernel.program, threads=1)
    single(*(x[:9] for x in inputs))
    ticks, stop = 0, threading.Event()

    def count() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1

    counter = threading.Thread(target=count)
    outputs = [np.empty((400_000, *port.shape)) for port in single.outputs]
    counter.start()
    before = ticks
    single(*inputs, out=outputs)
    during = ticks - before
    stop.set()
    counter.join()
    assert during > 1000


def _in_child(kernel: Kernel, answer: object) -> None:
    answer.send(kernel(*states(LINKS, 5000)).a.sum())  # type: ignore[attr-defined]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_kernels_survive_a_fork(kernel: Kernel) -> None:
    expected = kernel(*states(LINKS, 5000)).a.sum()
    assert POOL._started
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    child = context.Process(target=_in_child, args=(kernel, theirs))
    child.start()
    assert mine.poll(30), "the child never answered"
    assert mine.recv() == expected
    child.join(20)
    assert child.exitcode == 0
    assert kernel(*states(LINKS, 5000)).a.sum() == expected
