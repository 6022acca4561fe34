"""What discrete steps and their linearisations return."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class NextState(NamedTuple):
    """The configuration `q` and velocity `v` after a step."""

    q: np.ndarray
    v: np.ndarray


class Linearization(NamedTuple):
    """`q`, `v` after a step, `A` (2 nv, 2 nv), `B` (2 nv, nv) or (2 nv, nu); positions first."""

    q: np.ndarray
    v: np.ndarray
    A: np.ndarray
    B: np.ndarray


class NextActivatedState(NamedTuple):
    """The configuration `q`, velocity `v` and activations `act` (na,) after a step."""

    q: np.ndarray
    v: np.ndarray
    act: np.ndarray


class ActivatedLinearization(NamedTuple):
    """`q`, `v`, `act` after a step, `A` (2 nv + na, 2 nv + na), `B` (2 nv + na, nu); `act` is last."""

    q: np.ndarray
    v: np.ndarray
    act: np.ndarray
    A: np.ndarray
    B: np.ndarray
