"""Robots found by name."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from loaded import NO_ROBOTS

import linkwork as lw
from linkwork.errors import LoadError, NotFound
from linkwork.io import zoo
from linkwork.io.load import load
from surroundings import Environment

TEXT = '<robot name="r"><link name="a"/></robot>'


@pytest.fixture
def no_examples(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without example-robot-data, and without folders of the user's own."""
    environment[zoo.VARIABLE] = ""
    monkeypatch.setattr(zoo, "_example_folders", lambda: iter(()))


@pytest.fixture
def shelf(tmp_path: Path, environment: Environment, no_examples: None) -> Path:
    """Two directories of robots and nothing else on the machine."""
    for name in (
        "one/thing.urdf",
        "one/deep/er/other.urdf",
        "two/thing.urdf",
        "two/pkg_description/urdf/twin.urdf",
        "two/second_data/twin.urdf",
        "one/meshes/mesh.urdf",
        "one/go1.urdf",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEXT)
    (tmp_path / "one" / "hand.xml").write_text("<!-- a hand --><mujoco/>")
    (tmp_path / "one" / "package.xml").write_text("<package/>")
    environment[zoo.VARIABLE] = os.pathsep.join(str(tmp_path / f) for f in ("one", "missing", "two"))
    environment["ROBOT_DESCRIPTIONS_CACHE"] = str(tmp_path / "nothing")
    return tmp_path


def test_names(shelf: Path) -> None:
    assert set(zoo.names()) == {"thing", "other", "hand", "go1", "two/thing", "pkg/twin", "second/twin"}


def test_find(shelf: Path) -> None:
    assert zoo.find("thing").path == shelf / "one" / "thing.urdf"
    assert zoo.find("two/thing").path == shelf / "two" / "thing.urdf"
    assert zoo.find("other.urdf").path.name == "other.urdf"
    assert zoo.find("pkg/twin").path.parent.name == "urdf"
    assert zoo.find("pkg_description/twin").path.parent.name == "urdf"
    assert (zoo.find("thing").base, zoo.find("go1").base, zoo.find("hand").base) == ("fixed", "free", None)


def test_ambiguous_and_unknown(shelf: Path) -> None:
    with pytest.raises(NotFound, match=r"several robots.*pkg/twin.*second/twin"):
        zoo.find("twin")
    with pytest.raises(NotFound, match="Did you mean 'thing'"):
        zoo.find("thingg")
    with pytest.raises(LoadError, match=r"neither a file nor a known robot.*thing"):
        load("thingg")
    for bad in ("", "../thing", "a/b/c"):
        with pytest.raises(NotFound):
            zoo.find(bad)


def test_load_by_name_takes_the_base_that_suits(shelf: Path) -> None:
    assert load("go1").nv == 6
    assert load("go1", "fixed").nv == 0
    assert load(shelf / "one" / "go1.urdf").nv == 0


@pytest.mark.usefixtures("no_examples")
def test_nothing_installed() -> None:
    with pytest.raises(NotFound, match="example-robot-data"):
        zoo.find("talos")


@pytest.mark.parametrize(
    ("alias", "file", "base"),
    [
        ("talos", "talos_reduced.urdf", "free"),
        ("ur5", "ur5_robot.urdf", "fixed"),
        ("panda", "panda.urdf", "fixed"),
        ("solo12", "solo12.urdf", "free"),
        ("anymal", "anymal.urdf", "free"),
        ("icub", "icub.urdf", "free"),
        ("cassie_v2", "cassie_v2.sdf", None),
        ("hyq", "hyq_no_sensors.urdf", "free"),
        ("talos_left_arm", "talos_left_arm.urdf", "fixed"),
        ("z1", "z1.urdf", "fixed"),
        ("b1-z1", "b1-z1.urdf", "free"),
    ],
)
def test_usual_names(alias: str, file: str, base: str | None, environment: Environment) -> None:
    environment[zoo.VARIABLE] = ""
    if not zoo.robots():
        pytest.skip(NO_ROBOTS)
    found = zoo.find(alias)
    assert (found.path.name, found.base) == (file, base)


def test_cached_descriptions_are_found_without_the_network(shelf: Path, environment: Environment) -> None:
    pytest.importorskip("robot_descriptions")
    environment["ROBOT_DESCRIPTIONS_CACHE"] = str(shelf / "cache")
    with pytest.raises(NotFound):
        zoo.find("aliengo_description")
    path = shelf / "cache" / "unitree_ros" / "robots" / "aliengo_description" / "urdf" / "aliengo.urdf"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    assert "aliengo_description" in zoo.names()
    try:
        assert zoo.find("aliengo").path == zoo.find("aliengo_description").path == path
    finally:
        sys.modules.pop("robot_descriptions.aliengo_description", None)


def test_every_name_is_found(tmp_path: Path, environment: Environment) -> None:
    if not zoo.robots():
        pytest.skip(NO_ROBOTS)
    environment["ROBOT_DESCRIPTIONS_CACHE"] = str(tmp_path)
    for name in zoo.names():
        assert zoo.find(name).path.is_file()


def test_a_name_that_says_nothing_is_the_files(tmp_path):
    """Digit's file calls it "robot"."""
    text = '<robot name="{}"><link name="a"/></robot>'
    for file, name, called in (
        ("digit_v3.urdf", "robot", "digit_v3"),
        ("digit_v3.urdf", "Model", "digit_v3"),
        ("digit_v3.urdf", "digit", "digit"),
        ("runner/robot.urdf", "robot", "runner"),
    ):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text.format(name))
        assert lw.load(tmp_path / file).name == called
    assert lw.load(text.format("robot")).name == "robot"
