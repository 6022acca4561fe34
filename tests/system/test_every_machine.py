"""What every machine and every Python must do: the shortest run through all that depends on them.

Kernels for one state and for batches, contacts, loops, rollouts with and without friction, derivatives, both ways of
calling, the cache. Emulated processors (`make test-arm`), hosted runners and further Pythons run this file.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.kernels.calls.kernel import Kernel
from linkwork.kernels.codegen import python_layout
from linkwork.robots.mechanisms import arm, four_bar, quadruped

FEET = ("front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot")
BATCH = 19
"""Not a multiple of the lanes of any processor."""


@cache
def standing() -> lw.Model:
    return quadruped().with_constraints(*(lw.point(foot) for foot in FEET[:2]))


def states(model: lw.Model) -> list[np.ndarray]:
    q, v = lw.random_state(model, 0, batch=BATCH)
    return [q, v, np.random.default_rng(1).normal(size=v.shape)]


CASES = {"arm": (lambda: arm(4), "aba", 1e-13), "loop": (four_bar, "lcaba", 1e-9), "feet": (standing, "pv_early", 1e-9)}


@pytest.mark.parametrize("case", CASES)
def test_accelerations(case: str) -> None:
    make, method, bound = CASES[case]
    model = make()
    given = states(model)
    right = lw.forward_dynamics(model, method="kkt", backend="numpy")(*given).a
    fd = lw.forward_dynamics(model, method=method)
    found = fd(*given).a
    assert np.abs(found - right).max() <= bound * np.abs(right).max()
    for k in (0, BATCH - 1):
        np.testing.assert_array_equal(fd(*(x[k] for x in given)).a, found[k])


def test_single_precision() -> None:
    model = arm(4)
    given = states(model)
    right = lw.forward_dynamics(model, method="kkt", backend="numpy")(*given).a
    found = lw.forward_dynamics(model, method="aba", dtype="float32")(*(x.astype(np.float32) for x in given)).a
    assert np.abs(found - right).max() <= 2e-5 * np.abs(right).max()


def test_a_loop_rolls_out() -> None:
    model = four_bar()
    q, v, _ = states(model)
    run = lw.rollout(model, dt=1e-3, threads=1)
    found = run(q, v, steps=50)
    energy = lw.energy(model)
    before, after = (sum(energy(*x)) for x in ((q, v), (found.q[:, -1], found.v[:, -1])))
    assert np.abs(after - before).max() < 1e-2 * np.abs(before).max()
    np.testing.assert_array_equal(run(q[3], v[3], steps=50).q, found.q[3])


def test_a_ball_rolls_out_on_the_ground() -> None:
    """A solid ball of 1 kg that slides with v begins to roll with 5/7 v."""
    b = lw.Builder("ball")
    b.link("ball", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3) * 0.4 * 0.1**2))
    run = lw.rollout(b.build(), contacts=[lw.Contact("ball", radius=0.1, friction=0.5)], threads=1)
    end = run(np.array([0, 0, 0.1, 0, 0, 0, 1.0]), np.array([1.0, 0, 0, 0, 0, 0]), steps=200, every=200, dt=1e-3)
    world = lw.frame_velocity(b.build(), "ball", reference="world_aligned")(end.q[-1], end.v[-1])
    assert np.asarray(world[0]).ravel()[0] == pytest.approx(5 / 7, abs=1e-6)


def test_derivatives() -> None:
    model = arm(3)
    q, v, tau = (x[0] for x in states(model))
    found = lw.forward_dynamics(model, method="aba").derivatives()(q, v, tau)
    inverse = np.linalg.inv(lw.mass_matrix(model)(q).M)
    np.testing.assert_allclose(found.da_dtau, inverse, rtol=1e-10, atol=1e-10)


def test_threads_share_a_batch() -> None:
    model = arm(4)
    given = [np.tile(x, (400, 1)) for x in states(model)]
    one, two = (lw.forward_dynamics(model, method="aba", threads=n)(*given).a for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_calls_without_objects_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where objects have another layout, calls for one state go through ctypes: slower, with the same results."""
    program = lw.forward_dynamics(arm(3), method="aba").program
    given = [x[0] for x in states(arm(3))]
    direct = Kernel(program)
    assert direct._words(strict=True) is not None, "this Python's objects are laid out as expected"
    monkeypatch.setattr("linkwork.kernels.calls.kernel.object_words", lambda dtype: None)
    slow = Kernel(program)
    assert slow._words(strict=True) is None
    np.testing.assert_array_equal(slow(*given)[0], direct(*given)[0])
    np.testing.assert_array_equal(slow.judged(given)[0][0], direct(*given)[0])
    out = np.empty(3), np.empty(0)
    assert slow(*given, out=out)[0] is out[0]
    np.testing.assert_array_equal(out[0], direct(*given)[0])
    bound = slow.bind()
    for buffer, x in zip(bound.inputs, given, strict=True):
        buffer[...] = x
    np.testing.assert_array_equal(bound()[0], direct(*given)[0])


def test_the_layout_is_checked_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """An offset that is wrong is noticed, and the general way is taken."""
    python_layout.object_words.cache_clear()
    monkeypatch.setattr(python_layout, "ITEMS", python_layout.ITEMS + 8)
    assert python_layout.object_words("float64") is None
    python_layout.object_words.cache_clear()


def test_the_next_process_finds_the_kernel(empty_cache: Path) -> None:
    text = """
import numpy as np, linkwork as lw, linkwork.kernels.calls.kernel as kernel
from linkwork.robots.mechanisms import arm
made, build = [], kernel.build
kernel.build = lambda *given: made.append(given) or build(*given)
found = lw.forward_dynamics(arm(2), method="aba")(*np.ones((3, 2))).a
print(len(made), *found)
"""
    told = [
        subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert (told[0][0], told[1][0]) == ("1", "0"), "compiled once"
    assert told[0][1:] == told[1][1:]


def test_tuples_made_by_machine_code_have_no_hash_yet() -> None:
    """Arrays cannot be hashed, so a tuple of them cannot; one that came with a hash (3.14) could."""
    kernel = Kernel(lw.mass_matrix(arm(2)).program)
    result = kernel(np.zeros(2))
    assert isinstance(result, tuple)
    assert kernel._words(strict=False) is not None
    with pytest.raises(TypeError, match="unhashable"):
        hash(result)
    assert result == tuple(result)
