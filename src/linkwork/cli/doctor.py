"""`linkwork doctor`: what is installed, what this machine can do, whether kernels are right."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import typer

import linkwork as lw
from linkwork.cli.arguments import JsonOption, print_json, table_of, terminal

REQUIRED = ("numpy", "llvmlite", "typer", "rich")
EXTRAS = {
    "casadi": ("casadi", "casadi", "functions as CasADi's, and relations written in CasADi"),
    "mjcf": ("mujoco", "mujoco", "MJCF files"),
    "view": ("viser", "viser", "the live viewer"),
    "plot": ("matplotlib", "matplotlib", "figures of trajectories"),
    "parquet": ("pyarrow", "pyarrow", "trajectories as Parquet files"),
    "pinocchio": ("pin", "pinocchio", "conversion of Pinocchio's models"),
    "cluster": ("distributed", "distributed", "rollouts on a Dask cluster"),
    "xacro": ("xacro", "xacro", "xacro files"),
    "usd": ("usd-core", "pxr", "USD files"),
    "jax": ("jax", "jax", "functions for JAX"),
    "torch": ("torch", "torch", "functions for PyTorch"),
    "gym": ("gymnasium", "gymnasium", "Gymnasium environments"),
    "meshes": ("coal", "coal", "contact of meshes"),
    "crocoddyl": ("crocoddyl", "crocoddyl", "action models for Crocoddyl"),
    "qp": ("proxsuite", "proxsuite", "the tutorial on whole-body control"),
}
"""Extra: its package, the module in that, and what it is for."""

BENCH = ("linkwork-bench", "linkwork_bench", "benchmarks against other libraries")


def doctor_command(as_json: JsonOption = False) -> None:
    """Show what is installed and what this machine can do, and compile a test; exit code 1 if that fails."""
    facts: dict[str, Any] = {
        "linkwork": lw.__version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "packages": {name: _version(name) for name in REQUIRED},
        "extras": {extra: _version(package, module) for extra, (package, module, _) in EXTRAS.items()},
        "linkwork-bench": _version(*BENCH[:2]),
        "machine": _machine(),
        "cache": _cache(),
        "robots": _robots(),
        "compile test": _compiled(),
    }
    if as_json:
        print_json(facts)
    else:
        _show(facts)
    if facts["compile test"]["problem"]:
        raise typer.Exit(1)


def _version(package: str, module: str | None = None) -> str | None:
    """The version of a package, None if it is not there."""
    if module is not None and not _there(module):
        return None
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown" if _there(module or package) else None


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a name that is blocked, or a package without a loader
        return False


def _machine() -> dict[str, Any]:
    from linkwork.kernels.codegen.target import Target
    from linkwork.system.cores import cores, quota
    from linkwork.system.processors import processor_name

    host = Target.host()
    return {
        "cpu": processor_name() or host.cpu,
        "target": f"{host.cpu}, {host.triple}",
        "LINKWORK_TARGET": os.environ.get("LINKWORK_TARGET", ""),
        "registers": f"{host.registers} registers of {host.register_bits} bits{', fused multiply-add' * host.has_fma}",
        "lanes": {dtype: host.lanes(dtype) for dtype in ("float64", "float32")},
        "processors": os.cpu_count(),
        "quota": None if quota() == float("inf") else quota(),
        "threads": cores(),
    }


def _cache() -> dict[str, Any]:
    from linkwork.kernels.cache import object_cache as cache

    return {key: str(x) if isinstance(x, Path) else x for key, x in cache.info()._asdict().items()}


def _robots() -> dict[str, Any]:
    from linkwork.io import zoo

    return {"LINKWORK_ROBOTS": os.environ.get("LINKWORK_ROBOTS", ""), "found": len(zoo.names())}


def _compiled() -> dict[str, Any]:
    """Compile the dynamics of a small mechanism anew, and compare them with NumPy's."""
    from linkwork.robots.mechanisms import arm

    model, rng = arm(3), np.random.default_rng(0)
    q, v, tau = (rng.uniform(-1, 1, (64, 3)) for _ in range(3))
    started = time.perf_counter()
    try:
        with _uncached():
            fd = lw.forward_dynamics(model, method="aba")
            one, many = fd(q[0], v[0], tau[0]).a, fd(q, v, tau).a
        seconds = time.perf_counter() - started
        true = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau).a
        error = float(max(np.abs(one - true[0]).max(), np.abs(many - true).max()) / np.abs(true).max())
        problem = None if error < 1e-9 else f"results are wrong by {error:.1e}"
    except Exception as why:  # whatever is wrong with this machine, the other lines are still of use
        seconds, error, problem = time.perf_counter() - started, None, f"{type(why).__name__}: {why}"
    return {"seconds": round(seconds, 3), "error": error, "problem": problem}


@contextmanager
def _uncached() -> Iterator[None]:
    """Without the cache on disk."""
    before = os.environ.get("LINKWORK_CACHE")
    os.environ["LINKWORK_CACHE"] = "off"
    try:
        yield
    finally:
        os.environ.pop("LINKWORK_CACHE")
        if before is not None:
            os.environ["LINKWORK_CACHE"] = before


def _show(facts: dict[str, Any]) -> None:
    console = terminal()
    machine, cache, robots, test = (facts[key] for key in ("machine", "cache", "robots", "compile test"))
    lines = {
        "linkwork": f"{facts['linkwork']} ({Path(lw.__file__).parent})",
        "python": facts["python"],
        "system": facts["system"],
        "processor": machine["cpu"],
        "machine code": f"{machine['target']}; {machine['registers']}{_forced(machine)}",
        "lanes": ", ".join(f"{n} of {dtype}" for dtype, n in machine["lanes"].items()),
        "threads": f"{machine['threads']} of {machine['processors']} processors{_limited(machine)}",
        "cache": f"{cache['directory']}: {cache['files']} kernels, {cache['bytes'] / 2**20:.1f} MiB",
        "robots": f"{robots['found']} by name; LINKWORK_ROBOTS is {robots['LINKWORK_ROBOTS'] or 'not set'}",
    }
    if cache["problem"]:
        lines["cache"] = f"not used: {cache['problem']}"
    wide = max(map(len, lines))
    for key, value in lines.items():
        console.print(f"{key:{wide}}  {value}", highlight=False, soft_wrap=True)
    table = table_of("packages", "package", "version", "for")
    for name, found in facts["packages"].items():
        table.add_row(name, found or "missing: pip install linkwork", "always needed")
    for extra, (package, _, purpose) in EXTRAS.items():
        table.add_row(package, facts["extras"][extra] or f"pip install 'linkwork[{extra}]'", purpose)
    table.add_row(BENCH[0], facts["linkwork-bench"] or "pip install linkwork-bench", BENCH[2])
    console.print(table)
    if test["problem"]:
        console.print(f"compile test FAILED: {test['problem']}", highlight=False, soft_wrap=True)
    else:
        took = f"an arm with three joints traced and compiled in {test['seconds']:.2f} s"
        console.print(f"compile test passed: {took}, right to {test['error']:.0e}", highlight=False, soft_wrap=True)


def _forced(machine: dict[str, Any]) -> str:
    return f"; LINKWORK_TARGET is {machine['LINKWORK_TARGET']}" if machine["LINKWORK_TARGET"] else ""


def _limited(machine: dict[str, Any]) -> str:
    return "" if machine["quota"] is None else f", by a quota of {machine['quota']:g}"
