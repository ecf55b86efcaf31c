"""A tenant that knows its own key of webhooks can neither sign for another tenant nor learn its
key."""

import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_orchestrator.bootstrap.webhooks import webhook_keys_of
from lucius_orchestrator.ports.registry import GlobalConfig, Snapshot, TenantConfig
from lucius_orchestrator.settings import load_settings
from lucius_orchestrator.webhooks import (
    InvalidSignature,
    WebhookKeys,
    WebhookPolicy,
    WebhookSender,
    signature_header,
    tenant_key,
    verify,
)
from tests.ledger.backends import Clock
from tests.webhooks.conftest import certificate, sqlite_stage
from tests.webhooks.receiver import HOST, LOOPBACK, Certificate, Names, Receiver
from tests.webhooks.stage import Stage, enqueued

__all__ = ["certificate", "sqlite_stage"]

MASTER, NEXT_MASTER, SHARED = b"m" * 32, b"n" * 32, b"s" * 32


def keys_of(**generations: tuple[int, ...]) -> WebhookKeys:
    return WebhookKeys([MASTER], lambda tenant: generations.get(tenant, (1,)))


@pytest.fixture
async def acme(sqlite_stage: Stage, certificate: Certificate) -> AsyncIterator[Receiver]:
    """The receiver of the tenant acme, which knows its own key."""
    receiver = Receiver(sqlite_stage.clock, [tenant_key(MASTER, "acme")])
    async with receiver.running(certificate):
        yield receiver


async def sent_to(receiver: Receiver, stage: Stage, keys: WebhookKeys, trust: Certificate) -> None:
    policy = WebhookPolicy(frozenset({HOST}), allow_private=True)
    names = Names(LOOPBACK)
    async with WebhookSender(
        keys, policy, stage.clock, ca_file=trust.file, resolver=names
    ) as sender:
        for webhook in await enqueued(stage):
            await sender.send(webhook)


async def test_what_a_job_ends_with_is_signed_with_the_key_of_its_tenant_alone(
    sqlite_stage: Stage, certificate: Certificate, acme: Receiver
) -> None:
    job = await sqlite_stage.world.create(callback_urls=(acme.url(),))
    await job.succeeds()
    await sent_to(acme, sqlite_stage, keys_of(), certificate)
    (header,), (body,) = [tried["Lucius-Signature"] for tried in acme.tries], acme.bodies
    assert json.loads(body)["tenant_id"] == "acme"
    assert header.count("v1=") == 1
    for other in (tenant_key(MASTER, "beta"), MASTER, SHARED):
        with pytest.raises(InvalidSignature):
            verify(header, body, [other], acme.clock())


async def test_a_tenant_forges_nothing_for_another(acme: Receiver) -> None:
    """It has its own key and every webhook that it was ever sent."""
    beta, now = tenant_key(MASTER, "beta"), acme.clock()
    forged = b'{"tenant_id":"acme","type":"job.succeeded","final_output":{"uri":"az://evil/x"}}'
    for key in (
        beta,
        bytes.fromhex(beta.decode()),
        hmac.new(beta, b"acme", sha256).hexdigest().encode(),
        tenant_key(beta, "acme"),
        tenant_key(b"", "acme"),
        b"acme",
    ):
        header = signature_header(forged, now, [key])
        with pytest.raises(InvalidSignature):
            verify(header, forged, [tenant_key(MASTER, "acme")], now)


tenants = st.text(min_size=1, max_size=40)


@pytest.mark.check
@given(tenants, tenants, st.integers(1, 3), st.integers(1, 3))
def test_no_two_tenants_and_no_two_generations_share_a_key(
    one: str, other: str, first: int, second: int
) -> None:
    same = (one, first) == (other, second)
    assert (tenant_key(MASTER, one, first) == tenant_key(MASTER, other, second)) is same


def test_a_name_that_imitates_the_derivation_gets_no_other_key() -> None:
    names = [
        "acme",
        "1\nacme",
        "\nacme",
        "acme\n",
        "ACME",
        "acme ",
        "a",
        "lucius webhook key 1\nacme",
    ]
    derived = {tenant_key(MASTER, name, number) for name in names for number in (1, 11)}
    assert len(derived) == 2 * len(names)


def verified(keys: WebhookKeys, tenant: str, key: bytes) -> bool:
    body, now = b"{}", Clock()()
    try:
        verify(signature_header(body, now, keys(tenant)), body, [key], now)
    except InvalidSignature:
        return False
    return True


def test_the_key_of_one_tenant_is_rotated_without_the_others() -> None:
    old, new = tenant_key(MASTER, "acme", 1), tenant_key(MASTER, "acme", 2)
    during, after = keys_of(acme=(2, 1)), keys_of(acme=(2,))
    assert verified(during, "acme", old)
    assert verified(during, "acme", new)
    assert not verified(after, "acme", old)
    assert verified(after, "acme", new)
    assert keys_of()("beta") == during("beta") == after("beta")


def test_the_master_key_is_rotated_with_both_signing_meanwhile() -> None:
    during = WebhookKeys([NEXT_MASTER, MASTER], lambda _: (1,))
    assert verified(during, "acme", tenant_key(MASTER, "acme"))
    assert verified(during, "acme", tenant_key(NEXT_MASTER, "acme"))
    assert not verified(during, "acme", tenant_key(MASTER, "beta"))


SETTINGS = {"LUCIUS_WEBHOOK_HOSTS": HOST, "LUCIUS_WEBHOOK_MASTER_KEYS": MASTER.decode()}
NOBODY = Snapshot({}, {}, {}, GlobalConfig())


def test_the_keys_of_a_deployment_are_those_of_its_settings_and_its_tenants() -> None:
    configured = replace(NOBODY, tenants={"acme": TenantConfig(webhook_keys=(3, 2))})
    keys = webhook_keys_of(load_settings(SETTINGS), lambda: configured)
    assert keys is not None
    assert keys("acme") == (tenant_key(MASTER, "acme", 3), tenant_key(MASTER, "acme", 2))
    assert keys("beta") == (tenant_key(MASTER, "beta"),)


def test_receivers_from_before_there_were_keys_of_tenants_are_still_served() -> None:
    """With a warning; see `tests/settings/test_relations.py`."""
    before = {"LUCIUS_WEBHOOK_HOSTS": HOST, "LUCIUS_WEBHOOK_KEYS": SHARED.decode()}
    alone = webhook_keys_of(load_settings(before), lambda: NOBODY)
    assert alone is not None
    assert alone("acme") == (SHARED,)
    both = webhook_keys_of(load_settings(SETTINGS | before), lambda: NOBODY)
    assert both is not None
    assert both("acme") == (tenant_key(MASTER, "acme"), SHARED)
