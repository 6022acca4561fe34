"""The replay file in a real browser, from disk and offline: it draws the links, plays, scrubs, and asks for nothing."""

from __future__ import annotations

import base64
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import linkwork as lw
from linkwork.robots.mechanisms import four_bar


@pytest.fixture(scope="module")
def motion():
    """A four-bar linkage that falls for a second."""
    model = four_bar()
    return model, lw.simulate(model, lw.assemble(model, model.neutral()), None, duration=1.0, projection=True, every=5)


@pytest.fixture(scope="module")
def replay(motion, tmp_path_factory):
    model, run = motion
    return lw.write_html(tmp_path_factory.mktemp("replay") / "run.html", model, run, title="</script> & <b>four</b>")


@pytest.fixture
def opened(page, replay):
    """The page from disk, cut off from every network, with all that it asks for on record."""
    asked = []
    page.context.set_offline(True)
    page.on("request", lambda r: asked.append(r.url))
    page.set_viewport_size({"width": 700, "height": 440})
    page.goto(replay.as_uri())
    page.wait_for_function("window.linkwork && linkwork.drawn > 0")
    assert [url for url in asked if not url.startswith("blob:")] == [replay.as_uri()]
    return page


def pixels(page) -> np.ndarray:
    """What the canvas shows, as numbers (height, width, 4), read from the picture that WebGL drew."""
    page.wait_for_function("linkwork.fine")
    numbers = page.evaluate("""() => { const c = document.getElementById("view"), g = c.getContext("webgl2");
      const out = new Uint8Array(4 * c.width * c.height);
      g.readPixels(0, 0, c.width, c.height, g.RGBA, g.UNSIGNED_BYTE, out);
      let text = "";
      for (let k = 0; k < out.length; k += 8192) text += String.fromCharCode(...out.subarray(k, k + 8192));
      return [c.width, c.height, btoa(text)]; }""")
    width, height, data = numbers
    return np.frombuffer(base64.b64decode(data), np.uint8).reshape(height, width, 4)[::-1]


def changed(a: np.ndarray, b: np.ndarray) -> float:
    """The share of pixels that differ clearly."""
    return float((np.abs(a[..., :3].astype(int) - b[..., :3]).max(axis=2) > 24).mean())


def drawn_after(page, action: str) -> np.ndarray:
    """The picture after a script has changed something."""
    before = page.evaluate("linkwork.drawn")
    page.evaluate(action)
    page.wait_for_function(f"linkwork.drawn > {before}")
    return pixels(page)


def test_the_page_shows_the_links_where_they_are(opened, motion):
    """Every link is in the scene with triangles, and a click on its middle names it."""
    model, run = motion
    names = opened.evaluate("linkwork.scene.links.map((l) => l.name)")
    assert names == [l.name for l in model.links]
    bodies = "linkwork.scene.parts.filter((p) => p.kind === 'body' && p.faces[2] > 0)"
    assert set(opened.evaluate(f"{bodies}.map((p) => p.link)")) >= set(range(1, len(model.links)))
    poses = opened.evaluate("linkwork.state().links.map((m) => Array.from(m))")
    fk = lw.forward_kinematics(model, backend="numpy")(run.q[0])
    for matrix, p, R in zip(poses[1:], fk.positions, fk.rotations, strict=True):
        M = np.array(matrix).reshape(4, 4).T
        np.testing.assert_allclose(M[:3, 3], p, atol=1e-6)
        np.testing.assert_allclose(M[:3, :3], R, atol=1e-4)  # 16-bit quaternions
    assert opened.title() == opened.inner_text("#name") == "</script> & <b>four</b>"
    for i, l in enumerate(model.links[1:], 1):
        centre = fk.positions[i - 1] + fk.rotations[i - 1] @ l.inertia.com
        x, y = opened.evaluate(f"linkwork.project({centre.tolist()})")
        assert opened.evaluate(f"linkwork.pick({x}, {y})") == i
    opened.mouse.click(x, y)
    opened.wait_for_selector("#picked", state="visible")
    assert opened.inner_text("#picked").startswith(l.name)


def test_play_moves_the_picture_pause_holds_it_and_speed_slows_it(opened):
    """At a tenth of the speed the motion lasts ten seconds: a slow machine, too, pauses before it repeats."""
    start = pixels(opened)
    opened.select_option("#speed", "0.1")
    clicked = opened.evaluate("performance.now()")
    opened.click("#play")
    opened.wait_for_function("linkwork.time > 0.2")
    opened.click("#play")
    assert opened.get_attribute("#play", "aria-label") == "Play"
    at, after = opened.evaluate("linkwork.time"), pixels(opened)
    assert at < 0.1 * (opened.evaluate("performance.now()") - clicked) / 1000
    assert changed(start, after) > 0.003
    opened.wait_for_timeout(150)
    assert opened.evaluate("linkwork.time") == at
    assert changed(after, pixels(opened)) == 0.0


def test_scrubbing_goes_to_the_time_and_back_to_the_same_picture(opened, motion):
    model, run = motion
    start = pixels(opened)
    box = opened.locator("#scrub").bounding_box()
    opened.mouse.click(box["x"] + box["width"] * 0.75, box["y"] + box["height"] / 2)
    opened.wait_for_function("linkwork.time > 0.5")
    time = opened.evaluate("linkwork.time")
    assert time == pytest.approx(0.75, abs=0.05)
    assert opened.inner_text("#clock").startswith(f"{time:.2f} /")
    k = int(np.argmin(np.abs(run.t - time)))
    fk = lw.forward_kinematics(model, backend="numpy")(run.q[k])
    poses = opened.evaluate("linkwork.state().links.map((m) => [m[12], m[13], m[14]])")
    np.testing.assert_allclose(poses[1:], fk.positions, atol=0.02)
    assert changed(start, drawn_after(opened, "linkwork.seek(0.8)")) > 0.003
    assert changed(start, drawn_after(opened, "linkwork.seek(0)")) == 0.0
    opened.keyboard.press("End")
    opened.wait_for_function("linkwork.time === 1")


def test_the_view_turns_zooms_and_changes_its_theme(opened):
    start = pixels(opened)
    opened.mouse.move(320, 200)
    opened.mouse.down()
    opened.mouse.move(420, 220, steps=3)
    opened.mouse.up()
    opened.wait_for_function("linkwork.camera.yaw < 0.5")
    turned = drawn_after(opened, "linkwork.seek(0)")
    assert changed(start, turned) > 0.01
    near = opened.evaluate("linkwork.camera.distance")
    opened.mouse.wheel(0, -300)
    opened.wait_for_function(f"linkwork.camera.distance < {near}")
    opened.click("#reset")
    other = drawn_after(opened, "document.getElementById('theme').click()")
    assert abs(float(other[:20, :, :3].mean()) - float(start[:20, :, :3].mean())) > 100


def test_what_is_switched_is_drawn_or_not(opened):
    shown = drawn_after(opened, "linkwork.seek(0.3)")
    for what in ("inertias", "joints", "frames", "centre-of-mass", "forces", "constraints", "links"):
        before, shown = shown, drawn_after(opened, f"document.getElementById('show-{what}').click()")
        assert changed(before, shown) > 1e-5, what


def test_without_a_motion_the_robot_stands_and_can_be_looked_at(page, tmp_path):
    page.set_viewport_size({"width": 640, "height": 440})
    page.goto(lw.write_html(tmp_path / "still.html", four_bar()).as_uri())
    page.wait_for_function("window.linkwork && linkwork.drawn > 0")
    assert page.is_hidden("#bar")
    assert float(pixels(page)[..., :3].std()) > 3
    assert page.inner_text("#facts").startswith("3 links")


def test_a_server_is_asked_for_the_page_alone(page, replay):
    """Not for an icon, either: most servers have none, and the console would say so."""
    asked = []

    class Handler(SimpleHTTPRequestHandler):
        def log_request(self, code="-", size="-"):
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(replay.parent))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.goto(f"http://127.0.0.1:{server.server_port}/{replay.name}")
        page.wait_for_function("window.linkwork && linkwork.drawn > 0")
        page.wait_for_timeout(500)
        server.shutdown()
    assert asked == [f"/{replay.name}"]


def test_on_a_phone_the_panel_opens_when_asked_for(page, replay):
    """Closed it covers no more than a corner; open it leaves the upper half of the robot."""
    page.set_viewport_size({"width": 390, "height": 780})
    page.goto(replay.as_uri())
    page.wait_for_function("window.linkwork && linkwork.drawn > 0")
    panel = "document.getElementById('panel').getBoundingClientRect()"
    area = f"(() => {{ const r = {panel}; return [r.top, r.width * r.height] }})()"
    assert page.is_hidden("#show-links")
    assert page.evaluate(area)[1] < 0.05 * 390 * 780
    page.click("#menu")
    assert page.is_visible("#show-links")
    assert page.evaluate(area)[0] > 780 / 2 - 80
    page.click("#menu")
    assert page.is_hidden("#show-links")


@pytest.mark.parametrize("falls", [True, False])
def test_the_camera_goes_with_a_robot_that_falls(page, tmp_path, falls):
    """A free body after two seconds is 20 m below: it stays in the middle, as large as it was."""
    b = lw.Builder("brick")
    b.link("body", "world", "free", inertia=lw.BodyInertia(1.0, np.zeros(3), 0.02 * np.eye(3)))
    model = b.build()
    run = lw.simulate(model if falls else model.with_gravity((0, 0, 0)), model.neutral(), None, duration=2.0, every=50)
    page.goto(lw.write_html(tmp_path / "fall.html", model, run).as_uri())
    page.wait_for_function("window.linkwork && linkwork.drawn > 0")
    assert page.is_checked("#show-follow") is falls
    assert page.evaluate("linkwork.camera.distance") < 5
    first = pixels(page)
    last = drawn_after(page, "linkwork.seek(2)")
    middle = (slice(250, 450), slice(400, 600))
    assert float(last[middle][..., :3].std()) > 0.5 * float(first[middle][..., :3].std())


def test_the_squatting_humanoid_stays_small(tmp_path):
    """Two seconds at 50 frames a second: below a megabyte; its size depends on numbers, not on the machine."""
    from linkwork.cli.demo import squatting_humanoid
    from linkwork.simulation.records.trajectory import column_names

    model, q, _ = squatting_humanoid()
    n = 1001
    rng = np.random.default_rng(0)
    run = lw.Trajectory(
        np.linspace(0, 2, n),
        np.tile(q, (n, 1)),
        np.zeros((n, model.nv)),
        np.zeros((n, model.nv)),
        rng.normal(size=(n, model.rows)),
        np.ones((n, len(model.constraints))),
        column_names(model),
    )
    path = lw.write_html(tmp_path / "squat.html", model, run)
    assert path.stat().st_size < 0.8e6


def test_a_file_names_no_address(replay):
    text = replay.read_text()
    assert "http" not in text.replace("http://www.w3.org", "")
    assert "src=" not in text
    assert "@" not in text.split('id="data"')[0].split("<style>")[0]
