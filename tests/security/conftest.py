from collections.abc import AsyncIterator

import pytest

from lucius_orchestrator.security.issuers import JwtAuthenticator
from tests.security.clock import Clock
from tests.security.issuer import Issuer, authenticator_of, issuer_on_loopback


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuer_on_loopback() as issuer:
        yield issuer


@pytest.fixture
def authenticator(issuer: Issuer, clock: Clock) -> JwtAuthenticator:
    return authenticator_of(issuer.url, clock)
