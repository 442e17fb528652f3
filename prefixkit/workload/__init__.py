"""Your own prompts: read them, and say what they share before anything is measured."""

from prefixkit.workload.analysis import Analysis, analyse
from prefixkit.workload.requests import Request, count_requests, from_column, read_requests, write_requests

__all__ = ["Analysis", "Request", "analyse", "count_requests", "from_column", "read_requests", "write_requests"]
