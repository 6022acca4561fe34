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

BODY = lw.BodyInertia(1.0, np.array([0.1, 0, 0]), 0.1 * np.eye(3))


def robot(*texts: str) -> lw.Model:
    """Pendulums in a row, the last one held at a point; the model, and for each text a link, its joint and a frame, are
    called so."""
    b, parent = lw.Builder(" ".join(texts), strict=False), "world"
    for text in texts:
        place = lw.Placement.at((0.0 if parent == "world" else 0.4, 0, 0))
        b.link(f"{text} link", parent, "revolute", axis="y", placement=place, inertia=BODY, joint_name=f"{text} hinge")
        parent = f"{text} link"
        b.frame(f"{text} tip", parent, lw.Placement.at((0.4, 0, 0)))
    return b.build().with_constraints(lw.Connect(f"{texts[-1]} tip", "world", name=f"{texts[-1]} held"))


def zeros(model: lw.Model) -> np.ndarray:
    return np.zeros(model.nq)


def test_the_live_page(page) -> None:  # type: ignore[no-untyped-def]
    """All names on one page, because it takes a browser without a graphics card seconds to draw the first picture."""
    pytest.importorskip("viser", reason="no viser: pip install -e '.[test]'")
    model = robot(*NASTY.values())
    viewer = lw.view(model, port=8500, q=zeros(model))
    viewer.server.scene.configure_default_lights(cast_shadow=False)
    try:
        page.set_viewport_size({"width": 420, "height": 280})
        page.set_default_timeout(60_000)
        page.goto(viewer.url)
        page.get_by_role("button", name="Neutral").wait_for()
        for text in NASTY.values():
            check(page, text)
    finally:
        viewer.stop()


@pytest.mark.parametrize("kind", NASTY)
def test_the_replay(page, kind: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    model = robot(NASTY[kind])
    file = lw.write_html(tmp_path / "replay.html", model, q=zeros(model))
    page.goto(file.as_uri())
    check(page, NASTY[kind])


def test_the_simulation(page, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Joints have sliders with their names."""
    model = robot(*NASTY.values())
    file = lw.write_html(tmp_path / "live.html", model, q=zeros(model), live=True)
    page.set_viewport_size({"width": 700, "height": 440})
    page.goto(file.as_uri())
    page.locator("summary").click()
    for text in NASTY.values():
        check(page, text)


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
    model = robot(NASTY[kind])
    lw.view(model, port=8500, q=zeros(model)).stop()
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
