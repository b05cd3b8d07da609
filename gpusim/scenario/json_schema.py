"""The JSON Schema (draft 2020-12) of a scenario, for editors: completion, descriptions, red lines.

It says what a file may look like. What only the loader can know (names that must exist elsewhere, keys that a
mode ignores) it leaves to the loader, and where a value may be a placeholder `${name}` it lets text through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from gpusim.quantity import DURATION_PATTERN, FREQUENCY_PATTERN, RATE_PATTERN, SIZE_PATTERN
from gpusim.scenario.schema import Scenario
from gpusim.scenario.step_reader import VERBS
from gpusim.spec import Spec

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_PLACEHOLDER = {"type": "string", "pattern": r"\$\{[^{}]+\}", "description": "a value of `parameters`"}
_REF = "#/$defs/{}"
_QUANTITIES = (SIZE_PATTERN, DURATION_PATTERN, RATE_PATTERN, FREQUENCY_PATTERN)
#: bounds of quantities, which JSON Schema knows for numbers only: beyond 2^63 in the smallest unit, or nothing
_TOO_LARGE = r"^\s*\+?\d{20}|[eE]\+?0*(?:[2-9]\d|\d{3})"
_NOTHING = r"^\s*\+?0*\.?0*(?:[eE][+-]?\d+)?\s*[A-Za-zµ]"
_UNKNOWN_KEYS = (
    "title",
    "gt",
    "ge",
    "lt",
    "le",
)  # pydantic's own, on types that JSON Schema has no bound for


def build() -> dict[str, Any]:
    """The schema. Steps are objects with exactly one verb."""
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(Scenario, "validation")]
    models += [(spec, "validation") for spec in VERBS.values()]
    names, whole = models_json_schema(models, schema_generator=_Generator)
    for model in _all(Spec):
        if model.__name__ in whole["$defs"]:
            _bound(whole["$defs"][model.__name__], model)
    definitions: dict[str, Any] = {name: _tidy(schema) for name, schema in whole["$defs"].items()}
    refs = {spec: names[(spec, "validation")] for spec in VERBS.values()}
    definitions["Step"] = _step(refs)
    definitions["Placeholder"] = _PLACEHOLDER
    top = definitions.pop(names[(Scenario, "validation")]["$ref"].rpartition("/")[2])
    return {
        "$schema": DIALECT,
        "title": "gpusim scenario, version 1",
        **{key: value for key, value in top.items() if key != "title"},
        "$defs": dict(sorted(definitions.items())),
    }


def _all(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for part in model.__subclasses__():
        yield part
        yield from _all(part)


def _bound(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Write `gt: 0` of quantities where pydantic drops it, because the type has a schema of its own."""
    for name, field in model.model_fields.items():
        properties = schema.get("properties", {}).get(field.alias or name)
        if properties is not None and any(getattr(mark, "gt", None) == 0 for mark in field.metadata):
            properties.setdefault("gt", 0)


class _Generator(GenerateJsonSchema):
    """Writes defaults as the user would: with units."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        generated = super().default_schema(schema)
        if schema.get("default", 0) is None:
            generated.pop("default", None)
        inner: Any = schema["schema"]
        while "serialization" not in inner and "schema" in inner:
            inner = inner["schema"]  # bounds and validators around the quantity
        write = inner.get("serialization", {}).get("function")
        if "default" in generated and callable(write):
            generated["default"] = write(schema["default"])
        return generated


def _step(refs: dict[Any, JsonSchemaValue]) -> dict[str, Any]:
    common: dict[str, Any] = {
        "name": {"type": "string", "description": "the step's name in paths; default: the verb"},
        "when": {
            "anyOf": [{"type": "boolean"}, {"$ref": _REF.format("Placeholder")}],
            "description": "false: the step is left out; may compare parameters",
        },
    }
    stream = {"type": "string", "description": "the stream; default: the process's null stream"}
    kinds = []
    for verb, spec in VERBS.items():
        arguments: dict[str, Any] = dict(refs[spec])
        if not any(field.is_required() for field in spec.model_fields.values()):
            arguments = {"anyOf": [arguments, {"type": "null"}]}
        arguments["description"] = (spec.__doc__ or verb).partition("\n")[0]
        kinds.append(
            {
                "type": "object",
                "properties": {
                    **common,
                    **({"stream": stream} if spec.takes_stream else {}),
                    verb: arguments,
                },
                "required": [verb],
                "additionalProperties": False,
            }
        )
    return {"description": "one step of a host thread: exactly one verb with its arguments", "oneOf": kinds}


def _tidy(node: Any) -> Any:
    """Without pydantic's titles, and with placeholders where a value is not text anyway."""
    if isinstance(node, list):
        return [_tidy(child) for child in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("properties"), dict):
        plain = {
            key: _tidy(child) for key, child in node.items() if key not in ("properties", *_UNKNOWN_KEYS)
        }
        return plain | {"properties": {name: _tidy(child) for name, child in node["properties"].items()}}
    tidy = {key: _tidy(child) for key, child in node.items() if key not in _UNKNOWN_KEYS}
    if tidy.get("type") == "string" and tidy.get("pattern") in _QUANTITIES:
        never = [_TOO_LARGE, _NOTHING] if node.get("gt") == 0 else [_TOO_LARGE]
        tidy["not"] = {"pattern": "|".join(never)}
    typed = tidy.get("type") in ("integer", "number", "boolean") or "enum" in tidy or "pattern" in tidy
    if not typed or "const" in tidy:
        return tidy
    about = {key: tidy.pop(key) for key in ("description", "default") if key in tidy}
    return {"anyOf": [tidy, {"$ref": _REF.format("Placeholder")}], **about}
