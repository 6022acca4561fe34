"""A four-bar linkage swings for two seconds.

Its motion becomes a page that opens in any browser, offline.
"""

import tempfile
from pathlib import Path

import linkwork as lw
from linkwork.robots.mechanisms import four_bar

model = four_bar()
q0 = lw.assemble(model, model.neutral())
run = lw.simulate(model, q0, None, duration=2.0, projection=True)

page = lw.write_html(Path(tempfile.mkdtemp()) / "four-bar.html", model, run)
print(f"open {page} ({page.stat().st_size / 1e3:.0f} kB); lw.view(model, run) shows it live, with the extra 'view'")
