"""Robot files by somebody who means harm: no call hangs, takes all memory, ends untyped or reads files of others.

Each file here did one of these once, or is of the same kind; most tests would run for minutes without the limits.
"""

from __future__ import annotations

import os
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
from loaded import quiet_load

import linkwork as lw
from linkwork.errors import InputError, LinkworkError, LoadError
from linkwork.io import collada as view_collada
from linkwork.io import files, meshes, mjcf_limits, xml
from linkwork.io.mesh_paths import locate
from linkwork.io.meshes import read_mesh
from linkwork.model.visual import MeshFile
from linkwork.viewer import scene as view_scene
from linkwork.viewer.scene import MAX_VISUALS, make_scene
from linkwork.viewer.surface import CROWD, smooth
from surroundings import Environment

SDF = '<sdf version="1.7"><model name="m">{}</model></sdf>'
OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


@pytest.fixture(autouse=True)
def nothing_given(environment: Environment) -> None:
    """No folder is named by the user."""
    for variable, _ in (*files.ROBOTS, *files.WORKSPACES):
        environment.pop(variable, None)


# paths that are no files


@pytest.mark.parametrize("suffix", [".urdf", ".xml", ".stl"])
def test_pipes_are_not_opened(tmp_path: Path, suffix: str) -> None:
    """Opening one would wait for a writer for ever."""
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    (tmp_path / "r.urdf").write_text("<robot/>")
    mesh = MeshFile("pipe.stl", str(tmp_path / "r.urdf"))
    with pytest.raises(LoadError, match="pipe"):
        locate(mesh) if suffix == ".stl" else lw.load(pipe)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/stdin", "/" + "x" * 5000, "/" + "x/" * 3000])
def test_devices_and_long_names(path: str) -> None:
    with pytest.raises(LoadError):
        lw.load(path)


# names, frames, links: linear, and bounded


def test_chains_of_frames() -> None:
    """Each frame is attached to the next, the last to the link: 9 000 of them took 10^11 comparisons."""
    frames = "".join(
        f'<frame name="f{i}" attached_to="f{i + 1}"><pose relative_to="f{i + 1}">1 0 0 0 0 0</pose></frame>'
        for i in range(3000)
    )
    model = quiet_load(SDF.format(f'<link name="a"/>{frames}<frame name="f3000" attached_to="a"/>'))
    assert model.frame("f0").placement.p == pytest.approx([3000, 0, 0])


def test_names_with_colons() -> None:
    """Flattened files have links called "model::link" without such a model."""
    joint = (
        '<joint name="m::j" type="revolute"><parent>m::a</parent><child>b</child><axis>'
        '<xyz expressed_in="m::a">0 1 0</xyz></axis></joint>'
    )
    nested = '<model name="n"><link name="c"/><link name="x::d"/><frame name="f" attached_to="x::d"/></model>'
    model = quiet_load(SDF.format(f'<link name="m::a"/><link name="b"/>{joint}{nested}'))
    assert [l.name for l in model.links] == ["world", "m::a", "b", "n::c", "n::x::d"]
    assert model.frame("n::f").link == model.link("n::x::d")


MANY = {
    "sdf links": SDF.format("".join(f'<link name="a{i}"/>' for i in range(xml.MAX_LINKS + 1))),
    "sdf frames": SDF.format('<link name="a"/>' + "".join(f'<frame name="f{i}"/>' for i in range(3 * xml.MAX_LINKS))),
    "sdf loops": SDF.format(
        '<link name="a"/><link name="b"/>'
        + "".join(
            f'<joint name="j{i}" type="ball"><parent>a</parent><child>b</child></joint>'
            for i in range(xml.MAX_CONSTRAINTS + 2)
        )
    ),
    "urdf links": "<robot>" + "".join(f'<link name="a{i}"/>' for i in range(xml.MAX_LINKS + 1)) + "</robot>",
    "urdf loops": '<robot><link name="a"/>' + "<loop/>" * (xml.MAX_CONSTRAINTS + 1) + "</robot>",
    "urdf couplings": "<robot>"
    + "".join(f'<link name="l{i}">{INERTIAL}</link>' for i in range(1000))
    + "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/></joint>' for i in range(999)
    )
    + '<coupling name="c"><predecessor link="l0"/><successor link="l999"/><ratio value="1"/>'
    "</coupling>" * 100 + "</robot>",
    # MuJoCo's parser takes minutes for 100 000 of them
    "mjcf attributes": "<mujoco " + " ".join(f'a{i}="1"' for i in range(xml.MAX_ATTRIBUTES + 1)) + "/>",
}


@pytest.mark.parametrize("case", MANY)
def test_too_many(case: str) -> None:
    with pytest.raises(LoadError, match="at most"):
        quiet_load(MANY[case])


def test_long_lists_of_numbers() -> None:
    """They are not read beyond the count that is needed."""
    origin = f'<origin xyz="{"1 " * 5_000_000}"/>'
    with pytest.raises(LoadError, match="3 numbers"):
        quiet_load(
            '<robot><link name="a"/><link name="b"/><joint name="j" type="fixed"><parent link="a"/>'
            f'<child link="b"/>{origin}</joint></robot>'
        )


def test_hundreds_of_rows() -> None:
    """A kernel of 500 rows would be compiled for minutes."""
    with pytest.raises(InputError, match="500 rows over 1 links, of which at most 6 are independent"):
        lw.LinkRows({"a": np.ones((500, 6))})
    with pytest.raises(InputError, match="takes 6 over so many links"):
        lw.LinkRows({f"l{i}": np.ones((500, 6)) for i in range(100)})
    assert lw.LinkRows({"a": np.ones((12, 6))}).rows == 12
    assert lw.LinkRows({f"l{i}": np.ones((6, 6)) for i in range(100)}).rows == 6


# MuJoCo's compiler


def world(body: str, more: str = "") -> str:
    return f"<mujoco>{more}<worldbody>{body}</worldbody></mujoco>"


BODY = '<body><freejoint/><geom size="1"/></body>'
OUTSIZED = {
    "replicate": (world(f'<replicate count="100000">{BODY}</replicate>'), "copies"),
    "nested": (world('<replicate count="99">' * 3 + BODY + "</replicate>" * 3), "copies"),
    "wide": (world(f'<replicate count="1000">{BODY * 10}</replicate>'), "copies"),
    "geoms": (
        world('<body><replicate count="1000"><replicate count="1000"><geom size="1"/></replicate></replicate></body>'),
        "copies",
    ),
    "infinite": (world(f'<replicate count="1e999">{BODY}</replicate>'), "copies"),
    "none times all": (
        world(f'<replicate count="0"><composite count="1e308 1e308 0">{BODY}</composite></replicate>'),
        "copies",
    ),
    "composite": (world('<body><composite type="cable" count="1000 1000 1"/></body>'), "copies"),
    "flexcomp": (world('<flexcomp name="f" count="1000 1000 1000" dim="3"/>'), "copies"),
    "textures": (
        world(
            "",
            "<asset>"
            + "".join(f'<texture name="t{i}" type="2d" builtin="flat" width="4096" height="4096"/>' for i in range(3))
            + "</asset>",
        ),
        "width x height",
    ),
    "hfields": (
        world(
            "",
            "<asset>"
            + "".join(f'<hfield name="h{i}" nrow="2000" ncol="2000" size="1 1 1 1"/>' for i in range(3))
            + "</asset>",
        ),
        "nrow x ncol",
    ),
    "meshes": (
        world(
            "",
            "<asset>"
            + "".join(f'<mesh name="m{i}" builtin="supersphere" params="100 1 1"/>' for i in range(101))
            + "</asset>",
        ),
        "params",
    ),
    "hfield": (world("", '<asset><hfield name="h" nrow="19999" ncol="19999" size="1 1 1 1"/></asset>'), "nrow x ncol"),
    "texture": (
        world("", '<asset><texture name="t" type="2d" builtin="flat" width="19999" height="19999"/></asset>'),
        "width x height",
    ),
    "negative": (
        world("", '<asset><texture name="t" type="2d" builtin="flat" width="-99999" height="-9999"/></asset>'),
        "width x height",
    ),
    "mesh": (world("", '<asset><mesh name="m" builtin="supersphere" params="100000 1 1"/></asset>'), "params"),
    "keys": (world("", '<size nkey="100000000"/>'), "nkey"),
    "user data": (world("", '<size nuserdata="1000000000"/>'), "nuserdata"),
    "room for contacts": (world("", '<size nconmax="1000000000"/>'), "nconmax"),
    "user": (world("", '<size nuser_body="1000000000"/>'), "nuser_body"),
    "numeric": (world("", '<custom><numeric name="n" size="1000000000"/></custom>'), "size"),
    "sensor": (world("", '<sensor><user name="n" dim="1000000000"/></sensor>'), "dim"),
    "samples": (world(BODY, '<sensor><clock nsample="1000000000"/></sensor>'), "nsample"),
}


@pytest.mark.parametrize("case", OUTSIZED)
def test_outsized_mjcf(case: str, tmp_path: Path) -> None:
    """The same in the file and in one that it includes."""
    text, message = OUTSIZED[case]
    with pytest.raises(LoadError, match=message):
        quiet_load(text)
    (tmp_path / "inner.xml").write_text(text)
    (tmp_path / "robot.xml").write_text('<mujoco><include file="inner.xml"/></mujoco>')
    with pytest.raises(LoadError, match=message):
        quiet_load(tmp_path / "robot.xml")


def test_a_mesh_counts_as_often_as_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler reads it each time; convex hulls, which take longest, count more, and contacts need none here."""
    (tmp_path / "m.obj").write_text(OBJ)
    monkeypatch.setattr(mjcf_limits, "MAX_ASSETS", 4 * len(OBJ))
    body = '<body><freejoint/><geom type="mesh" mesh="m0"/></body>'

    def robot(times: int, more: str = "") -> Path:
        named = "".join(f'<mesh name="m{i}" file="m.obj" {more}/>' for i in range(times))
        (tmp_path / "robot.xml").write_text(world(body, f"<asset>{named}</asset>"))
        return tmp_path / "robot.xml"

    assert quiet_load(robot(4)).nv == 6
    for given in ((5, ""), (1, 'inertia="convex"')):
        with pytest.raises(LoadError, match="meshes and textures"):
            quiet_load(robot(*given))


def test_copies_multiply_across_files(tmp_path: Path) -> None:
    (tmp_path / "inner.xml").write_text(f'<mujoco><replicate count="100">{BODY}</replicate></mujoco>')
    (tmp_path / "robot.xml").write_text(world('<replicate count="100"><include file="inner.xml"/></replicate>'))
    with pytest.raises(LoadError, match="10000 bodies"):
        quiet_load(tmp_path / "robot.xml")
    for n in range(5):  # each attaches the next ten times
        attach = '<attach model="m" body="b" prefix="p{}"/>' if n < 4 else ""
        body = "".join(f"<body>{attach.format(k)}</body>" for k in range(10))
        asset = f'<asset><model name="m" file="m{n + 1}.xml"/></asset>' if n < 4 else ""
        (tmp_path / f"m{n}.xml").write_text(world(f'<body name="b">{body}</body>', asset))
    with pytest.raises(LoadError, match="copies counted"):
        quiet_load(tmp_path / "m0.xml")


@pytest.mark.parametrize("what", ["include", "model"])
def test_circles_of_files_end(what: str, tmp_path: Path) -> None:
    inside = '<include file="b.xml"/>' if what == "include" else '<asset><model name="m" file="b.xml"/></asset>'
    for a, b in (("a", "b"), ("b", "a")):
        (tmp_path / f"{a}.xml").write_text(f"<mujoco>{inside.replace('b.xml', f'{b}.xml')}</mujoco>")
    with pytest.raises(LoadError):
        quiet_load(tmp_path / "a.xml")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("h.png", mjcf_limits.PNG + b"\0\0\0\rIHDR" + struct.pack(">II", 30000, 30000) + b"\x10\0\0\0\0"),
        ("h.bin", struct.pack("<ii", 30000, 30000) + b"\0" * 64),
    ],
)
def test_sizes_in_headers(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    (tmp_path / "robot.xml").write_text(world("", f'<asset><hfield name="h" file="{name}" size="1 1 1 1"/></asset>'))
    with pytest.raises(LoadError, match="900000000 points"):
        quiet_load(tmp_path / "robot.xml")


@pytest.mark.parametrize(
    "start",
    [
        "<!DOCTYPE mujoco [<!-- > <mujoco><include file='/etc/passwd'/></mujoco> -->]>",
        "<?xml version='1.0' encoding='cp037'?>",
        "<?xml version='1.0' encoding='utf-7'?>",
    ],
)
def test_two_readings_of_a_file(start: str) -> None:
    """MuJoCo's reader ends a document type at the first '>' and does not heed encodings: ours must see what it sees."""
    with pytest.raises(LoadError):
        quiet_load(f"{start}{world(BODY)}")


# files of others


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """<tmp>/robot, in which a robot is, beside <tmp>/secret, which is not its own."""
    for folder in ("robot/deep", "secret"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "secret/s.obj").write_text(OBJ)
    (tmp_path / "secret/s.xml").write_text(world('<body name="secret"><geom size="1"/></body>'))
    (tmp_path / "robot/link.obj").symlink_to(tmp_path / "secret/s.obj")
    (tmp_path / "robot/link.xml").symlink_to(tmp_path / "secret/s.xml")
    (tmp_path / "robot/folder").symlink_to(tmp_path / "secret")
    (tmp_path / "robot/own.obj").write_text(OBJ)
    (tmp_path / "robot/r.urdf").write_text("<robot/>")
    (tmp_path / "robot/inner.xml").write_text(world('<body name="own"><geom size="1"/></body>'))
    return tmp_path


OUTSIDE = (
    "../secret/s.obj",
    "deep/../../secret/s.obj",
    "{}/secret/s.obj",
    "link.obj",
    "folder/s.obj",
    "file://{}/secret/s.obj",
    "package://secret/s.obj",
    "model://secret/s.obj",
    "package://robot/link.obj",
    "package://robot/folder/s.obj",
    "package://robot/../secret/s.obj",
    "package://robot/%2e%2e/secret/s.obj",
)


@pytest.mark.parametrize("name", OUTSIDE)
def test_meshes_of_others(name: str, place: Path) -> None:
    name = name.format(place)
    assert locate(MeshFile("own.obj", str(place / "robot/r.urdf"))) == place / "robot/own.obj"
    with pytest.raises(LoadError):
        locate(MeshFile(name, str(place / "robot/r.urdf")))


def test_packages_are_not_the_folders_that_all_share(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """package://tmp/... named the temporary folder, and all that anybody has there."""
    monkeypatch.setattr(files.tempfile, "gettempdir", lambda: str(place))
    for name in (f"package://{place.name}/secret/s.obj", "package://secret/s.obj"):
        with pytest.raises(LoadError):
            locate(MeshFile(name, str(place / "robot/r.urdf")))
    (place / "urdf").mkdir()
    (place / "package.xml").write_text("<package/>")  # anybody may have put it there
    (place / "urdf/r.urdf").write_text("<robot/>")
    with pytest.raises(LoadError, match="outside"):
        locate(MeshFile("../secret/s.obj", str(place / "urdf/r.urdf")))


def test_the_root_folder_and_users_without_a_home(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """A robot in / has the files in /, not all of them; a user that has no home has no shared one."""
    assert files.is_own(Path("/robot.stl"), [Path("/")])
    assert not files.is_own(Path("/etc/robot.stl"), [Path("/")])
    environment.pop("HOME", None)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert files.shared(Path("/home"))
    assert not files.shared(Path("/a/b/c"))


def test_what_is_found_still(place: Path, environment: Environment) -> None:
    """Packages above and beside the description, a folder "urdf" beside "meshes", and folders that the user names."""
    (place / "urdf").mkdir()
    (place / "urdf/r.urdf").write_text("<robot/>")
    assert locate(MeshFile("../secret/s.obj", str(place / "urdf/r.urdf"))).samefile(place / "secret/s.obj")
    robot = str(place / "robot/r.urdf")
    environment["ROS_PACKAGE_PATH"] = str(place)
    assert locate(MeshFile("package://secret/s.obj", robot)).samefile(place / "secret/s.obj")
    assert locate(MeshFile("link.obj", robot)).samefile(place / "secret/s.obj")
    del environment["ROS_PACKAGE_PATH"]
    environment["LINKWORK_ROBOTS"] = str(place)
    assert locate(MeshFile("../secret/s.obj", robot)).samefile(place / "secret/s.obj")
    del environment["LINKWORK_ROBOTS"]
    (place / "secret/package.xml").write_text("<package/>")
    assert locate(MeshFile("package://secret/s.obj", robot)).samefile(place / "secret/s.obj")
    (place / "package.xml").write_text("<package/>")
    assert locate(MeshFile("../secret/s.obj", robot)).samefile(place / "secret/s.obj")


MESH = '<asset><mesh name="m" file="{}"/></asset><worldbody><body><geom type="mesh" mesh="m"/></body></worldbody>'


@pytest.mark.parametrize(
    "inside",
    [
        '<include file="../secret/s.xml"/>',
        '<include file="{}/secret/s.xml"/>',
        '<include file="link.xml"/>',
        '<include file="folder/s.xml"/>',
        '<asset><model name="m" file="../secret/s.xml"/></asset>',
        MESH.format("../secret/s.obj"),
        MESH.format("link.obj"),
        MESH.format("folder/s.obj"),
        '<compiler meshdir="../secret"/>' + MESH.format("s.obj"),
        '<compiler assetdir="{}/secret"/>' + MESH.format("s.obj"),
        '<compiler meshdir="folder"/>' + MESH.format("s.obj"),
    ],
)
def test_includes_and_assets_of_others(inside: str, place: Path) -> None:
    (place / "robot/good.xml").write_text(f'<mujoco><include file="inner.xml"/>{MESH.format("own.obj")}</mujoco>')
    assert "own" in quiet_load(place / "robot/good.xml").frames
    inside = inside.replace("{}", str(place))
    (place / "robot/bad.xml").write_text(f"<mujoco>{inside}</mujoco>")
    with pytest.raises(LoadError, match="outside of the robot's folder"):
        quiet_load(place / "robot/bad.xml")
    (place / "robot/inner.xml").write_text(f"<mujoco>{inside}</mujoco>")
    with pytest.raises(LoadError, match="outside of the robot's folder"):
        quiet_load(place / "robot/good.xml")


# meshes


def collada(nodes: str, scene: str) -> str:
    return f"""<COLLADA><library_geometries><geometry id="g"><mesh><source id="p"><float_array>0 0 0 1 0 0 0 1 0
      </float_array></source><triangles><input semantic="VERTEX" source="#p" offset="0"/><p>0 1 2</p></triangles></mesh>
      </geometry></library_geometries><library_nodes>{nodes}</library_nodes>
      <library_visual_scenes><visual_scene>{scene}</visual_scene></library_visual_scenes></COLLADA>"""


def test_collada_bombs(tmp_path: Path) -> None:
    """Thirty nodes, each of which has the next twice."""
    nodes = '<node id="n30"><instance_geometry url="#g"/></node>' + "".join(
        f'<node id="n{i}"><instance_node url="#n{i + 1}"/><instance_node url="#n{i + 1}"/></node>' for i in range(30)
    )
    bomb = tmp_path / "bomb.dae"
    bomb.write_text(collada(nodes, '<node><instance_node url="#n0"/></node>'))
    with pytest.raises(LoadError, match="nodes, instances counted"):
        read_mesh(bomb)
    bomb.write_text(collada("", '<node><instance_geometry url="#g"/></node>'))
    assert len(read_mesh(bomb)[0][0].faces) == 1


@pytest.mark.parametrize(
    "polygons",
    [
        "<polylist>{}<vcount>1000000000000</vcount><p>0 1 2</p></polylist>",
        "<polylist>{}<vcount>-3 6</vcount><p>0 1 2</p></polylist>",
        "<polylist>{}<vcount>9223372036854775807 3</vcount><p>0 1 2</p></polylist>",
        '<triangles>{}<input semantic="X" source="#p" offset="1e29"/><p>0 1 2</p></triangles>',
    ],
)
def test_collada_polygons(polygons: str, tmp_path: Path) -> None:
    shape = polygons.format('<input semantic="VERTEX" source="#p" offset="0"/>')
    text = collada("", '<node><instance_geometry url="#g"/></node>')
    start, rest = text.split("<triangles>", 1)
    path = tmp_path / "m.dae"
    path.write_text(start + shape + rest.split("</triangles>", 1)[1])
    with pytest.raises(LoadError):
        read_mesh(path)


MESHES = {
    "faces.stl": b"\0" * 80 + b"\xff\xff\xff\xff" + b"\0" * 50,
    "junk.stl": bytes(range(256)) * 4,
    "junk.obj": bytes(range(256)) * 4,
    "junk.dae": bytes(range(256)) * 4,
    "far.obj": OBJ.replace("1", "1e300").encode(),
    "face.obj": b"v 0 0 0\nf 1 99999999999999999999 3\n",
    "nan.obj": OBJ.replace("1", "nan").encode(),
    "gzip.stl": b"\x1f\x8b\x08\0" * 100,
    "empty.obj": b"",
    "index.obj": (OBJ + "f 1 2 9\n").encode(),
}


@pytest.mark.parametrize("name", MESHES)
def test_damaged_meshes(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(MESHES[name])
    with pytest.raises(LinkworkError):
        read_mesh(tmp_path / name)


def test_long_meshes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines and numbers are counted before they are kept."""
    (tmp_path / "m.obj").write_text(OBJ)
    (tmp_path / "m.dae").write_text(collada("", '<node><instance_geometry url="#g"/></node>'))
    (tmp_path / "n.obj").write_text("usemtl a\n" + OBJ)
    for name, module, limit, value in (
        ("m.obj", meshes, "MAX_LINES", 5),
        ("n.obj", meshes, "MAX_PIECES", 0),
        ("m.dae", view_collada, "MAX_NUMBERS", 5),
        ("m.dae", view_collada, "MAX_TRIANGLES", 0),
    ):
        read_mesh(tmp_path / name)
        with monkeypatch.context() as lowered:
            lowered.setattr(module, limit, value)
            with pytest.raises(LoadError, match="at most so many are read"):
                read_mesh(tmp_path / name)


def test_materials_of_others(place: Path) -> None:
    (place / "secret/s.mtl").write_text("newmtl red\nKd 1 0 0\n")
    (place / "robot/link.mtl").symlink_to(place / "secret/s.mtl")
    (place / "robot/m.obj").write_text("mtllib link.mtl\nusemtl red\n" + OBJ)
    assert read_mesh(place / "robot/m.obj")[0][1] is None


def test_a_fan_of_many_triangles() -> None:
    """Around one corner: every pair of them would be compared."""
    n = 40 * CROWD
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    rim = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(n)])
    faces = np.column_stack([np.zeros(n), 1 + np.arange(n), 1 + (np.arange(n) + 1) % n]).astype(int)
    surface = smooth(lw.model.visual.Mesh(np.vstack([np.zeros(3), rim]), faces))
    assert len(surface.faces) == n
    np.testing.assert_allclose(surface.normals, np.tile([0.0, 0.0, 1.0], (len(surface.normals), 1)), atol=1e-12)


def test_scenes_are_bounded(tmp_path: Path) -> None:
    """Visuals beyond a limit are left out, and the scene says so."""
    (tmp_path / "m.obj").write_text(OBJ)
    visual = '<visual><geometry><mesh filename="m.obj"/></geometry></visual>'
    (tmp_path / "r.urdf").write_text(f'<robot name="r"><link name="a">{visual * (MAX_VISUALS + 1)}</link></robot>')
    with pytest.warns(UserWarning, match="visuals on one link"):
        visuals = lw.load(tmp_path / "r.urdf", "free").links[1].visuals
    assert len(visuals) == MAX_VISUALS
    (tmp_path / "r.urdf").write_text(
        '<robot name="r">'
        + "".join(f'<link name="l{i}">{visual * 1000}</link>' for i in range(7))
        + "".join(
            f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/></joint>'
            for i in range(6)
        )
        + "</robot>"
    )
    scene = make_scene(lw.load(tmp_path / "r.urdf", "free"))
    assert any("visuals are left out" in note for note in scene.notes)


def test_a_file_by_many_names_is_not_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count by their size, those that hold no triangle too, before they are read."""
    (tmp_path / "m.obj").write_text("v 0 0 0\n" * 100)
    read = []
    monkeypatch.setattr(view_scene, "MAX_WORK", 4 * 800 * 3)
    monkeypatch.setattr(view_scene, "read_mesh", lambda path: read.append(path) or read_mesh(path))
    visuals = "".join(f'<visual><geometry><mesh filename="{"./" * i}m.obj"/></geometry></visual>' for i in range(20))
    (tmp_path / "r.urdf").write_text(f'<robot name="r"><link name="a">{visuals}</link></robot>')
    scene = make_scene(lw.load(tmp_path / "r.urdf"))
    assert len(read) == 3
    assert any("visuals are left out" in note for note in scene.notes)


def test_a_robot_of_which_nothing_is_left_to_draw(tmp_path: Path) -> None:
    """One polygon without area, on a robot without joints."""
    (tmp_path / "m.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 1 2 2\n")
    (tmp_path / "r.urdf").write_text(
        '<robot name="r"><link name="a"><visual><geometry><mesh filename="m.obj"/></geometry></visual></link></robot>'
    )
    assert make_scene(lw.load(tmp_path / "r.urdf")).size == 0.05


def test_a_load_in_a_thread_ends() -> None:
    """Reading a device would never return, not even to Ctrl-C in the main thread."""
    ended: list[BaseException] = []

    def run() -> None:
        try:
            lw.load("/dev/zero")
        except LoadError as problem:
            ended.append(problem)

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    worker.join(20)
    assert ended
