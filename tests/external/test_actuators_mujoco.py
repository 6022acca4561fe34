"""Actuators of MJCF files against MuJoCo's own forces and accelerations."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import LinkworkError
from linkwork.io.load import LoadWarning

mujoco = pytest.importorskip("mujoco")
from judged_mjcf import judged  # noqa: E402

BODY = '<inertial pos=".1 -.02 .03" mass="1.3" fullinertia=".02 .03 .025 .001 .002 -.003"/>'
ARM = f"""<mujoco><worldbody><body><joint name="a" axis="0 1 0" range="-1 1" ref="10"/>{BODY}
  <body pos=".3 0 0"><joint name="b" type="slide" axis="1 0 1" damping="2" actuatorfrcrange="-6 6"/>{BODY}
  <body pos=".2 .1 0"><joint name="c" type="ball" stiffness="3"/>{BODY}
  </body></body></body></worldbody>
  <tendon><fixed name="t"><joint joint="a" coef="1.5"/><joint joint="b" coef="-.4"/></fixed>
  <fixed name="held" actuatorfrcrange="-1 4"><joint joint="a" coef="2"/></fixed></tendon>
  <actuator>{{}}</actuator></mujoco>"""

KINDS = {
    "motor": '<motor joint="a" gear="3" ctrlrange="-.5 .5"/>',
    "position": '<position joint="a" kp="40" kv="3" gear="2"/>',
    "position that saturates": '<position joint="b" kp="400" forcerange="-3 2"/>',
    "velocity": '<velocity joint="b" kv="7" gear="-1.5"/>',
    "damper": '<damper joint="b" kv="7" ctrlrange="0 2"/>',
    "general": '<general joint="b" gaintype="affine" gainprm="2 .3 -.1" biastype="affine" biasprm=".2 -.5 -.7"/>',
    "tendon": '<position tendon="t" kp="30" gear="1.2"/>',
    "tendon with a force limit": '<position tendon="held" kp="30" forcerange="-9 2"/>',
    "ball": '<position joint="c" kp="3" gear="1 .5 -.3"/>',
    "integrator": '<intvelocity joint="a" kp="5" actrange="-1 1"/>',
    "filter": '<general joint="b" dyntype="filter" dynprm=".1" gainprm="3" ctrlrange="-.2 .5"/><motor joint="a"/>',
    "exact filter": '<position joint="a" kp="20" kv="1" timeconst=".05"/>',
    "two on a joint": '<motor joint="b" gear="9"/><motor joint="b" gear="-2" name="m"/>',
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind: str) -> None:
    text = ARM.format(KINDS[kind])
    verdict = judged(text)
    assert verdict.actuators == KINDS[kind].count("joint=") + KINDS[kind].count("tendon=")
    for what in ("passive", "actuator", "acceleration"):
        assert getattr(verdict, what) < 100, what


@pytest.mark.parametrize("kind", ["integrator", "filter", "exact filter"])
def test_activations_over_time(kind: str) -> None:
    """Rollouts integrate activations as MuJoCo does; simulations have them, too."""
    text = ARM.format(KINDS[kind]).replace("<worldbody>", '<option gravity="0 0 0" timestep=".01"/><worldbody>', 1)
    model, m = lw.load(text), mujoco.MjModel.from_xml_string(text)
    d, start, u = mujoco.MjData(m), np.array([0.3]), np.linspace(-2, 3, 20)[:, None] * np.ones(model.nu)
    run = lw.rollout(model, dt=0.01, actuators=True)(model.neutral(), np.zeros(model.nv), u=u, act=start)
    d.act[:] = start
    for k in range(20):
        d.ctrl[:] = u[k]
        mujoco.mj_step(m, d)
        np.testing.assert_allclose(run.act[k], d.act, atol=1e-14)
    seen = lw.rollout(model, dt=0.01, actuators=True, record=["tau"])(model.neutral(), np.zeros(model.nv), u=u)
    made = lw.simulate(
        model,
        model.neutral(),
        controller=lambda t, q, v: u[round(t / 0.01)] if t < 0.195 else u[0],
        dt=0.01,
        duration=0.2,
        actuators=True,
    )
    np.testing.assert_allclose(made.q[1:], seen.q, atol=1e-12)
    np.testing.assert_allclose(made.tau[:-1], seen.tau, atol=1e-10)


def test_centres_that_are_off_by_nanometres_are_not_for_mujoco() -> None:
    """Bodies that count as "simple" have a diagonal mass matrix there; meshes have such centres by rounding."""
    text = """<mujoco><worldbody><body pos="1 2 3"><freejoint/><inertial pos="-2.4e-9 -7.6e-10 -1.4e-9" mass="34"
      diaginertia=".13 .13 .13"/></body></worldbody></mujoco>"""
    assert mujoco.MjModel.from_xml_string(text).body_simple[1]
    assert judged(text, "numpy").acceleration < 100


def test_what_is_not_modelled_is_counted_in_one_warning() -> None:
    strange = '<general joint="a" dyntype="integrator" actearly="true"/><muscle joint="b" lengthrange="0 1"/>'
    strange += '<motor joint="a"/>'
    text = ARM.format(strange + '<motor joint="b" name="m"/>').replace(
        "<worldbody>", '<option density="1"/><worldbody>', 1
    )
    with pytest.warns(LoadWarning) as said:
        model = lw.load(text)
    (message,) = [str(w.message) for w in said]
    for part in ("1 x fluid", "1 x actuator with a state that acts early", "1 x actuator with a state (muscle)"):
        assert part in message
    assert model.nu == 2


def test_files_without_actuation_have_no_controls() -> None:
    text = ARM.format(KINDS["motor"]).replace(
        "<worldbody>", '<option><flag actuation="disable"/></option><worldbody>', 1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lw.load(text).nu == 0
    with pytest.raises(LinkworkError, match="no actuators"):
        lw.actuation(lw.load(text))
