"""The judge of the fuzz campaign is right, and what is wrong does not get past it."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import judge
import numpy as np
import pytest
import recipes
from built import build, with_directions
from trial import C, Trial

from linkwork.algorithms.registry import methods

SEEDS = range(500, 540)
HERE = Path(__file__).parent


def test_the_judge_shares_no_code_with_linkwork() -> None:
    for name in ("judge.py", "recipes.py"):
        tree = ast.parse((HERE / name).read_text())
        imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        imported |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert imported <= {"__future__", "dataclasses", "typing", "numpy", "judge"}


@pytest.mark.parametrize("kind", [k for k, nv in judge.FREEDOMS.items() if nv])
def test_freedoms_of_joints_are_the_derivatives_of_their_maps(kind: str) -> None:
    """T^-1 dT/dt = [S v]^, by complex steps of the map itself."""
    rng = np.random.default_rng(3)
    joint = {
        "kind": kind,
        "axis": (x := rng.normal(size=3)) / np.linalg.norm(x),
        "pitch": 0.3,
        "second": (y := rng.normal(size=3)) / np.linalg.norm(y),
    }
    recipe = {"links": [{"joint": joint}]}
    q, v = np.array(judge.anywhere(kind, rng, 1.0)), rng.normal(size=judge.FREEDOMS[kind])
    R, p, S = judge.joint_map(joint, q + 1j * judge.H * judge.rates(recipe, q, v))
    W = R.real.T @ R.imag / judge.H
    twist = [*(R.real.T @ p.imag / judge.H), W[2, 1], W[0, 2], W[1, 0]]
    np.testing.assert_allclose(S.real @ v, twist, atol=1e-13)


def test_mass_matrix_and_bias_are_those_of_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    compared = 0
    for seed in range(900, 1000):
        recipe = recipes.draw(seed)
        kinds = {l["joint"]["kind"] for l in recipe["links"]}
        if kinds & {"universal", "fixed"}:
            continue
        recipe["fext"] = [0.0] * len(recipe["fext"])
        eq, model = judge.equations(recipe), _in_pinocchio(pin, recipe)
        data, q, v = model.createData(), np.array(recipe["q"]), np.array(recipe["v"])
        M = pin.crba(model, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        bias = pin.nle(model, data, q, v)
        assert np.abs(M - eq.M).max() <= C * judge.EPS * eq.M_terms.max()
        assert (np.abs(bias - eq.c) <= C * judge.EPS * (eq.c_terms + eq.c_terms.max())).all()
        compared += 1
    assert compared > 30


def test_accelerations_and_forces_are_those_of_kkt() -> None:
    judged = {"redundant": 0, "independent": 0}
    for seed in SEEDS:
        made = Trial(recipes.draw(seed))
        if not made.verdict.decided or made.verdict.conflict:
            continue
        out = made.run("forward_dynamics:kkt")
        assert out.verdict == "right", (seed, out)
        judged["independent" if made.verdict.full else "redundant"] += 1
    assert min(judged.values()) >= 8


def test_rows_are_the_derivatives_of_what_they_hold() -> None:
    """At closed states they are the rates of the forbidden components of a pose, which positions alone give."""
    held = 0
    for seed in range(200, 320):
        recipe = recipes.draw(seed)
        closures = [c for c in recipe["constraints"] if c["type"] == "closure"]
        if not closures or recipe["links"][0]["joint"]["kind"] == "fixed":
            continue
        q, v = np.array(recipe["q"]), np.random.default_rng(seed).normal(size=len(recipe["v"]))
        at = judge.Kinematics(recipe, q, v)
        if max(np.abs(_gap(c, at).real).max() for c in closures) > 1e-9 * recipe["size"]:
            continue
        for c in closures:
            rate = _gap(c, at).imag / judge.H
            rows = judge.constraint_rows(recipe, c, at).real @ v
            np.testing.assert_allclose(rows, rate, atol=1e-9 * max(1.0, np.abs(rate).max()))
            held += 1
    assert held > 30


def _gap(c: dict, at: judge.Kinematics) -> np.ndarray:
    """The forbidden components of the pose of frame a in frame b: complex, so that it can be differentiated."""
    a, b = c["a"], c["b"]
    Ra, Rb = at.R[a["link"]] @ np.array(a["R"]), at.R[b["link"]] @ np.array(b["R"])
    R, p = Rb.T @ Ra, Rb.T @ (at.point(a["link"], a["p"]) - at.point(b["link"], b["p"]))
    turn = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2  # the angle, where it is small
    if c["joint"] == "universal":
        return np.concatenate([p, [np.array(c["axis"]) @ R @ np.array(c["second"])]])
    return judge.forbidden(c).T @ np.concatenate([p, turn])


class _Result(tuple):
    """What a method that iterates would return."""

    def __new__(cls, values, **said):
        self = super().__new__(cls, values)
        self.__dict__.update(said)
        return self


class _Broken:
    """A method that returns something else."""

    def __init__(self, spoil) -> None:
        self.spoil = spoil

    def verdicts(self, seeds) -> list[str]:
        out = []
        for seed in seeds:
            made = Trial(recipes.draw(seed))
            at = made.verdict
            if not at.decided or at.conflict or not np.abs(at.lam).max(initial=0) > 0 or at.eq.size(at.a) < 1e-6:
                continue
            out.append(made.judged(methods("forward_dynamics")["kkt"], self.spoil(made), None).verdict)
        return out


def _row_dropped(made: Trial) -> tuple[np.ndarray, np.ndarray]:
    """Without the row that pushes most, which is left out of the forces too; rows like it stay out as well."""
    eq, at = made.eq, made.verdict
    push = np.abs(at.eq.J.T * at.lam).max(axis=0)
    gone = int(push.argmax())
    share = at.eq.J @ at.inverse @ at.eq.J[gone]
    keep = np.abs(share) < 1e-6 * share[gone]
    few = judge.solve(replace(eq, J=eq.J[keep], k=eq.k[keep], J_terms=eq.J_terms[keep], k_terms=eq.k_terms[keep]))
    lam = np.zeros(len(eq.k))
    lam[keep] = few.lam
    return few.a, lam


SPOILT = {
    "the sign of a": lambda made: (-made.verdict.a, made.verdict.lam),
    "the sign of lam": lambda made: (made.verdict.a, -made.verdict.lam),
    "no constraint": lambda made: (made.verdict.free, 0 * made.verdict.lam),
    "a row dropped": _row_dropped,
    "lam twice": lambda made: (made.verdict.a, 2 * made.verdict.lam),
    "one digit too few": lambda made: (made.verdict.a + 1e-5 * made.verdict.scale, made.verdict.lam),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_wrong_method_is_caught(spoil) -> None:
    found = _Broken(spoil).verdicts(range(500, 560))
    assert len(found) > 20
    # what constraints do not oppose or what is zero cannot be wrong; nearly all the others are found
    assert found.count("wrong") >= 0.9 * len(found)


def test_what_is_right_is_not_called_wrong() -> None:
    assert set(_Broken(lambda made: (made.verdict.a, made.verdict.lam)).verdicts(SEEDS)) == {"right"}


def test_errors_and_reports_are_judged() -> None:
    """NaN, a false SingularError, an untyped error, and a residual that is not |J a - k|."""
    from linkwork.algorithms.common.iteration import Prox
    from linkwork.errors import SingularError

    made = next(
        t
        for t in map(Trial, map(recipes.draw, SEEDS))
        if t.verdict.full and t.verdict.rank and t.verdict.kappa < 100 and t.verdict.decided
    )
    at, nan = made.verdict, np.full(len(made.verdict.lam), np.nan)

    def verdict_on(problem: Exception) -> str:
        def evaluate(what: str):
            raise problem

        made.evaluate = evaluate
        return made.run("forward_dynamics:pv").verdict

    assert made.judged(None, (at.a, nan), None).verdict == "not numbers"
    assert verdict_on(SingularError("no")) == "false alarm"
    assert verdict_on(ZeroDivisionError()) == "crash"
    for converged, verdict in ((True, "misreported"), (False, "unconverged")):
        off = _Result((at.free, 0 * at.lam), residual=1e-12, converged=converged)
        assert made.judged(methods("forward_dynamics")["prox_pv"], off, Prox()).verdict == verdict


def test_cut_joints_forbid_as_many_directions_as_their_basis_has() -> None:
    for joint, count in judge.FORBIDDEN.items():
        assert judge.forbidden({"joint": joint, "axis": [0.0, 0.6, 0.8], "pitch": 0.1}).shape == (6, count)


def test_a_basis_of_forbidden_directions_is_any_basis() -> None:
    """Solutions do not depend on which one the rows use."""
    compared = 0
    for seed in SEEDS:
        recipe = recipes.draw(seed)
        ours, theirs = (judge.solve(judge.equations(r)) for r in (recipe, with_directions(recipe, build(recipe))))
        if ours.decided and not ours.conflict:
            compared += 1
            assert ours.error(theirs.a) <= C * ours.rounding() * ours.kappa
    assert compared > len(SEEDS) / 2


def _in_pinocchio(pin, recipe: dict):
    """The tree in Pinocchio, from the recipe."""
    model = pin.Model()
    model.gravity.linear = np.array(recipe["gravity"])
    makers = {"revolute": pin.JointModelRevoluteUnaligned, "prismatic": pin.JointModelPrismaticUnaligned}
    plain = {"spherical": pin.JointModelSpherical, "planar": pin.JointModelPlanar, "free": pin.JointModelFreeFlyer}
    for i, l in enumerate(recipe["links"], 1):
        kind, axis = l["joint"]["kind"], np.array(l["joint"]["axis"])
        if kind == "cylindrical":
            joint = pin.JointModelComposite()
            joint.addJoint(makers["prismatic"](axis))
            joint.addJoint(makers["revolute"](axis))
        elif kind == "helical":
            joint = pin.JointModelHelicalUnaligned(axis, l["joint"]["pitch"])
        else:
            joint = makers[kind](axis) if kind in makers else plain[kind]()
        j = model.addJoint(l["parent"], joint, pin.SE3(np.array(l["R"]), np.array(l["p"])), f"joint{i}")
        model.appendBodyToJoint(j, pin.Inertia(l["mass"], np.array(l["com"]), np.array(l["I"])), pin.SE3.Identity())
    model.armature = np.array([x for l in recipe["links"] for x in l["armature"]])
    return model
