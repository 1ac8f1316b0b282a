"""The client type-checks strictly, and calls that name no limit, kind or resource of limits.yaml do not."""

import pathlib
import re
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(__file__).parent


def mypy(*files: str) -> str:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir=/dev/null", *files]
    return subprocess.run(command, cwd=FOLDER, capture_output=True, text=True).stdout


class Types(unittest.TestCase):
    def test_right(self) -> None:
        tests = ("test_client.py", "test_async.py", "test_names.py", "server.py")
        self.assertEqual("", mypy("limits_client.py", "worker.py", *tests))

    def test_wrong(self) -> None:
        want = [
            f"{line}: {found.group(1)}"
            for line, text in enumerate((FOLDER / "wrong.py").read_text().splitlines(), 1)
            if (found := re.search(r"# wrong: ([a-z-]+)$", text))
        ]
        got = [
            f"{found.group(1)}: {found.group(2)}"
            for text in mypy("wrong.py").splitlines()
            if (found := re.match(r"wrong\.py:(\d+): error: .*\[([a-z-]+)\]$", text))
        ]
        self.assertEqual(15, len(want))
        self.assertEqual(want, got)


if __name__ == "__main__":
    unittest.main()
