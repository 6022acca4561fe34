"""What gravity pulls and how heavy it is: links without gravity, inertias by density, the gravity of worlds in SDF."""

from __future__ import annotations

import numpy as np
import pytest
from loaded import State, assert_near, quiet_load, states

import linkwork as lw
from linkwork import interop
from linkwork.algorithms.tree.energy import potential_energy
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints.rows import jacobian
from linkwork.errors import LoadError, UnsupportedError
from linkwork.model import Model
from linkwork.model.motion import Motion

BODY = """<link name="{n}"><pose>{x} 0.1 0.2 0.1 0.2 0.3</pose>{gravity}<inertial><pose>0.1 0.02 0.03 0 0 0</pose>
  <mass>{m}</mass><inertia><ixx>{i}</ixx><iyy>{i}</iyy><izz>{i}</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia>
  </inertial></link>"""
OFF = "<gravity>false</gravity>"
ARM = ("a", "b", "c", "d")
"""c is fixed to b, and becomes a part of it."""


def arm(off: str, massless: str = "") -> str:
    """An arm of four links, of which gravity does not pull some, or some have no mass."""
    bodies = "".join(
        BODY.format(
            n=n,
            x=0.4 * k,
            gravity=OFF if n in off else "",
            m=0 if n in massless else 1 + k,
            i=0 if n in massless else 0.1 * (1 + k),
        )
        for k, n in enumerate(ARM)
    )
    joints = "".join(
        f'<joint name="{p}{c}" type="{kind}"><parent>{p}</parent><child>{c}</child><axis><xyz>0 1 0.5</xyz></axis>'
        "</joint>"
        for p, c, kind in (("a", "b", "revolute"), ("b", "c", "fixed"), ("c", "d", "prismatic"))
    )
    return (
        f'<sdf version="1.7"><world name="w"><gravity>1 2 -9</gravity><model name="m">{bodies}{joints}</model>'
        "</world></sdf>"
    )


@pytest.mark.parametrize("off", ["a", "b", "c", "d", "bd", "abcd"])
def test_links_without_gravity(off: str) -> None:
    """The mass matrix is that of all masses, the forces of gravity are those of the links that it pulls."""
    model, pulled, whole = quiet_load(arm(off)), quiet_load(arm("", off)), quiet_load(arm(""))
    assert model.mass == whole.mass
    for s in states(model, 5):
        same, light = State(whole, s.q, s.v), State(pulled, s.q, s.v)
        assert_near(s.M, same.M, 1.0, 1e-14)
        assert_near(s.gravity, light.gravity, 50.0, 1e-14)
        assert_near(s.rnea() - s.gravity, same.rnea() - same.gravity, 50.0, 1e-14)
        slope = np.array([difference(model, s.q, k) for k in range(model.nv)])
        assert_near(s.gravity, slope, 50.0, 1e-7)


def difference(model: Model, q: np.ndarray, k: int, h: float = 1e-5) -> float:
    """The derivative of the potential energy along one degree of freedom."""
    ends = [model.integrate(q, sign * h * np.eye(model.nv)[k]) for sign in (1, -1)]
    high, low = (float(potential_energy(Motion(model, q[:, None], np.zeros((model.nv, 1)), NUMPY))[0, 0]) for q in ends)
    return (high - low) / (2 * h)


METHODS = ("aba", "crba_ltl", "kkt", "ltl", "pv", "pv_early", "constrained_aba", "prox_bbo", "lcaba", "c_aba")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_leaves_gravity_out(method: str) -> None:
    """The rewritten model of a compiled function too."""
    plain = quiet_load(arm("bd"))
    rows = method not in ("aba", "crba_ltl")
    model = plain.with_constraints(lw.point("d")) if rows else plain
    s = states(plain, 1)[0]
    tau = np.linspace(-1, 1, model.nv)
    J = np.asarray(jacobian(State(model, s.q, s.v).motion))
    oracle = lw.forward_dynamics(model, method="kkt" if rows else "crba_ltl", backend="numpy")(s.q, s.v, tau)
    balance = s.M @ oracle.a + s.rnea() - tau - (J.T @ oracle.lam if rows else 0.0)
    assert_near(balance, np.zeros(model.nv), 50.0, 1e-12)
    a = lw.forward_dynamics(model, method=method, threads=1)(s.q, s.v, tau).a
    assert_near(a, oracle.a, 1.0, 1e-6)


def test_weight_in_combinations_and_elsewhere() -> None:
    model = quiet_load(arm("bd"))
    both = lw.combine(lw.Part(model, "one/"), lw.Part(model, "two/", to="one/d"))
    assert sum(l.weightless.mass for l in both.links) == pytest.approx(2 * (2 + 4))
    carried = lw.combine(quiet_load(arm("")), lw.Part(quiet_load(arm("a")), "two/", to="d"), merge_fixed=True)
    assert carried.links[carried.link("d")].weightless.mass == pytest.approx(1)
    with pytest.raises(UnsupportedError, match="gravity does not pull all of link 'b'"):
        interop.to_pinocchio(model)


WORLD = '<sdf version="1.7">{}<model name="m"><link name="a"/></model>{}</sdf>'


@pytest.mark.parametrize(
    ("before", "after", "g"),
    [
        ('<world name="w"><gravity>0 1 -3</gravity>', "</world>", (0, 1, -3)),
        ('<world name="w"><physics type="ode"><gravity>0 2 -3</gravity></physics>', "</world>", (0, 2, -3)),
        ('<world name="w">', "</world>", (0, 0, -9.8)),
        ("", "", (0, 0, -9.81)),
    ],
)
def test_gravity_of_worlds(before: str, after: str, g: tuple[float, float, float]) -> None:
    """A world without <gravity> has SDF's, a model without a world Linkwork's."""
    assert quiet_load(WORLD.format(before, after)).gravity.tolist() == list(g)


def automatic(*collisions: str, inside: str = "") -> lw.BodyInertia:
    shapes = "".join(f'<collision name="c{n}">{c}</collision>' for n, c in enumerate(collisions))
    text = (
        f'<sdf version="1.11"><model name="m"><link name="a"><inertial auto="true">{inside}</inertial>{shapes}'
        "</link></model></sdf>"
    )
    return quiet_load(text).links[1].inertia


def sampled(inside: object, box: tuple[float, float, float]) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, centre and inertia per density of the points of a box that are inside, by sums over a grid."""
    n = 160
    x, y, z = np.meshgrid(*((np.arange(n) + 0.5) / n * 2 * b - b for b in box), indexing="ij")
    at = np.stack([x, y, z])[:, inside(x, y, z)]  # type: ignore[operator]
    cell = np.prod(box) * 8 / n**3
    centre = at.mean(axis=1)
    d = at - centre[:, None]
    return cell * at.shape[1], centre, cell * (np.sum(d * d) * np.eye(3) - d @ d.T)


SOLIDS = {
    "box": ("<box><size>0.2 0.4 0.6</size></box>", lambda x, y, z: x < 2, (0.1, 0.2, 0.3)),
    "sphere": ("<sphere><radius>0.3</radius></sphere>", lambda x, y, z: x * x + y * y + z * z < 0.09, (0.3, 0.3, 0.3)),
    "ellipsoid": (
        "<ellipsoid><radii>0.1 0.2 0.3</radii></ellipsoid>",
        lambda x, y, z: (x / 0.1) ** 2 + (y / 0.2) ** 2 + (z / 0.3) ** 2 < 1,
        (0.1, 0.2, 0.3),
    ),
    "cylinder": (
        "<cylinder><radius>0.2</radius><length>0.6</length></cylinder>",
        lambda x, y, z: x * x + y * y < 0.04,
        (0.2, 0.2, 0.3),
    ),
    "capsule": (
        "<capsule><radius>0.2</radius><length>0.6</length></capsule>",
        lambda x, y, z: x * x + y * y + np.maximum(np.abs(z) - 0.3, 0) ** 2 < 0.04,
        (0.2, 0.2, 0.5),
    ),
    "cone": (
        "<cone><radius>0.2</radius><length>0.6</length></cone>",
        lambda x, y, z: np.sqrt(x * x + y * y) < 0.2 * (0.3 - z) / 0.6,
        (0.2, 0.2, 0.3),
    ),
}


@pytest.mark.parametrize("shape", SOLIDS)
def test_inertias_by_density(shape: str) -> None:
    text, inside, box = SOLIDS[shape]
    volume, centre, I = sampled(inside, box)
    body = automatic(f"<geometry>{text}</geometry>")
    assert body.mass == pytest.approx(1000 * volume, rel=2e-3)
    assert body.com == pytest.approx(centre, abs=2e-3)
    assert_near(body.I, 1000 * I, 0.0, 4e-3)


def test_densities_and_masses() -> None:
    cube, far = "<geometry><box><size>1 1 1</size></box></geometry>", "<pose>2 0 0 0 0 0</pose>"
    assert automatic(cube, inside="<density>5</density>").mass == pytest.approx(5)
    two = automatic(cube + "<density>1</density>", far + cube + "<density>3</density>")
    assert (two.mass, two.com[0]) == (pytest.approx(4), pytest.approx(1.5))
    assert two.I[1, 1] == pytest.approx(4 / 6 + 1 * 1.5**2 + 3 * 0.5**2)
    scaled = automatic(cube, far + cube, inside="<mass>6</mass>")
    assert (scaled.mass, scaled.com[0]) == (pytest.approx(6), pytest.approx(1))
    assert scaled.I[1, 1] == pytest.approx(6 / 6 + 6)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ((), 'auto="true" needs <collision> shapes'),
        (("<geometry><mesh><uri>a.stl</uri></mesh></geometry>",), "no inertia is computed from 'mesh'"),
        (("<geometry><plane/></geometry>",), "no inertia is computed from 'plane'"),
        (("<geometry><sphere><radius>0</radius></sphere></geometry>",), "above zero"),
        (("<geometry><sphere><radius>1</radius></sphere></geometry><density>-1</density>",), "density is -1"),
    ],
)
def test_inertias_that_cannot_be_computed(shapes: tuple[str, ...], message: str) -> None:
    with pytest.raises(LoadError, match=message):
        automatic(*shapes)
