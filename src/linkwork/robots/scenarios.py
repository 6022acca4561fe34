"""Robots with closed loops, and robots that hold something together.

The scenarios of Sathya and Carpentier's table II.

Each function returns a Model with its constraints; `lw.assemble(model, model.neutral())` gives a closed configuration
and `lw.random_state(model, seed)` any number of consistent states. Robot files are found by name (see zoo.py).
`SCENARIOS` has them all, with the paper's sizes where it gives them:

    allegro_cube                       22 degrees of freedom, 12 rows     AH-cube-T
    two_allegros_cube                  38                     24          AH2-cube-T
    humanoid_allegros_cube             73                     24          Hum-AH2-cube-T
    humanoid_allegros_cube_standing    73                     36          Hum-AH2-cube-FT
    digit_standing                     44                     48          Digit-FC
    digit_box                          50                     54          Digit-cube-FCT
    two_digits_box                     94                    108          Digit2-cube-FCT

The last three are stiff (the paper's sizes come from locked springs); with "_rods" in their names they can move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from linkwork.checks import FLAG, NAME, checked, choice, whole
from linkwork.constraints import Closure, Connect, Weld
from linkwork.errors import not_found
from linkwork.io.load import load
from linkwork.joints import Fixed, Free, Joint, Spherical, Universal
from linkwork.model import BodyInertia, Builder, Link, Model, Placement
from linkwork.model.combine import Part, combine
from linkwork.model.link import passive_of
from linkwork.robots.mechanisms import bricard, four_bar, frame_pose, six_bar
from linkwork.robots.mechanisms.parts import box, closed

SIDES = ("left", "right")
LOOPS = ("connect", "rods", "cut", "weld")
TIPS = {"index": "link_3.0_tip", "middle": "link_7.0_tip", "ring": "link_11.0_tip", "thumb": "link_15.0_tip"}
"""The fingertips of an Allegro hand. Its fingers point along z and close towards x; the right thumb is at y > 0."""
CUBE = 0.08
"""Edge of the cube that hands hold (m)."""
STANDING = {
    "hip-pitch": 0.4973,
    "knee": -1.1997,
    "tarsus": 1.4267,
    "foot-crank": -1.5244,
    "plantar-rod": 1.5244,
    "foot": -1.5968,
}
ACHILLES = {"left": (-0.0164, 0.0179, -0.2052, 0.9784), "right": (0.0093, -0.0163, -0.2042, 0.9787)}
"""Angles of Cassie's legs as it stands (rad), and the quaternions of the rods behind them."""
REACH = 0.17
"""Distance of the palms of two hands that hold one cube (m)."""


@checked(format=choice("format of Cassie", ("mjcf", "sdf")))
def cassie(format: str = "mjcf") -> Model:
    """Cassie with a free base and its four loops as ball joints.

    "mjcf" has ball-jointed rods, "sdf" its own tree.
    """
    return load("cassie.xml" if format == "mjcf" else "cassie_v2", passive=False)


def cassie_posture(model: Model) -> np.ndarray:
    """Cassie on bent legs, closed to the digits of its angles: a start for `lw.assemble`."""
    q = model.neutral()
    for side, rod in ACHILLES.items():
        for joint, angle in STANDING.items():
            q[model.q_slice(f"{side}-{joint}")] = angle
        q[model.q_slice(f"{side}-achilles-rod")] = np.array(rod) / np.linalg.norm(rod)
    return q


@checked(loops=choice("way to close the loops of Digit", LOOPS), feet=FLAG)
def digit(loops: str = "connect", *, feet: bool = False) -> Model:
    """Digit with a free base; each leg has three rods that close a loop. Closed at neutral q.

    - loops="connect": as the file has it, rods on ball joints whose ends meet points: nv 54, 18 rows.
    - loops="rods": the same with rods on universal joints, which remove their spin about themselves: nv 48, 18 rows.
    - loops="cut": each rod is cut into two halves, one on the file's ball joint, one on a ball joint at the other end,
      which are welded: nv 72, 36 rows, the same motions.
    - loops="weld": springs locked, rods on universal joints and their ends welded: nv 44, 36 redundant rows, the
      paper's sizes. Legs cannot move then: a test case for solvers.

    `feet` welds both feet to the ground where they are at neutral q, 12 rows more. Frames `left-hand`,
    `right-hand` are at the ends of the forearms.
    """
    model = load("digit", passive=False)
    rods = {c.name: c for c in model.constraints if isinstance(c, Closure)}
    if loops == "cut":
        parts = _halves(model.without_constraints(), rods)
        model = combine(*parts, name=model.name, gravity=model.gravity)
        model = model.with_constraints(*(Weld(f"{rod}/start", rod, name=rod) for rod in rods))
    elif loops == "rods":
        model = _on_universals(model, rods)
    elif loops == "weld":
        model = _welded(model.without_constraints(), rods)
    for side in SIDES:
        model = model.with_frame(f"{side}-hand", f"{side}-arm/elbow", Placement.at((0.37, 0, 0)))
        if feet:
            model = closed(model, f"{side}-leg/toe-roll", "world", name=f"{side} foot")
    return model


@checked(robots=whole(1, 2, "1 or 2"), loops=choice("way to close the loops of Digit", LOOPS))
def digit_box(robots: int = 1, loops: str = "weld") -> Model:
    """One or two Digits (prefixes "digit1/", "digit2/") hold a box between their hands, by points."""
    body = digit(loops, feet=True)
    places = [Placement(), Placement.at((1.15, 0, 0), (0, 0, np.pi))][:robots]
    parts = [Part(body, f"digit{k}/", placement=X) for k, X in enumerate(places, 1)]
    middle, side, grip = (0.575, 0, 0.3), 0.2, 0.1 * (robots - 1)
    scene = combine(
        *parts,
        Part(_free_box(3.0, (0.4, 2 * side, 0.2)), placement=Placement.at(middle)),
        name="Digit and a box" if robots == 1 else "two Digits and a box",
        gravity=body.gravity,
    )
    for k in range(1, robots + 1):
        along = -grip if k == 1 else grip
        for hand, y in (("left-hand", side if k == 1 else -side), ("right-hand", -side if k == 1 else side)):
            scene = _held(scene, f"digit{k}/{hand}", (along, y, 0.0))
    return scene


@checked(hands=whole(1, 2, "1 or 2"))
def allegro_cube(hands: int = 1) -> Model:
    """One or two Allegro hands, fixed in the world, hold a cube with all their fingertips.

    16 dof each, and 6.
    """
    right = load("allegro_right_hand", passive=False)
    parts: list[Model | Part] = [Part(right, "right/"), Part(_free_box(0.1, CUBE), placement=Placement.at(IN_HAND))]
    if hands == 2:
        facing = Placement.at((REACH, 0, 0), (0, 0, np.pi))
        parts.insert(1, Part(load("allegro_left_hand", passive=False), "left/", placement=facing))
    return _grasped(combine(*parts, name=f"{hands} Allegro and a cube"), SIDES[2 - hands :])


@checked(feet=FLAG)
def humanoid_allegros_cube(feet: bool = False) -> Model:
    """Pinocchio's simple humanoid holds a cube with two Allegro hands ("left/", "right/").

    nv 73; 24 rows at the fingertips, and with `feet` 12 more that weld the feet to the ground where they are at neutral
    q.
    """
    body = load("simple_humanoid", passive=False)
    for ankle in ("l_ankle", "r_ankle") if feet else ():
        body = closed(body, ankle, "world", name=f"{ankle} on the ground")
    parts: list[Model | Part] = [body]
    for side in SIDES:
        inward = -1.0 if side == "left" else 1.0  # palms face each other, fingers point along the forearm
        R = np.array([[0, inward, 0], [inward, 0, 0], [0, 0, -1.0]])
        hand = load(f"allegro_{side}_hand", base="free", passive=False)
        parts.append(Part(hand, f"{side}/", to=f"{side[0]}_wrist", placement=Placement(R, np.array([0, 0, -0.1]))))
    parts.append(Part(_free_box(0.1, CUBE), placement=Placement.at((0.3, 0, 0.2), (0, np.pi / 2, 0))))
    return _grasped(combine(*parts, name="humanoid, two Allegro and a cube"), SIDES)


IN_HAND = (REACH / 2, 0.02, 0.02)
"""The centre of the cube between the fingers and the thumb of a right hand (m)."""


def _grasped(model: Model, hands: Sequence[str]) -> Model:
    """Fingertips on the cube: fingers on its +z face, the thumb on the opposite one.

    Each hand on its own half.
    """
    for hand in hands:
        x = 0.0 if len(hands) == 1 else -0.025 if hand == "right" else 0.025
        places = {
            "index": (x, 0.035, CUBE / 2),
            "middle": (x, 0.0, CUBE / 2),
            "ring": (x, -0.035, CUBE / 2),
            "thumb": (x, 0.03, -CUBE / 2),
        }
        for finger, place in places.items():
            model = _held(model, f"{hand}/{TIPS[finger]}", place)
    return model


def _held(model: Model, tip: str, place: tuple[float, float, float]) -> Model:
    """A point of the box held by a frame, as a ball joint holds it."""
    return model.with_frame(f"{tip} on box", "box", Placement.at(place)).with_constraints(Connect(tip, f"{tip} on box"))


def _free_box(mass: float, size: float | tuple[float, float, float]) -> Model:
    b = Builder("box")
    b.link("box", joint=Free(), inertia=box(mass, np.broadcast_to(size, 3)), actuated=False)
    return b.build()


def _halves(model: Model, rods: dict[str, Closure]) -> list[Model | Part]:
    """The model whose rods have half of their inertia, and the other halves as parts on the far links.

    The two halves of a rod have the same frame when closed and half the inertia each, so that together they are the
    rod. The far half hangs by its end on a ball joint.
    """
    parts: list[Model | Part] = []
    for rod, closure in rods.items():
        near = model.links[model.link(rod)]
        half = BodyInertia(near.inertia.mass / 2, near.inertia.com, near.inertia.I / 2)
        end = model.frame(closure.b).placement.p
        b = Builder(rod)
        b.link("far", joint=Spherical(), inertia=half.moved(Placement(p=-end)), actuated=False)
        b.frame("start", "far", Placement(p=-end))
        across = frame_pose(model, closure.a, model.neutral()).inverse() @ frame_pose(model, rod, model.neutral())
        parts.append(Part(b.build(), f"{rod}/", to=closure.a, placement=Placement(across.R)))
        model = _with_link(model, replace(near, inertia=half))
    return [model, *parts]


def _welded(model: Model, rods: dict[str, Closure]) -> Model:
    """Springs locked, rods on universal joints, their ends welded to what they meet at neutral q."""
    for link in model.links:
        if link.joint_name.endswith(("/shin", "/heel-spring")):
            model = _with_link(model, _jointed(link, Fixed()))
    model = combine(_on_universals(model, rods), name=model.name, merge_fixed=True)
    for rod, closure in rods.items():
        model = closed(model, closure.b, closure.a, name=rod)
    return model


def _on_universals(model: Model, rods: dict[str, Closure]) -> Model:
    for rod, closure in rods.items():
        model = _with_link(model, _jointed(model.links[model.link(rod)], _swing(model.frame(closure.b).placement.p)))
    return model


def _swing(along: np.ndarray) -> Universal:
    """A universal joint that keeps a rod along `along` from spinning about itself."""
    across = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    return Universal(across, np.cross(along, across))


def _jointed(link: Link, joint: Joint) -> Link:
    return replace(link, joint=joint, armature=np.zeros(joint.nv), passive=passive_of(joint, link.name))


def _with_link(model: Model, link: Link) -> Model:
    """The model with another link of the same name."""
    return replace(model, links=tuple(link if l.name == link.name else l for l in model.links))


SCENARIOS: dict[str, Callable[[], Model]] = {
    "four_bar": four_bar,
    "six_bar": six_bar,
    "bricard": bricard,
    "cassie": cassie,
    "cassie_sdf": partial(cassie, "sdf"),
    "digit": digit,
    "digit_cut": partial(digit, "cut"),
    "digit_rods_standing": partial(digit, "rods", feet=True),
    "digit_rods_box": partial(digit_box, loops="rods"),
    "two_digits_rods_box": partial(digit_box, 2, "rods"),
    "allegro_cube": allegro_cube,
    "two_allegros_cube": partial(allegro_cube, 2),
    "humanoid_allegros_cube": humanoid_allegros_cube,
    "humanoid_allegros_cube_standing": partial(humanoid_allegros_cube, True),
    "digit_standing": partial(digit, "weld", feet=True),
    "digit_box": digit_box,
    "two_digits_box": partial(digit_box, 2),
}
"""Every scenario by its name."""


@checked(name=NAME)
def scenario(name: str) -> Model:
    """The scenario called `name`."""
    if name not in SCENARIOS:
        raise not_found("scenario", name, SCENARIOS)
    return SCENARIOS[name]()
