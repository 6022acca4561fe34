"""Passive forces of joints and tendons: viscous damping and springs.

    tau = -damping v - stiffness x,      x the displacement of the joint from rest (`Joint.displacement`)

and of tendons over several joints (tendon.py): tau = g f, f = -damping l' - stiffness (l - rest). They act beside the
joint forces of the user: M a + c = tau_user + tau + J^T lam. Whatever is zero costs nothing.

A semi-implicit step of h with stiff joints adds an inertia to each (`implicit_inertia`):

    (m + h damping + h^2/2 stiffness) (v+ - v) = h (-damping v - stiffness x),     x+ = x + h v+

which is damping by the velocity at the end of the step, and a spring that is stable for any stiffness (h^2 k / m < 4 is
what semi-implicit steps need, and h^2 k / (m + h^2 k / 2) < 2). No energy of springs is lost; their frequency falls by
(h w)^2 / 4 of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from linkwork.backends.ops import Array, Ops
from linkwork.model.model import Model
from linkwork.model.tendon import Tendon
from linkwork.model.transmission_lengths import column, forces_along, implicit_along, length, length_rate

GROUPS = ("damping", "stiffness", "rest", "tendon_damping", "tendon_stiffness", "tendon_rest")
"""The parameters that passive forces depend on: those of joints and of tendons."""


def passive_force(model: Model, q: Array, v: Array, xp: Ops, given: Mapping[str, Array] | None = None) -> Array | None:
    """The passive forces of all joints, nv x 1, or None; `given` has parameters as columns."""
    return _total(damping_force(model, v, xp, given), spring_force(model, q, xp, given))


def damping_force(model: Model, v: Array, xp: Ops, given: Mapping[str, Array] | None = None) -> Array | None:
    """-damping v of all joints and tendons."""
    known, t, parts = given or {}, model.topology, [xp.zeros(0)]
    damped = ((n, _number(known, "tendon_damping", k, n.damping)) for k, n in enumerate(model.tendons))
    by_tendons = _along(model, [(n, -d * length_rate(model, n.joints, v, xp)) for n, d in damped if _is_some(d)], xp)
    if "damping" in known:
        return _total(-known["damping"] * v, by_tendons)
    if not any(l.passive.damping.any() for l in model.links):
        return by_tendons
    for i in t.links:
        parts.append(-xp.constant(model.links[i].passive.damping) * v[t.v_slices[i], :])
    return _total(xp.vstack(parts), by_tendons)


def spring_force(model: Model, q: Array, xp: Ops, given: Mapping[str, Array] | None = None) -> Array | None:
    """-stiffness x of all joints and tendons."""
    known, t, parts = given or {}, model.topology, [xp.zeros(0)]
    by_tendons = _along(model, [(n, -k * x) for n, k, x in _springs(model, q, xp, known)], xp)
    if "stiffness" not in known and not any(l.passive.stiffness.any() for l in model.links):
        return by_tendons
    for i in t.links:
        k = _stiffness(model, i, xp, known)
        parts.append(xp.zeros(model.links[i].joint.nv) if k is None else -k * _displacement(model, i, q, xp, known))
    return _total(xp.vstack(parts), by_tendons)


def implicit_inertia(
    model: Model, h: Array, xp: Ops, given: Mapping[str, Array] | None = None, q: Array = None
) -> Array | None:
    """What a semi-implicit step adds to armature, nv x 1: h damping + h^2/2 stiffness.

    It is that of joints and, bounded by a diagonal, of tendons. Free joints have none: their springs and damping are
    explicit. `q` says which tendons are slack; none without it.
    """
    known, t, parts, some = given or {}, model.topology, [xp.zeros(0)], False
    for i in t.links:
        joint, own = model.links[i].joint, model.links[i].passive
        total = xp.zeros(joint.nv)
        for name, factor in (("damping", h), ("stiffness", h * h / 2)):
            acts = joint.kind != "free" and (name in known or getattr(own, name).any())
            if acts and joint.nv:
                some = True
                value = known[name][t.v_slices[i], :] if name in known else xp.constant(getattr(own, name))
                total = total + factor * value
        parts.append(total)
    tendons = []
    for k, n in enumerate(model.tendons):
        damping = _number(known, "tendon_damping", k, n.damping)
        tendons.append((n.joints, h * damping + (h * h / 2) * _felt(model, k, q, xp, known)))
    along = column(implicit_along(model, tendons), t.nv, xp) if tendons else None
    return _total(xp.vstack(parts) if some else None, along)


def spring_energy(model: Model, q: Array, xp: Ops, given: Mapping[str, Array] | None = None) -> Array:
    """The energy of all springs, x^T stiffness x / 2, 1 x 1."""
    total = xp.zeros(1)
    for i in model.topology.links:
        if (k := _stiffness(model, i, xp, given or {})) is not None:
            x = _displacement(model, i, q, xp, given or {})
            total = total + x.T @ (k * x) / 2
    for _, k, x in _springs(model, q, xp, given or {}):
        total = total + k / 2 * x**2
    return total


def _springs(model: Model, q: Array, xp: Ops, given: Mapping[str, Array]) -> Iterator[tuple[Tendon, Array, Array]]:
    """Tendons with a spring, its stiffness, and how far it is stretched: zero where it is slack."""
    for n, tendon in enumerate(model.tendons):
        stiffness = _number(given, "tendon_stiffness", n, tendon.stiffness)
        if not _is_some(stiffness):
            continue
        l, (lower, upper) = length(model, tendon.joints, q, xp), _rest(tendon, n, given)
        if upper is lower:
            yield tendon, stiffness, l - lower
            continue
        stretch = xp.where(l > upper, l - upper, xp.where(l < lower, l - lower, 0.0))
        if "tendon_rest" in given:  # inputs may be anything
            stretch = xp.where(upper >= lower, stretch, float("nan"))
        yield tendon, stiffness, stretch


def _felt(model: Model, n: int, q: Array, xp: Ops, given: Mapping[str, Array]) -> Array | float:
    """The stiffness of a tendon, zero where it is slack."""
    tendon = model.tendons[n]
    (lower, upper), stiffness = _rest(tendon, n, given), _number(given, "tendon_stiffness", n, tendon.stiffness)
    if upper is lower or q is None or not _is_some(stiffness):
        return stiffness
    l = length(model, tendon.joints, q, xp)
    return xp.where(l > upper, stiffness, xp.where(l < lower, stiffness, 0.0))


def _rest(tendon: Tendon, n: int, given: Mapping[str, Array]) -> tuple[Array, Array]:
    """The two rest lengths of a tendon; one object where they are one."""
    if "tendon_rest" in given:
        return given["tendon_rest"][2 * n, 0], given["tendon_rest"][2 * n + 1, 0]
    lower, upper = tendon.rest
    return (lower, lower) if lower == upper else (lower, upper)


def _number(given: Mapping[str, Array], name: str, n: int, own: float) -> Array | float:
    """A parameter of tendon n: an input, or the model's own."""
    return given[name][n, 0] if name in given else own


def _is_some(x: Array | float) -> bool:
    """Whether it may be other than zero."""
    return not (isinstance(x, float) and not x)


def _along(model: Model, forces: Sequence[tuple[Tendon, Array]], xp: Ops) -> Array | None:
    """Joint forces of tendons, nv x 1, or None."""
    found = forces_along(model, ((n.joints, f) for n, f in forces))
    return column(found, model.nv, xp) if found else None


def _stiffness(model: Model, i: int, xp: Ops, given: Mapping[str, Array]) -> Array | None:
    if "stiffness" in given:
        return given["stiffness"][model.topology.v_slices[i], :] if model.links[i].joint.nv else None
    own = model.links[i].passive.stiffness
    return xp.constant(own) if own.any() else None


def _displacement(model: Model, i: int, q: Array, xp: Ops, given: Mapping[str, Array]) -> Array:
    at, link = model.topology.q_slices[i], model.links[i]
    rest = given["rest"][at, :] if "rest" in given else xp.constant(link.passive.rest)
    return link.joint.displacement(rest, q[at, :], xp)


def _total(*parts: Array | None) -> Array | None:
    total = None
    for x in parts:
        total = x if total is None else total if x is None else total + x
    return total
