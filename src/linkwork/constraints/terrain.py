"""Ground that is not a plane: a function of x and y, or heights on a grid.

A contact sees the plane that touches the terrain below it: with z = h(x, y) and the slopes h_x, h_y

    n = (-h_x, -h_y, 1) / sqrt(1 + h_x^2 + h_y^2),      n^T x = n^T (x_0, y_0, h_0)

so that the gap of a point is its height over the terrain times n_z, and changes with n^T v where it is zero. For a
sphere the plane below its centre gives a first place where it may touch, which is improved twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwork.backends.jets import Jet
from linkwork.backends.numpy_ import NUMPY
from linkwork.backends.ops import Array, Ops
from linkwork.checks import ARRAY, FUNCTION, array, checked_class
from linkwork.constraints.contact import Plane, Surface
from linkwork.constraints.nearest import axes
from linkwork.errors import InputError

MOST = 4096
"""The most heights of a field: all of them are in the program of every contact."""


def tangent(x: Array, y: Array, h: Array, slopes: tuple[Array, Array], xp: Ops) -> Plane:
    """The plane that touches z = h(x, y) at x, y."""
    hx, hy = slopes
    length = xp.sqrt(1.0 + hx * hx + hy * hy)
    n = xp.matrix([[-hx / length], [-hy / length], [1.0 / length]])
    return Plane(axes(n, xp), n[0, 0] * x + n[1, 0] * y + n[2, 0] * h)


@checked_class(function=FUNCTION)
@dataclass(frozen=True, eq=False, repr=False)
class Terrain(Surface):
    """The ground z = function(x, y), for contacts; its slopes come from running the function on jets.

    The function is plain arithmetic and NumPy's functions (np.sin, np.exp, np.hypot, ...); it cannot branch on values.

    Examples:
        >>> hills = lw.Terrain(lambda x, y: 0.1 * np.sin(3 * x) * np.cos(2 * y))
        >>> step = lw.step(quadruped(), [lw.Contact("front_left_foot")], ground=hills, backend="numpy")
    """

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        try:
            self._height(NUMPY.eye(1)[0, 0], NUMPY.eye(1)[0, 0], NUMPY)
        except Exception as problem:
            raise InputError(f"the function of a Terrain takes two numbers x, y and returns one: {problem}") from None

    def under(self, place: Array, xp: Ops) -> Plane:
        x, y = place[0, 0], place[1, 0]
        h, slopes = self._height(x, y, xp)
        return tangent(x, y, h, slopes, xp)

    def _height(self, x: Array, y: Array, xp: Ops) -> tuple[Array, tuple[Array, Array]]:
        one, zero = xp.eye(1)[0, 0], xp.zeros(1)[0, 0]
        with np.errstate(all="ignore"):
            found = np.ravel(self.function(Jet(xp, x, {0: one}), Jet(xp, y, {1: one})))
        if len(found) != 1:
            raise TypeError(f"it returns {len(found)} numbers")
        jet = found[0] if isinstance(found[0], Jet) else Jet(xp, xp.constant([[float(found[0])]])[0, 0])
        return jet.x, (jet.d.get(0, zero), jet.d.get(1, zero))


@checked_class(heights=ARRAY, size=array(2, what="two lengths (2,), in metres"), centre=array(2, what="x and y (2,)"))
@dataclass(frozen=True, eq=False, repr=False)
class HeightField(Surface):
    """Heights on a grid of points, bilinear in between, for contacts; level outside.

    `heights[j, i]` is at x_i, y_j: rows are along y, as in MuJoCo. The grid covers `size` = (along x, along y) around
    `centre`. With the hat functions a_i(x) and b_j(y) of the grid h = sum_ij b_j heights_ji a_i; kernels have no
    tables, so a field costs operations for each of its heights, in every contact: up to 4096 are taken.

    Examples:
        >>> steps = lw.HeightField(np.outer(np.ones(2), [0.0, 0.0, 0.1, 0.1]), size=(3.0, 2.0))
        >>> step = lw.step(quadruped(), [lw.Contact("front_left_foot")], ground=steps, backend="numpy")
    """

    heights: object
    size: object
    centre: object = (0.0, 0.0)

    def __post_init__(self) -> None:
        z = np.asarray(self.heights, dtype=float)
        if z.ndim != 2 or min(z.shape) < 2 or z.size > MOST:
            raise InputError(
                f"heights are a matrix of at least 2 x 2 and at most {MOST} entries, not of shape {z.shape}"
            )
        if (np.asarray(self.size, dtype=float) <= 0).any():
            raise InputError(f"the size of a height field is above 0, not {np.asarray(self.size).tolist()}")

    def under(self, place: Array, xp: Ops) -> Plane:
        z = np.asarray(self.heights, dtype=float)
        a, da = self._hats(place[0, 0], 0, z.shape[1], xp)
        b, db = self._hats(place[1, 0], 1, z.shape[0], xp)
        along = xp.constant(z) @ a  # of every row
        h, hx, hy = (b.T @ along)[0, 0], (b.T @ (xp.constant(z) @ da))[0, 0], (db.T @ along)[0, 0]
        return tangent(place[0, 0], place[1, 0], h, (hx, hy), xp)

    def _hats(self, x: Array, axis: int, count: int, xp: Ops) -> tuple[Array, Array]:
        """The hat functions of `count` points along x or y, and their slopes, as columns."""
        size, centre = (float(np.asarray(v, dtype=float)[axis]) for v in (self.size, self.centre))
        spacing = size / (count - 1)
        t = (x - (centre - size / 2)) / spacing  # in cells
        inside = xp.where(t > 0, xp.where(t < count - 1, 1.0, 0.0), 0.0)
        t = xp.where(t > 0, xp.where(t < count - 1, t, float(count - 1)), 0.0)
        hats, slopes = [], []
        for k in range(count):
            off = t - float(k)
            near = xp.where(off < -1, 0.0, xp.where(off < 1, 1.0, 0.0))  # at a point, the cell behind it counts
            up = xp.where(off < 0, 1.0, -1.0)
            hats.append([near * (1.0 + up * off)])
            slopes.append([near * inside * up / spacing])
        return xp.matrix(hats), xp.matrix(slopes)
