"""The judge of the fuzz campaign: constrained dynamics from first principles, dense, in world axes, with NumPy alone.

    M = sum_l m Jc^T Jc + Jw^T I Jw,    c = sum_l Jc^T m (dJc/dt v - g) + Jw^T (I dJw/dt v + w x I w)
    a = a_free + M^-1/2 W^+ (k - J a_free),    W = J M^-1/2,    k = -dJ/dt v

It takes recipes (plain numbers, see recipes.py) and imports nothing of Linkwork. Jacobians are written down; their time
derivatives are complex steps of them along the motion, exact to rounding: Im J(q + i h qdot) / h with h = 1e-40.

How far another solution may be off follows from the data: entries of M, c, tau, J and k are known to rounding of the
terms they are sums of, and the inverse of the whole system says what that does to accelerations (`sensitivity`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Recipe = dict[str, Any]

EPS = float(np.finfo(float).eps)
H = 1e-40
"""The complex step: its square underflows beside any number."""

ZERO, CLEAR = 1e-13, 1e-8
"""Singular values of scaled rows below the first are redundancy, above the second rank, and between them undecided."""

FREEDOMS = {
    "revolute": 1,
    "prismatic": 1,
    "helical": 1,
    "cylindrical": 2,
    "universal": 2,
    "spherical": 3,
    "planar": 3,
    "free": 6,
    "fixed": 0,
}
POSITIONS = {**FREEDOMS, "spherical": 4, "planar": 4, "free": 7}


def linear_freedoms(kind: str) -> list[bool]:
    """Which freedoms of a joint are lengths."""
    return {
        "prismatic": [True],
        "cylindrical": [True, False],
        "planar": [True, True, False],
        "free": [True] * 3 + [False] * 3,
    }.get(kind, [False] * FREEDOMS[kind])


def position_starts(links: list[Recipe]) -> list[int]:
    return np.cumsum([0, *(POSITIONS[l["joint"]["kind"]] for l in links)])[:-1].tolist()


def velocity_starts(links: list[Recipe]) -> list[int]:
    return np.cumsum([0, *(FREEDOMS[l["joint"]["kind"]] for l in links)])[:-1].tolist()


def neutral(kind: str) -> list[float]:
    return {"spherical": [0, 0, 0, 1.0], "planar": [0, 0, 1.0, 0], "free": [0, 0, 0, 0, 0, 0, 1.0]}.get(
        kind, [0.0] * POSITIONS[kind]
    )


def anywhere(kind: str, rng: np.random.Generator, size: float) -> list[float]:
    """A random position: angles in +-pi, lengths in +-size."""
    angle, length, turn = rng.uniform(-np.pi, np.pi, 2), size * rng.uniform(-1, 1, 3), rng.normal(size=4)
    turn /= np.linalg.norm(turn)
    return {
        "revolute": angle[:1],
        "helical": angle[:1],
        "prismatic": length[:1],
        "cylindrical": np.array([length[0], angle[0]]),
        "universal": angle,
        "spherical": turn,
        "planar": np.array([*length[:2], np.cos(angle[0]), np.sin(angle[0])]),
        "free": np.concatenate([length, turn]),
        "fixed": np.zeros(0),
    }[kind].tolist()


def about(axis: np.ndarray, angle: complex) -> np.ndarray:
    """Rodrigues: the rotation by an angle about a unit axis."""
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)


def turned(q: np.ndarray) -> np.ndarray:
    """The rotation of a unit quaternion [x y z w]."""
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def joint_map(joint: Recipe, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Axes and origin behind the joint in the frame before it, and its freedoms, 6 x nv, in the axes behind it."""
    kind, u = joint["kind"], np.array(joint["axis"])
    R, p, S = np.eye(3, dtype=complex), np.zeros(3, dtype=complex), np.zeros((6, FREEDOMS[kind]), dtype=complex)
    if kind == "revolute":
        R, S[3:, 0] = about(u, q[0]), u
    elif kind == "prismatic":
        p, S[:3, 0] = u * q[0], u
    elif kind == "helical":
        R, p, S[:3, 0], S[3:, 0] = about(u, q[0]), joint["pitch"] * u * q[0], joint["pitch"] * u, u
    elif kind == "cylindrical":
        R, p, S[:3, 0], S[3:, 1] = about(u, q[1]), u * q[0], u, u
    elif kind == "universal":
        second = np.array(joint["second"])
        behind = about(second, q[1])
        R, S[3:, 0], S[3:, 1] = about(u, q[0]) @ behind, behind.T @ u, second
    elif kind == "spherical":
        R, S[3:] = turned(q), np.eye(3)
    elif kind == "planar":
        R = np.array([[q[2], -q[3], 0], [q[3], q[2], 0], [0, 0, 1]])
        p, S[0, 0], S[1, 1], S[5, 2] = np.array([q[0], q[1], 0]), 1, 1, 1
    elif kind == "free":
        R, p, S = turned(q[3:]), q[:3], np.eye(6, dtype=complex)
    return R, p, S


def rates(recipe: Recipe, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """dq/dt."""
    out, at, on = np.array(q, dtype=float), 0, 0
    for l in recipe["links"]:
        kind = l["joint"]["kind"]
        x, w = q[at : at + POSITIONS[kind]], v[on : on + FREEDOMS[kind]]
        rate = w
        if kind in ("spherical", "free"):
            quat, turn = x[-4:], w[-3:]
            half = np.concatenate([quat[3] * turn + np.cross(quat[:3], turn), [-quat[:3] @ turn]]) / 2
            rate = half if kind == "spherical" else np.concatenate([turned(quat) @ w[:3], half])
        elif kind == "planar":
            c, s = x[2:]
            rate = np.array([c * w[0] - s * w[1], s * w[0] + c * w[1], -s * w[2], c * w[2]])
        out[at : at + POSITIONS[kind]] = rate
        at, on = at + POSITIONS[kind], on + FREEDOMS[kind]
    return out


def moved(recipe: Recipe, q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """q after a step, quaternions and planar turns made of length one again."""
    out, at = q + rates(recipe, q, step), 0
    for l in recipe["links"]:
        kind = l["joint"]["kind"]
        if skipped := {"spherical": (0, 4), "free": (3, 7), "planar": (2, 4)}.get(kind):
            part = slice(at + skipped[0], at + skipped[1])
            out[part] /= np.linalg.norm(out[part])
        at += POSITIONS[kind]
    return out


class Kinematics:
    """Axes R and origins p of all links in the world (entry 0), and what each freedom moves.

    A freedom k moves link l, if `moves[l, k]`, with the angular velocity W[:, k] and the point x of it with
    L[:, k] + W[:, k] x (x - P[:, k]). With a velocity, everything is complex and its imaginary part is H d/dt.
    """

    def __init__(self, recipe: Recipe, q: np.ndarray, v: np.ndarray | None = None) -> None:
        links = recipe["links"]
        at = q.astype(complex) if v is None else q + 1j * H * rates(recipe, q, v)
        n, nv = len(links), sum(FREEDOMS[l["joint"]["kind"]] for l in links)
        self.R, self.p = np.zeros((n + 1, 3, 3), dtype=complex), np.zeros((n + 1, 3), dtype=complex)
        self.L, self.W, self.P = (np.zeros((3, nv), dtype=complex) for _ in range(3))
        self.moves = np.zeros((n + 1, nv), dtype=bool)
        self.R[0] = np.eye(3)
        start, on = 0, 0
        for i, l in enumerate(links, 1):
            kind, parent = l["joint"]["kind"], l["parent"]
            RJ, pJ, S = joint_map(l["joint"], at[start : start + POSITIONS[kind]])
            before, place = self.R[parent], np.array(l["R"])
            self.R[i] = before @ place @ RJ
            self.p[i] = self.p[parent] + before @ (np.array(l["p"]) + place @ pJ)
            mine = slice(on, on + FREEDOMS[kind])
            self.L[:, mine], self.W[:, mine] = self.R[i] @ S[:3], self.R[i] @ S[3:]
            self.P[:, mine] = self.p[i][:, None]
            self.moves[i] = self.moves[parent]
            self.moves[i, mine] = True
            start, on = start + POSITIONS[kind], on + FREEDOMS[kind]

    def frame(self, link: int, R: object, p: object) -> tuple[np.ndarray, np.ndarray]:
        """A frame on a link, in the world; real."""
        return (self.R[link] @ np.array(R)).real, self.point(link, p).real

    def point(self, link: int, p: object) -> np.ndarray:
        return self.p[link] + self.R[link] @ np.array(p)

    def velocity(self, link: int, x: np.ndarray) -> np.ndarray:
        """How the freedoms move the point x (world) of a link, 3 x nv."""
        return (self.L + cross(self.W, x[:, None] - self.P)) * self.moves[link]

    def turning(self, link: int) -> np.ndarray:
        """How they turn it, 3 x nv."""
        return self.W * self.moves[link]


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of columns."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def mass_matrix(recipe: Recipe, q: np.ndarray) -> np.ndarray:
    return _inertia(recipe, Kinematics(recipe, q))[0]


PLACED = 1e-2
"""The share of its terms' rounding that a lever has as a difference of places in the world: these are sums of a few
terms, and not the thousand roundings that results are allowed."""


def _levers(at: Kinematics, J: np.ndarray, i: int, x: np.ndarray) -> np.ndarray:
    """The size of how each freedom moves a point, and of what the rounding of places adds to it."""
    reach = np.linalg.norm(x.real) + _norms(at.P.real)
    return _norms(J) + PLACED * reach * _norms(at.turning(i).real)


def _inertia(recipe: Recipe, at: Kinematics) -> tuple[np.ndarray, np.ndarray]:
    """M, and the sums of absolute terms that its entries are made of."""
    M = np.diag([float(x) for l in recipe["links"] for x in l["armature"]])
    bound = M.copy()
    for i, l in enumerate(recipe["links"], 1):
        R = at.R[i].real
        x = at.point(i, l["com"])
        Jc, Jw = at.velocity(i, x).real, at.turning(i).real
        I = R @ np.array(l["I"]) @ R.T
        M += l["mass"] * Jc.T @ Jc + Jw.T @ I @ Jw
        lever = _levers(at, Jc, i, x)
        bound += l["mass"] * np.outer(lever, lever) + np.linalg.norm(I) * np.outer(_norms(Jw), _norms(Jw))
    return (M + M.T) / 2, bound


def _norms(columns: np.ndarray) -> np.ndarray:
    return np.sqrt((columns * columns).sum(axis=0))


def _bias(recipe: Recipe, at: Kinematics, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """c less the forces on links, and the sums of absolute terms that its entries are made of."""
    c, bound, g = np.zeros(len(v)), np.zeros(len(v)), np.array(recipe["gravity"])
    forces = np.array(recipe["fext"]).reshape(-1, 2, 3)
    for i, l in enumerate(recipe["links"], 1):
        R, J, Jw = at.R[i].real, at.velocity(i, at.point(i, l["com"])), at.turning(i)
        I = R @ np.array(l["I"]) @ R.T
        w, swing, spin = Jw.real @ v, J.imag @ v / H, Jw.imag @ v / H
        force, torque = l["mass"] * (swing - g), I @ spin + np.cross(w, I @ w)
        c += J.real.T @ force + Jw.real.T @ torque
        sizes = (
            l["mass"] * (_norms(J.imag) @ np.abs(v) / H + np.linalg.norm(g)),
            np.linalg.norm(I) * (_norms(Jw.imag) @ np.abs(v) / H + (_norms(Jw.real) @ np.abs(v)) ** 2),
        )
        bound += _norms(J.real) * sizes[0] + _norms(Jw.real) * sizes[1]
        push, twist = R @ forces[i - 1, 0], R @ forces[i - 1, 1]
        J0 = at.velocity(i, at.p[i]).real
        c -= J0.T @ push + Jw.real.T @ twist
        bound += _norms(J0) * np.linalg.norm(push) + _norms(Jw.real) * np.linalg.norm(twist)
    return c, bound


def constraint_rows(recipe: Recipe, c: Recipe, at: Kinematics) -> np.ndarray:
    """The rows of one constraint over the freedoms, complex: J, whose imaginary part is H dJ/dt."""
    kind = c["type"]
    if kind == "closure":
        return _closure_rows(c, at)
    if kind == "distance":
        d = at.point(c["a"]["link"], c["a"]["p"]) - at.point(c["b"]["link"], c["b"]["p"])
        return (d / c["length"])[None, :] @ _apart(c, at)
    if kind == "rows":
        return sum(np.array(K) @ _twist(at, int(i)) for i, K in c["K"].items())
    if kind == "com":
        links = recipe["links"]
        return sum(l["mass"] * at.velocity(i, at.point(i, l["com"])) for i, l in enumerate(links, 1)) / sum(
            l["mass"] for l in links
        )
    return _joint_rows(recipe, c, at)


def _twist(at: Kinematics, link: int) -> np.ndarray:
    """The velocity [linear; angular] of a link in its own axes, 6 x nv: its derivative is the spatial acceleration."""
    return np.vstack([at.R[link].T @ at.velocity(link, at.p[link]), at.R[link].T @ at.turning(link)])


def _apart(c: Recipe, at: Kinematics) -> np.ndarray:
    """How the freedoms move the origin of frame a less that of frame b, in the world."""
    (a, pa), (b, pb) = ((c[f]["link"], at.point(c[f]["link"], c[f]["p"])) for f in "ab")
    return at.velocity(a, pa) - at.velocity(b, pb)


def forbidden(c: Recipe) -> np.ndarray:
    """A basis of the directions that a closed cut joint forbids, 6 x m, [linear; angular]."""
    u = np.array(c["axis"])
    across = np.linalg.svd(u[None, :])[2][1:].T
    none, all3, along = np.zeros((3, 0)), np.eye(3), u[:, None]
    lin, ang = {
        "fixed": (all3, all3),
        "revolute": (all3, across),
        "prismatic": (across, all3),
        "cylindrical": (across, across),
        "helical": (across, across),
        "planar": (along, across),
        "spherical": (all3, none),
        "universal": (all3, along),
        "point_on_line": (across, none),
        "point_on_plane": (along, none),
    }[c["joint"]]
    T = np.block([[lin, np.zeros((3, ang.shape[1]))], [np.zeros((3, lin.shape[1])), ang]])
    return np.hstack([T, np.concatenate([u, -c["pitch"] * u])[:, None]]) if c["joint"] == "helical" else T


def _closure_rows(c: Recipe, at: Kinematics) -> np.ndarray:
    """The forbidden part of the velocity of frame a relative to frame b.

    It is taken at the origin of a, in the axes of a, or of b for the cut joints that let a turn freely. Rows are those
    of `c["directions"]`, where a basis of the forbidden directions is given.
    """
    a, b = c["a"], c["b"]
    Ra, Rb, pa = at.R[a["link"]] @ np.array(a["R"]), at.R[b["link"]] @ np.array(b["R"]), at.point(a["link"], a["p"])
    T = np.array(c["directions"]) if "directions" in c else forbidden(c)
    if c["joint"] == "spherical":
        # the difference of the two points is differentiated in the world: its axes do not count as turning
        rows = _apart(c, at)
        return T[:3].T @ (Ra.real.T @ rows)
    lin = at.velocity(a["link"], pa) - at.velocity(b["link"], pa)
    ang = at.turning(a["link"]) - at.turning(b["link"])
    if c["joint"] in ("point_on_line", "point_on_plane"):
        return T[:3].T @ (Rb.T @ lin)
    if c["joint"] == "universal":
        turn = np.cross(Ra @ np.array(c["second"]), Rb @ np.array(c["axis"]))
        return np.vstack([T[:3, :3].T @ (Ra.T @ lin), turn[None, :] @ ang])
    return T[:3].T @ (Ra.T @ lin) + T[3:].T @ (Ra.T @ ang)


def _joint_rows(recipe: Recipe, c: Recipe, at: Kinematics) -> np.ndarray:
    """Couplings and quadratic forms of joints with one freedom, whose positions are in recipe["at"]."""
    links, q = recipe["links"], recipe["at"]
    where, row = velocity_starts(links), np.zeros((1, at.moves.shape[1]), dtype=complex)
    x = dict(zip(range(1, len(links) + 1), (q[s] if s < len(q) else 0 for s in position_starts(links)), strict=True))
    if c["type"] == "custom":
        slope = np.array(c["curve"]) @ np.array([x[i] for i in c["joints"]]) + np.array(c["slope"])
        for i, s in zip(c["joints"], slope, strict=True):
            row[0, where[i - 1]] += s
        return row
    row[0, where[c["joint"] - 1]] = 1
    for name, cs in c["terms"].items():
        i = int(name)
        row[0, where[i - 1]] -= sum(k * f * x[i] ** (k - 1) for k, f in enumerate(cs, 1))
    return row


def _bends(recipe: Recipe, c: Recipe, q: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """The absolute terms of the slopes of a coupling or quadratic form, and the freedoms that they belong to."""
    links = recipe["links"]
    at, on = position_starts(links), velocity_starts(links)
    if c["type"] == "custom":
        x = np.abs([q[at[i - 1]] for i in c["joints"]])
        return np.abs(c["curve"]) @ x + np.abs(c["slope"]), [on[i - 1] for i in c["joints"]]
    joints = [int(i) for i in c["terms"]]
    slopes = [sum(abs(k * f * q[at[i - 1]] ** (k - 1)) for k, f in enumerate(c["terms"][str(i)], 1)) for i in joints]
    return np.array([1.0, *slopes]), [on[i - 1] for i in (c["joint"], *joints)]


@dataclass(frozen=True)
class Equations:
    """M a + c = tau + J^T lam, J a = k, with the sums of absolute terms that each entry is made of (`*_terms`)."""

    M: np.ndarray
    c: np.ndarray
    tau: np.ndarray
    J: np.ndarray
    k: np.ndarray
    M_terms: np.ndarray
    c_terms: np.ndarray
    J_terms: np.ndarray
    k_terms: np.ndarray
    extent: float
    linear: np.ndarray

    def size(self, a: np.ndarray) -> float:
        """The largest acceleration, rad/s^2: lengths count by the mechanism's extent."""
        return float((np.abs(a) / np.where(self.linear, self.extent, 1.0)).max(initial=0.0))


def equations(
    recipe: Recipe, q: np.ndarray | None = None, v: np.ndarray | None = None, tau: np.ndarray | None = None
) -> Equations:
    """Of a recipe, in its own state or in another."""
    q, v, tau = (np.array(recipe[n] if x is None else x, dtype=float) for n, x in (("q", q), ("v", v), ("tau", tau)))
    at = Kinematics(recipe, q, v)
    M, M_terms = _inertia(recipe, at)
    c, c_terms = _bias(recipe, at, v)
    nv, extent = len(v), _extent(recipe, at)
    J = _all_rows(recipe, at, q, v)
    drift, pull, pull_terms = J.imag @ v / H, *_pulls(recipe, at, q, J.real @ v)
    k = -drift - pull
    lever = np.sqrt((np.abs(at.L.real) ** 2).sum(axis=0)) + extent * _norms(at.W.real)
    J_terms, k_terms = np.zeros((len(k), nv)), np.zeros(len(k))
    row, speed = 0, lever @ np.abs(v)
    for con in recipe["constraints"]:
        mine = slice(row, row + row_count(con))
        row = mine.stop
        J_terms[mine] = np.abs(J[mine].real)
        k_terms[mine] = np.abs(k[mine]) + np.abs(J[mine].imag) @ np.abs(v) / H + pull_terms[mine]
        if con["type"] in ("coupling", "custom"):
            bends, places = _bends(recipe, con, q)
            J_terms[mine, places] = np.maximum(J_terms[mine, places], bends)
        else:
            unit = _units(con, extent)
            J_terms[mine] += unit[:, None] * lever
            k_terms[mine] += unit * speed**2 / extent
    linear = np.array([x for l in recipe["links"] for x in linear_freedoms(l["joint"]["kind"])], dtype=bool)
    return Equations(M, c, tau, J.real, k, M_terms, c_terms, J_terms, k_terms, extent, linear)


def _all_rows(recipe: Recipe, at: Kinematics, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    recipe = {**recipe, "at": q + 1j * H * rates(recipe, q, v)}
    rows = [constraint_rows(recipe, c, at) for c in recipe["constraints"]]
    return np.vstack([np.zeros((0, len(v)), dtype=complex), *rows])


FORBIDDEN = {
    "fixed": 6,
    "revolute": 5,
    "prismatic": 5,
    "cylindrical": 4,
    "helical": 5,
    "planar": 3,
    "spherical": 3,
    "universal": 4,
    "point_on_line": 2,
    "point_on_plane": 1,
}
"""How many directions each cut joint forbids."""


def row_count(c: Recipe) -> int:
    if c["type"] == "closure":
        return FORBIDDEN[c["joint"]]
    return {"distance": 1, "coupling": 1, "custom": 1, "com": 3}.get(c["type"]) or len(c["k"])


def _pulls(recipe: Recipe, at: Kinematics, q: np.ndarray, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Added to J a + drift, and its terms: 2 zeta omega J v + omega^2 phi of stabilised rows, -k of numeric ones."""
    pull, terms, row = np.zeros(len(rate)), np.zeros(len(rate)), 0
    for c in recipe["constraints"]:
        mine = slice(row, row + row_count(c))
        row = mine.stop
        if c["type"] == "rows":
            pull[mine] = -np.array(c["k"])
        if "stabilised" in c:
            omega, zeta = 2 * np.pi / c["stabilised"]["period"], c["stabilised"]["damping"]
            phi, size = position_error(recipe, c, at, q)
            pull[mine] = 2 * zeta * omega * rate[mine] + omega**2 * phi
            terms[mine] = 2 * zeta * omega * np.abs(rate[mine]) + omega**2 * size
    return pull, terms


STABILISED = ("spherical", "universal", "point_on_line", "point_on_plane")
"""Cut joints whose position error is a difference of points or one cosine; that of others is a matter of definition."""


def position_error(recipe: Recipe, c: Recipe, at: Kinematics, q: np.ndarray) -> tuple[np.ndarray, float]:
    """phi of a constraint, and the size of what it is a difference of."""
    starts = position_starts(recipe["links"])
    if c["type"] == "custom":
        x = np.array([q[starts[i - 1]] for i in c["joints"]])
        return np.array([c["rest"] + np.array(c["slope"]) @ x + x @ np.array(c["curve"]) @ x / 2]), abs(c["rest"]) + 1
    if c["type"] == "coupling":
        terms = [-f * q[starts[int(i) - 1]] ** k for i, cs in c["terms"].items() for k, f in enumerate(cs, 1)]
        terms += [q[starts[c["joint"] - 1]], -c["offset"]]
        return np.array([sum(terms)]), float(np.abs(terms).sum())
    a, b = (at.point(c[f]["link"], c[f]["p"]).real for f in "ab")
    apart, size = a - b, float(np.abs(a).max() + np.abs(b).max())
    if c["type"] == "distance":
        return np.array([(apart @ apart - c["length"] ** 2) / (2 * c["length"])]), size * max(1.0, size / c["length"])
    Ra, Rb = ((at.R[c[f]["link"]].real @ np.array(c[f]["R"])) for f in "ab")
    T = np.array(c["directions"]) if "directions" in c else forbidden(c)
    if c["joint"] in ("point_on_line", "point_on_plane"):
        return T[:3].T @ (Rb.T @ apart), size
    if c["joint"] == "universal":
        cosine = (Rb @ np.array(c["axis"])) @ (Ra @ np.array(c["second"]))
        return np.append(T[:3, :3].T @ (Ra.T @ apart), cosine), size + 1
    return T[:3].T @ (Ra.T @ apart), size


def _units(c: Recipe, extent: float) -> np.ndarray:
    """What one metre per second of a point is in each row: 1 in linear ones, 1 / extent in angular ones."""
    if c["type"] == "closure":
        T = forbidden(c)
        return np.linalg.norm(T[:3], axis=0) + np.linalg.norm(T[3:], axis=0) / extent
    if c["type"] == "rows":
        return sum(
            np.linalg.norm(np.array(K)[:, :3], axis=1) + np.linalg.norm(np.array(K)[:, 3:], axis=1) / extent
            for K in c["K"].values()
        )
    return np.ones(row_count(c))


def _extent(recipe: Recipe, at: Kinematics) -> float:
    """How far the mechanism reaches: from its first joint to any joint, mass or frame."""
    points = [at.p[i].real for i in range(1, len(at.p))]
    points += [at.point(i, l["com"]).real for i, l in enumerate(recipe["links"], 1)]
    points += [at.point(c[f]["link"], c[f]["p"]).real for c in recipe["constraints"] for f in "ab" if f in c]
    return max(float(np.abs(np.array(points)).max()), 1e-3 * recipe["size"])


@dataclass(frozen=True)
class Verdict:
    """The solution: accelerations, the force J^T lam, and what is known of the problem.

    `rank` of the rows; `kappa` is the condition number of the independent part of scaled rows in the metric of M;
    `conflict`: no acceleration meets all rows; `decided`: rank and accelerations are beyond doubt. `sensitivity` of
    each acceleration times eps is what rounding of the equations, and of forces on the way to it, does to it.
    `inverse` of M; `mobility`: what the rows leave of it.
    """

    eq: Equations
    a: np.ndarray
    lam: np.ndarray
    free: np.ndarray
    rank: int
    kappa: float
    conflict: bool
    decided: bool
    sensitivity: np.ndarray
    inverse: np.ndarray
    mobility: np.ndarray

    @property
    def state(self) -> str:
        """What kind of problem it is, in a word."""
        if not self.decided:
            return "undecided" if np.isfinite(self.kappa) else "singular mass"
        return "conflict" if self.conflict else "independent" if self.full else "redundant"

    @property
    def full(self) -> bool:
        """Whether no row depends on others."""
        return self.rank == len(self.eq.k)

    @property
    def scale(self) -> float:
        """The size of accelerations that counts: with the constraints, or what they prevent."""
        return max(self.eq.size(self.a), self.eq.size(self.free), 1e-300)

    def error(self, a: np.ndarray) -> float:
        """Of accelerations, relative."""
        return self.eq.size(a - self.a) / self.scale

    def force_error(self, lam: np.ndarray) -> float:
        """Of constraint forces, as the accelerations that they cause, relative."""
        return self.eq.size(self.inverse @ (self.eq.J.T @ (lam - self.lam))) / self.scale

    def dispute(self) -> float:
        """How far accelerations, relative, may be off that satisfy some of the rows in conflict instead of others.

        What is left of each row moves what that row alone would move, M^-1 J_i^T / (J_i M^-1 J_i^T), or by the
        condition number of the rows more, if those that depend on it are met with it.
        """
        pushed = self.inverse @ self.eq.J.T
        felt = np.einsum("ij,ji->i", self.eq.J, pushed)
        left = np.abs(self.eq.J @ self.a - self.eq.k) / np.where(felt > 0, felt, np.inf)
        return self.kappa * self.eq.size(np.abs(pushed) @ left) / self.scale

    def rounding(self, eps: float = EPS) -> float:
        """kappa eps: the relative error of accelerations that rounding explains."""
        return max(self.eq.size(self.sensitivity) / self.scale, 1.0) * eps


def solve(eq: Equations) -> Verdict:
    """Gauss' principle by singular values: the accelerations nearest to the free ones that come nearest to J a = k."""
    M, J, k = eq.M, eq.J, eq.k
    d = np.sqrt(np.diag(M))
    d = np.where(d > 0, d, 1.0)
    eigen = np.linalg.eigvalsh(M / np.outer(d, d)) if len(d) else np.ones(1)
    if eigen[0] <= 1e-13 * eigen[-1]:
        return _hopeless(eq)
    F = np.linalg.cholesky(M / np.outer(d, d)) if len(d) else np.zeros((0, 0))
    back = np.linalg.solve(F, np.diag(1 / d)).T if len(d) else np.zeros((0, 0))  # y -> a, |y|^2 = a^T M a
    inverse = back @ back.T
    free = inverse @ (eq.tau - eq.c)
    W, terms = J @ back, np.linalg.norm(eq.J_terms @ np.abs(back), axis=1)
    scaled = W / np.where(terms > 0, terms, 1.0)[:, None]
    values, V = np.linalg.svd(scaled)[1:] if scaled.size else (np.zeros(0), np.eye(len(d)))
    top = values[0] if values.size and values[0] > ZERO else 1.0
    rank = int((values > CLEAR * top).sum())
    decided = not ((values > ZERO * top) & (values <= CLEAR * top)).any()
    span = V[:rank].T
    kappa = float(top / values[rank - 1]) if rank else 1.0

    # within the span of the rows the least-squares problem has full rank; rows in conflict count as they are given
    rhs, weight = k - J @ free, 1 / np.where(terms > 0, terms, 1.0)
    tall = W @ span
    onto = np.linalg.pinv(tall * weight[:, None], rcond=1e-14) * weight if rank else np.zeros((0, len(k)))
    a = free + back @ (span @ (onto @ rhs))
    a = a + back @ (span @ (onto @ (k - J @ a)))
    # what is left is known to rounding of the terms of J a, by kappa more, and of the free accelerations that a came of
    known = kappa * (eq.J_terms @ np.abs(a) + eq.k_terms) + eq.J_terms @ np.abs(free)
    conflict = bool((np.abs(k - J @ a) > 100 * EPS * np.where(known > 0, known, 1.0)).any())
    plain = np.linalg.pinv(tall, rcond=1e-14) if rank else onto
    # rows that contradict each other are met by weight: where they, as given, say something else, that is in doubt
    other = free + back @ (span @ (plain @ rhs))
    doubt = np.abs(other + back @ (span @ (plain @ (k - J @ other))) - a)
    if conflict:
        onto = plain
    y = span @ (onto @ rhs)
    y = y + span @ (onto @ (k - J @ (free + back @ y)))  # where rows take most of a large free acceleration away
    a, lam = free + back @ y, onto.T @ (span.T @ y)
    # singular values of rows of very different size cost lam digits: what is missing in the equation of motion
    for _ in range(2):
        lam = lam + onto.T @ (span.T @ (back.T @ (M @ a + eq.c - eq.tau - J.T @ lam)))
    response = np.abs(back @ span @ onto)
    # lam is not unique where rows are redundant; that of least norm may have larger entries, which round as well
    least = np.linalg.pinv(J.T, rcond=1e-14) @ (J.T @ lam)
    forces = eq.M_terms @ np.abs(a) + eq.c_terms + np.abs(eq.tau)
    forces = forces + eq.J_terms.T @ np.maximum(np.abs(lam), np.abs(least))
    rows = eq.J_terms @ (np.abs(a) + np.abs(free)) + eq.k_terms
    sensitivity = np.abs(inverse) @ forces + response @ rows
    if conflict:
        # of least squares |A y - b| with r = b - A y left, rounding dA also moves y by (A^T A)^-1 dA^T r
        through = back @ span @ onto
        sensitivity = sensitivity + np.abs(through @ through.T) @ (eq.J_terms.T @ np.abs(k - J @ a))
    else:
        decided = (
            decided and not (doubt > np.maximum(1000 * EPS * sensitivity, 1e-6 * np.abs(a).max(initial=0.0))).any()
        )
    left = back - back @ span @ span.T
    return Verdict(eq, a, lam, free, rank, kappa, conflict, decided, sensitivity, inverse, left @ left.T)


def _hopeless(eq: Equations) -> Verdict:
    """A mass matrix that is singular to rounding: nothing can be said of the accelerations."""
    nv, m = len(eq.c), len(eq.k)
    nan = np.full(nv, np.nan)
    return Verdict(
        eq,
        nan,
        np.full(m, np.nan),
        nan,
        0,
        np.inf,
        False,
        False,
        np.full(nv, np.inf),
        np.full((nv, nv), np.nan),
        np.full((nv, nv), np.nan),
    )


def soft(eq: Equations, R: np.ndarray) -> np.ndarray:
    """Accelerations with soft rows, lam = (k - J a) / R."""
    return np.linalg.solve(eq.M + eq.J.T @ (eq.J / R[:, None]), eq.tau - eq.c + eq.J.T @ (eq.k / R))


def allowed_velocity(recipe: Recipe, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The nearest velocity, in the metric of M, that the constraints with a position allow."""
    at = Kinematics(recipe, q)
    holding = {**recipe, "constraints": [c for c in recipe["constraints"] if c["type"] != "rows"]}
    J, M = _all_rows(holding, at, q, 0 * v).real, _inertia(recipe, at)[0]
    d = np.sqrt(np.diag(M))
    if not len(J) or not (d > 0).all():
        return v
    eigen = np.linalg.eigvalsh(M / np.outer(d, d))
    if eigen[0] <= 1e-13 * eigen[-1]:
        return v
    back = np.linalg.solve(np.linalg.cholesky(M / np.outer(d, d)), np.diag(1 / d)).T
    W = J @ back
    norms = np.linalg.norm(W, axis=1)
    weight = 1 / np.where(norms > 1e-12 * norms.max(initial=1e-300), norms, np.inf)
    for _ in range(2):
        v = v - back @ (np.linalg.pinv(W * weight[:, None], rcond=1e-9) @ (weight * (J @ v)))
    return v
