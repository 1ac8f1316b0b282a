"""A real server for tests: the process of sluice-serve, on limits that it keeps by itself."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
from types import TracebackType
from typing import Any, Dict, Optional, Type

FOLDER = pathlib.Path(__file__).parent
SCHEMA = str(FOLDER / "limits.yaml")
CREDENTIALS = {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "dev", "AWS_SECRET_ACCESS_KEY": "dev"}


class Server:
    """SLUICE_SERVE is the path of the program."""

    def __init__(self, *flags: str) -> None:
        program = os.environ.get("SLUICE_SERVE", "sluice-serve")
        self._process = subprocess.Popen(
            [program, "--file", SCHEMA, "--http", "127.0.0.1:0", "--drain", "0s", *flags],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **CREDENTIALS},
        )
        self.url = "http://" + str(self._line()["http"])
        assert self._process.stderr is not None
        self._reader = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._reader.start()

    def _line(self) -> Dict[str, Any]:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            fields: Dict[str, Any] = json.loads(line)
            if fields["msg"] == "serving":
                return fields
        raise RuntimeError("the server does not start")

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stderr is not None
        self._process.stderr.close()


class Table:
    """A DynamoDB in memory with a table, as `sluice dev` has it. SLUICE is the path of sluice."""

    def __init__(self) -> None:
        self._program = os.environ.get("SLUICE", "sluice")
        self._process = subprocess.Popen(
            [self._program, "dev", "--port", "0", "--table", "limits"], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        found = re.search(r"http://\S+", self._process.stdout.readline())
        assert found is not None
        self.flags = ("--endpoint", found.group(), "--table", "limits")

    def apply(self, catalog: str) -> None:
        """Make the names of templates those of a catalog."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(catalog)
            file.flush()
            subprocess.run(
                [self._program, "catalog", "apply", file.name, "--file", SCHEMA, *self.flags],
                check=True,
                capture_output=True,
                env={**os.environ, **CREDENTIALS},
            )

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate()
