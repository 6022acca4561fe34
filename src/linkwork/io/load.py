"""Loading a robot from a file of any format, or by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from linkwork.checks import FLAG, NAME, NAMES, Kind, Refused, checked, choice, optional
from linkwork.constraints import Closure
from linkwork.errors import LinkworkError, LoadError, MissingExtra, ModelError, NotFound, listing
from linkwork.io.divided import beyond_closures, divided
from linkwork.io.recut import recut
from linkwork.io.usd_layers import is_usd
from linkwork.io.xacro import expanded, is_xacro
from linkwork.io.xml import Element, LoadWarning, parse, read
from linkwork.model.builder import BASES, Builder
from linkwork.model.model import GRAVITY, Model

FORMATS = {"urdf": "robot", "mjcf": "mujoco", "sdf": "sdf", "usd": "usd"}
GRAPHS = ("sdf", "usd")
"""Formats whose joints form a graph, and whose files may hold several robots."""


def _source(value: object) -> object:
    if not isinstance(value, str | os.PathLike):
        raise Refused
    return str.__str__(value) if isinstance(value, str) else Path(os.fsdecode(os.fspath(value)))


SOURCE = Kind("a path, a name or XML text", _source)


@checked(
    source=SOURCE,
    base=optional(choice("base", BASES)),
    format=optional(choice("format", FORMATS)),
    merge_fixed=FLAG,
    gravity=optional(GRAVITY),
    cut=NAMES,
    model=optional(NAME),
    passive=FLAG,
)
def load(
    source: str | os.PathLike[str],
    base: str | None = None,
    *,
    format: str | None = None,
    merge_fixed: bool = True,
    gravity: object = None,
    cut: Sequence[str] = (),
    model: str | None = None,
    passive: bool = True,
) -> Model:
    """The model of a robot: a URDF, URDF+, MJCF, SDF or USD file, or a name of `linkwork.robots`.

    `source` is a path, a name such as "talos_reduced", or the XML text itself (starting with "<"). The format is
    detected from the content; `format` ("urdf", "mjcf", "sdf", "usd") only asserts it. Xacro is expanded where the
    extra `xacro` is installed; USD needs the extra `usd`. `base` is the joint between the root and the world: "fixed",
    "free" or "planar". Without it a URDF file is fixed, MJCF, SDF and USD are as the file says, and a robot loaded by
    name has the base that suits it (legged and flying ones are free). `merge_fixed` makes links behind fixed joints
    part of their parents and keeps their names as frames. `gravity` replaces the file's, or (0, 0, -9.81) where it has
    none. `cut` names joints of loops that become closures; without it a spanning tree of an SDF or USD graph is chosen,
    and URDF+ and MJCF files are cut where they say (`best_cuts` looks for better places; `q` depends on them). `model`
    names one of several models of an SDF world, or articulations of a USD stage.

    Positions `q` are ordered as Pinocchio's for URDF, [x y z  qx qy qz qw] for a free joint, [qx qy qz qw] for a
    spherical one, [x y cos sin] for a planar one; joints of MJCF files are in the file's (MuJoCo's) order.
    Damping and springs of joints are the file's, unless `passive=False` leaves them out, as Pinocchio does. A joint
    that is cut keeps what it has: where that is more than damping and a spring (armature, friction, limits, a motor)
    the body behind it is cut in two halves, welded to each other, and the joint stays in the tree.

    Examples:
        >>> bob = '<link name="bob"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
        >>> hinge = '<joint name="hinge" type="continuous"><parent link="base"/><child link="bob"/></joint>'
        >>> text = f'<robot name="swing"><link name="base"/>{bob}{hinge}</robot>'
        >>> lw.load(text)
        Model('swing': 1 links, nq=1, nv=1, 0 constraints with 0 rows, 1 kg)
        >>> lw.load(text, base="free").nv
        7
    """
    data, path, suggested = _fetch(source)
    file = str(path) if path is not None else "XML text"
    try:
        root = _parsed(data, path, file)
        kind = _format(root, format)
        if model is not None and kind not in GRAPHS:
            raise root.error("model= names a model of an SDF world or USD stage; URDF and MJCF files have one robot")
        with np.errstate(all="ignore"):  # absurd numbers fail in the checks of the model, not in warnings
            builder = _readers(cut, model, passive)[kind](root, data, path, base or suggested)
            builder.name = _named(builder.name, path)
            made = builder.build(merge_fixed)
            made = made if passive else made.without_passive()
            made = _with_cut_joints(root, builder, made, passive)
            if kind not in GRAPHS:
                made = recut(made, cut)
            _check_inertias(root, builder, made)
    except LoadError:
        raise
    except (LinkworkError, RecursionError, np.linalg.LinAlgError) as problem:
        if isinstance(problem, MissingExtra):
            raise
        raise LoadError(f"{file}: {problem}") from problem
    return made if gravity is None else made.with_gravity(gravity)


def _with_cut_joints(root: Element, builder: Builder, model: Model, passive: bool) -> Model:
    """The model with what its cut joints have beyond closures."""
    massless = []
    for name, has in builder._at_cuts.items():
        kept = {n: x for n, x in has.items() if passive or n in ("armature", "limits")}
        kind = next(c.joint for c in model.constraints if isinstance(c, Closure) and c.name == name)
        try:
            model = divided(model, name, kept) if beyond_closures(kind, kept) else model
        except ModelError:
            massless.append(name)
    if massless:
        root.warn(f"left out: what resists and limits {listing(massless)}, which close loops at massless links")
    return model


def _fetch(source: str | os.PathLike[str]) -> tuple[bytes, Path | None, str | None]:
    """The bytes, the file they come from, and the base that suits a robot found by name."""
    text = os.fspath(source)
    if not isinstance(text, str):
        text = os.fsdecode(text)
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        return text.encode("utf-8", "surrogateescape"), None, None
    if not text.strip() or "\0" in text:
        raise LoadError(f"{text!r} names no file and no robot; give a path, or one of linkwork.io.zoo.names()")
    path = Path(text)
    if os.path.exists(path) or isinstance(source, os.PathLike) or len(path.parts) > 2 or path.is_absolute():
        return read(path), path, None
    from linkwork.io import zoo

    try:
        robot = zoo.find(text)
    except NotFound as problem:
        raise LoadError(f"'{text}' is neither a file nor a known robot: {problem}") from None
    return read(robot.path), robot.path, robot.base


def _parsed(data: bytes, path: Path | None, file: str) -> Element:
    """The root element, xacro expanded; an empty one for USD, which is no XML."""
    if path is not None and is_usd(data):
        return Element(FORMATS["usd"], {}, 1, file)
    root = parse(data, file)
    return parse(expanded(root, path), file) if is_xacro(root) else root


def _format(root: Element, wanted: str | None) -> str:
    found = next((f for f, tag in FORMATS.items() if tag == root.tag), None)
    if found is None:
        tags = ", ".join(f"<{tag}> ({f.upper()})" for f, tag in FORMATS.items())
        raise root.error(f"this is no robot description; the first element must be one of {tags}")
    if wanted not in (None, found):
        raise root.error(f"this is a {found.upper()} file, not {str(wanted).upper()}; leave out format=")
    return found


ROUNDED = 1e-2
"""Moments of thin rods and plates fulfil the triangle inequality with equality; files give them with few digits."""

NAMELESS = ("robot", "model", "mujoco model", "default", "unnamed")
"""Names that say nothing, as exporters write them."""


def _named(name: str, path: Path | None) -> str:
    """The name of a robot: the file's, where the description has none that says anything; or its folder's."""
    if path is None or name.lower() not in NAMELESS:
        return name
    folder = path.absolute().parent.name
    return path.stem if path.stem.lower() not in NAMELESS else folder or name


def _check_inertias(root: Element, builder: Builder, model: Model) -> None:
    """Refuse inertias that break the dynamics, warn about others that no body can have.

    Real files have inertias with a negative principal moment that are harmless, on small parts behind fixed joints or
    where the offset of the mass outweighs it. The dynamics break where a moving link, with all that is fixed to it, has
    a negative moment about an axis through its joint.
    """
    for link in model.links[1:]:
        least = _least(link.inertia.about_origin)
        if least < 0:
            raise root.error(
                f"link '{link.name}', with all that is fixed to it, has a negative moment of inertia ({least:g}) about "
                "an axis through its joint, which no body can have; correct its inertia"
            )
    odd = [d.name for d in builder._drafts.values() if _least(d.inertia.I) < 0]
    if odd:
        root.warn(f"the inertias of {listing(odd)} have a negative principal moment, as no body has; kept as given")
    flat = [d.name for d in builder._drafts.values() if d.name not in odd and _breaks_triangle(d.inertia.I)]
    if flat:
        root.warn(
            f"the inertias of {listing(flat)} have a principal moment larger than the sum of the other two, as no body "
            "has; kept as given"
        )


def _breaks_triangle(I: np.ndarray) -> bool:
    """Whether a principal moment is larger than the other two together, by more than rounding."""
    small, middle, large = np.linalg.eigvalsh(I)
    return bool(large > (1 + ROUNDED) * (small + middle) + 1e-12)


def _least(I: np.ndarray) -> float:
    """The least eigenvalue of a symmetric matrix, or 0 if it is negative by rounding only."""
    if not np.isfinite(I).all():
        return -np.inf
    values = np.linalg.eigvalsh(I)
    return 0.0 if values[0] > -1e-9 * np.abs(values).max() - 1e-15 else float(values[0])


_Read = Callable[[Element, bytes, Path | None, str | None], Builder]


def _readers(cut: Sequence[str], model: str | None, passive: bool) -> dict[str, _Read]:
    """The reader of each format, imported when it is needed."""

    def urdf(root: Element, data: bytes, path: Path | None, base: str | None) -> Builder:
        from linkwork.io.urdf import read_urdf

        return read_urdf(root, base)

    def mjcf(root: Element, data: bytes, path: Path | None, base: str | None) -> Builder:
        from linkwork.io.mjcf import read_mjcf

        return read_mjcf(root, data, path, base, passive)

    def sdf(root: Element, data: bytes, path: Path | None, base: str | None) -> Builder:
        from linkwork.io.sdf import read_sdf

        return read_sdf(root, base, cut, model, path)

    def usd(root: Element, data: bytes, path: Path | None, base: str | None) -> Builder:
        from linkwork.io.usd import read_usd

        assert path is not None
        return read_usd(root, path, base, cut, model)

    return {"urdf": urdf, "mjcf": mjcf, "sdf": sdf, "usd": usd}


__all__ = ["FORMATS", "LoadWarning", "load"]
