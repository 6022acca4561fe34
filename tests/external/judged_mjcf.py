"""Passive forces, actuator forces and accelerations of an MJCF file against MuJoCo's, contacts and limits off.

`python tests/external/judged_mjcf.py FOLDER...` judges all files below some folders, and prints a line for each.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np

import linkwork as lw
from linkwork.backends import get
from linkwork.errors import LinkworkError
from linkwork.interop import mujoco as coordinates
from linkwork.model.springs_and_dampers import passive_force

EPS = float(np.finfo(float).eps)
OFF = ("CONTACT", "LIMIT", "EQUALITY", "CONSTRAINT", "FRICTIONLOSS")
"""What MuJoCo leaves out."""

STATES = 3


class Still(Exception):
    """A file without joints."""


class Verdict(NamedTuple):
    """The largest errors, in units of nv kappa eps of their terms (kappa 1 for forces), and what the file has.

    Rates of activations count as actuator forces.
    """

    passive: float
    actuator: float
    acceleration: float
    springs: int
    actuators: int
    left_out: str


def judged(source: str | Path, backend: str = "kernel") -> Verdict:
    """The verdict on a file, or on the text of one; LinkworkError or ValueError if it cannot be read."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = lw.load(source)
    left_out = "; ".join(str(w.message) for w in said if "left out" in str(w.message))
    load = mujoco.MjModel.from_xml_path if isinstance(source, Path) else mujoco.MjModel.from_xml_string
    m = load(str(source))
    if not m.nv:
        raise Still
    for name in OFF:
        m.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}"))
    to, d, rng, tree = coordinates(model, m), mujoco.MjData(m), np.random.default_rng(0), _without_equalities(model)
    driven, xp = bool(model.nu), get("numpy")
    fd = lw.forward_dynamics(tree, method="ltl" if tree.constraints else "aba", actuators=driven, backend=backend)
    names = [m.actuator(a).name or f"actuator{a}" for a in range(len(m.actuator_trntype))]
    place = [names.index(a.name) for a in model.actuators]
    active = [int(m.actuator_actadr[n]) for n, a in zip(place, model.actuators, strict=True) if a.state]
    worst = np.zeros(3)
    for _ in range(STATES):
        q, v, u = model.random_q(rng), rng.normal(size=model.nv), rng.normal(size=model.nu)
        d.qpos[:], d.qvel[:] = to.q_to(q), to.v_to(q, v)
        d.ctrl[:] = 0.0
        d.ctrl[place] = u
        act = {"act": rng.normal(size=model.na)} if model.na else {}
        d.act[active] = act.get("act", 0.0)
        mujoco.mj_forward(m, d)
        own = passive_force(model, q[:, None], v[:, None], xp)
        passive = to.tau_to(q, np.zeros(model.nv) if own is None else np.asarray(own)[:, 0])
        made = lw.actuation(model, backend="numpy")(q, v, u, **act) if driven else None
        tau, rates = (np.zeros(m.nv), u) if made is None else (to.tau_to(q, made.tau), made.act_rate)
        a = fd(q, v, u if driven else np.zeros(model.nv), **act).a
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, M)
        sizes = (d.qfrc_bias, d.qfrc_passive, d.qfrc_actuator, d.act_dot)
        terms = 1 + max(np.abs(x).max(initial=0.0) for x in sizes)
        off = (
            (passive - d.qfrc_spring - d.qfrc_damper) / terms,
            np.concatenate([tau - d.qfrc_actuator, rates - d.act_dot[active]]) / terms,
            (a - to.a_from(q, v, np.array(d.qacc))) / (np.linalg.cond(M) * (1 + np.abs(a).max(initial=0.0))),
        )
        worst = np.maximum(worst, [np.abs(x).max(initial=0.0) / (EPS * max(model.nv, 1)) for x in off])
    springs = sum(l.passive.acts for l in model.links) + len(model.tendons)
    return Verdict(*map(float, worst), springs, model.nu, left_out)


def _without_equalities(model: lw.Model) -> lw.Model:
    """The tree, with the rotors that stand for armature over several joints."""
    kept = [c for c in model.constraints if c.name.endswith(" rotor") and isinstance(c, lw.Coupling)]
    return model.without_constraints().with_constraints(*kept)


def main(folders: list[str]) -> None:
    """Judge all files below some folders that are models of their own."""
    count = {"agree": 0, "nothing moves": 0, "left out": 0, "differ": 0, "not read": 0}
    for path in sorted(p for f in folders for p in Path(f).rglob("*.xml")):
        try:
            if "<worldbody" not in path.read_text(errors="ignore"):
                continue
            v = judged(path, backend="numpy")
        except Still:
            count["nothing moves"] += 1
            continue
        except (LinkworkError, ValueError, RuntimeError) as problem:
            count["not read"] += 1
            print(f"not read  {path}: {str(problem)[:100]}")
            continue
        good = max(v[:3]) < 100
        kind = "agree" if good else "left out" if v.left_out else "differ"
        count[kind] += 1
        print(
            f"{kind:9} {path}: {v.passive:.1f} {v.actuator:.1f} {v.acceleration:.1f}, {v.springs} springs and dampers,"
            f" {v.actuators} actuators {v.left_out[-120:] if v.left_out else ''}",
            flush=True,
        )
    print(count)


if __name__ == "__main__":
    main(sys.argv[1:])
