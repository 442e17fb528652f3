"""Parameters: strict YAML in, one frozen object out."""

from prefixkit.params.load import ARMS, find, load_arm, load_params, params_hash, profile_name
from prefixkit.params.models import Params

__all__ = ["ARMS", "Params", "find", "load_arm", "load_params", "params_hash", "profile_name"]
