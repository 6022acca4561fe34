"""Newton's method and the interior point for contacts: both solve the laws, with limits of joints and without."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwork as lw
from linkwork.algorithms.contact import joint_space
from linkwork.algorithms.contact.gauss_seidel import GaussSeidel
from linkwork.algorithms.contact.inner_laws import InnerStop
from linkwork.algorithms.contact.interior_point import InteriorPoint, WholeInteriorPoint
from linkwork.algorithms.contact.joint_space import JointPorts
from linkwork.algorithms.contact.laws import Stop
from linkwork.algorithms.contact.newton import Newton, WholeNewton
from linkwork.algorithms.contact.slips import Slips
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.contact import Ground
from linkwork.errors import CompilationWarning, InputError
from linkwork.model.link import Limits
from linkwork.rewrite.rewritten import Rewritten
from linkwork.robots.mechanisms import biped, chain, quadruped
from linkwork.simulation.ground.placing import on_ground
from linkwork.simulation.steps.contact_step import MOST, Solving, contact_step

TOLERANCE = 1e-8


def solving(seed: int) -> Solving:
    """A quadruped that hits the ground with its feet and three corners of its trunk, two joints at their limits."""
    model, rng = quadruped(), np.random.default_rng(seed)
    feet = [lw.Contact(name, friction=0.6) for name in model.frames if name.endswith("foot")]
    q, v = model.neutral(), 0.3 * rng.normal(size=model.nv)
    low = lw.forward_kinematics(model, [c.frame for c in feet], backend="numpy")(q).positions[:, 2].min()
    trunk = model.links[1].name
    corners = [lw.Contact(trunk, (x, y, low), friction=0.4) for x, y in ((0.1, 0.1), (0.1, -0.1), (-0.1, 0.0))]
    q[2] -= low
    for link in (4, 7):
        at = model.topology.q_slices[link].start
        q[at] = model.links[link].limits.upper
        v[model.topology.v_slices[link]] = 2.0
    step = contact_step(model, feet + corners, Ground())
    given = {"q": q, "v": v, "dt": [1e-3], "tau": np.zeros(model.nv), "friction": step.defaults["friction"]}
    given |= {n: np.zeros(k) for n, k in step.inputs.items() if n not in given}
    return Solving(step, Rewritten(model), NUMPY, {n: np.asarray(x, float)[:, None] for n, x in given.items()})


def solved(loop: Newton | GaussSeidel, x: np.ndarray, most: int) -> np.ndarray:
    """The impulses that a loop ends with."""
    for _ in range(most):
        x, error = loop.next(x)
        if error[0, 0] <= TOLERANCE:
            return np.asarray(x)
    raise AssertionError(f"{type(loop).__name__} does not end")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_all_solve_the_laws(seed: int) -> None:
    """Of contacts alone, and with limits: velocities agree, impulses of redundant contacts need not."""
    case = solving(seed)
    problem, start = case.problem, case.x["impulses"]
    found = []
    for kind, most in ((WholeNewton, 60), (WholeInteriorPoint, 60)):
        loop = kind(problem, start, NUMPY)
        p, violation, speed = loop.finish(solved(loop, loop.enter(start), most))
        assert violation[0, 0] <= 1.1 * TOLERANCE * speed[0, 0]
        found.append(np.concatenate([p[i] for i in range(len(problem.axes), len(p))]))
        found.append(problem.moved(problem.impulse(p)))
    assert np.abs(found[0]).max() > 0, "a limit is met"
    np.testing.assert_allclose(found[1], found[3], atol=1e-6 * float(problem.speed[0, 0]))
    few = [kind(problem, start, NUMPY) for kind in (Newton, InteriorPoint)]
    states = [solved(few[0], few[0].first()[0], 60), solved(few[1], few[1].enter(start), 60)]
    ys = [loop.ports.moved(loop._split(x)) for loop, x in zip(few, states, strict=True)]
    np.testing.assert_allclose(*ys, atol=1e-6 * float(problem.speed[0, 0]))


def test_ports_are_the_delassus_matrix() -> None:
    """B Omega B^T of six velocities of the trunk is J N J^T of its corners."""
    problem = solving(0).problem
    p = [np.random.default_rng(k).normal(size=(law.rows, 1)) for k, law in enumerate(problem.laws)]
    y = problem.moved(problem.impulse(p))
    assert problem.ports.sizes[0] == 6, "the trunk has three contacts"
    for i in range(len(p)):
        u = problem.others(i, p) + problem.G[i, i] @ p[i]
        np.testing.assert_allclose(u, problem.g[i] + problem.every.at(i, y), atol=1e-12 * np.abs(y).max())


def test_the_whole_step_ends_with_limits_and_redundant_contacts() -> None:
    """The chain of loops as a step has it."""
    case = solving(3)
    x, _ = case.solved()
    after = case.after(x)
    assert after.violation[0, 0] <= TOLERANCE * after.speed[0, 0]
    assert case.step.chain == ["newton", "slips", "interior_point", "whole_newton", "whole_interior_point"]
    with pytest.raises(InputError, match="dry friction"):
        lw.step(case.step.model, case.step.contacts, method="newton", parameters=("joint_friction",))


def landing(seed: int) -> Solving:
    """A biped that stands on its toes, and whose heels come down: points of a foot that both stick are in conflict."""
    b, rng = lw.Builder("biped"), np.random.default_rng(seed)

    def body(mass: float, radius: float, z: float) -> lw.BodyInertia:
        return lw.BodyInertia(mass, np.array([0.0, 0.0, z]), mass * radius**2 * np.eye(3))

    b.link("trunk", joint="free", inertia=body(20.0, 0.15, 0.2))
    for side, y in (("left", 0.1), ("right", -0.1)):
        hip, knee = lw.Placement(p=(0.0, y, 0.0)), lw.Placement(p=(0.0, 0.0, -0.4))
        turns = {"joint": "revolute", "axis": "y"}
        b.link(f"{side}_thigh", parent="trunk", placement=hip, inertia=body(4.0, 0.1, -0.2), **turns)
        b.link(f"{side}_shank", parent=f"{side}_thigh", placement=knee, inertia=body(2.0, 0.1, -0.2), **turns)
        b.link(f"{side}_foot", parent=f"{side}_shank", placement=knee, inertia=body(0.5, 0.04, -0.03), **turns)
    model = b.build()
    sides = ("left", "right")
    feet = [lw.Contact(f"{s}_foot", (x, 0.0, -0.05), 0.01, 0.8) for s in sides for x in (0.12, -0.08)]
    rng.uniform()
    q = model.neutral()
    for s in sides:
        for name, angle in (("thigh", -0.4), ("shank", 0.8), ("foot", -0.4 + rng.uniform(0.0, 0.01))):
            q[model.q_slice(f"{s}_{name}_joint")] = angle
    v = 0.02 * rng.normal(size=model.nv)
    v[2] -= 0.3
    v[[8, 11]] -= rng.uniform(0.0, 2.0, 2)
    step = contact_step(model, feet, Ground())
    impulses = np.zeros(step.inputs["impulses"])
    impulses[[2, 8]] = 0.5 * 26.5 * 9.81 * 2e-3 * rng.uniform(0.5, 3)  # the toes carried it
    impulses[[0, 6]] = 0.1 * impulses[2]
    given = {"q": on_ground(model, q, feet), "v": v, "dt": [2e-3], "tau": np.zeros(model.nv), "impulses": impulses}
    given |= {n: np.zeros(k) for n, k in step.inputs.items() if n not in given} | {"friction": np.full(4, 0.8)}
    return Solving(step, Rewritten(model), NUMPY, {n: np.asarray(x, float)[:, None] for n, x in given.items()})


@pytest.mark.parametrize("seed", [8, 14, 18])
def test_slips_of_a_foot_that_lands(seed: int) -> None:
    """Where directions turn slowly, s does not: what Newton's steps leave, slips end in six."""
    case = landing(seed)
    newton, slips = case.loops[:2]
    assert isinstance(slips, Slips)
    x, error = newton.first()
    for _ in range(MOST["newton"] - 1):
        x, error = newton.next(x)
    assert error[0, 0] > TOLERANCE
    found = solved(slips, slips.enter(x), MOST["slips"])
    p, violation, speed = slips.finish(found)
    assert violation[0, 0] <= TOLERANCE * speed[0, 0]
    assert any(a[2, 0] > 0 for a in p), "a foot pushes"


@pytest.mark.parametrize("seed", [0, 6, 9])
def test_what_slips_leave_is_solved(seed: int) -> None:
    """By the loops after them."""
    case = landing(seed)
    after = case.after(case.solved()[0])
    assert after.violation[0, 0] <= TOLERANCE * after.speed[0, 0]


@pytest.mark.parametrize("seed", [55, 125, 188])
def test_impulses_turn_along_their_cones(seed: int) -> None:
    """A plate that spins and slides on four corners: straight steps of the interior point ended at the cones."""
    b = lw.Builder("plate")
    b.link("plate", joint="free", inertia=lw.BodyInertia(1.0, (0.02, 0.01, 0.3), np.diag([0.02, 0.03, 0.01])))
    model = b.build()
    corners = [lw.Contact("plate", (x, y, 0.0), friction=0.8) for x in (0.11, -0.09) for y in (0.04, -0.04)]
    step = contact_step(model, corners, Ground())
    v = np.random.default_rng(seed).standard_normal(6) * [0.02, 0.02, 0.05, 0.1, 0.1, 0.5]
    given = {"q": model.neutral(), "v": v, "dt": [1e-3], "friction": np.full(4, 0.8)}
    given |= {n: np.zeros(k) for n, k in step.inputs.items() if n not in given}
    case = Solving(step, Rewritten(model), NUMPY, {n: np.asarray(x, float)[:, None] for n, x in given.items()})
    loop = case.loops[step.chain.index("interior_point")]
    found = solved(loop, loop.enter(case.loops[0].first()[0]), MOST["interior_point"])
    _, violation, speed = loop.finish(found)
    assert violation[0, 0] <= TOLERANCE * speed[0, 0]


@pytest.mark.parametrize("sides", [(True, False), (True, True)])
def test_a_limit_that_holds_takes_the_impulse_of_the_step(sides: tuple[bool, bool]) -> None:
    """Its slack is all but zero: an impulse from that would be rounding over slack, and blocked all further steps."""
    one, l, a = np.eye(1), 1.3, 1e-14
    stop = InnerStop(Stop(2.0 * one, 2.0, -1.0, 5.0, 0.0, NUMPY, sides=sides), NUMPY)
    z = np.array([[l], [a], [1e-14], [6.0]][: stop.size])
    u, dp, du = -1.0 * one + 1e-9, -0.2 * one, np.zeros((1, 1))
    dz = stop.changes(z, u, dp, du, 1e-14)
    np.testing.assert_allclose(stop.impulse(z + dz), stop.impulse(z) + dp, rtol=1e-9)


def test_loops_that_few_states_need_are_compiled_when_one_does(tmp_path: Path, monkeypatch) -> None:
    """A leg that falls, and one whose knee meets its limit in the air: only that needs what knows limits."""
    monkeypatch.setenv("LINKWORK_CACHE", str(tmp_path))  # where nothing was compiled before
    b = lw.Builder("leg")
    body = lw.BodyInertia(1.0, np.array([0.0, 0.0, -0.1]), 0.01 * np.eye(3))
    b.link("thigh", joint="prismatic", axis="z", inertia=body)
    b.link("shank", parent="thigh", joint="revolute", axis="y", limits=Limits(-1.0, 1.0), inertia=body)
    model, foot = b.build(), [lw.Contact("shank", (0.0, 0.0, -0.2))]
    free, limited = (np.array([1.0, 0.2]), np.zeros(2)), (np.array([1.0, 0.9999]), np.array([0.0, 3.0]))
    step, numpy = lw.step(model, foot, threads=1), lw.step(model, foot, backend="numpy")
    run = lw.rollout(model, contacts=foot, threads=1)

    def forms(kernel: Any) -> set[tuple[int, bool]]:
        return {*kernel._forms}

    for (q, v), whole in ((free, False), (limited, True)):
        after, again = step(q, v, np.zeros(2), [1e-3]), numpy(q, v, np.zeros(2), [1e-3])
        assert after.converged
        assert np.array(after.v) == pytest.approx(again.v, abs=1e-9)
        assert ((1, True) in forms(step.kernel)) == whole
        rolled = run(q, v, steps=1)
        assert rolled.ok
        assert rolled.v[0] == pytest.approx(again.v, abs=1e-9)
        assert ((1, True) in forms(run.kernel)) == whole


def both_ways(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any]) -> list[Any]:
    """What is made with a system over joints, and with one over ports."""
    out = []
    for fewer in (0.0, np.inf):
        monkeypatch.setattr(joint_space, "FEWER", fewer)
        out.append(make())
    return out


def standing_biped() -> Solving:
    """A biped with loops in its legs, on more points than it has joints."""
    model, rng = biped(), np.random.default_rng(0)
    links = [link.name for link in model.links[1:]]
    points = [lw.Contact(name, 0.1 * rng.normal(size=3), friction=0.6) for name in links for _ in range(4)]
    step = contact_step(model, points, Ground())
    given = {"q": lw.random_state(model, 0)[0], "v": rng.normal(size=model.nv), "dt": [1e-3]}
    given["friction"] = step.defaults["friction"]
    given |= {n: np.zeros(k) for n, k in step.inputs.items() if n not in given}
    return Solving(step, Rewritten(model), NUMPY, {n: np.asarray(x, float)[:, None] for n, x in given.items()})


@pytest.mark.parametrize("make", [lambda: solving(0), standing_biped], ids=["quadruped", "with loops"])
def test_a_system_over_joints_is_that_over_ports(make: Callable[[], Solving], monkeypatch: pytest.MonkeyPatch) -> None:
    """Velocities of impulses, mobilities, and steps on laws, symmetric or not."""
    joints, ports = (case.problem for case in both_ways(monkeypatch, make))
    assert isinstance(joints.every, JointPorts)
    assert not isinstance(ports.every, JointPorts)
    rng, laws = np.random.default_rng(0), range(len(ports.laws))
    p = [rng.normal(size=(law.rows, 1)) for law in ports.laws]
    size = np.abs(ports.every.moved(p)).max()
    np.testing.assert_allclose(joints.every.moved(p), ports.every.moved(p), atol=1e-11 * size)
    for one, other in zip(joints.without_own(p), ports.without_own(p), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-11 * size)
    for i in laws:
        np.testing.assert_allclose(joints.every.own(i), ports.every.own(i), atol=1e-11 * size)
    for symmetric in (True, False):
        E = [rng.normal(size=(law.rows, law.rows)) for law in ports.laws]
        E = [(e @ e.T if symmetric else np.eye(len(e)) + 0.3 * e) / ports.every.own(i)[0, 0] for i, e in enumerate(E)]
        dp, du = joints.every.solve(E, p, symmetric)
        moved, fast = ports.velocities(dp), max(np.abs(x).max() for x in du)
        for i in laws:  # against G itself: the inverse of Omega is damped
            np.testing.assert_allclose(dp[i], p[i] - E[i] @ du[i], atol=1e-10 * np.abs(p[i]).max())
            np.testing.assert_allclose(du[i], moved[i] - ports.g[i], atol=1e-9 * fast)


@pytest.mark.parametrize(("method", "most"), [("newton", 35_000), ("active_set", 50_000), ("gauss_seidel", 16_000)])
def test_many_contacts_are_solved_over_joints(method: str, most: int) -> None:
    """A chain with points all over it: few operations, the laws hold, the kernel does as NumPy."""
    model, rng = chain(3, base="free"), np.random.default_rng(0)
    last = replace(model.links[-1], limits=Limits(-2.8, 2.8))
    model = replace(model, links=(*model.links[:-1], last))
    links = [link.name for link in model.links[1:]]
    points = [lw.Contact(name, 0.05 * rng.normal(size=3), friction=0.6) for name in links for _ in range(3)]
    step, judge = (lw.step(model, points, method=method, backend=backend) for backend in ("kernel", "numpy"))
    of = contact_step(model, points, Ground(), method=method)
    assert len(of.traced.start.nodes) + len(of.traced.iterate.nodes) < most, "over contacts: 64 800, 83 500, 19 500"
    q, v = model.neutral(), rng.normal(size=model.nv)
    heights = [x.gap for x in touches(model, points, q)]
    q[2], v[2] = q[2] - min(heights), -1.0
    after, by = step(q, v, np.zeros(model.nv), [1e-3]), judge(q, v, np.zeros(model.nv), [1e-3])
    assert after.converged
    assert np.abs(after.forces).max() > 0
    np.testing.assert_allclose(after.v, by.v, atol=1e-8 * np.abs(by.v).max())
    if method == "newton":  # limits are in its first loop: no code of another is needed
        q, v = model.neutral(), np.zeros(model.nv)
        q[2], q[9], v[8] = 2.0, -2.7999, -5.0
        after = step(q, v, np.zeros(model.nv), [1e-3])
        assert after.v[8] == pytest.approx(-0.1, rel=1e-8)
        assert [whole for _, whole in step.kernel._forms] == [False]


def touches(model: lw.Model, points: list[lw.Contact], q: np.ndarray) -> list[Any]:
    """Contacts evaluated."""
    motion = Rewritten(model).motion(q[:, None], np.zeros((model.nv, 1)), NUMPY)
    return [c.evaluate(motion, Ground()) for c in points]


def test_contacts_that_take_minutes_to_compile_are_told_of() -> None:
    model = quadruped()
    points = [lw.Contact(link.name, (0.01 * k, 0, 0)) for link in model.links[1:] for k in range(20)]
    with pytest.warns(CompilationWarning, match=r"260 candidates .* lw.contacts\(model, \[...\]\)"):
        lw.step(model, points)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.step(model, points, backend="numpy")
        lw.step(model, points[:100])
