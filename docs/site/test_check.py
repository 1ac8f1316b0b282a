"""Negative controls of the site: each breaks a small site in one way, and expects the words that say so."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

import check

HERE = Path(__file__).parent
PAGES = {
    "README.md": "# Home\n\nSee [the contents](docs/README.md), [code](code.go) and [a folder](docs).\n",
    "code.go": "package code\n",
    "docs/README.md": "# All\n\n[Home](../README.md)\n\n## Facts\n\n- [Wet](water.md), [ice](water.md#ice)\n",
    "docs/water.md": "# Water\n\n<!-- from water.go -->\n\nIt is wet.\n\n## Ice\n\n[Up](#water)\n",
}


def build(folder, **changes):
    """Build the pages with changes. Return the site and what Sphinx said: nothing if all is well."""
    for name, text in (PAGES | changes).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", HERE]
    run = subprocess.run([*command, folder, folder / "site"], capture_output=True, text=True)
    assert (run.returncode == 0) == (run.stderr == ""), run.stderr
    return folder / "site", run.stderr


class Controls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.site, cls.said = build(Path(folder.name))
        if check.browser_path():
            cls.browser = cls.enterClassContext(check.open_browser())

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_build(self):
        for page, text, want in [
            ("docs/water.md", "# Water\n\n## Ice\n", ""),
            ("docs/water.md", "# Water\n\n## Ice\n\n[x](none.md)\n", "'none.md'"),
            ("docs/water.md", "# Water\n\n## Ice\n\n[x](none.go)\n", "'none.go'"),
            ("docs/water.md", "# Water\n\n## Ice\n\n[x](README.md#none)\n", "'none'"),
            ("docs/water.md", "# Water\n", "'ice'"),
            ("docs/lost.md", "# Lost\n", "docs/lost.md: WARNING: document isn't included in any toctree"),
        ]:
            with self.subTest(text), tempfile.TemporaryDirectory() as folder:
                _, said = build(Path(folder), **{page: text})
                self.assertIn(want, said)
                self.assertEqual(want == "", said == "")

    def look(self, page="docs/water.html", old="", new="", ask="wet"):
        """Return what is wrong with a site in which a page was changed."""
        if not check.browser_path():
            self.skipTest("no Chromium on PATH")
        self.assertEqual("", self.said)
        site = shutil.copytree(self.site, self.folder / "site")
        text = (site / page).read_text()
        self.assertIn(old, text)
        (site / page).write_text(text.replace(old, new))
        return check.check(self.browser, site, [(ask, "water")])[0]

    def test_good(self):
        self.assertEqual([], self.look())

    def test_wide(self):
        wrong = self.look(old="It is wet.", new='<div style="width: 1300px">wet</div>')
        self.assertEqual(4, len(wrong), wrong)
        self.assertRegex(wrong[0], r"^docs/water.html, light: \d+ px wide in a window of 390$")

    def test_comment(self):
        wrong = self.look(old="It is wet.", new="It is wet. &lt;!-- from --&gt;")
        self.assertIn("docs/water.html, light: a comment shows", wrong)

    def test_console(self):
        wrong = self.look(old="It is wet.", new="It is wet. <script>throw 'ice'</script>")
        self.assertIn("water.html: console: ice", wrong)

    def test_request(self):
        wrong = self.look(old="It is wet.", new='It is wet. <img src="none.png">')
        self.assertIn(f"water.html: request failed: {(self.folder / 'site/docs/none.png').as_uri()}", wrong)

    def test_network(self):
        wrong = self.look(old="It is wet.", new='It is wet. <img src="http://127.0.0.1:9/x.png">')
        self.assertIn("water.html: network: http://127.0.0.1:9/x.png", wrong)

    def test_search_finds_nothing(self):
        self.assertEqual(["search for 'fire' finds [], not docs/water.html"], self.look(ask="fire"))

    @patch("check.SEARCHING", 3000)
    def test_search_is_broken(self):
        wrong = self.look("searchindex.js", "Search.setIndex", "void ")
        self.assertEqual(["search for 'wet' does not end: TimeoutError"], wrong)


class Closed(unittest.TestCase):
    def test_closed_after_an_exception(self):
        if not check.browser_path():
            self.skipTest("no Chromium on PATH")
        closed = []
        with self.assertRaises(TimeoutError), check.open_browser() as browser:
            browser.on("disconnected", lambda b: closed.append(b))
            raise TimeoutError
        self.assertEqual([browser], closed)


if __name__ == "__main__":
    unittest.main()
