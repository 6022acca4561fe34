"""Proximal policy optimisation: advantages, a task with a known solution, and what it needs."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError
from linkwork.robots.mechanisms import chain

pytest.importorskip("gymnasium", reason="these need gymnasium: pip install -e '.[test]'")
torch = pytest.importorskip("torch", reason="these need torch: pip install 'linkwork[torch]'")

from linkwork.learn.gym import VectorEnv  # noqa: E402
from linkwork.learn.ppo import Policy, Settings, train  # noqa: E402


@pytest.fixture(autouse=True)
def single_precision():
    """Whatever a page of the tutorials has left."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(before)


class Reach(VectorEnv):
    """A hinge without gravity whose speed is to be 1 rad/s; the torque that keeps it there is zero."""

    def __init__(self, num_envs, **options):
        model = chain(1).with_gravity((0.0, 0.0, 0.0))
        self.given = {"actions": 1, "observations": 1, "substeps": 4, "max_episode_steps": 12, **options}
        super().__init__(lw.rollout(model, dt=0.01, method="aba", threads=1), num_envs, **self.given)

    def control(self, actions):
        return {"tau": 0.5 * actions}

    def observation(self):
        return self.v

    def reward(self):
        return -((self.v[:, 0] - 1.0) ** 2)


def test_a_task_with_a_known_solution():
    env = Reach(64, autoreset_mode="SameStep")
    policy, history = train(env, 20, seed=1, settings=Settings(horizon=12))
    assert len(history) == 20
    assert history[-1].samples == 20 * 12 * 64
    assert history[-1].reward > 0.1 * history[0].reward
    slow, there, fast = policy.act(np.array([[0.0], [1.0], [2.0]], np.float32))[:, 0]
    assert slow > 0.3
    assert abs(there) < 0.3
    assert fast < -0.3


def test_the_same_seed_gives_the_same_policy():
    found = [train(Reach(8, autoreset_mode="SameStep"), 2, seed=3)[0].state_dict() for _ in range(2)]
    assert all(torch.equal(found[0][n], found[1][n]) for n in found[0])


def test_observations_are_normalised_by_all_that_were_seen():
    policy, x = Policy(3, 1), torch.randn(300, 3) * torch.tensor([1.0, 5.0, 0.1]) + torch.tensor([0.0, 2.0, -1.0])
    for part in x.split([10, 90, 200]):
        policy.look(part)
    assert torch.allclose(policy.centre, x.mean(0), atol=1e-4)
    assert torch.allclose(policy.spread, x.var(0, correction=0), rtol=1e-3)


def test_what_it_needs_is_said():
    with pytest.raises(InputError, match="SameStep"):
        train(Reach(2), 1)
    with pytest.raises(InputError, match="environment"):
        train("walking", 1)
