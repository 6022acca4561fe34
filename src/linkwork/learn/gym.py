"""Environments of Gymnasium: thousands of robots in one, each step one native call for all of them.

    import linkwork as lw
    from linkwork.learn.gym import VectorEnv

    class Balancing(VectorEnv):
        def start(self, lanes): ...                        # q, v at the beginning of an episode
        def control(self, actions): ...                    # inputs of the rollout: {"tau": ...}, {"target": ...}
        def observation(self): ...                         # (lanes, n)
        def reward(self): ...                              # (lanes,)

    env = Balancing(lw.rollout(model, contacts=feet, pd=True), 1024, actions=12, observations=48)

`environments.py` has two that are complete, `ppo.py` trains them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from linkwork.checks import Kind, Refused, checked, finite_array, instance, shown, whole
from linkwork.errors import ConvergenceWarning, InputError, MissingExtra, OpenLoopWarning, StepWarning, not_found
from linkwork.simulation.rollouts.rollout import Rollout
from linkwork.simulation.rollouts.rollout_inputs import TIMED

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ImportError as missing:
    raise MissingExtra("gymnasium", "gym", "linkwork.learn.gym") from missing


def _autoreset_mode(value: Any) -> AutoresetMode:
    if not isinstance(value, AutoresetMode | str):
        raise Refused
    try:
        return AutoresetMode(value)
    except ValueError:
        raise Refused from None


COUNT = whole(1, 10**7, "a whole number of at least 1")
AUTORESET = Kind(f"an AutoresetMode or one of {[m.value for m in AutoresetMode]}", _autoreset_mode)
OPTIONS = instance(Mapping, "a dictionary, or None")
SEED = whole(0, what="a whole number of at least 0, or None")

STATE = ("q", "v", "act", "dt", "work", "worst", "impulses", "lam0")
"""Inputs of a step that are the rollout's own affair."""


class VectorEnv(gymnasium.vector.VectorEnv):  # type: ignore[misc]
    """Many robots of one model as one environment; subclasses say what is seen, controlled and rewarded.

    A step of the environment is `substeps` steps of `run`, for all lanes in one native call; `run` decides on contacts,
    joint control, actuators, pushes, parameters, precision and threads. Subclasses have the methods below. They read

    - `q` (B, nq), quaternions [x y z w], and `v` (B, nv): the states; `act` (B, na): activations of actuators that have
      a state, zero at the start;
    - `result`: the last `lw.RolloutResult`, with `record=("forces",)` contact forces among it;
    - `actions` (B, n), clipped to the action space, and `previous`, those of the step before (zeros at the start);
    - `age` (B,): steps since the episode began; `parameters`: what `randomised` gave, for all lanes;
    - `np_random`: the generator that `reset(seed=...)` seeds.

    A lane whose motion fails (NaN, too fast, energy from nowhere: `result.ok`) is terminated. `autoreset_mode` is one
    of Gymnasium's: "NextStep" (its default; a finished lane ignores the next action, which begins its next episode),
    "SameStep" (the observation is that of the new episode, the last one is in `info["final_obs"]`) or "Disabled" (reset
    finished lanes by `reset(options={"reset_mask": mask})`, which works in all modes).
    """

    @checked(
        run=instance(Rollout, "a rollout, as lw.rollout(model, contacts=[...]) is"),
        num_envs=COUNT,
        actions=COUNT,
        observations=COUNT,
        substeps=COUNT,
        max_episode_steps=COUNT,
        autoreset_mode=AUTORESET,
    )
    def __init__(
        self,
        run: Rollout,
        num_envs: int,
        *,
        actions: int,
        observations: int,
        substeps: int = 10,
        max_episode_steps: int = 1000,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        self.run, self.model, self.num_envs = run, run.model, num_envs
        self.substeps, self.max_episode_steps, self.autoreset_mode = substeps, max_episode_steps, autoreset_mode
        self.metadata: dict[str, Any] = {"autoreset_mode": autoreset_mode}
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, (actions,), np.float32)
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (observations,), np.float32)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.q, self.v = np.tile(self.model.neutral(), (num_envs, 1)), np.zeros((num_envs, self.model.nv))
        self.act = np.zeros((num_envs, run.step.inputs.get("act", 0)))
        self.actions, self.previous = np.zeros((num_envs, actions)), np.zeros((num_envs, actions))
        self.age, self.finished = np.zeros(num_envs, int), np.ones(num_envs, bool)
        self.parameters: dict[str, np.ndarray] = {}
        self.result: Any = None

    @property
    def dt(self) -> float:
        """Seconds between two actions."""
        return self.run.dt * self.substeps

    # what subclasses say

    def start(self, lanes: np.ndarray) -> tuple[Any, Any]:
        """States q (n, nq) or (nq,) and v (n, nv) or (nv,) in which episodes of these n lanes begin."""
        return self.model.neutral(), np.zeros(self.model.nv)

    def randomised(self, lanes: np.ndarray) -> Mapping[str, Any]:
        """Parameters of these n lanes in their next episode, (n, ...) each: inputs of `run` by name."""
        return {}

    def control(self, actions: np.ndarray) -> Mapping[str, Any]:
        """Inputs of `run` by name, for actions (B, n): (B, m), held, or (B, K, m) for K parts of the step."""
        raise NotImplementedError(f"{type(self).__name__} has no control(actions)")

    def observation(self) -> Any:
        """What policies see of all lanes, (B, observations)."""
        return np.concatenate([self.q, self.v], axis=1)

    def reward(self) -> Any:
        """The reward of the step that all lanes have just made, (B,)."""
        raise NotImplementedError(f"{type(self).__name__} has no reward()")

    def failed(self) -> Any:
        """Which lanes are in a state that ends their episode, (B,)."""
        return np.zeros(self.num_envs, bool)

    # what Gymnasium calls

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin new episodes: of all lanes, or of those in `options={"reset_mask": (B,) of bool}`."""
        super().reset(seed=None if seed is None else SEED.checked("seed", seed, {}))
        mask = ({} if options is None else OPTIONS.checked("options", options, {})).get(
            "reset_mask", np.ones(self.num_envs, bool)
        )
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise InputError(
                f"options['reset_mask'] is an array of {self.num_envs} truth values, not all False; not {shown(mask)}"
            )
        with self._whole():
            self._begin(np.flatnonzero(mask))
            return self._observed(), {}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """`substeps` time steps of all lanes: observations, rewards, terminated, truncated, info.

        A step that is interrupted, or refused, leaves the environment as it was.
        """
        with self._whole():
            return self._stepped(actions)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Take all that was done back if it is not done to the end; arrays are replaced, never written to."""
        before = {**vars(self)}
        try:
            yield
        except BaseException:
            self.__dict__.update(before)
            raise

    def _stepped(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        if self.result is None and self.finished.all():
            raise InputError("call reset() before the first step()")
        if self.autoreset_mode == AutoresetMode.DISABLED and self.finished.any():
            raise InputError(
                f"{self.finished.sum()} lanes are finished, lane {self.finished.argmax()} first: reset them by "
                "reset(options={'reset_mask': terminated | truncated})"
            )
        resting = np.flatnonzero(self.finished)
        self.actions, self.previous = self._taken(actions), self.actions
        self._advance()
        terminated = ~self.result.ok | np.asarray(self.failed(), bool)
        rewards = np.array(np.broadcast_to(self.reward(), self.num_envs), dtype=float)
        self.age = self.age + 1
        truncated = (self.age >= self.max_episode_steps) & ~terminated
        if resting.size:
            self._begin(resting)
            rewards[resting], terminated[resting], truncated[resting] = 0.0, False, False
        self.finished, info = terminated | truncated, {}
        seen = self._observed()
        if self.autoreset_mode == AutoresetMode.SAME_STEP and self.finished.any():
            info, ended = self._final(seen), np.flatnonzero(self.finished)
            self._begin(ended)
            seen = self._observed()
        return seen, rewards, terminated, truncated, info

    def _advance(self) -> None:
        """One native call; what is not solved or fails is in the result, not in warnings."""
        given = dict(self.control(self.actions))
        for name, x in given.items():
            if name in TIMED and np.ndim(x) == 2 and len(x) == self.num_envs:
                given[name] = np.asarray(x)[:, None]
        given |= {"act": self.act} if self.act.size else {}
        given |= {"steps": self.substeps, "every": self.substeps, **self.parameters}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", StepWarning)
            warnings.simplefilter("ignore", OpenLoopWarning)
            self.result = self.run(self.q, self.v, **given)
        self.q, self.v = self.result.q[:, -1].copy(), self.result.v[:, -1].copy()
        if self.act.size:
            self.act = self.result.act[:, -1].copy()

    def _begin(self, lanes: np.ndarray) -> None:
        """New episodes of these lanes."""
        inputs = self.run.step.inputs
        for name, x in self.randomised(lanes).items():
            if name not in inputs or name in (*STATE, *TIMED):
                raise not_found("parameter of the rollout", name, [n for n in inputs if n not in (*STATE, *TIMED)])
            if name in self.parameters:
                drawn = self.parameters[name].copy()
            else:
                own = self.run.step.defaults.get(name, np.zeros(inputs[name]))
                drawn = np.tile(own, (self.num_envs, *(1 for _ in own.shape)))
            drawn[lanes] = x
            self.parameters = {**self.parameters, name: drawn}
        q, v = self.start(lanes)
        anew = {"q": q, "v": v, "act": 0.0, "actions": 0.0, "previous": 0.0, "age": 0, "finished": False}
        for name, value in anew.items():
            x = getattr(self, name).copy()
            x[lanes] = value
            setattr(self, name, x)

    def _taken(self, actions: Any) -> np.ndarray:
        try:
            x = finite_array(actions)
        except Refused:
            x = np.empty(0)
        if x.shape != self.action_space.shape:
            raise InputError(f"actions are finite numbers of shape {self.action_space.shape}, not {shown(actions)}")
        return np.asarray(np.clip(x, self.action_space.low, self.action_space.high))

    def _observed(self) -> np.ndarray:
        return np.array(self.observation(), dtype=self.observation_space.dtype)

    def _final(self, seen: np.ndarray) -> dict[str, Any]:
        """The last observations of lanes that are finished, as Gymnasium hands them over."""
        last = np.full(self.num_envs, None, dtype=object)
        for k in np.flatnonzero(self.finished):
            last[k] = seen[k]
        mask = self.finished.copy()
        return {"final_obs": last, "_final_obs": mask, "final_info": {}, "_final_info": mask}


for _name in ("Walking", "Standing"):
    gymnasium.register(f"linkwork/{_name}-v0", vector_entry_point=f"linkwork.learn.environments:{_name}")
