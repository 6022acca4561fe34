"""Pages of the site that are made when it is built.

The reference, the front page with a mechanism to play with, sources and examples, diagrams.

A hook of MkDocs (mkdocs.yml). The reference has every public name of `linkwork`, on a page for the package that it
comes from; a name that is new there is on the site without further ado.
"""

from __future__ import annotations

import ast
import re
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
INIT = ROOT / "src" / "linkwork" / "__init__.py"
TITLES = {
    "io": "Load robots",
    "model": "Models",
    "constraints": "Contacts, loops, couplings",
    "functions": "Dynamics and kinematics",
    "algorithms": "Settings of methods",
    "closure": "Closed loops",
    "simulation": "Simulation",
    "structure": "Structure",
    "viewer": "Viewer",
    "errors": "Errors",
}
FIRST = ("forward_dynamics", "inverse_dynamics", "forward_kinematics", "terms", "ik", "mass_matrix", "plan", "Model")
"""The names that a page begins with; other functions follow, then classes."""
OPENING = {
    "functions": """Functions that make compiled functions of a model. All of them take `backend="kernel" | "numpy" |
"casadi"`, `dtype="float64" | "float32"` and `threads=` as `options`; what they return is called with one state or a
batch, see [calling functions](../calling.md), and has derivatives and an export, see
[`Function`](#linkwork.functions.function.Function).""",
}
"""What pages say before the names."""
PACKAGES = {
    "joints": ("Joints", "linkwork.joints"),
    "interop": ("Other libraries", "linkwork.interop"),
    "scale": ("Clusters", "linkwork.scale"),
    "mechanisms": ("Parametric robots", "linkwork.robots.mechanisms"),
    "zoo": ("Robots by name", "linkwork.io.zoo"),
}
"""Pages for modules that are imported by themselves: their public members."""

GIVEN = """Examples on these pages run as they are, after

```python
import numpy as np
import linkwork as lw
from linkwork.robots.mechanisms import *
```"""

COPIED = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
OUTSIDE = re.compile(r"\]\((?:\.\./)*((?:(?:examples|src|tools|tests|benchmarks)/|CITATION|LICENSE)[^)#\s]*)\)")
"""Links to files that are no pages."""
LIVE = '<iframe class="live" src="live.html" title="A humanoid that hangs on a hook: drag its limbs"></iframe>'
LINK = re.compile(r"(\]\()(docs/)?([A-Za-z0-9_./-]+)")


def public_names() -> dict[str, list[str]]:
    """Public names by the package that they are imported from."""
    tree, found = ast.parse(INIT.read_text()), defaultdict(list)
    shown = next(ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign) and _name(n) == "__all__")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("linkwork."):
            for alias in node.names:
                if alias.name in shown:
                    found[node.module.split(".")[1]].append(alias.name)
    return {package: sorted(names, key=_rank) for package, names in sorted(found.items())}


def _rank(name: str) -> tuple[int, bool, str]:
    """Where a name stands on its page."""
    return FIRST.index(name) if name in FIRST else len(FIRST), name[0].isupper(), name


def _name(node: ast.Assign) -> str:
    return getattr(node.targets[0], "id", "")


def on_config(config: Any) -> Any:
    """The pages of the reference are in the navigation."""
    pages = [(TITLES.get(package, package.capitalize()), package) for package in public_names()]
    pages += [(title, page) for page, (title, _) in PACKAGES.items()]
    listed = [{title: f"reference/{page}.md"} for title, page in sorted(pages)]
    config.nav[-1] = {"Reference": ["reference/index.md", *listed]}
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made."""
    made = {COPIED[name]: _moved((ROOT / name).read_text()) for name in COPIED}
    rows = []
    for package, names in public_names().items():
        title = TITLES.get(package, package.capitalize())
        parts = [f"# {title}", OPENING.get(package, ""), *(f"::: linkwork.{n}" for n in names)]
        if package == "functions":
            parts.append("::: linkwork.functions.function.Function")
        made[f"reference/{package}.md"] = "\n\n".join(parts)
        links = ", ".join(f"[`{n}`]({package}.md#linkwork.{n})" for n in names)
        rows.append(f"| [{title}]({package}.md) | {links} |")
    for page, (title, module) in PACKAGES.items():
        options = "    options:\n      show_root_heading: false\n      members_order: alphabetical"
        made[f"reference/{page}.md"] = f"# {title}\n\n`{module}`\n\n::: {module}\n{options}"
        rows.append(f"| [{title}]({page}.md) | `{module}` |")
    table = "| page | names |\n|---|---|\n" + "\n".join(sorted(rows))
    made["reference/index.md"] = (
        f"# Reference\n\nEvery public name of `linkwork`, made from its docstring.\n\n{table}\n\n{GIVEN}\n"
    )
    for page in list(files.documentation_pages()):
        _sources(Path(page.abs_src_path).read_text() if page.abs_src_path else "", made)
    for text in [*made.values()]:
        _sources(text, made)
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    files.append(File.generated(config, "live.html", content=puppet()))
    return files


def puppet() -> str:
    """What the front page shows: a humanoid with four-bar legs and soft joints hangs by its neck."""
    import linkwork as lw
    from linkwork.robots.mechanisms import humanoid, standing

    model = humanoid(hands=False, four_bar_legs=True)
    q = standing(model)
    for i in model.topology.links:
        link = model.links[i]
        if link.joint.kind == "revolute" and not link.name.endswith(("crank", "rod")):
            stiffness = 0.15 * min(link.limits.effort, 50.0)
            model = model.with_springs(link.joint_name, stiffness, q[model.topology.q_slices[i]])
            model = model.with_damping(link.joint_name, 0.1 * stiffness)
    place = lw.forward_kinematics(model, frames=["neck"])(q).positions[0]
    model = model.with_frame("hook", placement=lw.Placement.at(place))
    model = model.with_constraints(lw.Connect("neck", "hook"))
    with tempfile.TemporaryDirectory() as folder:
        title = "Drag its limbs: simulated in your browser"
        return lw.write_html(Path(folder) / "live.html", model, q=q, live=True, title=title).read_text()


def _sources(text: str, made: dict[str, str]) -> None:
    """A page for each file outside of docs/ that a page links to."""
    for target in OUTSIDE.findall(text):
        file = ROOT / target
        if file.is_file():
            kind = "python" if file.suffix == ".py" else "text"
            made[f"files/{target}.md"] = f"# `{target}`\n\n````{kind}\n{file.read_text()}````\n"


def _moved(text: str) -> str:
    """A document of the root folder as a page of docs/."""
    return LINK.sub(lambda m: m[1] + COPIED.get(m[3], m[3]), text)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to files outside of docs/ lead to the pages that show them; comments become diagrams."""
    up = "../" * page.file.src_uri.count("/")
    markdown = OUTSIDE.sub(lambda m: f"]({up}files/{m[1]}.md)" if (ROOT / m[1]).is_file() else m[0], markdown)
    for name, shown in COPIED.items():
        markdown = markdown.replace(f"](../{name}", f"]({shown}")
    markdown = markdown.replace("<!-- live -->", LIVE)
    for name, diagram in (("layers", layers), ("machine code", machine_code)):
        markdown = markdown.replace(f"<!-- diagram: {name} -->", diagram())
    return markdown


# diagrams


def layers() -> str:
    """The packages of the table in architecture.md, lowest at the bottom.

    A package imports from rows below it.
    """
    table = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)
    height, parts = 30, []
    for k, (package, what) in enumerate(rows):
        short = what.replace("`", "").split(":")[0].split(";")[0]
        y = k * height
        parts.append(f'<rect x="0" y="{y}" width="150" height="{height - 5}" rx="5"/>')
        parts.append(f'<text class="name" x="75" y="{y + 17}" text-anchor="middle">{package}</text>')
        parts.append(f'<text x="164" y="{y + 17}">{short[:88] + ("..." if len(short) > 88 else "")}</text>')
    arrow = len(rows) * height - 10
    parts.append(f'<path d="M -16 6 V {arrow}" marker-end="url(#down)"/>')
    return _svg("The layers: each package imports packages below it", -30, 0, 830, len(rows) * height, parts)


STAGES = (
    ("page", "an algorithm, one file", "algorithms/"),
    ("trace", "run once on references", "kernels/programs/trace.py"),
    ("program", "scalar operations", "kernels/programs/program.py"),
    ("fuse, order", "multiply-adds, registers", "kernels/programs/order.py"),
    ("schedule", "chunks, workspace", "kernels/programs/schedule.py"),
    ("lower", "LLVM IR, W lanes", "kernels/codegen/lower.py"),
    ("compile", "object code, all cores", "kernels/object_code/compile.py"),
    ("call", "one state, or a batch", "kernels/calls/kernel.py"),
)


def machine_code() -> str:
    """The way from an algorithm's page to a call of its machine code.

    C leaves it after the order is known.
    """
    width, gap, parts = 160, 34, []
    for k, (name, what, file) in enumerate(STAGES):
        row, column = divmod(k, 4)
        x, y = column * (width + gap), row * 120
        parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="64" rx="6"/>')
        parts.append(f'<text class="name" x="{x + width / 2}" y="{y + 20}" text-anchor="middle">{name}</text>')
        parts.append(f'<text x="{x + width / 2}" y="{y + 38}" text-anchor="middle">{what}</text>')
        parts.append(f'<text class="file" x="{x + width / 2}" y="{y + 55}" text-anchor="middle">{file}</text>')
        if column < 3:
            parts.append(f'<path d="M {x + width} {y + 32} h {gap - 6}" marker-end="url(#down)"/>')
    right = 3 * (width + gap) + width
    parts.append(f'<path d="M {right - width / 2} 64 V 92 H {width / 2} V 114" marker-end="url(#down)"/>')
    parts.append(f'<text x="{right - width / 2 + 10}" y="86">also: C99 (kernels/export/c_source.py)</text>')
    return _svg("From a page to machine code", -4, -4, right + 130, 196, parts)


def _svg(label: str, x: float, y: float, width: float, height: float, parts: list[str]) -> str:
    head = '<defs><marker id="down" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    head += '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
    box = f'viewBox="{x} {y} {width} {height}" role="img" aria-label="{label}"'
    return f'<div class="diagram"><svg xmlns="http://www.w3.org/2000/svg" {box}>{head}{"".join(parts)}</svg></div>'
