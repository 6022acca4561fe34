"""Run the tests that depend on Python's insides with every Python of this machine.

    python tools/test_pythons.py python3.11 python3.12 python3.13 python3.14

Each gets an environment of its own in build/pythons. Pythons that are missing are named at the end; with none at all
the check fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from check_dist import ROOT, working

SLICE = ["tests/system", *(f"tests/kernels/test_{name}.py" for name in ("direct", "memory", "numbers", "kernel"))]
PACKAGES = ("pytest", "hypothesis", "mpmath", "casadi")


def main(pythons: list[str]) -> int:
    """Test with each; the exit code."""
    found = {name: path for name in pythons if (path := working(name))}
    failed = [name for name, path in found.items() if not passes(name, path)]
    missing = [name for name in pythons if name not in found]
    if missing:
        print(f"not on this machine, and not tested: {', '.join(missing)}")
    return 1 if failed or not found else 0


def passes(name: str, python: str) -> bool:
    """Whether the tests pass with a Python."""
    room = ROOT / "build" / "pythons" / name
    inner = room / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not inner.exists():
        subprocess.run([python, "-m", "venv", room], check=True)
        pip = [inner, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-e", ROOT, *PACKAGES], check=True)
    environment = {n: x for n, x in os.environ.items() if not n.startswith(("PYTHON", "LINKWORK"))}
    environment["LINKWORK_CACHE"] = str(room / "cache")
    Path(environment["LINKWORK_CACHE"]).mkdir(mode=0o700, exist_ok=True)
    print(f"{name}:", flush=True)
    command = [inner, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SLICE]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["python3"]))
