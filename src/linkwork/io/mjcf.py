"""MJCF, read by MuJoCo's own compiler.

The compiled model has everything: bodies, joints (several per body become a chain of massless links), anchors, axes,
`ref`, armature, inertias, sites (frames here), gravity, and the equality constraints connect, weld and joint, by body
or by site, and those of fixed tendons. Positions are MuJoCo's own: a joint with `ref` has the value `ref` in the pose
of the file; only the order within quaternions differs ([x y z w] here) and the velocity of a free joint (in body axes
here).

Armature of a free joint acts on the velocity in world axes, as there; that of a tendon or actuator counts as its
joint's where it moves one hinge or slide, and is refused where it couples several. A weld without torque is a connect.

Damping, springs, friction loss and gravity compensation of joints and bodies are those of the file, and so are damping
and springs of fixed tendons, and actuators on joints and fixed tendons whose gain and bias are affine
(mjcf_actuators.py). Not modelled: damping and springs that are not linear, or of actuators; tendons in space, their
limits and friction, contacts, equalities that are not active at the start. A geometry whose mesh is missing is ignored
where the body's inertia is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from linkwork.errors import LoadError, MissingExtra, listing
from linkwork.io.mjcf_actuators import read_actuators
from linkwork.io.mjcf_limits import check
from linkwork.io.shapes import mjcf_colliders, mjcf_filter, mjcf_visuals
from linkwork.io.xml import Element
from linkwork.joints import Fixed, Free, Joint, Prismatic, Revolute, Spherical
from linkwork.model.body import BodyInertia, Placement
from linkwork.model.builder import Builder, base_joint
from linkwork.model.link import Limits
from linkwork.model.model import WORLD, Model
from linkwork.model.tendon import Tendon
from linkwork.model.visual import Look

TORQUE_SCALE = 10
"""Index in the data of a weld of the weight of its rotational rows; with zero it holds a point only."""


NOT_MODELLED = (
    *("jnt_stiffnesspoly", "jnt_springyield", "dof_dampingpoly", "actuator_damping", "actuator_dampingpoly"),
    *("tendon_stiffnesspoly", "tendon_dampingpoly"),
)
"""Springs and damping of a compiled model that are not linear, or those of actuators."""

THINGS = {"tendon_frictionloss": "tendon with friction", "tendon_limited": "tendon with limits"}
"""Arrays of a compiled model whose entries are not modelled, and what they are."""


def read_mjcf(root: Element, data: bytes, path: Path | None, base: str | None = None, passive: bool = True) -> Builder:
    """The robot of a <mujoco> element. `base` None leaves the roots as the file has them.

    Without `passive` bodies have their weight, whatever compensates it.
    """
    check(root, data, path)
    return _Reader(root, _compiled(root, data, path), passive).read(base)


def read_compiled(m: Any) -> Model:
    """The model of an `mujoco.MjModel` that somebody else has compiled, as it is now."""
    name = bytes(m.names).split(b"\0", 1)[0].decode() or "model"
    return _Reader(Element("mujoco", {"model": name}, 0, "an MjModel"), m, True, kept=False).read(None).build(True)


class _Reader:
    def __init__(self, root: Element, m: Any, passive: bool, kept: bool = True) -> None:
        import mujoco

        self.root, self.m, self.mj, self.passive, self.kept = root, m, mujoco, passive, kept
        gravity = np.array(m.opt.gravity)
        if m.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_GRAVITY):
            gravity = np.zeros(3)
        self.builder = Builder(root.get("model", "model").strip() or "model", gravity, strict=False)
        self.bodies = [WORLD, *(m.body(i).name or f"body{i}" for i in range(1, m.nbody))]
        self.joints = [m.joint(j).name or self._unnamed(j) for j in range(m.njnt)]
        self.links = set(self.bodies)
        self.driven = self._driven()
        self.coupled: list[tuple[str, float, dict[str, float]]] = []
        self.armature = np.array(m.dof_armature) + self._reflected()

    def read(self, base: str | None) -> Builder:
        for i in range(1, self.m.nbody):
            self._body(i, base)
        touching = mjcf_filter(self.m, self.bodies, base)
        for i in range(self.m.nbody):
            self.builder.look(self.bodies[i], Look(partial(mjcf_visuals, self.m, i)))
            self.builder.outline(self.bodies[i], Look(partial(mjcf_colliders, self.m, i, self.kept, touching)))
        for s in range(self.m.nsite):
            name = self.m.site(s).name
            if name:
                taken = name in self.links or name in self.builder._frames
                place = Placement.from_quaternion(self.m.site_pos[s], _xyzw(self.m.site_quat[s]))
                self.builder.frame(f"{name}/site" if taken else name, self.bodies[self.m.site_bodyid[s]], place)
        left_out = [
            f"{self.m.eq(e).name or e} ({_name(self.mj.mjtEq, self.m.eq_type[e])})"
            for e in range(self.m.neq)
            if self.m.eq_active0[e] and not self._equality(e)
        ]
        self._rotors()
        made, dropped = read_actuators(self.m, self.mj, self.joints, self._wraps)
        there = self.builder._joint_names
        self.builder.actuators += [a for a in made if a.joints.keys() <= there]
        self.builder.tendons += [t for t in self._tendons() if t.joints.keys() <= there]
        self._warn_of_what_is_left_out(dropped)
        if left_out:
            self.root.warn(
                f"the equalities {listing(left_out)} are left out; connect, weld, joint and those of "
                "fixed tendons are modelled, with polynomials of lengths that are one joint's"
            )
        return self.builder

    def _unnamed(self, j: int) -> str:
        body = self.m.jnt_bodyid[j]
        number = str(j - self.m.body_jntadr[body]) if self.m.body_jntnum[body] > 1 else ""
        return f"{self.bodies[body]}_joint{number}"

    def _kind(self, j: int) -> Any:
        return self.mj.mjtJoint(int(self.m.jnt_type[j]))

    def _driven(self) -> set[int]:
        """The joints that actuators drive; all that are not free where the file has no actuator."""
        actuators = range(len(self.m.actuator_trntype))  # not nu: one actuator may have several controls
        if not actuators:
            return {j for j in range(self.m.njnt) if self._kind(j) != self.mj.mjtJoint.mjJNT_FREE}
        return {j for a in actuators for j in (self._drives(a) or ())}

    def _drives(self, a: int) -> dict[int, float] | None:
        """The joints of an actuator, with their coefficients in its length; None for other transmissions."""
        m, kinds = self.m, self.mj.mjtTrn
        kind, target = kinds(int(m.actuator_trntype[a])), int(m.actuator_trnid[a][0])
        gear = float(m.actuator_gear[a][0])
        turned = kind == getattr(kinds, "mjTRN_SO3", None) and m.actuator_trnid[a][1] < 0  # a ball joint, no site
        if turned or kind in (kinds.mjTRN_JOINT, kinds.mjTRN_JOINTINPARENT):
            return {target: gear}
        wrapped = self._wraps(target) if kind == kinds.mjTRN_TENDON else None
        return None if wrapped is None else {j: gear * coefficient for j, coefficient in wrapped.items()}

    def _wraps(self, tendon: int) -> dict[int, float] | None:
        """The joints of a fixed tendon and their coefficients; None for one that runs through space."""
        m = self.m
        wraps = range(m.tendon_adr[tendon], m.tendon_adr[tendon] + m.tendon_num[tendon])
        if any(m.wrap_type[w] != int(self.mj.mjtWrap.mjWRAP_JOINT) for w in wraps):
            return None
        out: dict[int, float] = {}
        for w in wraps:
            out[int(m.wrap_objid[w])] = out.get(int(m.wrap_objid[w]), 0.0) + float(m.wrap_prm[w])
        return out

    def _reflected(self) -> np.ndarray:
        """The armature of tendons and actuators by degree of freedom; `self.coupled` is that over several.

        A length l(q) with armature m adds m (dl/dq)^T (dl/dq) to the mass matrix: a number for one hinge or slide.
        """
        m, extra = self.m, np.zeros(self.m.nv)
        lengths = [
            ("tendon", m.tendon(n).name or n, float(m.tendon_armature[n]), self._wraps(n)) for n in range(m.ntendon)
        ]
        if hasattr(m, "actuator_armature"):  # since MuJoCo 3.4
            lengths += [
                ("actuator", m.actuator(a).name or a, float(m.actuator_armature[a]), self._drives(a))
                for a in range(len(m.actuator_trntype))
            ]
        for what, name, armature, along in lengths:
            if not armature:
                continue
            joints = {} if along is None else {j: c for j, c in along.items() if c}
            single = (self.mj.mjtJoint.mjJNT_HINGE, self.mj.mjtJoint.mjJNT_SLIDE)
            if along is None or any(self._kind(j) not in single for j in joints):
                raise self.root.error(
                    f"the {what} '{name}' has an armature ({armature:g}) on a length that is not a linear function of "
                    "hinges and slides, which a model cannot express; remove it, or give joints an armature instead"
                )
            if len(joints) > 1:
                self.coupled.append((str(name), armature, {self.joints[j]: c for j, c in joints.items()}))
                continue
            for j, c in joints.items():
                extra[m.jnt_dofadr[j]] += armature * c * c
        return extra

    def _rotors(self) -> None:
        """Armature over several joints: a rotor without mass that these turn together, by its gears.

        With q_r = l(q) its inertia m adds m (dl/dq)^T (dl/dq) to what the joints feel. Where it sits does not matter to
        that: on the last link that carries all of them, so that they are one cluster.
        """
        from linkwork.constraints import Coupling

        for name, armature, joints in self.coupled:
            turned = {j: [c] for j, c in joints.items() if j in self.builder._joint_names}
            if turned:
                rotor = self._unused(f"{name} rotor")
                how: dict[str, Any] = {"axis": "z", "armature": armature, "joint_name": rotor, "actuated": False}
                self.builder.link(rotor, self._carrier(turned), "revolute", **how)
                self.builder.constraints.append(Coupling(rotor, turned, name=rotor))

    def _carrier(self, joints: Iterable[str]) -> str:
        """The last link that carries all these joints."""
        drafts, paths = self.builder._drafts, list[list[str]]()
        for joint in joints:
            path = [next(d.parent for d in drafts.values() if d.joint_name == joint)]
            while path[-1] != WORLD:
                path.append(drafts[path[-1]].parent)
            paths.append(path)
        return next(link for link in paths[0] if all(link in path for path in paths))

    def _body(self, i: int, base: str | None) -> None:
        """A body: one link per joint, each at the joint's anchor with the body's axes, then the body itself."""
        m, name = self.m, self.bodies[i]
        parent = self.bodies[m.body_parentid[i]]
        placement = Placement.from_quaternion(m.body_pos[i], _xyzw(m.body_quat[i]))
        inertia = _inertia(m, i)
        held = float(m.body_gravcomp[i]) if self.passive else 0.0
        weightless = BodyInertia(held * inertia.mass, inertia.com)
        joints = list(range(m.body_jntadr[i], m.body_jntadr[i] + m.body_jntnum[i]))
        if parent == WORLD and base is not None:
            joint = self._base(i, joints, base)
            if joint is not None:
                placement = placement if isinstance(joint, Fixed) else Placement()
                self.builder.link(
                    name,
                    WORLD,
                    joint,
                    placement=placement,
                    inertia=inertia,
                    weightless=weightless,
                    joint_name="root_joint",
                    actuated=False,
                )
                return
        anchor = np.zeros(3)
        for j in joints:
            joint, start, at = self._joint(j)
            placement = Placement() if isinstance(joint, Free) else placement @ Placement(p=at - anchor) @ start
            last = j == joints[-1] and not at.any()
            link = name if last else self._unused(f"{name}/{self.joints[j]}")
            self.builder.link(
                link,
                parent,
                joint,
                placement=placement,
                inertia=inertia if last else None,
                armature=self.armature[m.jnt_dofadr[j] : m.jnt_dofadr[j] + joint.nv],
                joint_name=self.joints[j],
                limits=self._limits(j),
                actuated=j in self.driven,
                weightless=weightless if last else None,
                **self._passive(j, joint),
            )
            parent, placement, anchor = link, Placement(), at
        if not joints or anchor.any():
            name_of_joint = self._unused(f"{name}/fixed")
            self.builder.link(
                name,
                parent,
                "fixed",
                placement=placement @ Placement(p=-anchor),
                inertia=inertia,
                weightless=weightless,
                joint_name=name_of_joint,
            )

    def _base(self, i: int, joints: list[int], base: str) -> Joint | None:
        """The joint that replaces those of a root body; None where they stay, or the body is no base."""
        free = [self._kind(j) == self.mj.mjtJoint.mjJNT_FREE for j in joints]
        if base == ("free" if any(free) else "fixed"):
            return None
        roots = np.count_nonzero(self.m.body_parentid[1:] == 0)
        if (joints and not any(free)) or (base != "fixed" and roots > 1):
            raise self.root.error(
                f"base='{base}' needs a single root body that is fixed or free; '{self.bodies[i]}' has other joints or "
                "is not the only one; leave out base= to take the file as it is"
            )
        return base_joint(base)

    def _joint(self, j: int) -> tuple[Joint, Placement, np.ndarray]:
        """A joint, the constant motion before it that makes its zero MuJoCo's, and its anchor on the body."""
        m, kinds = self.m, self.mj.mjtJoint
        kind, axis, at = self._kind(j), np.array(m.jnt_axis[j]), np.array(m.jnt_pos[j])
        ref = float(m.qpos0[m.jnt_qposadr[j]])
        if kind == kinds.mjJNT_FREE:
            return Free("parent" if m.dof_armature[m.jnt_dofadr[j]] else "link"), Placement(), np.zeros(3)
        if kind == kinds.mjJNT_BALL:
            return Spherical(), Placement(), at
        if kind == kinds.mjJNT_SLIDE:
            return Prismatic(axis), Placement(p=-ref * axis), np.zeros(3)
        half = np.array([*(np.sin(-ref / 2) * axis), np.cos(ref / 2)])
        return Revolute(axis), Placement.from_quaternion(np.zeros(3), half), at

    def _passive(self, j: int, joint: Joint) -> dict[str, Any]:
        """Damping, spring and friction of a joint, unless the file disables them."""
        m = self.m
        dof, at = int(m.jnt_dofadr[j]), int(m.jnt_qposadr[j])
        rest = np.array(m.qpos_spring[at : at + joint.nq])
        if isinstance(joint, Free | Spherical):
            rest[-4:] = _xyzw(rest[-4:])
        return {
            "damping": np.maximum(m.dof_damping[dof : dof + joint.nv], 0.0) if self._enabled("DAMPER") else 0.0,
            "stiffness": max(float(m.jnt_stiffness[j]), 0.0) if self._enabled("SPRING") else 0.0,
            "rest": rest,
            "friction": np.maximum(m.dof_frictionloss[dof : dof + joint.nv], 0.0),
        }

    def _tendons(self) -> Iterator[Tendon]:
        """Springs and dampers over several joints, unless the file disables them."""
        m, stiff, damped = self.m, self._enabled("SPRING"), self._enabled("DAMPER")
        for n in range(m.ntendon if self.passive else 0):
            k, d = max(float(m.tendon_stiffness[n]), 0.0) * stiff, max(float(m.tendon_damping[n]), 0.0) * damped
            along = self._wraps(n) if k or d else None
            if along is not None:
                gears = {self.joints[j]: (c,) for j, c in along.items()}
                rest = (float(m.tendon_lengthspring[n][0]), float(m.tendon_lengthspring[n][1]))
                yield Tendon(gears, k, d, rest, m.tendon(n).name or f"tendon{n}")

    def _enabled(self, what: str) -> bool:
        """Whether the file leaves springs or dampers on."""
        return not int(self.m.opt.disableflags) & int(getattr(self.mj.mjtDisableBit, f"mjDSBL_{what}", 0))

    def _warn_of_what_is_left_out(self, actuators: Mapping[str, int]) -> None:
        """Warn, once, of what the file has and a model has not, with numbers."""
        m, names = self.m, (*THINGS, *(NOT_MODELLED if self.passive else ()))
        found: dict[str, Any] = {THINGS.get(n, n.replace("_", " ")): np.count_nonzero(getattr(m, n, 0)) for n in names}
        if self.passive:
            resisting = np.flatnonzero((m.tendon_stiffness > 0) | (m.tendon_damping > 0))
            found["spring or damper in space"] = sum(self._wraps(int(n)) is None for n in resisting)
        if m.opt.density or m.opt.viscosity:
            found["fluid"] = 1
        found |= {"flex": int(getattr(m, "nflex", 0)), "plugin": int(m.nplugin), **actuators}
        if any(found.values()):
            said = listing(f"{k} x {n}" for n, k in found.items() if k)
            self.root.warn(
                f"left out: {said}; linear damping and springs, and affine actuators, of joints and fixed tendons are "
                "modelled"
            )

    def _limits(self, j: int) -> Limits:
        m = self.m
        single = self._kind(j) in (self.mj.mjtJoint.mjJNT_HINGE, self.mj.mjtJoint.mjJNT_SLIDE)
        lower, upper = m.jnt_range[j] if m.jnt_limited[j] and single else (-np.inf, np.inf)
        effort = float(np.abs(m.jnt_actfrcrange[j]).max()) if m.jnt_actfrclimited[j] else np.inf
        return Limits(float(lower), float(upper), effort)

    def _equal_lengths(self, name: str, data: np.ndarray, one: int, two: int) -> bool:
        """l1 - l1_0 = sum a_k (l2 - l2_0)^k of fixed tendons, as a coupling; False if it is none.

        It is one of their joints where the polynomial is linear, or the second tendon is over one joint that the first
        does not have.
        """
        from linkwork.constraints import Coupling

        first, second = self._wraps(one), self._wraps(two) if two >= 0 else {}
        if first is None or second is None:
            return False
        ref = {j: float(self.m.qpos0[self.m.jnt_qposadr[j]]) for j in {*first, *second}}
        along = {j: np.polynomial.Polynomial([-c * ref[j], c]) for j, c in second.items()}  # its part of l2 - l2_0
        law = np.polynomial.Polynomial(data[:5])
        if np.any(data[2:5]) and (len(along) > 1 or {*first} & {*second}):
            return False
        total = {j: law(x) - law.coef[0] for j, x in along.items()}
        constant = float(law.coef[0])
        for j, c in first.items():  # on the other side: l1 - l1_0
            total[j] = total.get(j, np.polynomial.Polynomial([0.0])) - np.polynomial.Polynomial([-c * ref[j], c])
        linear = {j: float(total[j].trim().coef[1]) for j in first if total[j].trim().degree() == 1}
        if not linear:
            return False
        dependent = max(linear, key=lambda j: abs(linear[j]))
        scale = -1.0 / linear[dependent]
        constant += sum(float(x.coef[0]) for x in total.values())
        terms = {self.joints[j]: (scale * x.coef[1:]).tolist() for j, x in total.items() if j != dependent}
        terms = {n: np.trim_zeros(c, "b") for n, c in terms.items() if any(c)}
        self.builder.constraints.append(Coupling(self.joints[dependent], terms, scale * constant, name=name))
        return True

    def _equality(self, e: int) -> bool:
        """One equality constraint; False if its kind is not modelled."""
        from linkwork.constraints import Connect, Coupling, Weld

        m, kinds = self.m, self.mj.mjtEq
        kind, data, one, two = kinds(int(m.eq_type[e])), m.eq_data[e], int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
        name = m.eq(e).name or f"equality{e}"
        if kind == kinds.mjEQ_JOINT:
            offset, terms = _polynomial(m, data, one, two)
            coupling = Coupling(self.joints[one], {self.joints[two]: terms} if two >= 0 else {}, offset, name=name)
            self.builder.constraints.append(coupling)
            return True
        if kind == kinds.mjEQ_TENDON:
            return self._equal_lengths(name, data, one, two)
        if kind not in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
            return False
        weld, turns = kind == kinds.mjEQ_WELD, not data[TORQUE_SCALE]
        if m.eq_objtype[e] == int(self.mj.mjtObj.mjOBJ_SITE):
            places = [Placement.from_quaternion(m.site_pos[s], _xyzw(m.site_quat[s])) for s in (one, two)]
            one, two = int(m.site_bodyid[one]), int(m.site_bodyid[two])
        elif weld:  # the anchor is on the second body, the relative pose on the first
            places = [Placement.from_quaternion(data[3:6], _xyzw(data[6:10])), Placement(p=data[0:3])]
        else:
            places = [Placement(p=data[0:3]), Placement(p=data[3:6])]
        if m.body_weldid[one] == m.body_weldid[two]:  # occurs in real files: fixtures welded to the world they stand in
            self.root.warn(f"the equality '{name}' ties bodies that no joint separates; it is left out")
            return True
        ends = (f"{name}/a", f"{name}/b")
        for end, body, place in zip(ends, (one, two), places, strict=True):
            self.builder.frame(end, self.bodies[body], place)
        self.builder.constraints.append((Weld if weld and not turns else Connect)(*ends, name=name))
        return True

    def _unused(self, name: str) -> str:
        while name in self.links or name in self.joints:
            name += "_"
        self.links.add(name)
        return name


def _polynomial(m: Any, data: np.ndarray, one: int, two: int) -> tuple[float, list[float]]:
    """q1 - ref1 = sum a_k (q2 - ref2)^k: the constant, and coefficients of q2, q2^2, ... (if any)."""
    ref = float(m.qpos0[m.jnt_qposadr[one]])
    if two < 0:
        return ref + float(data[0]), []
    shift = np.polynomial.Polynomial([-float(m.qpos0[m.jnt_qposadr[two]]), 1.0])
    constant, *terms = np.polynomial.Polynomial(data[:5])(shift).trim().coef
    return ref + float(constant), [float(c) for c in terms]


SAME_FRAME = 1
"""mjSAMEFRAME_BODY: MuJoCo takes the centre of mass for the body's origin, some nanometres off as that may be."""


def _inertia(m: Any, i: int) -> BodyInertia:
    if m.body_sameframe[i] == SAME_FRAME:
        return BodyInertia(float(m.body_mass[i]), np.zeros(3), np.diag(m.body_inertia[i]))
    axes = Placement.from_quaternion(m.body_ipos[i], _xyzw(m.body_iquat[i]))
    return BodyInertia(float(m.body_mass[i]), np.zeros(3), np.diag(m.body_inertia[i])).moved(axes)


def _xyzw(wxyz: np.ndarray) -> np.ndarray:
    return np.asarray(wxyz)[[1, 2, 3, 0]]


def _name(kinds: Any, value: int) -> str:
    return str(kinds(int(value)).name).rpartition("_")[2].lower()


def _compiled(root: Element, data: bytes, path: Path | None) -> Any:
    """MuJoCo's model; where only meshes, textures and the like are missing, without these."""
    try:
        import mujoco
    except ImportError:
        raise MissingExtra("mujoco", "mjcf", "reading MJCF") from None

    def spec() -> Any:
        """The file without what geoms may touch, which `geom_user` of the model gets instead.

        Convex hulls of meshes would take most of the time.
        """
        out = mujoco.MjSpec.from_file(str(path)) if path is not None else mujoco.MjSpec.from_string(data.decode())
        out.nuser_geom = 2
        for geom in out.geoms:
            geom.userdata = [geom.contype, geom.conaffinity]
            geom.contype = geom.conaffinity = 0
        out.compiler.discardvisual = False  # geoms that cannot collide stay
        return out

    try:
        try:
            return spec().compile()
        except (ValueError, mujoco.FatalError, mujoco.UnexpectedError) as problem:
            bare = spec()
            if not _strip(bare, mujoco):
                raise problem from None
            return bare.compile()
    except LoadError:
        raise
    except Exception as problem:  # any error that the compiler raises is about the file
        message = " ".join(str(problem).split())
        raise root.error(f"MuJoCo's compiler refuses it: {message}; correct the file") from problem


def _strip(spec: Any, mujoco: Any) -> bool:
    """Delete looks and meshes on bodies whose inertia is given; False if there is nothing of the kind."""
    shapes = (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_HFIELD, mujoco.mjtGeom.mjGEOM_SDF)
    looks = [*spec.skins, *spec.textures, *spec.materials]
    geoms = [g for g in spec.geoms if g.type in shapes and (g.parent.explicitinertial or g.parent.name == WORLD)]
    for geom in spec.geoms:
        geom.material = ""
    for thing in (*geoms, *looks):
        spec.delete(thing)
    used = {g.meshname for g in spec.geoms}
    for mesh in [*(x for x in spec.meshes if x.name not in used), *spec.hfields]:
        spec.delete(mesh)
    return bool(looks or geoms)
