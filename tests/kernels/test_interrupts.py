"""Ctrl-C: heard at once in whatever takes long, by nobody who still writes, and without harm to the next call."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, wait

import casadi as ca
import numpy as np
import pytest
from kernels_examples import read_iteration

from linkwork import forks
from linkwork.kernels import IterativeProgram, Kernel
from linkwork.kernels.calls.thread_pool import Pool, nothing
from linkwork.kernels.programs.from_casadi import read_program

HEARD, TRIES = 0.1, 3
"""Seconds, in the best of some tries: a machine with other work may be late. Every call below would take minutes."""

SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
import linkwork as lw
from linkwork.robots.mechanisms import chain, quadruped

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it

def interrupted(call, after=0.2):
    # how late a signal, sent while the call runs, becomes an exception
    sent = []
    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(after, send)
    timer.start()
    try:
        call()
    except KeyboardInterrupt:
        print("late", time.perf_counter() - sent[0])
        return
    timer.cancel()
    sys.exit("the call ended before it was interrupted")

model = chain(4)
q, v = np.tile(model.neutral(), (40, 1)), np.zeros((40, 4))
"""

ROLLOUT = """
run = lw.rollout(model, method="aba", threads={threads})
states = {states}
right = run(*states, steps=50).q
for _ in range(3):
    interrupted(lambda: run(*states, steps=10**12, every=10**12))
    assert np.array_equal(run(*states, steps=50).q, right)
"""

LONG = {
    "a rollout": ROLLOUT.format(threads=1, states="(q[0], v[0])"),
    "a rollout of a batch": ROLLOUT.format(threads=1, states="(q, v)"),
    "a rollout on threads": ROLLOUT.format(threads=4, states="(q, v)"),
    "a batch": """
f = lw.forward_dynamics(model, method="aba", threads=2)
rows = np.lib.stride_tricks.as_strided(np.ones(4), (10**9, 4), (0, 8))
out = np.lib.stride_tricks.as_strided(np.ones(4), (10**9, 4), (0, 8)), np.empty((10**9, 0))
right = f(q, v, v).a
interrupted(lambda: f.kernel(rows, rows, rows, out=out))
assert np.array_equal(f(q, v, v).a, right)
""",
    "a compilation": """
os.environ["LINKWORK_CACHE"] = "off"
f = lw.forward_dynamics(chain(100), method="aba")
f.program
interrupted(lambda: f.kernel.prepare(), 0.1)
interrupted(lambda: f.kernel.prepare(), 0.3)
assert not f.kernel._forms
g = lw.forward_dynamics(model, method="aba")
assert np.isfinite(g(q, v, v).a).all()
""",
    "a record that is written and read": """
from dataclasses import replace
run = lw.simulate(model, q[0], duration=0.01, method="aba")
names = {f.name: getattr(run, f.name) for f in __import__("dataclasses").fields(run)}
t = np.arange(1_000_000.0)
more = {n: np.zeros((len(t), x.shape[1])) for n, x in names.items() if getattr(x, "ndim", 0) == 2}
more["q"] = np.random.default_rng(0).random((len(t), 4))
long, folder = replace(run, t=t, **more), __import__("tempfile").mkdtemp()
for suffix in ("npz", "csv"):
    for after in (0.2, 0.5):
        interrupted(lambda: [lw.Trajectory.read(long.save(f"{folder}/a.{suffix}")) for _ in range(100)], after)
    assert not os.listdir(folder)
    assert np.array_equal(lw.Trajectory.read(run.save(f"{folder}/b.{suffix}")).q, run.q)
    os.remove(f"{folder}/b.{suffix}")
os.rmdir(folder)
""",
    "planning": """
os.environ["LINKWORK_CACHE"] = "off"
feet = [lw.point(name) for name in ("front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot")]
interrupted(lambda: [lw.plan(quadruped().with_constraints(*feet[: k % 5]), measure=True) for k in range(1000)], 0.5)
assert lw.plan(model).best
""",
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("what", LONG)
def test_an_interrupt_is_heard_and_the_next_call_works(what: str) -> None:
    worst = []
    while min(worst, default=HEARD) >= HEARD and len(worst) < TRIES:
        worst.append(max(numbers(SCRIPT + LONG[what], "late")))
    assert min(worst) < HEARD, worst


def numbers(script: str, word: str) -> list[float]:
    """What a script prints after a word."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith(word)]


AFTERWARDS = (
    SCRIPT
    + """
os.environ["LINKWORK_CACHE"] = "off"
from linkwork.kernels.object_code import compile
lw.forward_dynamics(chain(3), method="aba").kernel.prepare()
real, begun, go = compile._emit_one, threading.Event(), threading.Event()
def slow(*given):  # a chunk that takes LLVM as long as it likes
    begun.set()
    go.wait(20)
    return real(*given)
compile._emit_one = slow
f = lw.forward_dynamics(model, method="aba")
threading.Thread(target=lambda: (begun.wait(), os.kill(os.getpid(), signal.SIGINT))).start()
try:
    f.kernel.prepare()
    sys.exit("the compilation ended before it was interrupted")
except KeyboardInterrupt:
    compile._emit_one = real
assert np.isfinite(f(q, v, v).a).all()
print("waited", float(go.is_set()))
go.set()
"""
)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_compilation_does_not_wait_for_one_that_was_interrupted() -> None:
    """It is done while LLVM still has a chunk of the old one in hand."""
    began = time.perf_counter()
    assert numbers(AFTERWARDS, "waited") == [0.0]
    assert time.perf_counter() - began < 20


def test_a_wait_for_work_is_made_of_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that comes between two of them is handled; before a single wait it would not be."""
    work, waits = Future[int](), list[float]()

    def waiting(works: list[Future[int]], seconds: float) -> object:
        waits.append(seconds)
        if len(waits) == 3:
            work.set_result(7)
        return wait(works, 0)

    monkeypatch.setattr(forks, "wait", waiting)
    assert forks.result_of(work) == 7
    assert len(waits) == 3
    assert max(waits) <= HEARD / 2


ENDS = (
    SCRIPT
    + """
os.environ["LINKWORK_CACHE"] = "off"
from linkwork.kernels.object_code import compile
from linkwork.robots.mechanisms import humanoid
real, begun = compile._emit_one, threading.Semaphore(0)
def counted(*given):
    begun.release()
    return real(*given)
f = lw.forward_dynamics(humanoid().with_constraints(lw.surface("left_foot"), lw.surface("right_foot")), method="lcaba")
f.program
compile._emit_one = counted
threading.Thread(target=lambda: ([begun.acquire() for _ in range(5)], os.kill(os.getpid(), signal.SIGINT))).start()
try:
    f.kernel.prepare()
    sys.exit("the compilation ended before it was interrupted")
except KeyboardInterrupt:
    print("used", time.process_time())
"""
)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_the_end_of_a_process_waits_for_no_more_than_a_chunk() -> None:
    """Of processor time, compared with what came before: chunks that LLVM began are small, others are cancelled."""
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    (used,) = numbers(ENDS, "used")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert total - used < 0.5 * used


NEAR_THE_END = (
    SCRIPT
    + """
run = lw.rollout(chain(12), method="aba", threads=4)
q, v = np.zeros((40, 12)), np.zeros((40, 12))
began = time.perf_counter()
run(q, v, steps=100_000, every=100)
took = time.perf_counter() - began
for part in (0.85, 0.88, 0.91, 0.94, 0.97, 1.0):
    threading.Timer(part * took, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        run(q, v, steps=100_000, every=100)
        time.sleep(10)
    except KeyboardInterrupt:
        pass
    mine = [np.full(1000 * k + 1, 7.0) for k in range(100)]
    time.sleep(0.05)
    assert all((x == 7.0).all() for x in mine), "somebody wrote into an array of mine"
"""
)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_nobody_writes_after_an_interrupt() -> None:
    """Interrupted near its end, a rollout on four threads killed two processes of three."""
    done = subprocess.run([sys.executable, "-c", NEAR_THE_END], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, signal.Signals(-done.returncode) if done.returncode < 0 else done.stderr[-2000:]


def endless() -> IterativeProgram:
    """An iteration that never ends: its residual stays 1."""
    x, s = ca.SX.sym("x"), ca.SX.sym("s")
    start = ca.Function("start", [x], [x, 1], ["x"], ["s", "residual"])
    step = ca.Function("iterate", [x, s], [s + x, 1], ["x", "s"], ["s_next", "residual"])
    return read_iteration(start, step)


@pytest.mark.parametrize("batch", [None, 20])
def test_iterations_without_end_are_left(batch: int | None) -> None:
    """By an exception that another thread raises here: on the way for one state, and in batches."""
    kernel, x = Kernel(endless(), threads=1), np.ones(1 if batch is None else (batch, 1))
    np.testing.assert_array_equal(kernel(x, 0.0 * np.ones(1), 5.0 * np.ones(1)).s, 6 * x)
    here, until = threading.get_ident(), np.array([1e300])
    timer = threading.Timer(
        0.1, lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(here), ctypes.py_object(TimeoutError))
    )
    timer.start()
    with pytest.raises(TimeoutError):
        kernel(x, np.zeros(1), until)
    timer.join()
    np.testing.assert_array_equal(kernel(x, np.zeros(1), np.array([5.0])).s, 6 * x)


@pytest.mark.parametrize("lanes", [1, 2, 8])
def test_long_iterations_take_many_turns_and_give_the_same(lanes: int) -> None:
    kernel = Kernel(endless(), lanes=lanes, threads=1)
    x, iterations = np.arange(1.0, 20.0)[:, None], np.arange(19.0)[:, None] * 100_000 + 1
    out = kernel(x, np.zeros(1), iterations)
    np.testing.assert_array_equal(out.s, x * (iterations + 1))
    np.testing.assert_array_equal(out.iterations, iterations)
    one = kernel(x[3], np.zeros(1), iterations[3] * 10)
    np.testing.assert_array_equal(one.s, x[3] * (iterations[3] * 10 + 1))
    bound = kernel.bind()
    bound.inputs.x[:], bound.inputs.max_iterations[:] = 2.0, 3e6
    np.testing.assert_array_equal(bound().s, [2 * (3e6 + 1)])


def test_helpers_are_stopped_before_an_exception_leaves() -> None:
    """Whatever the caller is doing when it comes."""
    pool, stopped, events = Pool(), threading.Event(), []
    inside = threading.Barrier(2, timeout=20)

    def work() -> None:
        inside.wait()
        raise KeyboardInterrupt

    def help() -> None:
        inside.wait()
        assert stopped.wait(20)
        events.append("left")

    def stop() -> None:
        stopped.set()
        while "left" not in events:
            time.sleep(1e-3)

    with pytest.raises(KeyboardInterrupt):
        pool.run(work, help, lambda: False, stop, 2)
    assert events == ["left"]
    pool.run(nothing, nothing, lambda: False, nothing, 2)


def test_memory_lives_as_long_as_its_writers() -> None:
    """A task that is under way holds its arrays, even if nobody else does any more."""
    import gc
    import weakref

    from linkwork.kernels.calls.interruptible_run import Task

    x = ca.SX.sym("x", 2)
    kernel = Kernel(read_program(ca.Function("twice", [x], [2 * x], ["x"], ["y"])))
    form, array = kernel._form(kernel.lanes), np.ones((3, 2))
    gone = weakref.ref(array)
    helper = Task(form, np.zeros(4, np.int64), [array], 0, 1, 1)._help
    del array
    gc.collect()
    assert gone() is not None
    helper()
    del helper
    gc.collect()
    assert gone() is None
