"""Springs, damping and gravity compensation of MJCF files, against MuJoCo's own passive forces and accelerations."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends import get
from linkwork.interop import mujoco as coordinates
from linkwork.io import zoo
from linkwork.io.load import LoadWarning
from linkwork.model.springs_and_dampers import passive_force

mujoco = pytest.importorskip("mujoco")
EPS = np.finfo(float).eps

OFF = ("CONTACT", "LIMIT", "EQUALITY", "CONSTRAINT", "ACTUATION", "FRICTIONLOSS")
"""What MuJoCo is to leave out."""

JOINTS = {
    "hinge": '<joint type="hinge" axis="1 2 0" damping=".3" stiffness="7" springref="20" ref="5"/>',
    "slide": '<joint type="slide" axis="0 1 1" damping="1.5" stiffness="40" springref=".1"/>',
    "ball": '<joint type="ball" damping=".2" stiffness="3"/>',
    "free": '<joint type="free" damping=".7" stiffness="11"/>',
}


def chain(*kinds: str) -> str:
    """Bodies one behind the other, one by each kind of joint, partly held against gravity."""
    own = '<inertial pos=".1 -.02 .03" mass="1.3" fullinertia=".02 .03 .025 .001 .002 -.003"/>'
    body = ""
    for n, kind in reversed(list(enumerate(kinds))):
        place = f'name="b{n}" pos=".3 {0.1 * n} .1" euler="{20 * n} 10 -30" gravcomp="{0.3 * n}"'
        body = f"<body {place}>{JOINTS[kind]}{own}{body}</body>"
    return f"<mujoco><worldbody>{body}</worldbody></mujoco>"


def agree(m, model: lw.Model) -> None:
    """Passive forces, accelerations and inverse dynamics at random states."""
    for name in OFF:
        m.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}"))
    to, d, rng = coordinates(model, m), mujoco.MjData(m), np.random.default_rng(0)
    tree = model.without_constraints()
    fd, inverse, mm = lw.forward_dynamics(tree), lw.inverse_dynamics(tree), lw.mass_matrix(tree)
    for _ in range(5):
        q, v, tau = model.random_q(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = to.q_to(q), to.v_to(q, v), to.tau_to(q, tau)
        mujoco.mj_forward(m, d)
        mine = passive_force(model, q[:, None], v[:, None], get("numpy"))
        size = 1 + float(np.abs(d.qfrc_passive).max()) + float(np.abs(d.qfrc_bias).max())
        held = to.tau_to(q, np.zeros(model.nv) if mine is None else np.asarray(mine)[:, 0])
        np.testing.assert_allclose(held, d.qfrc_spring + d.qfrc_damper, atol=100 * EPS * model.nv * size)
        a = fd(q, v, tau).a
        kappa = float(np.linalg.cond(mm(q).M))
        theirs = to.a_from(q, v, np.array(d.qacc))
        np.testing.assert_allclose(a, theirs, atol=100 * kappa * EPS * model.nv * (1 + float(np.abs(a).max())))
        scale = size + float(np.abs(mm(q).M @ a).max())
        np.testing.assert_allclose(inverse(q, v, a).tau, tau, atol=1000 * EPS * model.nv * scale)


@pytest.mark.parametrize("kinds", [("hinge", "slide", "ball"), ("free", "hinge"), ("ball", "ball", "slide")])
def test_every_kind_of_joint(kinds) -> None:
    text = chain(*kinds)
    model = lw.load(text)
    assert all(l.passive.acts for l in model.links[1:] if l.joint.nv)
    agree(mujoco.MjModel.from_xml_string(text), model)
    assert not any(l.passive.acts or l.weightless.mass for l in lw.load(text, passive=False).links)


TENDONS = """<tendon><fixed name="t" stiffness="30" damping="4"><joint joint="j0" coef="1.5"/><joint joint="j1"
  coef="-.4"/></fixed><fixed stiffness="7" springlength="-.1 .1"><joint joint="j0" coef="2"/></fixed></tendon>"""


def with_tendons() -> str:
    """Two joints with springs of their own and tendons over both, one of them slack around zero."""
    text = chain("hinge", "slide").replace("</worldbody>", f"</worldbody>{TENDONS}")
    return text.replace('<joint type="hinge"', '<joint name="j0" type="hinge"').replace(
        '<joint type="slide"', '<joint name="j1" type="slide"'
    )


def test_fixed_tendons() -> None:
    model = lw.load(with_tendons())
    assert [t.name for t in model.tendons] == ["t", "tendon1"]
    agree(mujoco.MjModel.from_xml_string(with_tendons()), model)
    assert not lw.load(with_tendons(), passive=False).tendons


def test_tendons_in_space_are_told() -> None:
    sites = '<site name="s"/><body name="b0"'
    text = chain("hinge").replace('<body name="b0"', sites).replace("</body>", '<site name="e" pos=".1 0 0"/></body>')
    tendon = '<tendon><spatial stiffness="3"><site site="s"/><site site="e"/></spatial></tendon>'
    with pytest.warns(LoadWarning, match="1 x spring or damper in space"):
        assert not lw.load(text.replace("</worldbody>", f"</worldbody>{tendon}")).tendons


def with_springs() -> list[Path]:
    """MJCF files of this machine with damping or springs in their joints, at most a dozen."""
    found = [r.path for r in zoo.robots() if r.path.suffix == ".xml"]
    texts = ((p, p.read_text(errors="ignore")) for p in found)
    return [p for p, text in texts if "damping=" in text or "stiffness=" in text][:12]


@pytest.mark.parametrize("path", with_springs(), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_files(path: Path) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model = lw.load(path)
        except lw.LinkworkError as problem:
            pytest.skip(str(problem))
    if any("left out" in str(w.message) for w in said if issubclass(w.category, LoadWarning)):
        pytest.skip("it has springs that are not modelled")
    agree(mujoco.MjModel.from_xml_path(str(path)), model)


def test_what_a_file_disables_is_off() -> None:
    for flag, left in (("spring", "damping"), ("damper", "stiffness")):
        text = chain("hinge").replace("<mujoco>", f'<mujoco><option><flag {flag}="disable"/></option>')
        (link,) = lw.load(text).links[1:]
        there = {n: bool(getattr(link.passive, n).any()) for n in ("damping", "stiffness")}
        assert there == {n: n == left for n in there}


def test_springs_that_are_not_linear_are_told() -> None:
    text = chain("hinge").replace('stiffness="7"', 'stiffness="7 1 2"')
    try:
        mujoco.MjModel.from_xml_string(text)
    except ValueError:
        pytest.skip("this MuJoCo has linear springs only")
    with pytest.warns(LoadWarning, match="jnt stiffnesspoly"):
        lw.load(text)


EQUALITIES = {
    "one tendon": '<tendon tendon1="t" polycoef=".1"/>',
    "a polynomial of one joint": '<tendon tendon1="t" tendon2="s" polycoef=".1 .7 .3 .2 0"/>',
    "a joint that both have": '<tendon tendon1="t" tendon2="r" polycoef=".1 .7 0 0 0"/>',
    "two": '<tendon tendon1="t" polycoef=".1"/><tendon tendon1="s" tendon2="r"/>',
}


def equal_lengths(equalities: str) -> str:
    body = '<inertial pos=".1 -.02 .03" mass="1.3" fullinertia=".02 .03 .025 .001 .002 -.003"/>'
    return f"""<mujoco><worldbody><body><joint name="a" axis="0 1 0" ref="10"/>{body}
      <body pos=".3 0 0"><joint name="b" type="slide" axis="1 0 1" ref=".1"/>{body}
      <body pos=".2 .1 0"><joint name="c" axis="1 0 0" ref="-20"/>{body}</body></body></body></worldbody>
      <tendon><fixed name="t"><joint joint="a" coef="1.5"/><joint joint="b" coef="-.4"/></fixed>
      <fixed name="s"><joint joint="c" coef="2"/></fixed>
      <fixed name="r"><joint joint="b" coef="1"/><joint joint="c" coef=".5"/></fixed></tendon>
      <equality>{equalities}</equality></mujoco>"""


@pytest.mark.parametrize("kind", EQUALITIES)
def test_equal_lengths_of_fixed_tendons(kind: str) -> None:
    """Their rows and position errors are MuJoCo's, but for the unit of each row."""
    text = equal_lengths(EQUALITIES[kind])
    m, model, rng = mujoco.MjModel.from_xml_string(text), lw.load(text), np.random.default_rng(0)
    d, count = mujoco.MjData(m), EQUALITIES[kind].count("<tendon")
    assert model.rows == count
    for _ in range(3):
        q, v = rng.normal(size=(2, 3))
        d.qpos[:], d.qvel[:] = q, v
        mujoco.mj_forward(m, d)
        J = lw.constraint_jacobian(model, backend="numpy")(q).J
        phi = lw.constraint_error(model, backend="numpy")(q, v).phi
        theirs = d.efc_J.reshape(d.nefc, -1)[:count]
        unit = (J * theirs).sum(1) / (J * J).sum(1)
        np.testing.assert_allclose(theirs, unit[:, None] * J, atol=1e-13)
        np.testing.assert_allclose(d.efc_pos[:count], unit * phi, atol=1e-13)


def test_other_equal_lengths_are_told() -> None:
    with pytest.warns(LoadWarning, match="tendon.*left out"):
        assert not lw.load(equal_lengths('<tendon tendon1="t" tendon2="r" polycoef="0 1 .3 0 0"/>')).constraints
