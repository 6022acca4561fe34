"""From results to a report: experiments beside what was published, suites beside the peers."""

from __future__ import annotations

from typing import Any

from linkwork_bench.papers import PAPERS
from linkwork_bench.papers.experiment import SUITE
from linkwork_bench.papers.run import judge
from linkwork_bench.records import Results
from linkwork_bench.report.page import Page, Section
from linkwork_bench.report.papers import overview, paper_sections, papers_in_short
from linkwork_bench.report.robot import SUITE as ROBOT
from linkwork_bench.report.robot import robot_sections
from linkwork_bench.report.suites import suite_in_short, suite_section


def page_of(results: Results) -> Page:
    """The report of a run."""
    sections: list[Section] = []
    highlights: list[tuple[str, str]] = []
    mine = [r for r in results.records if r.suite == SUITE]
    papers = [p for p in PAPERS.values() if any(r.function.startswith(f"{p.name}/") for r in mine)]
    if papers:
        judged = judge(papers, mine)
        sections.append(overview(papers, judged))
        for paper in papers:
            sections += paper_sections(paper, mine, [j for j in judged if j.experiment in paper.experiments])
        highlights += papers_in_short(judged)
    sections += robot_sections(results)
    for suite in dict.fromkeys(r.suite for r in results.records if r.suite not in (SUITE, ROBOT)):
        records = [r for r in results.records if r.suite == suite]
        sections.append(suite_section(suite, records))
        highlights += suite_in_short(suite, records)
    return Page("Linkwork benchmarks", circumstances_text(results.circumstances), sections, highlights)


def circumstances_text(facts: dict[str, Any]) -> list[str]:
    """Machine and date of the run, in a few sentences."""
    versions = ", ".join(f"{k} {v}" for k, v in facts.get("versions", {}).items())
    load = facts.get("load") or []
    date = str(facts.get("date", "")).replace("T", " ")[:16]
    out = [
        f"{date} on {facts.get('cpu', 'an unknown processor')}, {facts.get('cores', '?')} cores, "
        f"load {load[0] if load else '?'} at the start; {facts.get('clock', 'time')}.",
        versions,
    ]
    return [text for text in out if text]
