"""Who answers: the document itself, or a language model if one is set."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from lucius_sdk import StepContext

from sis_service.answers import Answer
from sis_service.conversation import Conversation
from sis_service.endpoint import Endpoint
from sis_service.extraction import Extraction
from sis_service.payload import Prompt
from sis_service.search import Search
from sis_service.settings import EndpointSettings


class Engine(Protocol):
    @property
    def name(self) -> str:
        """As it stands in the result."""

    def answer(self, ctx: StepContext[Any], prompt: Prompt, search: Search) -> Answer:
        """The document has some text."""


@contextmanager
def open_engine(settings: EndpointSettings | None) -> Iterator[Engine]:
    if settings is None:
        yield Extraction()
        return
    with Endpoint(settings) as endpoint:
        yield Conversation(endpoint)
