"""The live viewer in a real browser: the page has the links, playing changes it, sliders keep loops closed."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError
from linkwork.robots.mechanisms import four_bar

pytest.importorskip("viser", reason="no viser: pip install -e '.[test]'")


@pytest.fixture(scope="module")
def motion():
    model = four_bar()
    return model, lw.simulate(model, lw.assemble(model, model.neutral()), None, duration=1.0, projection=True, every=5)


@pytest.fixture
def made():
    """Viewers, which are stopped in the end."""
    viewers: list[lw.Viewer] = []

    def make(*args, **options) -> lw.Viewer:
        viewers.append(lw.view(*args, port=8400, **options))
        return viewers[-1]

    yield make
    for viewer in viewers:
        viewer.stop()


def nodes(viewer) -> dict[str, np.ndarray]:
    """Where each link's node of the scene is."""
    return {h.name: np.array([*h.position, *h.wxyz]) for h in viewer._links}


def picture(viewer) -> np.ndarray:
    """Where the browser draws something darker than the grid, seen from where the page looks."""
    (client,) = viewer.server.get_clients().values()
    return np.asarray(client.get_render(height=120, width=160))[..., :3].min(axis=2) < 165


def looks_at_the_robot(viewer) -> bool:
    """Whether the page has taken the view that the viewer asked for."""
    return any(
        np.allclose(c.camera.position, viewer.server.initial_camera.position, atol=1e-2)
        for c in viewer.server.get_clients().values()
    )


def test_the_page_plays_a_motion(page, made, motion):
    model, run = motion
    viewer = made(model, run)
    viewer.server.scene.configure_default_lights(cast_shadow=False)  # drawn in software, they take most of the time
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url))
    page.set_viewport_size({"width": 420, "height": 280})
    page.set_default_timeout(60_000)
    page.goto(viewer.url)
    page.get_by_role("button", name="Play").wait_for()
    port = f":{viewer.server.get_port()}"
    assert all(url.startswith(("data:", "blob:")) or f"localhost{port}" in url for url in asked)
    assert [name.rpartition("_")[2] for name in nodes(viewer)] == [l.name for l in model.links]
    assert waited(lambda: looks_at_the_robot(viewer))
    start = nodes(viewer)
    viewer.speed = 0.1  # a slow machine, too, pauses before the motion repeats
    page.get_by_role("button", name="Play").dispatch_event("click")  # a mouse would wait for frames
    assert waited(lambda: viewer.time > 0.2)
    assert viewer.playing
    page.get_by_role("button", name="Pause").dispatch_event("click")
    assert waited(lambda: not viewer.playing)
    assert any(np.abs(start[n] - x).max() > 1e-3 for n, x in nodes(viewer).items())

    def there_and_back() -> bool:
        """The picture changes with the time and comes back with it; the page may still be loading its lights."""
        seen = []
        for t in (0.4, 0.0, 0.4):
            viewer.seek(t)
            time.sleep(0.3)
            seen.append(picture(viewer))
        a, b, again = seen
        return bool(a.any() and (a ^ b).mean() > 0.5 * a.mean() and (a ^ again).mean() < 0.05 * a.mean())

    assert waited(there_and_back)
    viewer.seek(0.0)
    assert all(np.abs(start[n] - x).max() == 0 for n, x in nodes(viewer).items())


def test_poses_follow_the_motion(made, motion):
    model, run = motion
    viewer = made(model, run, fps=100)
    viewer.seek(0.5)
    k = viewer.states.indices[np.argmin(np.abs(viewer.states.t - 0.5))]
    fk = lw.forward_kinematics(model, backend="numpy")(run.q[k])
    placed = np.array([h.position for h in viewer._links[1:]])
    np.testing.assert_allclose(placed, fk.positions, atol=1e-9)
    assert viewer._arrows[0].visible
    tip = np.array(viewer._arrows[0].points)[0]
    assert np.linalg.norm(tip[1] - tip[0]) > 0.01
    with pytest.raises(InputError, match="not both"):
        lw.view(model, run, q=run.q[0])


def moved(viewer: lw.Viewer, joint: str, value: float) -> None:
    """As if the slider of a joint were moved by hand."""
    viewer._sliders[viewer.model.joint(joint)][0].value = value


def waited(condition) -> bool:
    """Callbacks of controls run on a thread of their own."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


def test_sliders_keep_loops_closed(made):
    model = four_bar()
    viewer = made(model)
    crank = model.topology.q_slices[model.joint("crank_joint")].start
    moved(viewer, "crank_joint", 0.4)
    assert waited(lambda: abs(viewer.q[crank] - 0.4) < 1e-9)
    phi = lw.constraint_error(model, backend="numpy")(viewer.q, np.zeros(model.nv)).phi
    assert np.abs(phi).max() < 1e-9
    fk = lw.forward_kinematics(model, backend="numpy")(viewer.q)
    assert waited(lambda: np.allclose([h.position for h in viewer._links[1:]], fk.positions, atol=1e-9))
    for i, (slider,) in viewer._sliders.items():
        assert slider.value == pytest.approx(viewer.q[model.topology.q_slices[i].start], abs=1e-3)


def test_a_posture_that_would_open_a_loop_is_refused(made):
    """The rocker of this crank-rocker cannot turn round."""
    model = four_bar(ground=1.0, crank=0.3, coupler=0.9, rocker=0.6)
    viewer = made(model)
    before = viewer.q.copy()
    moved(viewer, "rocker_joint", -1.5)
    assert waited(lambda: viewer._message.visible)
    assert "stays" in viewer._message.content
    np.testing.assert_array_equal(viewer.q, before)


def test_free_bases_and_ball_joints_have_sliders_too(made):
    b = lw.Builder("ball on a body")
    b.link("body", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
    b.link("ball", "body", "spherical", inertia=lw.BodyInertia(1.0, np.array([0.1, 0, 0]), np.eye(3)))
    viewer = made(b.build())
    assert [len(s) for s in viewer._sliders.values()] == [6, 3]
    viewer._sliders[2][1].value = 0.5
    assert waited(lambda: abs(viewer.q[8] - np.sin(0.25)) < 1e-9)
    assert np.linalg.norm(viewer.q[7:11]) == pytest.approx(1.0)


def test_without_viser_the_error_names_the_extra():
    code = """
import sys
sys.modules["viser"] = None
import linkwork as lw
from linkwork.robots.mechanisms import four_bar
lw.write_html(sys.argv[1], four_bar())
try:
    lw.view(four_bar())
except lw.LinkworkError as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-c", code, "/dev/null"], capture_output=True, text=True, check=True)
    assert "linkwork[view]" in done.stdout
