"""Find, merge and check parameter files; hash what a measurement depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from prefixkit import paths
from prefixkit.errors import ParamsError
from prefixkit.params.models import Params

ARMS = ("on", "off", "cloud")
MEASURED = ("model", "server", "experiments", "cloud", "enable_prefix_caching")
# Experiments that older records do not know: where they are off, those records stay as they are.
LATER = ("affinity",)


class _UniqueKeys(yaml.SafeLoader):
    """A loader that refuses a key given twice, which YAML would silently let the later one win."""


def _mapping(loader: _UniqueKeys, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise yaml.MarkedYAMLError(problem=f"key {key!r} stands twice", problem_mark=key_node.start_mark)
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def find(name: str | Path) -> Path:
    """Return the file that `name` means: a name in params/ ("cpu") or a path, relative to here or the project root."""
    text = str(name)
    candidates = [paths.PARAMS / f"{text}.yaml", Path(text).expanduser(), paths.ROOT / text]
    for path in candidates:
        if path.is_file():
            return path.resolve()
    known = ", ".join(sorted(p.stem for p in paths.PARAMS.glob("*.yaml")))
    raise ParamsError(f"no parameter file {text!r}", f"give a path or one of: {known}")


def _read(path: Path) -> dict[str, Any]:
    try:
        data = yaml.load(path.read_text("utf-8"), Loader=_UniqueKeys)
    except UnicodeDecodeError as error:
        raise ParamsError(f"{path}: not UTF-8 ({error.reason} at byte {error.start})", "save it as UTF-8") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ParamsError(f"{path}: line {line}: {error.problem}", "mend the YAML") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ParamsError(f"{path}: holds a {type(data).__name__}, not a mapping of keys", "start from params/cpu.yaml")
    return data


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _inline_files(node: Any, source: str, key: str = "") -> Any:
    """Replace each prompt `{file: ...}` by `{text: ...}`: the text decides whether an arm is stale, not its path."""
    if not isinstance(node, dict):
        return node
    if set(node) == {"file"} and isinstance(node["file"], str):
        path = paths.ROOT / node["file"]
        try:
            return {"text": path.read_text("utf-8")}
        except OSError as error:
            raise ParamsError(f"{source}: {key}.file: cannot read {path}: {error.strerror}", "mend the path") from None
        except UnicodeDecodeError:
            raise ParamsError(f"{source}: {key}.file: {path} is not UTF-8", "save it as UTF-8") from None
    return {name: _inline_files(value, source, f"{key}.{name}".lstrip(".")) for name, value in node.items()}


def _origin(files: list[tuple[Path, dict[str, Any]]], location: tuple[Any, ...]) -> str:
    """Name the last file that sets the key at `location`."""
    for path, data in reversed(files):
        node: Any = data
        for part in location:
            if not isinstance(node, Mapping) or part not in node:
                break
            node = node[part]
        else:
            return str(path)
    return " + ".join(str(path) for path, _ in files) or "overrides"


def _sentence(error: ValidationError, files: list[tuple[Path, dict[str, Any]]]) -> str:
    # For a union such as `Switch | false` pydantic reports every branch; the deepest place is the user's mistake.
    details = max(
        error.errors(),
        key=lambda e: (len([p for p in e["loc"] if p not in _BRANCHES]), e["type"] != "literal_error"),
    )
    location = tuple(part for part in details["loc"] if part not in _BRANCHES)
    given = details.get("input")
    shown = (
        ""
        if isinstance(given, (dict, list)) or details["type"] == "missing"
        else f" (got {type(given).__name__} {given!r})"
    )
    reason = {"extra_forbidden": "unknown key", "missing": "missing key"}.get(details["type"], details["msg"])
    key = ".".join(str(part) for part in location) or "(top level)"
    return f"{_origin(files, location)}: {key}: {reason}{shown}"


_BRANCHES = {
    "Switch", "Length", "Conversation", "Load", "Mutation", "Eviction", "Blocks", "Workload", "Frontend", "Tuning",
    "Affinity",
    "literal[False]", "literal['auto']", "constrained-int", "dict[str,any]", "list[str]", "str", "int",
}  # fmt: skip


def load_params(*names: str | Path, **overrides: Any) -> Params:
    """Return the checked parameters of `names`, merged deeply in order, then `overrides`.

    Each name is a file in params/ without its ending, or a path. Raises ParamsError, one line that names file and key.

    >>> load_params("cpu", "on").enable_prefix_caching
    True
    """
    files = [(path, _read(path)) for path in map(find, names)]
    merged: dict[str, Any] = {}
    for _, data in files:
        merged = _merge(merged, data)
    merged = _merge(merged, overrides)
    source = " + ".join(str(path) for path, _ in files) or "overrides"
    try:
        return Params.model_validate(_inline_files(merged, source))
    except ValidationError as error:
        raise ParamsError(_sentence(error, files), "see `The parameters` in README.md") from None


def load_arm(profile: str | Path, arm: str) -> Params:
    """Return the parameters of one arm of a profile, refusing an arm that changes more than the cache.

    `arm` is a name in params/ or a path whose stem is `on`, `off` or `cloud`.
    """
    name = Path(arm).stem
    if name not in ARMS:
        raise ParamsError(f"unknown arm {arm!r}", f"one of: {', '.join(ARMS)}")
    path = find(arm)
    if _read(find(profile)).get("enable_prefix_caching") is not None:
        raise ParamsError(f"{find(profile)}: enable_prefix_caching: set by the arm, not by a profile", "remove the key")
    changed = set(_read(path))
    if name == "cloud":
        if extra := changed - {"cloud", "enable_prefix_caching"}:
            raise ParamsError(
                f"{path}: {sorted(extra)[0]}: the cloud arm sets `cloud` alone", "move the key to the profile"
            )
    elif extra := changed - {"enable_prefix_caching"}:
        raise ParamsError(
            f"{path}: {sorted(extra)[0]}: an arm changes `enable_prefix_caching` and nothing else",
            "move the key to the profile",
        )
    params = load_params(profile, path)
    wanted = {"on": True, "off": False, "cloud": None}[name]
    if params.enable_prefix_caching is not wanted:
        raise ParamsError(
            f"{path}: enable_prefix_caching: must be {str(wanted).lower()} for arm {name}", "mend the arm file"
        )
    return params


def params_hash(params: Params) -> str:
    """Return the SHA-256 of what a measurement depends on; comments, `report` and git do not count."""
    measured = {key: value for key, value in params.model_dump(mode="json").items() if key in MEASURED}
    for name in LATER:
        if measured["experiments"].get(name) is False:
            del measured["experiments"][name]
    return hashlib.sha256(json.dumps(measured, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def profile_name(profile: str | Path) -> str:
    """Return the folder name of a profile's results: its file's stem."""
    return find(profile).stem
