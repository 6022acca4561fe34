"""What the tests share: tolerances that follow from condition numbers, random mechanisms, differences along motions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints import (
    CUT_JOINTS,
    CentreOfMass,
    Closure,
    Constraint,
    Coupling,
    Custom,
    Distance,
    LinkRows,
)
from linkwork.joints import KINDS as ALL_KINDS
from linkwork.joints import SIMPLE, Helical, Joint, Universal, make
from linkwork.model import BodyInertia, Builder, Frame, Model, Motion, Placement

EPS = float(np.finfo(float).eps)
FIVE_POINT = EPS**0.8
"""What a five-point difference can reach: its step eps^(1/5) leaves as much truncation, h^4, as rounding, eps / h."""


def cond(*matrices: np.ndarray) -> float:
    """The largest condition number, at least 1, of what is left of each matrix without its zero singular values."""
    worst = 1.0
    for A in matrices:
        s = np.linalg.svd(A, compute_uv=False) if A.size else np.ones(1)
        s = s[s > max(A.shape) * EPS * s[0]] if s[0] > 0 else np.ones(1)
        worst = max(worst, float(s[0] / s[-1]))
    return worst


def assert_close(
    actual: object, expected: object, kappa: float = 1.0, *, scale: float = 0.0, c: float = 100.0, eps: float = EPS
) -> None:
    """|actual - expected| <= c kappa eps max(|expected|, scale, 1), entry by entry, with the same shape."""
    x, y = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert x.shape == y.shape, f"shapes {x.shape} and {y.shape}"
    if x.size == 0:
        return
    error = float(np.abs(x - y).max()) if np.isfinite(x).all() and np.isfinite(y).all() else np.inf
    bound = c * kappa * eps * max(float(np.abs(y).max()), scale, 1.0)
    assert error <= bound, f"error {error:.3g} exceeds {bound:.3g} (kappa {kappa:.3g})"


def derivative(f: Callable[[float], np.ndarray], h: float = EPS**0.2) -> np.ndarray:
    """df/dt at 0 by a five-point difference: compare with eps=FIVE_POINT."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def col(x: object) -> np.ndarray:
    return np.asarray(x, dtype=float).reshape(-1, 1)


def motion(model: Model, q: np.ndarray, v: np.ndarray | None = None) -> Motion:
    """The state in NumPy."""
    return Motion(model, col(q), col(np.zeros(model.nv) if v is None else v), NUMPY)


def rotation(rng: np.random.Generator) -> np.ndarray:
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return np.asarray(Q * np.linalg.det(Q))


def body(rng: np.random.Generator) -> BodyInertia:
    """A physical body: 0.5 to 2 kg of points spread over some decimetres."""
    points, masses = rng.normal(size=(6, 3)) * 0.3, rng.uniform(0.1, 0.3, 6)
    com = masses @ points / masses.sum()
    d = points - com
    I = sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, d, strict=True))
    return BodyInertia(float(masses.sum()), com, (I + I.T) / 2)


AXES = ("x", "y", "z", "-x", "-y", "-z")
KINDS = tuple(j.kind for j in SIMPLE)
"""The joints of random mechanisms; the others are made of these."""
MOVING = tuple(k for k in ALL_KINDS if k != "fixed")
ONE_DOF = ("revolute", "prismatic", "helical")


def joint(kind: str, rng: np.random.Generator, axis: object = None) -> Joint:
    """A joint of this kind about the axis; without one, about a coordinate axis or any other, as often."""
    if axis is None:
        axis = str(rng.choice(AXES)) if rng.random() < 0.5 else rng.normal(size=3)
    if kind == "helical":
        return Helical(axis, rng.uniform(-0.4, 0.4))
    if kind == "universal":
        first = make("revolute", axis=axis).axis  # type: ignore[attr-defined]
        return Universal(first, np.cross(first, [0.36, 0.48, 0.8]))
    return make(kind, axis=axis) if kind in ("revolute", "prismatic", "cylindrical") else make(kind)


def random_model(
    seed: int, n: int = 7, kinds: Sequence[str] = KINDS, *, base: str | None = None, armature: bool = True
) -> Model:
    """A tree of n links with joints of these kinds; `base` is the kind of the first joint."""
    return _random_model(seed, n, tuple(kinds), base, armature)


@lru_cache(maxsize=64)
def _random_model(seed: int, n: int, kinds: tuple[str, ...], base: str | None, armature: bool) -> Model:
    """One model for all tests that ask for it: what is found out about a model is found once."""
    rng = np.random.default_rng(seed)
    b, names = Builder(f"random {seed}"), ["world"]
    for i in range(n):
        kind = base if base and i == 0 else str(rng.choice(list(kinds)))
        parent = names[-1] if base and i == 1 else str(rng.choice(names[1 if base and i else 0 :]))
        rotor = 0.2 if armature and i and rng.random() < 0.4 else 0.0
        at_origin = rng.random() < 0.2 or (base is not None and i == 0)
        placement = Placement() if at_origin else Placement(rotation(rng), rng.normal(size=3) * 0.4)
        b.link(f"l{i}", parent, joint(kind, rng), placement=placement, inertia=body(rng), armature=rotor)
        b.frame(f"f{i}", f"l{i}", Placement(rotation(rng), rng.normal(size=3) * 0.3))
        names.append(f"l{i}")
    return b.build(merge_fixed=False)


def random_state(model: Model, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and a third vector of length nv."""
    rng = np.random.default_rng([seed, 77])
    return model.random_q(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)


def along(model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Callable[[float], Motion]:
    """A motion whose velocity is v + t a at all times near zero, integrated by Magnus' expansion of fourth order.

    Its positions are wrong by t^5 at most, far below what a five-point difference at zero sees.
    """

    def at(t: float) -> Motion:
        steps = 8
        now = q
        for k in range(steps):
            mid = (k + 0.5) / steps * t
            w0, w1 = v + a * (mid - 0.5 * t / steps), v + a * (mid + 0.5 * t / steps)
            # Magnus expansion of fourth order for a velocity linear in time, joint by joint
            now = model.integrate(now, t / steps * (w0 + w1) / 2 + _magnus(model, w0, w1, t / steps))
        return motion(model, now, v + t * a)

    return at


def _magnus(model: Model, w0: np.ndarray, w1: np.ndarray, h: float) -> np.ndarray:
    """(h^2 / 12) [w0, w1] for joints whose configuration space is a group: spherical, planar, free."""
    out = np.zeros(model.nv)
    for i in model.topology.links:
        at, kind = model.topology.v_slices[i], model.links[i].joint.kind
        a, b = w0[at], w1[at]
        if kind == "spherical":
            out[at] = np.cross(a, b)
        elif kind == "planar":
            out[at] = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], 0.0]
        elif kind == "free":
            out[at] = [*(np.cross(a[3:], b[:3]) + np.cross(a[:3], b[3:])), *np.cross(a[3:], b[3:])]
    return h**2 / 12 * out


def closed_at(model: Model, q: np.ndarray, a: str, b: str, name: str) -> Model:
    """The model with a new frame on b's link where frame `a` is at `q`, so that closures of the two hold there."""
    m = motion(model, q)
    fa, fb = model.frame(a), model.frame(b)
    Ra, pa = m.poses[fa.link]
    Rb, pb = m.poses[fb.link]
    world = Placement(Ra, pa[:, 0]) @ fa.placement
    place = Placement(Rb, pb[:, 0]).inverse() @ world
    return replace(model, frames={**model.frames, name: Frame(fb.link, place)})


def closures(a: str, b: str, rng: np.random.Generator) -> list[Closure]:
    """Every cut joint between two frames, about a coordinate axis and about any other."""
    out = []
    for kind in CUT_JOINTS:
        u = rng.normal(size=3)
        out.append(Closure(a, b, kind, axis=u, second=np.cross(u, [0.6, 0.0, 0.8]), pitch=0.3))
        out.append(Closure(a, b, kind, axis="-y", second="x", pitch=-0.2))
    return out


@lru_cache(maxsize=64)
def constraints_of(model: Model, seed: int) -> tuple[Constraint, ...]:
    """Every type of constraint on a model of `random_model`: between links, with the world, on joints, on the mass."""
    rng = np.random.default_rng([seed, 5])
    n = model.nlinks
    i, j = rng.choice(n, 2, replace=False)
    out: list[Constraint] = [*closures(f"f{i}", f"f{j}", rng), *closures(f"f{i}", "world", rng)]
    out += [Closure(f"f{i}", b, joint, axes="b") for b in (f"f{j}", "world") for joint in ("fixed", "spherical")]
    out += [Distance(f"f{i}", f"f{j}", 0.8), Distance(f"f{i}", "world", 1.1), CentreOfMass((0.1, 0.2, 0.3))]
    out.append(LinkRows({f"l{i}": rng.normal(size=(2, 6)), f"l{j}": rng.normal(size=(2, 6))}, (0.3, -0.2)))
    single = [l.joint_name for l in model.links[1:] if l.joint.kind in ONE_DOF]
    if len(single) >= 3:
        out.append(Coupling(single[0], {single[1]: [2.0, 0.3, 0.1], single[2]: [0.0, 0.4]}, 0.1))
        out.append(Custom(lambda x, y: [np.sin(x) * y, x * y * y], single[:2]))
    ball = [l.joint_name for l in model.links[1:] if l.joint.kind in ("spherical", "free")]
    if ball:
        out.append(Custom(lambda x: x[-4] * x[-1] + x[-3] ** 2, ball[:1]))
    return tuple(out)
