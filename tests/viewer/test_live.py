"""Pages that simulate a mechanism, in a real browser: their numbers are those of rollouts, and links can be dragged."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import linkwork as lw
from linkwork.cli.main import app
from linkwork.errors import InputError, LinkworkError
from linkwork.robots.mechanisms import chain, four_bar, planar_leg, quadruped, standing
from linkwork.simulation.steps.constrained_step import AT_ONCE, OPEN

SECOND = """([tau, steps]) => { const l = linkwork.live;
  l.restart(); tau.forEach((x, k) => l.set("tau", k, x)); l.restart();
  for (let k = 0; k < steps; k++) l.step();
  return { q: [...l.port.q], v: [...l.port.v], failed: l.failed }; }"""

DRAGGED = """(seconds) => { const l = linkwork.live;
  for (let k = 0; k < 60 * seconds; k++) { l.feel(); for (let i = 0; i < 16; i++) l.step(); }
  l.run.poses(); l.now = null;
  const ends = l.at().constraints.map((c) => [c.a, c.b]);
  return { place: l.held(), target: l.grabbed.target, ends, failed: l.failed }; }"""

# a link is held somewhere, and ten times a second the mouse jumps somewhere else within `reach` metres
WILD = """([seed, reach]) => { let s = seed * 2654435761 >>> 0;
  const random = () => { s ^= s << 13; s >>>= 0; s ^= s >>> 17; s ^= s << 5; s >>>= 0; return s / 4294967296; };
  for (let k = 0; k < 10; k++) random();
  const l = linkwork.live; l.restart();
  const link = 1 + Math.floor(random() * (l.links - 1)), m = l.at().links[link];
  const place = [12, 13, 14].map((i) => m[i] + 0.1 * (random() - 0.5));
  l.grab(link, place);
  for (let f = 0; f < 84; f++) {
    if (f % 6 === 0) l.grabbed.target = place.map((x) => x + reach * (2 * random() - 1));
    l.feel();
    for (let i = 0; i < 16; i++) l.step();
  }
  l.run.poses(); l.now = null;
  return l.failed ? Infinity : Math.max(...l.at().constraints.map((c) => Math.hypot(...sub(c.a, c.b)))); }"""


def opened(page: Any, file: Path) -> Any:
    """The page, paused at its start, cut off from every network; it asks for nothing."""
    asked: list[str] = []
    page.context.set_offline(True)
    page.on("request", lambda r: asked.append(r.url))
    page.set_viewport_size({"width": 480, "height": 360})
    page.goto(file.as_uri())
    page.wait_for_function("window.linkwork && linkwork.drawn > 0")
    page.evaluate("linkwork.pause(); linkwork.live.restart()")
    assert [url for url in asked if not url.startswith("blob:")] == [file.as_uri()]
    return page


def feet() -> list[lw.Contact]:
    return [lw.Contact(f"{end}_{side}_foot", radius=0.02) for end in ("front", "rear") for side in ("left", "right")]


def agree(page: Any, file: Path, model: lw.Model, q: np.ndarray, tau: np.ndarray, **options: Any) -> None:
    """A second of steps in the browser and by a rollout."""
    found = opened(page, file).evaluate(SECOND, [tau.tolist(), 1000])
    expected = lw.rollout(model, dt=1e-3, stabilisation=lw.Stabilisation(0.1), **options)(
        q, np.zeros(model.nv), tau, steps=1000
    )
    assert expected.ok
    assert not found["failed"]
    assert np.abs(expected.v[-1]).max() > 0.1  # it moves
    np.testing.assert_allclose(found["q"], expected.q[-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["v"], expected.v[-1], rtol=0, atol=1e-9 * (1 + np.abs(expected.v[-1]).max()))


def test_a_loop_moves_as_in_a_rollout(page, tmp_path: Path) -> None:
    model = planar_leg()
    q = lw.assemble(model, model.neutral() + 0.2)
    file = lw.write_html(tmp_path / "leg.html", model, q=q, live=True)
    agree(page, file, model, q, np.array([1.0, *np.zeros(model.nv - 1)]), iterations=AT_ONCE)


def test_contacts_push_as_in_a_rollout(page, tmp_path: Path) -> None:
    """A quadruped without motors falls onto its feet, and they carry it."""
    model = quadruped()
    q = standing(model) + np.eye(model.nq)[2] * 0.05
    file = lw.write_html(tmp_path / "quadruped.html", model, q=q, live=True, contacts=feet())
    agree(page, file, model, q, np.zeros(model.nv), contacts=feet())
    forces = page.evaluate("linkwork.live.run.poses(), linkwork.live.now = null, linkwork.state().constraints")
    assert [c["contact"] for c in forces] == [True] * 4
    assert sum(c["force"][2] for c in forces) > 0.2 * 9.81 * model.mass
    assert min(c["a"][2] for c in forces) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.filterwarnings("ignore::linkwork.errors.ConvergenceWarning")
def test_cassie_in_real_time(page, tmp_path: Path) -> None:
    """A second agrees with a rollout, a frame's steps take far less time than it has, and no drag ends the motion."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = lw.load("cassie.xml")
    except LinkworkError as problem:
        pytest.skip(str(problem))
    q = lw.assemble(model, model.neutral())
    file = lw.write_html(tmp_path / "cassie.html", model, q=q, live=True)
    agree(page, file, model, q, np.zeros(model.nv), iterations=OPEN)
    times = page.evaluate("""() => { const l = linkwork.live, out = []; l.restart();
      for (let k = 0; k < 60; k++) {
        const t = performance.now(), steps = l.advance(1 / 60, 1);
        out.push([performance.now() - t, steps]);
      }
      return out; }""")
    assert sum(steps for _, steps in times) >= 500  # a thousand, but for frames that others took the processor from
    assert np.median([t for t, _ in times]) < 8.0  # milliseconds
    # drags that fail with steps of one size: light rods spin at hundreds of radians per second, and loops open
    drags = [(seed, 0.6) for seed in (9, 37, 42, 69, 82)] + [(seed, 2.0) for seed in (4, 9, 24, 42, 46, 50, 69, 87)]
    gaps = [page.evaluate(WILD, drag) for drag in drags]
    assert max(gaps) < 0.1
    assert np.median(gaps) < 0.01


def test_drawing_keeps_pace(page, linkage: Path) -> None:
    """Late frames make pictures coarser, punctual ones finer again; what stands still is drawn finely."""
    opened(page, linkage)
    levels = page.evaluate("""() => { const p = new Pace(), out = [];
      const feed = (n, span) => { for (let k = 0; k < n; k++) p.frame(span); out.push(p.level); };
      feed(2, 400); feed(20, 30); feed(300, 16.7); feed(150, 16.7); feed(20, 30); feed(400, 16.7);
      const slow = new Pace();
      for (let k = 0; k < 400; k++) slow.frame(33.3);
      return [...out, slow.level, slow.fixed]; }""")
    assert levels == [2, 3, 3, 2, 3, 3, 0, True]
    before = page.evaluate("linkwork.pace.fixed = true, linkwork.pace.level = 0, linkwork.seek(0), linkwork.drawn")
    page.wait_for_function(f"linkwork.drawn > {before}")
    fine = page.evaluate("[document.getElementById('view').width, linkwork.triangles]")
    page.evaluate("linkwork.pace.level = 4; linkwork.play()")
    page.wait_for_function(f"document.getElementById('view').width === {fine[0] // 2}")
    assert page.evaluate("linkwork.triangles") < 0.7 * fine[1]
    page.evaluate("linkwork.pause()")
    page.wait_for_function(f"document.getElementById('view').width === {fine[0]}")
    assert page.evaluate("linkwork.triangles") == fine[1]


@pytest.fixture(scope="module")
def linkage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lw.write_html(tmp_path_factory.mktemp("live") / "linkage.html", four_bar(), live=True)


def test_a_link_follows_the_mouse_and_loops_stay_closed(page, linkage: Path) -> None:
    opened(page, linkage)
    x, y = page.evaluate("""() => { const m = linkwork.state().links[2];
      const p = linkwork.project([0, 1, 2].map((i) => m[12 + i] + 0.1 * m[i]));
      return [0, 1, -1, 2, -2, 3, -3].map((d) => [p[0], p[1] + d]).find(([x, y]) => linkwork.pick(x, y) === 2); }""")
    before = page.evaluate("linkwork.state().links.map((m) => [...m])")
    page.mouse.move(x, y)
    page.mouse.down()
    assert page.evaluate("linkwork.live.grabbed.link") == 2
    assert page.evaluate("linkwork.project(linkwork.live.held())") == pytest.approx([x, y], abs=0.5)
    page.mouse.move(x - 25, y, steps=2)
    page.mouse.move(x - 25, y - 5)
    found = page.evaluate(DRAGGED, 3)
    after = page.evaluate("linkwork.state().links.map((m) => [...m])")
    assert not found["failed"]
    assert np.abs(np.array(after) - before).max() > 0.05
    # the linkage moves in a plane, and sags by its weight: the place is near the target, as seen in that plane
    gap = np.subtract(found["target"], found["place"])
    assert np.hypot(gap[0], gap[2]) < 0.12
    assert np.abs(np.subtract(*zip(*found["ends"], strict=True))).max() < 1e-5
    page.mouse.up()
    assert page.evaluate("linkwork.live.grabbed") is None
    assert page.evaluate("Math.max(...linkwork.live.port.push.map(Math.abs))") == 0


def test_dragging_elsewhere_turns_the_view(page, linkage: Path) -> None:
    opened(page, linkage)
    yaw = page.evaluate("linkwork.camera.yaw")
    page.mouse.move(5, 200)
    page.mouse.down()
    page.mouse.move(25, 200)
    page.mouse.up()
    assert page.evaluate("linkwork.camera.yaw") != yaw
    assert page.evaluate("linkwork.live.grabbed") is None


def test_sliders_keys_and_buttons(page, linkage: Path) -> None:
    opened(page, linkage)
    page.set_viewport_size({"width": 900, "height": 420})
    page.evaluate("""() => { const g = document.getElementById("gravity"); g.value = 5; g.oninput(); }""")
    assert page.evaluate("[...linkwork.live.port.gravity]") == pytest.approx([0, 0, -5])
    page.locator("summary").click()
    page.evaluate("""() => { const s = document.getElementById("force-0"); s.value = s.max; s.oninput(); }""")
    assert page.evaluate("linkwork.live.port.tau[0]") > 0
    page.evaluate("""() => { const s = document.getElementById("damping"); s.value = s.max; s.oninput(); }""")
    assert page.evaluate("linkwork.live.port.damping[0]") > 0
    page.evaluate("for (let k = 0; k < 50; k++) linkwork.live.step()")
    page.keyboard.press(" ")
    assert page.evaluate("linkwork.playing")
    page.wait_for_function(
        "linkwork.live.time > 0.1 && document.getElementById('rate').textContent.includes('real time')"
    )
    page.locator("#play").click()
    assert not page.evaluate("linkwork.playing")
    page.locator("#again").click()
    assert page.evaluate("linkwork.live.time") == 0
    assert page.evaluate("[...linkwork.live.port.gravity]") == pytest.approx([0, 0, -5])  # settings are kept
    page.locator("#limp").click()
    assert page.evaluate("linkwork.live.port.tau[0]") == 0


def test_a_state_that_is_none_is_not_taken(page, linkage: Path) -> None:
    opened(page, linkage)
    q = page.evaluate("[...linkwork.live.port.q]")
    page.evaluate("linkwork.live.port.v[0] = NaN; linkwork.play()")
    page.wait_for_function("document.getElementById('rate').textContent.includes('start again')")
    assert page.evaluate("[...linkwork.live.port.q]") == q
    page.keyboard.press("Home")
    page.wait_for_function("linkwork.live.time > 0 && !linkwork.live.failed")


def test_what_is_refused(tmp_path: Path) -> None:
    model, path = chain(3), tmp_path / "a.html"
    run = lw.simulate(model, np.zeros(3), duration=0.01)
    for match, given in {
        "no trajectory": {"trajectory": run, "live": True},
        "one configuration": {"q": np.zeros((2, 3)), "live": True},
        "for live=True": {"dt": 1e-3},
        "contacts= and ground= are for": {"contacts": [lw.Contact("link3")]},
        "ground= is for contacts": {"live": True, "ground": lw.Ground()},
        "dt": {"live": True, "dt": 0.0},
        "live": {"live": "yes"},
        "frame": {"live": True, "contacts": [lw.Contact("nose")]},
    }.items():
        with pytest.raises(LinkworkError, match=match):
            lw.write_html(path, model, **given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no joint that moves"):
        lw.write_html(path, lw.Builder("nothing").build(), live=True)
    assert not path.exists()


def test_the_command_line(tmp_path: Path) -> None:
    robot, file = tmp_path / "swing.urdf", tmp_path / "live.html"
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    robot.write_text(
        f'<robot name="swing"><link name="a"/><link name="b">{body}</link>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint></robot>'
    )
    done = CliRunner().invoke(app, ["view", str(robot), "--live", "--html", str(file)])
    assert done.exit_code == 0, done.output
    assert '"live":{' in file.read_text()
    done = CliRunner().invoke(app, ["view", str(robot), "--live"])
    assert isinstance(done.exception, InputError)
