"""Our coordinates and models against Pinocchio itself: every joint type, trees at random, its own sample robots."""

from __future__ import annotations

import numpy as np
import pytest

from linkwork import interop
from linkwork.algorithms.tree.aba import aba
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.numpy_ import NUMPY
from linkwork.errors import InputError, MissingExtra, NotFound, UnsupportedError
from linkwork.joints import KINDS, Composite, Prismatic, Revolute, Spherical
from linkwork.model import Builder, Model, Motion
from linkwork.robots import mechanisms as mech
from surroundings import Missing

pin = pytest.importorskip("pinocchio")
EPS = np.finfo(float).eps


def agree(model: Model, theirs: object, state: int) -> None:
    """Mass matrix, inverse and forward dynamics with external forces, in one random state."""
    to = interop.pinocchio(model, theirs)
    data, rng = theirs.createData(), np.random.default_rng(state)
    q, v, a, tau = model.random_q(state), *rng.normal(size=(3, model.nv))
    f = rng.normal(size=(model.nlinks, 6))
    f[[i - 1 for i in model.topology.links if not model.links[i].joint.nv]] = 0
    f = f.ravel()
    fp = interop.fext_to_pinocchio(model, theirs, f)
    s = Motion(model, q[:, None], v[:, None], NUMPY)
    qp, vp, T = to.q_to(q), to.v_to(q, v), to.velocity_matrix(q)

    M = crba(s)
    Mp = np.triu(pin.crba(theirs, data, qp))
    Mp = Mp + np.triu(Mp, 1).T
    assert np.abs(T.T @ Mp @ T - M).max() <= 50 * EPS * np.abs(M).max()

    ours = rnea(s, a[:, None], f[:, None])[:, 0]
    back = to.tau_from(q, pin.rnea(theirs, data, qp, vp, to.a_to(q, v, a), fp))
    scale = np.abs(ours).max() + np.abs(M).max() * np.abs(a).sum()
    assert np.abs(back - ours).max() <= 50 * EPS * scale

    ours = aba(s, tau[:, None], f[:, None])[:, 0]
    back = to.a_from(q, v, pin.aba(theirs, data, qp, vp, to.tau_to(q, tau), fp))
    assert np.abs(back - ours).max() <= 50 * EPS * np.linalg.cond(M) * np.abs(ours).max()


@pytest.mark.parametrize("kind", KINDS)
def test_every_joint_type(kind: str) -> None:
    model = mech.random_tree(4, 7, kind if kind != "fixed" else ("fixed", "revolute"), armature=0.2)
    theirs = interop.to_pinocchio(model)
    assert (theirs.nq, theirs.nv) == (model.nq, model.nv)
    for state in range(3):
        agree(model, theirs, state)


def test_composite_joints_there_and_back() -> None:
    joint = Composite(Revolute([0.6, 0, 0.8]), Prismatic("x"), Spherical())  # the other way round M is singular
    model = mech.random_tree(4, 7, [joint], armature=0.2)
    theirs = interop.to_pinocchio(model)
    agree(model, theirs, 0)
    again = interop.from_pinocchio(theirs)
    assert [l.joint for l in again.links[1:]] == [joint] * 4
    agree(again, theirs, 1)


@pytest.mark.parametrize("seed", range(15))
def test_random_trees_there_and_back(seed: int) -> None:
    model = mech.random_tree(10, seed, tuple(KINDS), branching=0.5, armature=0.1)
    theirs = interop.to_pinocchio(model)
    agree(model, theirs, seed)
    again = interop.from_pinocchio(theirs)
    assert (again.nq, again.nv) == (model.nq, model.nv)
    assert [l.joint_name for l in again.links[1:]] == [l.joint_name for l in model.links[1:] if l.joint.nv]
    agree(again, theirs, seed + 100)


@pytest.mark.parametrize("make", [mech.humanoid, mech.quadruped, mech.arm])
def test_frames_names_limits_and_gravity_survive(make) -> None:  # type: ignore[no-untyped-def]
    model = make().with_gravity([0.1, 0.2, -3.7])
    theirs = interop.to_pinocchio(model)
    again = interop.from_pinocchio(theirs)
    assert np.array_equal(again.gravity, model.gravity)
    assert [l.name for l in again.links] == [l.name for l in model.links]
    assert set(model.frames) <= set(again.frames)
    assert [l.limits for l in again.links] == [l.limits for l in model.links]
    assert [l.armature.tolist() for l in again.links] == [l.armature.tolist() for l in model.links]
    q, data = model.random_q(1), theirs.createData()
    pin.framesForwardKinematics(theirs, data, q)
    for name in model.frames:
        X, ours = data.oMf[theirs.getFrameId(name)], mech.frame_pose(again, name, q)
        assert np.abs(X.rotation - ours.R).max() < 1e-14
        assert np.abs(X.translation - ours.p).max() < 1e-14


def test_pinocchios_own_robots() -> None:
    pin.seed(1)
    for name in ("Humanoid", "HumanoidRandom", "Manipulator"):
        theirs = getattr(pin, f"buildSampleModel{name}")()
        model = interop.from_pinocchio(theirs)
        for state in range(3):
            agree(model, theirs, state)


def continuous_robot() -> object:
    """A tree with angles as [cos sin]; joints depth first, which Pinocchio's mass matrix relies on."""
    pin.seed(1)
    m = pin.Model()
    root = m.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Random(), "root_joint")
    slanted = pin.JointModelRevoluteUnboundedUnaligned()
    parts = [
        pin.JointModelRUBX(),
        pin.JointModelRUBY(),
        pin.JointModelRUBZ(),
        pin.JointModelHY(0.2),
        pin.JointModelPX(),
        slanted,
        pin.JointModelRZ(),
    ]
    joints = [root]
    for k, (part, parent) in enumerate(zip(parts, (0, 1, 2, 1, 4, 0, 6), strict=True)):
        joints.append(m.addJoint(joints[parent], part, pin.SE3.Random(), f"joint{k}"))
    for j in joints:
        m.appendBodyToJoint(j, pin.Inertia.Random(), pin.SE3.Identity())
    return m


def test_continuous_joints_are_one_angle_here() -> None:
    theirs = continuous_robot()
    model = interop.from_pinocchio(theirs)
    to = interop.pinocchio(model, theirs)
    assert (model.nq, theirs.nq) == (14, 18)
    q = model.random_q(2)
    there = to.q_to(q)
    assert pin.isNormalized(theirs, there, 1e-12)
    assert np.allclose(to.q_from(there), q, atol=4 * EPS)
    for state in range(5):
        agree(model, theirs, state)


def test_continuous_joint_about_any_axis() -> None:
    """Pinocchio does not say this joint's axis; its motion does."""
    theirs = pin.buildModelFromXML("""<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
      <origin xyz="0.1 0.2 0.3"/><inertia ixx="1" iyy="2" izz="2" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="1 2 -3"/></joint></robot>""")
    assert theirs.joints[1].shortname() == "JointModelRevoluteUnboundedUnaligned"
    model = interop.from_pinocchio(theirs)
    assert np.allclose(model.links[1].joint.axis, np.array([1, 2, -3]) / np.sqrt(14), atol=2 * EPS)
    for state in range(5):
        agree(model, theirs, state)


def test_other_order_and_other_names() -> None:
    """Joints pair up by name where the orders differ; free joints that are called differently find each other."""
    theirs = interop.to_pinocchio(mech.quadruped())
    b, source = Builder("shuffled"), mech.quadruped()
    order = [1, *(k for leg in (3, 1, 2, 0) for k in range(2 + 3 * leg, 5 + 3 * leg))]
    for i in order:
        l = source.links[i]
        b.link(
            l.name,
            source.links[l.parent].name,
            l.joint,
            placement=l.placement,
            inertia=l.inertia,
            armature=l.armature,
            joint_name="floating" if i == 1 else l.joint_name,
        )
    model = b.build()
    names = [l.joint_name for l in model.links[2:]]
    assert names != [l.joint_name for l in source.links[2:]]
    q, to = model.random_q(1), interop.pinocchio(model, theirs)
    assert np.array_equal(to.q_to(q)[:7], q[:7])
    for k, name in enumerate(names):
        assert to.q_to(q)[theirs.idx_qs[theirs.getJointId(name)]] == q[7 + k]
    s, data = Motion(model, q[:, None], np.zeros((18, 1)), NUMPY), theirs.createData()
    ours = rnea(s, None)[:, 0]
    assert np.abs(to.tau_from(q, pin.rnea(theirs, data, to.q_to(q), np.zeros(18), np.zeros(18))) - ours).max() < 1e-12


def test_batches() -> None:
    theirs = continuous_robot()
    model = interop.from_pinocchio(theirs)
    to = interop.pinocchio(model, theirs)
    q = np.array([[model.random_q(3 * i + j) for j in range(3)] for i in range(2)])
    v, a = np.random.default_rng(0).normal(size=(2, 2, 3, model.nv))
    assert np.array_equal(to.q_to(q)[1, 2], to.q_to(q[1, 2]))
    assert np.array_equal(to.q_from(to.q_to(q))[1, 0], to.q_from(to.q_to(q[1, 0])))
    assert np.array_equal(to.a_to(q, v, a)[0, 1], to.a_to(q[0, 1], v[0, 1], a[0, 1]))
    assert to.velocity_matrix(q).shape == (2, 3, model.nv, model.nv)


def test_what_does_not_fit() -> None:
    model, other = mech.arm(), mech.chain(7)
    with pytest.raises(InputError, match=r"link7_joint.*link8_joint|do not pair up"):
        interop.pinocchio(mech.arm(6), interop.to_pinocchio(model))
    with pytest.raises(UnsupportedError, match="prismatic here and revolute"):
        interop.pinocchio(mech.chain(7, "prismatic"), interop.to_pinocchio(other))
    with pytest.raises(NotFound, match="nobody"):
        interop.pinocchio(model, interop.to_pinocchio(model), {"nobody": "link1_joint"})
    with pytest.raises(NotFound, match="elbow"):
        interop.pinocchio(model, interop.to_pinocchio(model), {"link1_joint": "elbow"})
    to = interop.pinocchio(model, interop.to_pinocchio(model))
    with pytest.raises(InputError, match=r"Linkwork's order.*7 entries"):
        to.q_to(np.zeros(6))
    with pytest.raises(InputError, match="Pinocchio's order"):
        to.q_from(np.zeros(8))
    with pytest.raises(InputError, match="fext"):
        interop.fext_to_pinocchio(model, interop.to_pinocchio(model), np.zeros(7))
    odd = pin.Model()
    apart = pin.JointModelComposite(pin.JointModelRX(), pin.SE3.Identity())
    apart.addJoint(pin.JointModelRY(), pin.SE3.Random())
    odd.addJoint(0, apart, pin.SE3.Identity(), "elbow")
    with pytest.raises(UnsupportedError, match=r"elbow.*placements between"):
        interop.from_pinocchio(odd)
    skew = pin.JointModelComposite(pin.JointModelPX(), pin.SE3.Identity())
    skew.addJoint(pin.JointModelRZ(), pin.SE3.Identity())
    odd = pin.Model()
    odd.addJoint(0, skew, pin.SE3.Identity(), "skew")
    sliding = interop.from_pinocchio(odd)
    assert sliding.links[1].joint == Composite(Prismatic("x"), Revolute("z"))
    assert interop.pinocchio(sliding, odd).q_to(np.ones(2)).tolist() == [1, 1]
    fixed = mech.random_tree(3, 1, ("fixed", "revolute"))
    force = np.ones(6 * fixed.nlinks)
    with pytest.raises(UnsupportedError, match="fixed to its parent"):
        interop.fext_to_pinocchio(fixed, interop.to_pinocchio(fixed), force)


def test_without_pinocchio(missing: Missing) -> None:
    missing("pinocchio")
    with pytest.raises(MissingExtra, match=r"linkwork\[pinocchio\]"):
        interop.to_pinocchio(mech.arm())
