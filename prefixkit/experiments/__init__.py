"""The experiments and the session that runs them on one arm's server."""

from prefixkit.experiments.opening import open_session
from prefixkit.experiments.registry import EXPERIMENTS
from prefixkit.experiments.session import Session
from prefixkit.experiments.single import run_one
from prefixkit.experiments.state import ArmState, arm_state

__all__ = ["EXPERIMENTS", "ArmState", "Session", "arm_state", "open_session", "run_one"]
