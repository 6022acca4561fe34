"""MJCF against MuJoCo: mass matrix, bias forces, frames of bodies and sites, and what equalities say.

MuJoCo's velocities are u = E(q) v: the linear velocity of a free joint is in world axes there, in body axes here, so
M = E^T M' E and c = E^T (c' + M' dE/dt v). The tolerance is c eps nv, relative to the largest entry.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from loaded import EPS, State, assert_near, quiet_load, robots, states

import linkwork as lw
from linkwork import interop
from linkwork.errors import LoadError, UnsupportedError
from linkwork.io.zoo import Robot
from linkwork.model import Model

mujoco = pytest.importorskip("mujoco", reason="MuJoCo reads MJCF")

MANY = """<mujoco model="many"><compiler angle="radian"/><option gravity="1 2 -9"/><worldbody>
<body name="a" pos=".1 .2 .3" quat=".5 .1 .7 .2">
  <joint name="j1" type="hinge" axis="1 2 3" pos=".1 -.2 .3" ref=".7" armature=".3"/>
  <joint name="j2" type="slide" axis="0 1 1" pos="1 2 3" ref="-.4" range="-1 1" limited="true"/>
  <joint name="j3" type="hinge" axis="0 -1 0" pos=".2 0 .1"/>
  <inertial pos=".1 .2 .3" mass="2" fullinertia="1 1.1 1.2 .1 .05 .02"/><site name="s1" pos=".1 0 0" quat="1 2 3 4"/>
  <body name="b" pos="0 0 1" euler=".1 .2 .3"><joint name="ball" type="ball" pos=".1 .2 0" armature=".01"/>
    <geom type="box" size=".1 .2 .3" pos=".3 0 0" euler=".3 .4 .5"/>
    <body name="c" pos="0 .4 0"><joint name="k" type="hinge" axis="0 0 1" ref=".3"/>
      <geom type="sphere" size=".1" pos=".1 0 0"/><site name="s2" pos=".3 0 .1"/></body>
    <body name="still" pos="0 .4 .4" quat="0 1 0 0"><geom type="capsule" size=".1 .2" pos=".1 0 0"/>
      <body name="d" pos=".1 0 0"><joint name="k2" type="hinge" axis="1 0 0"/><joint name="k3" axis="0 1 0"/>
        <geom type="sphere" size=".1" pos=".1 0 0"/></body></body></body></body>
<body name="f" pos="1 1 1"><freejoint name="free"/><geom type="ellipsoid" size=".1 .2 .3" pos=".1 0 0"/></body>
</worldbody><equality>
<joint name="gear" joint1="k" joint2="j1" polycoef=".1 .5 .2 .3 .05"/><joint name="held" joint1="k2" polycoef=".2"/>
<weld name="weld" body1="c" body2="d"/>
<weld name="weld_at" body1="a" body2="f" relpose=".1 .2 .3 .5 .5 .5 .5" anchor=".1 .1 .1"/>
<connect name="ground" body1="f" anchor=".1 .2 .3"/><connect name="sites" site1="s1" site2="s2"/>
<weld name="weld_sites" site1="s1" site2="s2"/><connect active="false" name="off" body1="f" anchor=".1 .2 .3"/>
</equality></mujoco>"""


def convert(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """MuJoCo's position, E and dE/dt."""
    peer_q, E, Edot = q.copy(), np.eye(model.nv), np.zeros((model.nv, model.nv))
    t = model.topology
    for i in t.links:
        kind, a, b = model.links[i].joint.kind, t.q_slices[i].start, t.v_slices[i].start
        if kind == "spherical":
            peer_q[a : a + 4] = q[[a + 3, a, a + 1, a + 2]]
        if kind == "free":
            peer_q[a + 3 : a + 7] = q[[a + 6, a + 3, a + 4, a + 5]]
            R = np.zeros(9)
            mujoco.mju_quat2Mat(R, peer_q[a + 3 : a + 7])
            w = v[b + 3 : b + 6]
            cross = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
            E[b : b + 3, b : b + 3] = R.reshape(3, 3)
            Edot[b : b + 3, b : b + 3] = R.reshape(3, 3) @ cross
    return peer_q, E, Edot


def advance(s: State, peer: object, data: object) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo at this state: M and bias in our coordinates."""
    data.qpos[:], E, Edot = convert(s.model, s.q, s.v)  # type: ignore[attr-defined]
    data.qvel[:] = E @ s.v  # type: ignore[attr-defined]
    mujoco.mj_forward(peer, data)
    M = np.zeros((s.model.nv, s.model.nv))
    mujoco.mj_fullM(peer, data, M)
    return E.T @ M @ E, E.T @ (data.qfrc_bias + M @ Edot @ s.v)  # type: ignore[attr-defined]


def compare(model: Model, peer: object, count: int = 20) -> None:
    data = mujoco.MjData(peer)
    relative = 200 * EPS * model.nv
    assert model.nv == peer.nv  # type: ignore[attr-defined]
    for s in states(model, count):
        M, bias = advance(s, peer, data)
        assert_near(s.M, M, 0.0, relative)
        assert_near(s.rnea(), bias, float(np.abs(M).max()), relative)
        for i in range(1, peer.nbody):  # type: ignore[attr-defined]
            R, p = s.frame(peer.body(i).name)  # type: ignore[attr-defined]
            assert_near(p, data.xpos[i], 1.0, relative)
            assert_near(R, data.xmat[i].reshape(3, 3), 1.0, relative)
        for i in range(peer.nsite):  # type: ignore[attr-defined]
            name = peer.site(i).name  # type: ignore[attr-defined]
            assert_near(s.frame(name if name in model.frames else f"{name}/site")[1], data.site_xpos[i], 1.0, relative)
        compare_equalities(s, peer, data, relative)


def compare_equalities(s: State, peer: object, data: object, relative: float) -> None:
    """Distances, angles and joint errors, which do not depend on the axes that a residual is given in."""
    rows = range(data.ne)  # type: ignore[attr-defined]
    for e in range(peer.neq):  # type: ignore[attr-defined]
        theirs = np.array([data.efc_pos[r] for r in rows if data.efc_id[r] == e])  # type: ignore[attr-defined]
        name = peer.eq(e).name or f"equality{e}"  # type: ignore[attr-defined]
        ours = next((c for c in s.model.constraints if c.name == name), None)
        if not peer.eq_active0[e]:  # type: ignore[attr-defined]
            assert ours is None
            continue
        assert ours is not None
        assert ours.rows == len(theirs)
        if len(theirs) == 1:
            assert_near(ours.position_error(s.motion)[:, 0], theirs, 10.0, relative)
            continue
        (Ra, pa), (Rb, pb) = s.frame(ours.a), s.frame(ours.b)
        assert_near(np.linalg.norm(pa - pb), np.linalg.norm(theirs[:3]), 1.0, relative)
        if len(theirs) == 6:
            half = np.sqrt(max(0.0, 3 - np.trace(Ra.T @ Rb))) / 2
            assert_near(half, np.linalg.norm(theirs[3:]), 1.0, relative)


@pytest.mark.parametrize("robot", robots(".xml", ".mjcf"))
def test_agrees_with_mujoco(robot: Robot, capsys: pytest.CaptureFixture[str]) -> None:
    model = quiet_load(robot.path)
    compare(model, mujoco.MjModel.from_xml_path(str(robot.path)))
    with capsys.disabled():
        print(f"\nMJCF robot {robot.name} ({model.nv} degrees of freedom, {len(model.constraints)} equalities) agrees")


def test_many_joints_anchors_refs_and_equalities() -> None:
    model = quiet_load(MANY)
    compare(model, mujoco.MjModel.from_xml_string(MANY))
    assert np.allclose(model.gravity, [1, 2, -9])
    assert model.links[model.joint("j1")].armature == pytest.approx([0.3])
    assert model.links[model.joint("j2")].limits.lower == -1


def test_bases() -> None:
    one = '<mujoco><worldbody><body name="a" pos="1 2 3">{}<geom size=".1"/></body></worldbody></mujoco>'
    free, still, hinged = one.format("<freejoint/>"), one.format(""), one.format("<joint/>")
    assert [quiet_load(t).nv for t in (free, still, hinged)] == [6, 0, 1]
    assert [quiet_load(free, b).nv for b in ("fixed", "free", "planar")] == [0, 6, 3]
    assert [quiet_load(still, b).nv for b in ("fixed", "free", "planar")] == [0, 6, 3]
    assert quiet_load(hinged, "fixed").nv == 1
    with pytest.raises(LoadError, match="leave out base="):
        quiet_load(hinged, "free")
    fixed = quiet_load(free, "fixed")
    assert fixed.frame("a").placement.p == pytest.approx([1, 2, 3])


def test_missing_meshes_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    body = """<mujoco><asset><mesh name="m" file="not_there.stl"/><texture name="t" type="2d" file="gone.png"/>
      <material name="x" texture="t"/></asset><worldbody><body><joint/>{}<geom type="mesh" mesh="m" material="x"/>
      </body></worldbody></mujoco>"""
    path.write_text(body.format('<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'))
    assert quiet_load(path).mass == 1
    path.write_text(body.format(""))
    with pytest.raises(LoadError, match=r"robot\.xml"):
        quiet_load(path)


def test_outsized_files_are_refused() -> None:
    with pytest.raises(LoadError, match="copies"):
        quiet_load(
            '<mujoco><worldbody><replicate count="100000"><replicate count="100000"><body><geom size="1"/>'
            "</body></replicate></replicate></worldbody></mujoco>"
        )
    with pytest.raises(LoadError, match="width"):
        quiet_load(
            '<mujoco><asset><texture name="t" type="2d" builtin="flat" width="1000000" height="1000000"/>'
            "</asset></mujoco>"
        )


def test_armature_of_a_free_joint_acts_on_the_velocity_in_world_axes() -> None:
    text = """<mujoco><worldbody><body name="base" pos="0 0 1"><joint name="root" type="free" armature=".7"/>
      <geom type="box" size=".1 .2 .3" pos=".1 0 .2"/><body name="arm" pos=".3 0 0"><joint name="hinge" axis="0 1 0"
      armature=".2"/><geom type="capsule" size=".05 .2" pos=".2 0 0"/></body></body></worldbody></mujoco>"""
    model = quiet_load(text)
    compare(model, mujoco.MjModel.from_xml_string(text))
    s = states(model, 1)[0]
    tau = np.linspace(-1, 1, model.nv)
    expected = np.linalg.solve(s.M, tau - s.rnea())
    for method in ("aba", "crba_ltl"):
        a = lw.forward_dynamics(model, method=method, threads=1)(s.q, s.v, tau).a
        assert_near(a, expected, 1.0, 1e-12)
    with pytest.raises(UnsupportedError, match="armature of joint 'root'"):
        interop.to_pinocchio(model)


TRANSMISSION = """<mujoco><worldbody><body name="a"><joint name="h" axis="0 1 0" armature=".1"/><geom size=".1"
  pos=".2 0 0"/><body name="b" pos=".4 0 0"><joint name="k" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body></body>
  </worldbody><tendon><fixed name="t" armature="0.25"><joint joint="h" coef="2"/>{}</fixed></tendon>
  <actuator><motor name="m" joint="k" gear="3"{}/></actuator></mujoco>"""


def test_armature_of_tendons_and_actuators() -> None:
    compare(quiet_load(TRANSMISSION.format("", "")), mujoco.MjModel.from_xml_string(TRANSMISSION.format("", "")))
    coupled(TRANSMISSION.format('<joint joint="k" coef="-.7"/>', ""))
    if hasattr(mujoco.MjModel, "actuator_armature"):
        geared = TRANSMISSION.format("", ' armature=".125"')
        compare(quiet_load(geared), mujoco.MjModel.from_xml_string(geared))
        pulled = (
            geared.replace('joint="k" gear', 'tendon="t" gear')
            .replace("</fixed>", '<joint joint="k" coef="1"/></fixed>')
            .replace("0.25", "0")
        )
        coupled(pulled)


def coupled(text: str) -> None:
    """Armature over two joints: a rotor that both turn, and MuJoCo's inertia and accelerations."""
    model, m = quiet_load(text), mujoco.MjModel.from_xml_string(text)
    d, to, rng = mujoco.MjData(m), interop.mujoco(model, m), np.random.default_rng(0)
    assert model.nv == m.nv + 1
    for name in (None, "kkt", "lcaba"):
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = rng.normal(size=(3, m.nv))
        mujoco.mj_forward(m, d)
        q = to.q_from(d.qpos)
        v = to.v_from(q, d.qvel)
        state = lw.constraint_error(model)(q, v)
        assert np.abs([state.phi, state.rate]).max() < 1e-14
        np.testing.assert_allclose(to.q_to(q), d.qpos)
        a = lw.forward_dynamics(model, method=name)(q, v, to.tau_from(q, d.qfrc_applied)).a
        np.testing.assert_allclose(a, to.a_from(q, v, d.qacc), atol=1e-8 * np.abs(a).max())
    independent = lw.clusters(model).clusters[0]
    assert len(independent.independent) == m.nv
    tau = lw.inverse_dynamics(model)(q, v, a).tau
    np.testing.assert_allclose(to.tau_to(q, tau), d.qfrc_applied, atol=1e-8 * np.abs(tau).max())


def test_armature_over_branches() -> None:
    """MuJoCo's inertia has no place for it; the kinetic energy m l'^2 / 2 has."""
    text = """<mujoco><worldbody><body name="a"><joint name="h" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
      <body name="c"><joint name="s" type="slide" axis="1 0 0" ref=".3"/><geom size=".1"/></body></worldbody>
      <tendon><fixed name="t" armature="0.25"><joint joint="h" coef="2"/><joint joint="s" coef="3"/></fixed></tendon>
      </mujoco>"""
    model, plain = quiet_load(text), quiet_load(text.replace('armature="0.25"', ""))
    q, v, tau, g = np.array([0.2, -0.4]), np.array([0.3, 0.5]), np.array([1.0, -2.0]), np.array([2.0, 3.0])
    M, c = lw.mass_matrix(plain)(q).M + 0.25 * np.outer(g, g), lw.bias_forces(plain)(q, v).c
    found = lw.forward_dynamics(model)(np.r_[q, g @ q], np.r_[v, g @ v], np.r_[tau, 0.0]).a
    np.testing.assert_allclose(found[:2], np.linalg.solve(M, tau - c), rtol=1e-10)


def test_a_weld_without_torque_holds_a_point() -> None:
    text = """<mujoco><worldbody><body name="a"><freejoint/><geom size=".1"/><site name="s" pos=".1 .2 .3"/></body>
      <body name="b" pos="0 0 1"><freejoint/><geom size=".1"/><site name="t"/></body></worldbody><equality>
      <weld name="w" body1="a" body2="b" relpose=".1 .2 .3 .5 .5 .5 .5" anchor=".1 .1 .1" torquescale="0"/>
      <weld name="sites" site1="s" site2="t" torquescale="0"/><weld name="half" site1="s" site2="t" torquescale=".5"/>
      </equality></mujoco>"""
    model = quiet_load(text)
    assert [c.rows for c in model.constraints] == [3, 3, 6]
    peer = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(peer)
    for s in states(model, 5):
        advance(s, peer, data)
        for n, c in enumerate(model.constraints[:2]):
            theirs = [data.efc_pos[r] for r in range(data.ne) if data.efc_id[r] == n]
            assert_near(np.linalg.norm(c.position_error(s.motion)), np.linalg.norm(theirs), 1.0, 1e-12)


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "nactuator"), reason="one control for each actuator")
def test_actuators_with_several_controls() -> None:
    text = """<mujoco><worldbody><body name="a"><freejoint/><geom size=".1"/><body name="b"><joint name="h"/><geom
      size=".1" pos=".1 0 0"/><body name="c"><joint name="k" type="ball"/><geom size=".1" pos=".1 0 0"/><body name="d">
      <joint name="l"/><geom size=".1" pos=".1 0 0"/></body></body></body></body></worldbody><actuator>
      <pid joint="h" kp="1"/><orientation joint="k" kp="1"/></actuator></mujoco>"""
    peer = mujoco.MjModel.from_xml_string(text)
    assert peer.nu > peer.nactuator
    assert [l.joint_name for l in quiet_load(text).links if l.actuated] == ["", "h", "k"]
