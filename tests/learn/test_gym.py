"""Environments of Gymnasium: the conventions of its vector environments, lanes of their own, and the two robots."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError, NotFound
from linkwork.robots.mechanisms import chain, frame_pose

gymnasium = pytest.importorskip("gymnasium", reason="these need gymnasium: pip install -e '.[test]'")
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

from linkwork.learn.environments import Standing, Walking  # noqa: E402
from linkwork.learn.gym import VectorEnv  # noqa: E402

NUMPY = {"backend": "numpy"}
MODES = [m.value for m in AutoresetMode]


class Swing(VectorEnv):
    """A double pendulum with a motor; its episode ends when it has turned far, or after six steps."""

    def __init__(self, num_envs=3, **options):
        run = lw.rollout(chain(2), dt=0.01, method="aba", parameters=("damping",), **NUMPY)
        super().__init__(
            run, num_envs, **{"actions": 2, "observations": 4, "substeps": 2, "max_episode_steps": 6, **options}
        )

    def start(self, lanes):
        return [0.4, -0.2], [0.0, 0.0]

    def control(self, actions):
        return {"tau": 10.0 * actions}

    def reward(self):
        return self.q[:, 0] - 0.1 * self.actions[:, 1] + self.previous[:, 0]

    def failed(self):
        return self.q[:, 0] > 0.41


class Alone(gymnasium.Env):
    """One lane as a plain environment, for Gymnasium's own vector environment."""

    def __init__(self):
        self.lane = Swing(1, autoreset_mode="Disabled")
        self.observation_space, self.action_space = self.lane.single_observation_space, self.lane.single_action_space

    def reset(self, *, seed=None, options=None):
        return self.lane.reset(seed=seed)[0][0], {}

    def step(self, action):
        seen, reward, terminated, truncated, _ = self.lane.step(action[None])
        return seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}


@pytest.mark.parametrize("mode", MODES)
def test_steps_and_resets_are_those_of_gymnasium(mode):
    """Whatever its own vector environment of single ones returns, in every mode of resetting."""
    many, theirs = Swing(3, autoreset_mode=mode), SyncVectorEnv([Alone] * 3, autoreset_mode=AutoresetMode(mode))
    assert many.metadata["autoreset_mode"] == AutoresetMode(mode)
    assert (many.observation_space, many.action_space) == (theirs.observation_space, theirs.action_space)
    assert np.array_equal(many.reset(seed=0)[0], theirs.reset(seed=0)[0])
    rng, ended = np.random.default_rng(0), np.zeros(2, int)
    for _ in range(20):
        actions = rng.uniform(-1, 1, (3, 2)).astype(np.float32)
        mine, expected = many.step(actions), theirs.step(actions)
        for a, b in zip(mine[:4], expected[:4], strict=True):
            assert np.array_equal(a, b)
            assert a.dtype == b.dtype
        ended += [mine[2].sum(), mine[3].sum()]
        assert {*mine[4]} == {*expected[4]}
        if "final_obs" in mine[4]:
            assert np.array_equal(mine[4]["_final_obs"], expected[4]["_final_obs"])
            for a, b in zip(mine[4]["final_obs"], expected[4]["final_obs"], strict=True):
                assert (a is None and b is None) or np.array_equal(a, b)
        done = mine[2] | mine[3]
        if mode == "Disabled" and done.any():
            with pytest.raises(InputError, match="reset_mask"):
                many.step(actions)
            mask = {"reset_mask": done}
            assert np.array_equal(many.reset(options=dict(mask))[0], theirs.reset(options=dict(mask))[0])
    assert (ended > 0).all()


def test_states_are_those_of_rollouts():
    env = Swing(2)
    env.reset()
    actions = np.array([[0.01, 0.2], [-0.3, 0.4]])
    env.step(actions)
    expected = lw.rollout(chain(2), dt=0.01, method="aba", **NUMPY)(
        [0.4, -0.2], [0.0, 0.0], 10 * actions[:, None], steps=2
    )
    assert np.array_equal(env.q, expected.q[:, -1])
    assert env.dt == 0.02


def test_activations_are_kept_from_step_to_step_and_begin_at_zero():
    model = chain(2).with_actuators(lw.Motor("link1_joint", state="filter", time_constant=0.1))
    run = lw.rollout(model, dt=0.01, method="aba", actuators=True, **NUMPY)

    class Lagging(Swing):
        def __init__(self):
            VectorEnv.__init__(self, run, 2, actions=1, observations=4, substeps=2, autoreset_mode="Disabled")

        def control(self, actions):
            return {"u": 3.0 * actions}

        def reward(self):
            return 0.0

        def failed(self):
            return False

    env = Lagging()
    env.reset()
    for _ in range(3):
        env.step(np.ones((2, 1), np.float32))
    expected = run(*env.start([]), u=[3.0], steps=6)
    np.testing.assert_allclose(env.act, np.tile(expected.act[-1], (2, 1)), atol=1e-12)
    np.testing.assert_allclose(env.q[0], expected.q[-1], atol=1e-12)
    env.reset(options={"reset_mask": np.array([True, False])})
    assert env.act[0] == 0 != env.act[1]


def test_actions_beyond_their_space_are_clipped():
    a, b = Swing(1), Swing(1)
    a.reset(), b.reset()
    assert np.array_equal(a.step([[-9.0, 0.0]])[0], b.step([[-1.0, 0.0]])[0])


class Damped(Swing):
    """Each episode of each lane with its own damping."""

    def randomised(self, lanes):
        return {"damping": self.np_random.uniform(0, 1, (len(lanes), 2))}


def test_parameters_of_lanes():
    """Each lane moves as its own parameters say, keeps them for an episode, and gets others for the next one."""
    env = Damped(4)
    env.reset(seed=3)
    first = env.parameters["damping"].copy()
    assert len({*first[:, 0]}) == 4
    env.step(np.full((4, 2), -0.5))
    run = lw.rollout(chain(2), dt=0.01, method="aba", parameters=("damping",), **NUMPY)
    one = run([0.4, -0.2], [0.0, 0.0], [-5.0, -5.0], damping=first[2], steps=2)
    assert np.allclose(env.q[2], one.q[-1], rtol=0, atol=1e-14)
    env.reset(options={"reset_mask": np.array([True, False, True, False])})
    changed = (env.parameters["damping"] != first).all(axis=1)
    assert list(changed) == [True, False, True, False]
    again = Damped(4)
    again.reset(seed=3)
    assert np.array_equal(again.parameters["damping"], first)


def test_a_motion_that_fails_ends_its_episode():
    """Others go on."""

    class Torn(Swing):
        def start(self, lanes):
            return [0.1, 0.0], np.where(lanes[:, None] == 1, [1e4, -1e4], [0.0, 0.0])

        def failed(self):
            return False

    env = Torn(3, autoreset_mode="SameStep")
    env.reset()
    _, _, terminated, _, info = env.step(np.zeros((3, 2)))
    assert list(terminated) == [False, True, False]
    assert np.isfinite(info["final_obs"][1]).all()


@pytest.mark.parametrize("place", ["control", "run", "reward", "failed", "start", "observation"])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_step_that_is_interrupted_leaves_all_as_it_was(place, mode, monkeypatch):
    """Actions were those of the step that never was, and rewards of jerks came from them."""
    env, other = (Swing(autoreset_mode=mode, max_episode_steps=2) for _ in range(2))
    for one in (env, other):
        one.reset(seed=0)
    rng = np.random.default_rng(0)
    for k in range(5):
        actions = rng.uniform(-1, 1, (3, 2))
        with monkeypatch.context() as at:
            at.setattr(env, place, interrupted(getattr(env, place)))
            while not raises_interrupt(env, actions):  # a step in which no episode begins does not call `start`
                other.step(actions)
        before = {n: np.copy(getattr(other, n)) for n in ("q", "v", "actions", "previous", "age", "finished")}
        for name, x in before.items():
            np.testing.assert_array_equal(getattr(env, name), x, f"{name} in step {k}")
        for one, two in zip(env.step(actions)[:4], other.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(one, two)


def raises_interrupt(env, actions):
    try:
        env.step(actions)
    except KeyboardInterrupt:
        return True
    return False


def interrupted(method):
    def call(*given, **named):
        method(*given, **named)
        raise KeyboardInterrupt

    return call


def test_gymnasium_makes_and_wraps_them():
    env = gymnasium.make_vec("linkwork.learn.gym:linkwork/Walking-v0", num_envs=2, simulation=NUMPY)
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(env)
    seen, _ = env.reset(seed=0)
    assert seen in env.observation_space
    seen, reward, terminated, truncated, _ = env.step(env.action_space.sample())
    assert seen in env.observation_space
    assert reward.shape == terminated.shape == truncated.shape == (2,)
    env.close()


@pytest.mark.parametrize("robot", ["biped", "cassie"])
def test_robots_with_loops_stand(robot):
    """In the stance all loops are closed, joints within their limits and all feet on the ground, which carries them."""
    try:
        env = Standing(1, robot=robot, simulation=NUMPY, substeps=2, push=0.0)
    except (lw.LinkworkError, ImportError) as why:
        pytest.skip(f"no Cassie here: {why}")
    env.start = lambda lanes: (env.stance, np.zeros(env.model.nv))
    model, q = env.model, env.stance
    assert np.abs(lw.constraint_error(model, **NUMPY)(q, np.zeros(model.nv)).phi).max() < 1e-12
    for link in model.links[1:]:
        if link.joint.nv == 1:
            assert link.limits.lower <= q[model.q_slice(link.joint_name)] <= link.limits.upper
    env.reset()
    _, reward, terminated, _, _ = env.step(np.zeros((1, len(env.motors))))
    assert env.result.converged.all()
    assert not terminated.any()
    assert reward[0] > 0.9
    left, right = env.result.forces[0, -1, :, 2].reshape(2, 2).sum(axis=1)
    assert left > 5.0  # not yet all its weight: springs and joint control give
    assert right == pytest.approx(left, rel=1e-3)


def test_walking_with_robots_of_their_own():
    """By machine code: deterministic for a seed, rewards of lanes that stand, and what fell begins anew."""
    env = Walking(16, randomise=True, max_episode_steps=20, autoreset_mode="SameStep")
    runs = []
    for _ in range(2):
        env.reset(seed=5)
        rng = np.random.default_rng(0)
        runs.append([env.step(rng.uniform(-1, 1, env.action_space.shape)) for _ in range(25)])
    for a, b in zip(*runs, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a[:4], b[:4], strict=True))
    assert env.parameters["inertia"].shape == (16, 12 + 1, 10)
    assert all(np.isfinite(x[0]).all() for x in runs[0])
    assert runs[0][19][3].any()
    # in the axes of the trunk, gravity is what it is
    assert np.allclose(env.upright, [frame_pose(env.model, "trunk", q).R[2] for q in env.q], atol=1e-12)


def test_what_is_wrong_is_said():
    env = Swing(2)
    with pytest.raises(InputError, match="reset"):
        env.step(np.zeros((2, 2)))
    env.reset()
    for wrong in (np.zeros(2), np.full((2, 2), np.nan), "go", None):
        with pytest.raises(InputError, match="actions"):
            env.step(wrong)
    for mask in (np.zeros(2, bool), np.ones(3, bool), [1, 0], None):
        with pytest.raises(InputError, match="reset_mask"):
            env.reset(options={"reset_mask": mask})
    with pytest.raises(InputError, match="seed"):
        env.reset(seed=-1)
    with pytest.raises(InputError, match="autoreset_mode"):
        Swing(2, autoreset_mode="Sometimes")
    env.randomised = lambda lanes: {"dampng": 1.0}
    with pytest.raises(NotFound, match="damping"):
        env.reset()
    with pytest.raises(NotFound, match="quadruped"):
        Walking(2, robot="horse")
