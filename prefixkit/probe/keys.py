"""API keys: mend what is certain, refuse the rest before a request is made, never repeat the key."""

from __future__ import annotations

from prefixkit.errors import ProbeError

CUT_SHORT = "keys are shown once and may have been cut short when copied: make a new one"


class BadKeyError(ProbeError):
    """A key that no server can accept."""

    exit_code = 2


def clean_key(value: str, source: str) -> str:
    """Return the key without blanks around it, quotes or a `Bearer ` prefix; `source` says where it came from."""
    key = value.strip().strip("\"'").strip()
    if key.lower().startswith("bearer "):
        key = key[7:].strip()
    if not key or key.lower() == "bearer":
        raise BadKeyError(f"the key from {source} is empty", f"set {source} in this very process and start again")
    if "\n" in key or "\r" in key:
        raise BadKeyError(f"the key from {source} holds a line break", "copy the key again, as one line")
    if any(c.isspace() or not c.isprintable() for c in key):
        raise BadKeyError(f"the key from {source} holds a blank or a control character", "copy the key again")
    if "..." in key or "…" in key or "**" in key:
        raise BadKeyError(f"the key from {source} is the shortened form that a page shows", CUT_SHORT)
    if not key.isascii():
        raise BadKeyError(f"the key from {source} holds characters outside ASCII", "copy the key again")
    return key
