"""A cache of their own for these tests: what they find in it they have written themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def kernels_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="module", autouse=True)
def own_cache(kernels_cache: Path) -> Iterator[None]:
    """For one file at a time: tests of other folders that come later in this process share the suite's cache."""
    before = os.environ["LINKWORK_CACHE"]
    os.environ["LINKWORK_CACHE"] = str(kernels_cache)
    yield
    os.environ["LINKWORK_CACHE"] = before
