"""The live viewer: a page in the browser, served by viser, that a Python program controls."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwork.backends.numpy_ import NUMPY
from linkwork.checks import FLAG, NAME, NUMBER, POSITION, checked, optional, whole
from linkwork.closure.assembly import assemble
from linkwork.errors import AssemblyError, InputError, MissingExtra
from linkwork.model import Model
from linkwork.model.model import MODEL
from linkwork.viewer.html import COUNT, FPS, MOTION, ground_height
from linkwork.viewer.scene import TRIANGLES, make_scene
from linkwork.viewer.states import has_forces, is_contact, loops, posture, quaternions, states_at, states_of

if TYPE_CHECKING:
    from linkwork.simulation.records.trajectory import Trajectory

FORCE, LOOP, CONTACT = (235, 92, 31), (140, 77, 217), (31, 158, 107)


SHOWN = {
    "model": MODEL,
    "trajectory": MOTION,
    "q": optional(POSITION),
    "host": NAME,
    "port": whole(0, 65535, "a number from 0 (any that is free) to 65535"),
    "fps": FPS,
    "triangles": COUNT,
    "open_browser": FLAG,
}


@checked(**SHOWN)
def view(
    model: Model,
    trajectory: Trajectory | None = None,
    *,
    q: object = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    fps: float = 50.0,
    triangles: int = TRIANGLES,
    open_browser: bool = False,
) -> Viewer:
    """Show a model in the browser: to inspect it, or to replay a motion.

    Returns at once; `.wait()` blocks.

    Without a trajectory the model stands at `q` (default: neutral, loops closed) and has a slider for every joint;
    loops stay closed while one is moved. With one there are play, pause, time and speed. Quaternions in `q` are
    [x y z w]. Links look as their file says, or as inertia ellipsoids, bones and joint axes. The page is served to this
    machine only unless `host` says otherwise ("0.0.0.0": to the network); where the port is taken, it is the next one.
    `open_browser=True` opens it. A motion is shown at `fps`, meshes with about `triangles` in all.
    Needs the extra `view`; `lw.write_html` needs none.

    Examples:
        >>> viewer = lw.view(chain(3), port=8123)
        >>> viewer.url.startswith("http://")
        True
        >>> viewer.stop()
    """
    if trajectory is not None and q is not None:
        raise InputError("give a trajectory or a configuration q, not both")
    return Viewer(model, trajectory, q, host, port, fps, triangles, open_browser)


class Viewer:
    """A page that shows a model. `show(q)`, `seek(t)`, `play()`, `pause()`, `stop()`, `wait()`, `url`.

    Examples:
        >>> model = chain(3)
        >>> viewer = lw.view(model, lw.simulate(model, np.ones(3), dt=1e-3, duration=0.1), port=8123)
        >>> viewer.show(np.zeros(3))
        >>> viewer.seek(0.05)
        >>> viewer.play()
        >>> viewer.pause()
        >>> viewer.stop()
    """

    @checked(**SHOWN)
    def __init__(
        self,
        model: Model,
        trajectory: Trajectory | None,
        q: object,
        host: str,
        port: int,
        fps: float,
        triangles: int,
        open_browser: bool,
    ) -> None:
        viser = viser_or_error()
        self.model, self.trajectory = model, trajectory
        self.scene = make_scene(model, triangles=triangles)
        if trajectory is not None:
            self.states = states_of(model, trajectory, fps)
            self.q = trajectory.q[self.states.indices[0]]
        else:
            at, notes = posture(model) if q is None else (np.asarray(q, dtype=float), [])
            self.q, self.states = at, states_at(model, at)
            self.scene = replace(self.scene, notes=(*self.scene.notes, *notes))
        self._closing, self._lock = loops(model), threading.RLock()
        self._busy, self._stopped = False, threading.Event()
        self.time, self.playing, self.speed = 0.0, False, 1.0
        with redirect_stdout(StringIO()):  # it prints to the terminal even with verbose=False
            self.server = _served(viser, host=host, port=port, label=f"{model.name} - Linkwork", verbose=False)
        self.url = f"http://{'localhost' if host in ('0.0.0.0', '127.0.0.1') else host}:{self.server.get_port()}"
        self._draw()
        self._controls()
        if trajectory is not None:
            threading.Thread(target=self._clock, daemon=True).start()
        if open_browser:
            import webbrowser

            webbrowser.open(self.url)

    # the interface of programs

    def show(self, q: object) -> None:
        """Put the model at `q`, of length nq; loops are not closed by this."""
        self.q = POSITION.checked("q", q, {"model": self.model})
        with self._lock:
            self._place(states_at(self.model, self.q), 0)
            self._set_sliders()

    @checked(t=NUMBER)
    def seek(self, t: float) -> None:
        """Go to a time of the motion, in seconds from its start."""
        if self.trajectory is None:
            raise InputError("there is no motion to seek in; give view() a trajectory")
        with self._lock:
            self.time = float(np.clip(t, 0.0, self.duration))
            k = int(np.argmin(np.abs(self.states.t - self.states.t[0] - self.time)))
            self.q = self.trajectory.q[self.states.indices[k]]
            self._place(self.states, k)
            with self._silently():
                self._scrub.value = round(self.time, 3)

    def play(self) -> None:
        if self.time >= self.duration:
            self.seek(0.0)
        self.playing = True
        self._play.label = "Pause"

    def pause(self) -> None:
        with self._lock:
            self.playing = False
            self._play.label = "Play"

    def stop(self) -> None:
        """Close the page and the server."""
        self._stopped.set()
        with redirect_stdout(StringIO()):
            self.server.stop()

    def wait(self) -> None:
        """Return when the viewer is stopped, or on Ctrl-C."""
        try:
            while not self._stopped.wait(0.2):
                pass
        except KeyboardInterrupt:
            self.stop()

    @property
    def duration(self) -> float:
        return float(self.states.t[-1] - self.states.t[0]) if self.trajectory is not None else 0.0

    # the scene

    def _draw(self) -> None:
        """Create all nodes once: one for each link, with its parts below it; `_place` moves them."""
        scene, server, size = self.scene, self.server, self.scene.size
        self._theme(False)
        server.scene.set_up_direction("+z")
        server.scene.configure_default_lights(cast_shadow=True)
        ground = ground_height(scene, self.states)
        decade = 10 ** np.floor(np.log10(size / 8))
        cell = float(decade * next(n for n in (1, 2, 5, 10) if n * decade >= size / 8))
        server.scene.add_grid(
            "/ground",
            40 * size,
            40 * size,
            cell_size=cell,
            section_size=5 * cell,
            position=(0, 0, ground),
            fade_distance=12 * size,
            shadow_opacity=0.25,
            cell_color=(215, 220, 226),
            section_color=(175, 183, 192),
        )
        self._links, self._parts = [], {"body": [], "inertia": [], "joint": []}  # type: ignore[var-annotated]
        for i, link in enumerate(self.model.links):
            handle = server.scene.add_frame(
                _node(i, link.name), show_axes=False, axes_length=0.07 * size, axes_radius=0.0028 * size
            )
            self._links.append(handle)
        for n, part in enumerate(scene.parts):
            r, g, b, a = part.colour
            mesh = server.scene.add_mesh_simple(
                f"{_node(part.link, self.model.links[part.link].name)}/{part.kind}{n}",
                part.surface.vertices.astype(np.float32),
                part.surface.faces.astype(np.uint32),
                color=(round(255 * r), round(255 * g), round(255 * b)),
                opacity=None if a >= 1 else a,
                side="double",
                visible=part.kind == "body",
            )
            self._parts[part.kind].append(mesh)
        self._com = server.scene.add_icosphere("/centre_of_mass", 0.022 * size, (25, 25, 28), visible=False)
        self._anchors = [
            server.scene.add_icosphere(f"/constraints/{n}", 0.018 * size, CONTACT if is_contact(c) else LOOP)
            for n, c in enumerate(self.states.named)
        ]
        self._arrows = [
            server.scene.add_arrows(
                f"/forces/{n}",
                np.zeros((1, 2, 3), dtype=np.float32),
                FORCE if is_contact(c) else LOOP,
                shaft_radius=0.0075 * size,
                head_radius=0.0165 * size,
                head_length=0.034 * size,
                visible=False,
            )
            for n, c in enumerate(self.states.named)
        ]
        self._per_newton = self._force_scales()
        points = self.states.positions[:, 1:].reshape(-1, 3)
        low, high = points.min(axis=0), points.max(axis=0)
        middle, away = (low + high) / 2, 2.1 * max(size, 0.8 * float(np.linalg.norm(high - low)))
        server.initial_camera.position = tuple(middle + away * np.array([0.79, 0.56, 0.25]))
        server.initial_camera.look_at = tuple(middle)
        server.initial_camera.fov = 0.6
        self._shown = {"forces": True, "constraints": True}
        self._place(self.states, 0)

    def _theme(self, dark: bool) -> None:
        self.server.gui.configure_theme(
            show_logo=False, show_share_button=False, brand_color=(217, 98, 43), dark_mode=dark
        )

    def _force_scales(self) -> list[float]:
        """Metres per newton of each arrow: contacts and loops have separate scales."""
        weight = 0.75 * self.model.mass * float(np.linalg.norm(self.model.gravity))
        sizes = np.linalg.norm(self.states.forces, axis=2).max(axis=0, initial=0.0)
        largest = {
            kind: max(
                [
                    weight if kind else 0.0,
                    *(float(s) for s, c in zip(sizes, self.states.named, strict=True) if is_contact(c) == kind),
                ]
            )
            for kind in (True, False)
        }
        return [0.6 * self.scene.size / (largest[is_contact(c)] or 1.0) for c in self.states.named]

    def _place(self, states: Any, k: int) -> None:
        """Move everything to state k."""
        forces = self.trajectory is not None and has_forces(self.model, self.trajectory)
        with self.server.atomic():
            for handle, p, xyzw in zip(self._links, states.positions[k], quaternions(states.rotations[k]), strict=True):
                handle.position, handle.wxyz = p, xyzw[[3, 0, 1, 2]]
            self._com.position = states.com[k]
            for n, (anchor, arrow) in enumerate(zip(self._anchors, self._arrows, strict=True)):
                start, acts = states.ends[k, n, 0], bool(states.active[k, n])
                anchor.position, anchor.visible = start, acts and self._shown["constraints"]
                vector = states.forces[k, n] * self._per_newton[n]
                arrow.visible = bool(forces and acts and self._shown["forces"] and np.linalg.norm(vector) > 1e-6)
                if arrow.visible:
                    arrow.points = np.array([[start, start + vector]], dtype=np.float32)

    # the panel

    def _controls(self) -> None:
        gui = self.server.gui
        model = self.model
        facts = f": {model.nlinks} links, {model.nv} degrees of freedom, {model.mass:.4g} kg"
        gui.add_html(_said(model.name, "strong", facts))
        for note in self.scene.notes:
            gui.add_html(_said(note))
        self._sliders: dict[int, list[Any]] = {}
        if self.trajectory is not None:
            self._motion_controls()
        with gui.add_folder("Show"):
            self._toggle("Links", True, lambda on: self._show_parts("body", on))
            self._toggle("Inertias", False, lambda on: self._show_parts("inertia", on))
            self._toggle("Joint axes", False, lambda on: self._show_parts("joint", on))
            self._toggle("Frames", False, self._show_frames)
            self._toggle("Centre of mass", False, lambda on: setattr(self._com, "visible", on))
            self._toggle("Dark", False, self._theme)
            if self.states.named:
                self._toggle("Constraints", True, lambda on: self._show_kind("constraints", on))
            if self.trajectory is not None and has_forces(model, self.trajectory):
                self._toggle("Forces", True, lambda on: self._show_kind("forces", on))
        if self.trajectory is None:
            self._joint_sliders()

    def _toggle(self, label: str, on: bool, act: Callable[[bool], None]) -> None:
        box = self.server.gui.add_checkbox(label, on)
        box.on_update(lambda _: act(box.value))

    def _show_parts(self, kind: str, on: bool) -> None:
        for mesh in self._parts[kind]:
            mesh.visible = on

    def _show_frames(self, on: bool) -> None:
        for handle in self._links:
            handle.show_axes = on

    def _show_kind(self, kind: str, on: bool) -> None:
        self._shown[kind] = on
        if self.trajectory is not None:
            self.seek(self.time)
        else:
            self.show(self.q)

    def _motion_controls(self) -> None:
        gui = self.server.gui
        with gui.add_folder("Motion"):
            self._play = gui.add_button("Play")
            self._scrub = gui.add_slider("Time [s]", 0.0, max(round(self.duration, 3), 1e-3), 1e-3, 0.0)
            self._speed = gui.add_dropdown("Speed", ("0.1", "0.25", "0.5", "1", "2", "4"), initial_value="1")
            self._repeat = gui.add_checkbox("Repeat", True)
        self._play.on_click(lambda _: self.pause() if self.playing else self.play())
        self._scrub.on_update(lambda _: self._scrubbed())
        self._speed.on_update(lambda _: setattr(self, "speed", float(self._speed.value)))

    def _scrubbed(self) -> None:
        if not self._busy:
            self.pause()
            self.seek(self._scrub.value)

    def _clock(self) -> None:
        """Advance the time while it plays."""
        last = time.monotonic()
        while not self._stopped.wait(1 / 60):
            now = time.monotonic()
            with self._lock:
                if self.playing:
                    there = self.time + self.speed * (now - last)
                    if there >= self.duration and not self._repeat.value:
                        self.pause()
                    self.seek(there % self.duration if self._repeat.value and self.duration else there)
            last = now

    def _joint_sliders(self) -> None:
        """A slider for each degree of freedom: how far the joint is from its zero along it."""
        gui, model = self.server.gui, self.model
        with gui.add_folder("Joints"):
            gui.add_button("Neutral").on_click(lambda _: self._neutral())
            self._message = gui.add_html("", visible=False)
            for i in model.topology.links:
                link = model.links[i]
                names = (
                    [link.joint_name]
                    if link.joint.nv == 1
                    else [f"{link.joint_name}[{k}]" for k in range(link.joint.nv)]
                )
                self._sliders[i] = [gui.add_slider(name, *self._range(i, k), 1e-3, 0.0) for k, name in enumerate(names)]
                for k, slider in enumerate(self._sliders[i]):
                    slider.on_update(lambda _, i=i, k=k: self._moved(i, k))
        self._set_sliders()

    def _range(self, i: int, k: int) -> tuple[float, float]:
        link = self.model.links[i]
        S = np.asarray(link.joint.subspace(link.joint.neutral()[:, None], NUMPY))[:, k]
        far = float(np.pi) if np.abs(S[3:]).max() > 1e-9 else max(1.0, self.scene.size)
        lower, upper = (link.limits.lower, link.limits.upper) if link.joint.nv == 1 else (-np.inf, np.inf)
        lower, upper = max(lower, -far), min(upper, far)
        low, high = (lower, upper) if lower < upper else (-far, far)
        return min(round(low, 3), 0.0), max(round(high, 3), 0.0)

    def _moved(self, i: int, k: int) -> None:
        """Move the joint of a slider that the user moved, and the others as loops require."""
        if self._busy:
            return
        with self._lock:
            at, moving = self.model.topology.q_slices[i], self.model.links[i].joint
            x = self._from_zero(i)
            x[k] = self._sliders[i][k].value
            wanted = self.q.copy()
            wanted[at] = np.asarray(moving.integrate(moving.neutral()[:, None], x[:, None], NUMPY))[:, 0]
            try:
                if self._closing:
                    wanted = assemble(
                        self.model,
                        wanted,
                        locked=[self.model.links[i].joint_name],
                        only=self._closing,
                        tolerance=1e-9,
                        attempts=1,
                    )
                self._message.visible = False
            except AssemblyError as problem:
                joint = self.model.links[i].joint_name
                self._message.content = _said(f"{joint} stays: {problem.gaps[0][0]} would open")
                self._message.visible = True
                wanted = self.q
            self.show(wanted)

    def _neutral(self) -> None:
        self.show(posture(self.model)[0])

    def _from_zero(self, i: int) -> np.ndarray:
        """How far joint i is from its zero, of length nv."""
        joint, at = self.model.links[i].joint, self.model.topology.q_slices[i]
        return np.asarray(joint.difference(joint.neutral()[:, None], self.q[at, None], NUMPY))[:, 0]

    def _set_sliders(self) -> None:
        with self._silently():
            for i, sliders in self._sliders.items():
                for slider, x in zip(sliders, self._from_zero(i), strict=True):
                    slider.value = round(float(np.clip(x, slider.min, slider.max)), 3)

    @contextmanager
    def _silently(self) -> Iterator[None]:
        """Set controls without triggering their callbacks."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False


def _said(text: str, tag: str = "em", more: str = "") -> str:
    """A line of the panel. Names are text: viser's Markdown would run what they contain as a program."""
    return f'<div style="margin: 0 1em 0.5em; font-size: 0.9em"><{tag}>{escape(text)}</{tag}>{escape(more)}</div>'


def _node(i: int, name: str) -> str:
    """The name of a link in the scene's tree, whose paths are separated by slashes."""
    return f"/links/{i}_{name.replace('/', '_')}"


def _served(viser: Any, host: str, port: int, **options: Any) -> Any:
    try:  # here, because viser's own thread would fail silently
        socket.getaddrinfo(host, port, flags=socket.AI_PASSIVE)
        if not host:
            raise ValueError("it is empty")
        return viser.ViserServer(host=host, port=port, **options)
    except (OSError, ValueError) as problem:
        raise InputError(
            f"nothing can be served at host {host!r}, port {port}: {problem}; the host is a name "
            "or an address of this machine"
        ) from None


def viser_or_error() -> Any:
    try:
        import viser
    except ImportError:
        raise MissingExtra("viser", "view", "the live viewer (lw.write_html needs no package)") from None
    return viser
