"""Contact with friction against what mechanics says: sliding, sticking, rolling, bouncing, limits, loops."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import ConvergenceWarning, InputError, UnsupportedError
from linkwork.model import Limits
from linkwork.robots.mechanisms import quadruped

G = 9.81
CORNERS = [(x, y) for x in (-1, 1) for y in (-1, 1)]


ONE = lw.BodyInertia(1.0, np.zeros(3), np.eye(3))


def cube(side: float = 0.1, mass: float = 1.0, friction: float = 0.5) -> tuple[lw.Model, list[lw.Contact]]:
    """A cube and the four corners of its lower face."""
    b = lw.Builder("cube")
    b.link("cube", joint="free", inertia=lw.BodyInertia(mass, np.zeros(3), np.eye(3) * mass * side**2 / 6))
    half = side / 2
    return b.build(), [lw.Contact("cube", (x * half, y * half, -half), friction=friction) for x, y in CORNERS]


def ball(radius: float = 0.1, **options: float) -> tuple[lw.Model, list[lw.Contact]]:
    """A solid ball of 1 kg."""
    b = lw.Builder("ball")
    b.link("ball", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3) * 0.4 * radius**2))
    return b.build(), [lw.Contact("ball", radius=radius, **options)]


def at(height: float) -> np.ndarray:
    return np.array([0, 0, height, 0, 0, 0, 1.0])


@pytest.fixture(scope="module")
def sliding_cube() -> lw.Rollout:
    model, corners = cube()
    return lw.rollout(model, contacts=corners, record=("forces",), threads=1)


def test_a_cube_slides_to_rest(sliding_cube: lw.Rollout) -> None:
    v0 = np.array([6.0, 0, 0, 0, 0, 0])
    exact = 36 / (2 * 0.5 * G)
    for dt, error in ((1e-3, 5e-3), (1e-4, 5e-4)):
        run = sliding_cube(at(0.05), v0, steps=round(1.4 / dt), every=round(0.1 / dt), dt=dt)
        assert run.q[-1, 0] == pytest.approx(exact, rel=error)
        assert np.abs(run.q[:, 2] - 0.05).max() < 1e-9
        assert np.abs(run.q[:, 3:6]).max() < 1e-4
        assert np.abs(run.v[-1]).max() < 1e-9
        assert run.residual < 1e-6
        assert run.forces[0].sum(axis=0) == pytest.approx([-0.5 * G, 0, G], abs=1e-5)


@pytest.mark.parametrize("friction", [0.5, 0.4])
def test_a_cube_on_a_slope(friction: float) -> None:
    """tan(0.4) = 0.4228: it rests with friction 0.5, without creeping, and slides with 0.4."""
    slope, model, corners = 0.4, *cube()
    tilted = replace(model, gravity=G * np.array([np.sin(slope), 0, -np.cos(slope)]))
    run = lw.rollout(tilted, contacts=corners, threads=1)
    end = run(at(0.05), np.zeros(6), steps=500, every=500, friction=np.full(4, friction))
    speed = max(0.0, 0.5 * G * (np.sin(slope) - friction * np.cos(slope)))
    assert end.v[-1, 0] == pytest.approx(speed, abs=1e-9)
    if not speed:
        assert np.abs(end.v[-1]).max() < 1e-9
        assert abs(end.q[-1, 0]) < 1e-9


def test_a_ball_begins_to_roll() -> None:
    """Sliding at v0 without spin, it rolls from v = 5/7 v0 on, and keeps that."""
    model, contacts = ball(friction=0.3)
    end = lw.rollout(model, contacts=contacts, threads=1)(at(0.1), [2.0, 0, 0, 0, 0, 0], steps=1000, every=10)
    speed = np.linalg.norm(end.v[:, :2], axis=1)
    forward = np.diff(end.q[:, 0]) / 0.01
    assert forward[-1] == pytest.approx(10 / 7, rel=1e-6)
    assert np.linalg.norm(end.v[-1, 3:]) == pytest.approx(10 / 7 / 0.1, rel=1e-6)
    assert np.all(np.diff(np.linalg.norm(end.v[:, :3], axis=1)) < 1e-9)
    assert np.isfinite(speed).all()


def test_a_ball_bounces() -> None:
    """Heights fall by the square of the restitution, times by the restitution."""
    e, h0 = 0.8, 1.0
    model, contacts = ball(restitution=e)
    dt = 1e-4
    z = lw.rollout(model, contacts=contacts, threads=1, dt=dt)(at(0.1 + h0), np.zeros(6), steps=20_000).q[:, 2] - 0.1
    fall = np.sqrt(2 * h0 / G)
    hits = [fall + 2 * fall * sum(e**k for k in range(1, n + 1)) for n in range(3)]
    touched = dt * (1 + np.flatnonzero((z[1:-1] < z[:-2]) & (z[1:-1] <= z[2:])))
    assert touched[:3] == pytest.approx(hits, abs=3 * dt)
    top = z[round(hits[0] / dt) : round(hits[1] / dt)].max()
    assert top == pytest.approx(e**2 * h0, rel=1e-3)


@pytest.mark.filterwarnings("ignore::linkwork.errors.ConvergenceWarning")
@pytest.mark.parametrize("depth", [1e-3, 1e-2, 0.1, 1.0])
def test_what_starts_below_the_ground_comes_out_and_stays(sliding_cube: lw.Rollout, depth: float) -> None:
    """With at most w = 8 g T = 1.57 m/s, so that gravity stops it at the ground: within two steps of that velocity."""
    after = sliding_cube(at(0.05 - depth), np.zeros(6), steps=1000, every=1)
    height, speed = after.q[:, 2] - 0.05, 8 * G * 0.02
    assert height.max() < 2e-3 * speed
    assert np.abs(after.v).max() <= depth / (0.02 + depth / speed) + 1e-9
    assert abs(height[-1]) < 1e-8
    assert np.abs(after.v[-1]).max() < 1e-7
    assert after.converged


def test_energy_never_rises_by_contact() -> None:
    """Cubes thrown onto the ground, tumbling."""
    rng, side = np.random.default_rng(3), 0.1
    model, _ = cube()
    corners = [lw.Contact("cube", (x * side / 2, y * side / 2, z * side / 2)) for x, y in CORNERS for z in (-1, 1)]
    q = np.tile(at(0.3), (16, 1))
    v = rng.standard_normal((16, 6)) * [1, 1, 1, 5, 5, 5]
    run = lw.rollout(model, contacts=corners, threads=1)(q, v, steps=1500, every=10)
    energy = 0.5 * (run.v[..., :3] ** 2).sum(-1) + 0.5 * side**2 / 6 * (run.v[..., 3:] ** 2).sum(-1) + G * run.q[..., 2]
    assert np.diff(energy, axis=1).max() < 1e-4 * energy[:, :1].max()
    assert run.ok.all()
    assert run.residual.max() < 2e-3  # in the worst of 24 000 steps
    assert np.abs(run.q[:, -1, 2] - side / 2).max() < 1e-3  # all lie on a face
    assert np.abs(run.v[:, -1]).max() < 1e-6


def test_joints_stay_within_their_limits() -> None:
    b = lw.Builder("pendulum")
    body = lw.BodyInertia(1.0, np.array([0, 0, -0.5]), np.eye(3) * 1e-3)
    b.link("bob", joint="revolute", axis="y", inertia=body, limits=Limits(-0.5, 0.3))
    model = b.build()
    run = lw.rollout(model, contacts=(), threads=1)([0.25], [4.0], steps=2000, every=1)
    assert run.q.max() < 0.3 + 1e-9
    assert run.q.min() > -0.5 - 1e-9
    assert run.q.max() == pytest.approx(0.3, abs=1e-6)


def test_joints_outside_their_limits_come_back_slowly() -> None:
    """With at most 8 g T = 1.57 rad/s, whatever the distance, and not with 50."""
    b = lw.Builder("wheel")
    b.link("wheel", joint="revolute", axis="z", inertia=ONE, limits=Limits(-0.5, 0.3))
    step, fastest = lw.step(b.build()), 0.0
    q, v = np.array([1.3]), np.zeros(1)
    for _ in range(1200):
        after = step(q, v, np.zeros(1), 1e-3)
        q, v = after.q, after.v
        fastest = max(fastest, abs(float(v[0])))
    assert 1.0 < fastest <= 8 * G * 0.02
    assert -0.5 - 1e-9 <= q[0] <= 0.3


def test_kernels_and_numpy_agree_for_any_base_origin() -> None:
    model = quadruped()
    feet = [n for n in model.frames if "foot" in n][:4]
    contacts = [lw.Contact(n, friction=0.6) for n in feet]
    rng, q0 = np.random.default_rng(0), model.neutral()
    q = np.array([model.integrate(q0, 0.1 * rng.standard_normal(model.nv)) for _ in range(6)])
    native, reference = (lw.step(model, contacts, backend=b) for b in ("kernel", "numpy"))
    low = min(float(lw.forward_kinematics(model, feet)(x).positions[:, 2].min()) for x in q)
    q[:, 2] -= low
    v = rng.standard_normal((6, model.nv))
    tau = rng.standard_normal(model.nv)
    a, b = (f(q, v, tau, [1e-3]) for f in (native, reference))
    for name in ("q", "v", "forces"):
        x, y = getattr(a, name), getattr(b, name)
        assert np.abs(x - y).max() <= 1e-9 * np.abs(y).max()
    assert a.converged.all()
    assert (a.iterations == b.iterations).all()
    assert (np.abs(b.forces).reshape(6, 4, 3)[..., 2] > 0).any()
    one = native(q[0], v[0], tau, [1e-3])
    assert one.q == pytest.approx(a.q[0], abs=1e-12)
    warm = native(q, v, tau, [1e-3], impulses=a.impulses)
    assert warm.iterations.max() <= 2
    assert warm.v == pytest.approx(a.v, abs=1e-7)


def test_momentum_is_balanced() -> None:
    """m dv = (weight + contact forces) dt, in world axes."""
    model, corners = cube()
    step = lw.step(model, corners, backend="numpy")
    v = np.array([1.0, 2.0, -0.5, 0.2, 0.3, 1.0])
    after = step(at(0.05), v, np.zeros(6), [1e-3])
    turn = lw.forward_kinematics(model)
    before, later = v[:3], turn(after.q).rotations[0] @ after.v[:3]
    pushed = after.forces.reshape(4, 3).sum(axis=0) + [0, 0, -G]
    assert later - before == pytest.approx(1e-3 * pushed, abs=1e-12)
    normal, tangential = after.forces.reshape(4, 3)[:, 2], after.forces.reshape(4, 3)[:, :2]
    assert (normal >= 0).all()
    assert (np.linalg.norm(tangential, axis=1) <= 0.5 * normal + 1e-9).all()


def test_wrong_arguments() -> None:
    model, corners = cube()
    with pytest.raises(lw.LinkworkError, match="frame"):
        lw.step(model, [lw.Contact("nowhere")])
    with pytest.raises(lw.LinkworkError, match="contacts"):
        lw.rollout(model, ground=lw.Ground())
    with pytest.raises(lw.LinkworkError, match="no method for contacts called 'aba'"):
        lw.rollout(model, contacts=corners, method="aba")
    with pytest.raises(lw.LinkworkError, match="neither modes"):
        lw.rollout(model, contacts=corners, modes=True)
    with pytest.raises(lw.LinkworkError, match="records"):
        lw.rollout(model, contacts=corners, record=("lam",))
    with pytest.raises(lw.LinkworkError, match="friction"):
        lw.Contact("cube", friction=-1.0)


def test_times_and_coefficients_that_mean_nothing_are_refused() -> None:
    model, contacts = cube()
    rest, still = at(0.05), np.zeros(6)
    for backend in ("kernel", "numpy"):
        step = lw.step(model, contacts, backend=backend)
        for dt in (0.0, -1e-3):
            with pytest.raises(InputError, match="'dt' is a time above 0 s"):
                step(rest, still, still, [dt])
        for bad, why in ((-1.0, "negative"), (np.nan, "NaN")):
            for height in (0.05, 5.0):  # where nothing touches, too
                with pytest.raises(InputError, match=f"'friction'.*{why}"):
                    step(at(height), still, still, [1e-3], friction=[0.5, bad, 0.5, 0.5])
    with pytest.raises(InputError, match="'friction' has negative entries"):
        lw.rollout(model, contacts=contacts)(rest, still, steps=2, friction=-np.ones(4))


def test_contacts_of_what_does_not_move_are_refused() -> None:
    model, _ = cube()
    with pytest.raises(InputError, match="fixed to the world"):
        lw.step(model, [lw.Contact("world")])


def test_what_rollouts_with_contacts_cannot_do_is_said() -> None:
    model, contacts = cube()
    with pytest.raises(InputError, match="targets are those of constraint rows"):
        lw.rollout(model, contacts=contacts, parameters=("targets",))
    with pytest.raises(InputError, match="iterations"):
        lw.rollout(model, contacts=contacts, iterations=3)
    with pytest.raises(InputError, match=r"no input .inertia.: make it with .*parameters"):
        lw.rollout(model, contacts=contacts)(at(1), np.zeros(6), steps=2, inertia=np.zeros((1, 10)))
    step = lw.step(model, contacts)
    for make in (step.derivatives, step.jvp, step.vjp):
        with pytest.raises(UnsupportedError, match="contacts"):
            make()


def test_rollouts_take_empty_batches_and_pickle(sliding_cube: lw.Rollout) -> None:
    empty = sliding_cube(np.zeros((0, 7)), np.zeros((0, 6)), steps=3)
    assert empty.q.shape == (0, 3, 7)
    assert empty.forces.shape == (0, 3, 4, 3)
    v0 = np.array([1.0, 0, 0, 0, 0, 0])
    again = pickle.loads(pickle.dumps(sliding_cube))
    assert np.array_equal(again(at(0.05), v0, steps=3).q, sliding_cube(at(0.05), v0, steps=3).q)


def test_a_limit_that_a_loop_forbids_is_no_solution() -> None:
    """A hinge is welded at 0 and has to be above 0.3: the weld would open, and the result says so."""
    b = lw.Builder("held")
    b.link("arm", joint="revolute", axis="y", inertia=lw.BodyInertia(1.0, (0.5, 0, 0), 0.02 * np.eye(3)))
    model = b.build().with_constraints(lw.Weld("arm", "world"))
    assert lw.step(model)([0.0], [0.0], [0.0], [1e-3]).converged
    model = replace(model, links=(model.links[0], replace(model.links[1], limits=Limits(lower=0.3))))
    for backend in ("kernel", "numpy"):
        step = lw.step(model, backend=backend)
        with pytest.warns(ConvergenceWarning):
            result = step([0.0], [0.0], [0.0], [1e-3])
        assert not result.converged


def test_a_quaternion_that_is_none_is_refused_in_steps_with_further_loops() -> None:
    """The check was made for the results of a loop that hardly any state enters."""
    model, contacts = cube()
    step = lw.step(model, contacts)
    assert step.of.further
    q = at(1)
    q[3:7] *= 1.5
    for each in (q, np.tile(q, (9, 1))):
        with pytest.raises(InputError, match=r"has length 1\.5, not 1"):
            step(each, np.zeros(6), np.zeros(6), 1e-3)


@pytest.mark.parametrize("method", ["newton", "gauss_seidel", "active_set", "admm"])
@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_single_precision_has_no_friction_either(method: str, friction: float) -> None:
    """Numbers that are zero or infinite in float32 made NaN where nothing slips, or without an end."""
    model, contacts = cube(friction=friction)
    q, v = np.tile(at(0.05), (2, 1)), np.zeros((2, 6))
    v[:, 2], v[1, 0] = -2.0, 1.0
    single, double = (lw.step(model, contacts, method=method, dtype=dtype) for dtype in ("float32", "float64"))
    after = single(q.astype(np.float32), v.astype(np.float32), np.zeros(6, np.float32), np.float32(1e-3))
    assert after.converged.all()
    # 1e-4 of 2 m/s in the velocity of each corner turns the cube by up to 1 / 0.05 of that
    assert np.abs(after.v - double(q, v, np.zeros(6), 1e-3).v).max() < 1e-4 * 2 * 20
    if method == "newton":
        assert after.iterations[0] <= 2  # the one that falls straight does not slip
