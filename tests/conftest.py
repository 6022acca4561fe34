"""Settings of the whole suite: the same random mechanisms on every run and every machine; a browser where asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from browser import browser, page

__all__ = ["browser", "page"]

settings.register_profile(
    "linkwork",
    derandomize=True,
    deadline=None,
    print_blob=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("linkwork")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for one test."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("LINKWORK_CACHE", str(folder))
    return folder
