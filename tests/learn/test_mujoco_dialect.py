"""The dialect of `mujoco.batch` and `mujoco.rollout`: the same arrays, and the same motions where the physics agree."""

from __future__ import annotations

import numpy as np
import pytest

from linkwork.errors import InputError, NotFound, UnsupportedError

mujoco = pytest.importorskip("mujoco", reason="these need mujoco: pip install -e '.[test]'")
theirs = pytest.importorskip("mujoco.rollout")

from linkwork.learn import mujoco as ours  # noqa: E402

ARM = """<body name="arm" pos="0 0 1">
  <joint name="a" axis="0 1 0" damping="0.1"/>
  <inertial pos="0 0 -.2" mass="1" diaginertia=".02 .02 .001"/>
  <body name="fore" pos="0 0 -.4">
    <joint name="b" axis="1 0 0"{0}/><joint name="c" axis="0 1 0" armature=".01"/>
    <inertial pos="0 .01 -.2" mass=".7" diaginertia=".01 .01 .001"/>
    <site name="tip" pos="0 0 -.4" euler="0 30 0"/>
  </body>
</body>"""
FREE = """<body name="box" pos="1 0 0">
  <freejoint name="root"/><inertial pos=".02 0 .01" mass="2" diaginertia=".02 .03 .04"/>
  <body name="flail" pos="0 0 .2">
    <joint name="s" type="ball"/><inertial pos=".1 0 .1" mass=".5" diaginertia=".003 .002 .003"/>
  </body>
</body>"""


def model(integrator, bodies, actuators='<motor joint="a" gear="2"/><motor joint="c" ctrlrange="-1 1"/>', key=""):
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="0.002" integrator="{integrator}"><flag contact="disable"/></option>'
        f"<worldbody>{bodies}</worldbody><actuator>{actuators}</actuator><keyframe>{key}</keyframe></mujoco>"
    )


@pytest.fixture(scope="module")
def hinges():
    return model("Euler", ARM.format(""), key='<key qpos=".1 .2 .3" qvel="0 0 1" ctrl=".1 .2" time="2"/>')


@pytest.fixture(scope="module")
def floating():
    """A free joint, a ball joint, a spring and a servo; fourth order, so that integrators agree."""
    servo = '<motor joint="a" gear="2"/><position joint="c" kp="5" kv=".1"/>'
    return model("RK4", ARM.format(' stiffness="2"') + FREE, servo)


def starts(m, count, seed=0):
    """States in the order of mjSTATE_FULLPHYSICS."""
    rng, out = np.random.default_rng(seed), np.zeros((count, 1 + m.nq + m.nv + m.na))
    for row in out:
        q = m.qpos0.copy()
        mujoco.mj_integratePos(m, q, 0.5 * rng.normal(size=m.nv), 1.0)
        row[1 : 1 + m.nq], row[1 + m.nq :] = q, rng.normal(size=m.nv + m.na)
    return out


@pytest.fixture(scope="module")
def lagging():
    """Motors behind a filter and an integrator: activations are part of the state."""
    slow = (
        '<general joint="a" dyntype="filter" dynprm=".1"/><general joint="c" dyntype="integrator" actrange="-.1 .1"/>'
    )
    slow += '<general joint="b" dyntype="filterexact" dynprm=".03" gainprm="2"/>'
    zero = '<key qpos=".1 .2 .3" act=".1 .05 .2"/>'
    return model("Euler", ARM.format(""), slow, zero)


@pytest.mark.parametrize("name", ["hinges", "floating", "lagging"])
def test_rollouts_are_those_of_mujoco(name, request):
    """A hundred steps with controls over time; without contacts there is nothing soft in them."""
    m = request.getfixturevalue(name)
    first, control = starts(m, 5), np.random.default_rng(1).normal(size=(5, 100, m.nu))
    expected, _ = theirs.rollout(m, mujoco.MjData(m), first, control)
    found, sensors = ours.rollout(m, mujoco.MjData(m), first, control)
    assert found.shape == expected.shape
    assert sensors.shape == (5, 100, 0)
    assert np.abs(found - expected).max() < 1e-8


def test_forces_on_joints(hinges):
    first, control = starts(hinges, 3), np.random.default_rng(2).normal(size=(3, 40, hinges.nu + hinges.nv))
    both = int(mujoco.mjtState.mjSTATE_CTRL) | int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)
    expected, _ = theirs.rollout(hinges, mujoco.MjData(hinges), first, control, control_spec=both)
    found, _ = ours.rollout(hinges, mujoco.MjData(hinges), first, control, control_spec=both)
    assert np.abs(found - expected).max() < 1e-8


def test_forces_on_free_joints_are_in_world_axes(floating):
    """Held in body axes within a step here: equal to first order."""
    first = starts(floating, 2)
    forces = np.zeros((2, 50, floating.nv))
    forces[..., 3:9] = np.random.default_rng(3).normal(size=(2, 1, 6))
    spec = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)
    expected, _ = theirs.rollout(floating, mujoco.MjData(floating), first, forces, control_spec=spec)
    found, _ = ours.rollout(floating, mujoco.MjData(floating), first, forces, control_spec=spec)
    assert np.abs(found - expected).max() < 1e-3
    still, _ = ours.rollout(floating, mujoco.MjData(floating), first, 0 * forces, control_spec=spec)
    assert np.abs(still - expected).max() > 1e-2


def test_inputs_are_tiled_and_results_written_as_mujoco_does_it(hinges):
    first, u = starts(hinges, 1), np.array([0.3, -0.2])
    out = np.zeros((4, 6, 7))
    for rollout in (theirs.rollout, ours.rollout):
        rollout(hinges, mujoco.MjData(hinges), first[0], np.tile(u, (4, 1, 1)), nstep=6, state=out)
        alone, _ = rollout(hinges, mujoco.MjData(hinges), first[0], np.tile(u, (6, 1)))
        assert alone.shape == (1, 6, 7)
        assert np.abs(out - alone).max() < 1e-12
        assert out[0, 0, 0] == pytest.approx(0.002)


def test_batches_are_those_of_mujoco(hinges):
    """Steps of some, resets of some to keyframes, controls written to what is bound; fields and rows of states."""
    batch = pytest.importorskip("mujoco.batch", reason="mujoco.batch is in MuJoCo 4")
    fields = ("time", "qpos", "qvel", "ctrl", "qfrc_applied")
    places = ("xpos", "xquat", "xmat", "site_xpos", "site_xmat")
    both = batch.Batch(hinges, 4), ours.Batch(hinges, 4)
    for b in both:
        bound = [b.bind(n) for n in places]
        qpos, ctrl = b.bind("qpos"), b.bind("ctrl")
        qpos[:] = starts(hinges, 4)[:, 1:4]
        ctrl[:] = np.random.default_rng(4).normal(size=ctrl.shape)
        b.qfrc_applied = 0.1
        b.step(nstep=3)
        b.reset(np.array([1, 3]), keyframe=[0, -1])
        b.step(np.array([True, True, False, False]))
        full = mujoco.mjtState.mjSTATE_FULLPHYSICS
        found = b.rollout(5, np.full((2, 5, 2), 0.2), record=("qpos", full), ids=[1, 2])
        b.forward()
        b.kept = [found["qpos"], found[full], *(b.bind(n).copy() for n in fields), *bound]
        assert b.xpos.shape == (4, 3, 3)
    for mine, expected in zip(both[1].kept, both[0].kept, strict=True):
        assert mine.shape == expected.shape
        assert np.abs(mine - expected).max() < 1e-8
    # rows of states have the same order
    assert both[1].state.shape == both[0].state.shape
    both[1].state[:] = both[0].state
    assert all(np.array_equal(both[1].bind(n), both[0].bind(n)) for n in fields)


def test_contacts_are_those_of_geoms_with_the_plane():
    """A ball and a cube fall, slide and rest, softly there and hard here; joints stay within their limits."""
    m = mujoco.MjModel.from_xml_string("""<mujoco><option timestep="0.002"/><worldbody>
      <geom type="plane" size="5 5 .1" pos="0 0 0.5"/>
      <body pos="0 0 .65"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>
      <body pos="0 2 1"><joint name="h" axis="0 1 0" range="-30 30"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".2"/></body>
    </worldbody></mujoco>""")
    start = np.concatenate([[0.0], m.qpos0, np.zeros(m.nv)])
    start[1 + m.nq] = 1.0
    expected, _ = theirs.rollout(m, mujoco.MjData(m), start, nstep=400)
    found, _ = ours.rollout(m, mujoco.MjData(m), start, nstep=400)
    assert found[0, -1, 3] == pytest.approx(0.6, abs=1e-6)
    assert found[0, -1, 8] == pytest.approx(np.pi / 6, abs=1e-3)
    assert np.abs(found[0, -1, [1, 3, 8]] - expected[0, -1, [1, 3, 8]]).max() < 2e-2
    assert ours.Batch(m, 1, contacts=[]).robot.run.step.contacts == ()


def test_simulations_that_fail_say_so(hinges):
    """And keep their last valid state; others go on."""
    b = ours.Batch(hinges, 2)
    b.qvel[1] = 1e5
    b.step(nstep=50)
    assert list(b.status) == [0, 1]
    assert np.isfinite(b.state).all()


def test_what_cannot_be_is_refused(hinges, floating):
    b = ours.Batch(hinges, 3)
    with pytest.raises(NotFound, match="xpos"):
        b.bind("xpo")
    with pytest.raises(AttributeError):
        b.sensordata  # noqa: B018
    with pytest.raises(ValueError, match="read-only"):
        b.bind("xpos")[:] = 0
    for ids in ([2, 1], [3], [-1], [0.5], np.ones(2, bool), "all"):
        with pytest.raises(InputError, match="ids"):
            b.step(ids)
    with pytest.raises(InputError, match="keyframe"):
        b.reset(keyframe=1)
    with pytest.raises(InputError, match="control"):
        b.rollout(4, np.zeros((3, 3, 2)))
    with pytest.raises(UnsupportedError, match="control_spec"):
        b.rollout(4, np.zeros((3, 4, 2)), control_spec=int(mujoco.mjtState.mjSTATE_XFRC_APPLIED))
    with pytest.raises(InputError, match="qvel"):
        b.rollout(4, record=("qacc",))
    with pytest.raises(InputError, match="initial_state"):
        ours.rollout(hinges, None, np.zeros(5))
    with pytest.raises(InputError, match="MjModel"):
        ours.Batch("robot.xml", 3)
    muscle = model("Euler", ARM.format(""), '<muscle joint="a" lengthrange="0 1"/>')
    with pytest.raises(UnsupportedError, match="0 of the 1 actuators"), pytest.warns(UserWarning, match="muscle"):
        ours.Batch(muscle, 1)


def test_activations_are_part_of_a_batch(lagging):
    sims, single = ours.Batch(lagging, 2), mujoco.MjData(lagging)
    sims.reset(keyframe=0)
    mujoco.mj_resetDataKeyframe(lagging, single, 0)
    np.testing.assert_array_equal(sims.act, [single.act] * 2)
    sims.ctrl[:] = single.ctrl[:] = [0.4, -3.0, 0.2]
    for _ in range(20):
        mujoco.mj_step(lagging, single)
    sims.step(nstep=20)
    np.testing.assert_allclose(sims.act[1], single.act, atol=1e-14)
    np.testing.assert_allclose(sims.qpos[1], single.qpos, atol=1e-9)
    assert sims.rollout(3, record=("act",))["act"].shape == (2, 3, 3)
