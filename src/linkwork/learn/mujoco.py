"""Many simulations in the dialect of `mujoco.batch` and `mujoco.rollout`, stepped by Linkwork.

    from linkwork.learn import mujoco as batch          # was: from mujoco import batch
    sims = batch.Batch(mj_model, nsim=1024)
    qpos, ctrl = sims.bind("qpos"), sims.bind("ctrl")
    for _ in range(1000):
        ctrl[:] = policy(qpos)
        sims.step()

    from linkwork.learn import mujoco as rollout        # was: from mujoco import rollout
    state, _ = rollout.rollout(mj_model, data, initial_state, control)

Arrays have MuJoCo's conventions: quaternions [w x y z], the linear velocity of a free joint in world axes, its angular
velocity in body axes, states as `mj_getState` orders them. `docs/environments.md` lists what is different.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwork.checks import (
    FLAG,
    WEIGHTS,
    Kind,
    Refused,
    checked,
    choice,
    finite_array,
    instance,
    like,
    optional,
    real_array,
    several,
    shown,
    whole,
)
from linkwork.constraints.collisions import CONTACTS, Pair
from linkwork.constraints.contact import GROUND, Contact, Ground
from linkwork.errors import InputError, MissingExtra, UnsupportedError
from linkwork.functions.kinematics import forward_kinematics
from linkwork.interop.mujoco_ import mujoco as coordinates
from linkwork.io.mjcf import read_compiled
from linkwork.joints import Free
from linkwork.model import Model
from linkwork.model.link import Limits, Passive
from linkwork.simulation.ground.contact_points import contacts as candidates
from linkwork.simulation.rollouts.rollout import Rollout as Run
from linkwork.simulation.rollouts.rollout import rollout as make

try:
    import mujoco as mj
except ImportError as missing:
    raise MissingExtra("mujoco", "mjcf", "linkwork.learn.mujoco") from missing

STATE = {"time": "TIME", "qpos": "QPOS", "qvel": "QVEL", "act": "ACT", "ctrl": "CTRL", "qfrc_applied": "QFRC_APPLIED"}
"""Fields that are the state of a simulation, by their names in MuJoCo's `mjtState`."""

DERIVED = {"xpos": (3,), "xquat": (4,), "xmat": (9,), "site_xpos": (3,), "site_xmat": (9,)}
"""Fields that are computed: places of bodies and sites."""

WORLD = {"xquat": (1, 0, 0, 0), "xmat": (1, 0, 0, 0, 1, 0, 0, 0, 1)}
"""What the first body, which does not move, has in fields that are not zero."""

CTRL, FORCES = int(mj.mjtState.mjSTATE_CTRL), int(mj.mjtState.mjSTATE_QFRC_APPLIED)
FULL, INTEGRATION = int(mj.mjtState.mjSTATE_FULLPHYSICS), int(mj.mjtState.mjSTATE_INTEGRATION)
PHYSICS = int(mj.mjtState.mjSTATE_PHYSICS)


def _recorded(value: Any) -> Any:
    if isinstance(value, str | int | mj.mjtState) and value in ("time", "qpos", "qvel", "act", FULL, PHYSICS):
        return value
    raise Refused


RECORD = several(Kind("'time', 'qpos', 'qvel', 'act', mjSTATE_FULLPHYSICS or mjSTATE_PHYSICS", _recorded))
MJMODEL = like("an mujoco.MjModel", "njnt", "qpos0", "opt", "geom_type")
COUNT = whole(0, 10**9, "a whole number of at least 0")
OUT = optional(instance(Mapping, "a dictionary of arrays"))
DATA = Kind("MjData, or a list of them", lambda x: len(x) if isinstance(x, list | tuple) else 1)
"""Of which rollouts take the number, that of threads."""


class Robot:
    """An MjModel as Linkwork sees it: the model, how it is stepped, and the maps between both coordinates."""

    def __init__(self, m: Any, nthread: int, contacts: Sequence[Contact | Pair] | None, ground: Ground | None) -> None:
        self.m, off = m, int(m.opt.disableflags)
        if m.nplugin or mj.mj_stateSize(m, FULL) != 1 + m.nq + m.nv + m.na:
            raise UnsupportedError(
                "this model has plugins or other state than time, qpos, qvel and act, which Linkwork has not"
            )

        def disabled(*names: str) -> bool:
            return any(off & int(getattr(mj.mjtDisableBit, f"mjDSBL_{n}")) for n in (*names, "CONSTRAINT"))

        model = read_compiled(m)
        self.driven = bool(m.nu) and not off & int(mj.mjtDisableBit.mjDSBL_ACTUATION)
        if self.driven and len(model.actuators) != m.nu:
            raise UnsupportedError(
                f"Linkwork has {len(model.actuators)} of the {m.nu} actuators of this model: affine ones of joints and "
                "fixed tendons; drive it by qfrc_applied instead"
            )
        if disabled("EQUALITY"):
            model = model.without_constraints()
        model = _without(model, disabled("LIMIT"), disabled("FRICTIONLOSS"))
        if contacts is None:
            ground, contacts = _ground(m), []
            if ground is not None and not disabled("CONTACT"):
                contacts = candidates(model)
        rough = any(l.passive.friction.any() or l.limits != Limits(effort=l.limits.effort) for l in model.links)
        slow = contacts or rough or m.opt.integrator != int(mj.mjtIntegrator.mjINT_RK4)
        self.model, self.map = model, coordinates(model, m)
        self.run: Run = make(
            model,
            contacts=list(contacts) if contacts or rough else None,
            ground=ground if contacts else None,
            integrator="semi_implicit" if slow else "rk4",
            stabilisation=bool(model.constraints),
            actuators=self.driven,
            threads=nthread or None,
        )
        free = [model.v_slice(l.joint_name) for l in model.links[1:] if isinstance(l.joint, Free)]
        self.free = [p.there_v for p in self.map.pairs if p.v in free]

    def advance(
        self,
        qpos: np.ndarray,
        qvel: np.ndarray,
        act: np.ndarray,
        ctrl: np.ndarray,
        forces: np.ndarray,
        steps: int,
        every: int,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """qpos (n, steps / every, nq), qvel, act, and which of the n simulations have survived.

        Controls and forces are (n, K, ...), each of the K held for steps / K steps.

        Forces on free joints are in world axes there and in body axes here: with these, steps are taken one by one.
        """
        if any(forces[..., list(at)].any() for at in self.free) and steps > 1:
            ctrl, forces = (np.repeat(x, steps // x.shape[1], axis=1) for x in (ctrl, forces))
            found, ok = [], np.ones(len(qpos), bool)
            for k in range(steps):
                after = self.advance(qpos, qvel, act, ctrl[:, k : k + 1], forces[:, k : k + 1], 1, 1)
                qpos, qvel, act, ok = after[0][:, 0], after[1][:, 0], after[2][:, 0], ok & after[3]
                found.append((qpos, qvel, act))
            places, speeds, states = (np.stack(x, axis=1) for x in zip(*found[every - 1 :: every], strict=True))
            return places, speeds, states, ok
        q = self.model.normalised(self.map.q_from(qpos))
        v = self.map.v_from(q, qvel)
        given: dict[str, Any] = {"dt": float(self.m.opt.timestep), "steps": steps, "every": every}
        if self.driven:
            given["u"] = ctrl
            given |= {"act": act} if self.m.na else {}
        if forces.any():
            given["tau"] = self.map.tau_from(q[:, None], forces)
        result = self.run(q, v, **given)
        # without actuation activations do not move
        states = np.repeat(act[:, None], steps // every, axis=1) if result.act is None else result.act
        return self.map.q_to(result.q), self.map.v_to(result.q, result.v), states, result.ok


class Batch:
    """nsim simulations of a model; see `mujoco.batch.Batch`.

    `contacts` and `ground` replace what Linkwork finds in the model: the candidates of its geoms with its plane.
    """

    @checked(
        model=MJMODEL,
        nsim=whole(1, 10**8, "a number of simulations, at least 1"),
        nthread=COUNT,
        persistent=FLAG,
        contacts=optional(CONTACTS),
        ground=optional(GROUND),
    )
    def __init__(
        self,
        model: Any,
        nsim: int,
        nthread: int = 0,
        persistent: bool = False,
        *,
        contacts: Sequence[Contact | Pair] | None = None,
        ground: Ground | None = None,
    ) -> None:
        self.model, self.nsim, self.nthread, self.persistent = model, nsim, nthread, persistent
        self.robot = Robot(model, nthread, contacts, ground)
        self.state = np.zeros((nsim, mj.mj_stateSize(model, INTEGRATION)))
        self.status = np.zeros(nsim, np.int32)
        self._fields = {n: self._view(n) for n in STATE}
        self._bound: dict[str, np.ndarray] = {}
        self.reset()

    def __repr__(self) -> str:
        return f"<Batch of {self.nsim} '{self.robot.model.name}', {self.robot.run!r}>"

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_") or name not in (*STATE, *DERIVED):
            raise AttributeError(f"'Batch' object has no attribute {name!r}", name=name, obj=self)
        return self.bind(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in STATE:
            self.bind(name)[...] = value
        else:
            object.__setattr__(self, name, value)

    def _view(self, name: str) -> np.ndarray:
        """The part of the state rows that a field is."""
        bit = int(getattr(mj.mjtState, f"mjSTATE_{STATE[name]}"))
        start = mj.mj_stateSize(self.model, INTEGRATION & (bit - 1))
        part = self.state[:, start : start + mj.mj_stateSize(self.model, bit)]
        return part[:, 0] if name == "time" else part

    @checked(name=choice("field that Linkwork binds", (*STATE, *DERIVED)))
    def bind(self, name: str) -> np.ndarray:
        """A live (nsim, ...) array of a field.

        What is written to `time`, `qpos`, `qvel`, `act`, `ctrl` and `qfrc_applied` is the state of simulations.

        `xpos`, `xquat`, `xmat`, `site_xpos` and `site_xmat` are read-only, and those of the state after each call.
        """
        if name in self._fields:
            return self._fields[name]
        if name not in self._bound:
            count = self.model.nsite if name.startswith("site") else self.model.nbody
            self._bound[name] = np.zeros((self.nsim, count, *DERIVED[name]))
            if name in WORLD:
                self._bound[name][:, 0] = WORLD[name]
            self._derive(np.arange(self.nsim))
        view = self._bound[name].view()
        view.flags.writeable = False
        return view

    @checked(nstep=whole(1, 10**9, "a number of steps, at least 1"))
    def step(self, ids: Any = None, nstep: int = 1, stage: int = 0) -> None:
        """Advance simulations by nstep time steps of the model, with the controls and forces that are set."""
        self._rolled(self._lanes(ids), nstep, nstep, None, 0)

    def forward(self, ids: Any = None, stage: int = 0) -> None:
        """Compute the derived fields that are bound."""
        self._derive(self._lanes(ids))

    def reset(self, ids: Any = None, keyframe: Any = -1, stage: int = 0) -> None:
        """Put simulations back to the model's start, or to a keyframe, one for all or one for each."""
        m, lanes = self.model, self._lanes(ids)
        keys = _array("keyframe", keyframe)
        whole = keys.dtype.kind in "iu" and keys.shape in ((), (len(lanes),))
        if not whole or ((keys < -1) | (keys >= m.nkey)).any():
            raise InputError(
                f"keyframe is from -1 to {m.nkey - 1}, one or one for each simulation, not {shown(keyframe)}"
            )
        self.state[lanes], self.status[lanes] = 0.0, 0
        self.qpos[lanes] = m.qpos0
        for k in {*np.unique(keys).tolist()} - {-1}:
            at = lanes[np.broadcast_to(keys, len(lanes)) == k]
            self.time[at], self.qpos[at], self.qvel[at] = m.key_time[k], m.key_qpos[k], m.key_qvel[k]
            self.act[at], self.ctrl[at] = m.key_act[k], m.key_ctrl[k]
        self._derive(lanes)

    @checked(nstep=whole(1, 10**9, "a number of steps, at least 1"), control_spec=COUNT, record=RECORD, out=OUT)
    def rollout(
        self,
        nstep: int,
        control: Any = None,
        control_spec: int = CTRL,
        record: Sequence[Any] = ("qpos",),
        ids: Any = None,
        out: Mapping[Any, np.ndarray] | None = None,
    ) -> dict[Any, np.ndarray]:
        """Advance simulations by nstep steps, and record after each: (n, nstep, ...) by item.

        `control` (n, nstep, c) is what `control_spec` says: ctrl, qfrc_applied, or both one behind the other.
        """
        lanes = self._lanes(ids)
        start = self.time[lanes].copy()
        qpos, qvel, act = self._rolled(lanes, nstep, 1, control, control_spec)
        t = start[:, None] + self.model.opt.timestep * np.arange(1, nstep + 1)
        parts: dict[Any, np.ndarray] = {"time": t, "qpos": qpos, "qvel": qvel, "act": act}
        parts[FULL] = np.concatenate([t[..., None], qpos, qvel, act], axis=-1)
        parts[PHYSICS] = parts[FULL][..., 1:]
        found = {}
        for item in record:
            found[item] = parts[item if isinstance(item, str) else int(item)]
            if out is not None and item in out:
                found[item] = _written("out", out[item], found[item])
        return found

    def _rolled(
        self, lanes: np.ndarray, steps: int, every: int, control: Any, spec: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        inputs = {"ctrl": self.ctrl[lanes][:, None], "qfrc_applied": self.qfrc_applied[lanes][:, None]}
        if control is not None:
            inputs |= _controls(self.model, control, spec, len(lanes), steps)
        ctrl, forces = inputs["ctrl"], inputs["qfrc_applied"]
        start = self.qpos[lanes], self.qvel[lanes], self.act[lanes]
        q, v, act, ok = self.robot.advance(*start, ctrl, forces, steps, every)
        for name, x in inputs.items():
            self._fields[name][lanes] = x[:, -1]
        self.qpos[lanes], self.qvel[lanes], self.act[lanes], self.status[lanes] = q[:, -1], v[:, -1], act[:, -1], ~ok
        self.time[lanes] += steps * self.model.opt.timestep
        self._derive(lanes)
        return q, v, act

    def _derive(self, lanes: np.ndarray) -> None:
        """Places of bodies and sites, of those that are bound."""
        m = self.model
        for what, count, named in (("x", m.nbody, m.body), ("site_x", m.nsite, m.site)):
            wanted = [n for n in self._bound if n.startswith(what)]
            if not wanted or not count:
                continue
            first = 1 if what == "x" else 0
            names = [named(i).name or f"body{i}" for i in range(first, count)]
            found = forward_kinematics(self.robot.model, names)(self.robot.map.q_from(self.qpos[lanes]))
            R = found.rotations
            values = {"pos": found.positions, "mat": R.reshape(*R.shape[:-2], 9)}
            if f"{what}quat" in wanted:
                values["quat"] = _quaternions(R)
            for n in wanted:
                self._bound[n][np.ix_(lanes, np.arange(first, count))] = values[n.removeprefix(what)]

    def _lanes(self, ids: Any) -> np.ndarray:
        """Simulations by their numbers, sorted and unique, or by a mask."""
        x = np.arange(self.nsim) if ids is None else _array("ids", ids)
        if x.dtype == bool and x.shape == (self.nsim,):
            return np.flatnonzero(x)
        inside = x.ndim == 1 and (not x.size or (x.dtype.kind in "iu" and x.min() >= 0 and x.max() < self.nsim))
        if not inside or (x.size > 1 and not (x[1:] > x[:-1]).all()):
            raise InputError(f"ids are sorted numbers below {self.nsim}, or a mask of that size, not {shown(ids)}")
        return x.astype(int)


@checked(model=MJMODEL, nstep=optional(whole(1, 10**9, "a number of steps, at least 1")), control_spec=COUNT, data=DATA)
def rollout(
    model: Any,
    data: Any,
    initial_state: Any,
    control: Any = None,
    *,
    control_spec: int = CTRL,
    skip_checks: bool = False,
    nstep: int | None = None,
    initial_warmstart: Any = None,
    state: np.ndarray | None = None,
    sensordata: np.ndarray | None = None,
    chunk_size: int | None = None,
    persistent_pool: bool = False,
    contacts: Sequence[Contact | Pair] | None = None,
    ground: Ground | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """States (nbatch, nstep, nstate) and sensor data of open-loop rollouts; see `mujoco.rollout.rollout`.

    `initial_state` is (nbatch or 1, nstate), `control` (nbatch or 1, nstep or 1, ncontrol). `data` is not needed; a
    list of several says how many threads there are. Sensors are not modelled: their data are NaN. What is for MuJoCo's
    solver and pool (`initial_warmstart`, `chunk_size`, `persistent_pool`) has no effect.
    """
    first = np.atleast_2d(_numbers("initial_state", initial_state))
    control = None if control is None else _numbers("control", control)
    shape: tuple[int, ...] = () if control is None else control.shape
    steps = nstep or (shape[-2] if len(shape) > 1 else 1)
    count = max(len(first), shape[0] if len(shape) == 3 else 1)
    size = 1 + model.nq + model.nv + model.na
    if first.shape not in ((1, size), (count, size)):
        raise InputError(f"initial_state has shape {first.shape}; it needs (1 or {count}, {size})")
    sims = Batch(model, count, data, contacts=contacts, ground=ground)
    sims.state[:, : first.shape[1]] = first
    found = sims.rollout(steps, control, control_spec, [FULL])[FULL]
    if state is not None:
        found = _written("state", state, found)
    sensors = np.full((count, steps, model.nsensordata), np.nan)
    return found, sensors if sensordata is None else _written("sensordata", sensordata, sensors)


def _controls(m: Any, control: Any, spec: int, count: int, steps: int) -> dict[str, np.ndarray]:
    """Controls and forces in what `spec` says, (count, steps, n) each."""
    if spec & ~(CTRL | FORCES) or not spec:
        raise UnsupportedError("control_spec may have mjSTATE_CTRL and mjSTATE_QFRC_APPLIED; there are no other inputs")
    sizes = {"ctrl": m.nu if spec & CTRL else 0, "qfrc_applied": m.nv if spec & FORCES else 0}
    x, total = _numbers("control", control), sum(sizes.values())
    try:
        x = np.broadcast_to(x, (count, steps, total))
    except ValueError:
        raise InputError(f"control has shape {x.shape}; it needs (1 or {count}, 1 or {steps}, {total})") from None
    parts = {"ctrl": x[..., : sizes["ctrl"]], "qfrc_applied": x[..., sizes["ctrl"] :]}
    return {n: part for n, part in parts.items() if sizes[n]}


def _numbers(name: str, value: Any) -> np.ndarray:
    try:
        return finite_array(value)
    except Refused as why:
        raise InputError(f"{name} is an array of finite numbers, not {shown(value)} ({why})") from None


def _array(name: str, value: Any) -> np.ndarray:
    """Whatever is given, as an array."""
    try:
        return real_array(value, WEIGHTS)  # ids may be a mask
    except Exception:  # objects may do what they like
        raise InputError(f"{name} is an array, not {shown(value)}") from None


def _written(name: str, to: Any, values: np.ndarray) -> np.ndarray:
    """The user's own array with these values."""

    def take(x: Any) -> Any:
        if not (
            isinstance(x, np.ndarray) and x.shape == values.shape and x.dtype == values.dtype and x.flags.writeable
        ):
            raise Refused
        return x

    to = Kind(f"a writable array of {values.dtype} with shape {values.shape}", take).checked(name, to, {})
    to[...] = values
    return np.asarray(to)


def _ground(m: Any) -> Ground | None:
    """The plane of the world that others may touch, if there is one."""
    for g in range(m.ngeom):
        if m.geom_type[g] == int(mj.mjtGeom.mjGEOM_PLANE) and not m.geom_bodyid[g] and m.geom_contype[g]:
            w, x, y, z = m.geom_quat[g]
            normal = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
            return Ground(normal=normal, height=float(normal @ m.geom_pos[g]))
    return None


def _without(model: Model, limits: bool, friction: bool) -> Model:
    """The model without limits of joints, or without their dry friction."""
    if not limits and not friction:
        return model

    def changed(link: Any) -> Any:
        passive: Passive = link.passive
        return replace(
            link,
            limits=Limits(effort=link.limits.effort) if limits else link.limits,
            passive=replace(passive, friction=0 * passive.friction) if friction else passive,
        )

    return replace(model, links=(model.links[0], *map(changed, model.links[1:])))


def _quaternions(R: np.ndarray) -> np.ndarray:
    """[w x y z] of rotation matrices (..., 3, 3), by MuJoCo's own function."""
    out = np.empty((*R.shape[:-2], 4))
    for at in np.ndindex(R.shape[:-2]):
        mj.mju_mat2Quat(out[at], np.ascontiguousarray(R[at]).reshape(9))
    return out
