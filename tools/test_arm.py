"""Run a slice of the tests on 64-bit ARM, emulated on this machine.

    python tools/test_arm.py [FOLDER] [--set-up-only] [-- PYTEST OPTIONS]

Everything is in a folder of its own (build/arm; 0.6 GB), nothing is installed on this machine, and no rights of an
administrator are needed: QEMU's emulator of user programs and Debian's arm64 Python are downloaded by apt and unpacked
there, and the aarch64 wheels of what Linkwork and its tests need are installed by pip. A second run finds all that.
What the tests start by `sys.executable` runs emulated, too. With `aarch64-linux-gnu-gcc` on the path, exported C is
compiled for ARM; otherwise these tests skip.

Needed: a Debian on x86-64; its packages come from where this machine has its own. Elsewhere, and without a network, the
exit code is 77 and one line says why (`make test-arm` then fails).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUITE, PYTHON = "bookworm", "3.11"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PACKAGES = (f"python{PYTHON}", "libstdc++6", "libgomp1")
WHEELS = ("numpy", "llvmlite", "typer", "rich", "casadi", "pytest", "hypothesis", "mpmath")
PLATFORMS = [f"manylinux_2_{n}_aarch64" for n in (34, 31, 28, 27, 24, 17)] + ["manylinux2014_aarch64"]
COMPILER = "aarch64-linux-gnu-gcc"
SKIPPED = 77

SLICE = (
    "tests/system",
    "tests/kernels/test_direct.py",
    "tests/kernels/test_cores.py",
    "tests/kernels/test_targets.py::test_the_host_is_described",
    "tests/kernels/test_forced_target.py",
    "tests/kernels/test_vector_math.py",
    "tests/kernels/test_rollout_kernel.py",
    "tests/kernels/test_constant_outputs.py",
    "tests/kernels/test_c_source.py",
    "tests/kernels/test_iterate.py",
    "tests/kernels/test_cache.py::test_a_file_without_the_secret_is_foreign",
    "tests/kernels/test_cache.py::test_nonsense_with_a_right_seal_is_compiled_anew",
    "tests/simulation/test_contact.py::test_a_cube_slides_to_rest",
    "tests/simulation/test_contact.py::test_a_ball_bounces",
    "tests/simulation/test_contact.py::test_momentum_is_balanced",
    "--deselect=tests/kernels/test_vector_math.py::test_two_units_in_the_last_place_on_millions_of_points",
    "--deselect=tests/kernels/test_rollout_kernel.py::test_a_long_rollout_takes_many_turns_and_gives_the_same",
)
"""Kernels, objects, C export, cache, loops, contacts, rollouts; not those that take minutes when emulated."""


class Impossible(Exception):
    """ARM cannot be emulated here, and why."""


def main(arguments: list[str]) -> int:
    """Set up what is missing, run the tests; the exit code."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    own, rest = arguments[:at], arguments[at + 1 :]
    folder = Path(next((word for word in own if not word.startswith("-")), ROOT / "build" / "arm")).absolute()
    try:
        python = set_up(folder)
    except Impossible as why:
        print(f"ARM is not tested: {why}", file=sys.stderr)
        return SKIPPED
    if "--set-up-only" in own:
        return 0
    compiler = shutil.which(COMPILER)
    print("tests on emulated ARM" + ("" if compiler else f"; exported C is not compiled: there is no {COMPILER}"))
    cache = folder / "cache"
    cache.mkdir(mode=0o700, exist_ok=True)
    environment = {**os.environ, "LINKWORK_CACHE": str(cache), "CC": compiler or "no compiler for ARM"}
    environment.pop("LINKWORK_TARGET", None)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *(rest or SLICE)]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def set_up(folder: Path) -> Path:
    """A program in this folder that is an emulated Python with all packages."""
    done, python = folder / "done", folder / f"python{PYTHON}"
    if done.exists() and done.read_text() == wanted() and python.exists():
        return python
    need(sys.platform.startswith("linux"), "this system is not Linux")
    for program in ("apt-get", "dpkg-deb"):
        need(shutil.which(program) is not None, f"there is no {program}")
    need(Path(KEYRING).exists(), f"{KEYRING} is missing (package debian-archive-keyring)")
    folder.mkdir(parents=True, exist_ok=True)
    emulator = emulator_in(folder)
    root, site = folder / "root", folder / "site"
    debian(folder / "debian", "arm64", PACKAGES, root)
    say("aarch64 wheels")
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    shutil.rmtree(site, ignore_errors=True)
    run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", site,
        *platforms, "--python-version", PYTHON, "--only-binary=:all:", *WHEELS)  # fmt: skip
    (site / "sitecustomize.py").write_text(f"import sys\n\nsys.executable = {str(python)!r}\n")
    paths = f"{ROOT / 'src'}:{ROOT / 'tests'}:{site}"
    start = f'exec {emulator} -L {root} {root}/usr/bin/python{PYTHON} "$@"'
    python.write_text(f"#!/bin/sh\nexport PYTHONPATH={paths} PYTHONDONTWRITEBYTECODE=1\n{start}\n")
    python.chmod(0o755)
    told = run(python, "-c", "import platform; print(platform.machine())").strip()
    need(told == "aarch64", f"the emulated Python says that it runs on {told}")
    done.write_text(wanted())
    return python


def wanted() -> str:
    """What a folder was set up with."""
    return " ".join([SUITE, PYTHON, *PACKAGES, *WHEELS, str(ROOT)])


def emulator_in(folder: Path) -> str:
    """The path of QEMU: the system's, or one that is unpacked here."""
    for name in ("qemu-aarch64", "qemu-aarch64-static"):
        if found := shutil.which(name):
            return found
    place = folder / "qemu"
    debian(folder / "debian-host", host_architecture(), ["qemu-user-static"], place)
    return str(place / "usr" / "bin" / "qemu-aarch64-static")


def host_architecture() -> str:
    """Debian's name of this machine's architecture."""
    return run("dpkg", "--print-architecture").strip()


def debian(folder: Path, architecture: str, packages: list[str] | tuple[str, ...], into: Path) -> None:
    """Download packages of an architecture with all that they depend on, and unpack them."""
    say(f"{', '.join(packages)} of Debian for {architecture}")
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").write_text("")
    (folder / "sources.list").write_text(f"deb [signed-by={KEYRING}] {mirror()} {SUITE} main\n")
    settings = {
        "APT::Architecture": architecture, "Dir::State": folder / "state", "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache", "Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-",
        "APT::Install-Recommends": "false", "APT::Sandbox::User": "root", "Debug::NoLocking": "true",
    }  # fmt: skip
    text = "".join(f'{name} "{value}";\n' for name, value in settings.items())
    (folder / "apt.conf").write_text(text + f'APT::Architectures {{ "{architecture}"; }};\n')
    environment = {**os.environ, "APT_CONFIG": str(folder / "apt.conf")}
    run("apt-get", "update", "-qq", env=environment)
    run("apt-get", "install", "-qq", "-y", "--download-only", *packages, env=environment)
    into.mkdir(parents=True, exist_ok=True)
    for archive in sorted((folder / "cache" / "archives").glob("*.deb")):
        run("dpkg-deb", "-x", archive, into)
    shutil.rmtree(folder)


def mirror() -> str:
    """Where this machine has its packages of Debian from."""
    told = run("apt-get", "indextargets", "--format", "$(ORIGIN) $(SITE)", "Created-By: Packages", "Component: main")
    sites = [line.split()[1] for line in told.splitlines() if line.startswith("Debian ")]
    need(bool(sites), "this machine has no packages of Debian (apt-get update)")
    return sites[0]


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    """The output of a command; Impossible if it fails."""
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    lines = (done.stderr or done.stdout).strip().splitlines()
    need(done.returncode == 0, f"{Path(command[0]).name} failed: {lines[-1] if lines else 'no reason given'}")
    return done.stdout


def need(condition: bool, why: str) -> None:
    """Raise Impossible unless this holds."""
    if not condition:
        raise Impossible(why)


def say(what: str) -> None:
    """One line about what is being fetched."""
    print(f"setting up: {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
