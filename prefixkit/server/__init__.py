"""Servers that a notebook can trust: started, checked, and gone when they should be."""

from prefixkit.server.effective import Effective
from prefixkit.server.reset import Reset
from prefixkit.server.server import Server
from prefixkit.server.start import serve

__all__ = ["Effective", "Reset", "Server", "serve"]
