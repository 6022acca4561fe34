"""Train both environments of linkwork.learn, and write docs/results/learning.json and learning.svg.

    python tools/learning_curves.py                              both tasks, three minutes of one core
    python tools/learning_curves.py walking --iterations 50      one task, and nothing is written

Needs pip install 'linkwork[gym,torch]' matplotlib, and Cassie in LINKWORK_ROBOTS.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from linkwork.learn.environments import Legged, Standing, Walking
from linkwork.learn.ppo import Progress, train

RESULTS = Path(__file__).parents[1] / "docs" / "results"
TASKS: dict[str, type[Legged]] = {"walking": Walking, "standing": Standing}
TITLES = {"walking": "a quadruped walks", "standing": "Cassie stands"}
LANES, OTHERS, SECONDS = 256, 64, 10


def curve(task: str, iterations: int, seed: int) -> dict[str, Any]:
    """What a training went through, iteration by iteration, and how its policy does with other robots."""
    begin, rows = process_time(), []

    def report(k: int, now: Progress) -> None:
        rows.append((*now, process_time() - begin))
        if k % 10 == 0 or k == iterations - 1:
            length = f"{1 / now.ended:.0f}" if now.ended else "all"
            head = f"{task}: {now.samples:8d} steps, {rows[-1][-1]:5.0f} s"
            print(f"{head}: reward {now.reward:.3f}, episodes of {length} steps", flush=True)

    make: Any = TASKS[task]
    policy, _ = train(make(LANES, autoreset_mode="SameStep"), iterations, seed=seed, report=report)
    # robots with their own masses, gains and friction, which it was not trained on
    env = make(OTHERS, autoreset_mode="SameStep", randomise=True)
    seen, falls, error = env.reset(seed=seed + 1)[0], 0, []
    for _ in range(round(SECONDS / env.dt)):
        seen, _, terminated, _, _ = env.step(policy.act(seen))
        falls += int(terminated.sum())
        error.append(float(np.abs(env.v[:, 0] - getattr(env, "command", 0.0)).mean()))
    print(f"{task}: {OTHERS} others, {SECONDS} s: {falls} falls, speed {np.mean(error[50:]):.3f} m/s off", flush=True)
    samples, reward, ended, seconds = (np.array(x) for x in zip(*rows, strict=True))
    return {
        "task": task,
        "samples": samples.tolist(),
        "reward": reward.round(3).tolist(),
        "ended": ended.round(5).tolist(),
        "seconds": seconds.round(1).tolist(),
        "falls": falls,
        "speed_error": round(float(np.mean(error[50:])), 3),
    }


def draw(found: list[dict[str, Any]], file: Path) -> None:
    """The curves side by side, with seconds of processor time beside some points."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "linkwork", "font.size": 10})
    figure, axes = plt.subplots(1, len(found), figsize=(8, 2.8), constrained_layout=True, squeeze=False)
    for ax, x in zip(axes[0], found, strict=True):
        millions = np.array(x["samples"]) / 1e6
        ax.plot(millions, x["reward"], color="#2a6fb0")
        for k in np.array([0.25, 0.5, 1.0]) * len(millions) - 1:
            at = millions[int(k)], x["reward"][int(k)]
            ax.plot(*at, "o", color="#2a6fb0", markersize=4)
            label = f"{x['seconds'][int(k)]:.0f} s"
            ax.annotate(label, at, xytext=(0, -14), textcoords="offset points", ha="center", fontsize=9)
        ax.set(title=TITLES[x["task"]], xlabel="steps of single robots (millions)", ylim=(0, None))
        ax.grid(alpha=0.3)
    axes[0][0].set_ylabel("mean reward of a step")
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", nargs="?", choices=(*TASKS,))
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    tasks = [given.task] if given.task else [*TASKS]
    found = [curve(task, given.iterations, given.seed) for task in tasks]
    if not given.task:
        (RESULTS / "learning.json").write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")
        draw(found, RESULTS / "learning.svg")


if __name__ == "__main__":
    main()
