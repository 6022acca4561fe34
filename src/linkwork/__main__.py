"""The command line: `linkwork`, or `python -m linkwork` where its script is not on the path.

Ctrl-C ends a command with one line and exit code 130, from here on: also while packages are imported.
"""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130
"""The exit code of a command that SIGINT (2) ended, as shells count: 128 + 2."""

_said = list[bool]()


def main() -> None:
    """Import the command line and run it."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # in the background it is ignored
    if heard:
        signal.signal(signal.SIGINT, _end_at_once)
    from linkwork.cli.main import main as run

    try:
        if heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        _say()
        sys.exit(INTERRUPTED)
    except SystemExit as end:  # Typer's, of a KeyboardInterrupt
        if end.code == INTERRUPTED:
            _say()
        raise
    finally:
        if heard:
            signal.signal(signal.SIGINT, _end_at_once)  # Python's own shows where it was, at its end


def _end_at_once(*_: object) -> None:
    """End the process: an exception within an import leaves packages half made, which complain."""
    _say()
    os._exit(INTERRUPTED)


def _say() -> None:
    """The line, once."""
    if not _said:
        _said.append(True)
        os.write(2, b"interrupted\n")


if __name__ == "__main__":
    main()
