"""Meshes: three formats read alike, found where the description says and nowhere else, thinned out, and lit well."""

from __future__ import annotations

import io

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import LoadError
from linkwork.io.mesh_paths import locate
from linkwork.io.meshes import read_mesh
from linkwork.model.visual import Mesh, MeshFile
from linkwork.viewer import shapes
from linkwork.viewer.surface import Surface, smooth, thinned, thinned_to

BOX = shapes.box((1.0, 2.0, 3.0))


def volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """By the divergence theorem: right only if all faces turn outwards."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def stl_bytes(s: Surface, text: bool) -> bytes:
    if text:
        rows = ["solid box"]
        for f in s.faces:
            rows += [
                "facet normal 0 0 0",
                "outer loop",
                *("vertex {} {} {}".format(*s.vertices[k]) for k in f),
                "endloop",
                "endfacet",
            ]
        return "\n".join([*rows, "endsolid"]).encode()
    out = io.BytesIO()
    out.write(b"solid but binary".ljust(80) + len(s.faces).to_bytes(4, "little"))
    for f in s.faces:
        out.write(np.concatenate([np.zeros(3), s.vertices[f].ravel()]).astype("<f4").tobytes() + b"\0\0")
    return out.getvalue()


def obj_text(s: Surface) -> str:
    """Quads where two triangles make one, negative indices, textures and normals that are passed over."""
    lines = ["mtllib red.mtl", *("v {} {} {}".format(*v) for v in s.vertices), "usemtl red"]
    n = len(s.vertices)
    return "\n".join([*lines, *("f " + " ".join(f"{k - n}/1/1" for k in f) for f in s.faces)])


DAE = """<COLLADA><asset><unit meter="0.01"/><up_axis>Y_UP</up_axis></asset>
<library_effects><effect id="e"><profile_COMMON><technique><phong><diffuse><color>0 1 0 1</color></diffuse></phong>
</technique></profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array>{points}</float_array></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<polylist material="green"><input semantic="VERTEX" source="#v" offset="1"/>
<input semantic="NORMAL" source="#p" offset="0"/>
<vcount>{counts}</vcount><p>{indices}</p></polylist></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene><node><translate>0 0 100</translate><rotate>0 0 1 90</rotate><node>
<instance_geometry url="#g"><bind_material><technique_common><instance_material symbol="green" target="#m"/>
</technique_common></bind_material></instance_geometry></node></node></visual_scene></library_visual_scenes></COLLADA>"""


def dae_text() -> str:
    """A box of 100 x 200 x 300 cm as six quads, turned by 90 degrees about z and lifted by a metre."""
    corners = np.array([[x, y, z] for x in (-50, 50) for y in (-100, 100) for z in (-150, 150)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    words = {"points": corners.ravel(), "counts": [4] * 6, "indices": [n for q in quads for k in q for n in (0, k)]}
    return DAE.format(**{name: " ".join(map(str, v)) for name, v in words.items()})


@pytest.mark.parametrize("kind", ["binary.stl", "text.STL", "box.obj", "box.dae"])
def test_every_format_gives_the_same_box(tmp_path, kind):
    path = tmp_path / kind
    if path.suffix.lower() == ".stl":
        path.write_bytes(stl_bytes(BOX, kind.startswith("text")))
    else:
        path.write_text(obj_text(BOX) if path.suffix == ".obj" else dae_text())
    (tmp_path / "red.mtl").write_text("newmtl red\nKd 1 0 0\n")
    ((mesh, colour),) = read_mesh(path)
    assert volume(mesh.vertices, mesh.faces) == pytest.approx(6.0, rel=1e-6)
    size, middle = np.ptp(mesh.vertices, axis=0), (mesh.vertices.min(axis=0) + mesh.vertices.max(axis=0)) / 2
    expected = ((2, 1, 3), (0, 0, 1)) if path.suffix == ".dae" else ((1, 2, 3), (0, 0, 0))
    np.testing.assert_allclose([size, middle], expected, atol=1e-6)
    assert colour == {".obj": (1, 0, 0, 1), ".dae": (0, 1, 0, 1)}.get(path.suffix)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("a.stl", "not a mesh"),
        ("a.obj", "v 0 0 0\nf 1 2 3"),
        ("a.obj", "v 0 nan 0\nf 1 1 1"),
        ("a.dae", "<COLLADA/>"),
        ("a.dae", "<COLLADA>"),
        ("a.obj", "v 1 x 2"),
    ],
)
def test_nonsense_is_refused(tmp_path, kind, text):
    (tmp_path / kind).write_text(text)
    with pytest.raises(LoadError, match=r"a\.(stl|obj|dae)"):
        read_mesh(tmp_path / kind)


@pytest.fixture
def robot(tmp_path):
    """A description in <tmp>/pack/urdf with a mesh in <tmp>/pack/meshes, and a file outside of the package."""
    for folder in ("pack/urdf", "pack/meshes", "other"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("pack/meshes/a b.stl", "other/secret.stl", "pack/meshes/a.glb"):
        (tmp_path / file).write_bytes(stl_bytes(BOX, False))
    (tmp_path / "pack/urdf/r.urdf").write_text("<robot/>")
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "package://pack/meshes/a%20b.stl",
        "package:///pack/meshes/a b.stl",
        "model://pack/urdf/../meshes/a b.stl",
        "../meshes/a b.stl",
        "{root}/pack/meshes/a b.stl",
        "file://{root}/pack/meshes/a%20b.stl",
    ],
)
def test_meshes_are_found_where_the_description_says(robot, name):
    mesh = MeshFile(name.format(root=robot), str(robot / "pack/urdf/r.urdf"))
    assert locate(mesh).samefile(robot / "pack/meshes/a b.stl")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("package://pack/../other/secret.stl", "leaves its package"),
        ("package://../other/secret.stl", "leaves its package"),
        ("package://nobody/x.stl", "ROS_PACKAGE_PATH"),
        ("../../other/secret.stl", "outside"),
        ("{root}/other/secret.stl", "outside"),
        ("file://{root}/other/secret.stl", "outside"),
        ("http://example.org/x.stl", "not followed"),
        ("../meshes/a.glb", "is not read"),
        ("../meshes/missing.stl", "is not there"),
    ],
)
def test_nothing_else_is_opened(robot, name, reason):
    with pytest.raises(LoadError, match=reason):
        locate(MeshFile(name.format(root=robot), str(robot / "pack/urdf/r.urdf")))
    with pytest.raises(LoadError, match="given as text"):
        locate(MeshFile(name.format(root=robot), "XML text"))


def test_a_box_keeps_its_edges_and_a_sphere_is_smooth():
    corners = Mesh(*(lambda s: (s.vertices, s.faces))(BOX))
    box = smooth(thinned(corners, 1e-6))
    assert len(box.vertices) == 24
    assert set(np.abs(box.normals).max(axis=1)) == {1.0}
    ball = shapes.ellipsoid((1.0, 1.0, 1.0))
    again = smooth(Mesh(ball.vertices, ball.faces))
    assert len(again.vertices) == len(ball.vertices)
    assert np.einsum("ij,ij->i", again.normals, again.vertices).min() > 0.99


def test_thinning_keeps_the_shape():
    fine = shapes.turned(
        [(np.sin(t), -np.cos(t)) if 0 < t < np.pi - 1e-9 else (0.0, -np.cos(t)) for t in np.linspace(0, np.pi, 120)],
        around=200,
    )
    before = volume(fine.vertices, fine.faces)
    (coarse,) = thinned_to([fine], 3000)
    assert 500 < len(coarse.faces) <= 3000 < len(fine.faces)
    assert volume(coarse.vertices, coarse.faces) == pytest.approx(before, rel=0.03)
    (same,) = thinned_to([fine], 10**6)
    assert len(same.faces) == len(fine.faces)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (shapes.ellipsoid((1, 2, 3)), 8 * np.pi),
        (shapes.cylinder(1, 2), 2 * np.pi),
        (shapes.capsule(1, 1, 3), 3 * np.pi + 4 / 3 * np.pi),
        (BOX, 6.0),
    ],
)
def test_shapes_have_their_volume_and_normals_look_outwards(shape, expected):
    assert volume(shape.vertices, shape.faces) == pytest.approx(expected, rel=0.07)
    a, b, c = (shape.vertices[shape.faces[:, k]] for k in range(3))
    facing = np.einsum("ij,ikj->ik", np.cross(b - a, c - a), shape.normals[shape.faces])
    assert facing.min() > 0


def test_looks_are_of_no_consequence_for_the_dynamics():
    """Two models that differ in looks only have the same digest, so that they share their kernels."""
    from linkwork.model.digest import digest

    text = """<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
    {}</link></robot>"""
    plain = lw.load(text.format(""), base="free")
    seen = lw.load(text.format('<visual><geometry><sphere radius="0.1"/></geometry></visual>'), base="free")
    assert len(seen.links[1].visuals) == 1
    assert not plain.links[1].visuals
    assert digest(plain) == digest(seen) is not None
