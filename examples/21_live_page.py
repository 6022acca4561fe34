"""A quadruped without motors, to be dragged about on the ground.

The page simulates it in any browser, offline.
"""

import tempfile
from pathlib import Path

import linkwork as lw
from linkwork.robots.mechanisms import quadruped, standing

model = quadruped()
q = standing(model)
q[2] += 0.3
feet = [lw.Contact(f"{end}_{side}_foot", radius=0.02) for end in ("front", "rear") for side in ("left", "right")]

page = lw.write_html(Path(tempfile.mkdtemp()) / "quadruped.html", model, q=q, live=True, contacts=feet)
print(f"open {page} ({page.stat().st_size / 1e3:.0f} kB): drag a leg with the mouse, change gravity")
