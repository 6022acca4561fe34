"""Proximal policy optimisation on one page, to train environments of `linkwork.learn.gym` in minutes.

With the ratio r of probabilities of an action by the new policy and the old, and its advantage A, it ascends

    E[ min(r A, clip(r, 1 - eps, 1 + eps) A) ]

for some epochs of minibatches of a horizon of all lanes, then takes the next horizon. Advantages are exponential
means of temporal differences, A_t = d_t + gamma lambda A_(t+1) with d_t = r_t + gamma V(s_(t+1)) - V(s_t).

Schulman et al., "Proximal policy optimization algorithms", 2017, and "High-dimensional continuous control using
generalized advantage estimation", 2016. The step length follows the change of the policy, as many do: it grows where
policies hardly differ and shrinks where they differ much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from linkwork.checks import FUNCTION, checked, checked_class, instance, number, optional, whole
from linkwork.errors import InputError, MissingExtra
from linkwork.learn.gym import VectorEnv

try:
    import torch
    from torch import nn
except ImportError as missing:
    raise MissingExtra("torch", "torch", "linkwork.learn.ppo") from missing


class Policy(nn.Module):  # type: ignore[misc]
    """Two small networks on normalised observations: means of actions, and the value of a state."""

    def __init__(self, observations: int, actions: int, width: int = 64) -> None:
        super().__init__()

        def network(outputs: int, last: float) -> nn.Sequential:
            layers = [nn.Linear(observations, width), nn.ELU(), nn.Linear(width, width), nn.ELU()]
            end = nn.Linear(width, outputs)
            nn.init.normal_(end.weight, 0.0, last)
            nn.init.zeros_(end.bias)
            return nn.Sequential(*layers, end)

        self.mean, self.value = network(actions, 0.01), network(1, 0.1)
        self.log_deviation = nn.Parameter(torch.full((actions,), -0.7))
        self.register_buffer("seen", torch.tensor(1e-3))
        self.register_buffer("centre", torch.zeros(observations))
        self.register_buffer("spread", torch.ones(observations))

    def look(self, x: torch.Tensor) -> None:
        """Add observations (N, n) to the mean and variance that they are normalised by."""
        share = len(x) / (self.seen + len(x))
        off = x.mean(0) - self.centre
        self.spread += share * (x.var(0, correction=0) - self.spread + (1 - share) * off**2)
        self.centre += share * off
        self.seen += len(x)

    def normalised(self, x: torch.Tensor) -> torch.Tensor:
        return ((x - self.centre) / (self.spread + 1e-4).sqrt()).clamp(-10, 10)

    def forward(self, x: torch.Tensor) -> tuple[torch.distributions.Normal, torch.Tensor]:
        """The distribution of actions in states with these observations, and the values of the states."""
        x = self.normalised(x)
        return torch.distributions.Normal(self.mean(x), self.log_deviation.exp()), self.value(x)[..., 0]

    def act(self, observation: np.ndarray) -> np.ndarray:
        """The best actions known, for observations (B, n) of an environment."""
        with torch.no_grad():
            return self.mean(self.normalised(torch.as_tensor(observation))).numpy()  # type: ignore[no-any-return]


COUNT, SHARE = whole(1, 10**6, "a whole number of at least 1"), number(0.0, 1.0, "a number from 0 to 1")


@checked_class(
    horizon=COUNT,
    epochs=COUNT,
    minibatches=COUNT,
    discount=SHARE,
    smoothing=SHARE,
    clip=SHARE,
    rate=number(1e-8, 1.0, "a number from 1e-8 to 1"),
    entropy=SHARE,
    change=number(1e-8, 1.0, "a number from 1e-8 to 1"),
)
@dataclass(frozen=True)
class Settings:
    """Of the algorithm; a horizon is in steps of the environment."""

    horizon: int = 24
    epochs: int = 4
    minibatches: int = 4
    discount: float = 0.98
    smoothing: float = 0.95
    clip: float = 0.2
    rate: float = 1e-3
    entropy: float = 2e-3
    change: float = 0.015


class Progress(NamedTuple):
    """Means over the horizon of an iteration; `samples` are steps of single robots since the beginning."""

    samples: int
    reward: float
    ended: float


@checked(
    env=instance(VectorEnv, "an environment of linkwork.learn.gym"),
    iterations=whole(1, 10**7, "a number of iterations, at least 1"),
    seed=whole(0, 2**31, "a whole number of at least 0"),
    settings=instance(Settings, "linkwork.learn.ppo.Settings"),
    report=optional(FUNCTION),
    policy=optional(instance(Policy, "a Policy")),
    threads=whole(1, 1024, "a number of threads of torch, at least 1"),
)
def train(
    env: VectorEnv,
    iterations: int,
    *,
    seed: int = 0,
    settings: Settings = Settings(),  # noqa: B008
    report: Callable[[int, Progress], Any] | None = None,
    policy: Policy | None = None,
    threads: int = 1,
) -> tuple[Policy, list[Progress]]:
    """A policy for the environment, and how it went; `report(k, progress)` is called after each iteration.

    The environment must reset lanes in the same step (`autoreset_mode="SameStep"`). An episode that is cut by its time
    limit is continued by the value of its last state. Continues with `policy`, if one is given. Torch has this many
    `threads` meanwhile: networks as small as these are fastest with one. The same seed gives the same policy.
    """
    if env.metadata["autoreset_mode"].value != "SameStep":
        raise InputError("train needs an environment made with autoreset_mode='SameStep'")
    before = torch.get_num_threads()
    torch.manual_seed(seed)
    s, history = settings, list[Progress]()
    policy = policy or Policy(env.single_observation_space.shape[0], env.single_action_space.shape[0])
    optimiser = torch.optim.Adam(policy.parameters(), lr=s.rate, eps=1e-5)
    x = torch.as_tensor(env.reset(seed=seed)[0])
    policy.look(x)
    torch.set_num_threads(threads)
    try:
        for k in range(iterations):
            x, now = _iteration(env, policy, optimiser, x, s)
            history.append(Progress((k + 1) * s.horizon * env.num_envs, *now))
            if report is not None:
                report(k, history[-1])
    finally:
        torch.set_num_threads(before)
    return policy, history


def _iteration(
    env: VectorEnv, policy: Policy, optimiser: torch.optim.Optimizer, x: torch.Tensor, s: Settings
) -> tuple[torch.Tensor, tuple[float, float]]:
    """One horizon, and learning from it: observations after it, mean reward, share of ends."""
    seen, actions, chances, values, rewards, gains, ends = _horizon(env, policy, x, s)
    # advantages, from the end to the beginning
    advantage, ahead = torch.zeros_like(gains), torch.zeros(env.num_envs)
    for t in reversed(range(s.horizon)):
        difference = gains[t] + s.discount * values[t + 1] * (1 - ends[t]) - values[t]
        advantage[t] = ahead = difference + s.discount * s.smoothing * (1 - ends[t]) * ahead
    flat = [y.flatten(0, 1) for y in (seen[:-1], actions, chances, advantage, advantage + values[:-1])]
    for _ in range(s.epochs):
        change = _epoch(policy, optimiser, flat, s)
        step = 1.5 if change < s.change / 2 else 1 / 1.5 if change > s.change * 2 else 1.0
        for group in optimiser.param_groups:
            group["lr"] = min(max(group["lr"] * step, 1e-5), 5e-3)
    policy.look(flat[0])
    return seen[-1], (float(rewards.mean()), float(ends.mean()))


def _horizon(env: VectorEnv, policy: Policy, x: torch.Tensor, s: Settings) -> tuple[torch.Tensor, ...]:
    """Steps of all lanes with actions drawn from the policy."""
    seen, actions, chances, values, rewards, gains, ends = [x], [], [], [], [], [], []
    with torch.no_grad():
        for _ in range(s.horizon):
            distribution, value = policy(x)
            action = distribution.sample()
            found, reward, terminated, truncated, info = env.step(action.numpy())
            rewards.append(torch.as_tensor(reward, dtype=torch.float32))
            gain = rewards[-1].clone()
            if truncated.any():
                last = torch.as_tensor(np.stack(info["final_obs"][truncated]))
                gain[torch.as_tensor(truncated)] += s.discount * policy(last)[1]
            x = torch.as_tensor(found)
            actions.append(action)
            chances.append(distribution.log_prob(action).sum(-1))
            values.append(value)
            gains.append(gain)
            ends.append(torch.as_tensor(terminated | truncated, dtype=torch.float32))
            seen.append(x)
        values.append(policy(x)[1])
    return tuple(torch.stack(y) for y in (seen, actions, chances, values, rewards, gains, ends))


def _epoch(policy: Policy, optimiser: torch.optim.Optimizer, flat: list[torch.Tensor], s: Settings) -> float:
    """A pass over the samples in minibatches; an estimate of the divergence from the old policy."""
    change = 0.0
    for batch in torch.randperm(len(flat[0])).chunk(s.minibatches):
        x, action, chance, advantage, expected = (y[batch] for y in flat)
        advantage = (advantage - advantage.mean()) / ((advantage.std() if len(batch) > 1 else 0.0) + 1e-8)
        distribution, value = policy(x)
        log_ratio = distribution.log_prob(action).sum(-1) - chance
        ratio = log_ratio.exp()
        gain = torch.min(ratio * advantage, ratio.clamp(1 - s.clip, 1 + s.clip) * advantage).mean()
        loss = 0.5 * ((value - expected) ** 2).mean() - gain - s.entropy * distribution.entropy().sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimiser.step()
        change += float((ratio.detach() - 1 - log_ratio.detach()).mean()) / s.minibatches
    return change
