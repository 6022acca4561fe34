"""USD stages, written by usd-core itself: articulations, loops excluded from them, units, and files of others."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import LoadError
from linkwork.io.load import LoadWarning

pxr = pytest.importorskip("pxr", reason="no usd-core: pip install -e '.[test]'")
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics  # noqa: E402


class Stage:
    """A stage with bodies and joints, in metres and kilograms unless said otherwise."""

    def __init__(self, path, metre=1.0, up="Z"):
        self.stage = Usd.Stage.CreateNew(str(path))
        self.metre = metre
        UsdGeom.SetStageMetersPerUnit(self.stage, metre)
        UsdGeom.SetStageUpAxis(self.stage, up)
        self.root = UsdGeom.Xform.Define(self.stage, "/robot").GetPrim()
        self.stage.SetDefaultPrim(self.root)
        UsdPhysics.ArticulationRootAPI.Apply(self.root)

    def body(self, name, mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.2, 0.25), at=(0, 0, 0), axes=(1, 0, 0, 0)):
        xform = UsdGeom.Xform.Define(self.stage, f"/robot/{name}")
        xform.AddTranslateOp().Set(Gf.Vec3d(*(np.array(at) / self.metre)))
        UsdPhysics.RigidBodyAPI.Apply(xform.GetPrim())
        api = UsdPhysics.MassAPI.Apply(xform.GetPrim())
        api.CreateMassAttr(mass)
        api.CreateCenterOfMassAttr(Gf.Vec3f(*(np.array(com) / self.metre)))
        api.CreateDiagonalInertiaAttr(Gf.Vec3f(*(np.array(inertia) / self.metre**2)))
        api.CreatePrincipalAxesAttr(Gf.Quatf(*map(float, axes)))

    def joint(self, kind, name, one, two, p0=(0, 0, 0), p1=(0, 0, 0), axis="Y", r0=(1, 0, 0, 0), excluded=False):
        joint = getattr(UsdPhysics, f"{kind}Joint").Define(self.stage, f"/robot/joints/{name}")
        for k, (end, p) in enumerate(((one, p0), (two, p1))):
            if end:
                getattr(joint, f"CreateBody{k}Rel")().SetTargets([Sdf.Path(f"/robot/{end}")])
            getattr(joint, f"CreateLocalPos{k}Attr")(Gf.Vec3f(*(np.array(p) / self.metre)))
        joint.CreateLocalRot0Attr(Gf.Quatf(*map(float, r0)))
        if kind in ("Revolute", "Prismatic"):
            joint.CreateAxisAttr(axis)
            joint.CreateLowerLimitAttr(-90.0)
            joint.CreateUpperLimitAttr(45.0)
        joint.CreateExcludeFromArticulationAttr(excluded)

    def save(self):
        self.stage.GetRootLayer().Save()


HALF = float(np.sqrt(0.5))


def arm(path, **options):
    """Two links on the world; the second joint is not at the origin of its body, and its frame is turned."""
    s = Stage(path, **options)
    s.body("upper", 2.0, com=(0.1, 0, 0), at=(0, 0, 1))
    s.body("lower", 1.0, com=(0.2, 0.1, 0), inertia=(0.1, 0.2, 0.3), axes=(HALF, 0, 0, HALF), at=(0.5, 0, 1))
    s.joint("Revolute", "shoulder", "", "upper", p0=(0, 0, 1))
    s.joint("Revolute", "elbow", "upper", "lower", p0=(0.4, 0, 0), p1=(-0.1, 0, 0), r0=(HALF, HALF, 0, 0), axis="Z")
    s.save()
    return path


URDF = """<robot name="robot"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>
<inertia ixx="0.1" iyy="0.2" izz="0.25"/></inertial></link>
<link name="lower"><inertial><origin xyz="0.3 0.1 0" rpy="0 0 1.5707963267948966"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.2" izz="0.3"/></inertial></link>
<joint name="shoulder" type="revolute"><origin xyz="0 0 1"/><parent link="base"/>
<child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-1.5707963267948966" upper="0.7853981633974483"/></joint>
<joint name="elbow" type="revolute"><origin xyz="0.4 0 0" rpy="1.5707963267948966 0 0"/><parent link="upper"/>
<child link="lower"/><axis xyz="0 0 1"/>
<limit lower="-1.5707963267948966" upper="0.7853981633974483"/></joint></robot>"""


@pytest.mark.parametrize("suffix", ["usda", "usdc", "usd"])
@pytest.mark.parametrize("metre", [1.0, 0.01])
def test_an_arm_is_the_same_as_in_urdf(tmp_path, suffix, metre):
    """Dynamics are equal to rounding of USD's single precision, whatever the unit of length."""
    ours, same = lw.load(arm(tmp_path / f"arm.{suffix}", metre=metre)), lw.load(URDF)
    assert ours.name == "arm"  # the prim's name says nothing
    assert [l.joint_name for l in ours.links[1:]] == ["shoulder", "elbow"]
    rng = np.random.default_rng(0)
    q, v, tau = rng.uniform(-1, 1, (3, 2))
    a, b = (lw.forward_dynamics(m, method="aba", backend="numpy")(q, v, tau).a for m in (ours, same))
    np.testing.assert_allclose(a, b, rtol=2e-6)
    p, r = (lw.forward_kinematics(m, ["upper"], backend="numpy")(q).positions for m in (ours, same))
    np.testing.assert_allclose(p, r, atol=1e-6)
    np.testing.assert_allclose([ours.links[-1].limits.lower], [-np.pi / 2], rtol=1e-6)


def four_bar(path):
    """Three bars on the world, the last hinge excluded from the articulation."""
    s = Stage(path)
    for name in ("crank", "coupler", "rocker"):
        s.body(name, com=(0.25, 0, 0))
    s.joint("Revolute", "a", "", "crank")
    s.joint("Revolute", "b", "crank", "coupler", p0=(0.5, 0, 0))
    s.joint("Revolute", "d", "", "rocker", p0=(0.7, 0, 0))
    s.joint("Revolute", "c", "coupler", "rocker", p0=(0.5, 0, 0), p1=(0.5, 0, 0), excluded=True)
    s.save()
    return path


def test_excluded_joints_close_loops(tmp_path):
    model = lw.load(four_bar(tmp_path / "bars.usda"))
    (loop,) = model.constraints
    assert (loop.name, loop.rows, loop.joint) == ("c", 6, "fixed")  # in a body: the joint has limits
    assert model.nv == 4
    assert model.links[model.joint("c")].limits == model.links[model.joint("a")].limits
    q = lw.assemble(model, [0.8, 0.4, 1.2, 0.4])
    assert np.abs(lw.constraint_error(model, backend="numpy")(q, np.zeros(4)).phi).max() < 1e-12
    assert np.linalg.matrix_rank(lw.constraint_jacobian(model, backend="numpy")(q).J, 1e-9) == 3
    result = lw.forward_dynamics(model)(q, np.zeros(4), np.zeros(4))
    assert result.converged


@pytest.mark.parametrize("kind", ["Spherical", "Revolute", "Fixed"])
def test_frames_of_joints_are_those_of_the_prims_that_these_name(tmp_path, kind):
    """A joint may name a part of a body, or what stands still on the stage: its frames are seen from there."""
    models = []
    for path, named in ((tmp_path / "plain.usda", False), (tmp_path / "parts.usda", True)):
        s = Stage(path)
        for name in ("crank", "rocker"):
            s.body(name, com=(0.25, 0, 0), at=(0.3, 0.1, 0.2))
        ends: dict[str, tuple] = {"ground": (0.7, 0.2, 0), "crank/pin": (0.5, 0, 0.1)}
        if named:
            for name, at in ends.items():
                part = UsdGeom.Xform.Define(s.stage, f"/robot/{name}")
                part.AddTranslateOp().Set(Gf.Vec3d(*at))
                part.AddRotateXYZOp().Set(Gf.Vec3f(0, 0, 90))
        turned = (HALF, 0, 0, HALF)
        s.joint("Revolute", "a", "", "crank")
        if named:
            s.joint("Revolute", "d", "ground", "rocker", p0=(0.1, 0, 0))
            s.joint(kind, "c", "crank/pin", "rocker", p0=(0, 0.2, 0), p1=(0.5, 0, 0), excluded=True)
        else:
            s.joint("Revolute", "d", "", "rocker", p0=(0.7, 0.3, 0), r0=turned)
            s.joint(kind, "c", "crank", "rocker", p0=(0.3, 0, 0.1), p1=(0.5, 0, 0), r0=turned, excluded=True)
        s.save()
        models.append(lw.load(path))
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-1, 1, (2, models[0].nv))
    for f in (lw.constraint_error, lw.mass_matrix, lw.gravity_forces):
        x, y = (f(m, backend="numpy") for m in models)
        given = (q, v)[: len(x.inputs)]
        np.testing.assert_allclose(x(*given)[0], y(*given)[0], atol=1e-6)


def test_a_robot_on_no_joint_is_free_and_joints_are_reversed(tmp_path):
    s = Stage(tmp_path / "free.usda", up="Y")
    s.body("trunk")
    s.body("leg")
    s.joint("Revolute", "hip", "leg", "trunk", p1=(0, 0, -0.2), axis="X")
    s.save()
    model = lw.load(tmp_path / "free.usda")
    assert [l.joint.kind for l in model.links[1:]] == ["free", "revolute"]
    np.testing.assert_allclose(model.links[2].joint.axis, [-1, 0, 0])
    np.testing.assert_allclose(model.gravity, [0, -9.81, 0])
    assert lw.load(tmp_path / "free.usda", base="fixed").nv == 1


def test_one_of_several_articulations(tmp_path):
    s = Stage(tmp_path / "two.usda")
    s.body("one")
    other = UsdGeom.Xform.Define(s.stage, "/second").GetPrim()
    UsdPhysics.ArticulationRootAPI.Apply(other)
    UsdPhysics.RigidBodyAPI.Apply(UsdGeom.Xform.Define(s.stage, "/second/body").GetPrim())
    s.save()
    with pytest.raises(LoadError, match=r"2 articulations \('robot', 'second'\); name one by model="):
        lw.load(tmp_path / "two.usda")
    with pytest.warns(LoadWarning, match="has no mass"):
        assert lw.load(tmp_path / "two.usda", model="second").name == "second"


def test_what_cannot_be_read_is_said(tmp_path):
    s = Stage(tmp_path / "bad.usda")
    s.body("a")
    s.body("b")
    UsdPhysics.DistanceJoint.Define(s.stage, "/robot/rod")
    s.save()
    with pytest.raises(LoadError, match="PhysicsDistanceJoint; valid: 'revolute'"):
        lw.load(tmp_path / "bad.usda")
    (tmp_path / "cut.usda").write_text('#usda 1.0\ndef Xform "robot" {')
    with pytest.raises(LoadError, match="cannot be read"):
        lw.load(tmp_path / "cut.usda")
    (tmp_path / "noise.usdc").write_bytes(b"PXR-USDC" + bytes(range(256)))
    with pytest.raises(LoadError, match="cannot be read"):
        lw.load(tmp_path / "noise.usdc")


# files of strangers


def layer(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#usda 1.0\n(\n    defaultPrim = "robot"\n)\n{text}\n')
    return path


@pytest.mark.parametrize("arc", ["references", "payload", "inherits-from-layer"])
def test_layers_of_others_are_not_read(tmp_path, arc):
    arm(tmp_path / "secret.usda")
    if arc == "inherits-from-layer":
        file = tmp_path / "robot" / "a.usda"
        file.parent.mkdir()
        file.write_text("#usda 1.0\n(\n    subLayers = [@../secret.usda@]\n)\n")
    else:
        file = layer(tmp_path / "robot" / "a.usda", f'def "robot" ({arc} = @../secret.usda@) {{}}')
    with pytest.raises(LoadError, match="outside of the robot's folder"):
        lw.load(file)


@pytest.mark.parametrize("asset", ["https://example.org/a.usda", "a.usdz[b.usda]", "/etc/passwd", "../x.png"])
def test_only_layers_in_files_are_read(tmp_path, asset):
    file = layer(tmp_path / "robot" / "a.usda", f'def "robot" (references = @{asset}@) {{}}')
    with pytest.raises(LoadError):
        lw.load(file)


def test_own_layers_are_read(tmp_path):
    arm(tmp_path / "parts.usda")
    file = layer(tmp_path / "whole.usda", 'def "robot" (references = @parts.usda@) {}')
    assert lw.load(file).nv == 2


def test_copies_are_counted_before_they_are_made(tmp_path):
    """Twenty levels of two references each would be a million prims."""
    copy = 'def "{}" (references = </p{}>) {{}}'
    levels = [f'def "p{k}" {{\n{copy.format("x", k + 1)}\n{copy.format("y", k + 1)}\n}}' for k in range(20)]
    file = layer(tmp_path / "bomb.usda", "\n".join([*levels, 'def "p20" {}']))
    with pytest.raises(LoadError, match="copies counted"):
        lw.load(file)


def test_circles_are_refused(tmp_path):
    file = layer(tmp_path / "a.usda", 'def "robot" (references = </other>) {}\ndef "other" (references = </robot>) {}')
    with pytest.raises(LoadError, match="refers to itself"):
        lw.load(file)


@pytest.mark.parametrize("metre", [1.0, 0.01])
def test_drives_are_actuators(tmp_path, metre: float) -> None:
    """Stiffness is by degree; u = 0 is the file's own target, wherever units are."""
    path = arm(tmp_path / "arm.usda", metre=metre)
    stage = Usd.Stage.Open(str(path))
    for name, (k, d, x, v, most) in {
        "shoulder": (3.0, 0.5, 20.0, 4.0, 50.0),
        "elbow": (0.0, 0.2, 0.0, 8.0, 1e9),
    }.items():
        drive = UsdPhysics.DriveAPI.Apply(stage.GetPrimAtPath(f"/robot/joints/{name}"), "angular")
        drive.CreateStiffnessAttr(k / metre**2)
        drive.CreateDampingAttr(d / metre**2)
        drive.CreateTargetPositionAttr(x)
        drive.CreateTargetVelocityAttr(v)
        drive.CreateMaxForceAttr(most / metre**2)
    elbow = stage.GetPrimAtPath("/robot/joints/elbow")
    elbow.CreateAttribute("physxJoint:armature", Sdf.ValueTypeNames.Float).Set(0.3 / metre**2)
    elbow.CreateAttribute("physxJoint:maxJointVelocity", Sdf.ValueTypeNames.Float).Set(90.0)
    elbow.CreateAttribute("physxJoint:jointFriction", Sdf.ValueTypeNames.Float).Set(0.1)
    stage.GetRootLayer().Save()
    with pytest.warns(LoadWarning, match="1 x joint friction of PhysX"):
        model = lw.load(path)
    assert [a.name for a in model.actuators] == ["shoulder", "elbow"]
    degree, rate = np.pi / 180, np.array([0.4, -0.3])
    for q, u in (([0.1, 0.2], [0.0, 0.0]), ([0.1, 0.2], [0.25, 0.5]), ([-0.9, 0.2], [2.0, 0.0])):
        shoulder = 3.0 / degree * (20 * degree + u[0] - q[0]) + 0.5 / degree * (4 * degree - rate[0])
        right = [np.clip(shoulder, -50, 50), 0.2 / degree * (8 * degree + u[1] - rate[1])]
        np.testing.assert_allclose(lw.actuation(model, backend="numpy")(q, rate, u).tau, right, rtol=1e-6)
    link = model.links[model.joint("elbow")]
    assert link.armature == pytest.approx(0.3, rel=1e-6)
    assert link.limits.velocity == pytest.approx(np.pi / 2)


def test_drives_that_are_not_forces_are_counted(tmp_path) -> None:
    path = arm(tmp_path / "arm.usda")
    stage = Usd.Stage.Open(str(path))
    drive = UsdPhysics.DriveAPI.Apply(stage.GetPrimAtPath("/robot/joints/elbow"), "angular")
    drive.CreateStiffnessAttr(3.0)
    drive.CreateTypeAttr("acceleration")
    stage.GetRootLayer().Save()
    with pytest.warns(LoadWarning, match="1 x drive by accelerations"):
        assert lw.load(path).nu == 0


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ('uniform token physics:axis = "Y"', 'uniform token physics:axis = ""', "axis ''; valid: 'X', 'Y', 'Z'"),
        ("point3f physics:localPos0", "nothing physics:localPos0", "schema has 'point3f'"),
        ('"xformOp:translate"', '"xformOp:ranslate"', "USD cannot evaluate this stage"),
        ('upAxis = "Z"', 'upAxis = "W"', "axis"),
    ],
)
def test_what_no_schema_knows_is_refused(tmp_path, written, instead, said):
    """18 of 500 mutated files ended with errors of USD, KeyError or TypeError."""
    path = arm(tmp_path / "arm.usda")
    text = path.read_text()
    assert written in text
    path.write_text(text.replace(written, instead, 1))
    with pytest.raises(lw.LinkworkError, match=said):
        lw.load(path)
