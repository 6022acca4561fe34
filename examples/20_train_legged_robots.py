"""A quadruped learns to walk, or Cassie to stand, within minutes on one core.

Run: python examples/20_train_legged_robots.py walking            (needs pip install 'linkwork[gym,torch]')
     python examples/20_train_legged_robots.py standing --iterations 300 --curve standing.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import process_time

import numpy as np

from linkwork.learn.environments import Standing, Walking
from linkwork.learn.ppo import Progress, train

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("task", choices=("walking", "standing"))
parser.add_argument("--iterations", type=int, default=200)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--curve", type=Path, help="a JSON file for the learning curve")
given = parser.parse_args()
make = {"walking": Walking, "standing": Standing}[given.task]

begin, curve = process_time(), []


def report(k: int, now: Progress) -> None:
    """Every tenth iteration on the terminal, all of them for the file."""
    curve.append({**now._asdict(), "seconds": process_time() - begin})
    if k % 10 == 0 or k == given.iterations - 1:
        length = f"{1 / now.ended:.0f}" if now.ended else "all"
        head = f"{now.samples:8d} steps, {curve[-1]['seconds']:5.0f} s"
        print(f"{head}: reward {now.reward:.3f}, episodes of {length} steps")


policy, _ = train(make(256, autoreset_mode="SameStep"), given.iterations, seed=given.seed, report=report)

# ten seconds of other robots than those it has learned on, each with its own masses, gains and friction
env = make(64, autoreset_mode="SameStep", randomise=True)
seen, falls, error = env.reset(seed=given.seed + 1)[0], 0, []
for _ in range(500):
    seen, _, terminated, _, _ = env.step(policy.act(seen))
    falls += int(terminated.sum())
    error.append(np.abs(env.v[:, 0] - getattr(env, "command", 0.0)).mean())
print(f"64 others, ten seconds: {falls} falls, speed {np.mean(error[50:]):.3f} m/s from what it should be")
if given.curve:
    given.curve.write_text(json.dumps({"task": given.task, "falls": falls, "curve": curve}))
