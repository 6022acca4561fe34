"""Joint types, one per file. `make("revolute", axis="z")` builds one by name."""

from __future__ import annotations

from typing import Any

from linkwork.checks import NAME, checked
from linkwork.joints.base import Joint, unit_axis
from linkwork.joints.composite import Composite
from linkwork.joints.cylindrical import Cylindrical
from linkwork.joints.fixed import Fixed
from linkwork.joints.free import Free
from linkwork.joints.helical import Helical
from linkwork.joints.planar import Planar
from linkwork.joints.prismatic import Prismatic
from linkwork.joints.revolute import Revolute
from linkwork.joints.spherical import Spherical
from linkwork.joints.spherical_zyx import SphericalZYX
from linkwork.joints.translation import Translation
from linkwork.joints.universal import Universal

SIMPLE = (Revolute, Prismatic, Helical, Cylindrical, Universal, Spherical, Planar, Free, Fixed)
KINDS: dict[str, type[Joint]] = {cls.kind: cls for cls in (*SIMPLE, Translation, SphericalZYX)}
"""All but `Composite`, which is made of others."""


@checked(kind=NAME)
def make(kind: str, **parameters: Any) -> Joint:
    """The joint called `kind` ("continuous" is "revolute") with its parameters: axis, second, pitch."""
    from linkwork.errors import InputError, not_found

    cls = KINDS.get("revolute" if kind == "continuous" else kind)
    if cls is None:
        raise not_found("joint type", kind, KINDS)
    try:
        return cls(**parameters)
    except TypeError:
        from inspect import signature

        unknown = [name for name in parameters if name not in signature(cls).parameters]
        if not unknown:
            raise
        raise InputError(f"a {kind} joint takes no {', '.join(unknown)}") from None


__all__ = [
    "KINDS",
    "SIMPLE",
    "Composite",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "Joint",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "SphericalZYX",
    "Translation",
    "Universal",
    "make",
    "unit_axis",
]
