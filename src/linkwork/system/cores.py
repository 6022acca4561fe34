"""How many cores this process may use: its CPU affinity, and the CPU quota of its container."""

from __future__ import annotations

from linkwork.system.processors import allowed, quota

__all__ = ["cores", "quota", "threads"]


def cores() -> int:
    """How many threads there is time for."""
    return threads(allowed(), quota())


def threads(allowed: int, share: float) -> int:
    """At least one, rounded down: a thread on a fraction of a core stalls the others."""
    return max(1, int(min(allowed, share)))
