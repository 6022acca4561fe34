"""Random mechanisms against the judge, for as long as asked: `make fuzz MINUTES=30`.

    python tests/fuzz/campaign.py --minutes 30 [--jobs 2] [--first SEED] [--count N] [--sample 20] [--save DIRECTORY]
    python tests/fuzz/campaign.py --resume STATE.json --minutes 30 [--first SEED]
    python tests/fuzz/campaign.py --replay FILE.json ...

With --resume, what was counted is kept in a file, and the next run continues with the seed after the last one; --first
is for the first run.

Every failure is printed once for each kind with its seed, and saved as a file with the whole mechanism in it, which
--replay runs again and the tests replay if it lies in tests/fuzz/failures.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

FOUND = Path("build/fuzz")
ELSEWHERE = 5
"""One mechanism in so many is put into another closed state than the one it was drawn in."""

PATIENCE = 120
"""Seconds of processor time for one evaluation, compilation included; ten times as many by the clock."""


def attempt(seed: int, sample: int, only: str = "") -> dict[str, Any]:
    """All outcomes of one mechanism."""
    import recipes
    from trial import Trial

    recipe, outcomes = recipes.draw(seed), []
    if seed % ELSEWHERE == 0 and recipe["constraints"]:
        recipe, outcome = elsewhere(recipe)
        outcomes.append(outcome)
    made = Trial(recipe)
    outcomes += outcomes_of(made, sample, only)
    failed = any(o.failed for o in outcomes)
    return {"seed": seed, "state": made.verdict.state, "outcomes": outcomes, "recipe": recipe if failed else None}


def elsewhere(recipe: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The same mechanism in a random closed state that Linkwork finds, if it finds one."""
    from built import build
    from trial import Outcome

    import linkwork as lw

    try:
        q, v = lw.random_state(build(recipe), recipe["seed"])
    except lw.LinkworkError as problem:
        return recipe, Outcome("random_state", "refused", note=str(problem))
    except Exception as problem:
        return recipe, Outcome("random_state", "crash", note=f"{type(problem).__name__}: {problem}"[:300])
    return {**recipe, "q": q.tolist(), "v": v.tolist()}, Outcome("random_state", "right")


def outcomes_of(made: Any, sample: int, only: str = "") -> Iterator[Any]:
    for what in made.names(sample=sample):
        if only and only not in what:
            continue
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        signal.alarm(10 * PATIENCE)
        try:
            outcome = made.run(what)
        finally:
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)
        yield outcome


def _late(*_: object) -> None:
    raise TimeoutError


def _work(job: tuple[int, int, str]) -> dict[str, Any]:
    for late in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(late, _late)
    warnings.simplefilter("ignore")
    try:
        return attempt(*job)
    except Exception as problem:  # a mechanism that cannot even be built is a finding of its own
        return {"seed": job[0], "state": "not built", "outcomes": [], "problem": f"{type(problem).__name__}: {problem}"}


_READ: dict[str, Any] = {
    "states": lambda x: collections.Counter(dict(x)),
    "verdicts": lambda x: collections.Counter({tuple(k): n for k, n in x}),
    "kinds": lambda x: {tuple(k): seeds for k, seeds in x},
    "worst": lambda x: {k: tuple(v) for k, v in x},
    "seconds": float,
}
"""How values of a tally are read from its file, where JSON has no such type."""


class Tally:
    """What was run and what was found."""

    def __init__(self, save: Path) -> None:
        self.save, self.start, self.before, self.next_seed = save, time.monotonic(), 0.0, None
        self.mechanisms = self.evaluations = self.failures = 0
        self.states: collections.Counter[str] = collections.Counter()
        self.verdicts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.kinds: dict[tuple[str, str, str], list[int]] = {}
        self.worst: dict[str, tuple[float, int]] = {}

    def add(self, done: dict[str, Any]) -> None:
        self.mechanisms, self.next_seed = self.mechanisms + 1, done["seed"] + 1
        self.states[done["state"]] += 1
        if "problem" in done:
            self.failures += 1
            self._new(("not built", done["problem"][:60], ""), done["seed"], done["problem"])
        for o in done["outcomes"]:
            self.evaluations += o.verdict not in ("refused", "undecided")
            self.verdicts[o.what, o.verdict] += 1
            if o.verdict == "right" and o.bound:
                self.worst[o.what] = max(self.worst.get(o.what, (0.0, 0)), (o.error / o.bound, done["seed"]))
            if o.failed:
                self.failures += 1
                self._new(
                    (o.what, o.verdict, done["state"]),
                    done["seed"],
                    f"error {o.error:.2g}, bound {o.bound:.2g} {o.note}",
                    done["recipe"],
                    o.what,
                )

    def _new(self, kind: tuple[str, str, str], seed: int, said: str, recipe: Any = None, what: str = "") -> None:
        seeds = self.kinds.setdefault(kind, [])
        seeds.append(seed)
        if len(seeds) > 3:
            return
        print(f"\rFAILED seed {seed}: {', '.join(kind)}: {said}", flush=True)
        if recipe is not None:
            self.save.mkdir(parents=True, exist_ok=True)
            path = self.save / f"{what.replace(':', '-')}-{seed}.json"
            saved = {"what": what, "said": f"{kind[1]}, {kind[2]}: {said}", "recipe": recipe}
            path.write_text(json.dumps(saved) + "\n")
            print(f"    replay: python tests/fuzz/campaign.py --replay {path}", flush=True)

    @classmethod
    def resumed(cls, save: Path, state: Path) -> Tally:
        """The tally of earlier runs, if there are any."""
        self = cls(save)
        if state.exists():
            for name, value in json.loads(state.read_text()).items():
                setattr(self, name, _READ.get(name, lambda x: x)(value))
        return self

    def write(self, state: Path) -> None:
        """Keep what is counted; a run that ends meanwhile leaves the file as it was."""
        known = {n: getattr(self, n) for n in ("next_seed", "mechanisms", "evaluations", "failures", "seconds")}
        tables = {n: list(getattr(self, n).items()) for n in ("states", "verdicts", "kinds", "worst")}
        state.parent.mkdir(parents=True, exist_ok=True)
        part = state.with_suffix(".part")
        part.write_text(json.dumps(known | tables))
        part.replace(state)

    @property
    def seconds(self) -> float:
        return self.before + time.monotonic() - self.start

    @seconds.setter
    def seconds(self, known: float) -> None:
        self.before = known

    def line(self) -> str:
        seconds = self.seconds
        return (
            f"{self.mechanisms} mechanisms, {self.evaluations} evaluations, {self.failures} failures of "
            f"{len(self.kinds)} kinds, {seconds:.0f} s"
        )

    def report(self) -> str:
        table = [self.line(), "mechanisms: " + ", ".join(f"{n} {s}" for s, n in self.states.most_common()), ""]
        for what in dict.fromkeys(w for w, _ in self.verdicts):
            parts = ", ".join(f"{n} {v}" for (w, v), n in self.verdicts.most_common() if w == what)
            ratio, seed = self.worst.get(what, (0.0, None))
            nearest = "" if seed is None else f"; nearest to its bound: {ratio:.2g} (seed {seed})"
            table.append(f"{what:34} {parts}{nearest}")
        table += ["", *(f"FAILED {', '.join(k)}: {len(s)} times, seeds {s[:8]}" for k, s in sorted(self.kinds.items()))]
        table += ["", "What these words mean, and what is drawn and compared: docs/fuzzing.md"]
        return "\n".join(table)


def replay(path: Path) -> Any:
    """The outcome of a saved failure, today."""
    from trial import Trial

    saved = json.loads(path.read_text())
    if saved["what"] == "random_state":
        return elsewhere(saved["recipe"])[1]
    return Trial(saved["recipe"]).run(saved["what"])


def main() -> int:
    say = argparse.ArgumentParser(description="Random mechanisms against an independent dense solve.")
    say.add_argument("--minutes", type=float, default=30.0)
    say.add_argument("--count", type=int, default=10**9, help="so many mechanisms at most")
    say.add_argument("--first", type=int, help="the first seed; by default the time of day, so that runs differ")
    say.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    say.add_argument("--sample", type=int, default=20, help="one in so many is compiled and planned (0: none)")
    say.add_argument("--only", default="", help="only evaluations with this in their names")
    say.add_argument("--save", type=Path, default=FOUND, help="where failures are written")
    say.add_argument("--resume", type=Path, help="continue the run whose counts are in this file, or begin it")
    say.add_argument("--replay", type=Path, nargs="+", help="run saved failures again")
    options = say.parse_args()
    if options.replay:
        outcomes = [replay(path) for path in options.replay]
        for path, o in zip(options.replay, outcomes, strict=True):
            print(f"{path}: {o.what}: {o.verdict}, error {o.error:.3g}, bound {o.bound:.3g} {o.note}")
        return int(any(o.failed for o in outcomes))
    tally, shown = Tally.resumed(options.save, options.resume) if options.resume else Tally(options.save), 0.0
    first = tally.next_seed or options.first
    first = int(time.time()) * 1000 if first is None else first
    print(f"seeds from {first}", flush=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["LINKWORK_CACHE"] = cache
        try:
            for done in _results(first, options):
                tally.add(done)
                if time.monotonic() - shown > 5:
                    shown = time.monotonic()
                    print(f"\r{tally.line()}", end="", flush=True)
                    if options.resume:
                        tally.write(options.resume)
        except KeyboardInterrupt:
            print("\ninterrupted; so far:")
    if options.resume:
        tally.write(options.resume)
    print(f"\r{tally.report()}")
    return int(tally.failures > 0)


def _results(first: int, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Results as they come, until the time or the count is up; workers are replaced now and then."""
    end = time.monotonic() + 60 * options.minutes
    seeds = itertools.takewhile(lambda _: time.monotonic() < end, range(first, first + options.count))
    jobs = ((seed, options.sample, options.only) for seed in seeds)
    if options.jobs == 1:
        yield from map(_work, jobs)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.jobs, maxtasksperchild=500) as pool:
        pending: collections.deque[Any] = collections.deque()
        for job in jobs:
            pending.append(pool.apply_async(_work, (job,)))
            if len(pending) > 8 * options.jobs:
                yield pending.popleft().get()
        while pending:
            yield pending.popleft().get()


if __name__ == "__main__":
    sys.exit(main())
