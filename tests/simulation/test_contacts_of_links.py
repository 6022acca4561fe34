"""Contacts of links with each other from their shapes: neighbours, SDF's <self_collide>, what never comes near."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.model.link import Limits
from linkwork.model.visual import Box, Collider, Cylinder, Ellipsoid
from linkwork.simulation.ground.self_contacts import segment_distances

BALL = Ellipsoid((0.05, 0.05, 0.05))
BODY = lw.BodyInertia(1.0, np.zeros(3), np.eye(3) / 600)


def arm(*links: str) -> lw.Builder:
    """Links one above the other, each 0.2 m higher; a name in lower case has mass and a shape, else neither."""
    b, parent = lw.Builder("arm"), "world"
    for k, name in enumerate(links):
        solid = name.islower()
        up = lw.Placement(p=np.array([0.0, 0.0, 0.2]))
        b.link(name, parent, "revolute", axis="xyz"[k % 3], placement=up, inertia=BODY if solid else None)
        if solid:
            b.collider(name, Collider(BALL, lw.Placement(p=np.array([0.02, 0.03, 0.04]))))
        parent = name
    return b


def joined(found: list[lw.Pair]) -> set[str]:
    return {"-".join(sorted((c.a.frame, c.b.frame))) for c in found}


def test_neighbours_do_not_touch() -> None:
    """Links that a joint joins, directly or by links without mass and shape; the world's own shapes are no link's."""
    b = arm("a", "b", "X", "Y", "c", "d")
    b.collider("world", Collider(BALL))
    assert joined(lw.self_contacts(b.build())) == {"a-c", "a-d", "b-d", "a-world", "b-world", "c-world", "d-world"}


def test_what_is_fixed_is_one_piece() -> None:
    """A plate fixed to a link is a neighbour of what that touches, merged or not; so is a base fixed to the world."""
    b = arm("a", "b", "c")
    for name, carrier in (("plate", "a"), ("base", "world")):
        b.link(name, carrier, "fixed", placement=lw.Placement(p=np.array([0.1, 0.0, 0.0])), inertia=BODY)
        b.collider(name, Collider(BALL))
    expected = {"a-c", "b-world", "c-world"}
    assert joined(lw.self_contacts(b.build())) == expected
    found = joined(lw.self_contacts(b.build(merge_fixed=False)))
    assert found == {"a-c", "b-base", "base-c", "c-plate"}


def test_closed_loops_join_links() -> None:
    """The last link is hinged to the first: these are neighbours, as in the tree."""
    b = arm("a", "b", "c", "d")
    assert joined(lw.self_contacts(b.build())) == {"a-c", "a-d", "b-d"}
    b.constraints.append(lw.Hinge("a", "d", axis="z"))
    assert joined(lw.self_contacts(b.build())) == {"a-c", "b-d"}


def test_a_free_body_touches_its_world() -> None:
    """A free or planar joint makes no neighbours; friction is the smaller one of those that are given."""
    b = lw.Builder("ball")
    b.link("ball", joint="free", inertia=BODY)
    b.collider("ball", Collider(BALL, friction=0.5))
    b.collider("world", Collider(Box((1.0, 1.0, 0.1)), friction=0.3), Collider(Cylinder(0.1, 1.0, True)))
    b.collider("world", Collider(BALL, lw.Placement(p=np.array([5.0, 0.0, 0.0]))))
    found = {type(c.b): c.friction for c in lw.self_contacts(b.build(), near=0.0)}
    assert found == {lw.Block: 0.3, lw.Rod: 0.5, lw.Ball: 0.5}


SDF = """<sdf version="1.9"><model name="m">{of_model}
  {links}
  {joints}
</model></sdf>"""


def sdf(tmp_path: Path, of_model: str, *of_links: str) -> set[str]:
    """Links in a row, with what each says of self-collision."""
    links, joints = "", ""
    for k, said in enumerate(of_links):
        shape = "<collision name='c'><geometry><sphere><radius>0.1</radius></sphere></geometry></collision>"
        links += f"<link name='l{k}'><pose>0 0 {k} 0 0 0</pose>{said}{shape}</link>"
        if k:
            axis = "<axis><xyz>1 0 0</xyz></axis>"
            joints += f"<joint name='j{k}' type='revolute'><parent>l{k - 1}</parent><child>l{k}</child>{axis}</joint>"
    path = tmp_path / "m.sdf"
    path.write_text(SDF.format(of_model=of_model, links=links, joints=joints))
    model = lw.load(path)
    assert len(lw.contacts(model)) == len(of_links)  # all touch the ground
    return joined(lw.self_contacts(model))


def test_self_collide_of_sdf(tmp_path: Path) -> None:
    """All touch each other unless the file speaks of it: then one of two links that says so is enough."""
    yes, no = (f"<self_collide>{x}</self_collide>" for x in ("true", "false"))
    every = {"l0-l2", "l0-l3", "l1-l3"}
    assert sdf(tmp_path, "", "", "", "", "") == every
    assert sdf(tmp_path, yes, "", "", "", "") == every
    assert sdf(tmp_path, no, "", "", "", "") == set()
    assert sdf(tmp_path, "", yes, "", "", "") == {"l0-l2", "l0-l3"}
    assert sdf(tmp_path, yes, "", no, "", no) == {"l0-l2", "l0-l3"}


def test_what_never_comes_near_is_left_out() -> None:
    """Two links that turn a little about joints half a metre apart; in front of each other without limits."""

    def model(reach: float) -> lw.Model:
        b = lw.Builder("two")
        for name, x in (("left", -0.25), ("right", 0.25)):
            to = lw.Placement(p=np.array([x, 0.0, 0.0]))
            limits = Limits(-reach, reach)
            b.link(name, joint="revolute", axis="y", placement=to, inertia=BODY, limits=limits)
            b.collider(name, Collider(Box((0.05, 0.05, 0.4)), lw.Placement(p=np.array([0.0, 0.0, 0.2]))))
        return b.build()

    assert len(lw.self_contacts(model(0.1))) == len(lw.self_contacts(model(1.0))) > 0
    assert lw.self_contacts(model(0.1), near=0.02) == []
    assert lw.self_contacts(model(0.1), near=0.5) == lw.self_contacts(model(0.1))
    assert lw.self_contacts(model(1.0), near=0.02) == lw.self_contacts(model(1.0))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_distances_of_segments(size: float) -> None:
    """Against a search along both; parallel ones and points among them."""
    rng = np.random.default_rng(0)
    a, b = size * rng.standard_normal((2, 60, 2, 3))
    a[:10, 1] = a[:10, 0]
    b[5:15, 1] = b[5:15, 0]
    b[20:30, 1] = b[20:30, 0] + 0.7 * (a[20:30, 1] - a[20:30, 0])
    s = np.linspace(0, 1, 401)
    x, y = (z[:, 0, None] + s[:, None] * (z[:, 1] - z[:, 0])[:, None] for z in (a, b))
    searched = np.array([np.linalg.norm(p[:, None] - q, axis=2).min() for p, q in zip(x, y, strict=True)])
    found = segment_distances(a, b)
    assert (found <= searched + 1e-12 * size).all()
    np.testing.assert_allclose(found, searched, atol=0.01 * size)
