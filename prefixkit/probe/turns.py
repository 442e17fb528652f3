"""One piece of slow work for each pass of the event loop, so that sockets are read between any two of them."""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """Grants turns in order of asking, one a pass.

    The SDK spends about a millisecond on a request. Were many requests prepared in one pass, the answers of others
    would lie unread meanwhile, and of pieces that are read together the kernel keeps only the last one's arrival.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._granting = False

    async def take(self) -> None:
        """Wait for one's turn."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        if not self._granting:
            self._granting = True
            loop.call_soon(self._grant)
        await turn

    def _grant(self) -> None:
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()
        if not self._waiting:
            self._granting = False
            return
        self._waiting.popleft().set_result(None)
        asyncio.get_running_loop().call_soon(self._grant)
