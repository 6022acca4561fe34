"""`lw.rollout` split over the workers of a cluster: same call, same results, to the bit.

    states -> shards -> workers, each with its own kernel -> results in the order of the states

A shard and the program it needs are arguments of its task, and the scheduler keeps them until the result has arrived:
the shard of a worker that dies is computed again by another, and nothing is lost. Only as many shards are submitted as
the workers need to stay busy, so that neither the scheduler nor the workers hold more than a part of the batch.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np

from linkwork.checks import FLAG, NOT_NEGATIVE, checked, optional, shown, whole
from linkwork.errors import ClusterError, InputError, LinkworkError, MissingExtra, users_level
from linkwork.functions.options import OPTIONS
from linkwork.kernels.calls.rollout import RolloutKernel, RolloutProgram
from linkwork.kernels.calls.thread_pool import nothing
from linkwork.lazy import cached_property
from linkwork.model import Model
from linkwork.model.model import MODEL
from linkwork.scale.program_transfer import packed
from linkwork.scale.shards import TILE, cuts, empty, state_bytes, taken
from linkwork.scale.worker import run_shard, versions
from linkwork.simulation.records.progress import bar
from linkwork.simulation.rollouts.rollout import Rollout
from linkwork.simulation.rollouts.rollout import rollout as local_rollout

PER_THREAD = 4
"""Shards per thread of the cluster: a slow worker then delays little."""

AHEAD = 2
"""Shards submitted per thread: one being computed, one that waits."""

ATTEMPT = 0.5
"""Seconds between two checks that there are still workers."""

Found = TypeVar("Found")


@checked(
    model=MODEL, shards=optional(whole(1)), progress=optional(FLAG), patience=NOT_NEGATIVE, threads=OPTIONS["threads"]
)
def rollout(
    model: Model,
    *,
    cluster: Any = None,
    shards: int | None = None,
    progress: bool | None = None,
    patience: float = 30.0,
    threads: int | None = None,
    **options: Any,
) -> Rollout:
    """`run(q0, v0, tau) -> result`, as `lw.rollout` with the same `options`, on a cluster.

    See `Rollout.__call__`.

    - `cluster` is the address of a Dask scheduler ("tcp://host:8786"), a `distributed.Client`, or a cluster object such
      as `LocalCluster`. None (default) stays in this process and its threads, and needs no Dask.
    - `shards` is how many pieces a batch is cut into; default: four for each thread of the cluster. Results do not
      depend on it, to the bit, as long as all workers have the same kind of CPU (a warning says if they do not).
    - `progress` shows a bar; None shows it on a terminal, after a second.
    - `patience` is how many seconds to wait for a worker when there is none (left).
    - `threads` is for each shard; default on a cluster: one, because a worker runs as many shards as it has threads.
    """
    if options.get("backend", "kernel") != "kernel":
        raise InputError("scale.rollout runs kernels; for backend='numpy' use lw.rollout")
    one = local_rollout(model, threads=threads, **options)
    return ShardedRollout(one, cluster, shards, progress, patience)


class ShardedRollout(Rollout):
    """A rollout whose kernel is a `Sharded` one."""

    def __init__(self, one: Rollout, cluster: Any, shards: int | None, progress: bool | None, patience: float) -> None:
        super().__init__(one.step, one.dt, one.steps, one.every, one.backend, one.dtype, one.threads, one.limit)
        self._how = cluster, shards, progress, patience

    @cached_property
    def kernel(self) -> RolloutKernel:
        """The native code, here or on the workers."""
        return Sharded(self.program, self.dtype, self.threads, *self._how)


class Sharded(RolloutKernel):
    """A rollout kernel in pieces, computed by workers of a cluster or, without one, by this process."""

    def __init__(
        self,
        program: RolloutProgram,
        dtype: str,
        threads: int | None,
        cluster: Any,
        shards: int | None,
        progress: bool | None,
        patience: float,
    ) -> None:
        super().__init__(program, dtype=dtype, threads=threads)
        self.cluster, self.shards, self.progress, self.patience = cluster, shards, progress, patience
        self.remote_threads = threads or 1

    @cached_property
    def data(self) -> bytes:
        """What is sent to workers: the program, not the model."""
        return packed(self.program)

    def __call__(
        self, steps: int, every: int, inputs: Mapping[str, Any], batch: int, look: Callable[[], None] = nothing
    ) -> dict[str, Any]:
        """As `RolloutKernel.__call__`."""
        out = empty(self.program, batch, steps // every, self.dtype)
        each = state_bytes(self.program, inputs, steps // every, self.dtype.itemsize)
        with bar(self.progress, f"rolling out {batch} states", batch) as advance:
            if self.cluster is None:
                for begin, end in cuts(batch, self.shards or self._local_pieces(batch), each):
                    part = super().__call__(steps, every, taken(self.program, inputs, begin, end), end - begin, look)
                    _put(out, part, begin, end)
                    advance(end)
            else:
                with connected(self.cluster, self.patience) as client:
                    pieces = cuts(batch, self.shards or PER_THREAD * sum(client.nthreads().values()), each)
                    self._distribute(client, pieces, steps, every, inputs, out, advance)
        return out

    def _local_pieces(self, batch: int) -> int:
        """Enough shards for a progress bar, each large enough for all threads."""
        return 1 if self.progress is False else min(batch // (PER_THREAD * TILE * self.threads), 20) or 1

    def _distribute(
        self,
        client: Any,
        pieces: list[tuple[int, int]],
        steps: int,
        every: int,
        inputs: Mapping[str, Any],
        out: dict[str, np.ndarray],
        advance: Callable[[int], None],
    ) -> None:
        """Results of all shards, in the order in which they arrive."""
        program, expected, threads = client.submit(bytes, self.data), versions(), self.remote_threads
        waiting, done = list(reversed(pieces)), 0
        running: dict[Any, tuple[int, int]] = {}
        targets = set()
        try:
            while waiting or running:
                while waiting and len(running) < max(AHEAD * sum(client.nthreads().values()), 1):
                    begin, end = waiting.pop()
                    rows = taken(self.program, inputs, begin, end)
                    future = client.submit(
                        run_shard,
                        program,
                        str(self.dtype),
                        threads,
                        expected,
                        steps,
                        every,
                        rows,
                        end - begin,
                        pure=False,
                    )
                    running[future] = begin, end
                for future in self._patiently(client, partial(_finished, client, list(running))):
                    begin, end = running.pop(future)
                    part = self._fetched(client, future, begin, end)
                    targets.add(part.pop("target"))
                    _put(out, part, begin, end)
                    done += end - begin
                    advance(done)
        except BaseException:
            client.cancel(list(running), force=True)  # an interrupt, say: workers end what they are computing
            raise
        if len(targets) > 1:
            warnings.warn(
                f"the workers have different CPUs ({', '.join(sorted(t.cpu for t in targets))}): results are "
                "equal up to rounding only, and depend on which worker computed them",
                stacklevel=users_level(),
            )

    def _fetched(self, client: Any, future: Any, begin: int, end: int) -> dict[str, Any]:
        """The result of a shard; it is lost if the last worker dies before it is fetched."""
        with ThreadPoolExecutor(1) as fetcher:
            arriving = fetcher.submit(_result, future, begin, end)
            try:
                return self._patiently(client, lambda: arriving.result(ATTEMPT))
            except BaseException:
                future.cancel()  # ends fetching too
                raise

    def _patiently(self, client: Any, attempt: Callable[[], Found]) -> Found:
        """The result of the first attempt that does not time out; an error if no workers are left."""
        alone = time.monotonic()
        while True:
            try:
                return attempt()
            except TimeoutError:
                if client.nthreads():
                    alone = time.monotonic()
                elif time.monotonic() - alone > self.patience:
                    raise ClusterError(
                        f"all workers are gone, and none came back within {self.patience:g} s: start "
                        "some with `dask worker <address of the scheduler>`"
                    ) from None


def _finished(client: Any, running: list[Any]) -> list[Any]:
    """Those that are done, as soon as some are."""
    from distributed import wait

    with client.as_current():
        return list(wait(running, timeout=ATTEMPT, return_when="FIRST_COMPLETED").done)


@contextmanager
def connected(cluster: Any, patience: float) -> Iterator[Any]:
    """A client with at least one worker; closed after the call if it was opened for it."""
    try:
        from distributed import Client
        from distributed.deploy import Cluster
    except ImportError:
        raise MissingExtra("distributed", "cluster", "a rollout on a cluster") from None
    if isinstance(cluster, Client):
        if cluster.asynchronous:
            raise InputError("this client is asynchronous; a rollout needs one made with asynchronous=False")
        yield _staffed(cluster, patience)
        return
    if not isinstance(cluster, str | Cluster):
        raise InputError(
            f'cluster={shown(cluster)} is neither the address of a scheduler ("tcp://host:8786") nor a '
            "distributed.Client nor a cluster such as LocalCluster"
        )
    try:
        client = Client(cluster, timeout=patience, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as problem:
        raise ClusterError(
            f"no scheduler answers at {shown(cluster)} ({problem}); start one with `dask scheduler` and give "
            "the address that it prints"
        ) from None
    try:
        yield _staffed(client, patience)
    finally:
        client.close()


def _staffed(client: Any, patience: float) -> Any:
    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError:
        address = client.scheduler_info()["address"]
        raise ClusterError(
            f"the cluster at {address} has no workers after {patience:g} s: start some with `dask worker {address}`"
        ) from None
    return client


def _result(future: Any, begin: int, end: int) -> dict[str, Any]:
    """The result of a shard, or an error that says why there is none."""
    try:
        part: dict[str, Any] = future.result()
    except LinkworkError:
        raise
    except Exception as problem:
        what = f"{type(problem).__name__}: {problem}"
        raise ClusterError(
            f"states {begin} to {end - 1} could not be computed ({what}); the workers need the same "
            "versions of Linkwork, NumPy and distributed as this process, and memory for a shard (more "
            "shards= make them smaller)"
        ) from problem
    return part


def _put(out: dict[str, np.ndarray], part: Mapping[str, np.ndarray], begin: int, end: int) -> None:
    for name, values in part.items():
        out[name][begin:end] = values
