"""Names of robots, links, joints and constraints are text wherever they are shown: nothing in them is run or styled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import linkwork as lw
from linkwork.cli.main import app
from linkwork.errors import LinkworkError
from nasty_names import NASTY, check


def robot(text: str) -> lw.Model:
    """A pendulum on a pendulum, held at a point, in which everything is called so."""
    b = lw.Builder(text, strict=False)
    body = lw.BodyInertia(1.0, np.array([0.1, 0, 0]), 0.1 * np.eye(3))
    b.link(f"{text} one", joint="revolute", axis="y", inertia=body, joint_name=f"{text} hinge")
    b.link(
        f"{text} two",
        f"{text} one",
        "revolute",
        axis="y",
        placement=lw.Placement.at((0.4, 0, 0)),
        inertia=body,
        joint_name=f"{text} other",
    )
    b.frame(f"{text} tip", f"{text} two", lw.Placement.at((0.4, 0, 0)))
    return b.build().with_constraints(lw.Connect(f"{text} tip", "world", name=f"{text} held"))


@pytest.mark.parametrize("kind", NASTY)
def test_the_live_page(page, kind: str) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("viser", reason="no viser: pip install -e '.[test]'")
    viewer = lw.view(robot(NASTY[kind]), port=8500, q=np.zeros(2))
    try:
        page.set_default_timeout(60_000)
        page.goto(viewer.url)
        page.get_by_role("button", name="Neutral").wait_for()
        check(page, NASTY[kind])
    finally:
        viewer.stop()


@pytest.mark.parametrize("kind", NASTY)
def test_the_replay(page, kind: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = lw.write_html(tmp_path / "replay.html", robot(NASTY[kind]), q=np.zeros(2))
    page.goto(file.as_uri())
    check(page, NASTY[kind])


@pytest.mark.parametrize("kind", NASTY)
def test_the_panel_has_no_markdown(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a browser: what the page is sent has no tag but ours."""
    viser = pytest.importorskip("viser", reason="no viser: pip install -e '.[test]'")
    monkeypatch.setattr(viser.GuiApi, "add_markdown", lambda *a, **k: pytest.fail("names would be read as Markdown"))
    sent: list[str] = []
    real = viser.GuiApi.add_html

    def add_html(self: object, content: str, **options: object) -> object:
        sent.append(content)
        return real(self, content, **options)

    monkeypatch.setattr(viser.GuiApi, "add_html", add_html)
    lw.view(robot(NASTY[kind]), port=8500, q=np.zeros(2)).stop()
    assert sent
    for content in sent:
        bare = content.replace("<div style=", "").replace("</div>", "")
        for tag in ("em", "strong"):
            bare = bare.replace(f"<{tag}>", "").replace(f"</{tag}>", "")
        assert "<" not in bare


@pytest.mark.parametrize("text", ["[red]x[/red]", "[link=file:///]x[/link]", "[/]", ":smile:", "[bold"])
def test_the_terminal(text: str, tmp_path: Path) -> None:
    """Rich's markup in names is neither obeyed nor an error."""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    file = tmp_path / "robot.urdf"
    file.write_text(
        f'<robot name="{text}"><link name="{text}a">{inertial}</link><link name="{text}b">{inertial}</link>'
        f'<joint name="{text}j" type="revolute"><parent link="{text}a"/><child link="{text}b"/></joint>'
        "</robot>"
    )
    for command in ("info", "plan", "solve", "simulate"):
        more = ["--duration", "0.01"] if command == "simulate" else []
        done = CliRunner().invoke(app, [command, str(file), *more], env={"COLUMNS": "300"})
        assert done.exit_code == 0, done.output
        assert text in done.output, command
    done = CliRunner().invoke(app, ["info", str(file), "--base", text])
    assert isinstance(done.exception, LinkworkError)
    assert text in str(done.exception)
