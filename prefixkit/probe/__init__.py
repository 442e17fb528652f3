"""Time one request, or many, with the clock in the transport."""

from prefixkit.probe.client import Client
from prefixkit.probe.keys import clean_key
from prefixkit.probe.result import Probe
from prefixkit.probe.urls import Endpoints, endpoints

__all__ = ["Client", "Endpoints", "Probe", "clean_key", "endpoints"]
