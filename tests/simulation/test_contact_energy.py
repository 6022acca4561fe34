"""The work that contact impulses do in single steps, p^T (u- + u+) / 2 with u = J v, from random states.

How much more kinetic energy there is than without contacts, p^T (u_free + u+) / 2, is never above zero but for what
brings out of the ground: p_n w with the velocity w of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import linkwork as lw
from linkwork.algorithms.tree.crba import crba
from linkwork.backends import Array, Ops
from linkwork.functions.function import Function
from linkwork.rewrite.rewritten import Rewritten
from linkwork.simulation.steps.contact_step import Solving

PLACES = [2 * np.pi * k / 3 for k in range(3)]
POINTS: dict[str, Sequence[lw.Contact]] = {
    "brick": [lw.BoxContact("body", friction=0.6, size=(0.2, 0.1, 0.06), corner=k) for k in range(4)],
    "capsule": [lw.Contact("body", (0, 0, z), 0.03, friction=0.6, torsion=0.01, rolling=0.002) for z in (-0.1, 0.1)],
}
ROUND: dict[str, Sequence[lw.Contact]] = {
    "egg": [lw.EllipsoidContact("body", friction=0.6, radii=(0.1, 0.05, 0.07))],
    "flat ellipsoid": [lw.EllipsoidContact("body", friction=0.6, radii=(0.1, 0.1, 0.004), further=k) for k in range(3)],
    "disc": [lw.RimContact("body", friction=0.6, rim=0.1, turn=turn) for turn in PLACES],
    "cylinder": [
        lw.RimContact("body", (0, 0, z), friction=0.6, rim=0.06, turn=turn) for z in (-0.05, 0.05) for turn in PLACES
    ],
}
WAVES = lw.Terrain(lambda x, y: 0.05 * np.sin(4.5 * x) * np.cos(4.5 * y))
"""With a radius of curvature of 1 m."""


def body() -> lw.Model:
    builder = lw.Builder("thrown")
    builder.link("body", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.diag([1e-3, 2e-3, 2.5e-3])))
    return builder.build()


def works(
    contacts: Sequence[lw.Contact],
    dt: float,
    slow: Sequence[float],
    tilt: float,
    spin: float = 5.0,
    ground: Any = None,
    lanes: int = 512,
) -> Any:
    """The work of one step's impulses on bodies that touch the ground, thrown at random, and what it must not exceed.

    `mid` is p^T (u- + u+) / 2, `above` is p^T (u_free + u+) / 2: how much more kinetic energy there is than without
    contacts, `pushed` p_n w, and `kinetic` the kinetic energy. `bound` is h^2 a^T M a / 8 for the accelerations a
    without contacts.
    """
    model, rng = body(), np.random.default_rng(11)
    step = lw.step(model, contacts, ground=ground or lw.Ground())

    def account(xp: Ops, x: Mapping[str, Array]) -> dict[str, Array]:
        s = Solving(step.of, Rewritten(model), xp, x)
        p = s.problem.split(x["p"])
        kick = s.problem.impulse(p)
        before, M = s.motion.v, crba(s.motion)
        free, after = (before + s.h * (s.problem.accelerations(f) + s.turn) for f in (0.0 * kick, kick))
        touches = [c.evaluate(s.motion.classical, step.of.ground) for c in contacts]
        return {
            "mid": kick.T @ (before + after) / 2,
            "above": kick.T @ (free + after) / 2,
            "pushed": sum((a[2:3, :] * w for a, w in zip(p, s.problem.pushes, strict=False)), xp.zeros(1)),
            "kinetic": before.T @ (M @ before) / 2,
            "bound": (free - before).T @ (M @ (free - before)) / 8,
            "gaps": xp.vstack([t.gap * xp.eye(1) for t in touches]),
            "rows": xp.vstack([t.K[1][i : i + 1, :].T for t in touches for i in range(3)]),
        }

    sizes = {n: step.inputs[n] for n in ("q", "v", "tau", "dt", "friction", "impulses")}
    accounts = Function("accounts", model, sizes | {"p": sizes["impulses"]}, account)
    q, v = np.zeros((lanes, 7)), rng.standard_normal((lanes, 6)) * [0.3, 0.3, 0.3, spin, spin, spin]
    q[:, 3:] = rng.standard_normal((lanes, 4)) * [tilt, tilt, 1, 1]
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
    tau, h, mu, p = np.zeros(6), [dt], [c.friction for c in contacts], np.zeros(sizes["impulses"])
    if ground:
        q[:, :2] = rng.uniform(-0.5, 0.5, (lanes, 2))
    for _ in range(20 if ground else 1):
        q[:, 2] -= accounts(q, v, tau, h, mu, p, p).gaps.min(axis=1)
    here = accounts(q, v, tau, h, mu, p, p)
    for lane, lowest in enumerate(here.gaps.argmin(axis=1)):  # where it touches it hardly moves
        K = here.rows[lane].reshape(len(contacts), 3, 6)[lowest]
        v[lane] -= np.linalg.pinv(K) @ (K @ v[lane] - rng.standard_normal(3) * slow)
    after = step(q, v, tau, h)
    assert after.converged.all()
    assert (np.abs(after.forces).max(axis=1) > 0).mean() > 0.4
    return accounts(q, v, tau, h, mu, p, after.impulses)


@pytest.mark.parametrize("shape", [*POINTS, *ROUND])
def test_contacts_never_give_energy(shape: str) -> None:
    """Kinetic energy is never more than without contacts, and the work no more than a reversal of slip allows."""
    if shape in POINTS:
        done = works(POINTS[shape], 2e-3, (0.02, 0.02, 0.02), 1.0)
    else:  # nearly flat, where the place of contact moves fast
        done = works(ROUND[shape], 5e-4, (0.01, 0.01, 0.2), 0.03)
    assert done.above.max() < 1e-9
    assert (done.mid - done.bound).max() < 1e-9


@pytest.mark.parametrize("ground", ["plane", "waves"])
@pytest.mark.parametrize("shape", ["brick", *ROUND])
def test_no_step_leaves_more_energy_than_without_contacts(shape: str, ground: str) -> None:
    """Exactly, whatever it does: of fast bodies some in a thousand gained up to 1e-4 of their energy before."""
    contacts = (POINTS | ROUND)[shape]
    for tilt in (1.0, 0.03):
        done = works(contacts, 2e-3, (0.02, 0.02, 0.1), tilt, 30.0, WAVES if ground == "waves" else None, 4096)
        more = done.above - done.pushed
        assert (more <= 1e-12 * done.kinetic).all()
        assert (done.above < -1e-6 * done.kinetic).mean() > 0.2


@pytest.mark.parametrize("shape", ["ellipsoid", "cylinder"])
def test_round_shapes_bounce(shape: str) -> None:
    """As a point does: with e times the velocity of a fall from 0.2 m."""
    contacts: list[lw.Contact]
    if shape == "ellipsoid":
        contacts = [lw.EllipsoidContact("body", radii=(0.2, 0.2, 0.1), restitution=0.8, further=k) for k in range(3)]
    else:
        contacts = [lw.RimContact("body", (0, 0, -0.1), rim=0.1, turn=turn, restitution=0.8) for turn in PLACES]
    v, down = np.zeros(6), np.sqrt(2 * 9.81 * 0.2)
    v[2] = -down
    after = lw.step(body(), contacts, backend="numpy")([0, 0, 0.1, 0, 0, 0, 1], v, np.zeros(6), 1e-3)
    assert after.v[2] == pytest.approx(0.8 * down, rel=1e-9)
    assert after.converged
