"""What all models share: frozen, and one way to name a field in JSON and in gob.

A Rollout comes in two spellings: JSON (`canaryService`, over gRPC) and Go field names (`CanaryService`, over gob). A
field accepts both; where Go's name is not the JSON name with a capital, the field says so with `names()`.
"""

from typing import Any

from pydantic import AliasChoices, AliasGenerator, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel, to_pascal

JsonObject = dict[str, Any]


def names(json_name: str, go_name: str) -> AliasChoices:
    """Both spellings of a field whose Go name is not the JSON name with a capital."""
    return AliasChoices(json_name, go_name)


class Frozen(BaseModel):
    """A value: immutable, unknown fields ignored, read from JSON names or Go names."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        alias_generator=AliasGenerator(
            validation_alias=lambda field: AliasChoices(to_camel(field), to_pascal(field)),
            serialization_alias=to_camel,
        ),
    )
