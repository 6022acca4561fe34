"""Optional packages: the extras of pyproject.toml have them, and each that is absent is named with what to install."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
NEEDS = {
    "jax": ("jax", "jax"),
    "torch": ("torch", "torch"),
    "gym": ("gymnasium", "gym"),
    "mujoco": ("mujoco", "mjcf"),
    "crocoddyl": ("crocoddyl", "crocoddyl"),
}
"""Modules of linkwork.learn: the package of each, and the extra that brings it."""

STAND_IN = """
import sys
import linkwork.learn
for name in sys.argv[2].split(","):
    sys.modules[name] = None
for name in sys.argv[1].split(","):
    try:
        __import__("linkwork.learn." + name)
    except ImportError as why:
        print(type(why).__name__, why, sep=": ")
"""


def test_what_is_absent_is_named_with_what_to_install() -> None:
    packages = ",".join(package for package, _ in NEEDS.values())
    done = subprocess.run([sys.executable, "-c", STAND_IN, ",".join(NEEDS), packages], capture_output=True, text=True)
    expected = [
        f"MissingExtra: linkwork.learn.{module} needs the package '{package}': pip install 'linkwork[{extra}]'"
        for module, (package, extra) in NEEDS.items()
    ]
    assert done.stdout.splitlines() == expected, done.stderr


def test_what_needs_gymnasium_and_torch_says_which_is_absent() -> None:
    for package, extra in (("gymnasium", "gym"), ("torch", "torch")):
        done = subprocess.run([sys.executable, "-c", STAND_IN, "ppo", package], capture_output=True, text=True)
        absent = re.findall(r"needs the package '(\w+)': pip install 'linkwork\[(\w+)\]'", done.stdout)
        assert absent in ([(package, extra)], [("gymnasium", "gym")])  # gymnasium comes first, where neither is there


def test_extras_bring_what_is_asked_for() -> None:
    for package, extra in NEEDS.values():
        wanted = PROJECT["optional-dependencies"][extra]
        assert re.split(r"[><=\[]", wanted[0])[0] == package
