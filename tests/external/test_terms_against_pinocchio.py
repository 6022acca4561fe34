"""Terms of kinematics and dynamics against Pinocchio, in its three reference frames, on twenty real robots.

What differs by definition, and is taken care of here: Pinocchio's centre of mass leaves out what is fixed to the world,
and its spatial accelerations in LOCAL_WORLD_ALIGNED are rates of no velocity: there ours are its classical ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers import assert_close, cond

pin = pytest.importorskip("pinocchio")

from pin_model import se3, to_pinocchio  # noqa: E402

import linkwork as lw  # noqa: E402
from linkwork.functions.terms import FRAME_TERMS, REFERENCES, TERMS  # noqa: E402
from linkwork.io.zoo import find  # noqa: E402
from linkwork.model.memo import cached  # noqa: E402

ROBOTS = (
    "talos_reduced", "talos_full_v2", "solo12", "anymal_b", "anymal_c", "hyq", "icub", "romeo_small", "tiago", "ur5",
    "ur10", "panda", "kinova", "bolt", "baxter", "iris", "hector", "simple_humanoid", "double_pendulum_simple",
    "allegro_right_hand",
)  # fmt: skip
THEIRS = dict(zip(REFERENCES, (pin.LOCAL, pin.WORLD, pin.LOCAL_WORLD_ALIGNED), strict=True))


def loaded(name: str) -> lw.Model:
    """The robot with nothing fixed to the world, and without constraints."""
    try:
        model = lw.load(find(name).path, base=find(name).base).without_constraints()
    except lw.LinkworkError as problem:
        pytest.skip(f"{name} is not installed: {problem}")
    return replace(model, links=(replace(model.links[0], inertia=lw.BodyInertia()), *model.links[1:]))


@cached
def frames_of(model: lw.Model) -> tuple[str, ...]:
    """A named frame in any place on the last link, the last link itself, and one in the middle."""
    named = [n for n, f in model.frames.items() if f.link]
    return (*named[-1:], model.links[-1].name, model.links[(model.nlinks + 1) // 2].name)


def expected(model, q, v, a, reference):
    """Pinocchio's terms by our names."""
    pm = to_pinocchio(model)
    places = [model.frame(n) for n in frames_of(model)]
    ids = [
        pm.addFrame(pin.Frame(f"our {k}", f.link, se3(f.placement), pin.FrameType.OP_FRAME))
        for k, f in enumerate(places)
    ]
    data, ref, zero = pm.createData(), THEIRS[reference], np.zeros(model.nv)
    classical = reference == "world_aligned"

    def accelerations(x, classical):
        pin.forwardKinematics(pm, data, q, v, x)
        get = pin.getFrameClassicalAcceleration if classical else pin.getFrameAcceleration
        return [get(pm, data, i, ref).vector for i in ids]

    out = {
        "accelerations": accelerations(a, classical),
        "classical_accelerations": accelerations(a, True),
        "Jdot_v": accelerations(zero, classical),
        "velocities": [pin.getFrameVelocity(pm, data, i, ref).vector for i in ids],
    }
    pin.framesForwardKinematics(pm, data, q)
    pin.computeJointJacobians(pm, data, q)
    out |= {
        "positions": [data.oMf[i].translation for i in ids],
        "rotations": [data.oMf[i].rotation for i in ids],
        "J": [pin.getFrameJacobian(pm, data, i, ref) for i in ids],
    }
    pin.centerOfMass(pm, data, q, v, a)
    out |= {"com": data.com[0], "com_velocity": data.vcom[0], "com_acceleration": data.acom[0]}
    out = {n: np.array(x) for n, x in out.items()}
    pin.centerOfMass(pm, data, q, v, zero)
    out |= {"com_Jdot_v": data.acom[0].copy(), "com_J": np.array(pin.jacobianCenterOfMass(pm, data, q))}
    for name, x in (("Adot_v", zero), ("hdot", a)):
        out[name] = np.array(pin.computeCentroidalMomentumTimeVariation(pm, data, q, v, x).vector)
    pin.ccrba(pm, data, q, v)
    M, Minv = np.array(pin.crba(pm, data, q)), np.array(pin.computeMinverse(pm, data, q))
    M, Minv = (np.triu(x) + np.triu(x, 1).T for x in (M, Minv))
    return out | {
        "h": np.array(data.hg.vector),
        "A": np.array(data.Ag),
        "M": M,
        "Minv": Minv,
        "C": np.array(pin.computeCoriolisMatrix(pm, data, q, v)),
        "g": np.array(pin.computeGeneralizedGravity(pm, data, q)),
        "c": np.array(pin.nonLinearEffects(pm, data, q, v)),
        "kinetic_energy": v @ M @ v / 2,  # computeKineticEnergy leaves out rotors of unaligned joints
        "potential_energy": pin.computePotentialEnergy(pm, data, q),
    }


def compare(model, names, reference, backend):
    rng = np.random.default_rng(1)
    q, v, a = model.random_q(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    frames = frames_of(model) if set(names) & set(FRAME_TERMS) else ()
    found = lw.terms(model, names, frames, reference=reference, backend=backend)
    found, theirs = found(*(q, v, a)[: len(found.inputs)]), expected(model, q, v, a, reference)
    weight = model.mass * 10.0  # forces and momenta are sums of terms of this size
    for name in names:
        kappa = cond(theirs["M"]) if name == "Minv" else 1.0
        mechanical = name in ("h", "hdot", "A", "Adot_v", "C", "g", "c", "kinetic_energy", "potential_energy")
        assert_close(getattr(found, name), theirs[name], kappa, scale=weight if mechanical else 10.0)


@pytest.mark.parametrize("robot", ROBOTS)
def test_all_terms_of_real_robots(robot):
    model = loaded(robot)
    for reference in REFERENCES:
        compare(model, (*FRAME_TERMS, *TERMS), reference, "numpy")


@pytest.mark.parametrize("reference", REFERENCES)
def test_frames_compiled(reference):
    compare(loaded("talos_reduced"), tuple(FRAME_TERMS), reference, "kernel")


@pytest.mark.parametrize("robot", ["solo12", "ur5"])
def test_dynamics_compiled(robot):
    compare(loaded(robot), tuple(TERMS), "local", "kernel")
