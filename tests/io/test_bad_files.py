"""Files that cannot be robots: one typed error that names the file, the element and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwork.errors import InputError, LinkworkError, LoadError, MissingExtra, NotFound
from linkwork.io import xml
from linkwork.io.load import LoadWarning, load
from surroundings import Missing

INERTIAL = """<inertial><mass value="{m}"/><inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="{xy}" ixz="0" iyz="0"/>
  </inertial>"""
GOOD = {"m": 1, "xx": 1, "yy": 1, "zz": 1, "xy": 0}


def joint(name: str, parent: str, child: str, kind: str = "revolute", inside: str = "") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def links(*names: str) -> str:
    return "".join(f'<link name="{n}">{INERTIAL.format(**GOOD)}</link>' for n in names)


def heavy(**changes: object) -> str:
    return f'{links("a")}<link name="b">{INERTIAL.format(**GOOD | changes)}</link>{joint("j", "a", "b")}'


BAD_URDF = {
    "no links": ("", "no <link>"),
    "missing link": (links("a", "b") + joint("j", "a", "bb"), r"<child>.*no link called 'bb'.*Did you mean 'b'"),
    "no parent": (links("a", "b") + '<joint name="j" type="fixed"><child link="b"/></joint>', r"'j'>.*<parent>"),
    "two parents": (links("a", "b", "c") + joint("j", "a", "c") + joint("k", "b", "c"), "the child of joint 'j'"),
    "cycle": (links("r", "a", "b") + joint("j", "a", "b") + joint("k", "b", "a"), r"cycle.*<loop>"),
    "only a cycle": (links("a", "b") + joint("j", "a", "b") + joint("k", "b", "a"), "cycle"),
    "itself": (links("a") + joint("j", "a", "a"), "cycle"),
    "two roots": (links("a", "b"), "have no parent"),
    "same link twice": (links("a", "a"), "another link of this name"),
    "same joint twice": (links("a", "b", "c") + joint("j", "a", "b") + joint("j", "b", "c"), "another joint"),
    "unnamed link": ("<link/>", "'name' is missing"),
    "empty name": ('<link name=" "/>', "'name' is empty"),
    "joint type": (links("a", "b") + joint("j", "a", "b", "revolut"), r"<joint name='j'>.*Did you mean 'revolute'"),
    "no joint type": (links("a", "b") + joint("j", "a", "b").replace("type", "kind"), "'type' is missing"),
    "zero axis": (links("a", "b") + joint("j", "a", "b", inside='<axis xyz="0 0 0"/>'), "zero vector"),
    "two numbers": (links("a", "b") + joint("j", "a", "b", inside='<axis xyz="0 1"/>'), "3 numbers"),
    "not a number": (links("a", "b") + joint("j", "a", "b", inside='<origin xyz="0 0 nan"/>'), "finite"),
    "words": (links("a", "b") + joint("j", "a", "b", inside='<origin xyz="a b c"/>'), "'a b c', not 3 numbers"),
    "xacro": (links("a", "b") + joint("j", "a", "b", inside='<origin xyz="0 0 ${h}"/>'), "xacro"),
    "infinite": (links("a", "b") + joint("j", "a", "b", inside='<origin xyz="0 0 1e999"/>'), "finite"),
    "negative mass": (heavy(m=-1), r"<link name='b'>.*mass is negative"),
    "negative inertia": (heavy(xx=-1), r"<link name='b'>.*negative"),
    "indefinite inertia": (heavy(xy=5), "negative moment of inertia"),
    "infinite mass": (heavy(m="inf"), "finite"),
    "no mass": ('<link name="a"><inertial><inertia ixx="1" iyy="1" izz="1"/></inertial></link>', "<mass> is missing"),
    "mimics itself": (links("a", "b") + joint("j", "a", "b", inside='<mimic joint="j"/>'), "itself"),
    "mimics a free joint": (
        links("a", "b", "c") + joint("j", "a", "b", "floating") + joint("k", "b", "c", inside='<mimic joint="j"/>'),
        "one degree",
    ),
    "loop type": (
        links("a", "b") + joint("j", "a", "b") + '<loop name="l" type="x"><predecessor link="a"/>'
        '<successor link="b"/></loop>',
        "no cut joint called 'x'",
    ),
    "loop end": (
        links("a", "b") + joint("j", "a", "b") + '<loop name="l" type="fixed"><predecessor link="a"/></loop>',
        "<successor> is missing",
    ),
    "loop on one link": (
        links("a") + '<loop name="l" type="fixed"><predecessor link="a"/><successor link="a"/></loop>',
        "same link",
    ),
    "coupling of nothing": (
        links("a", "b") + joint("j", "a", "b") + '<coupling name="c"><predecessor link="b"/>'
        '<successor link="b"/><ratio value="1"/></coupling>',
        "no joint moves the successor",
    ),
}


@pytest.mark.parametrize("case", BAD_URDF)
def test_urdf(case: str, tmp_path: Path) -> None:
    body, message = BAD_URDF[case]
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r">{body}</robot>')
    with pytest.raises(LoadError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "line" in str(caught.value) or case in ("loop on one link", "xacro")


SDF_LINKS = '<link name="a"/><link name="b"/>'
BAD_SDF = {
    "no model": ('<sdf version="1.7"/>', "there is no <model>"),
    "two models": ('<sdf version="1.7"><model name="a"/><model name="b"/></sdf>', "2 models"),
    "version": ('<sdf version="x"/>', "version"),
    "no links": ('<sdf version="1.7"><model name="m"/></sdf>', "no <link>"),
    "missing link": (
        f'<sdf version="1.7"><model name="m">{SDF_LINKS}<joint name="j" type="ball"><parent>a</parent>'
        "<child>c</child></joint></model></sdf>",
        "no link, joint or frame called 'c'",
    ),
    "child world": (
        f'<sdf version="1.7"><model name="m">{SDF_LINKS}<joint name="j" type="ball"><parent>a</parent>'
        "<child>world</child></joint></model></sdf>",
        "called 'world'",
    ),
    "itself": (
        f'<sdf version="1.7"><model name="m">{SDF_LINKS}<joint name="j" type="ball"><parent>a</parent>'
        "<child>a</child></joint></model></sdf>",
        "both 'a'",
    ),
    "joint type": (
        f'<sdf version="1.7"><model name="m">{SDF_LINKS}<joint name="j" type="bal"><parent>a</parent>'
        "<child>b</child></joint></model></sdf>",
        "Did you mean 'ball'",
    ),
    "no axis": (
        f'<sdf version="1.7"><model name="m">{SDF_LINKS}<joint name="j" type="revolute"><parent>a</parent>'
        "<child>b</child></joint></model></sdf>",
        "<axis> is missing",
    ),
    "pose": ('<sdf version="1.7"><model name="m"><link name="a"><pose>1 2</pose></link></model></sdf>', "6 numbers"),
    "circle of poses": (
        '<sdf version="1.7"><model name="m"><link name="a"><pose relative_to="f"/></link>'
        '<frame name="f"><pose relative_to="a"/></frame></model></sdf>',
        "circle",
    ),
    "circle of frames": (
        '<sdf version="1.7"><model name="m"><link name="a"/><frame name="f" attached_to="g"/>'
        '<frame name="g" attached_to="f"/></model></sdf>',
        "circle",
    ),
    "same name": ('<sdf version="1.7"><model name="m"><link name="a"/><link name="a"/></model></sdf>', "taken"),
    "negative mass": (
        '<sdf version="1.7"><model name="m"><link name="a"><inertial><mass>-1</mass></inertial></link></model></sdf>',
        "negative",
    ),
}


@pytest.mark.parametrize("case", BAD_SDF)
def test_sdf(case: str, tmp_path: Path) -> None:
    text, message = BAD_SDF[case]
    path = tmp_path / "robot.sdf"
    path.write_text(text)
    with pytest.raises(LoadError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>",
        "<mujoco><nonsense/></mujoco>",
        '<mujoco><include file="not_there.xml"/></mujoco>',
        '<mujoco><worldbody><body pos="1 2"><geom size="1"/></body></worldbody></mujoco>',
    ],
)
def test_mjcf(text: str, tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    path.write_text(text)
    with pytest.raises(LoadError, match="MuJoCo's compiler") as caught:
        load(path)
    assert str(path) in str(caught.value)


BILLION = (
    "<!DOCTYPE r [<!ENTITY a 'ha'>"
    + "".join(f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)
QUADRATIC = b"<!DOCTYPE r [<!ENTITY a '" + b"x" * 100_000 + b"'>]><robot>" + b"&a;" * 1000 + b"</robot>"
BAD_BYTES = {
    "empty": (b"", "empty"),
    "blanks": (b" \n\t ", "empty"),
    "binary": (bytes(range(256)) * 10, "XML"),
    "text": (b"hello", "not well-formed"),
    "truncated": (b'<robot name="r"><link name="a">', "cut off"),
    "truncated tag": (b'<robot name="r"><link na', "cut off"),
    "two roots": (b"<robot/><robot/>", "not well-formed"),
    "only a comment": (b"<!-- nothing -->", "XML"),
    "other xml": (b"<html/>", "first element must be one of <robot>"),
    "include": (b"<mujocoinclude/>", "first element"),
    "unknown encoding": (b"<?xml version='1.0' encoding='klingon'?><robot/>", "XML"),
    "wrong encoding": (b"<?xml version='1.0' encoding='utf-8'?><robot name='\xff\xfe'/>", "XML"),
    "bomb": (BILLION.encode() + b"<robot name='&i;'/>", "entities are not expanded"),
    "quadratic bomb": (QUADRATIC, "entit"),
    "file entity": (b"<!DOCTYPE r [<!ENTITY a SYSTEM 'file:///etc/hostname'>]><robot name='r'>&a;</robot>", "entit"),
    "parameter entity": (b"<!DOCTYPE r [<!ENTITY % a SYSTEM 'http://localhost/x.dtd'> %a;]><robot/>", "entit"),
    "undeclared entity": (b"<robot>&a;</robot>", "not well-formed"),
    "deep": (b"<robot>" + b"<a>" * 100_000, "deep"),
    "many": (b"<robot>" + b"<a/>" * 300_000 + b"</robot>", "more than 200000"),
}


@pytest.mark.parametrize("case", BAD_BYTES)
def test_bytes(case: str, tmp_path: Path) -> None:
    data, message = BAD_BYTES[case]
    path = tmp_path / "robot.urdf"
    path.write_bytes(data)
    with pytest.raises(LoadError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_places(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="is a directory"):
        load(tmp_path)
    with pytest.raises(LoadError, match="is not there"):
        load(tmp_path / "robot.urdf")
    with pytest.raises(LoadError, match="neither a file nor a known robot"):
        load("no_such_robot_at_all")
    for nothing in ("", " ", "a\0b"):
        with pytest.raises(LoadError):
            load(nothing)
    with pytest.raises(InputError, match="not 3"):
        load(3)  # type: ignore[arg-type]
    big = tmp_path / "big.urdf"
    big.write_bytes(b"<robot>" + b" " * 2000 + b"</robot>")
    with pytest.raises(LoadError, match="MiB"):
        xml.read(big, limit=1000)


def test_arguments() -> None:
    text = f'<robot name="r">{links("a")}</robot>'
    with pytest.raises(NotFound, match="Valid: 'fixed', 'free', 'planar'"):
        load(text, "floating")
    with pytest.raises(NotFound, match="Valid: 'urdf', 'mjcf', 'sdf'"):
        load(text, format="xml")
    with pytest.raises(LoadError, match="this is a URDF file, not SDF"):
        load(text, format="sdf")
    assert load(text, "free", format="urdf", gravity=(0, 0, -1)).gravity[2] == -1
    with pytest.raises(LinkworkError):
        load(text, gravity=(0, 1))


def test_mistakes_that_do_no_harm_are_told() -> None:
    body = links("a", "b", "c") + joint("j", "a", "b") + joint("k", "b", "c", inside='<mimic joint="x"/>')
    with pytest.warns(LoadWarning, match="'k' mimic joints that are not there"):
        assert load(f"<robot>{body}</robot>").nv == 2
    odd = heavy(xy=1.1).replace('<mass value="1"/>', '<origin xyz="1 1 0"/><mass value="1"/>')
    with pytest.warns(LoadWarning, match="'b' have a negative principal moment"):
        load(f"<robot>{odd}</robot>")
    body = links("a", "b") + joint("j", "a", "b", inside='<limit lower="1" upper="-1" effort="3" velocity="1"/>')
    with pytest.warns(LoadWarning, match="lower limit 1 is above the upper limit -1"):
        limits = load(f"<robot>{body}</robot>").links[-1].limits
    assert (limits.lower, limits.upper, limits.effort) == (-float("inf"), float("inf"), 3.0)


def test_absent_mujoco_names_the_extra(missing: Missing) -> None:
    missing("mujoco")
    with pytest.raises(MissingExtra, match=r"linkwork\[mjcf\]"):
        load("<mujoco/>")
