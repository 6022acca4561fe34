"""Two legged robots to train: a quadruped that walks, and one with closed loops that stands.

    env = Walking(256)                                                      # the parametric quadruped
    env = gymnasium.make_vec("linkwork.learn.gym:linkwork/Standing-v0", num_envs=256)

Both are under joint control: an action moves the targets of the motors away from the standing posture.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwork.checks import FLAG, checked, choice, optional
from linkwork.closure.assembly import assemble
from linkwork.constraints.contact import Contact
from linkwork.errors import LoadError, MissingExtra, NotFound
from linkwork.io.load import load
from linkwork.learn.gym import COUNT, VectorEnv
from linkwork.model import Model
from linkwork.robots.mechanisms.humanoids import biped
from linkwork.robots.mechanisms.postures import standing
from linkwork.robots.mechanisms.quadrupeds import LEGS, quadruped
from linkwork.simulation.ground.placing import on_ground
from linkwork.simulation.rollouts.rollout import rollout

QUADRUPED, GO2, CASSIE, BIPED = "quadruped", "go2", "cassie", "biped"


class Legged(VectorEnv):
    """A robot with a free base under joint control: what Walking and Standing have in common.

    An action a is in [-1, 1] for each motor: its target is `stance + reach * a`, with gains `kp` (N m / rad) and `kd`.
    Observed are the direction of gravity and the velocity in the axes of the trunk, its height, positions (from the
    stance), velocities and targets of motors. Where the trunk is below `low` of its height in the stance, or tilted by
    more than 60 degrees, the episode ends. `randomise=True` gives each lane its own friction, gains and masses in
    every episode. `simulation` has further options of `lw.rollout`: {"threads": 1}, {"dtype": "float32"}.
    """

    def __init__(
        self,
        model: Model,
        contacts: list[Contact],
        stance: np.ndarray,
        num_envs: int,
        *,
        kp: float,
        kd: float,
        reach: float,
        low: float,
        more: int = 0,
        dt: float,
        substeps: int,
        randomise: bool,
        max_episode_steps: int = 500,
        pushes: tuple[str, ...] = (),
        simulation: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        motors = [l.joint_name for l in model.links[1:] if l.actuated]
        q_of, v_of = ([list(range(s.start, s.stop)) for s in map(f, motors)] for f in (model.q_slice, model.v_slice))
        self.motors, self.motor_speeds = np.ravel(q_of), np.ravel(v_of)
        self.stance, self.reach, self.low, self.randomise = stance, reach, low, randomise
        self.gains = {"kp": np.zeros(model.nv), "kd": np.zeros(model.nv)}
        self.gains["kp"][self.motor_speeds], self.gains["kd"][self.motor_speeds] = kp, kd
        run = rollout(
            model,
            dt=dt,
            contacts=contacts,
            pd=True,
            stabilisation=bool(model.constraints),
            record=("forces",),
            pushes=pushes,
            parameters=("inertia",) if randomise else (),
            **(simulation or {}),
        )
        n, options = len(self.motors), {**options, "substeps": substeps, "max_episode_steps": max_episode_steps}
        super().__init__(run, num_envs, actions=n, observations=10 + 3 * n + more, **options)

    def start(self, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The stance, with random velocities of the trunk."""
        v = np.zeros((len(lanes), self.model.nv))
        v[:, :6] = self.np_random.normal(0.0, 0.2, (len(lanes), 6))
        return np.tile(self.stance, (len(lanes), 1)), v

    def randomised(self, lanes: np.ndarray) -> Mapping[str, Any]:
        """Friction, gains, and the mass of every link, in each lane its own."""
        if not self.randomise:
            return {}
        n, rng, own = len(lanes), self.np_random, self.model.parameters()
        return {
            "friction": rng.uniform(0.5, 1.0, (n, 1)),
            "kp": self.gains["kp"] * rng.uniform(0.9, 1.1, (n, 1)),
            "inertia": own.inertia * rng.uniform(0.9, 1.1, (n, self.model.nlinks, 1)),
        }

    def control(self, actions: np.ndarray) -> dict[str, Any]:
        """Targets of the motors."""
        target = np.tile(self.stance, (self.num_envs, 1))
        target[:, self.motors] += self.reach * actions
        return {"target": target, **{n: x for n, x in self.gains.items() if n not in self.parameters}}

    @property
    def upright(self) -> np.ndarray:
        """The world's vertical in the axes of the trunk, (B, 3)."""
        x, y, z, w = self.q[:, 3:7].T
        return np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=1)

    def observation(self) -> np.ndarray:
        """See the class."""
        parts = (
            self.upright,
            self.v[:, :3],
            0.3 * self.v[:, 3:6],
            5 * (self.q[:, 2:3] - self.stance[2]),
            self.q[:, self.motors] - self.stance[self.motors],
            0.1 * self.v[:, self.motor_speeds],
            self.actions,
        )
        return np.concatenate(parts, axis=1)

    def failed(self) -> Any:
        """Fallen."""
        return (self.q[:, 2] < self.low * self.stance[2]) | (self.upright[:, 2] < 0.5)


class Walking(Legged):
    """A quadruped that is to walk ahead with `command` (B,) m/s, each lane with its own.

    `robot` is "quadruped", which comes with Linkwork, or "go2" (a file in LINKWORK_ROBOTS). A clock of 2 Hz is
    observed, too; feet that swing and stand in the time of a trot are rewarded a little, speed is most of it. There are
    50 actions a second.
    """

    @checked(num_envs=COUNT, robot=choice("robot that walks", (QUADRUPED, GO2)), randomise=FLAG)
    def __init__(
        self,
        num_envs: int = 1,
        *,
        robot: str = QUADRUPED,
        randomise: bool = False,
        **options: Any,
    ) -> None:
        model, feet, stance = _quadruped() if robot == QUADRUPED else _go2()
        self.command, self.phase = np.full(num_envs, 0.5), np.zeros(num_envs)
        given = {"kp": 40.0, "kd": 1.0, "reach": 0.4, "low": 0.6, "dt": 4e-3, "substeps": 5, **options}
        super().__init__(model, feet, stance, num_envs, more=3, randomise=randomise, **given)

    def start(self, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The stance, with a command and a phase of the clock."""
        self.command[lanes] = self.np_random.uniform(0.3, 0.8, len(lanes))
        self.phase[lanes] = self.np_random.uniform(0.0, 1.0, len(lanes))
        return super().start(lanes)

    def observation(self) -> np.ndarray:
        """With the command and the clock."""
        clock = 2 * np.pi * (self.phase + 2.0 * self.age * self.dt)
        return np.concatenate(
            [super().observation(), np.stack([self.command, np.sin(clock), np.cos(clock)], axis=1)], axis=1
        )

    def reward(self) -> Any:
        """1 at the commanded speed, less for turning, hopping and jerky actions, a little for a trot."""
        ahead, aside, turning = self.v[:, 0] - self.command, self.v[:, 1], self.v[:, 5]
        jerk = ((self.actions - self.previous) ** 2).mean(axis=1)
        first = np.sin(2 * np.pi * (self.phase + 2.0 * (self.age + 1) * self.dt)) > 0
        down = self.result.forces[:, -1, :, 2] > 1.0
        trot = (down == np.stack([first, ~first, ~first, first], axis=1)).mean(axis=1)
        straight = np.exp(-8 * (ahead**2 + aside**2)) + 0.2 * np.exp(-4 * turning**2)
        return straight + 0.3 * trot - 0.2 * self.v[:, 2] ** 2 - 0.02 * (self.v[:, 3:5] ** 2).sum(axis=1) - 0.1 * jerk


class Standing(Legged):
    """A robot with closed loops in its legs that is to stand where it is, pushed at random.

    `robot` is "cassie" (a file in LINKWORK_ROBOTS: springs, and rods that close two loops in each leg) or "biped",
    which comes with Linkwork (knees driven through four-bars). Default: Cassie, if it is found. A push of up to `push`
    newtons on the trunk in any horizontal direction lasts one step of 20 ms and comes once a second. There are 50
    actions a second.
    """

    @checked(num_envs=COUNT, robot=optional(choice("robot that stands", (CASSIE, BIPED))), randomise=FLAG)
    def __init__(
        self,
        num_envs: int = 1,
        *,
        robot: str | None = None,
        randomise: bool = False,
        push: float = 200.0,
        **options: Any,
    ) -> None:
        model, feet, stance = _standing(robot)
        self.push = push
        given = {"kp": 200.0, "kd": 6.0, "reach": 0.3, "low": 0.7, "dt": 2e-3, "substeps": 10, **options}
        pushed = (model.links[1].name,)
        super().__init__(model, feet, stance, num_envs, pushes=pushed, randomise=randomise, **given)

    def control(self, actions: np.ndarray) -> dict[str, Any]:
        """With a push."""
        n, rng = self.num_envs, self.np_random
        size = self.push * rng.uniform(0.0, 1.0, n) * (rng.uniform(0.0, 1.0, n) < self.dt)
        angle = rng.uniform(0.0, 2 * np.pi, n)
        push = np.zeros((n, 6))
        push[:, 0], push[:, 1] = size * np.cos(angle), size * np.sin(angle)
        return {**super().control(actions), "push": push}

    def reward(self) -> Any:
        """1 where nothing moves, upright and as high as at first; less for jerky actions."""
        height, jerk = self.q[:, 2] - self.stance[2], ((self.actions - self.previous) ** 2).mean(axis=1)
        tilt, speed = 1 - self.upright[:, 2], (self.v[:, :2] ** 2).sum(axis=1) + 0.2 * (self.v[:, 3:6] ** 2).sum(axis=1)
        return np.exp(-20 * height**2 - 10 * tilt - 2 * speed) - 0.1 * jerk


Scene = tuple[Model, list[Contact], np.ndarray]
"""A robot, its feet, and how it stands on the ground."""


def _quadruped() -> Scene:
    model = quadruped()
    return model, [Contact(f"{leg}_foot", friction=0.8) for leg in LEGS], standing(model)


def _go2() -> Scene:
    model = load("go2.xml")
    q = model.neutral()
    q[7:] = 4 * (0.0, 0.9, -1.8)
    feet = [Contact(f"{leg}_calf", (-0.002, 0.0, -0.213), 0.0175, 0.8) for leg in ("FL", "FR", "RL", "RR")]
    return model, feet, on_ground(model, q, feet)


def _standing(robot: str | None) -> Scene:
    if robot != BIPED:
        try:
            return _cassie()
        except (LoadError, MissingExtra, NotFound):
            if robot == CASSIE:
                raise
    model = biped()
    ends = ((0.1, 0.0, 0.0), (-0.1, 0.0, 0.0))
    return (
        model,
        [Contact(f"{side}_foot", end, friction=0.8) for side in ("left", "right") for end in ends],
        standing(model),
    )


def _cassie() -> Scene:
    model, sides = load("cassie.xml"), ("left", "right")
    bent = {"hip-pitch": 0.5, "knee": -1.2, "tarsus": 1.42, "foot": -1.57, "foot-crank": -1.5, "plantar-rod": 1.5}
    q = model.neutral()
    for side in sides:
        for joint, angle in bent.items():
            q[model.q_slice(f"{side}-{joint}")] = angle
    held = [f"{side}-{joint}" for side in sides for joint in ("hip-pitch", "knee", "shin", "heel-spring", "foot")]
    ends = ((-0.0528, 0.0926, 0.0), (0.0884, -0.0308, 0.0))
    feet = [Contact(f"{side}-foot", end, 0.02, 0.8) for side in sides for end in ends]
    return model, feet, on_ground(model, assemble(model, q, locked=held), feet)
