"""Sampling MPC (MPPI): a cart-pole swings up, with 512 rollouts of one second for every decision."""

import numpy as np

import linkwork as lw

# a cart of 1 kg on a rail, a pole of 0.2 kg and 1 m on it; q = [place of the cart, angle of the pole], 0 is upright
b = lw.Builder("cart-pole")
b.link("cart", joint="prismatic", axis="x", inertia=lw.BodyInertia(1.0, np.zeros(3), 0.01 * np.eye(3)))
b.link("pole", "cart", joint="revolute", axis="y", inertia=lw.BodyInertia(0.2, np.array([0, 0, 0.5]), 0.02 * np.eye(3)))
model = b.build()

SAMPLES, KNOTS, HOLD, DT = 512, 25, 4, 0.01  # a horizon of 1 s: 25 forces, each held for 4 steps of 10 ms
SPREAD, TEMPERATURE, LIMIT = 8.0, 0.3, 20.0
predict = lw.rollout(model, dt=DT, integrator="semi_implicit", every=HOLD)
rng = np.random.default_rng(0)


def cost(q, v, force):
    """Of each rollout: pole upright and slow, cart in the middle, little force."""
    angle, place = q[..., 1], q[..., 0]
    running = 10 * (1 - np.cos(angle)) + 0.1 * v[..., 1] ** 2 + 0.5 * place**2 + 0.05 * v[..., 0] ** 2
    running = running + 50 * np.maximum(np.abs(place) - 2, 0) + 1e-3 * force**2
    return running.mean(axis=1) + 10 * (1 - np.cos(angle[:, -1])) + 0.1 * v[:, -1, 1] ** 2


q, v = np.array([0.0, np.pi]), np.zeros(2)  # hanging
plan = np.zeros(KNOTS)
for decision in range(100):  # four seconds
    noise = SPREAD * rng.normal(size=(SAMPLES, KNOTS))
    noise[0] = 0  # the plan itself is one of the samples
    forces = np.clip(plan + noise, -LIMIT, LIMIT)
    tau = np.zeros((SAMPLES, KNOTS, 2))
    tau[..., 0] = forces
    future = predict(np.tile(q, (SAMPLES, 1)), v, tau, steps=KNOTS * HOLD)
    price = np.where(future.ok, cost(future.q, future.v, forces), np.inf)
    weight = np.exp(-(price - price.min()) / TEMPERATURE)
    plan = (weight @ forces) / weight.sum()

    now = predict(q, v, np.array([plan[0], 0.0]), steps=HOLD)
    q, v = now.q[-1], now.v[-1]
    plan = np.append(plan[1:], 0.0)
    if decision % 10 == 9:
        print(
            f"{(decision + 1) * HOLD * DT:4.1f} s  cart {q[0]:6.3f} m  pole {np.degrees(q[1]):8.2f} deg  "
            f"force {plan[0]:6.2f} N"
        )

upright = 1 - np.cos(q[1])
print(f"{100 * SAMPLES * KNOTS * HOLD / 1e6:.1f} million steps simulated; 1 - cos(angle) = {upright:.1e}")
assert upright < 0.02, "the pole should stand"
