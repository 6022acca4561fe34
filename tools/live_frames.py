"""Count the frames that a live page draws in a second, in headless Chromium, which draws in software.

    python tools/live_frames.py cassie.xml [seconds]

Prints frames per second, the time between frames (median, and that of 95 % of them), how fast the simulation runs
beside real time, and the level of drawing that the page has chosen (`viewer/page/pace.js`). Needs playwright and a
Chromium; other work on the machine makes frames late: `chrt -r 1 python tools/live_frames.py ...` keeps it away.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

from playwright.sync_api import sync_playwright

import linkwork as lw

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser import ARGUMENTS, executable

COUNTED = """(ms) => new Promise((done) => {
  const begin = performance.now(), simulated = linkwork.live.time, spans = [];
  let before = begin;
  const frame = () => {
    const now = performance.now();
    spans.push(now - before); before = now;
    if (now - begin < ms) return requestAnimationFrame(frame);
    spans.sort((a, b) => a - b);
    const n = spans.length, rate = 1000 / (now - begin);
    done({ rate: n * rate, median: spans[n >> 1], late: spans[Math.floor(0.95 * n)],
      speed: (linkwork.live.time - simulated) * rate, level: linkwork.pace.level, triangles: linkwork.triangles });
  };
  requestAnimationFrame(frame);
})"""


def main(robot: str, seconds: float = 3.0) -> None:
    """Write the page, open it, let it find its level, and count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = lw.load(robot)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = lw.write_html(Path(folder) / "live.html", model, live=True)
        browser = playwright.chromium.launch(executable_path=executable(), headless=True, args=list(ARGUMENTS))
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(file.as_uri())
        page.wait_for_function("window.linkwork && linkwork.live.time > 0")
        page.wait_for_timeout(4000)
        found = page.evaluate(COUNTED, 1000 * seconds)
        browser.close()
    print(
        f"{model.name}: {found['rate']:.1f} frames/s, {found['median']:.1f} ms in the median, "
        f"{found['late']:.1f} for 95 %, {found['speed']:.2f}x real time, "
        f"level {found['level']}, {found['triangles']:.0f} triangles"
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cassie.xml", *map(float, sys.argv[2:3]))
