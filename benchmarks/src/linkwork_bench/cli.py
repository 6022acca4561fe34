"""`linkwork bench`: benchmarks beside other libraries; the entry point of Linkwork's command line."""

from __future__ import annotations

import typer

from linkwork_bench.calls import calls_command
from linkwork_bench.commands import contact, environments, papers, planner, results, robot, rollout, suites
from linkwork_bench.derivatives import derivatives
from linkwork_bench.regressors import regressors
from linkwork_bench.terms import terms

bench_app = typer.Typer(
    help="Our kernels beside Pinocchio and MuJoCo: same robots, same states, one run.\n\n"
    "The peers are measured in C++ through their harness if its build folders are given (--peers, or LINKWORK_PEERS): "
    "one compiled for this machine, one like pip's wheel. Otherwise through Pinocchio's Python bindings, if installed. "
    "Everything is checked against reference accelerations before it is timed; contenders run in turns.",
    no_args_is_help=True,
)

bench_app.command("calls")(calls_command)
for command in (
    papers.papers,
    robot.robot,
    suites.kernels,
    suites.constrained,
    suites.loops,
    suites.chains,
    suites.clusters,
    suites.delassus,
    planner.planner,
    rollout.rollout,
    contact.contact,
    environments.environments,
    derivatives,
    terms,
    regressors,
    results.show,
    results.compare,
):
    bench_app.command()(command)
