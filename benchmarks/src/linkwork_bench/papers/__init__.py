"""The papers' tables and figures, measured with this library and put beside what was published.

One module per paper; `PAPERS` has them all. See docs/benchmarks.md.
"""

from __future__ import annotations

from linkwork.errors import not_found
from linkwork_bench.papers.clusters import PAPER as CLUSTERS
from linkwork_bench.papers.experiment import Paper
from linkwork_bench.papers.lcaba_proxbbo import PAPER as LCABA_PROXBBO
from linkwork_bench.papers.proximal_sparse import PAPER as PROXIMAL_SPARSE
from linkwork_bench.papers.pv_lqr import PAPER as PV_LQR
from linkwork_bench.papers.pv_osimr import PAPER as PV_OSIMR

PAPERS: dict[str, Paper] = {p.name: p for p in (PV_LQR, PV_OSIMR, PROXIMAL_SPARSE, LCABA_PROXBBO, CLUSTERS)}


def chosen(names: list[str]) -> list[Paper]:
    """The papers of these names, or all."""
    for name in names:
        if name not in PAPERS:
            raise not_found("paper", name, PAPERS)
    return [PAPERS[name] for name in names or PAPERS]
