"""What happens at a fork, and what a process is limited to.

- Linux, macOS: processes fork, and hooks of Python run before and after that; ``resource`` has limits.
- Windows: processes do not fork, and have no such limits; who starts one has to end it in time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress


def at_fork(
    in_child: Callable[[], None],
    in_parent: Callable[[], None] = lambda: None,
    before: Callable[[], None] = lambda: None,
) -> None:
    """Call these whenever this process forks, where processes do."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)


def limit(seconds: int, memory: int) -> None:
    """Bound processor time and memory (in bytes) of this process, and forbid it to write files.

    Windows has no such bounds. macOS refuses the one on memory; the others hold there nevertheless.
    """
    with suppress(ImportError):
        import resource

        bounds = {resource.RLIMIT_CPU: seconds, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_AS: memory}
        for kind, bound in bounds.items():
            with suppress(ValueError, OSError):
                resource.setrlimit(kind, (bound, bound))
