"""Memory that stays for long, in large pages where the system has them.

A second-level cache places lines by physical addresses. Pages of 4 kB are anywhere, some of its places are taken by
many of them and others by none, and a working set that would just fit does not: derivatives of humanoids in batches
took up to a third longer in some processes than in others. Large pages fill all places alike, and arrays share them.
"""

from __future__ import annotations

import mmap
from collections import deque
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

PAGE = 2 << 20
"""Bytes of a large page on x86 and on most ARM systems."""

SMALL = 32 << 10
"""Bytes below which arrays are as well anywhere: a first-level cache holds them."""

_OPEN: deque[NDArray[np.uint8]] = deque(maxlen=4)
"""What is left of large pages; a thread takes one out while it cuts it."""


def lasting(size: int) -> NDArray[np.uint8]:
    """So many bytes, not initialised, for an array that is used again and again.

    A MemoryError if there are not.
    """
    if size < SMALL or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(size, np.uint8)
    rest = np.empty(0, np.uint8)
    with suppress(IndexError):
        rest = _OPEN.pop()
    if rest.size < size:
        try:
            rest = _pages(size)
        except OSError:  # no room for whole pages, or too many mappings: perhaps there is for an array
            return np.empty(size, np.uint8)
    _OPEN.append(rest[size:])
    return rest[:size]


def _pages(size: int) -> NDArray[np.uint8]:
    """Whole large pages for so many bytes, private to this process after a fork."""
    count = -(-size // PAGE)
    memory = mmap.mmap(-1, (count + 1) * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without large pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(memory, np.uint8)
    start = -whole.ctypes.data % PAGE
    return whole[start : start + count * PAGE]
