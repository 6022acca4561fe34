"""``LINKWORK_TARGET``: older processors, where functions are as accurate, and give the same bits in every lane."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import linkwork as lw
from linkwork.cli.main import app
from linkwork.errors import KernelError
from linkwork.kernels.codegen.target import PROCESSORS, Target, runnable
from linkwork.kernels.object_code.image import Options, build
from linkwork.robots.mechanisms import arm, four_bar
from surroundings import Environment


def here() -> list[str]:
    """What this machine can run, whatever the suite itself is forced to."""
    forced = os.environ.pop("LINKWORK_TARGET", None)
    found = sorted(runnable(Target.host()))
    os.environ.update({} if forced is None else {"LINKWORK_TARGET": forced})
    return found


HERE = here()
BITS = {"avx512": 512, "avx2": 256, "sse2": 128, "neon": 128}
MODELS: dict[str, Callable[[], lw.Model]] = {"arm": lambda: arm(3), "four_bar": four_bar}
METHOD = {"arm": "aba", "four_bar": "lcaba"}
BOUND = {"arm": {"float64": 1e-14, "float32": 5e-6}, "four_bar": {"float64": 1e-9, "float32": 1e-4}}
"""Relative to the largest acceleration: rounding times the condition of these states, and the error of iterations."""


def given(model: lw.Model, dtype: str) -> list[np.ndarray]:
    """As many states as fill two registers of the widest target, and three more."""
    q, v = lw.random_state(model, 0, batch=35)
    return [x.astype(dtype) for x in (q, v, np.random.default_rng(1).normal(size=v.shape))]


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("robot", MODELS)
def test_right_and_the_same_bits_in_every_lane(
    environment: Environment, empty_cache: Path, name: str, dtype: str, robot: str
) -> None:
    environment["LINKWORK_TARGET"] = name
    model = MODELS[robot]()
    state = given(model, dtype)
    fd = lw.forward_dynamics(model, method=METHOD[robot], dtype=dtype, threads=1)
    found = fd(*state).a
    lanes = BITS[name] // (64 if dtype == "float64" else 32)
    right = lw.forward_dynamics(model, method="kkt", backend="numpy")(*(x.astype(float) for x in state)).a
    assert np.abs(found - right).max() <= BOUND[robot][dtype] * np.abs(right).max()
    for size in range(1, 2 * lanes + 2):  # full registers, and every remainder
        np.testing.assert_array_equal(fd(*(x[:size] for x in state)).a, found[:size])
    for k in range(lanes + 1):  # every lane, against one state at a time
        np.testing.assert_array_equal(fd(*(x[k] for x in state)).a, found[k])
        np.testing.assert_array_equal(fd(*(np.roll(x, k, axis=0) for x in state)).a, np.roll(found, k, axis=0))


@pytest.mark.parametrize("name", HERE)
def test_compiled_anew_it_is_the_same_code(name: str) -> None:
    program, target = lw.forward_dynamics(arm(3), method="aba").program, Target.named(name)
    options = Options("double", target.lanes("float64"), target)
    assert build(program, options) == build(program, options)


@pytest.mark.parametrize("name", HERE)
def test_rollouts(environment: Environment, name: str) -> None:
    environment["LINKWORK_TARGET"] = name
    model = four_bar()
    q, v, _ = given(model, "float64")
    roll = lw.rollout(model, dt=1e-3, threads=1)
    found, lanes = roll(q, v, steps=20), BITS[name] // 64
    for k in (0, lanes - 1, lanes, 34):
        np.testing.assert_array_equal(roll(q[k], v[k], steps=20).q, found.q[k])


def test_each_target_has_kernels_of_its_own(environment: Environment, empty_cache: Path) -> None:
    model, files = arm(3), 0
    for name in HERE:
        environment["LINKWORK_TARGET"] = name
        fd = lw.forward_dynamics(model, method="aba")
        fd(*(x[0] for x in given(model, "float64")))
        kernels = len(list(empty_cache.glob("*.kernel")))
        assert kernels > files
        files = kernels


@pytest.mark.parametrize("name", ["cray", "AVX2", "avx2 ", *sorted(PROCESSORS.keys() - set(HERE))])
def test_what_this_machine_cannot_run_is_refused(environment: Environment, name: str) -> None:
    environment["LINKWORK_TARGET"] = name
    with pytest.raises(KernelError, match=f"LINKWORK_TARGET is '{name}'; this machine can run: .*{HERE[0]}"):
        lw.forward_dynamics(arm(2), method="aba")(np.zeros(2), np.zeros(2), np.zeros(2))


def test_older_machines_run_less() -> None:
    sse2 = Target("x86_64-pc-windows-msvc", "nehalem", "+sse4.2")
    assert runnable(sse2) == {"sse2": Target("x86_64-pc-windows-msvc", "x86-64", "")}
    assert list(runnable(Target("x86_64-apple-darwin22", "haswell", "+avx2"))) == ["avx2", "sse2"]
    assert list(runnable(Target("arm64-apple-darwin23", "apple-m2", ""))) == ["neon"]


@pytest.mark.parametrize("name", HERE)
def test_doctor_tells_it(environment: Environment, name: str) -> None:
    environment["LINKWORK_TARGET"] = name
    told = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert told["machine"]["LINKWORK_TARGET"] == name
    assert told["machine"]["lanes"]["float64"] == BITS[name] // 64
    assert told["compile test"]["problem"] is None


def test_doctor_shows_it(environment: Environment) -> None:
    environment["LINKWORK_TARGET"] = HERE[0]
    assert f"LINKWORK_TARGET is {HERE[0]}" in CliRunner().invoke(app, ["doctor"]).stdout
