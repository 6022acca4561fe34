"""Loops cut at other joints: the mechanism stays what it is, on random graphs and on robots of URDF+ and MJCF files."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import linkwork as lw
from linkwork.backends.numpy_ import NUMPY
from linkwork.errors import LinkworkError, ModelError
from linkwork.io.recut import recut
from linkwork.model import Model
from linkwork.robots import mechanisms as mech
from linkwork.spatial.rotations import log3, matrix_quaternion

H = 1e-4
KINDS = ("revolute", "ball", "prismatic", "universal", "screw", "revolute")


def graph(seed: int, links: int = 7, loops: int = 2) -> str:
    """An SDF file of links anywhere, which all joints fit at zero; every kind of joint that can be cut."""
    rng = np.random.default_rng(seed)

    def numbers(x: object) -> str:
        return " ".join(f"{n:.9f}" for n in np.asarray(x, dtype=float))

    body = "<inertial><mass>1</mass><inertia><ixx>.02</ixx><iyy>.03</iyy><izz>.04</izz></inertia></inertial>"
    text = "".join(
        f'<link name="l{k}"><pose>{numbers(rng.uniform(-1, 1, 6))}</pose>{body}</link>' for k in range(links)
    )
    pairs = [(int(rng.integers(max(0, k - 2), k)), k) for k in range(1, links)]
    pairs += [tuple(sorted(rng.choice(links, 2, replace=False).tolist())) for _ in range(loops)]
    for n, (a, b) in enumerate(pairs):
        kind = KINDS[(n + seed) % len(KINDS)]
        axis = rng.normal(size=3)
        second = np.cross(axis, rng.normal(size=3))
        pitch = "<screw_thread_pitch>0.3</screw_thread_pitch>" if kind == "screw" else ""
        text += (
            f'<joint name="j{n}" type="{kind}"><pose>{numbers(rng.uniform(-0.3, 0.3, 6))}</pose>'
            f"<parent>l{a}</parent><child>l{b}</child><axis><xyz>{numbers(axis)}</xyz></axis>"
            f"<axis2><xyz>{numbers(second)}</xyz></axis2>{pitch}</joint>"
        )
    return f'<sdf version="1.7"><model name="graph {seed}">{text}</model></sdf>'


def position(model: Model, pose_of: dict[str, tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The position of a tree whose links have these poses (axes, origin)."""
    pose_of, q = {**pose_of, "world": (np.eye(3), np.zeros(3))}, []
    for i in model.topology.links:
        link = model.links[i]
        (R0, p0), (R1, p1) = pose_of[model.links[link.parent].name], pose_of[link.name]
        R0, p0 = R0 @ link.placement.R, p0 + R0 @ link.placement.p
        R, p = R0.T @ R1, R0.T @ (p1 - p0)
        turn = np.asarray(log3(R, NUMPY))[:, 0]
        kind, joint = link.joint.kind, link.joint
        if kind == "revolute":
            q.append([joint.axis @ turn])
        elif kind == "helical":  # after any number of turns
            q.append([joint.axis @ p / joint.pitch])
        elif kind == "prismatic":
            q.append([joint.axis @ p])
        elif kind == "universal":  # R = R(axis, q1) R(second, q2)
            third = np.cross(joint.axis, joint.second)
            one, two = R @ joint.second, R.T @ joint.axis
            q.append([np.arctan2(third @ one, joint.second @ one), np.arctan2(third @ two, joint.axis @ two)])
        else:
            quaternion = np.asarray(matrix_quaternion(R, NUMPY))[:, 0]
            q.append([*p, *quaternion] if kind == "free" else quaternion)
    return np.concatenate(q)


def unwound(model: Model, q: np.ndarray) -> bool:
    """Whether no joint with a spring has turned by more than half a turn: places do not tell how often."""
    sprung = [l.joint_name for l in model.links[1:] if l.passive.stiffness.any()]
    return all(np.abs(q[model.q_slice(name)]).max() < np.pi for name in sprung)


def same_motion(file: Model, other: Model, seed: int, rtol: float) -> None:
    """From a random closed state of one tree, points of all links of both accelerate alike."""
    names = [l.name for l in file.links[1:]]
    assert set(names) <= {*(l.name for l in other.links), *other.frames}
    q, v = next(x for x in (lw.random_state(other, s) for s in range(seed, seed + 99)) if unwound(other, x[0]))
    where = lw.forward_kinematics(other, names, backend="numpy")
    back = lw.forward_kinematics(file, names, backend="numpy")

    def seen(q_other: np.ndarray) -> np.ndarray:
        out = where(q_other)
        return position(file, {n: (out.rotations[k], out.positions[k]) for k, n in enumerate(names)})

    def dynamics(model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, np.zeros(model.nv)).a

    def curve(model: Model, places: object, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        a = dynamics(model, q, v)
        x = [places(model.integrate(q, t * v + t * t / 2 * a)).positions for t in (H, 0.0, -H)]
        return (x[0] - 2 * x[1] + x[2]) / H**2

    q_file = seen(q)
    v_file = file.difference(seen(other.integrate(q, -H * v)), seen(other.integrate(q, H * v))) / (2 * H)
    assert_allclose(back(q_file).positions, where(q).positions, atol=1e-8)
    found, expected = curve(other, where, q, v), curve(file, back, q_file, v_file)
    assert_allclose(found, expected, atol=rtol * np.abs(expected).max())


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 6])
def test_random_graphs(seed: int) -> None:
    """Every joint that can be cut; the reader of graphs, which cuts while it reads, gives the same tree."""
    text = graph(seed)
    model, done = lw.load(text), 0
    for name in [l.joint_name for l in model.links[1:] if l.joint.kind != "free"]:
        try:
            found = recut(model, [name])
        except ModelError:
            continue
        assert name in [c.name for c in found.constraints]
        read = lw.load(text, cut=[c.name for c in found.constraints])
        assert (read.nv, read.rows) == (found.nv, found.rows)
        if done < 2:
            same_motion(model, found, seed, 1e-4)
        done += 1
    assert done >= 2


CUTS = {
    "six_bar.urdf": (["joint4"], {}),
    "four_bar.urdf": (["joint2"], {}),
    "cassie.xml": (["left-plantar-rod"], {}),
    "cassie.xml without damping": (["left-achilles-rod", "right-plantar-rod"], {"passive": False}),
    "digit_v3.xml": (["left-leg/tarsus", "right-leg/toe-roll"], {}),
}


@pytest.mark.parametrize("case", CUTS)
def test_robots(case: str) -> None:
    cut, options = CUTS[case]
    name = case.split()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            file = lw.load(name, **options)
        except lw.LoadError:
            pytest.skip(f"{name} is not installed")
        other = lw.load(name, cut=cut, **options)
    assert set(cut) <= {c.name for c in other.constraints}
    assert len(other.constraints) == len(file.constraints)
    same_motion(file, other, 3, 1e-3)


WELDED = """<mujoco><worldbody><body name="a"><joint name="one" type="hinge" axis="0 1 0"/>
<geom type="capsule" size=".05" fromto="0 0 0 1 0 0"/><body name="b" pos="1 0 0"><joint name="two" axis="0 1 0"/>
<geom type="capsule" size=".05" fromto="0 0 0 0 0 -1"/></body></body>
<body name="c" pos="0 0 -1"><joint name="three" axis="0 1 0"/><geom type="capsule" size=".05" fromto="0 0 0 1 0 0"/>
</body></worldbody><equality><weld name="glue" body1="b" body2="c" relpose="-1 0 1 1 0 0 0"/></equality></mujoco>"""


def test_a_weld_in_the_tree_makes_one_link_of_two() -> None:
    file = lw.load(WELDED)
    other = lw.load(WELDED, cut=["two"])
    assert (file.nv, file.rows, other.nv, other.rows) == (3, 6, 2, 5)
    rest = np.zeros(3)
    a = lw.forward_dynamics(file, method="kkt", backend="numpy")(rest, rest, rest).a
    b = lw.forward_dynamics(other, method="kkt", backend="numpy")(rest[:2], rest[:2], rest[:2]).a
    assert_allclose(b, [a[file.v_slice(n)][0] for n in ("one", "three")], atol=1e-9)
    assert lw.best_cuts(WELDED).us <= lw.plan(file).best.predicted["state"]


def test_shapes_and_motors_stay_where_they_are() -> None:
    text = WELDED.replace("</mujoco>", '<actuator><motor name="drive" joint="one" gear="3"/></actuator></mujoco>')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file, other, driven = lw.load(text), lw.load(text, cut=["two"]), lw.load(text, cut=["one"])
    for found in (other, driven):
        assert found.actuators == file.actuators
        assert sum(len(l.outlines) for l in found.links) == sum(len(l.outlines) for l in file.links) > 0
        assert found.mass == pytest.approx(file.mass)
    assert "one" in driven.joint_names
    assert (driven.nv, driven.rows) == (3, 6)


def test_what_cannot_be_cut_is_said() -> None:
    four_bar = mech.four_bar()
    joints = four_bar.joint_names
    cases = {
        "independent": (four_bar.with_independent(joints[1]), joints[1]),
        "closes no loop": (lw.load(graph(0, loops=0)), "j1"),
        "unknown joint to cut|no joint to cut|joint to cut": (four_bar, "nonsense"),
        "coupled": (four_bar.with_constraints(lw.Coupling(joints[1], {joints[2]: [1.0]})), joints[1]),
    }
    for reason, (model, name) in cases.items():
        with pytest.raises(LinkworkError, match=reason):
            recut(model, [name])
