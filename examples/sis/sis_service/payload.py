"""What a step asks: prompts with names, and the form that each answer should have."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from sis_service.answer_schema import check_schema


class Prompt(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=256)
    prompt: str = Field(min_length=1)
    output: Literal["text", "json"]
    answer_schema: dict[str, Any] | None = Field(None, alias="schema")

    @field_validator("answer_schema")
    @classmethod
    def _is_a_schema(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        if schema is not None:
            check_schema(schema)
        return schema

    @model_validator(mode="after")
    def _has_a_schema_for_json_alone(self) -> Self:
        if self.output == "text" and self.answer_schema is not None:
            raise ValueError("a schema needs the output json")
        return self


class Payload(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    prompt_set: list[Prompt] = Field(min_length=1)

    @field_validator("prompt_set")
    @classmethod
    def _names_differ(cls, prompts: list[Prompt]) -> list[Prompt]:
        first: dict[str, int] = {}
        for number, prompt in enumerate(prompts):
            if first.setdefault(prompt.name, number) != number:
                raise ValueError(
                    f"prompts {first[prompt.name]} and {number} have the same name (from 0)"
                )
        return prompts
