"""Joints that close loops keep what belongs to them: the same linkage, cut at any of its joints, moves alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints import Closure
from linkwork.io.divided import divided
from linkwork.io.recut import recut
from linkwork.model.link import Limits
from linkwork.model.motion import Motion
from linkwork.robots import mechanisms as mech

EPS = np.finfo(float).eps
FOURTH = {
    "armature": 0.03,
    "damping": 0.4,
    "stiffness": 9.0,
    "rest": 0.2,
    "friction": 0.1,
    "limits": Limits(-2.0, 2.0, 30.0, 5.0),
}


def linkage() -> lw.Model:
    """A four-bar linkage whose three joints of the tree have springs, damping, armature, friction and limits."""
    model = mech.four_bar().with_independent()
    for k, name in enumerate(model.joint_names):
        model = model.with_armature(name, 0.01 * (k + 1)).with_damping(name, 0.2 + 0.1 * k)
        model = model.with_springs(name, 5.0 + k, 0.1 * k).with_friction(name, 0.05)
    return model


def complete() -> lw.Model:
    """The same; the joint that closes the loop has all of that, too."""
    model = linkage()
    return divided(model, model.constraints[0].name, FOURTH)


def known(model: lw.Model, values: dict[str, float]) -> np.ndarray:
    return np.array([values[name] for name in model.joint_names])


def by_joint(model: lw.Model, x: np.ndarray) -> dict[str, float]:
    return dict(zip(model.joint_names, x, strict=True))


def condition(model: lw.Model, q: np.ndarray) -> float:
    """Of the KKT matrix, without its zero singular values."""
    M = lw.mass_matrix(model, backend="numpy")(q).M
    J = lw.constraint_jacobian(model, backend="numpy")(q).J
    s = np.linalg.svd(np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]]), compute_uv=False)
    s = s[s > 1e-9 * s[0]]
    return float(s[0] / s[-1])


def trees(model: lw.Model) -> list[lw.Model]:
    """The model, cut at each of its four joints."""
    names = [*model.joint_names]
    assert len(names) == 4
    return [recut(model, [name]) for name in names]


def test_every_cut_has_the_same_joints_with_the_same_properties() -> None:
    model = complete()
    for found in trees(model):
        assert set(found.joint_names) == set(model.joint_names)
        assert (found.nv, found.rows) == (4, 6)
        assert found.mass == pytest.approx(model.mass)
        for name in model.joint_names:
            one, other = (m.links[m.joint(name)] for m in (model, found))
            assert one.limits == other.limits
            np.testing.assert_array_equal(one.armature, other.armature)
            assert one.passive == other.passive


@pytest.mark.parametrize("seed", range(3))
def test_accelerations_do_not_depend_on_the_cut(seed: int) -> None:
    model = complete()
    q, v = lw.random_state(model, seed)
    tau = np.random.default_rng(seed).normal(size=4)
    expected, worst = None, condition(model, q)
    for found in trees(model):
        at, speed, drive = (known(found, by_joint(model, x)) for x in (q, v, tau))
        J = lw.constraint_jacobian(found, backend="numpy")(at).J
        assert np.abs(J @ speed).max() < 1e-8 * (1 + np.abs(speed).max())
        a = by_joint(found, lw.forward_dynamics(found, method="kkt", backend="numpy")(at, speed, drive).a)
        expected = expected or a
        size = max(map(abs, expected.values()))
        bound = 100 * max(worst, condition(found, at)) * EPS * size
        assert closed(found, at) < 10 * EPS
        for name, x in expected.items():
            assert a[name] == pytest.approx(x, abs=bound)


def closed(model: lw.Model, q: np.ndarray) -> float:
    motion = Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY)
    return max(float(np.abs(c.position_error(motion)).max()) for c in model.constraints)


def test_against_dense_equations_of_the_open_tree() -> None:
    """At rest: (M + armature s^T s) a = tau + s^T (drive - stiffness (x - rest)) + J^T lam, s the cut joint's rate."""
    open_, model = linkage(), complete()
    q, _ = lw.random_state(model, 5)
    tau = np.array([0.3, -0.7, 0.5, 1.1])
    closure = open_.constraints[0]
    axis = np.array(closure.axis)
    weld = open_.without_constraints().with_constraints(Closure(closure.a, closure.b, "fixed"))
    s = axis @ lw.constraint_jacobian(weld, backend="numpy")(q[:3]).J[3:]
    J = lw.constraint_jacobian(open_, backend="numpy")(q[:3]).J
    M = lw.mass_matrix(open_, backend="numpy")(q[:3]).M + FOURTH["armature"] * np.outer(s, s)
    free = (
        tau[:3] - lw.inverse_dynamics(open_.without_constraints(), backend="numpy")(q[:3], np.zeros(3), np.zeros(3)).tau
    )
    free = free + s * (tau[3] - FOURTH["stiffness"] * (q[3] - FOURTH["rest"]))
    N = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, 1e-9) :].T
    expected = N @ np.linalg.solve(N.T @ M @ N, N.T @ free)
    a = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, np.zeros(4), tau).a
    np.testing.assert_allclose(a[:3], expected, atol=1e-9 * (1 + np.abs(expected).max()))
    assert a[3] == pytest.approx(s @ expected, abs=1e-9 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("change", [lambda m: m, lambda m: m.with_springs(m.joint_names[1], 5.0, 0.3)])
def test_closures_keep_damping_and_springs(change: Callable[[lw.Model], lw.Model]) -> None:
    """What a closure can have stays a closure, in both directions of an exchange."""
    plain = mech.four_bar().with_independent()
    middle = plain.joint_names[1]
    cut = plain.constraints[0]
    resists = Closure(cut.a, cut.b, cut.joint, cut.axis, name=cut.name, damping=0.3, stiffness=4.0, rest=0.1)
    model = change(plain.without(cut.name).with_constraints(resists).with_damping(middle, 0.6))
    found = recut(model, [middle])
    assert (found.nv, found.rows) == (3, 5)
    kept = found.constraints[0]
    assert (kept.damping, kept.stiffness) == (0.6, model.links[2].passive.stiffness[0])
    q, v = lw.random_state(model, 2)
    back = recut(found, [cut.name])
    assert back.nv == 3
    same = back.constraints[0]
    assert (same.damping, same.stiffness) == (0.3, 4.0)
    here = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, np.zeros(3)).a
    there = known(back, by_joint(model, q)), known(back, by_joint(model, v))
    a = by_joint(back, lw.forward_dynamics(back, method="kkt", backend="numpy")(*there, np.zeros(3)).a)
    np.testing.assert_allclose(known(model, a), here, atol=1e-8 * (1 + np.abs(here).max()))


SDF = """<sdf version="1.9"><model name="loop">{bars}{hinges}</model></sdf>"""


def test_files_of_graphs_keep_them_too() -> None:
    """All joints of a loop have friction and limits, so whichever is cut has them."""
    ends = ("world", "bar0"), ("bar0", "bar1"), ("bar1", "bar2"), ("world", "bar2")
    axis = (
        "<axis><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>1</upper></limit><dynamics><friction>0.2</friction>"
        "<damping>0.1</damping></dynamics></axis>"
    )
    hinges = "".join(
        f'<joint name="hinge{k}" type="revolute"><parent>{a}</parent><child>{b}</child>{axis}</joint>'
        for k, (a, b) in enumerate(ends)
    )
    bars = "".join(f'<link name="bar{k}"><pose>{k} 0 {k} 0 0 0</pose></link>' for k in range(3))
    model = lw.load(SDF.format(bars=bars, hinges=hinges))
    assert set(model.joint_names) == {f"hinge{k}" for k in range(4)}
    for link in model.links[1:]:
        assert (link.limits.lower, link.limits.upper) == (-1, 1)
        assert (link.passive.friction[0], link.passive.damping[0]) == (0.2, 0.1)
    bare = lw.load(SDF.format(bars=bars, hinges=hinges), passive=False)
    assert not any(l.passive.friction.any() or l.passive.acts for l in bare.links[1:])
    cut = model.constraints[0].name
    other = next(n for n in model.joint_names if n != cut)
    again = lw.load(SDF.format(bars=bars, hinges=hinges), cut=[other])
    assert again.constraints[0].name == other
    assert set(again.joint_names) == set(model.joint_names)
