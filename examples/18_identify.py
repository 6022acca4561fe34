"""Identify an arm from noisy joint torques: what can be identified, how certain, and the model.

The arm moves along sums of sines. The model that somebody believes in has wrong masses and no friction. Base parameters
come with standard deviations; the identified model has the inertias of bodies that can exist, and keeps what torques do
not show.
"""

import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import chain

rng, groups = np.random.default_rng(0), ("inertia", "damping", "joint_friction")
believed = arm = chain(5, seed=4)
for link in arm.links[1:]:
    arm = arm.with_damping(link.joint_name, rng.uniform(0.2, 1.0)).with_friction(link.joint_name, rng.uniform(0.1, 0.5))
    wrong = lw.BodyInertia(link.inertia.mass * rng.uniform(0.6, 1.4), 0.9 * link.inertia.com, link.inertia.I)
    believed = believed.with_inertia(link.name, wrong)

# twenty seconds at 100 Hz: five sines for each joint
t, w = np.arange(0, 20, 0.01)[:, None, None], 0.6 * np.arange(1, 6)
amplitude, phase = rng.normal(size=(arm.nv, 5)) / w, rng.uniform(0, 2 * np.pi, (arm.nv, 5))
q, v, a = (np.sum(amplitude * w**k * np.sin(w * t + phase + k * np.pi / 2), axis=-1) for k in range(3))

noise = 0.2  # N m
exact = lw.regressor(arm, parameters=groups)(q, v, a).Y @ lw.parameter_vector(arm, groups)
tau = exact + noise * rng.normal(size=exact.shape)

found = lw.identify(believed, q, v, a, tau, parameters=groups)
truth = found.base.B @ lw.parameter_vector(arm, groups)
print(f"{found.base.rank} of {found.base.B.shape[1]} parameters can be told apart; condition {found.condition:.0f}")
print(f"{'base parameter':40}{'believed':>10}{'identified':>12}{'+-':>8}{'truth':>10}")
for k in [0, 1, 2, *range(found.base.rank - 4, found.base.rank)]:
    name = found.base.names[k]
    name = name if len(name) < 40 else f"{name[:36]}..."
    row = found.base.values[k], found.values[k], found.std[k], truth[k]
    print(f"{name:40}{row[0]:10.3f}{row[1]:12.3f}{row[2]:8.3f}{row[3]:10.3f}")

off = (found.values - truth) / found.std
print(f"off by {np.sqrt(np.mean(off**2)):.2f} standard deviations; noise {found.noise.mean():.3f} N m, {noise} is true")

# another motion, torques without noise: what the identified model makes of it
check = rng.normal(size=(3, 500, arm.nv))
torques = [
    lw.regressor(m, parameters=groups)(*check).Y @ lw.parameter_vector(m, groups) for m in (arm, believed, found.model)
]
before, after = (np.sqrt(np.mean((torques[0] - x) ** 2)) for x in torques[1:])
print(f"torques of another motion are off by {before:.3f} N m as believed, by {after:.3f} N m as identified")
assert found.converged
assert 0.7 < np.sqrt(np.mean(off**2)) < 1.3
assert after < 0.05 * before
