"""Constraint Jacobians against MuJoCo's efc_J (connect, weld), and the mass matrix, on models written in MJCF."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, closed_at, cond, motion, rotation
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints import jacobian
from linkwork.model import BodyInertia, Builder, Placement
from linkwork.spatial.rotations import matrix_quaternion

mujoco = pytest.importorskip("mujoco")


def mechanism(seed: int):
    """A floating body with an arm of two hinges and a ball, and a second floating body: in MJCF and by the builder."""
    rng = np.random.default_rng(seed)
    b, xml = Builder("mjcf"), []
    chain = [
        ("base", "world", "free"),
        ("upper", "base", "revolute"),
        ("fore", "upper", "revolute"),
        ("hand", "fore", "spherical"),
        ("box", "world", "free"),
    ]
    for name, parent, kind in chain:
        place = Placement() if kind == "free" else Placement(rotation(rng), rng.normal(size=3) * 0.3)
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        body = BodyInertia(rng.uniform(1, 2), rng.normal(size=3) * 0.1, np.diag([0.3, 0.25, 0.2]))
        b.link(name, parent, kind, placement=place, inertia=body, **({"axis": axis} if kind == "revolute" else {}))
        x, y, z, w = matrix_quaternion(place.R, NUMPY)[:, 0]
        joint = {
            "free": "<freejoint/>",
            "spherical": '<joint type="ball"/>',
            "revolute": f'<joint type="hinge" axis="{text(axis)}"/>',
        }[kind]
        xml.append(
            f'<body name="{name}" pos="{text(place.p)}" quat="{text([w, x, y, z])}">{joint}'
            f'<inertial mass="{body.mass!r}" pos="{text(body.com)}" diaginertia="0.3 0.25 0.2"/>'
        )
    bodies = "".join(xml[:4]) + "</body>" * 4 + xml[4] + "</body>"
    return b, bodies


def text(numbers) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def compiled(bodies: str, equality: str):
    xml = (
        f'<mujoco><option jacobian="dense"/><compiler inertiafromgeom="false" balanceinertia="false"/>'
        f"<worldbody>{bodies}</worldbody><equality>{equality}</equality></mujoco>"
    )
    m = mujoco.MjModel.from_xml_string(xml)
    return m, mujoco.MjData(m)


def to_mujoco(model, q):
    """qpos, and the matrix T with qvel = T v: free bodies have their linear velocity in world axes."""
    qpos, T = [], np.eye(model.nv)
    for i in model.topology.links:
        part, at = q[model.topology.q_slices[i]], model.topology.v_slices[i].start
        if model.links[i].joint.kind == "revolute":
            qpos += list(part)
            continue
        *front, x, y, z, w = part
        qpos += [*front, w, x, y, z]
        if front:
            T[at : at + 3, at : at + 3] = Placement.from_quaternion(front, [x, y, z, w]).R
    return np.array(qpos), T


def efc(m, d, qpos):
    d.qpos[:] = qpos
    d.qvel[:] = 0
    mujoco.mj_forward(m, d)
    return d.efc_J.reshape(d.nefc, m.nv).copy()


@pytest.mark.parametrize("seed", range(3))
def test_mass_matrix_and_bias(seed):
    b, bodies = mechanism(seed)
    model = b.build()
    m, d = compiled(bodies, "")
    q = model.random_q(seed)
    qpos, T = to_mujoco(model, q)
    d.qpos[:], d.qvel[:] = qpos, 0  # at rest: in motion MuJoCo's bias has the turning of the free bodies' axes in it
    mujoco.mj_forward(m, d)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, M)
    assert_close(T.T @ M @ T, crba(motion(model, q)))
    assert_close(T.T @ d.qfrc_bias, rnea(motion(model, q), None)[:, 0])


@pytest.mark.parametrize("other", ["world", "box"])
@pytest.mark.parametrize("seed", range(3))
def test_connect(seed, other):
    """Three rows: MuJoCo's in world axes, ours in those of frame a; equal everywhere, closed or not."""
    b, bodies = mechanism(seed)
    anchor = np.array([0.1, -0.2, 0.15])
    b.frame("anchor", "hand", Placement.at(anchor))
    model = b.build()
    second = "" if other == "world" else f' body2="{other}"'
    m, d = compiled(bodies, f'<connect body1="hand"{second} anchor="{text(anchor)}"/>')
    # MuJoCo places the anchor on the second body where the first has it at qpos0: neutral, here
    model = closed_at(model, model.neutral(), "anchor", other, "meet").with_constraints(lw.Connect("anchor", "meet"))
    for q in (model.neutral(), model.random_q(seed)):
        qpos, T = to_mujoco(model, q)
        R = motion(model, q).poses[model.link("hand")][0]
        assert_close(R @ jacobian(motion(model, q)), efc(m, d, qpos) @ T)


@pytest.mark.parametrize("other", ["world", "box"])
@pytest.mark.parametrize("seed", range(3))
def test_weld(seed, other):
    """Six rows whose axes and scales differ: the spaces that they span are equal on the closed state."""
    b, bodies = mechanism(seed)
    model = b.build()
    second = "" if other == "world" else f' body2="{other}"'
    m, d = compiled(bodies, f'<weld body1="hand"{second}/>')
    model = closed_at(model, model.neutral(), "hand", other, "meet").with_constraints(lw.Weld("hand", "meet"))
    q = model.neutral()
    qpos, T = to_mujoco(model, q)
    mine, theirs = jacobian(motion(model, q)), efc(m, d, qpos) @ T
    assert theirs.shape == (6, model.nv)
    change = theirs @ np.linalg.pinv(mine)
    assert_close(change @ mine, theirs, cond(mine))
    assert cond(change) < 1e3
    assert np.linalg.matrix_rank(change) == 6
