"""The table of all parameters, from the schema: `python -m prefixkit.params.document` prints it for README.md."""

from __future__ import annotations

import json
import types
import typing
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from prefixkit.params.models import Params


def table(model: type[BaseModel] = Params) -> str:
    """Return a Markdown table of every key, its type, default and meaning."""
    lines = ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
    lines += [f"| `{key}` | {kind} | {default} | {meaning} |" for key, kind, default, meaning in _rows(model, "")]
    return "\n".join(lines)


def _rows(model: type[BaseModel], prefix: str) -> list[tuple[str, str, str, str]]:
    rows = []
    for name, field in model.model_fields.items():
        key = f"{prefix}{name}"
        nested = _nested(field.annotation)
        if nested is None or nested.__name__ == "Text":
            rows.append((key, _kind(field.annotation), _default(field), _cell(field.description or "")))
            continue
        switchable = _kind(field.annotation) if Literal[False] in typing.get_args(field.annotation) else ""
        if switchable:
            off = "`false`" if field.default is False else "on"
            rows.append((key, "mapping or `false`", off, _cell(nested.__doc__ or "")))
        rows += _rows(nested, f"{key}.")
    return rows


def _nested(annotation: Any) -> type[BaseModel] | None:
    for part in (annotation, *typing.get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None


def _kind(annotation: Any) -> str:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _kind(args[0])
    if origin is Literal:
        return " or ".join(f"`{json.dumps(value)}`" if value is False else f"`{value}`" for value in args)
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(part) for part in args)
    if origin is list:
        return f"list of {_kind(args[0])}"
    if origin is dict:
        return "mapping"
    if annotation is type(None):
        return "null"
    if getattr(annotation, "__name__", "") == "Text":
        return "{text} or {file}"
    return {str: "text", int: "integer", float: "number", bool: "boolean"}.get(annotation, "any")


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "required"
    return f"`{json.dumps(value)}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    print(table())
