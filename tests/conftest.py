"""Settings of the whole suite: the same random mechanisms on every run and every machine; one cache; a browser."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from browser import browser, page
from surroundings import Environment, environment, in_tmp_path, missing, type_command

__all__ = ["browser", "environment", "in_tmp_path", "missing", "page", "type_command"]

settings.register_profile(
    "linkwork",
    derandomize=True,
    deadline=None,
    print_blob=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("linkwork")


def pytest_configure(config: pytest.Config) -> None:
    """Machine code is compiled once for all workers and the next run, and not into the cache of the user.

    ``LINKWORK_CACHE`` names another folder. Workers and processes that tests start inherit it. These processes also
    share Python's bytecode where the environment says that none is written: without it each compiles all sources.
    """
    kept = getattr(config, "cache", None)  # none with -p no:cacheprovider
    if "LINKWORK_CACHE" not in os.environ:
        folder = Path(kept.mkdir("kernels") if kept else tempfile.mkdtemp(prefix="linkwork-"))
        folder.chmod(0o700)  # a cache that others can write to is not used
        os.environ["LINKWORK_CACHE"] = str(folder)
    # matrices of tests are small: threads of BLAS that spin while they wait took 3 % of the processors
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if kept and os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = str(kept.mkdir("bytecode"))


@pytest.fixture
def empty_cache(tmp_path: Path, environment: Environment) -> Path:
    """A cache of its own for one test."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    environment["LINKWORK_CACHE"] = str(folder)
    return folder
