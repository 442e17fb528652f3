"""An event loop of one's own on a thread, so that blocking calls work inside a running loop, as in Jupyter."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    """A daemon thread with an event loop, started on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Start a coroutine there and return an awaitable for the caller's own loop."""
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running()))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and block until its result is in; an interrupt cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def cpu_s(self) -> float:
        """Return the processor time that the loop's thread has used so far, seconds."""

        async def read() -> float:
            return time.thread_time()

        return self.run(read())

    def close(self) -> None:
        """Stop the loop and its thread."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="prefixkit-probe", daemon=True)
                self._thread.start()
            return self._loop
