"""What is drawn and where: visuals of every format, stand-ins, link poses, constraints and their forces."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close
from linkwork.cli.demo import squatting_humanoid
from linkwork.errors import InputError
from linkwork.model import Model, Placement, Visual
from linkwork.model.visual import Box, Cylinder, Ellipsoid, Mesh
from linkwork.robots.mechanisms import four_bar, quadruped, standing
from linkwork.viewer.scene import make_scene
from linkwork.viewer.states import quaternions, states_at, states_of

URDF = """<robot name="two"><material name="blue"><color rgba="0 0 1 1"/></material>
<link name="base"><visual><geometry><box size="1 2 3"/></geometry><material name="blue"/></visual></link>
<link name="plate"><visual><origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/>
<geometry><cylinder radius="0.1" length="2"/></geometry></visual></link>
<link name="arm"><visual><geometry><sphere radius="0.5"/></geometry>
<material name="own"><color rgba="1 0 0 0.5"/></material></visual>
<visual><geometry><mesh filename="gone.stl"/></geometry></visual><visual><geometry><cone/></geometry></visual>
<inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial></link>
<joint name="fix" type="fixed"><parent link="base"/><child link="plate"/><origin xyz="5 0 0"/></joint>
<joint name="turn" type="revolute"><parent link="plate"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""

SDF = """<sdf version="1.9"><model name="m"><link name="a"><visual name="v"><pose>1 0 0 0 0 0</pose><geometry>
<ellipsoid><radii>1 2 3</radii></ellipsoid></geometry>
<material><diffuse>0 1 0</diffuse></material></visual></link></model></sdf>"""

MJCF = """<mujoco><asset><mesh name="wedge" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
<geom type="plane" size="1 1 1"/><body name="a" pos="0 0 1"><freejoint/>
<geom type="box" size="0.5 1 1.5" rgba="1 0 0 1"/><geom type="capsule" size="0.1 0.2" group="3"/>
<geom type="mesh" mesh="wedge" pos="0 0 2"/></body></worldbody></mujoco>"""


def test_visuals_of_urdf_follow_fixed_joints_and_materials():
    model = lw.load(URDF)
    with pytest.warns(UserWarning, match=r"cone.*are drawn"):
        world, arm = (l.visuals for l in model.links)
    assert [v.shape for v in world] == [Box((1, 2, 3)), Cylinder(0.1, 2)]
    assert world[0].colour == (0, 0, 1, 1)
    np.testing.assert_allclose(world[1].placement.p, (5, 0, 1))
    np.testing.assert_allclose(world[1].placement.R, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)
    assert arm[0] == Visual(Ellipsoid((0.5, 0.5, 0.5)), arm[0].placement, (1, 0, 0, 0.5))


def test_visuals_of_sdf_and_mjcf():
    (look,) = lw.load(SDF).links[1].visuals
    assert (look.shape, look.colour) == (Ellipsoid((1, 2, 3)), (0, 1, 0, 1))
    np.testing.assert_allclose(look.placement.p, (1, 0, 0))
    box, wedge = lw.load(MJCF).links[1].visuals
    assert (box.shape, box.colour) == (Box((1, 2, 3)), (1, 0, 0, 1))
    assert isinstance(wedge.shape, Mesh)
    corners = wedge.shape.vertices @ wedge.placement.R.T + wedge.placement.p
    expected = np.array([[0, 0, 2], [0, 0, 3], [0, 1, 2], [1, 0, 2]])
    np.testing.assert_allclose(sorted(map(tuple, np.round(corners, 5) + 0.0)), expected, atol=1e-5)


def test_what_is_missing_is_said_and_replaced(tmp_path):
    (tmp_path / "r.urdf").write_text(URDF)
    scene = make_scene(lw.load(tmp_path / "r.urdf"))
    assert scene.drawn == {0, 1}
    assert any("gone.stl" in n for n in scene.notes)
    assert any("cone" in n for n in scene.notes)
    (tmp_path / "r.urdf").write_text(URDF.replace('<sphere radius="0.5"/>', '<mesh filename="gone.stl"/>'))
    again = make_scene(lw.load(tmp_path / "r.urdf"))
    assert 1 in again.drawn, "the arm lost all its visuals and needs a stand-in"


def test_combined_models_keep_their_looks():
    arm = lw.load(URDF.replace("<visual><geometry><cone/></geometry></visual>", ""))
    both = lw.combine(arm, lw.Part(arm, "second/", to="arm", placement=Placement(p=np.array([0.0, 0.0, 7.0]))))
    shapes = [[type(v.shape).__name__ for v in l.visuals] for l in both.links]
    assert shapes == [["Box", "Cylinder"], ["Ellipsoid", "MeshFile", "Box", "Cylinder"], ["Ellipsoid", "MeshFile"]]
    np.testing.assert_allclose(both.links[1].visuals[3].placement.p, (5, 0, 8))


def test_a_stand_in_is_the_ellipsoid_of_its_inertia():
    b = lw.Builder()
    radii = np.array([0.1, 0.2, 0.3])
    I = 2.0 / 5 * np.diag([radii[1] ** 2 + radii[2] ** 2, radii[0] ** 2 + radii[2] ** 2, radii[0] ** 2 + radii[1] ** 2])
    turn = Placement.at((0.3, -0.1, 0.5), (0.4, -0.8, 1.2))
    b.link("a", joint="revolute", axis="z", inertia=lw.BodyInertia(2.0, np.zeros(3), I).moved(turn))
    (part,) = [p for p in make_scene(b.build()).parts if p.kind == "inertia"]
    local = (part.surface.vertices - turn.p) @ turn.R
    np.testing.assert_allclose(local.max(axis=0), radii, rtol=1e-2)
    np.testing.assert_allclose(local.min(axis=0), -radii, rtol=1e-2)


@pytest.mark.parametrize("make", [four_bar, quadruped, lambda: squatting_humanoid()[0]])
def test_every_link_with_mass_is_drawn(make):
    model: Model = make()
    heavy = {i for i, l in enumerate(model.links) if i and l.inertia.mass > 0}
    scene = make_scene(model)
    assert heavy <= scene.drawn
    assert not scene.notes


def test_poses_and_centre_of_mass_are_those_of_the_model():
    model = quadruped()
    q = model.random_q(3)
    s = states_at(model, q)
    fk = lw.forward_kinematics(model, backend="numpy")(q)
    np.testing.assert_allclose(s.positions[0, 1:], fk.positions, atol=1e-12)
    np.testing.assert_allclose(s.rotations[0, 1:], fk.rotations, atol=1e-12)
    for R, xyzw in zip(s.rotations[0], quaternions(s.rotations[0]), strict=True):
        np.testing.assert_allclose(Placement.from_quaternion(np.zeros(3), xyzw).R, R, atol=1e-12)
    masses = np.array([l.inertia.mass for l in model.links])
    coms = np.array([s.positions[0, i] + s.rotations[0, i] @ l.inertia.com for i, l in enumerate(model.links)])
    assert_close(s.com[0], masses @ coms / masses.sum())


@pytest.fixture(scope="module")
def standing_quadruped():
    """A second of standing, held by stiff joints: contact forces in world axes carry the weight."""
    model, stand = quadruped(), standing(quadruped())
    feet = ("front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot")
    model = model.with_constraints(*(lw.point(f) for f in feet))

    def controller(t, q, v):
        tau = np.zeros(model.nv)
        tau[6:] = 200 * (stand[7:] - q[7:]) - 8 * v[6:]
        return tau

    run = lw.simulate(model, stand, None, controller, duration=1.0, ground=0.0, projection=True, every=2)
    return model, run


def test_forces_are_those_on_the_robot_in_world_axes(standing_quadruped):
    """What the feet carry is the rate of momentum plus the weight; at rest, the weight straight up."""
    model, run = standing_quadruped
    s = states_of(model, run, fps=20)
    assert s.forces.shape == (len(s.t), 4, 3)
    total = s.forces[-1].sum(axis=0)
    np.testing.assert_allclose(total, [0, 0, 9.81 * model.mass], atol=0.02 * 9.81 * model.mass)
    np.testing.assert_allclose(s.ends[-1, :, 0, 2], 0, atol=1e-6)
    assert s.active.all()


def test_a_motion_is_thinned_out_to_the_frames_asked_for(standing_quadruped):
    model, run = standing_quadruped
    s = states_of(model, run, fps=25)
    assert len(s.t) == 26
    np.testing.assert_allclose(np.diff(s.t), 0.04, atol=2.1e-3)
    assert len(states_of(model, run, fps=1e5).t) == len(run)


def test_a_motion_of_another_robot_is_refused(standing_quadruped):
    _, run = standing_quadruped
    with pytest.raises(InputError, match="not one of 'four-bar'"):
        states_of(four_bar(), run)
    with pytest.raises(InputError, match="above zero"):
        states_of(standing_quadruped[0], run, fps=0)


@pytest.mark.parametrize(
    ("note", "shown"),
    [
        ("mesh '/home/me/robots/arm/link.stl' is missing", "mesh 'link.stl' is missing"),
        (r"mesh 'C:\robots\arm\link.stl' is missing", "mesh 'link.stl' is missing"),
        ("2 of 3/4 done at 1/s: package://arm/link.stl", "2 of 3/4 done at 1/s: package://arm/link.stl"),
    ],
)
def test_pages_do_not_tell_where_files_are(note: str, shown: str) -> None:
    from linkwork.viewer.html import _without_folders

    assert _without_folders(note) == shown
