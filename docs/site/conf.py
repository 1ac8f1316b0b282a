"""The configuration of Sphinx for `make docs`: README.md and docs/ as a site, read as they are on a forge.

The navigation is the list of links in docs/README.md: a page that is not in it fails the build.
"""

import re
import shutil
from os.path import dirname, join, normpath, splitext
from pathlib import Path

project = "sluice"
html_title = "sluice"
root_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "docs/**.md"]
extensions = ["myst_parser"]
myst_heading_anchors = 6
suppress_warnings = ["misc.highlighting_failure"]  # excerpts need not parse

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_use_index = False
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_show_search_summary = False  # it needs fetch, which browsers refuse on file://

LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def links(text, page):
    """Yield (caption, title, page) of all links of a contents page to other pages, each page once."""
    seen = {page, root_doc}
    above, *sections = re.split(r"^## ", text, flags=re.M)
    for caption, block in [("", above)] + [s.split("\n", 1) for s in sections]:
        for title, target in LINK.findall(block):
            name, ext = splitext(normpath(join(dirname(page), target)))
            if ext == ".md" and name not in seen:
                seen.add(name)
                own = title.endswith(".md") or title.isdigit() or name.endswith("/README")
                yield caption, "" if own else title, name


def toctree(caption, entries):
    """Return a hidden toctree. An entry without a title has the one of its page."""
    lines = [f"{title} </{page}>" if title else f"/{page}" for title, page in entries]
    options = [":hidden:"] + [f":caption: {caption}"] * bool(caption)
    return "\n".join(["", "```{toctree}", *options, "", *lines, "```", ""])


def navigation(text):
    """Return the toctrees of docs/README.md, a section each. What stands above the sections comes last."""
    sections = {}
    for caption, title, page in links(text, "docs/README"):
        sections.setdefault(caption, []).append((title, page))
    above = sections.pop("", [])
    sections["The project"] = [("All pages", "docs/README"), *above]
    return "".join(toctree(caption, entries) for caption, entries in sections.items())


def read(app, page, source):
    """Add the navigation to the first page, and to a folder's contents its pages that the former lacks."""
    root = Path(app.srcdir)
    contents = (root / "docs/README.md").read_text()

    def reachable(link):
        target = normpath(join(dirname(page), link[2]))
        code = (root / target).exists() and splitext(target)[0] not in app.env.found_docs
        return link[1] if code else link[0]

    text = LINK.sub(reachable, source[0])  # the site has no page for code of the repository
    app.env.note_dependency(root / "docs/README.md")
    if page == root_doc:
        text += navigation(contents)
    elif page.endswith("/README") and page != "docs/README":
        listed = {name for _, _, name in links(contents, "docs/README")}
        own = [(title, name) for _, title, name in links(text, page) if name not in listed]
        text += toctree("", own) if own else ""
    source[0] = text


def index(app, error):
    """Give the first page the name that browsers and servers look for, too."""
    if error is None:
        shutil.copy(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def setup(app):
    app.connect("source-read", read)
    app.connect("build-finished", index)
