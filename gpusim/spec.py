"""The base of every data class that a user can reach, and the unit-carrying types of its fields."""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticCustomError

from gpusim import quantity

ATOMIC_BYTES = 8  # of one atomic of a CPU thread
PAGE_BYTES: Final = 4096  # the base page of Linux on x86-64 and of the GPUVM

_EXACT: dict[type, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float)}
_WORDS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number"}


class Spec(BaseModel):
    """Frozen, closed data: unknown keys are errors, values carry units, and nothing is guessed from text.

    A field of type bool, int or float takes exactly that: `wait: on` (text in YAML 1.2) is not true, and
    `passes: "3"` is not 3.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        defer_build=True,  # most runs use few of the specs, and building all takes a tenth of a second
    )

    @field_validator("*", mode="before")
    @classmethod
    def _take_exactly(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields.get(info.field_name or "")
        if field is None or any(isinstance(mark, BeforeValidator) for mark in field.metadata):
            return value
        bare = _bare_type(field.annotation)
        if bare is None or value is None:
            return value
        if isinstance(value, _EXACT[bare]) and (bare is bool or not isinstance(value, bool)):
            return value
        raise PydanticCustomError("exact_type", "needs {wanted}", {"wanted": _WORDS[bare]})


def _bare_type(annotation: Any) -> type | None:
    """bool, int or float if the annotation is that, or that or None; else None."""
    if get_origin(annotation) in (Union, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        annotation = kinds[0] if len(kinds) == 1 else None
    return annotation if annotation in (bool, int, float) else None


def _from_text(parse: Callable[[str], Any]) -> BeforeValidator:
    def convert(value: Any, info: ValidationInfo) -> Any:
        if info.context and info.context.get("quantities") == "parsed" and not isinstance(value, str):
            return value  # a value that went through here before
        return parse(value)  # refuses what is not text

    return BeforeValidator(convert)


def _schema(pattern: str, hint: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema(
        {"type": "string", "pattern": pattern, "description": hint, "examples": list(examples)}
    )


Size = Annotated[
    int,
    _from_text(quantity.parse_size),
    PlainSerializer(quantity.write_size, return_type=str, when_used="json"),
    _schema(quantity.SIZE_PATTERN, "a size with its unit", "4GiB", "64KiB"),
]
Duration = Annotated[
    int,
    _from_text(quantity.parse_duration),
    PlainSerializer(quantity.write_duration, return_type=str, when_used="json"),
    _schema(quantity.DURATION_PATTERN, "a time with its unit", "2ms", "0.66us"),
]
Rate = Annotated[
    float,
    _from_text(quantity.parse_rate),
    PlainSerializer(quantity.write_rate, return_type=str, when_used="json"),
    _schema(quantity.RATE_PATTERN, "a rate with its unit; GB/s is 1e9 bytes/s", "25GB/s"),
]
Frequency = Annotated[
    float,
    _from_text(quantity.parse_frequency),
    PlainSerializer(quantity.write_frequency, return_type=str, when_used="json"),
    _schema(quantity.FREQUENCY_PATTERN, "a frequency with its unit", "1.7GHz"),
]
Fraction = Annotated[
    float,
    BeforeValidator(quantity.parse_fraction),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "string", "pattern": quantity.FRACTION_PATTERN},
            ],
            "description": "a fraction: 0.2 or 20%",
        }
    ),
]
