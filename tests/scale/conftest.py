"""One real cluster for the tests of a file: a scheduler and two worker processes on this machine."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")  # idle, it takes 7 % of a processor
def cluster(tmp_path_factory):
    distributed = pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("dask")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", local_directory=str(folder)
    ) as made:
        yield made


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster, set_as_default=False) as made:
        yield made
