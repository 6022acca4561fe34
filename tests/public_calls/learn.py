"""Functions and environments for learning, as far as the packages that they need are installed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import linkwork as lw
from public_calls.common import NUMPY_BACKEND, Call, arm


def learning() -> Iterator[Call]:
    """What linkwork.learn has, as far as the packages that it needs are installed."""
    f, run = lw.mass_matrix(arm()), lw.rollout(arm(), method="aba", **NUMPY_BACKEND)
    if find_spec("jax"):
        from linkwork.learn import jax

        yield Call("learn.jax.function", jax.function, {"of": f})
        yield Call("learn.jax.rollout", jax.rollout, {"of": run})
    if find_spec("torch"):
        from linkwork.learn import torch

        yield Call("learn.torch.function", torch.function, {"of": f})
        yield Call("learn.torch.rollout", torch.rollout, {"of": run})
    if find_spec("gymnasium"):
        yield from _environments(run)
    if find_spec("mujoco"):
        yield from _in_the_dialect_of_mujoco()


def _environments(run: lw.Rollout) -> Iterator[Call]:
    from linkwork.learn.environments import Standing, Walking
    from linkwork.learn.gym import VectorEnv

    class Pushed(VectorEnv):
        def control(self, actions: np.ndarray) -> Any:
            return {"tau": actions}

        def reward(self) -> Any:
            return self.actions.sum(axis=1)

    sizes = {"num_envs": 2, "actions": 2, "observations": 4, "substeps": 1, "max_episode_steps": 9}

    def made(**given: Any) -> Any:
        env = Pushed(**given)
        env.reset(seed=1)
        return env.step(np.zeros((env.num_envs, 2)))[0]

    yield Call("VectorEnv", made, {"run": run, **sizes, "autoreset_mode": "NextStep"})
    env = Pushed(run, **sizes, autoreset_mode="SameStep")
    env.reset(seed=1)
    mask = np.array([True, False])
    yield Call("VectorEnv.step", env.step, {"actions": np.zeros((2, 2))})
    yield Call("VectorEnv.reset", env.reset, {"seed": 1, "options": {"reset_mask": mask}})
    yield Call("Walking", partial(Walking, simulation=NUMPY_BACKEND), {"num_envs": 2, "robot": "quadruped"})
    yield Call("Standing", partial(Standing, simulation=NUMPY_BACKEND), {"num_envs": 2, "robot": "biped"})
    if find_spec("torch"):
        from linkwork.learn.ppo import Settings, train

        def trained(**given: Any) -> Any:
            return train(**given)[1]

        short = {"iterations": 1, "seed": 0, "settings": Settings(horizon=2), "policy": None, "threads": 1}
        yield Call("ppo.train", trained, {"env": env, **short})
        yield Call("ppo.Settings", Settings, {"horizon": 2, "epochs": 1, "clip": 0.2, "rate": 1e-3})


def _in_the_dialect_of_mujoco() -> Iterator[Call]:
    import mujoco

    from linkwork.learn import mujoco as dialect

    bob = '<body><joint name="j"/><inertial pos="0 0 -1" mass="1" diaginertia="1 1 1"/></body>'
    drive = '<actuator><motor joint="j"/></actuator>'
    m = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bob}</worldbody>{drive}</mujoco>")
    scene = {"contacts": [], "ground": None}
    yield Call("Batch", dialect.Batch, {"model": m, "nsim": 2, "nthread": 1, "persistent": False, **scene})
    b = dialect.Batch(m, 2, 1)
    yield Call("Batch.bind", b.bind, {"name": "qpos"})
    yield Call("Batch.step", b.step, {"ids": [0], "nstep": 1})
    yield Call("Batch.reset", b.reset, {"ids": [0], "keyframe": -1})
    yield Call("Batch.forward", b.forward, {"ids": [0]})
    control = {"control": np.zeros((2, 3, 1)), "control_spec": 64}
    yield Call("Batch.rollout", b.rollout, {"nstep": 3, **control, "record": ("qpos",), "ids": [0, 1], "out": None})
    given = {"model": m, "data": None, "initial_state": np.zeros((2, 3)), **control, "nstep": 3, **scene}
    ignored = {"skip_checks": False, "initial_warmstart": None, "chunk_size": None, "persistent_pool": False}
    written = {"state": None, "sensordata": None}
    yield Call("learn.mujoco.rollout", dialect.rollout, {**given, **ignored, **written})
