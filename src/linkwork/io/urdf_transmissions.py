"""Transmissions of a URDF: motors, with the names and reductions of the file.

    simple          tau = n u,         n the <mechanicalReduction> of the actuator
    differential    tau_1 = r_1 (n_1 u_1 + n_2 u_2),   tau_2 = r_2 (n_1 u_1 - n_2 u_2),   r those of the joints

as ROS's transmission_interface has them. Reductions of zero count as one. Others are left out, with one warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from linkwork.io.xml import Element
from linkwork.model.actuator import Actuator, Motor

KINDS = ("SimpleTransmission", "DifferentialTransmission", "")
"""The kinds that are modelled; "" is a simple one, as files without a type have them."""


def read_transmissions(root: Element, joints: set[str]) -> list[Actuator]:
    """The motors of all transmissions of these joints, each with a name of its own."""
    made, left_out, names = list[Actuator](), Counter[str](), set[str]()
    for transmission in root.all("transmission"):
        kind = _kind(transmission)
        driven = [j for j in transmission.all("joint") if _named(j) in joints]
        motors = list(_motors(kind, driven, transmission.all("actuator")))
        if not motors and kind not in KINDS:
            left_out[kind] += 1
        for motor, name in motors:
            while name in names:
                name += "_"
            names.add(name)
            made.append(Motor(motor, name=name))
    if left_out:
        said = ", ".join(f"{k} x '{kind}'" for kind, k in left_out.items())
        root.warn(f"transmissions left out: {said}; simple and differential ones are read")
    return made


def _motors(kind: str, joints: list[Element], actuators: list[Element]) -> Iterator[tuple[dict[str, float], str]]:
    """Gears and name of each motor of a transmission; nothing if its kind is not modelled."""
    if kind == "DifferentialTransmission" and len(joints) == len(actuators) == 2:
        (one, two), (r, s) = map(_named, joints), map(_reduction, joints)
        for actuator, sign in zip(actuators, (1, -1), strict=True):
            n = _reduction(actuator)
            yield {one: r * n, two: sign * s * n}, _named(actuator)
    elif kind in KINDS and len(joints) == 1:
        for actuator in actuators:
            yield {_named(joints[0]): _reduction(actuator)}, _named(actuator)


def _kind(transmission: Element) -> str:
    element = transmission.child("type")
    text = transmission.attributes.get("type", "") if element is None else element.text
    return text.strip().rpartition("/")[2]


def _named(element: Element) -> str:
    return element.attributes.get("name", element.text).strip() or "actuator"


def _reduction(element: Element) -> float:
    inner = element.child("mechanicalReduction")
    return 1.0 if inner is None or not inner.text.strip() else float(inner.content(1)[0]) or 1.0
