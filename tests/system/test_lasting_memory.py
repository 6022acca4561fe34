"""Memory in large pages: arrays share a page, and no byte of it twice."""

from __future__ import annotations

import errno
import gc
import mmap
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from linkwork.kernels import Kernel
from linkwork.kernels.calls.arrays import empty_lines
from linkwork.kernels.programs.trace import trace
from linkwork.system import memory
from linkwork.system.memory import PAGE, SMALL, lasting

SIZES = [SMALL, 3 * SMALL + 64, PAGE - 64, PAGE, PAGE + 8, 100_000]


def test_no_byte_is_given_twice_from_any_thread() -> None:
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lasting, SIZES * 8))
    for k, part in enumerate(parts):
        assert part.size == (SIZES * 8)[k]
        part[...] = k
    assert all(np.all(part == k) for k, part in enumerate(parts))
    assert parts[0].flags.writeable


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="no large pages here")
def test_arrays_share_a_page_which_ends_with_the_last_of_them() -> None:
    memory._OPEN.clear()
    first, second = lasting(SMALL), lasting(SMALL)
    assert second.ctypes.data - first.ctypes.data == SMALL
    assert first.ctypes.data % PAGE == 0
    held = weakref.ref(first.base if first.base is not None else first)
    memory._OPEN.clear()
    del first
    gc.collect()
    second[...] = 1
    assert held() is not None, "the other one needs it"
    del second
    gc.collect()
    assert held() is None


def test_without_large_pages_it_is_memory_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    part = lasting(4 * SMALL)
    part[...] = 3
    assert part.base is None


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="no large pages here")
def test_where_no_pages_are_left_an_array_will_do_or_memory_is_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound call of many states ended with an OSError of `mmap`."""

    def refusing(*args: object, **named: object) -> mmap.mmap:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    memory._OPEN.clear()
    monkeypatch.setattr(mmap, "mmap", refusing)
    lasting(4 * SMALL)[...] = 3
    with pytest.raises(MemoryError):
        lasting(1 << 60)


def test_buffers_that_last_are_whole_and_aligned() -> None:
    x = empty_lines((9, 50, 20), np.dtype(float), lasts=True)
    assert x.ctypes.data % 64 == 0
    assert x.strides[0] % 64 == 0
    x[...] = 2.0
    assert x.sum() == 2 * x.size


def test_bound_kernels_keep_to_their_own() -> None:
    """Two with results of more than a page's rest each: neither writes what the other has."""
    grid = np.arange(400.0).reshape(20, 20)

    def body(xp, symbol):
        return {"y": symbol("u", 1) @ xp.constant(grid.reshape(1, -1))}

    program = trace("outer", body, shapes={"y": (1, 400)})
    one, other = (Kernel(program, threads=1).bind(700) for _ in range(2))
    one.inputs[0][...], other.inputs[0][...] = 1.0, 2.0
    one(), other()
    for bound, factor in ((one, 1.0), (other, 2.0)):
        np.testing.assert_array_equal(bound.outputs[0], np.broadcast_to(factor * grid.reshape(1, -1), (700, 1, 400)))
