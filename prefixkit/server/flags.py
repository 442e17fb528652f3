"""Engine arguments: one string, a list or a mapping in, vLLM's own spelling for its version out."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prefixkit.errors import ServerError
from prefixkit.server import versions

EngineArgs = Mapping[str, Any] | list[str] | str


class SettingsError(ServerError):
    """Server settings that contradict each other or prefixkit; found before anything starts."""

    exit_code = 2


_OURS = {
    "enable-prefix-caching": "it is what the arms on and off change; use arm `on` or `off`",
    "no-enable-prefix-caching": "it is what the arms on and off change; use arm `on` or `off`",
    "port": "set server.port",
    "host": "the server listens on 127.0.0.1 alone (in a container on 0.0.0.0)",
    "uds": "the server is probed over TCP",
    "model": "set model.path",
    "model-tag": "set model.path",
    "served-model-name": "it would stand twice; set model.name",
    "load-format": "set model.load_format",
    "config": "what it holds would not count as a parameter; write the arguments into server.engine_args",
    "api-key": "everyone here can read a command line; name the key's variable in server.api_key_env",
    "hf-token": "everyone here can read a command line; set HF_TOKEN in your shell, the server inherits it",
    "ssl-keyfile": "the server is probed over plain http on this machine",
    "ssl-certfile": "the server is probed over plain http on this machine",
    "root-path": "the server is probed at its root",
}
_REPEATABLE = {"middleware", "lora-modules", "allowed-origins"}


@dataclass(frozen=True, slots=True)
class Flag:
    """One engine argument: its name without dashes; `value` is a bool, text, or several texts."""

    name: str
    value: bool | str | tuple[str, ...]
    short: bool = False

    def words(self) -> list[str]:
        """Return the flag as argv words; a value that looks like a flag is glued."""
        option = f"-{self.name}" if self.short else f"--{self.name}"
        if self.value is True:
            return [option]
        if self.value is False:
            return [f"--no-{self.name}"]
        values = (self.value,) if isinstance(self.value, str) else self.value
        if len(values) == 1 and values[0].startswith("-"):
            return [f"{option}={values[0]}"]
        return [option, *values]


@dataclass(frozen=True, slots=True)
class Rendered:
    """Flags for one version: `args` as argv words, `config` for a `--config` file, `notes` on what was changed."""

    args: tuple[str, ...]
    config: dict[str, Any]
    notes: tuple[str, ...]


def parse(engine_args: EngineArgs) -> list[Flag]:
    """Return the arguments one by one; raise SettingsError for one that is ours, stands twice or is malformed."""
    if isinstance(engine_args, Mapping):
        flags = [flag for key, value in engine_args.items() if (flag := _from_item(str(key), value))]
    else:
        flags = _from_words(_words(engine_args))
    _refuse_conflicts(flags)
    return flags


def render(flags: Iterable[Flag], version: str | None, *, config_file: bool = False) -> Rendered:
    """Spell the flags for a version of vLLM, leaving out with a note what it lacks and does not need."""
    numbers = versions.parse(version) if version else None
    args: list[str] = []
    config: dict[str, Any] = {}
    notes: list[str] = []
    for flag in flags:
        if numbers and (feature := versions.FEATURES.get(flag.name)):
            if numbers < feature.since:
                since = ".".join(map(str, feature.since))
                if not feature.droppable:
                    raise SettingsError(
                        f"vLLM {version} has no --{flag.name} (since {since})", "remove it, or pip install -U vllm"
                    )
                notes.append(f"--{flag.name} left out: vLLM {version} lacks it (since {since})")
                continue
            _check_value(flag, feature, numbers, version)
        if flag.value is False:
            form = versions.false_form(flag.name, numbers)
            if form is None:
                notes.append(f"--{flag.name} left out: false is its default and vLLM {version} has no --no-{flag.name}")
            else:
                args.append(form)
        elif config_file and not flag.short and (flag.value is True or isinstance(flag.value, str)):
            # Versions differ in what they make of `false` and of lists in a file: these stay flags.
            config[flag.name] = flag.value
        else:
            args += flag.words()
    return Rendered(tuple(args), config, tuple(notes))


def _check_value(flag: Flag, feature: versions.Feature, numbers: versions.Version, version: str | None) -> None:
    allowed: tuple[str, ...] = ()
    for since, values in feature.values:
        if numbers >= since:
            allowed = values
    if allowed and flag.value not in allowed:
        raise SettingsError(
            f"vLLM {version} does not take --{flag.name} {flag.value}", f"it takes one of: {', '.join(allowed)}"
        )


def _from_item(key: str, value: Any) -> Flag | None:
    name = _name(key)
    if not re.fullmatch(r"[A-Za-z][\w.+-]*", name):
        raise SettingsError(
            f"server.engine_args: {key!r} is not the name of a flag", "write vLLM's name of the argument"
        )
    short = len(name) == 1
    if value is None:
        return None
    if isinstance(value, str) and value.lower() in ("true", "false"):
        raise SettingsError(
            f"server.engine_args.{key}: {value!r} is text, and vLLM's switches take no value",
            f"write {value.lower()} without quotes",
        )
    if isinstance(value, bool):
        if name.startswith("no-"):
            return Flag(name[3:], not value)
        return Flag(name, value, short)
    if isinstance(value, Mapping):
        return Flag(name, json.dumps(value), short)
    if isinstance(value, list | tuple):
        return Flag(name, tuple(v if isinstance(v, str) else json.dumps(v) for v in value), short)
    return Flag(name, str(value), short)


def _words(engine_args: list[str] | str) -> list[str]:
    """Split a string as a shell would, and list items that hold a flag and its value in one."""
    try:
        if isinstance(engine_args, str):
            return shlex.split(engine_args)
        words: list[str] = []
        for item in map(str, engine_args):
            head, blank, rest = item.strip().partition(" ")
            if head.startswith("-") and blank and "=" not in head:
                one_value = rest.lstrip()[:1] in ("{", "[")
                words += [head, rest.strip()] if one_value else [head, *shlex.split(rest)]
            else:
                words.append(item)
        return words
    except ValueError as error:
        raise SettingsError(f"server.engine_args: {error}", "close the quotes, or give a mapping") from None


def _from_words(words: list[str]) -> list[Flag]:
    flags: list[Flag] = []
    for word in words:
        if re.match(r"--?[A-Za-z]", word):
            option, glue, value = word.partition("=")
            if not option.startswith("--"):  # a short option keeps its spelling, glued value and all
                flags.append(Flag(word[1:], True, short=True))
            elif glue:
                flags.append(Flag(_name(option), value))
            elif option.startswith("--no-"):
                flags.append(Flag(_name(option)[3:], False))
            else:
                flags.append(Flag(_name(option), True))
        elif not flags:
            raise SettingsError(
                f"server.engine_args: {word!r} stands before any flag",
                "the model and `serve` are added by prefixkit; remove it",
            )
        else:
            last = flags[-1]
            if last.value is False:
                raise SettingsError(
                    f"server.engine_args: --no-{last.name} takes no value, but {word!r} follows", "remove it"
                )
            if word.lower() in ("true", "false"):
                raise SettingsError(
                    f"server.engine_args: --{last.name} {word}: vLLM's switches take no value",
                    f"write --{last.name} or --no-{last.name}",
                )
            given = () if last.value is True else (last.value,) if isinstance(last.value, str) else last.value
            assert not isinstance(given, bool)
            flags[-1] = Flag(last.name, word if not given else (*given, word), last.short)
    return flags


def _name(option: str) -> str:
    head, dot, rest = option.lstrip("-").partition(".")
    return head.replace("_", "-") + dot + rest


def _refuse_conflicts(flags: list[Flag]) -> None:
    seen: dict[str, Flag] = {}
    for flag in flags:
        base = flag.name.partition(".")[0]
        spelled = f"no-{base}" if flag.value is False else base
        for ours, reason in _OURS.items():
            # argparse takes an abbreviation for the whole name
            if not flag.short and (ours in (base, spelled) or (len(base) > 2 and ours.startswith(base))):
                raise SettingsError(f"server.engine_args: --{spelled} cannot be given: {reason}", f"remove --{spelled}")
        if flag.name in seen and flag.name not in _REPEATABLE:
            raise SettingsError(f"server.engine_args: --{flag.name} stands twice", "keep one of them")
        seen[flag.name] = flag
