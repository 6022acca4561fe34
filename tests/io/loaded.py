"""What the loader tests share: the robots on this machine, and dynamics of one state on NumPy."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.numpy_ import NUMPY
from linkwork.io import zoo
from linkwork.io.load import LoadWarning, load
from linkwork.model import Model
from linkwork.model.motion import Motion

EPS = float(np.finfo(float).eps)
TIDY = 2e-12
"""Rotations are rounded to exact zeros and ones within 1e-12 per entry: see linkwork.model.body.tidy."""

NO_ROBOTS = f"no robot files: install example-robot-data, or name directories of robots in {zoo.VARIABLE}"


def robots(*suffixes: str) -> list[object]:
    """The robots with these file suffixes, as parameters of a test; one that is skipped if there are none."""
    found = [pytest.param(r, id=r.name) for r in zoo.robots() if r.path.suffix in suffixes]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason=NO_ROBOTS), id="none")]


def quiet_load(source: object, base: str | None = None, **options: object) -> Model:
    """Load a robot whose file is known to have mistakes that are passed over."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LoadWarning)
        return load(source, base, **options)  # type: ignore[arg-type]


@dataclass(frozen=True)
class State:
    """A position and velocity, and the dynamics there."""

    model: Model
    q: np.ndarray
    v: np.ndarray

    @cached_property
    def motion(self) -> Motion:
        return Motion(self.model, self.q[:, None], self.v[:, None], NUMPY)

    @cached_property
    def M(self) -> np.ndarray:
        return np.asarray(crba(self.motion))

    def rnea(self, vdot: np.ndarray | None = None) -> np.ndarray:
        return np.asarray(rnea(self.motion, None if vdot is None else vdot[:, None])[:, 0])

    @cached_property
    def gravity(self) -> np.ndarray:
        return State(self.model, self.q, np.zeros_like(self.v)).rnea()

    def frame(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        f = self.model.frame(name)
        R, p = self.motion.poses[f.link]
        return R @ f.placement.R, p[:, 0] + R @ f.placement.p


def states(model: Model, count: int) -> list[State]:
    rng = np.random.default_rng(1)
    return [State(model, model.random_q(rng), rng.normal(size=model.nv)) for _ in range(count)]


def assert_near(ours: np.ndarray, theirs: np.ndarray, scale: float, relative: float) -> None:
    worst = float(np.abs(ours - theirs).max(initial=0.0))
    assert worst <= relative * max(scale, float(np.abs(theirs).max(initial=0.0))), f"{worst:.2e} off"
