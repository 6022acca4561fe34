"""Base parameters: the combinations of parameters that can be identified from joint forces.

    tau = Y pi = Y_b beta,    beta = B pi,    Y_b the columns of Y that are independent of those before them

Columns of Y that depend on others in every state, Y_d = Y_b K, give beta = pi_b + K pi_d. They are found in random
states: Y is analytic, so that what depends there depends everywhere. Columns are taken from the base to the tips: the
mass of a link on a hinge goes to parameters of the link that carries it, as lumping does (rewrite/inertia_lumping.py).
Gautier, "Numerical calculation of the base inertial parameters of robots", 1991.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwork.algorithms.common.embedding import embeddings
from linkwork.backends.numpy_ import NUMPY
from linkwork.checks import POSITIONS, VELOCITIES, checked
from linkwork.closure.random_states import random_state
from linkwork.errors import InputError, listing
from linkwork.functions.identification.regressors import regressor
from linkwork.functions.options import OPTIONS
from linkwork.model import Model, Motion
from linkwork.model.memo import cached
from linkwork.model.model import MODEL
from linkwork.model.parameter_vector import GROUPS, parameter_names, parameter_vector
from linkwork.structure.clusters import clusters
from linkwork.value_objects import read_only

BACKEND = OPTIONS["backend"]

DEPENDENT = 1e-9
"""A column that is this close to those before it, relative to its length, depends on them. Rounding leaves 1e-13."""


@dataclass(frozen=True)
class BaseParameters:
    """beta = B pi: `rank` combinations of the parameters of some `groups`, which joint forces depend on.

    - `B` (rank, p): one row for each combination; `Y @ pi == Y[..., columns] @ (B @ pi)` in every state;
    - `columns` (rank,): the parameter that each combination is named after, with coefficient 1;
    - `names`: the combinations in words, such as "link2.Ixx - link2.Iyy + 0.04 link3.m".
    """

    model: Model
    groups: tuple[str, ...]
    columns: np.ndarray
    B: np.ndarray

    @property
    def rank(self) -> int:
        """How many combinations can be identified."""
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Each combination as a sum of parameters."""
        known = parameter_names(self.model, self.groups)
        return tuple(_sum(row, int(first), known) for row, first in zip(self.B, self.columns, strict=True))

    @property
    def values(self) -> np.ndarray:
        """beta (rank,) of the model's own parameters."""
        return np.asarray(self.B @ parameter_vector(self.model, self.groups))

    @property
    def unidentifiable(self) -> np.ndarray:
        """An orthonormal basis (p, p - rank) of the changes of pi that no joint force shows."""
        return np.asarray(np.linalg.svd(self.B)[2][self.rank :].T)

    def __repr__(self) -> str:
        return f"<{self.rank} base parameters of {self.B.shape[1]} ({', '.join(self.groups)}) of '{self.model.name}'>"


@checked(model=MODEL, parameters=GROUPS)
def base_parameters(model: Model, parameters: Sequence[str] = ("inertia",)) -> BaseParameters:
    """The combinations of parameters that can be identified from joint forces, all of them measured.

    `parameters` are groups as `lw.regressor` takes them. Loops count as there: forces are those of the independent
    joints. Gravity is the model's own.

    Examples:
        >>> base = lw.base_parameters(chain(3))
        >>> base.rank, base.B.shape, base.names[1]
        (15, (15, 30), 'link2.hx + 0.3 link3.m')
    """
    if not parameters:
        raise InputError("name at least one group of parameters")
    groups = tuple(dict.fromkeys(parameters))
    return BaseParameters(model, groups, *_found(model, groups))


@checked(model=MODEL, q=POSITIONS, v=VELOCITIES, a=VELOCITIES, parameters=GROUPS, backend=BACKEND)
def excitation(
    model: Model,
    q: object,
    v: object,
    a: object,
    *,
    parameters: Sequence[str] = ("inertia",),
    backend: str = "kernel",
) -> float:
    """How well a motion excites the base parameters: the condition number of Y_b stacked over its states.

    `q`, `v` and `a` have one row for each state; `parameters` are groups as `lw.regressor` takes them. Columns have
    length one, so that units do not matter. Below 100 is good; infinite if some base parameters are not excited at all.

    Examples:
        >>> model, rng = chain(3), np.random.default_rng(0)
        >>> q, v, a = rng.normal(size=(3, 100, model.nv))
        >>> lw.excitation(model, q, v, a) < 100, lw.excitation(model, q, 0 * v, 0 * a) < 100
        (True, False)
    """
    states = [np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, v, a)]
    if len({len(x) for x in states}) > 1:
        raise InputError(f"q, v and a are of {listing(str(len(x)) for x in states)} states: give as many of each")
    base = base_parameters(model, parameters)
    Y = regressor(model, parameters=base.groups, backend=backend)(*states).Y
    return condition_number(Y[..., base.columns].reshape(-1, base.rank))


@cached
def _found(model: Model, groups: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """`columns` and `B`: the coefficients of all columns of Y in those that are independent."""
    R = triangle(_stacked(model, groups))
    lengths = np.linalg.norm(R, axis=0)
    R[:, lengths <= DEPENDENT * lengths.max(initial=0.0)] = 0.0
    columns = independent_columns(R)
    unit = R[:, columns] / lengths[columns]
    B = np.linalg.lstsq(unit, R / np.where(lengths > 0, lengths, 1.0), rcond=None)[0]
    B[np.abs(B) < DEPENDENT] = 0.0
    B = B * lengths / lengths[columns, None]
    B[:, columns] = np.eye(len(columns))
    return read_only(columns), read_only(B)


def independent_columns(A: np.ndarray) -> np.ndarray:
    """The columns of A that do not depend on those before them, by Gram and Schmidt, each twice."""
    basis, found = np.zeros((A.shape[0], 0)), list[int]()
    for j in np.flatnonzero(A.any(axis=0)):
        x = A[:, j] / np.linalg.norm(A[:, j])
        for _ in range(2):
            x = x - basis @ (basis.T @ x)
        left = float(np.linalg.norm(x))
        if left > DEPENDENT:
            basis, found = np.column_stack([basis, x / left]), [*found, int(j)]
    return np.array(found, dtype=int)


def triangle(A: np.ndarray) -> np.ndarray:
    """R of A = Q R: as long as A has columns, or rows if these are fewer."""
    return np.asarray(np.linalg.qr(A, mode="r"))


def condition_number(A: np.ndarray) -> float:
    """The condition number of A with columns of length one; infinite if these are dependent."""
    lengths = np.linalg.norm(A, axis=0)
    if A.shape[0] < A.shape[1] or not lengths.all():
        return float("inf")
    return float(np.linalg.cond(A / lengths)) if A.size else 1.0


def _stacked(model: Model, groups: tuple[str, ...]) -> np.ndarray:
    """Regressors of random states, local loops closed: three times as many rows as columns."""
    outer, rng = clusters(model).outer, np.random.default_rng(0)
    local = model.without(*(model.constraints[n].name for n in outer)) if outer else model
    tree = clusters(local)
    f = regressor(local, parameters=groups, backend="numpy")
    rows, size = list[np.ndarray](), len(parameter_vector(model, groups))
    for _ in range(-(-size // max(1, len(tree.velocities)))):
        moved = model.integrate(model.neutral(), 2.0 * rng.normal(size=model.nv))  # beyond joint limits too
        q = random_state(local, rng)[0] if local.constraints else moved
        G, _ = embeddings(Motion(local, q[:, None], np.zeros((model.nv, 1)), NUMPY), tree)
        for _ in range(3):
            # speeds and accelerations whose forces are about as large as those of gravity
            y, yy = 3.0 * rng.normal(size=len(tree.velocities)), 10.0 * rng.normal(size=len(tree.velocities))
            _, g = embeddings(Motion(local, q[:, None], (G @ y)[:, None], NUMPY), tree)
            rows.append(f(q, G @ y, G @ yy + g[:, 0]).Y[tree.velocities])
    return np.concatenate([np.zeros((1, size)), *rows])


def _sum(row: np.ndarray, first: int, names: Sequence[str]) -> str:
    """A combination in words, its own parameter first."""
    said = names[first]
    for k in map(int, np.flatnonzero(row)):
        if k != first:
            size = f"{abs(row[k]):.4g} " if abs(abs(row[k]) - 1) > DEPENDENT else ""
            said += f" {'-' if row[k] < 0 else '+'} {size}{names[k]}"
    return said
