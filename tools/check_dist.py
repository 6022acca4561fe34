"""Install what `make dist` has built into fresh environments, and run the README's ten lines there.

    python tools/check_dist.py dist python3.11 python3.12 python3.13

For every Python that is on this machine: the wheel, and the wheel made of the source archive, each in an environment of
its own with nothing but its dependencies; then the ten lines, `linkwork doctor` and a robot from a file. Pythons that
are missing are named at the end; with none at all the check fails.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROBOT = """<robot name="swing"><link name="base"/><link name="bob"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1"/></inertial></link><joint name="hinge" type="continuous"><parent link="base"/>
<child link="bob"/></joint></robot>"""


def main(folder: Path, pythons: list[str]) -> int:
    """Check every archive with every Python; the exit code."""
    (wheel,), (source,) = folder.glob("linkwork-*.whl"), folder.glob("linkwork-*.tar.gz")
    found = {name: path for name in pythons if (path := working(name))}
    for name, python in found.items():
        for archive in (wheel, source):
            with tempfile.TemporaryDirectory() as room:
                check(python, archive.resolve(), Path(room))
            print(f"{name}: {archive.name} installs and computes", flush=True)
    missing = [name for name in pythons if name not in found]
    if missing:
        print(f"not on this machine, and not checked: {', '.join(missing)}")
    return 0 if found else 1


def working(name: str) -> str | None:
    """The path of a Python that starts and has the version of its name, if that has one.

    On the path, or installed by pyenv.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    for path in filter(None, [shutil.which(name), *map(str, sorted(pyenv.glob(f"*/bin/{name}")))]):
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        if done.returncode == 0 and ("." not in name or done.stdout.strip() in name):
            return path
    return None


def check(python: str, archive: Path, room: Path) -> None:
    """One archive in one new environment; raises where anything fails."""
    # nothing of the surroundings: neither this clone on the path nor a cache that hides a compilation
    inherited = {n: x for n, x in os.environ.items() if not n.startswith(("PYTHON", "LINKWORK"))}
    environment = {**inherited, "LINKWORK_CACHE": str(room / "cache")}

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=room, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    run(python, "-m", "venv", room / "venv")
    bin_folder = room / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    run(bin_folder / "pip", "install", "--quiet", "--disable-pip-version-check", archive)
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (room / "ten_lines.py").write_text(code)
    if "(1000, 12)" not in run(bin_folder / "python", "ten_lines.py"):
        raise SystemExit("the README's ten lines print something else than before")
    run(bin_folder / "linkwork", "doctor")
    (room / "swing.urdf").write_text(ROBOT)
    if "hinge" not in run(bin_folder / "linkwork", "info", "swing.urdf"):
        raise SystemExit("linkwork info does not list the joint of a robot")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:] or ["python3"]))
