"""A real server for tests: the process of sluice-serve, on limits that it keeps by itself."""

import json
import os
import pathlib
import subprocess
import threading
from types import TracebackType
from typing import Any, Dict, Optional, Type

FOLDER = pathlib.Path(__file__).parent


class Server:
    """SLUICE_SERVE is the path of the program."""

    def __init__(self, *flags: str) -> None:
        program = os.environ.get("SLUICE_SERVE", "sluice-serve")
        schema = str(FOLDER / "limits.yaml")
        self._process = subprocess.Popen(
            [program, "--file", schema, "--http", "127.0.0.1:0", "--drain", "0s", *flags],
            stderr=subprocess.PIPE,
            text=True,
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
