"""Keys and tokens side by side, and no authentication at all."""

from pathlib import Path

import pytest

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.security.authentication import AnyAuthenticator, NoAuthentication
from lucius_orchestrator.security.callers import Caller, Role, Verb
from lucius_orchestrator.security.issuers import JwtAuthenticator
from lucius_orchestrator.security.keys import KeyAuthenticator, KeyFile
from tests.security.clock import Clock
from tests.security.issuer import Issuer, claims, ec_key
from tests.security.refusals import refused

READ = frozenset({Role.READ})


@pytest.fixture
def keys(tmp_path: Path, clock: Clock) -> KeyFile:
    return KeyFile(tmp_path / "keys.json", clock)


@pytest.fixture
def both(keys: KeyFile, authenticator: JwtAuthenticator) -> AnyAuthenticator:
    return AnyAuthenticator([KeyAuthenticator(keys), authenticator])


async def test_keys_and_tokens_are_accepted_side_by_side(
    both: AnyAuthenticator, keys: KeyFile, clock: Clock
) -> None:
    key = keys.create("ingest", None, READ)
    token = ec_key().sign(claims(clock.now))
    assert (await both.authenticate(f"Bearer {key.secret}")).name == "ingest"
    assert (await both.authenticate(f"Bearer {token}")).name == "alice"


async def test_a_key_is_never_shown_to_an_issuer(both: AnyAuthenticator, issuer: Issuer) -> None:
    with refused(ErrorCode.UNAUTHENTICATED, hiding="lk_1_2"):
        await both.authenticate("Bearer lk_1_2")
    assert issuer.fetches == 0


async def test_tokens_do_not_depend_on_the_key_file(
    both: AnyAuthenticator, keys: KeyFile, tmp_path: Path, clock: Clock
) -> None:
    (tmp_path / "keys.json").write_text("{")
    with refused(ErrorCode.UNAVAILABLE):
        await both.authenticate("Bearer lk_1_2")
    token = ec_key().sign(claims(clock.now))
    assert (await both.authenticate(f"Bearer {token}")).name == "alice"


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Basic bGtf", "Bearer x"])
async def test_without_a_credential_nobody_is_let_in(
    both: AnyAuthenticator, authorization: str | None
) -> None:
    with refused(ErrorCode.UNAUTHENTICATED):
        await both.authenticate(authorization)


async def test_a_kind_that_is_not_set_up_is_refused(keys: KeyFile, clock: Clock) -> None:
    token = ec_key().sign(claims(clock.now))
    with refused(ErrorCode.UNAUTHENTICATED, hiding=token):
        await AnyAuthenticator([KeyAuthenticator(keys)]).authenticate(f"Bearer {token}")
    with refused(ErrorCode.UNAUTHENTICATED):
        await AnyAuthenticator([]).authenticate(f"Bearer {token}")


@pytest.mark.parametrize("authorization", [None, "Bearer anything"])
async def test_without_authentication_everybody_may_do_everything(
    authorization: str | None,
) -> None:
    caller = await NoAuthentication().authenticate(authorization)
    assert caller == Caller("anonymous", None, frozenset(Role))
    for verb in Verb:
        caller.require(verb)
