"""`linkwork view`, `linkwork simulate --view --html` and the end of `linkwork demo`."""

from __future__ import annotations

import pytest
from rich.console import Console
from typer.testing import CliRunner

import linkwork as lw
from linkwork.cli.main import app

URDF = """<robot name="swing"><link name="base"/><link name="bob"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial></link><joint name="hinge" type="continuous"><parent link="base"/>
<child link="bob"/><axis xyz="0 1 0"/></joint></robot>"""


@pytest.fixture
def robot(tmp_path, in_tmp_path):
    (tmp_path / "swing.urdf").write_text(URDF)
    return tmp_path


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.output


def test_a_robot_becomes_a_page(robot):
    assert "wrote still.html" in run("view", "swing.urdf", "--q", "0.3", "--html", "still.html")
    assert "swing" in (robot / "still.html").read_text()


def test_a_motion_becomes_a_page_at_once_or_later(robot):
    run("simulate", "swing.urdf", "--q", "1.0", "--duration", "0.2", "-o", "run.npz", "--html", "now.html")
    run("view", "swing.urdf", "-t", "run.npz", "--html", "later.html")
    assert (robot / "now.html").read_text() == (robot / "later.html").read_text()
    failed = CliRunner().invoke(app, ["view", "swing.urdf", "--base", "free", "-t", "run.npz", "--html", "no.html"])
    assert isinstance(failed.exception, lw.LinkworkError)
    assert "base=" in str(failed.exception)


def test_the_viewer_runs_until_it_is_stopped(robot, monkeypatch):
    pytest.importorskip("viser")
    waited = []
    monkeypatch.setattr(lw.Viewer, "wait", lambda viewer: (waited.append(viewer.duration), viewer.stop()))
    assert "http://localhost" in run("view", "swing.urdf", "--port", "8480")
    assert "http://localhost" in run("simulate", "swing.urdf", "--q", "1.0", "--duration", "0.2", "--view")
    assert waited == [0.0, pytest.approx(0.2)]


def test_the_demo_pushes_a_humanoid_that_recovers(tmp_path):
    from linkwork.cli.pushed import show_push

    console = Console(record=True, width=200)
    run = show_push(console, tmp_path / "out" / "pushed.html")
    ahead = run.q[:, 0] - run.q[0, 0]
    assert ahead.max() > 0.01
    assert abs(ahead[-1]) < 2e-3
    assert abs(run.v[-1]).max() < 0.02
    assert str(tmp_path / "out" / "pushed.html") in console.export_text()
    assert "recovers" in (tmp_path / "out" / "pushed.html").read_text()


def test_the_demo_ends_with_a_replay(tmp_path):
    from linkwork.cli import demo

    model, q, controller = demo.squatting_humanoid()
    motion = lw.simulate(model, q, None, controller, duration=0.02, ground=0.0)
    console = Console(record=True, width=300)
    demo.write_replay(console, motion, tmp_path / "out" / "squat.html")
    assert str(tmp_path / "out" / "squat.html") in console.export_text()
    assert "squatting" in (tmp_path / "out" / "squat.html").read_text()
