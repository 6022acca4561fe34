"""The planner's predictions against measured kernels, on every available mechanism.

A pick is judged against the fastest of all candidates (those predicted to take more than NEAR times the pick are not
compiled, so that a prediction that is off by more is not detected). All mechanisms are measured in several sweeps, so
that other work on the machine for a minute does not decide about any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

import linkwork as lw
from linkwork.closure.random_states import closed_states
from linkwork.constraints import Constraint
from linkwork.errors import LinkworkError
from linkwork.functions.function import Function
from linkwork.model import Model
from linkwork.planner.calibration import YARDSTICK
from linkwork.planner.cost import machine
from linkwork.planner.plan import NEAR, Plan
from linkwork.planner.stopwatch import undisturbed
from linkwork.robots import mechanisms as parts
from linkwork.robots.scenarios import SCENARIOS, scenario
from linkwork_bench.measure import Conditions, Contender, interleave
from linkwork_bench.ours import Entry

STATES, CLOSED = 512, 32
"""How many states kernels cycle through, and how many different ones where loops must be closed."""

ROUNDS, SWEEP = 41, 20
"""Rounds in which a few kernels are measured, and how many of them in a row where there are many mechanisms."""
FIXED = ("lcaba", "prox_bbo", "prox_pv", "prox_ltl", "bbo", "pv", "ltl")
"""Fixed methods that one could use for every mechanism."""
MEASURES = {"state": "latency", "batch": "batch"}

TREES: dict[str, Callable[[], Model]] = {
    **{f"chain {n}": partial(parts.chain, n) for n in (2, 4, 7, 12, 20, 30)},
    **{f"arm {n}": partial(parts.arm, n) for n in (6, 7)},
    "quadruped": parts.quadruped,
    "humanoid": partial(parts.humanoid, False),
    "humanoid with hands": parts.humanoid,
    **{f"stem {n}": partial(parts.stem, n, 4) for n in (2, 10)},
    **{f"random tree {k}": partial(parts.random_tree, 12, seed=k) for k in range(4)},
}
LOOPS: dict[str, Callable[[], Model]] = {
    **{f"ladder {n}": partial(parts.ladder, n) for n in (2, 6)},
    **{f"ring {n}": partial(parts.ring, n) for n in (4, 8)},
    **{f"chain of loops {n}": partial(parts.chain_of_loops, n) for n in (2, 5)},
    **{f"star of loops {n}": partial(parts.star_of_loops, n) for n in (3,)},
    **{f"all-coupled {n}": partial(parts.all_coupled_loops, n) for n in (3,)},
    "planar leg": parts.planar_leg,
    "gripper": parts.gripper,
    **{f"geared chain {n}": partial(parts.geared_chain, n) for n in (3, 8)},
    **{f"belt chain {n}": partial(parts.belt_chain, n) for n in (4,)},
    "differential": parts.differential,
}
ROBOTS = (
    "ur5",
    "panda",
    "iiwa",
    "solo12",
    "anymal_b",
    "go1",
    "allegro_right_hand",
    "talos_reduced",
    "atlas_v4",
    "icub_reduced",
    "mini_cheetah",
    "mit_humanoid",
    "tello_humanoid",
    "jvrc1_humanoid",
)


def mechanisms(parts_of_names: Sequence[str] = ()) -> Iterator[tuple[str, Model]]:
    """Every available mechanism by name: built in, and installed robots, with and without contacts.

    With parts of names, those whose name has one of them; no other is built or loaded.
    """

    def wanted(name: str) -> bool:
        return not parts_of_names or any(part in name for part in parts_of_names)

    quadruped, humanoid = parts.quadruped, partial(parts.humanoid, False)
    legs = ("front_left", "front_right", "rear_left", "rear_right")
    standing: dict[str, Callable[[], Model]] = {
        f"quadruped on {n}": partial(_held, quadruped, [f"{l}_foot" for l in legs[:n]]) for n in (1, 2, 4)
    }
    standing["humanoid on 2"] = partial(_held, humanoid, ["left_foot", "right_foot"], lw.surface)
    scenarios: dict[str, Callable[[], Model]] = {name: partial(scenario, name) for name in SCENARIOS}
    for name, make in {**TREES, **LOOPS, **standing, **scenarios}.items():
        if wanted(name):
            try:
                model = make()
            except LinkworkError:  # a scenario whose files are not here
                continue
            yield name, model
    for name in ROBOTS:
        titles = (name, f"{name} on 1", f"{name} on 2")
        if not any(map(wanted, titles)):
            continue
        try:
            model = lw.load(name, passive=False)
        except LinkworkError:
            continue
        tips = [l.name for i, l in enumerate(model.links) if i and not model.topology.children[i]]
        for count, title in enumerate(titles):
            if wanted(title) and len(tips) >= count:
                kind = lw.surface if count == 2 and model.nv > 20 else lw.point
                yield title, model.with_constraints(*map(kind, tips[:count]))


def _held(make: Callable[[], Model], frames: Sequence[str], kind: Callable[[str], Constraint] = lw.point) -> Model:
    return make().with_constraints(*map(kind, frames))


@dataclass(frozen=True)
class Verdict:
    """One mechanism and use: predicted and measured us of each method, and how good the pick is."""

    mechanism: str
    use: str
    picked: str
    predicted: dict[str, float]
    measured: dict[str, float]

    @property
    def best(self) -> str:
        return min(self.measured, key=self.measured.__getitem__)

    @property
    def loss(self) -> float:
        """How many times longer the pick takes than the fastest."""
        return self.measured[self.picked] / self.measured[self.best]


def states(model: Model, count: int = STATES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Consistent states (q, v) of a model and joint forces, for timing and for checks."""
    rng = np.random.default_rng(0)
    if all(len([l for l in c.touches(model) if l]) < 2 for c in model.constraints):
        q = np.stack([model.random_q(rng) for _ in range(count)])
        v = rng.uniform(-1, 1, (count, model.nv))
    else:
        q, v = (np.resize(x, (count, x.shape[1])) for x in closed_states(model, rng, min(count, CLOSED)))
    return q, v, rng.uniform(-1, 1, (count, model.nv))


def contenders(
    functions: Mapping[str, Function], inputs: Sequence[np.ndarray], use: str, processor_time: bool = False
) -> dict[str, Contender]:
    """The contenders by name; YARDSTICK is among them, because clock rates of processors vary."""
    conditions, out = Conditions(processor_time=processor_time), {}
    yardstick = _yardstick(), states(_yardstick().model)
    for name, (function, given) in {**{n: (f, inputs) for n, f in functions.items()}, YARDSTICK: yardstick}.items():
        entry = Entry(name, function, tuple(given), lambda out, kernel: (np.zeros(1), np.zeros(1)))
        ready, kernel = entry.contenders((MEASURES[use],), 1, conditions)[MEASURES[use]]
        if np.isfinite(kernel(*(x if len(x) > 1 else x[0] for x in entry.controls()))[0]).all():
            out[name] = ready
    return out


def timed(contenders: Mapping[str, Contender], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """us per state of each contender, round by round, in turns."""
    return {name: [r.us for r in all_] for name, all_ in interleave(contenders, rounds, 0.003).items()}


@dataclass
class Trial:
    """A mechanism with the kernels of all methods within NEAR times its plan's best, and their times."""

    name: str
    plan: Plan
    make: Callable[[], dict[str, Contender]]
    took: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, rounds: int) -> None:
        """With newly allocated buffers each time: one placement in twenty costs a fifth of the time."""
        for name, us in timed(self.make(), rounds).items():
            self.took.setdefault(name, []).extend(us)

    @property
    def verdict(self) -> Verdict:
        """The planner's pick against what was measured so far."""
        use, measured = self.plan.use, {name: undisturbed(us) for name, us in self.took.items()}
        now = measured.pop(YARDSTICK) / machine().yardstick[use]  # how much slower than at calibration
        predicted = {c.method: c.predicted[use] * now for c in self.plan.near if c.method in measured}
        return Verdict(self.name, use, self.plan.method, predicted, measured)


def trial(name: str, model: Model, use: str, independent: bool, processor_time: bool = False) -> Trial | None:
    """A mechanism, planned and compiled; None if its pick cannot be measured."""
    made = lw.plan(model, use=use, independent=independent)
    functions = {c.method: lw.forward_dynamics(model, method=c.method, threads=1) for c in made.near}
    try:
        make = partial(contenders, functions, states(model), use, processor_time)
        return Trial(name, made, make) if made.method in make() else None
    except LinkworkError:  # no closed state was found, or none that a method can solve
        return None


def _yardstick() -> Function:
    return lw.forward_dynamics(parts.chain(12), method="aba", threads=1)


def summary(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Shares of picks within 5 % and 20 % of the best, accuracy of predictions, loss of fixed methods.

    A method that was not measured, because its prediction was over NEAR times the pick's, counts as NEAR times slower.
    """
    losses = np.array([v.loss for v in verdicts])
    errors = np.array([v.predicted[n] / v.measured[n] - 1 for v in verdicts for n in v.measured])

    def lost(name: str) -> float:
        without = "crba_ltl" if "ltl" in name else "aba"  # its name on a tree without constraints
        took = []
        for v in verdicts:
            known = without if {"aba", "crba_ltl"} & v.measured.keys() else name
            took.append(v.measured.get(known, NEAR * v.measured[v.picked]) / v.measured[v.picked])
        return float(np.exp(np.mean(np.log(took))))

    return {
        "cases": float(len(losses)),
        "share within 5 %": float((losses <= 1.05).mean()),
        "share within 20 %": float((losses <= 1.2).mean()),
        "worst loss": float(losses.max()),
        "share predicted within 15 %": float((np.abs(errors) <= 0.15).mean()),
        "gain over the best fixed method": min(map(lost, FIXED)),
    }
