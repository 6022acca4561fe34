"""Every mechanism: its topology, its mass matrix, its closed position, its mobility, its errors."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.algorithms.tree.aba import aba
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints import CUT_JOINTS, jacobian, position_error
from linkwork.errors import InputError, LinkworkError, NotFound, UnsupportedError
from linkwork.joints import KINDS, SIMPLE, Helical, Revolute
from linkwork.model import Model, Motion
from linkwork.robots import mechanisms as mech
from linkwork.robots.mechanisms.quadrupeds import LEGS

EPS = np.finfo(float).eps


def motion(model: Model, q: np.ndarray | None = None, v: np.ndarray | None = None) -> Motion:
    q = model.neutral() if q is None else q
    v = np.zeros(model.nv) if v is None else v
    return Motion(model, q[:, None], v[:, None], NUMPY)


def rank(model: Model, q: np.ndarray | None = None) -> int:
    """Of the constraint Jacobian; there must be no doubt about it: no singular values between 1e-11 and 1e-5."""
    s = np.linalg.svd(jacobian(motion(model, q)), compute_uv=False) if model.rows else np.zeros(0)
    assert not ((s > 1e-11) & (s < 1e-5)).any()
    return int((s > 1e-8).sum())


def gap(model: Model, q: np.ndarray | None = None) -> float:
    return float(np.abs(position_error(motion(model, q))).max()) if model.rows else 0.0


def close(model: Model, q: np.ndarray, held: str) -> np.ndarray:
    """A closed position near q in which the joint `held` stays where it is."""
    return lw.assemble(model, q, locked=[held])


# each: the model, then links, nv, constraints, rows, depth and mobility as the documentation says
CASES = {
    "chain": (lambda: mech.chain(6), 6, 6, 0, 0, 6, 6),
    "chain, free": (lambda: mech.chain(6, base="free"), 7, 12, 0, 0, 7, 12),
    "chain, random": (lambda: mech.chain(5, seed=3), 5, 5, 0, 0, 5, 5),
    "chain, mixed": (lambda: mech.chain(4, ["spherical", Helical("x", 0.1)]), 4, 8, 0, 0, 4, 8),
    "ladder": (lambda: mech.ladder(3), 30, 30, 3, 18, 16, 12),
    "ladder, short": (lambda: mech.ladder(2, rung_links=6, segment_links=2), 16, 16, 2, 12, 10, 4),
    "stem": (lambda: mech.stem(5, 3), 47, 52, 6, 36, 12, 16),
    "stem, one link": (lambda: mech.stem(1, 2, base="fixed"), 29, 29, 4, 24, 8, 5),
    "arm": (mech.arm, 7, 7, 0, 0, 7, 7),
    "arm 4": (lambda: mech.arm(4), 4, 4, 0, 0, 4, 4),
    "ring": (lambda: mech.ring(8), 8, 8, 1, 6, 8, 2),
    "ring, free": (lambda: mech.ring(9, base="free"), 9, 14, 1, 6, 9, 8),
    "ring, hinge": (lambda: mech.ring(9, cut="revolute"), 9, 9, 1, 5, 9, 4),
    "chain of loops": (lambda: mech.chain_of_loops(3), 22, 22, 3, 18, 16, 4),
    "chain of loops, hinges": (lambda: mech.chain_of_loops(2, 6, cut="revolute"), 13, 13, 2, 10, 10, 3),
    "all coupled": (lambda: mech.all_coupled_loops(3), 24, 24, 3, 18, 24, 6),
    "star, hub": (lambda: mech.star_of_loops(4), 29, 29, 3, 18, 8, 11),
    "star, row": (lambda: mech.star_of_loops(4, joined="row"), 29, 29, 3, 18, 8, 11),
    "star, pairs": (lambda: mech.star_of_loops(5, joined="pairs"), 36, 36, 2, 12, 8, 24),
    "four-bar": (mech.four_bar, 3, 3, 1, 5, 2, 1),
    "four-bar, crossed": (lambda: mech.four_bar(0.4, 0.1, 0.3, 0.35, angle=1.0, crossed=True), 3, 3, 1, 5, 2, 1),
    "four-bar, point": (lambda: mech.four_bar(cut="spherical"), 3, 3, 1, 3, 2, 1),
    "four-bar, cylinder": (lambda: mech.four_bar(cut="cylindrical"), 3, 3, 1, 4, 2, 1),
    "four-bar, universal": (lambda: mech.four_bar(cut="universal"), 3, 3, 1, 4, 2, 1),
    "four-bar, line": (lambda: mech.four_bar(cut="point_on_line"), 3, 3, 1, 2, 2, 1),
    "four-bar, weld": (lambda: mech.four_bar(cut="fixed"), 4, 4, 1, 6, 3, 1),
    "four-bar, flat": (lambda: mech.four_bar(angle=0.0), 3, 3, 1, 5, 2, 2),
    "six-bar": (mech.six_bar, 5, 5, 2, 10, 2, 1),
    "bricard": (mech.bricard, 6, 6, 1, 6, 6, 1),
    "bricard, hinge": (lambda: mech.bricard(cut="revolute"), 5, 5, 1, 5, 5, 1),
    "planar leg": (mech.planar_leg, 4, 4, 1, 5, 2, 2),
    "planar leg, planar base": (lambda: mech.planar_leg(base="planar"), 5, 7, 1, 5, 3, 5),
    "gripper": (mech.gripper, 2, 2, 1, 1, 1, 1),
    "gripper, four-bar": (lambda: mech.gripper("four_bar"), 6, 6, 3, 11, 2, 1),
    "gripper, free": (lambda: mech.gripper("four_bar", base="free"), 7, 12, 3, 11, 3, 7),
    "geared chain": (lambda: mech.geared_chain(4), 8, 8, 4, 4, 4, 4),
    "belt chain": (lambda: mech.belt_chain(5), 10, 10, 5, 5, 5, 5),
    "belt chain of threes": (lambda: mech.belt_chain(6, group=3, base="free"), 13, 18, 6, 6, 7, 12),
    "differential": (lambda: mech.differential(2), 8, 8, 4, 4, 4, 4),
    "quadruped": (mech.quadruped, 13, 18, 0, 0, 4, 18),
    "humanoid": (mech.humanoid, 62, 67, 0, 0, 14, 67),
    "humanoid without hands": (lambda: mech.humanoid(hands=False), 32, 37, 0, 0, 11, 37),
    "humanoid, four-bar legs": (lambda: mech.humanoid(False, True), 36, 41, 2, 10, 11, 37),
    "biped": (mech.biped, 17, 22, 2, 10, 7, 18),
}


@pytest.mark.parametrize("name", CASES)
def test_topology_mobility_and_closed_position(name: str) -> None:
    make, links, nv, constraints, rows, depth, mobility = CASES[name]
    m = make()
    assert (m.nlinks, m.nv, len(m.constraints), m.rows, max(m.topology.depth)) == (links, nv, constraints, rows, depth)
    assert gap(m) < 1e-12
    assert m.nv - rank(m) == mobility
    if name == "four-bar, flat":  # singular there, and only there
        assert m.nv - rank(m, close(m, m.integrate(m.neutral(), np.array([0.3, 0, 0])), "crank_joint")) == 1


@pytest.mark.parametrize("name", CASES)
def test_mass_matrix_and_round_trip(name: str) -> None:
    m = CASES[name][0]()
    rng = np.random.default_rng(1)
    s = motion(m, m.random_q(1), rng.normal(size=m.nv))
    M = crba(s)
    w = np.linalg.eigvalsh((M + M.T) / 2)
    assert w[0] > 0
    assert np.abs(M - M.T).max() <= 4 * EPS * w[-1]
    tau = rng.normal(size=(m.nv, 1))
    a = aba(s, tau)
    scale = np.abs(tau).max() + np.abs(rnea(s, None)).max()
    assert np.abs(rnea(s, a) - tau).max() <= 100 * EPS * w[-1] / w[0] * scale


def test_every_physical_inertia() -> None:
    """No body of a mechanism breaks the triangle inequality of its principal moments."""
    for make, *_ in CASES.values():
        for link in make().links[1:]:
            a, b, c = np.linalg.eigvalsh(link.inertia.I)
            assert a >= 0
            assert a + b >= c * (1 - 1e-12)


def test_shapes_against_point_clouds() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(-0.5, 0.5, (400_000, 3))
    tip = np.array([0.3, -0.2, 0.5])

    def cloud(points: np.ndarray, mass: float) -> np.ndarray:
        second = mass * points.T @ points / len(points)
        return np.trace(second) * np.eye(3) - second

    def near(a: np.ndarray, b: np.ndarray) -> bool:
        return bool(np.abs(a - b).max() < 0.01 * np.abs(b).max())

    assert near(cloud(p * [0.2, 0.4, 0.6], 3.0), mech.box(3.0, (0.2, 0.4, 0.6)).I)
    disc = p[np.hypot(p[:, 0], p[:, 1]) < 0.5]
    assert near(cloud(disc * [0.4, 0.4, 0.7], 2.0), mech.cylinder(2.0, 0.2, 0.7).I)
    assert near(cloud(p[np.linalg.norm(p, axis=1) < 0.5], 2.0), mech.ball(2.0, 0.5).I)
    slanted = mech.rod(2.0, tip, 0.2)
    assert np.allclose(slanted.com, tip / 2, rtol=EPS)
    along = tip / np.linalg.norm(tip)
    assert along @ slanted.I @ along == pytest.approx(2.0 * 0.2**2 / 2, rel=1e-14)


@pytest.mark.parametrize(
    ("name", "driven", "step"),
    [
        ("four-bar", "crank_joint", 0.4),
        ("six-bar", "crank_joint", 0.3),
        ("bricard", "bar1_joint", 0.3),
        ("bricard, hinge", "bar1_joint", 0.3),
        ("planar leg", "crank", 0.5),
        ("gripper, four-bar", "left_drive", 0.4),
        ("ring", "link2_joint", 0.2),
        ("humanoid, four-bar legs", "left_crank", 0.6),
    ],
)
def test_loops_move(name: str, driven: str, step: float) -> None:
    """A finite motion, not only an infinitesimal one: drive one joint, the others follow, mobility stays."""
    make, *_, mobility = CASES[name]
    m = make()
    v = np.zeros(m.nv)
    v[m.topology.v_slices[m.joint(driven)]] = step
    q = close(m, m.integrate(m.neutral(), v), driven)
    assert gap(m, q) < 1e-12
    assert q[m.topology.q_slices[m.joint(driven)]] == pytest.approx(step, abs=1e-12)
    assert m.nv - rank(m, q) == mobility


def test_four_bar_lengths_are_those_asked_for() -> None:
    m = mech.four_bar(1.0, 0.4, 0.9, 0.7, angle=0.8)
    q = m.neutral()
    pin, end, pivot = (mech.frame_pose(m, f, q).p for f in ("coupler", "coupler_end", "rocker"))
    lengths = [np.linalg.norm(d) for d in (pin, end - pin, end - pivot, pivot)]
    assert np.allclose(lengths, [0.4, 0.9, 0.7, 1.0], rtol=4 * EPS)
    assert np.arctan2(pin[2], pin[0]) == pytest.approx(0.8, rel=4 * EPS)


def test_bricard_hinges_are_at_right_angles() -> None:
    m = mech.bricard()
    axes = [mech.frame_pose(m, l.name, m.neutral()).R @ l.joint.axis for l in m.links[1:]]  # type: ignore[attr-defined]
    assert all(a @ b == 0 for a, b in zip(axes, [*axes[1:], axes[0]], strict=True))


def test_couplings_turn_the_rotors() -> None:
    m = mech.belt_chain(4, 5.0)
    q = mech.posture(
        m,
        {
            "link1_joint": 0.1,
            "link2_joint": 0.2,
            "link3_joint": 0.4,
            "link4_joint": -0.3,
            "rotor1_joint": 0.5,
            "rotor2_joint": 1.5,
            "rotor3_joint": 2.0,
            "rotor4_joint": 0.5,
        },
    )
    assert gap(m, q) < 4 * EPS
    assert gap(m, q + 0.1) > 0.1
    assert [m.links[m.links[m.link(f"rotor{k}")].parent].name for k in (1, 2, 3, 4)] == ["world"] * 2 + ["link2"] * 2
    assert m.independent == tuple(f"link{k}_joint" for k in (1, 2, 3, 4))
    d = mech.differential(ratio=2.0)
    assert gap(d, mech.posture(d, {"roll1": 0.1, "pitch1": 0.3, "rotor1a_joint": 0.8, "rotor1b_joint": -0.4})) < 4 * EPS


def test_all_loops_are_coupled() -> None:
    """Every loop of the worst case has a joint in common with every other."""
    m = mech.all_coupled_loops(4, 2)
    t = m.topology
    loops = [set(t.supports[max(c.touches(m))]) - set(t.supports[min(c.touches(m))]) for c in m.constraints]
    assert all(a & b for a in loops for b in loops)


def test_star_of_loops_hub_touches_one_tip() -> None:
    m = mech.star_of_loops(5, 3)
    assert all(m.link("branch1_3") in c.touches(m) for c in m.constraints)


@pytest.mark.parametrize("crouch", [None, 0.0, 0.7, 1.2])
def test_quadruped_stands(crouch: float | None) -> None:
    m = mech.quadruped()
    q = mech.standing(m, crouch)
    feet = np.array([mech.frame_pose(m, f"{leg}_foot", q).p for leg in LEGS])
    assert np.abs(feet[:, 2]).max() < 1e-15
    com = _centre_of_mass(m, q)
    assert feet[:, 0].min() < com[0] < feet[:, 0].max()
    assert feet[:, 1].min() < com[1] < feet[:, 1].max()
    assert 11 < m.mass < 14


@pytest.mark.parametrize("crouch", [None, 0.0, 0.5])
@pytest.mark.parametrize("four_bar", [False, True])
def test_humanoid_stands(crouch: float | None, four_bar: bool) -> None:
    m = mech.humanoid(four_bar_legs=four_bar)
    q = mech.standing(m, crouch)
    feet = [mech.frame_pose(m, f"{side}_foot", q) for side in ("left", "right")]
    for foot in feet:
        assert abs(foot.p[2]) < 1e-15
        assert np.abs(foot.R - np.eye(3)).max() < 4 * EPS
    com = _centre_of_mass(m, q)
    assert abs(com[0] - feet[0].p[0]) < 0.12
    assert feet[1].p[1] < com[1] < feet[0].p[1]
    assert gap(m, q) < 1e-15
    height = mech.frame_pose(m, "head_top", m.neutral()).p[2] - mech.frame_pose(m, "left_foot", m.neutral()).p[2]
    assert 1.6 < height < 1.9
    assert 60 < m.mass < 85


def test_biped_stands() -> None:
    """On the soles of both feet, its centre of mass above them, its loops closed."""
    m = mech.biped()
    q = mech.standing(m)
    feet = [mech.frame_pose(m, f"{side}_foot", q) for side in ("left", "right")]
    com = _centre_of_mass(m, q)
    assert max(abs(foot.p[2]) for foot in feet) < 1e-15
    assert abs(com[0] - feet[0].p[0]) < 0.1
    assert feet[1].p[1] < com[1] < feet[0].p[1]
    assert gap(m, q) < 1e-15


def test_humanoid_is_symmetric() -> None:
    m = mech.humanoid(four_bar_legs=True)
    q = mech.standing(m)
    for name in [*m.frames, *(l.name for l in m.links)]:
        if name.startswith("left_"):
            left, right = (mech.frame_pose(m, n, q).p for n in (name, name.replace("left_", "right_", 1)))
            assert np.allclose(left, right * [1, -1, 1], atol=1e-15)


def test_fingers_close_towards_the_palm() -> None:
    m = mech.humanoid()
    q = m.neutral()
    for side in ("left", "right"):
        for finger in ("thumb", "index", "little"):
            bent = mech.posture(m, {f"{side}_{finger}_bend": 1.0})
            tips = [mech.frame_pose(m, f"{side}_{finger}_tip", p).p[1] for p in (q, bent)]
            inside = mech.frame_pose(m, f"{side}_hand", q).p[1] - mech.frame_pose(m, f"{side}_palm", q).p[1]
            assert (tips[1] - tips[0]) * inside > 0


def _centre_of_mass(m: Model, q: np.ndarray) -> np.ndarray:
    poses = [mech.frame_pose(m, l.name, q) for l in m.links[1:]]
    parts = [l.inertia.mass * (X.p + X.R @ l.inertia.com) for l, X in zip(m.links[1:], poses, strict=True)]
    return np.asarray(sum(parts) / m.mass)


def test_random_tree_shapes() -> None:
    chain, bush = mech.random_tree(30, 1, branching=0.0), mech.random_tree(30, 1, branching=1.0)
    assert max(chain.topology.depth) == 30
    assert max(bush.topology.depth) < 12
    kinds = {l.joint.kind for l in mech.random_tree(60, 2, tuple(KINDS)).links[1:]}
    assert kinds == set(KINDS)
    assert sum(l.armature.any() for l in mech.random_tree(40, 3, armature=0.1).links) in range(8, 33)
    assert mech.random_tree(4, 0, base="free").nv == 10


def _fingerprint(m: Model) -> str:
    frames = {n: (f.link, f.placement.R.tobytes(), f.placement.p.tobytes()) for n, f in m.frames.items()}
    links = [
        (
            l.name,
            l.parent,
            l.joint.kind,
            sorted(map(str, vars(l.joint).items())),
            l.placement.R.tobytes(),
            l.placement.p.tobytes(),
            l.inertia.I.tobytes(),
            l.armature.tobytes(),
        )
        for l in m.links
    ]
    return repr((frames, links, m.constraints))


@pytest.mark.parametrize(
    "make",
    [
        lambda s: mech.chain(5, seed=s),
        lambda s: mech.random_tree(6, s, tuple(KINDS), armature=0.1),
        lambda s: mech.random_mechanism(s, duplicates=2, contacts=1),
    ],
)
def test_seeds_reproduce(make) -> None:  # type: ignore[no-untyped-def]
    assert _fingerprint(make(5)) == _fingerprint(make(5))
    assert _fingerprint(make(5)) != _fingerprint(make(6))


def test_random_mechanisms_are_closed_and_sound() -> None:
    kinds, cuts, redundant = set(), set(), 0
    for seed in range(60):
        m = mech.random_mechanism(seed, loops=3, contacts=1, distances=2, duplicates=1)
        rng = np.random.default_rng(seed)
        kinds |= {l.joint.kind for l in m.links[1:]}
        cuts |= {c.joint for c in m.constraints if hasattr(c, "directions")}
        assert gap(m) < 1e-12
        redundant += rank(m) < m.rows if m.nv else 0
        s = motion(m, m.random_q(seed), rng.normal(size=m.nv))
        tau = rng.normal(size=(m.nv, 1))
        scale = np.abs(tau).max() + np.abs(rnea(s, None)).max()
        assert np.abs(rnea(s, aba(s, tau)) - tau).max() <= 100 * EPS * np.linalg.cond(crba(s)) * scale
    assert kinds == {j.kind for j in SIMPLE}
    assert cuts == set(CUT_JOINTS)
    assert redundant == 60  # every one of them has a duplicate


def test_random_mechanism_counts() -> None:
    m = mech.random_mechanism(
        0,
        12,
        joints=("revolute", "prismatic"),
        loops=2,
        contacts=3,
        couplings=2,
        distances=4,
        duplicates=5,
        cuts=("fixed",),
    )
    assert len(m.constraints) == 16
    assert m.nlinks == m.nv == 12
    assert mech.random_mechanism(0, 1, joints=("spherical",)).rows == 1  # a rod only: no second link, no two joints


def test_closed_joins_frames_where_they_meet() -> None:
    m = mech.chain(8, turn=np.pi / 2)
    q = m.random_q(3)
    looped = mech.closed(m, "linktip", "link2", "revolute", axis="y", q=q)
    assert gap(looped, q) < 1e-14
    assert gap(looped) > 1e-3
    assert looped.rows == 5
    for cut in CUT_JOINTS:
        assert gap(mech.closed(m, "linktip", "link2", cut, [1, 2, 3], q), q) < 1e-14


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: mech.chain(0), "at least 1, not 0"),
        (lambda: mech.chain(2.5), "whole number"),  # type: ignore[arg-type]
        (lambda: mech.chain(True), "whole number"),
        (lambda: mech.chain(3, length=-1.0), "length"),
        (lambda: mech.chain(3, length=np.nan), "length"),
        (lambda: mech.chain(3, "revolut"), "revolute"),
        (lambda: mech.chain(3, []), "at least one"),
        (lambda: mech.chain(3, base="floating"), "free"),
        (lambda: mech.random_tree(3, branching=1.5), "branching"),
        (lambda: mech.random_tree(3, joints="gear"), "revolute"),
        (lambda: mech.ladder(0), "rungs"),
        (lambda: mech.stem(3, 0), "branches"),
        (lambda: mech.stem(3, 1, cut="glue"), "spherical"),
        (lambda: mech.ring(2), "at least 3"),
        (lambda: mech.star_of_loops(4, joined="all"), "hub"),
        (lambda: mech.four_bar(1.0, 0.2, 0.2, 0.2), "cannot be assembled"),
        (lambda: mech.four_bar(crank=0.0), "crank"),
        (lambda: mech.four_bar(cut="planar"), "revolute"),
        (lambda: mech.bricard(cut="spherical"), "fixed"),
        (lambda: mech.gripper("suction"), "parallel"),
        (lambda: mech.geared_chain(3, 0.0), "ratio"),
        (lambda: mech.belt_chain(3, group=0), "group"),
        (lambda: mech.differential(ratio=np.inf), "ratio"),
        (lambda: mech.random_mechanism(0, loops=-1), "loops"),
        (lambda: mech.random_mechanism(0, joints=("hinge",)), "revolute"),
        (lambda: mech.random_mechanism(0, joints=()), "at least one"),
        (lambda: mech.random_mechanism(0, cuts=("gear",)), "spherical"),
        (lambda: mech.standing(mech.quadruped(), 2.0), "crouch"),
    ],
)
def test_bad_parameters(call, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LinkworkError, match=says):
        call()


def test_errors_have_the_right_type() -> None:
    with pytest.raises(InputError):
        mech.chain(-1)
    with pytest.raises(NotFound):
        mech.posture(mech.arm(), {"elbow": 1.0})
    with pytest.raises(InputError, match="one number"):
        mech.posture(mech.quadruped(), {"root": 1.0})
    with pytest.raises(UnsupportedError, match="quadruped"):
        mech.standing(mech.arm())


def test_arm_is_aligned() -> None:
    """Quarter turns only, so that placements fold away when traced; and it reaches as far as it says."""
    m = mech.arm()
    for l in m.links[1:]:
        assert set(np.abs(l.placement.R).ravel()) == {0.0, 1.0}
        assert isinstance(l.joint, Revolute)
    assert mech.frame_pose(m, "tool", m.neutral()).p == pytest.approx([0, 0, 0.34 + 0.4 * 3 + 0.126], abs=1e-15)
