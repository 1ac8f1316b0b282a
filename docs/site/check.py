"""Look at the site in Chromium, from file://, as a reader does: `make docs-check`.

It names pages that scroll sideways, messages in the console, requests that fail or leave the disk, comments
that show, and questions that the search does not answer.
"""

import re
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

HEIGHTS = {390: 844, 1280: 800}  # of windows, by their width
SCHEMES = {"light": [390, 1280], "dark": [1280, 390]}  # the first is the width in which a page is loaded
PATIENCE = 30_000  # milliseconds for a page, on a busy machine
SEARCHING = 30_000  # milliseconds for a search
FIRST = 5  # a search has the right page among so many

# How wide a page is: itself, or what scrolls in it. Code and tables may scroll.
WIDTH = """() => Math.max(document.scrollingElement.scrollWidth, ...[...document.querySelectorAll("body *")]
  .filter(e => e.scrollWidth > e.clientWidth && !e.matches("pre, .table-wrapper"))
  .filter(e => /auto|scroll/.test(getComputedStyle(e).overflowX))
  .map(e => Math.round(e.getBoundingClientRect().left + e.scrollWidth)))"""

QUESTION = re.compile(r'^\t\{"([^"]+)", "([^"#]+)\.md[^"]*"\},$', re.M)


def browser_path():
    """Return the path of a Chromium or Chrome, or None."""
    names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
    return next(filter(None, map(shutil.which, names)), None)


def listen(page, wrong):
    """Report what the page logs, and its requests that fail or leave the disk."""

    def add(text):
        wrong.append(page.url.rpartition("/")[2] + ": " + text)

    page.on("console", lambda m: m.type in ("error", "warning") and add(f"console: {m.text}"))
    page.on("pageerror", lambda e: add(f"console: {e}"))
    page.on("requestfailed", lambda r: add(f"request failed: {r.url}"))
    page.on("request", lambda r: re.match("file:|data:", r.url) or add(f"network: {r.url}"))


def check_layout(page, name, width, wrong):
    """Report an open page that is wider than its window, or shows a comment."""
    wide = page.evaluate(WIDTH)
    if wide > width:
        wrong.append(f"{name}: {wide} px wide in a window of {width}")
    if "<!--" in page.inner_text("body"):
        wrong.append(f"{name}: a comment shows")


def check_search(page, site, words, answer, wrong):
    """Report a search that does not have the page of the answer among its first results."""
    page.goto((site / "search.html").as_uri() + "?q=" + words.replace(" ", "+"))
    ended = "/found|did not match/.test(document.querySelector('.search-summary')?.innerText)"
    try:
        page.wait_for_function(ended, timeout=SEARCHING)
    except Exception as e:
        wrong.append(f"search for {words!r} does not end: {type(e).__name__}")
        return
    results = page.query_selector_all("#search-results ul.search > li > a")
    found = [re.split("[#?]", a.get_attribute("href"))[0] for a in results[:FIRST]]
    if f"docs/{answer}.html" not in found:
        wrong.append(f"search for {words!r} finds {found}, not docs/{answer}.html")


@contextmanager
def open_browser():
    """Open Chromium, and close it in the end, after an exception too."""
    from playwright.sync_api import sync_playwright

    options = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with (
        sync_playwright() as p,
        p.chromium.launch(executable_path=browser_path(), args=options, chromium_sandbox=False) as browser,
    ):
        yield browser


def check(browser, site, questions, shots=None):
    """Return what is wrong with a site, and how many pages it has."""
    wrong = []
    pages = sorted(site.rglob("*.html"))
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    listen(page, wrong)
    for scheme, sizes in SCHEMES.items():
        page.emulate_media(color_scheme=scheme)
        for file in pages:
            name = file.relative_to(site).as_posix()
            for width in sizes:
                page.set_viewport_size({"width": width, "height": HEIGHTS[width]})
                if width == sizes[0]:
                    page.goto(file.as_uri())
                check_layout(page, f"{name}, {scheme}", width, wrong)
                if shots:
                    picture = f"{name.replace('/', '_')}-{width}-{scheme}.png"
                    page.screenshot(path=shots / picture)
    page.emulate_media(color_scheme="light")
    for words, answer in questions:
        check_search(page, site, words, answer, wrong)
    page.close()
    return list(dict.fromkeys(wrong)), len(pages)


def main():
    """Check a site by the questions of a file. A third argument is a folder for pictures."""
    if not browser_path():
        print("SKIPPED docs-check: no Chromium or Chrome on PATH: apt-get install chromium")
        return
    site, questions = Path(sys.argv[1]).resolve(), QUESTION.findall(Path(sys.argv[2]).read_text())
    with open_browser() as browser:
        wrong, pages = check(browser, site, questions, Path(sys.argv[3]) if len(sys.argv) > 3 else None)
    for w in wrong:
        print(w, file=sys.stderr)
    if pages < 40 or len(questions) < 10:
        sys.exit(f"{pages} pages and {len(questions)} questions: is all of it read?")
    if wrong:
        sys.exit(1)
    print(f"{pages} pages, {list(HEIGHTS)} px, {' and '.join(SCHEMES)}; {len(questions)} questions: ok")


if __name__ == "__main__":
    main()
