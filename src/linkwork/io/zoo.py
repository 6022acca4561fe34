"""Robots that are installed on this machine, found by name.

Searched in this order, the first that has the name wins: the directories that the environment variable
LINKWORK_ROBOTS lists, the package example-robot-data (from PyPI, conda or ROS), and those descriptions of the
package robot_descriptions that are in its cache already (nothing is downloaded). A robot's name is its file's without
the suffix ("talos_reduced", "ur5_robot"), the file's name ("cassie.sdf"), or both with the folder of its package
("anymal_c_simple/anymal"); some have a short name ("talos", "ur5", "panda").
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from linkwork.checks import NAME, checked
from linkwork.errors import NotFound, listing, not_found

VARIABLE = "LINKWORK_ROBOTS"
MAX_DEPTH = 6
MAX_FILES = 20_000

ALIASES = {
    "alex": "alex_nub_hands",
    "alexander": "alexander_v1.lowerBodyOnly",
    "allegro": "allegro_right_hand",
    "anymal": "anymal_b_simple/anymal",
    "anymal_b": "anymal_b_simple/anymal",
    "anymal_c": "anymal_c_simple/anymal",
    "atlas": "atlas_v4",
    "borinot": "borinot_flying_arm_2",
    "digit": "digit_v3",
    "g1": "g1_29dof_rev_1_0",
    "hextilt": "hextilt_flying_arm_5",
    "hector": "quadrotor_base",
    "hyq": "hyq_no_sensors",
    "jvrc1": "jvrc1_humanoid",
    "talos": "talos_reduced",
    "talos_full": "talos_full_v2",
    "talos_arm": "talos_left_arm",
    "ur3": "ur3_robot",
    "ur5": "ur5_robot",
    "ur10": "ur10_robot",
}
"""Short names. A file that is called exactly so comes before them, unless several are."""

FREE = re.compile(
    r"(a1|alex|anymal|atlas|b1|b2|berkeley_humanoid|bolt|borinot|cassie|centauro|cf2|digit|draco|elf2|ergocub|g1|go1|go2"
    r"|gr1|h1|hextilt|human|hyq|icub|iris|jaxon|jvrc|laikago|mini_cheetah(_|$)|minitaur|mit_humanoid(_approximate)?$|n1"
    r"|pr2|quadrotor|quadruped|r2|romeo|sigmaban|simple_humanoid|skydio|solo|spot|talos(?!_left_arm)|tello|upkie"
    r"|valkyrie)(?![a-z0-9]*_leg$)"
)
"""Robots that walk or fly: their root is free."""


@dataclass(frozen=True)
class Robot:
    """A robot file. `base` is its default base: "fixed", "free", or None where the file defines it."""

    name: str
    path: Path
    base: str | None


def names() -> list[str]:
    """Every name that `find` knows: files, with their folder where names repeat, and short names."""
    known = robots()
    found = {r.name for r in known} | set(_described())
    return sorted(found | {alias for alias, name in ALIASES.items() if len(_matches(name, known)) == 1})


@checked(name=NAME)
def find(name: str) -> Robot:
    """The robot called `name`: its file and default base."""
    if not name:
        raise not_found("robot", name, names())
    known = robots()
    found = _matches(name, known)
    if len(found) != 1 and name in ALIASES:
        found = _matches(ALIASES[name], known) or found
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound(f"several robots are called '{name}': {listing([r.name for r in found])}; use one of these")
    cached = _cached_description(name)
    if cached is not None:
        return cached
    if not known:
        raise NotFound(
            f"no robot called '{name}': none is installed. Install the package example-robot-data, or name directories "
            f"with robot files in the environment variable {VARIABLE}"
        )
    raise not_found("robot", name, names())


def robots() -> list[Robot]:
    """All robot files in LINKWORK_ROBOTS and example-robot-data."""
    return _robots([*_user_folders(), *_example_folders()])


def _robots(folders: list[Path]) -> list[Robot]:
    """The robots of each folder; names that are taken have the package's name before them."""
    out: list[Robot] = []
    taken: set[str] = set()
    for folder in folders:
        files = list(_robot_files(folder))
        stems = [f.stem for f in files]
        here: set[str] = set()
        for file in files:
            plain = stems.count(file.stem) == 1 and file.stem not in taken
            name = file.stem if plain else f"{_package(file, folder)}/{file.stem}"
            if name in taken | here:
                name = f"{_package(file, folder)}/{file.name}"
            if name not in taken | here:
                here.add(name)
                out.append(Robot(name, file, _suits(file)))
        taken |= here
    return out


def _matches(name: str, known: list[Robot]) -> list[Robot]:
    """By exact name; else by file name, with or without suffix, with or without its package."""
    exact = [r for r in known if r.name == name]
    if exact:
        return exact
    package, _, file = name.rpartition("/")
    return [
        r
        for r in known
        if file in (r.path.stem, r.path.name)
        and (not package or any(_short(p) == _short(package) for p in r.path.parts[:-1]))
    ]


def _user_folders() -> Iterator[Path]:
    for entry in os.environ.get(VARIABLE, "").split(os.pathsep):
        if entry and Path(entry).is_dir():
            yield Path(entry)


def _example_folders() -> Iterator[Path]:
    """Where example-robot-data may be: the first place that has it."""
    prefixes = [Path(p) / "cmeel.prefix" for p in sys.path if p] + [Path(sys.prefix)]
    for variable in ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH", "CONDA_PREFIX"):
        prefixes += [Path(p) for p in os.environ.get(variable, "").split(os.pathsep) if p]
    prefixes += [Path("/opt/openrobots"), *sorted(Path("/opt/ros").glob("*")), Path("/usr/local"), Path("/usr")]
    for prefix in prefixes:
        folder = prefix / "share" / "example-robot-data" / "robots"
        if folder.is_dir():
            yield folder
            return


def _robot_files(folder: Path) -> Iterator[Path]:
    """URDF, SDF and MJCF files below a folder, in order of their names.

    Meshes and hidden folders are skipped.
    """
    seen = 0
    for here, folders, files in os.walk(folder):
        depth = len(Path(here).relative_to(folder).parts)
        skip = ("meshes", "collisions", "visuals", "launch", "config")
        folders[:] = sorted(f for f in folders if depth < MAX_DEPTH and f not in skip and not f.startswith("."))
        for file in sorted(files):
            seen += 1
            if seen > MAX_FILES:
                return
            path = Path(here, file)
            if path.suffix in (".urdf", ".sdf") or (path.suffix in (".xml", ".mjcf") and _is_mjcf(path)):
                yield path


def _is_mjcf(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return b"<mujoco" in stream.read(8192).replace(b"<mujocoinclude", b"")
    except OSError:
        return False


def _package(file: Path, folder: Path) -> str:
    parts = file.relative_to(folder).parts
    return _short(parts[0] if len(parts) > 1 else folder.name)


def _short(package: str) -> str:
    return re.sub(r"_(description|data)$", "", package)


def _suits(file: Path) -> str | None:
    if file.suffix != ".urdf":
        return None
    return "free" if FREE.match(file.stem) else "fixed"


def _described() -> dict[str, Path]:
    """The descriptions of the package robot_descriptions whose repositories are on disk, and where."""
    try:
        from robot_descriptions import DESCRIPTIONS
        from robot_descriptions._repositories import REPOSITORIES
    except ImportError:
        return {}
    cache = Path(os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")).expanduser()
    folders = {name: cache / r.cache_path for name, r in REPOSITORIES.items() if (cache / r.cache_path).is_dir()}
    repositories = {name: getattr(d, "repository", None) for name, d in DESCRIPTIONS.items()}
    return {name: folders[r] for name, r in repositories.items() if r in folders}


def _cached_description(name: str) -> Robot | None:
    """A description by its name, with or without the ending, from the cache alone.

    Nothing is cloned or fetched.
    """
    described = _described()
    for candidate in (name, f"{name}_description", f"{name}_mj_description"):
        if candidate not in described:
            continue
        try:
            from robot_descriptions import _cache

            clone, _cache.clone_to_cache = _cache.clone_to_cache, lambda *_, **__: str(described[candidate])  # noqa: B023
            try:
                module = import_module(f"robot_descriptions.{candidate}")
            finally:
                _cache.clone_to_cache = clone
        except Exception:  # a module of a foreign package may raise anything
            continue
        for attribute in ("URDF_PATH", "MJCF_PATH"):
            path = Path(getattr(module, attribute, ""))
            if path.is_file():
                return Robot(candidate, path, _suits(path))
    return None
