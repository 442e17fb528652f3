"""The errors that a user sees: one line that says what is wrong and what to do about it."""

from __future__ import annotations


class PrefixkitError(Exception):
    """A problem that the user can mend; `str()` is one line and never holds a key."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.message = " ".join(message.split())
        self.remedy = " ".join(remedy.split())

    def __str__(self) -> str:
        return f"{self.message} -> {self.remedy}" if self.remedy else self.message


class ParamsError(PrefixkitError):
    """A parameter file, an argument or a prompt file that cannot be used; found before anything starts."""

    exit_code = 2


class ServerError(PrefixkitError):
    """A server that did not start, died, or is not what its arm says."""


class ProbeError(PrefixkitError):
    """A request that could not be made at all: bad URL, bad key, nothing listening."""


class RecordsError(PrefixkitError):
    """A record file that cannot be read or is not ours."""

    exit_code = 2


class RenderError(PrefixkitError):
    """A notebook that must not be published as it is."""
