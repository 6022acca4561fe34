"""Rollouts on a real cluster of two worker processes: the same to the bit, and nothing is lost when one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import linkwork as lw
from linkwork import scale
from linkwork.errors import ClusterError, InputError
from linkwork.kernels.codegen.target import Target
from linkwork.robots.mechanisms import four_bar
from linkwork.scale import cluster as module

OPTIONS = {"steps": 40, "every": 10, "record": ("a", "lam")}


def states(model: lw.Model, batch: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """First states in which the loop is closed, and forces over time of each state."""
    rng = np.random.default_rng(seed)
    v = np.array([1.0, -1.0, 1.0]) * rng.normal(size=(batch, 1))
    return np.tile(model.neutral(), (batch, 1)), v, rng.normal(size=(batch, 5, model.nv))


def same(one: lw.RolloutResult, other: lw.RolloutResult) -> None:
    for name in ("t", "q", "v", "a", "lam", "ok", "survived", "residual", "converged"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize(("batch", "shards"), [(1, None), (2, 9), (17, 16), (100, None), (100, 3), (333, 50)])
def test_results_do_not_depend_on_the_shards(client, batch, shards):
    model = four_bar()
    x = states(model, batch)
    same(scale.rollout(model, cluster=client, shards=shards, **OPTIONS)(*x), lw.rollout(model, **OPTIONS)(*x))


def test_one_state_by_the_address_and_by_the_cluster(cluster):
    model = four_bar()
    q, v, tau = (x[0] for x in states(model, 1))
    here = lw.rollout(model, **OPTIONS)(q, v, tau)
    same(scale.rollout(model, cluster=cluster.scheduler_address, **OPTIONS)(q, v, tau), here)
    same(scale.rollout(model, cluster=cluster, **OPTIONS)(q, v, tau), here)


def test_contacts_with_friction_on_a_terrain(client):
    """Cubes that hit a slope, a function of the user's: forces, residuals and states are the same to the bit."""
    b, rng = lw.Builder("cube"), np.random.default_rng(0)
    b.link("cube", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3) / 600))
    corners = [lw.Contact("cube", (x, y, -0.05), friction=0.5) for x, y in ((-0.05, 0), (0.05, -0.05), (0.05, 0.05))]
    options = {"steps": 60, "every": 20, "record": ("forces",), "contacts": corners}
    options["ground"] = lw.Terrain(lambda x, y: 0.1 * x)
    model, q, v = b.build(), np.tile([0, 0, 0.08, 0, 0, 0, 1.0], (21, 1)), rng.standard_normal((21, 6))
    there = scale.rollout(model, cluster=client, shards=4, **options)(q, v)
    here = lw.rollout(model, **options)(q, v)
    assert (here.forces != 0).any()
    for name in ("q", "v", "forces", "residual", "converged"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))


def test_a_custom_constraint_travels_as_operations(client):
    """The function of the user stays here: it could not be sent, not even by name."""
    lock = threading.Lock()

    def phi(a, b):
        with lock:
            return a + 0.5 * b * b

    model = four_bar().without_constraints().with_constraints(lw.Custom(phi, ("crank_joint", "coupler_joint")))
    x = states(model, 20)
    same(scale.rollout(model, cluster=client, **OPTIONS)(*x), lw.rollout(model, **OPTIONS)(*x))


def test_states_that_fail_do_so_alone_there_too(client):
    model = four_bar()
    q, v, tau = states(model, 30)
    tau[11] *= 1e12
    there = scale.rollout(model, cluster=client, shards=4, **OPTIONS)(q, v, tau)
    same(there, lw.rollout(model, **OPTIONS)(q, v, tau))
    assert np.flatnonzero(~there.ok).tolist() == [11]


def test_a_killed_worker_costs_time_and_nothing_else(cluster, client, capfd):
    model, options = four_bar(), {"steps": 60_000, "every": 20_000}
    q, v, tau = states(model, 256)
    tau = tau[:, :1]
    victim = client.run(os.getpid)
    address, pid = next(iter(victim.items()))
    found: dict[str, lw.RolloutResult] = {}
    run = scale.rollout(model, cluster=client, shards=8, progress=True, **options)
    caller = threading.Thread(target=lambda: found.update(there=run(q, v, tau)))
    caller.start()
    deadline = time.monotonic() + 20
    while not (busy := client.processing().get(address)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert busy, "the worker has something to lose"
    os.kill(pid, signal.SIGKILL)
    caller.join(60)
    here = lw.rollout(model, **options)(q, v, tau)
    for name in ("q", "v", "survived"):
        np.testing.assert_array_equal(getattr(found["there"], name), getattr(here, name))
    assert pid not in client.run(os.getpid).values()
    assert "256 states" in capfd.readouterr().err


def test_other_versions_on_a_worker_are_an_error(client, monkeypatch):
    monkeypatch.setattr(module, "versions", lambda: {"linkwork": "99.0"})
    with pytest.raises(ClusterError, match=r"instead of 99\.0: install the same"):
        scale.rollout(four_bar(), cluster=client, **OPTIONS)(*states(four_bar(), 4))


def test_workers_with_other_cpus_are_a_warning(client, monkeypatch):
    given, seen = module._result, []

    def pretending(*args):
        part = given(*args)
        seen.append(part)
        return {**part, "target": Target.named("avx2" if len(seen) % 2 else "sse2")}

    monkeypatch.setattr(module, "_result", pretending)
    with pytest.warns(UserWarning, match="haswell, x86-64.*up to rounding"):
        scale.rollout(four_bar(), cluster=client, **OPTIONS)(*states(four_bar(), 40))


def test_what_goes_wrong_on_a_worker_is_told(client, monkeypatch):
    monkeypatch.setattr(module, "run_shard", os.path.join)
    with pytest.raises(ClusterError, match=r"states \d to \d.*TypeError"):
        scale.rollout(four_bar(), cluster=client, **OPTIONS)(*states(four_bar(), 4))


def test_a_cluster_without_scheduler_or_workers_is_an_error():
    distributed = pytest.importorskip("distributed")
    q, v, tau = states(four_bar(), 4)
    with pytest.raises(ClusterError, match="dask scheduler"):
        scale.rollout(four_bar(), cluster="tcp://127.0.0.1:1", patience=0.3, **OPTIONS)(q, v, tau)
    with pytest.raises(InputError, match="neither the address"):
        scale.rollout(four_bar(), cluster=8786, **OPTIONS)(q, v, tau)
    with pytest.raises(InputError, match="an array of float64"):  # whose entries took 19 s to write
        scale.rollout(four_bar(), cluster=np.zeros((2,) * 20), **OPTIONS)(q, v, tau)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as idle,
        pytest.raises(ClusterError, match="dask worker"),
    ):
        scale.rollout(four_bar(), cluster=idle, patience=0.3, **OPTIONS)(q, v, tau)


def test_workers_that_all_leave_are_an_error():
    distributed = pytest.importorskip("distributed")
    q, v, tau = states(four_bar(), 64)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as small:
        leaving = threading.Timer(0.5, lambda: small.scale(0))
        leaving.start()
        with pytest.raises(ClusterError, match="all workers are gone"):
            scale.rollout(four_bar(), cluster=small, patience=0.5, shards=32, steps=400_000, every=400_000)(q, v, tau)
        leaving.join()


def test_results_that_leave_with_the_last_worker_are_an_error(monkeypatch):
    """It has computed everything, and goes before anything is fetched."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as small:
        given = module._finished

        def leaving(client, running):
            done = given(client, running)
            small.scale(0)
            while client.nthreads():
                time.sleep(0.01)
            return done

        monkeypatch.setattr(module, "_finished", leaving)
        with pytest.raises(ClusterError, match="all workers are gone"):
            scale.rollout(four_bar(), cluster=small, patience=0.5, shards=1, **OPTIONS)(*states(four_bar(), 4))


INTERRUPTED = """
import os, signal, threading, time
import numpy as np

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it

def main():
    from distributed import LocalCluster
    from linkwork import scale
    from linkwork.robots.mechanisms import chain

    with LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        run = scale.rollout(chain(3), cluster=cluster, method="aba", progress=False)
        states = np.zeros((20, 3)), np.zeros((20, 3))
        right = run(*states, steps=20).q
        sent = []
        def send():
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.5, send).start()
        try:
            run(*states, steps=10**12, every=10**12)
        except KeyboardInterrupt:
            print(time.perf_counter() - sent[0], flush=True)
        assert np.array_equal(run(*states, steps=20).q, right)

if __name__ == "__main__":
    main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_is_heard_and_the_only_worker_is_free_again(tmp_path):
    """It would compute for years otherwise, and nobody would get its results."""
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout) < 2.0
