"""Write the README's benchmark tables and charts from results, or check that they are up to date.

    python tools/readme_numbers.py                        rewrite README.md and docs/results/*.svg
    python tools/readme_numbers.py --check                say what is out of date; exit code 1 if anything is
    python tools/readme_numbers.py --take A.jsonl B.jsonl first replace the committed results by these runs, trimmed
    python tools/readme_numbers.py --join A.jsonl         only what these runs have; experiments of before stay

`make bench` measures everything and ends with --take. Committed figures keep their median and 95 % interval only.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path

from linkwork_bench.lines import Line, lines
from linkwork_bench.measure import geometric_mean
from linkwork_bench.papers import PAPERS
from linkwork_bench.papers.experiment import SUITE
from linkwork_bench.papers.run import judge
from linkwork_bench.records import FORMAT, Record, Results, read
from linkwork_bench.report.charts import draw, standalone
from linkwork_bench.report.page import Dot, Dots

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- benchmarks: tools/readme_numbers.py -->\n).*?(<!-- end of benchmarks -->)", re.S)
LOOPS = "loops"
GROUPS = ("rnea", "crba", "aba", "contacts", LOOPS)
DIGITS, BUSY = 4, 0.5
"""Digits that are kept of a figure; the load from which on a machine was busy when the run began."""


# the committed results


def take(files: list[Path], join: bool = False) -> None:
    """Replace the committed results by those of some runs: whole suites, or to `join`, functions."""
    for file in files:
        run = read(file)
        parts: dict[str, list[Record]] = {}
        for r in run.records:
            parts.setdefault(r.suite, []).append(r)
        for name, records in parts.items():
            kept = [r for r in records if _judged(r)] if name == "papers" else _needed(records)
            facts = {
                k: run.circumstances[k]
                for k in ("date", "cpu", "cores", "load", "clock", "versions", "quick")
                if k in run.circumstances
            }
            known = RESULTS / f"{name}.jsonl"
            if join and known.is_file():
                functions = {r.function for r in kept}
                kept = [r for r in read(known).records if r.function not in functions] + kept
            text = [json.dumps({"format": FORMAT, **facts}), *(_trimmed(r) for r in kept)]
            known.write_text("\n".join(text) + "\n")
            print(f"{name}: {len(kept)} figures of {file.name}")


def _judged(r: Record) -> bool:
    """Whether a figure of the papers can decide a relation: parts of counts, only the Jacobian's."""
    return not r.measure.startswith("part: ") or r.measure == "part: Jacobian"


def _needed(records: list[Record]) -> list[Record]:
    """The fastest of each role, one state and batch: what the tables and charts show."""
    chosen = []
    for line in lines(records):
        wanted = {
            id(r)
            for r in (line.best, line.wheel, line.mujoco, line.latency, line.batch, line.theirs, line.proxLTL)
            if r
        }
        chosen += [r for r in records if id(r) in wanted]
    return chosen


def _trimmed(r: Record) -> str:
    """One line: low, median, high in the place of samples, no defaults, few digits."""
    if len(r.samples) > 2:
        s = r.summary
        r = replace(r, samples=[s.low, s.median, s.high])
    said = r.suite == SUITE and (r.samples == [r.operations] or r.measure in ("chain", "iteration"))
    r = replace(
        r,
        operations=None if said else r.operations,
        samples=[float(f"{x:.{DIGITS}g}") if x < 10**DIGITS else x for x in r.samples],
        shares=[],
        error=None if r.error is None else float(f"{r.error:.1e}"),
    )
    defaults = {
        f.name: f.default if f.default is not MISSING else []
        for f in fields(Record)
        if f.default is not MISSING or f.default_factory is not MISSING
    }
    told = {k: v for k, v in asdict(r).items() if k not in defaults or v != defaults[k]}
    return json.dumps(told, separators=(",", ":"))


# what is made of them


def committed() -> dict[str, Results]:
    return {f.stem: read(f) for f in sorted(RESULTS.glob("*.jsonl"))}


def block(results: dict[str, Results]) -> str:
    """The part of the README between the markers."""
    rows = []
    for group in GROUPS:
        name = {"contacts": "constrained", LOOPS: LOOPS}.get(group, "kernels")
        if name not in results:
            continue
        found = [line for line in lines(results[name].records) if name != "kernels" or line.function == group]
        if any(line.theirs for line in found):
            rows.append(
                f"| {_label(group, found)} | {_mean(found, 'theirs', 'latency', True)} "
                f"| {_mean(found, 'wheel', 'latency')} | {_mean(found, 'theirs', 'batch', True)} |"
            )
    facts = next((r.circumstances for n, r in results.items() if n != "papers"), {})
    busy = " on a machine that had other work" if (facts.get("load") or [0])[0] > BUSY else ""
    runs = [(n, r.circumstances) for n, r in results.items() if n != "papers"]
    when = ", ".join(f"{n} {c.get('date', '')[:10]} ({c.get('clock', 'time')})" for n, c in runs)
    place = f"{facts.get('cpu', 'unknown processor')}{busy}; {when}"
    head = f"Geometric means of the ratios theirs / ours, smallest in brackets; one core, {place}:"
    table = ["| | one state | against pip's build | batch, one thread |", "|---|---|---|---|", *rows]
    parts = [head, "\n".join(table), *_charts(results), *_talos(results), *_digits(results), *_papers(results)]
    return "\n\n".join(p for p in parts if p)


def charts(results: dict[str, Results]) -> dict[str, str]:
    """The SVG files, by name."""
    out = {}
    if "kernels" in results:
        found = [line for line in lines(results["kernels"].records) if line.function == "aba"]
        out["aba.svg"] = _chart("Forward dynamics without constraints: us per state", found, lambda line: "")
    heavy = [line for n in ("constrained", LOOPS) if n in results for line in _heaviest(results[n].records)]
    if heavy:
        out["constrained.svg"] = _chart(
            "Forward dynamics with most contacts or loops: us per state",
            heavy,
            lambda line: "" if line.case == LOOPS else line.case,
        )
    return out


def _heaviest(records: list[Record]) -> list[Line]:
    """For each robot the case with the most rows."""
    rows = {(r.robot, r.case): r.rows for r in records}
    best: dict[str, Line] = {}
    for line in lines(records):
        if line.robot not in best or rows[line.robot, line.case] > rows[line.robot, best[line.robot].case]:
            best[line.robot] = line
    return list(best.values())


def _chart(title: str, found: list[Line], case: object) -> str:
    rows = []
    for line in found:
        pairs = (
            ("Linkwork, batch", line.batch),
            ("Linkwork, one state", line.latency),
            ("Pinocchio", line.best),
            ("Pinocchio, pip's build", line.wheel),
            ("MuJoCo (soft)", line.mujoco),
        )
        dots = [Dot(n, r.us, low=r.summary.low, high=r.summary.high) for n, r in pairs if r is not None]
        rows.append((line.robot.replace("_", " "), case(line), dots))  # type: ignore[operator]
    return standalone(draw(Dots(title, "us", rows)))


def _label(group: str, found: list[Line]) -> str:
    robots, cases = len({line.robot for line in found}), len(found)
    return {
        "contacts": f"contacts: {robots} robots, {cases} cases, against their fastest solver",
        LOOPS: f"loops: {cases} scenarios",
    }.get(group, f"`{group}`, {robots} robot{'s' if robots > 1 else ''}")


def _mean(found: list[Line], theirs: str, ours: str, least: bool = False) -> str:
    ratios = [a.us / b.us for line in found if (a := getattr(line, theirs)) and (b := getattr(line, ours))]
    if not ratios:
        return ""
    return f"{geometric_mean(ratios):.2g}" + (f" ({min(ratios):.2g})" if least else "")


def _charts(results: dict[str, Results]) -> list[str]:
    return [" ".join(f"![{name.removesuffix('.svg')}](docs/results/{name})" for name in charts(results))]


def _talos(results: dict[str, Results]) -> list[str]:
    """The two figures that people ask for first."""
    text = []
    for name, case, what in (("kernels", "none", "`aba`"), ("constrained", "4x6D", "24 contact rows")):
        for line in lines(results[name].records) if name in results else []:
            if (line.robot, line.case) != ("talos_reduced", case) or line.function not in ("aba", "forward_dynamics"):
                continue
            if line.latency and line.batch and line.best:
                text.append(
                    f"{what}: {line.latency.us:.2g} us for one state and {line.batch.us:.2g} us in a batch, "
                    f"Pinocchio {line.best.us:.2g} us"
                )
    return [f"Talos (38 degrees of freedom), {'; '.join(text)}."] if text else []


def _digits(results: dict[str, Results]) -> list[str]:
    """Digit's loops, against what most people would use."""
    found = (
        {
            line.robot: line.proxLTL.us / line.latency.us
            for line in lines(results[LOOPS].records)
            if line.proxLTL and line.latency and "digit" in line.robot
        }
        if LOOPS in results
        else {}
    )
    names = {"digit_rods_standing": "on its feet", "digit_rods_box": "with a box", "two_digits_rods_box": "two of them"}
    text = ", ".join(f"{what} {found[name]:.2g}" for name, what in names.items() if name in found)
    return (
        [f"Digit's closed loops against Pinocchio's sparse factor (proxLTL), one state: {text} times faster."]
        if text
        else []
    )


def _papers(results: dict[str, Results]) -> list[str]:
    if "papers" not in results:
        return []
    found = [r for r in results["papers"].records if r.suite == SUITE]
    judged = judge(list(PAPERS.values()), found)
    holds, fails = (sum(j.verdict.holds is x for j in judged) for x in (True, False))
    known = sum(j.explained for j in judged)
    quick = " in a quick run" if results["papers"].circumstances.get("quick") else ""
    return [
        f"`linkwork bench papers` repeats the tables and figures of five papers{quick}: {holds} of {holds + fails} "
        f"statements that they make hold here; of the others {known} do not for a reason that is measured "
        "([benchmarks](docs/benchmarks.md))."
    ]


def _told(content: str) -> str:
    """What a file says; of a chart its texts and figures, which do not depend on matplotlib's version."""
    return (
        "\n".join(map("".join, re.findall(r"<title>(.*?)</title>|<text[^>]*>(.*?)</text>", content)))
        if "<svg" in content
        else content
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--take", nargs="+", type=Path, default=[])
    parser.add_argument("--join", nargs="+", type=Path, default=[])
    options = parser.parse_args()
    take(options.take)
    take(options.join, join=True)
    results = committed()
    text = README.read_text()
    if not BLOCK.search(text):
        print("README.md has no place for benchmarks: see BLOCK in tools/readme_numbers.py")
        return 1
    wanted = {
        README: BLOCK.sub(lambda m: f"{m[1]}\n{block(results)}\n\n{m[2]}", text),
        **{RESULTS / name: content for name, content in charts(results).items()},
    }
    told = _told if options.check else str
    stale = [file for file, content in wanted.items() if not file.is_file() or told(file.read_text()) != told(content)]
    for file in stale:
        print(f"{'out of date' if options.check else 'wrote'}: {file.relative_to(ROOT)}")
        if not options.check:
            file.write_text(wanted[file])
    return int(options.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
