"""What files of public repositories contain and no standard foresees: they load as they were meant, or say why not."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import linkwork as lw
from linkwork import interop
from linkwork.errors import LoadError
from linkwork.io.load import LoadWarning

BODY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
PAIR = f"""<robot name="pair"><link name="a">{BODY}</link><link name="b">{BODY}</link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""


# XML


@pytest.mark.parametrize(
    "before",
    [
        '\n\n<?xml version="1.0"?>',
        '<!-- made by -- hand --->\n<?xml version="1.0"?>\n<!-- a--b -->',
        '\ufeff \n<?xml version="1.0" encoding="utf-8"?>',
        "<!-- -- -->",
        "<!-- <link name='not me'/> -- -->",
    ],
)
def test_what_stands_before_the_declaration_and_in_comments(before):
    assert lw.load(before + PAIR) == lw.load(PAIR)


def test_errors_behind_such_comments_name_the_line():
    with pytest.raises(LoadError, match=r"line 4\b.*not well-formed"):
        lw.load('<!-- -- -->\n<?xml version="1.0"?>\n<robot name="r">\n<link></robot>')
    with pytest.raises(LoadError, match="not well-formed"):
        lw.load("<!-- never closed -- <robot/>")


def test_many_unclosed_comments_take_no_time():
    started = time.process_time()
    for text in ("<!-- " * 500_000, "<![CDATA[" * 300_000, "<!" * 1_000_000):
        with pytest.raises(LoadError):
            lw.load("<robot>" + text)
    assert time.process_time() - started < 5


# URDF


def test_an_inertial_without_anything_is_none():
    text = '<robot name="r"><link name="cube"><inertial><density value="500"/></inertial></link></robot>'
    with pytest.warns(LoadWarning, match="no <mass>; the link is massless"):
        model = lw.load(text, base="free")
    assert model.links[model.link("cube")].inertia == lw.BodyInertia()


def test_room_for_simulating_does_not_matter():
    """Old files reserve thousands of rows, contacts and numbers."""
    size = '<size njmax="8000" nconmax="5000" nstack="600000"/>'
    body = "<worldbody><body><joint/><geom size='1'/></body></worldbody>"
    assert lw.load(f"<mujoco>{size}{body}</mujoco>").nv == 1


def test_an_inertial_without_inertia_is_a_point_mass():
    text = PAIR.replace('<inertia ixx="1" iyy="1" izz="1"/>', "", 1)
    with pytest.warns(LoadWarning, match="no <inertia>; the link is a point mass"):
        model = lw.load(text, base="free", merge_fixed=False)
    assert model.links[1].inertia.mass == 1
    np.testing.assert_array_equal(model.links[1].inertia.I, np.zeros((3, 3)))


def test_the_world_needs_no_link():
    text = PAIR.replace(
        '<joint name="j"',
        '<joint name="up" type="prismatic"><parent link="world"/><child link="a"/></joint><joint name="j"',
    )
    model = lw.load(text)
    assert [model.links[l.parent].name for l in model.links[1:]] == ["world", "a"]
    assert [l.joint_name for l in model.links[1:]] == ["up", "j"]


def test_rotor_inertias_of_drake():
    rotor = """<transmission name="t"><joint name="j"/><actuator name="m"><drake:gear_ratio value="-6"/>
    <drake:rotor_inertia value="0.02"/></actuator></transmission></robot>"""
    model = lw.load(PAIR.replace("</robot>", rotor))
    np.testing.assert_allclose(model.links[-1].armature, [0.72])
    with pytest.raises(LoadError, match="rotor is negative"):
        lw.load(PAIR.replace("</robot>", rotor.replace("0.02", "-0.02")))


def test_inertias_that_break_the_triangle_inequality():
    with pytest.warns(LoadWarning, match="larger than the sum of the other two"):
        lw.load(PAIR.replace('izz="1"', 'izz="3"', 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.load(PAIR.replace('iyy="1" izz="1"', 'iyy="0.4999" izz="0.5"', 1))  # a rod, with four digits


# xacro

HEAD = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
ARM = f"""{HEAD}<xacro:include filename="parts.xacro"/><xacro:part name="a"/><xacro:part name="b"/>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""
PARTS = f"""{HEAD}<xacro:macro name="part" params="name"><link name="${{name}}"><inertial><mass value="${{0.5 * 2}}"/>
<inertia ixx="1" iyy="1" izz="1"/></inertial></link></xacro:macro></robot>"""


def test_xacro_is_recognised_without_its_package(tmp_path, missing):
    (tmp_path / "arm.xacro").write_text(ARM)
    missing("xacro")
    with pytest.raises(LoadError, match=r"is a xacro file, not URDF.*linkwork\[xacro\]"):
        lw.load(tmp_path / "arm.xacro")
    with pytest.raises(LoadError, match="this is xacro"):
        lw.load(ARM)
    assert (
        lw.load(PAIR.replace("<robot ", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ')).nv == 1
    )  # expanded already


BOMBS = {
    "macros": "".join(
        f'<xacro:macro name="m{k}"><xacro:m{k - 1}/><xacro:m{k - 1}/></xacro:macro>'
        if k
        else '<xacro:macro name="m0"><link name="a"/></xacro:macro>'
        for k in range(40)
    )
    + "<xacro:m39/>",
    "itself": '<xacro:macro name="m"><xacro:m/><xacro:m/></xacro:macro><xacro:m/>',
}


@pytest.mark.parametrize("kind", BOMBS)
def test_hostile_xacro_takes_no_more_than_five_seconds(tmp_path, kind):
    pytest.importorskip("xacro")
    resource = pytest.importorskip("resource")
    (tmp_path / "bomb.xacro").write_text(f"{HEAD}{BOMBS[kind]}</robot>")

    def used() -> float:
        child = resource.getrusage(resource.RUSAGE_CHILDREN)
        return child.ru_utime + child.ru_stime

    before = used()
    with pytest.raises(LoadError, match="xacro"):
        lw.load(tmp_path / "bomb.xacro")
    assert used() - before < 5.0


def test_xacro_is_expanded(tmp_path):
    pytest.importorskip("xacro")
    (tmp_path / "arm.xacro").write_text(ARM)
    (tmp_path / "parts.xacro").write_text(PARTS)
    assert lw.load(tmp_path / "arm.xacro") == lw.load(PAIR.replace('"pair"', '"r"'))


@pytest.mark.parametrize(
    ("link", "told"),
    [
        ("${load_yaml('SECRET')}", "not one of the robot's own"),
        ("${().__class__}", "invalid name"),
        ("$(env HOME)", "is not set"),
        ("$(find elsewhere)", "is not in the robot's folder"),
    ],
)
def test_xacro_reads_nothing_but_its_own(tmp_path, link, told):
    pytest.importorskip("xacro")
    secret = tmp_path / "secret.yaml"
    secret.write_text("key: 1\n")
    robot = tmp_path / "robot"
    robot.mkdir()
    (robot / "r.xacro").write_text(f'{HEAD}<link name="{link.replace("SECRET", str(secret))}"/></robot>')
    with pytest.raises(LoadError, match=told):
        lw.load(robot / "r.xacro")


def test_xacro_includes_nothing_of_others(tmp_path):
    pytest.importorskip("xacro")
    (tmp_path / "parts.xacro").write_text(PARTS)
    (tmp_path / "robot").mkdir()
    (tmp_path / "robot" / "arm.xacro").write_text(ARM.replace("parts.xacro", "../parts.xacro"))
    with pytest.raises(LoadError, match="not one of the robot's own"):
        lw.load(tmp_path / "robot" / "arm.xacro")


@pytest.mark.parametrize(
    "action",
    [
        "os.system('touch FILE')",
        "open('FILE', 'w')",
        "__import__('socket').socket()",
        "os.remove('FILE')",
        "os.listxattr('/')",
    ],
)
def test_a_process_that_expands_can_do_nothing_else(tmp_path, action):
    """Were an expression to get past xacro's own checks, the process could still not act."""
    file = tmp_path / "there"
    file.write_text("")
    code = (
        "import os, sys, socket, subprocess; from linkwork.io import xacro_expand as x; "
        f"sys.addaudithook(lambda e, a: x._audit(e, a, [{str(tmp_path / 'robot')!r}])); "
        + action.replace("FILE", str(tmp_path / ("there" if "remove" in action else "new")))
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Refused" in done.stderr
    assert file.exists()
    assert not (tmp_path / "new").exists()


# SDF

INERTIA = "<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"
LINK = f'<link name="{{}}">{INERTIA}</link>'
HINGE = '<joint name="{}" type="revolute"><parent>base</parent><child>{}</child><axis><xyz>0 1 0</xyz></axis></joint>'


def model(name: str, inside: str = "") -> str:
    return f'<model name="{name}">{LINK.format("base")}{inside}</model>'


def test_one_of_several_models():
    world = f'<sdf version="1.8"><world name="w">{model("cart")}{model("crane", LINK.format("hook"))}</world></sdf>'
    with pytest.raises(LoadError, match=r"2 models \('cart', 'crane'\); name one by model="):
        lw.load(world)
    assert lw.load(world, model="crane", merge_fixed=False).name == "crane"
    with pytest.raises(LoadError, match=r"no model called 'crain'\. Did you mean 'crane'"):
        lw.load(world, model="crain")
    with pytest.raises(LoadError, match="URDF and MJCF files have one robot"):
        lw.load(PAIR, model="pair")


def test_a_link_and_a_joint_of_one_name():
    text = LINK.format("arm") + HINGE.format("arm", "arm")
    loaded = lw.load(f'<sdf version="1.6">{model("crane", text)}</sdf>')
    assert [l.name for l in loaded.links[1:]] == ["base", "arm"]
    assert loaded.links[2].joint_name == "arm/joint"


@pytest.fixture
def workshop(tmp_path):
    """A folder of models, each with its model.config, and a world that includes them."""
    wheel = "<include><uri>model://wheel</uri><name>left</name><pose>0 1 0 0 0 0</pose></include>"
    for name, inside in (("wheel", ""), ("cart", wheel + HINGE.format("axle", "left::base"))):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "model.config").write_text(f'<model><name>{name}</name><sdf version="1.8">model.sdf</sdf></model>')
        (folder / "model.sdf").write_text(f'<sdf version="1.8">{model(name, inside)}</sdf>')
    return tmp_path


def test_models_are_included(workshop):
    cart = lw.load(workshop / "cart" / "model.sdf")
    assert [l.name for l in cart.links[1:]] == ["base", "left::base"]
    np.testing.assert_allclose(cart.links[2].placement.p, [0, 1, 0])
    (workshop / "world.sdf").write_text(
        '<sdf version="1.8"><world name="w"><include><uri>model://cart</uri><name>mine</name></include></world></sdf>'
    )
    assert lw.load(workshop / "world.sdf").name == "mine"


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("model://../secret", "leaves its package"),
        ("model://wheel/../../secret", "leaves its package"),
        ("../../secret.sdf", "outside of the robot's folder"),
        ("file:///etc/passwd", "outside of the robot's folder"),
        ("ftp://somewhere/model", "is not followed"),
        ("model://cart", "in a circle"),
    ],
)
def test_includes_stay_at_home(workshop, uri, told):
    file = workshop / "cart" / "model.sdf"
    file.write_text(file.read_text().replace("model://wheel", uri))
    with pytest.raises(LoadError, match=told):
        lw.load(file)


@pytest.mark.parametrize("uri", ["model://nowhere", "https://fuel.example.org/1.0/a/models/b"])
def test_what_is_missing_is_left_out(workshop, uri):
    (workshop / "world.sdf").write_text(
        f'<sdf version="1.8"><world name="w"><include><uri>{uri}</uri></include>{model("cart")}</world></sdf>'
    )
    with pytest.warns(LoadWarning, match="left out"):
        assert lw.load(workshop / "world.sdf").name == "cart"


def test_a_config_that_names_a_file_of_others(workshop):
    (workshop / "wheel" / "model.config").write_text("<model><sdf>../../secret.sdf</sdf></model>")
    with pytest.raises(LoadError, match="outside of the robot's folder"):
        lw.load(workshop / "cart" / "model.sdf")


# MJCF


def test_a_weld_between_bodies_that_nothing_separates():
    pytest.importorskip("mujoco")
    ball = '<body name="{}"><geom size="0.1"/>{}</body>'
    bodies = ball.format("a", "") + ball.format("b", "") + ball.format("c", "<freejoint/>")
    text = f"""<mujoco><worldbody>{bodies}</worldbody>
    <equality><weld name="still" body1="a" body2="b"/><weld name="real" body1="a" body2="c"/></equality></mujoco>"""
    with pytest.warns(LoadWarning, match="'still' ties bodies that no joint separates"):
        loaded = lw.load(text)
    assert [c.name for c in loaded.constraints] == ["real"]


def test_attached_models(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "part.xml").write_text("""<mujoco model="part"><worldbody>
    <body name="p"><joint name="h" axis="0 1 0"/><geom size="0.1"/></body></worldbody></mujoco>""")
    (tmp_path / "all.xml").write_text("""<mujoco model="all">
    <asset><model name="part" file="part.xml"/></asset>
    <worldbody><body name="b"><freejoint/><geom size="0.1"/>
    <attach model="part" body="p" prefix="x_"/></body></worldbody></mujoco>""")
    assert [l.name for l in lw.load(tmp_path / "all.xml").links[1:]] == ["b", "x_p"]


def test_mujoco_models_with_unnamed_bodies():
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><worldbody><body><freejoint/><geom size="0.1"/>
    <body pos="0 0 1"><joint axis="0 1 0"/><joint axis="1 0 0"/>
    <geom size="0.1"/></body></body></worldbody></mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(text)
    ours = lw.load(text)
    q = ours.random_q(np.random.default_rng(0))
    there = interop.mujoco(ours, theirs)
    np.testing.assert_allclose(there.q_from(there.q_to(q)), q, atol=1e-15)
