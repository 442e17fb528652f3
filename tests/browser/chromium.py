"""A headless Chromium, driven by its DevTools protocol over a pair of pipes: no driver, no port, no package.

Messages are JSON ended by a zero byte; Chromium reads them on file descriptor 3 and answers on 4.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALL_S = 60.0


def program() -> str | None:
    """Return Chromium's program, or None when it is not installed."""
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


class Chromium:
    """A browser with a profile of its own in `folder` and one page; downloads go to `folder`/downloads."""

    def __init__(self, folder: Path, width: int = 1400, height: int = 1000) -> None:
        self.downloads = folder / "downloads"
        self.downloads.mkdir(parents=True)
        read, self._commands = os.pipe()
        self._answers, write = os.pipe()
        arguments = [
            "--headless",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder / 'chromium'}",
            "--no-first-run",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            "--no-startup-window",
        ]

        def place() -> None:
            commands, answers = fcntl.fcntl(read, fcntl.F_DUPFD, 10), fcntl.fcntl(write, fcntl.F_DUPFD, 10)
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self._process = subprocess.Popen(
            [str(program()), *arguments],
            preexec_fn=place,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=(folder / "chromium.log").open("wb"),
        )
        os.close(read)
        os.close(write)
        self._replies: queue.Queue[dict[str, Any]] = queue.Queue()
        self._last = 0
        threading.Thread(target=self._read, daemon=True).start()
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session: str | None = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def _read(self) -> None:
        rest = b""
        while chunk := os.read(self._answers, 1 << 20):
            *messages, rest = (rest + chunk).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._replies.put(message)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if not method.startswith(("Browser.", "Target.")):
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + CALL_S
        while True:
            reply = self._replies.get(timeout=max(0.1, end - time.monotonic()))
            if reply["id"] == self._last:
                assert "error" not in reply, f"{method}: {reply['error']['message']}"
                return dict(reply["result"])

    def open(self, url: str) -> None:
        """Go to a page."""
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        reply = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    def wait(self, expression: str, what: str, seconds: float = 60.0) -> Any:
        """Return the first value of an expression that counts as true."""
        return until(lambda: self.evaluate(expression), what, seconds)

    def click(self, selector: str, text: str = "") -> None:
        """Click the visible element that matches `selector` and, when given, whose text is `text`."""
        find = f"""(() => {{
            const wanted = {json.dumps(text)};
            for (const element of document.querySelectorAll({json.dumps(selector)})) {{
                const box = element.getBoundingClientRect();
                const there = element.textContent.replace(/\\s+/g, " ").trim();
                if (box.width && box.height && (!wanted || there === wanted))
                    return [box.x + box.width / 2, box.y + box.height / 2];
            }}
        }})()"""
        x, y = self.wait(find, f"{selector} {text!r} to click")
        for kind, count in (("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 1)):
            button = "left" if count else "none"
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=count)

    def screenshot(self, path: Path) -> None:
        """Save what the window shows."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def downloaded(self, name: str, seconds: float = 120.0) -> Path:
        """Wait until a file of this name is in the downloads, and return it."""
        path = self.downloads / name
        until(path.is_file, f"download of {name} (there: {[p.name for p in self.downloads.iterdir()]})", seconds)
        return path

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(AssertionError, OSError, queue.Empty):
            self.call("Browser.close")
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._commands)


def until(condition: Callable[[], Any], what: str, seconds: float) -> Any:
    """Return the first true value of `condition`, asked again and again for so long."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.1)
    return value
