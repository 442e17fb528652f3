"""One piece of slow work for each pass of the event loop, so that sockets are read between any two of them."""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """Grants turns in order of asking, one a pass; work after an answer lets all work before a request pass.

    The SDK spends about a millisecond on a request. Were many requests prepared in one pass, the answers of others
    would lie unread meanwhile, and of pieces that are read together the kernel keeps only the last one's arrival.
    """

    def __init__(self) -> None:
        self._early: deque[asyncio.Future[None]] = deque()
        self._late: deque[asyncio.Future[None]] = deque()
        self._granting = False

    async def take(self, *, late: bool = False) -> None:
        """Wait for one's turn; `late` is for work that delays no request."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        (self._late if late else self._early).append(turn)
        if not self._granting:
            self._granting = True
            loop.call_soon(self._grant)
        await turn

    def _grant(self) -> None:
        for waiting in (self._early, self._late):
            while waiting:
                turn = waiting.popleft()
                if not turn.done():
                    turn.set_result(None)
                    asyncio.get_running_loop().call_soon(self._grant)
                    return
        self._granting = False
