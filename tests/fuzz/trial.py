"""One mechanism against the judge: everything that Linkwork computes of it, and what is to be said of each result.

A result is right if it is within C kappa eps of the judge's (`Verdict.rounding`; times the condition number of the rows
for methods that form their Gram matrix, or of the inertia of independent joints for clusters), or 1e-6 for methods that
iterate. What is not right must say so: SingularError where rows do depend on each other or nearly do, `converged` False
where an iteration did not end. The rest fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from zlib import crc32

import judge
import numpy as np
from built import build, with_directions

import linkwork as lw
from linkwork.algorithms.registry import Method, methods
from linkwork.closure.actuation import actuated_freedoms
from linkwork.errors import ActuationError, ModelError, SingularError, UnsupportedError
from linkwork.model import Model

C = 1000.0
"""How many roundings of the size of all terms: recursions over links add up some, frames in the world others."""

ITERATED = 1e-6
"""What a method that iterates may be off, relative, if it says that it converged."""

SINGLE, C_SINGLE = 1e-2, 100.0
"""The same in single precision, and fewer roundings: there are too few digits to be generous."""

UNKNOWN = 1e-2
"""Where rounding alone explains such errors, a result within them is not counted as right."""

NEARLY = 1e10
"""Condition number of the rows' Gram matrix above which a direct method may call them dependent."""

WEAK = 5e6
"""Condition number of the rows up to which the planner's choice has to converge."""

FAILURES = ("wrong", "false alarm", "misreported", "not numbers", "crash", "gave up")

Recipe = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What became of one evaluation: `verdict` is one of FAILURES, or "right", "singular", "unconverged", "refused"."""

    what: str
    verdict: str
    error: float = 0.0
    bound: float = 0.0
    note: str = ""

    @property
    def failed(self) -> bool:
        return self.verdict in FAILURES


class Trial:
    """A recipe, its model, the judge's verdict, and the evaluations to come."""

    def __init__(self, recipe: Recipe) -> None:
        self.model: Model = build(recipe)
        self.recipe = with_directions(recipe, self.model)
        self.eq = judge.equations(self.recipe)
        self.verdict = judge.solve(self.eq)
        self.roundings = C + _skew(self.recipe) / judge.EPS
        self.q, self.v, self.tau, self.fext = (np.array(recipe[n]) for n in ("q", "v", "tau", "fext"))

    def names(self, *, sample: int = 0) -> Iterator[str]:
        """Everything to evaluate. With `sample`, one mechanism in so many is planned and compiled too."""
        seed, forward = self.recipe["seed"], methods("forward_dynamics").values()
        yield from ("directions", "mass_matrix", "constraint_jacobian", "inverse_dynamics")
        yield from (f"forward_dynamics:{m.name}" for m in forward)
        able = [m.name for m in forward if not m.refusal(self.model)]
        if self.model.constraints:
            yield from (f"delassus:{m}" for m in methods("delassus"))
            yield f"impulse:{able[seed % len(able)]}"
            yield "constrained_inverse_dynamics"
            switching = [m.name for m in forward if not m.refusal(self.model, modes=True)]
            yield f"modes:{switching[seed % len(switching)]}"
        if sample and seed % sample == 0:
            yield "planned"
            for dtype in ("float64", "float32"):
                yield f"compiled:{able[seed // sample % len(able)]}:{dtype}"

    def evaluate(self, what: str) -> Outcome:
        """One of `names`."""
        task, *rest = what.split(":")
        self.rng = np.random.default_rng([self.recipe["seed"], crc32(what.encode())])  # the same when replayed alone
        if not rest:
            return getattr(self, task)()
        method = methods("delassus" if task == "delassus" else "forward_dynamics")[rest[0]]
        return getattr(self, task)(method, *rest[1:])

    def run(self, what: str) -> Outcome:
        """The outcome; whatever is raised that is not an error of Linkwork's own is a crash."""
        try:
            outcome = self.evaluate(what)
        except UnsupportedError as problem:
            return Outcome(what, "refused", note=str(problem))
        except SingularError as problem:
            return Outcome(what, self._singular(what), note=str(problem))
        except ModelError as problem:
            return Outcome(what, "crash" if self.verdict.decided else "singular", note=str(problem))
        except TimeoutError:
            return Outcome(what, "crash", note="no answer in time")
        except Exception as problem:
            return Outcome(what, "crash", note=f"{type(problem).__name__}: {problem}"[:300])
        return replace(outcome, what=what)

    def _singular(self, what: str) -> str:
        """Whether a SingularError was due."""
        task, *rest = what.split(":")
        if task == "delassus" and not methods("delassus")[rest[0]].operator:
            return "false alarm" if self.verdict.decided else "singular"  # it exists whatever the rank
        full = self.verdict.full and self.verdict.kappa**2 < NEARLY
        return "false alarm" if full and self.verdict.decided else "singular"

    def directions(self) -> Outcome:
        """The basis of forbidden directions that closures use spans what the judge says is forbidden."""
        worst = 0.0
        for c in self.recipe["constraints"]:
            if c["type"] == "closure":
                own, given = judge.forbidden(c), np.array(c["directions"])
                unit = np.maximum(np.linalg.norm(given, axis=0), 1e-300)
                worst = max(worst, float(np.abs((own @ np.linalg.pinv(own) @ given - given) / unit).max()))
                worst = np.inf if np.linalg.matrix_rank(given) < own.shape[1] else worst
        return _compared(worst, self.roundings * judge.EPS)

    def mass_matrix(self) -> Outcome:
        M = lw.mass_matrix(self.model, backend="numpy")(self.q).M
        return _compared(_worst(M - self.eq.M, self.eq.M_terms), self.roundings * judge.EPS)

    def constraint_jacobian(self) -> Outcome:
        J = lw.constraint_jacobian(self.model, backend="numpy")(self.q).J
        return _compared(_worst(J - self.eq.J, self.eq.J_terms), self.roundings * judge.EPS)

    def inverse_dynamics(self) -> Outcome:
        a = self.rng.normal(size=self.model.nv) * np.where(self.eq.linear, self.eq.extent, 1.0)
        f = lw.inverse_dynamics(self.model.without_constraints(), backend="numpy", external_forces=True)
        tau = f(self.q, self.v, a, self.fext).tau
        return _compared(
            _worst(tau - self.eq.M @ a - self.eq.c, self.eq.M_terms @ np.abs(a) + self.eq.c_terms),
            self.roundings * judge.EPS,
        )

    def forward_dynamics(self, m: Method) -> Outcome:
        if m.soft:
            return self._soft(m)
        f = lw.forward_dynamics(self.model, method=m.name, backend="numpy", external_forces=True)
        return self.judged(m, f(self.q, self.v, self.tau, self.fext), f.prox)

    def judged(
        self, m: Method | None, result: Any, prox: Any, verdict: judge.Verdict | None = None, eps: float = judge.EPS
    ) -> Outcome:
        """Accelerations (or jumps of velocity) and forces against the judge's."""
        at = self.verdict if verdict is None else verdict
        a, lam = result[0], result[1]
        if not (np.isfinite(a).all() and np.isfinite(lam).all()):
            return Outcome("", "not numbers", note="NaN or infinite without an error")
        gram = 1.0 if m is not None and m.name == "kkt" else at.kappa
        bound = (self.roundings if eps == judge.EPS else C_SINGLE) * at.rounding(eps) * gram
        if m is not None and _embeds(m) and self.model.constraints:
            promised = min(bound * self._loops.kappa**2, max(bound, ITERATED))
            bound = max(promised, self._chosen) + (self._carries if at is self.verdict else self._carried(at))
        if at.conflict and m is not None and m.name != "kkt":
            bound = max(bound, min(at.dispute(), ITERATED))  # rows that contradict each other a little count as met
        if prox is not None:
            bound = max(bound, ITERATED if eps == judge.EPS else SINGLE)
        if not at.decided:
            return Outcome("", "undecided")
        reported = prox is not None and not bool(getattr(result, "converged", result.residual <= prox.tolerance))
        left = np.abs(at.eq.J @ a - at.eq.k).max(initial=0.0)
        known = (at.eq.J_terms @ (np.abs(a) + np.abs(at.free)) + at.eq.k_terms).max(initial=0.0)
        said = np.inf if prox is None or reported else 10 * max(float(result.residual), prox.tolerance)
        if left > said + self.roundings * at.rounding(eps) * known:
            return Outcome("", "misreported", float(left), float(result.residual), "|J a - k| and what is said of it")
        error = max(at.error(a), at.force_error(lam) if len(lam) == len(at.lam) else 0.0)
        if error <= bound:
            known = bound <= UNKNOWN
            return Outcome("", "right" if known else "undecided", error, bound, "reported" if reported else "")
        return Outcome("", "unconverged" if reported else "wrong", error, bound, "in conflict" if at.conflict else "")

    def _soft(self, m: Method) -> Outcome:
        """Rows of a softness about as large as what they feel."""
        if not self.model.constraints:
            return Outcome("", "refused")
        R = np.einsum("ij,jk,ik->i", self.eq.J_terms, np.abs(self.verdict.inverse), self.eq.J_terms) * 1e-2
        if not (np.isfinite(R).all() and (R > 0).all()):
            return Outcome("", "undecided")
        f = lw.forward_dynamics(self.model, method=m.name, backend="numpy", R=R)
        eq, result = self._unpushed, f(self.q, self.v, self.tau)
        expected = judge.soft(eq, R)
        lam = (eq.k - eq.J @ expected) / R
        size = self.verdict.rounding() * max(1.0, eq.size(expected) / self.verdict.scale) * 100
        error = max(eq.size(result.a - expected), eq.size(self.verdict.inverse @ (eq.J.T @ (result.lam - lam))))
        return _compared(error / max(self.verdict.scale, eq.size(expected)), self.roundings * size)

    def planned(self) -> Outcome:
        """What users get who name no method: it may not give up where a dense solve does not.

        It may where singular values come near to 1e-6, below which directions count as redundant (`Prox.redundant`).
        """
        f = lw.forward_dynamics(self.model, backend="numpy", external_forces=True)
        m = methods("forward_dynamics")[f.method]
        out = self.judged(m, f(self.q, self.v, self.tau, self.fext), f.prox)
        solvable = (
            not self.verdict.conflict
            and self.roundings * self.verdict.rounding() < ITERATED
            and self.verdict.kappa < WEAK
        )
        if out.verdict == "unconverged" and solvable:
            out = replace(out, verdict="gave up")
        return replace(out, note=f"{f.method} {out.note}")

    def compiled(self, m: Method, dtype: str) -> Outcome:
        """Machine code, for a batch of this state with five different forces."""
        if m.soft:
            return Outcome("", "refused")
        f = lw.forward_dynamics(self.model, method=m.name, dtype=dtype)
        forces = self.tau * self.rng.uniform(-1, 1, (5, 1))
        result = f(np.tile(self.q, (5, 1)), np.tile(self.v, (5, 1)), forces)
        eps = float(np.finfo(dtype).eps)
        outcomes = []
        for i in range(5):
            at = judge.solve(replace(self._unpushed, tau=forces[i]))
            if dtype == "float32" and (at.conflict or C_SINGLE * at.rounding(eps) * at.kappa > SINGLE):
                continue
            outcomes.append(self.judged(m, _Row(result, i), f.prox, at, eps))
        return max(outcomes, key=lambda o: (o.failed, o.error), default=Outcome("", "undecided"))

    def delassus(self, m: Method) -> Outcome:
        """J M^-1 J^T; where local loops are resolved, with the inverse inertia that they leave."""
        f = lw.delassus(self.model, method=m.name, backend="numpy")
        if not self.verdict.decided:
            return Outcome("", "undecided")
        P, J, terms = self.verdict.inverse, self.eq.J, self.eq.J_terms
        spread = np.abs(P)
        bound = self.roundings * judge.EPS
        if m.operator:
            b = self.rng.normal(size=len(J))
            result = f(self.q, b)
            return _compared(
                _worst(
                    result.multiplied - J @ P @ J.T @ b, terms @ spread @ self.eq.M_terms @ spread @ terms.T @ np.abs(b)
                ),
                bound,
            )
        if m.outer_only:
            (_, outer), loops = self._clustered, self._loops
            if not loops.decided or len(outer) == 0:
                return Outcome("", "undecided")
            P = loops.mobility
            J, terms, bound = J[outer], terms[outer], max(bound * loops.kappa**2, self._chosen)
        D = f(self.q).matrix
        if not np.isfinite(D).all():
            return Outcome("", "not numbers")
        return _compared(_worst(D - J @ P @ J.T, terms @ spread @ self.eq.M_terms @ spread @ terms.T), bound)

    @cached_property
    def _unpushed(self) -> judge.Equations:
        """The equations without forces on links."""
        return judge.equations({**self.recipe, "fext": [0.0] * len(self.fext)}) if self.fext.any() else self.eq

    @cached_property
    def _loops(self) -> judge.Verdict:
        """The mechanism with the rows alone that clusters embed: their condition is part of such a method's problem."""
        inner, eq = self._clustered[0], self.eq
        return judge.solve(
            replace(eq, J=eq.J[inner], k=eq.k[inner], J_terms=eq.J_terms[inner], k_terms=eq.k_terms[inner])
        )

    @cached_property
    def _chosen(self) -> float:
        """What rounding explains where clusters solve for independent joints y, v = G y, chosen once for all postures.

        C eps times the condition number of G^T M G, scaled to a unit diagonal: where the others hardly follow from
        these, its entries are large and all alike. Forces are lam = P^T f_D, with P = K_D^+ of the dependent joints D:
        rounding of the terms that f_D is the sum of is C eps |P^T| |f_D|, and as accelerations M^-1 J^T of that. Among
        these terms are M a_D, where a_D = P (k - K_Y a_Y) counts with its own terms. P is found by orthogonal steps,
        which mix the joints: each has the rounding of the largest force. Never more than what is promised.
        """
        inner, eq = self._clustered[0], self.eq
        y = np.asarray(lw.clusters(self.model).velocities, dtype=int)
        rest = np.setdiff1d(np.arange(len(eq.c)), y)
        G = np.zeros((len(eq.c), len(y)))
        G[y] = np.eye(len(y))
        P = np.linalg.pinv(eq.J[np.ix_(inner, rest)], rcond=1e-14)
        G[rest] = -P @ eq.J[np.ix_(inner, y)]
        a, lam = np.abs(self.verdict.a), np.abs(self.verdict.lam)
        summed = a.copy()
        summed[rest] += np.abs(P) @ (eq.J_terms[inner] @ a + eq.k_terms[inner])
        needed = eq.M_terms @ summed + eq.c_terms + np.abs(eq.tau) + eq.J_terms.T @ lam
        unit = np.where(eq.linear, 1.0, eq.extent)
        most = unit * (needed / unit)[rest].max(initial=0.0)
        lost = eq.size(np.abs(self.verdict.inverse) @ np.abs(eq.J[inner].T) @ np.abs(P.T) @ most[rest])
        My = G.T @ eq.M @ G
        d = np.sqrt(np.diagonal(My))
        if not len(y) or not (np.isfinite(d).all() and (d > 0).all()):
            return self.roundings * judge.EPS
        kappa = max(float(np.linalg.cond(My / np.outer(d, d))), lost / self.verdict.scale)
        return min(self.roundings * judge.EPS * kappa, ITERATED)

    @cached_property
    def _carries(self) -> float:
        return self._carried(self.verdict)

    def _carried(self, at: judge.Verdict) -> float:
        """What clusters may be off where loops are open: their rows are those of closed ones, over local joints alone.

        Two points that are apart move relative to each other with the bodies that carry both: rows J have entries N in
        the columns of these joints, as large as the loop is open. Without them forces miss N^T lam, and accelerations
        N a. Never more than what is promised.
        """
        eq, parents = at.eq, [0, *(l["parent"] for l in self.recipe["links"])]
        rows = [n for n, c in enumerate(self.recipe["constraints"]) for _ in range(judge.row_count(c))]
        if len(rows) != len(eq.k) or not at.decided:
            return 0.0  # constraints are switched off, or nothing is judged
        N = np.zeros_like(eq.J)
        for row in self._clustered[0]:
            c = self.recipe["constraints"][rows[row]]
            if c["type"] == "closure":
                both = _carriers(parents, c["a"]["link"]) & _carriers(parents, c["b"]["link"])
                N[row] = np.where([l in both for l in self._dof_links], np.abs(eq.J[row]), 0.0)
        pushed = np.abs(at.inverse)
        moved = np.abs(at.inverse @ eq.J.T @ np.linalg.pinv(eq.J @ at.inverse @ eq.J.T, rcond=1e-14))
        lost = eq.size(pushed @ N.T @ np.abs(at.lam)) + eq.size(moved @ N @ np.abs(at.a))
        return float(min(lost / at.scale, ITERATED))

    @cached_property
    def _dof_links(self) -> list[int]:
        """The link that each freedom moves."""
        joints = [l["joint"]["kind"] for l in self.recipe["links"]]
        return [i for i, kind in enumerate(joints, 1) for _ in range(judge.FREEDOMS[kind])]

    @cached_property
    def _clustered(self) -> tuple[list[int], list[int]]:
        """Rows that clusters embed, and the others."""
        ends = np.cumsum([0, *(c.rows for c in self.model.constraints)])
        outside = set(lw.clusters(self.model).outer)
        parts: tuple[list[int], list[int]] = ([], [])
        for n in range(len(self.model.constraints)):
            parts[n in outside].extend(range(ends[n], ends[n + 1]))
        return parts

    def impulse(self, m: Method) -> Outcome:
        """The jump of a velocity that no constraint has made allowed yet."""
        v, e = self.rng.normal(size=self.model.nv) * np.where(self.eq.linear, self.eq.extent, 1.0), 0.5
        f = lw.impulse(self.model, method=m.name, backend="numpy", restitution=e)
        result, zero = f(self.q, v), np.zeros(self.model.nv)
        eq = replace(
            self.eq,
            c=zero,
            tau=zero,
            k=-(1 + e) * self.eq.J @ v,
            c_terms=zero,
            k_terms=(1 + e) * self.eq.J_terms @ np.abs(v),
        )
        at = judge.solve(eq)
        moving = replace(at, free=v)
        jump = _Row(result, None, result[0] - v)
        return self.judged(m, jump, f.prox, moving)

    def constrained_inverse_dynamics(self) -> Outcome:
        """The least torques and forces that cause the judge's accelerations."""
        if not self.verdict.decided or not self.model.nv:
            return Outcome("", "undecided")
        names = [link.joint_name for link in self.model.links[1:] if link.joint.nv]
        motors, options = [n for n in names if self.rng.random() < 0.6], {"backend": "numpy", "external_forces": True}
        try:
            f = lw.constrained_inverse_dynamics(self.model, motors, **options)  # type: ignore[arg-type]
        except ActuationError:
            motors = names
            f = lw.constrained_inverse_dynamics(self.model, motors, underactuated=True, **options)  # type: ignore[arg-type]
        eq, driven = self.eq, actuated_freedoms(self.model, motors)
        h, A = eq.M @ self.verdict.a + eq.c, np.hstack([np.eye(len(eq.c))[:, driven], eq.J.T / 1e-3])
        s = np.linalg.svd(A, compute_uv=False)
        if s[-1] <= 1e-9 * s[0]:
            return Outcome("", "undecided")
        result = f(self.q, self.v, self.verdict.a, self.fext)
        left = result.tau + eq.J.T @ result.lam - h
        size = eq.M_terms @ np.abs(self.verdict.a) + eq.c_terms + eq.J_terms.T @ np.abs(result.lam) + np.abs(result.tau)
        least = np.linalg.norm(np.linalg.lstsq(A, h, rcond=1e-14)[0])
        found = np.linalg.norm([*result.tau, *(1e-3 * result.lam)])
        kappa = float(s[0] / s[-1])
        # h is a sum of terms known to rounding, |dh| <= C eps |size|, and the least solution moves by |dh| / s_min
        unknown = self.roundings * judge.EPS * float(np.linalg.norm(size)) / float(s[-1])
        excess = max(0.0, found - least - unknown) / max(least, 1e-300)
        error = max(float(np.abs(left).max() / max(size.max(), 1e-300)), excess)
        return _compared(error, 10 * self.roundings * judge.EPS * kappa)

    def modes(self, m: Method) -> Outcome:
        """Some constraints switched off at run time: the mechanism without them."""
        f = lw.forward_dynamics(self.model, method=m.name, backend="numpy", modes=True)
        on = self.rng.random(len(self.model.constraints)) < 0.6
        on[list(m.locked(self.model))] = True
        few = {
            **self.recipe,
            "fext": [0.0] * len(self.fext),
            "constraints": [c for c, keep in zip(self.recipe["constraints"], on, strict=True) if keep],
        }
        at = judge.solve(judge.equations(few))
        result = f(self.q, self.v, self.tau, on.astype(float))
        rows = np.repeat(on, [c.rows for c in self.model.constraints])
        if np.abs(result[1][~rows]).max(initial=0.0) > 0:
            return Outcome("", "wrong", note="a constraint that is switched off exerts a force")
        return self.judged(m, _Row(result, None, result[0], result[1][rows]), f.prox, at)


def _embeds(m: Method) -> bool:
    """Whether local loops are resolved in clusters."""
    return m.local


def _skew(recipe: Recipe) -> float:
    """How far rotations are from orthonormal: up to 2e-12, where entries within 1e-12 of 1 were made exact.

    The mechanism is known to that only: R^T, which the judge and Linkwork use in different places, is not R^-1.
    """
    places = [l["R"] for l in recipe["links"]] + [c[f]["R"] for c in recipe["constraints"] for f in "ab" if f in c]
    return max((float(np.abs(np.array(R).T @ np.array(R) - np.eye(3)).max()) for R in places), default=0.0)


def _carriers(parents: list[int], link: int) -> set[int]:
    """A link and all that carry it."""
    out = set[int]()
    while link:
        out.add(link)
        link = parents[link]
    return out


class _Row(tuple[np.ndarray, ...]):
    """One state of a result, or a result with other accelerations."""

    def __new__(cls, result: Any, i: int | None, a: np.ndarray | None = None, lam: np.ndarray | None = None) -> _Row:
        one = [result[0] if a is None else a, result[1] if lam is None else lam]
        self = super().__new__(cls, one if i is None else [x[i].astype(float) for x in one])
        for name in ("residual", "converged"):
            if hasattr(result, name):
                value = getattr(result, name)
                setattr(self, name, value if i is None else value[i])
        return self


def _worst(difference: np.ndarray, terms: np.ndarray) -> float:
    """The largest difference relative to what an entry is the sum of."""
    if not np.isfinite(difference).all():
        return float("inf")
    return float((np.abs(difference) / np.maximum(terms, 1e-300)).max(initial=0.0))


def _compared(error: float, bound: float) -> Outcome:
    return Outcome("", "right" if error <= bound else "wrong", error, bound)
