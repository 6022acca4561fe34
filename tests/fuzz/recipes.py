"""Random mechanisms as plain numbers, from which Linkwork's model and the judge's equations are both made.

A recipe is what JSON can hold: links in depth-first order with joints, placements and inertias, constraints, gravity,
and one state. Masses are drawn over six decades, sizes over four; a quarter of the mechanisms is planar and a third is
made of right angles and equal lengths, because that is where rows depend on each other and postures are singular.
"""

from __future__ import annotations

from typing import Any

import judge
import numpy as np

Recipe = dict[str, Any]

ANGLES = {"revolute": (0,), "helical": (0,), "cylindrical": (1,), "universal": (0, 1)}
LENGTHS = {"prismatic": (0,), "cylindrical": (0,), "planar": (0, 1), "free": (0, 1, 2)}
SINGLE = ("revolute", "prismatic", "helical")
KINDS = ("revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "planar", "free", "fixed")
CUTS = (
    "fixed",
    "revolute",
    "prismatic",
    "cylindrical",
    "helical",
    "planar",
    "spherical",
    "universal",
    "point_on_line",
    "point_on_plane",
)


def draw(seed: int) -> Recipe:
    """The mechanism and state of this seed."""
    return _Draw(seed).recipe()


class _Draw:
    """One mechanism being drawn: its style, its size in metres and its mass in kilograms."""

    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, np.random.default_rng([seed, 17])
        rng = self.rng
        self.style = str(rng.choice(["random", "square", "planar"], p=[0.45, 0.3, 0.25]))
        self.size = float(10 ** rng.uniform(-2, 2)) if rng.random() < 0.5 else 1.0
        self.mass = float(10 ** rng.uniform(-3, 3)) if rng.random() < 0.3 else 1.0
        self.spread = float(rng.choice([0.0, 1.0, 3.0], p=[0.6, 0.2, 0.2])) if self.mass == 1.0 else 0.0
        self.n = int(rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 12], p=[0.04, 0.16, 0.2, 0.2, 0.15, 0.1, 0.08, 0.05, 0.02]))

    def recipe(self) -> Recipe:
        rng = self.rng
        links = self._links()
        out: Recipe = {
            "seed": self.seed,
            "style": self.style,
            "size": self.size,
            "gravity": self._gravity(),
            "links": links,
            "constraints": [],
            "q": [x for l in links for x in self._position(l["joint"]["kind"])],
        }
        if rng.random() < 0.9:
            self._constrain(out)
        self._state(out)
        return out

    def _links(self) -> list[Recipe]:
        rng, links = self.rng, list[Recipe]()
        kinds = rng.permutation(KINDS)[: rng.integers(1, 5)].tolist() if rng.random() < 0.6 else ["revolute"]
        path, branching = [0], rng.choice([0.0, 0.3, 0.8])
        for i in range(1, self.n + 1):
            kind = (
                str(rng.choice(kinds))
                if self.style != "planar"
                else str(rng.choice(["revolute", "prismatic"], p=[0.85, 0.15]))
            )
            back = int(rng.integers(len(path))) if rng.random() < branching else len(path) - 1
            path = path[: back + 1]
            body = self._body()
            links.append(
                {
                    "parent": path[-1],
                    "joint": self._joint(kind),
                    **self._place(),
                    **body,
                    "armature": self._armature(kind, body),
                }
            )
            path.append(i)
        return links

    def _joint(self, kind: str) -> Recipe:
        axis, second = self._axis(), None
        if self.style == "planar":
            axis = [0.0, 0.0, 1.0] if kind == "revolute" else [1.0, 0.0, 0.0]
        if kind == "universal":
            second = _unit(np.cross(axis, self._axis(other=axis)))
        return {
            "kind": kind,
            "axis": axis,
            "second": second,
            "pitch": float(self.rng.uniform(-0.3, 0.3) * self.size) if kind == "helical" else 0.0,
        }

    def _axis(self, other: list[float] | None = None) -> list[float]:
        rng = self.rng
        while True:
            aligned = self.style != "random" or rng.random() < 0.5
            axis = _unit(np.eye(3)[rng.integers(3)] * rng.choice([-1, 1]) if aligned else rng.normal(size=3))
            if other is None or np.linalg.norm(np.cross(axis, other)) > 0.1:
                return axis

    def _place(self) -> Recipe:
        """A placement: anywhere, on a grid with right angles, or in the plane."""
        rng = self.rng
        if self.style == "random":
            return {"R": _rotation(rng).tolist(), "p": (self.size * rng.uniform(-0.3, 0.3, 3)).tolist()}
        lengths = self.size * 0.2 * rng.integers(0, 3, 3)
        if self.style == "planar":
            return {"R": np.eye(3).tolist(), "p": [float(lengths[0]), 0.0, 0.0]}
        turn = np.eye(3)[rng.permutation(3)] * rng.choice([-1.0, 1.0], 3)
        return {
            "R": (turn * np.linalg.det(turn)).tolist() if rng.random() < 0.5 else np.eye(3).tolist(),
            "p": lengths.tolist(),
        }

    def _body(self) -> Recipe:
        rng = self.rng
        if rng.random() < 0.02:
            return {"mass": 0.0, "com": [0.0] * 3, "I": np.zeros((3, 3)).tolist()}
        mass = float(self.mass * rng.uniform(0.5, 2) * 10 ** rng.uniform(-self.spread, self.spread))
        spread = self.size * 0.3 * _rotation(rng) @ np.diag(rng.uniform(0.2, 0.5, 3))
        second = spread @ spread.T
        I = mass * (np.trace(second) * np.eye(3) - second)
        return {"mass": mass, "com": (self.size * rng.uniform(-0.15, 0.15, 3)).tolist(), "I": ((I + I.T) / 2).tolist()}

    def _armature(self, kind: str, body: Recipe) -> list[float]:
        nv = judge.FREEDOMS[kind]
        if self.rng.random() < 2 / 3:
            return [0.0] * nv
        unit = body["mass"] or self.mass
        return [
            float(self.rng.uniform(0.01, 0.3) * unit * (1.0 if linear else (0.3 * self.size) ** 2))
            for linear in judge.linear_freedoms(kind)
        ]

    def _gravity(self) -> list[float]:
        pick = self.rng.random()
        if pick < 0.6:
            return [0.0, 0.0, -9.81]
        return [0.0] * 3 if pick > 0.9 else (9.81 * self.rng.normal(size=3)).tolist()

    def _position(self, kind: str) -> list[float]:
        """Joint positions: anywhere, or a right angle, often a little beside it."""
        rng, neutral = self.rng, judge.neutral(kind)
        if self.style != "random" or rng.random() < 0.2:
            q = np.array(neutral)
            beside = float(10 ** rng.uniform(-5, -1)) if rng.random() < 0.4 else 0.0
            for k in ANGLES.get(kind, ()):
                q[k] = np.pi / 2 * rng.integers(-2, 3) * (rng.random() < 0.6) + beside * rng.uniform(1, 3)
                if rng.random() < 0.3:
                    q[k] = rng.uniform(-np.pi, np.pi)
            for k in LENGTHS.get(kind, ()):
                q[k] = self.size * (0.2 * rng.integers(-1, 2) + beside * rng.normal())
            return q.tolist()
        return judge.anywhere(kind, rng, self.size)

    def _constrain(self, out: Recipe) -> None:
        """Constraints that hold at out["q"]."""
        rng, n, found = self.rng, self.n, out["constraints"]
        at = judge.Kinematics(out, np.array(out["q"]))
        few = [0, 1, 2]
        for _ in range(int(rng.choice(few, p=[0.4, 0.4, 0.2])) if n > 1 else 0):
            a, b = (int(x) for x in rng.permutation(np.arange(1, n + 1))[:2])
            found.append(self._closure(at, a, b))
        for _ in range(int(rng.choice(few, p=[0.6, 0.3, 0.1]))):
            found.append(self._closure(at, int(rng.integers(1, n + 1)), 0))
        for _ in range(int(rng.choice(few, p=[0.8, 0.15, 0.05]))):
            a, b = (int(x) for x in rng.permutation(np.arange(0, n + 1))[:2])
            ends = {"a": {"link": a, **self._place()}, "b": {"link": b, **self._place()}}
            gap = np.linalg.norm(at.point(a, ends["a"]["p"]) - at.point(b, ends["b"]["p"]))
            if gap > 1e-3 * self.size:
                found.append({"type": "distance", **ends, "length": float(gap)})
        single = [i for i in range(1, n + 1) if out["links"][i - 1]["joint"]["kind"] in SINGLE]
        for _ in range(int(rng.choice(few, p=[0.6, 0.3, 0.1])) if len(single) > 1 else 0):
            found.append(self._coupling(out, rng.permutation(single)[: rng.integers(2, 4)].tolist()))
        if single and rng.random() < 0.25:
            found.append(self._coupling(out, [int(rng.choice(single))]))
        if rng.random() < 0.06:
            rows = int(rng.integers(1, 4))
            ties = rng.permutation(np.arange(1, n + 1))[: rng.integers(1, 3)].tolist()
            found.append(
                {
                    "type": "rows",
                    "k": (rng.normal(size=rows) * 3).tolist(),
                    "K": {str(i): (rng.normal(size=(rows, 6)) * ([1.0] * 3 + [self.size] * 3)).tolist() for i in ties},
                }
            )
        if rng.random() < 0.03 and any(l["mass"] for l in out["links"]):
            found.append({"type": "com"})
        if single and rng.random() < 0.03:
            found.append(self._custom(out, rng.permutation(single)[: rng.integers(1, 3)].tolist()))
        for _ in range(int(rng.choice(few, p=[0.75, 0.2, 0.05])) if found else 0):
            found.append(dict(found[rng.integers(len(found))]))
        for c in found:
            known = c["type"] in ("coupling", "distance", "custom") or c.get("joint") in judge.STABILISED
            if known and rng.random() < 0.1:
                c["stabilised"] = {"period": float(10 ** rng.uniform(-2, 0.5)), "damping": float(rng.uniform(0, 1.5))}
        if found and rng.random() < 0.3:
            out["constraints"] = [found[k] for k in rng.permutation(len(found))]

    def _closure(self, at: judge.Kinematics, a: int, b: int) -> Recipe:
        """Two links joined by any cut joint, through frames that coincide now."""
        rng, on_a = self.rng, self._place()
        axis = [0.0, 0.0, 1.0] if self.style == "planar" else self._axis()
        R, p = at.frame(a, on_a["R"], on_a["p"])
        Rb, pb = at.R[b].real, at.p[b].real
        cuts = CUTS if self.style != "planar" or rng.random() < 0.3 else ("revolute", "fixed", "spherical")
        return {
            "type": "closure",
            "joint": str(rng.choice(cuts)),
            "axis": axis,
            "second": _unit(np.cross(axis, self._axis(other=axis))),
            "pitch": float(rng.uniform(-0.3, 0.3) * self.size),
            "a": {"link": a, **on_a},
            "b": {"link": b, "R": _tidy(Rb.T @ R).tolist(), "p": (Rb.T @ (p - pb)).tolist()},
        }

    def _coupling(self, out: Recipe, joints: list[int]) -> Recipe:
        """One joint a polynomial of others (of none: held); the ratio of an angle and a length is about the size."""
        rng, (first, *others) = self.rng, joints
        unit = {i: self.size if out["links"][i - 1]["joint"]["kind"] == "prismatic" else 1.0 for i in joints}
        starts = judge.position_starts(out["links"])
        terms, offset = {}, out["q"][starts[first - 1]]
        gear = rng.random() < 0.5
        for i in others:
            q = out["q"][starts[i - 1]]
            cs = [
                float(rng.uniform(-2, 2) * unit[first] / unit[i] ** k)
                for k in range(1, 2 if gear else int(rng.integers(2, 4)))
            ]
            terms[str(i)] = cs
            offset -= sum(c * q**k for k, c in enumerate(cs, 1))
        return {"type": "coupling", "joint": first, "terms": terms, "offset": float(offset)}

    def _custom(self, out: Recipe, joints: list[int]) -> Recipe:
        """A quadratic form of joint positions."""
        rng, starts = self.rng, judge.position_starts(out["links"])
        x = np.array([out["q"][starts[i - 1]] for i in joints])
        A, b = rng.normal(size=(len(x), len(x))), rng.normal(size=len(x))
        A = (A + A.T) / 2
        return {
            "type": "custom",
            "joints": joints,
            "curve": A.tolist(),
            "slope": b.tolist(),
            "rest": float(-(x @ A @ x / 2 + b @ x)),
        }

    def _state(self, out: Recipe) -> None:
        """Where it is, how it moves, and what acts on it: forces for accelerations of some 10 rad/s^2."""
        rng, links = self.rng, out["links"]
        nv = sum(judge.FREEDOMS[l["joint"]["kind"]] for l in links)
        linear = np.array([x for l in links for x in judge.linear_freedoms(l["joint"]["kind"])], dtype=bool)
        unit = np.where(linear, self.size, 1.0)
        off = rng.random()
        if off > 0.85:  # loops are open, wide or a little
            step = rng.normal(size=nv) * unit * (10 ** rng.uniform(-8, -2) if off < 0.93 else 1.0)
            out["q"] = judge.moved(out, np.array(out["q"]), step).tolist()
        q, speed = np.array(out["q"]), rng.random()
        v = np.zeros(nv) if speed < 0.25 else rng.normal(size=nv) * unit * rng.choice([0.1, 1.0, 5.0])
        out |= {"v": v.tolist(), "tau": [0.0] * nv, "fext": [0.0] * (6 * len(links))}
        if speed < 0.85 and v.any() and out["constraints"]:
            out["v"] = judge.allowed_velocity(out, q, v).tolist()
        heavy = np.sqrt(np.diag(judge.mass_matrix(out, q)))
        out["tau"] = (rng.normal(size=nv) * 10 * heavy * np.where(linear, self.size, 1.0) * heavy).tolist()
        if rng.random() < 0.2:
            weight = 10 * self.mass * self.size
            out["fext"] = (weight * rng.normal(size=(len(links), 6)) * ([1.0] * 3 + [self.size] * 3)).ravel().tolist()


def _unit(x: object) -> list[float]:
    a = np.asarray(x, dtype=float)
    return (a / np.linalg.norm(a)).tolist()


def _rotation(rng: np.random.Generator) -> np.ndarray:
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.linalg.det(Q)


def _tidy(R: np.ndarray) -> np.ndarray:
    """Entries within 1e-12 of 0 and 1 made exact, as placements do: what is compared is the same mechanism."""
    R = np.where(np.abs(R) < 1e-12, 0.0, R)
    return np.where(np.abs(np.abs(R) - 1) < 1e-12, np.sign(R), R)
