"""Many threads, forks and failures: no deadlock, no mixed-up results."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from kernels_examples import chain, states

from linkwork.kernels import Kernel
from linkwork.kernels.cache import program_cache
from linkwork.kernels.calls.arrays import Rows, table_of
from linkwork.kernels.calls.thread_pool import POOL, Pool, nothing
from linkwork.kernels.codegen.native_calls import FRESH
from linkwork.kernels.object_code import compile
from linkwork.kernels.programs.from_casadi import read_program
from linkwork.lazy import cached_property
from surroundings import Environment, forked_meanwhile

LINKS = 4
MANY = 50_000  # states: enough to wake other threads


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return Kernel(read_program(chain(LINKS)), threads=4).prepare()


@pytest.mark.parametrize("batch", [1000, 4099, 50_001])
def test_threads_change_nothing(kernel: Kernel, batch: int) -> None:
    inputs = states(LINKS, batch)
    alone = Kernel(kernel.program, threads=1)(*inputs)
    for a, b in zip(kernel(*inputs), alone, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("size", [8, 24, 1 << 20])
def test_shared_rows_are_taken_once(kernel: Kernel, size: int) -> None:
    """What another thread has taken is not touched, all else is done, and counted."""
    form, count = kernel._form(8), 99
    inputs = states(LINKS, count)
    right = kernel(*inputs)
    outputs = [np.full((count, *port.shape), np.nan) for port in kernel.outputs]
    table = table_of([Rows(x, x[0].size) for x in (*inputs, *outputs)])
    progress, workspace = np.array([16, 16, 0, 0, 0]), form.borrow()
    assert form.shared(table.ctypes.data, progress.ctypes.data, size, count, workspace.address, FRESH) == 0
    assert progress[0] >= progress[1] == count
    assert form.done(progress.ctypes.data, count)
    assert not form.done(progress.ctypes.data, count + 1)
    for y, all_rows in zip(outputs, right, strict=True):
        assert np.isnan(y[:16]).all()
        np.testing.assert_array_equal(y[16:], all_rows[16:])


def test_long_batches_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of which moving numbers is most of the work."""
    helped: list[int] = []
    monkeypatch.setattr(POOL, "run", lambda work, help, done, stop, threads, look: (helped.append(threads), work()))
    x = ca.SX.sym("x", 400)
    copies = Kernel(read_program(ca.Function("copy", [x], [2 * x], ["x"], ["y"])), threads=3)
    copies(np.ones((100, 400)))
    assert helped == []
    np.testing.assert_array_equal(copies(np.ones((20_000, 400))).y, np.full((20_000, 400), 2.0))
    assert helped == [3]


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


def test_first_calls_from_many_threads_compile_once(environment: Environment) -> None:
    environment["LINKWORK_CACHE"] = "off"
    fresh = Kernel(read_program(chain(3)))
    inputs = states(3, 10)
    with ThreadPoolExecutor(6) as callers:
        results = list(callers.map(lambda _: fresh(*inputs).a, range(6)))
    assert all(np.array_equal(r, results[0]) for r in results)
    assert len(fresh._forms) == 1


def never() -> bool:
    """A job of which nobody knows that it is done, until everybody has left."""
    return False


def test_where_the_system_has_no_more_threads_kernels_are_compiled_here(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits on processes or memory: that was an error of Python's own."""
    environment["LINKWORK_CACHE"] = "off"
    program, given = read_program(chain(LINKS)), states(LINKS, 9)
    expected = Kernel(program, threads=1)(*given).a

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(compile, "_SWEEPING", {})
    monkeypatch.setattr(threading.Thread, "start", refused)
    np.testing.assert_array_equal(Kernel(program, threads=2)(*given).a, expected)
    assert not compile._SWEEPING, "a later one may be swept"


def test_an_exception_reaches_the_caller_and_the_pool_lives_on() -> None:
    pool, todo = Pool(), deque(range(8))

    def work() -> None:
        while todo:
            if todo.popleft() == 3:
                raise ValueError("number three")

    with pytest.raises(ValueError, match="number three"):
        pool.run(work, work, never, nothing, 1)
    assert list(todo) == [4, 5, 6, 7]
    pool.run(work, work, never, nothing, 3)
    assert not todo


def entered_by_two(then: Callable[[], object]) -> Callable[[], None]:
    """Work that a caller and a helper both enter; the helper goes on with `then`."""
    both, caller = threading.Barrier(2, timeout=20), threading.current_thread()

    def work() -> None:
        both.wait()
        if threading.current_thread() is not caller:
            then()

    return work


def test_the_caller_waits_for_its_helpers() -> None:
    done = threading.Event()
    work = entered_by_two(lambda: (done.wait(0.05), done.set()))
    Pool().run(work, work, never, nothing, 2)
    assert done.is_set()


def test_a_helper_that_comes_late_is_not_taken_for_one_that_has_left() -> None:
    """The caller stopped the other one then, and returned with results not written: 1 call of 3 000 here."""
    pool, late, done = Pool(), threading.Event(), threading.Event()
    pool._threads[0] = object()  # one of two helpers is not there yet
    work = entered_by_two(lambda: (late.wait(20), done.wait(0.05), done.set()))

    def look() -> None:
        if not late.is_set():
            pool._queue.get(timeout=20).join()
            late.set()

    pool.run(work, work, never, nothing, 3, look)
    assert done.is_set()


def test_the_caller_leaves_when_all_is_done() -> None:
    """Even if a helper, which has nothing left to do, is slow to say so."""
    gate = threading.Event()
    work = entered_by_two(lambda: gate.wait(20))
    Pool().run(work, work, lambda: True, nothing, 2)
    gate.set()


def test_a_busy_pool_does_not_hold_up_a_caller() -> None:
    pool, gate, entered = Pool(), threading.Event(), threading.Semaphore(0)

    def wait() -> None:
        entered.release()
        assert gate.wait(20)

    hog = threading.Thread(target=pool.run, args=(wait, wait, never, nothing, 2))
    hog.start()
    for _ in range(2):
        assert entered.acquire(timeout=20)  # the pool's only thread is taken
    workers: list[threading.Thread] = []
    note = lambda: workers.append(threading.current_thread())  # noqa: E731
    pool.run(note, note, never, nothing, 2)
    assert workers == [threading.current_thread()]
    gate.set()
    hog.join(20)
    assert not hog.is_alive()
    assert len(workers) == 1


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
    answer.send(kernel(*states(LINKS, MANY)).a.sum())  # type: ignore[attr-defined]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_kernels_survive_a_fork(kernel: Kernel) -> None:
    expected = kernel(*states(LINKS, MANY)).a.sum()
    assert POOL._threads
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    child = context.Process(target=_in_child, args=(kernel, theirs))
    child.start()
    assert mine.poll(30), "the child never answered"
    assert mine.recv() == expected
    child.join(20)
    assert child.exitcode == 0
    assert kernel(*states(LINKS, MANY)).a.sum() == expected


FORKING = """
import os, sys, threading, time
import numpy as np
import linkwork as lw
from linkwork.robots.mechanisms import chain

f = lw.forward_dynamics(chain(15), method="aba", threads=2)
state = np.zeros((3, 15))
compiling = threading.Thread(target=f, args=tuple(state))
compiling.start()
children = []
for _ in range(8):
    time.sleep(0.05)
    child = os.fork()
    if not child:
        f(*state)
        os._exit(0)
    children.append(child)
compiling.join()
deadline = time.monotonic() + 100
while children and time.monotonic() < deadline:
    children = [c for c in children if not os.waitpid(c, os.WNOHANG)[0]]
    time.sleep(0.01)
for child in children:
    os.kill(child, 9)
sys.exit(f"{len(children)} children never came back" if children else 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_children_forked_while_a_thread_compiles_come_back(environment: Environment) -> None:
    """With the same function: whatever the thread holds just then, no child waits for it."""
    environment["LINKWORK_CACHE"] = "off"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKING], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-1000:]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_value_that_is_being_computed_is_computed_again_in_a_child() -> None:
    """Python's own cached_property has a lock up to 3.11, which a child finds closed."""
    entered, gate = threading.Event(), threading.Event()

    class Slow:
        @cached_property
        def value(self) -> int:
            entered.set()
            gate.wait(20)
            return 7

    slow = Slow()
    assert forked_meanwhile(entered, gate, lambda: slow.value) == 7
    assert slow.value == 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_module_that_a_thread_imports_is_imported_again_in_a_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python has a lock for each module, whose owner a child lacks: it would wait for ever."""
    (tmp_path / "imported_meanwhile.py").write_text("import surroundings\nVALUE = surroundings.PASSED()\n")
    entered, gate = threading.Event(), threading.Event()

    def passed() -> int:
        entered.set()
        gate.wait(20)
        return 7

    monkeypatch.setattr("surroundings.PASSED", passed, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert forked_meanwhile(entered, gate, lambda: import_module("imported_meanwhile").VALUE) == 7
    assert import_module("imported_meanwhile").VALUE == 7


def test_programs_are_put_by_many_threads_at_once() -> None:
    program, failed = read_program(chain(2)), []

    def hammer(k: int) -> None:
        try:
            for n in range(3000):
                program_cache.put(f"{k} {n}", program)
                program_cache.get(f"{k} {n - 1}")
        except RuntimeError as problem:
            failed.append(problem)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(hammer, range(8)))
    finally:
        sys.setswitchinterval(interval)
        program_cache.invalidate()
    assert not failed
