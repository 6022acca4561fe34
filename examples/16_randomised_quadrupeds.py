"""4096 quadrupeds with different masses, centres of mass, friction, gains and pushes, in one rollout.

Run: python examples/16_randomised_quadrupeds.py
"""

from __future__ import annotations

from time import process_time

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import quadruped, standing

B, STEPS, DT = 4096, 100, 2e-3

# a robot with servos in its legs, on four feet
model = quadruped()
legs = [l.joint_name for l in model.links[1:] if l.joint.nv == 1]
model = model.with_actuators(*(lw.PositionServo(j, kp=60.0, kd=2.0, force_range=(-40, 40)) for j in legs))
contacts = [lw.Contact(name, friction=0.7) for name in model.frames if "foot" in name]

# feet on the ground, and where the servos hold the legs
q0 = standing(model)
u = np.concatenate([q0[model.q_slice(j)] for j in legs])
start = np.tile(q0, (B, 1)), np.zeros((B, model.nv))

# all robots alike
options = {"dt": DT, "steps": STEPS, "every": STEPS, "contacts": contacts, "actuators": True, "pushes": ["trunk"]}
alike = lw.rollout(model, **options)

# each its own: masses and centres as a payload on the trunk, inertias that are always physical, gains, friction, a push
rng, own = np.random.default_rng(0), model.parameters()
x = lw.log_cholesky(own.inertia) + rng.normal(0.0, [0.05] + 3 * [0.02] + 3 * [0.0] + 3 * [0.01], (B, model.nlinks, 10))
strength = rng.uniform(0.8, 1.2, (B, model.nu, 1))
each = {
    "inertia": lw.from_log_cholesky(x),
    "gain": own.gain * strength,
    "bias": own.bias * strength,
    "damping": rng.uniform(0.0, 0.1, (B, model.nv)) * (np.arange(model.nv) >= 6),
    "friction": rng.uniform(0.4, 1.0, (B, len(contacts))),
}
varied = lw.rollout(model, parameters=("inertia", "gain", "bias", "damping"), **options)
push = np.zeros((B, STEPS // 20, 6))
push[:, 1, 1] = rng.uniform(-60.0, 60.0, B)  # sideways, for 40 ms


def timed(run: lw.Rollout, **given: np.ndarray) -> tuple[lw.RolloutResult, float]:
    """The result of a rollout, and the processor time of the second call (the first one compiles)."""
    run(*start, u=u, push=push, **given)
    begin = process_time()
    return run(*start, u=u, push=push, **given), process_time() - begin


one, t_one = timed(alike)
many, t_many = timed(varied, **each)
print(f"{B} robots, {STEPS} steps with contacts")
print(f"alike:  {1e6 * t_one / (B * STEPS):.2f} us a step of processor time, {one.ok.mean():.1%} valid")
print(f"varied: {1e6 * t_many / (B * STEPS):.2f} us a step, {many.ok.mean():.1%} valid, {t_many / t_one:.2f} times")
print(f"height of trunks: {one.q[:, -1, 2].std():.4f} m around {one.q[:, -1, 2].mean():.3f} m alike,")
print(f"                  {many.q[:, -1, 2].std():.4f} m around {many.q[:, -1, 2].mean():.3f} m varied")
