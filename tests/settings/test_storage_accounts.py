"""Storage accounts, as variables name them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_settings.kinds import Refused
from lucius_settings.storage_accounts import (
    STORAGE_CONNECTION,
    storage_connection,
    storage_endpoint,
)

KEY = "aHVudGVyMmh1bnRlcjI="
SIGNATURE = "sv=2026-10-06&ss=bfqt&srt=sco&sp=rwdlacu&se=2027-01-01T00:00:00Z&sig=hunter2%3D"
WITH_KEY = f"DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={KEY}"
SIGNED = (
    "BlobEndpoint=https://acme.blob.core.windows.net/;"
    "QueueEndpoint=https://acme.queue.core.windows.net/;"
    "FileEndpoint=https://acme.file.core.windows.net/;"
    "TableEndpoint=https://acme.table.core.windows.net/;"
    f"SharedAccessSignature={SIGNATURE}"
)
EMULATOR = (
    f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={KEY};"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
    "TableEndpoint=http://localhost:10002/devstoreaccount1"
)

ACCEPTED = {
    "a key": (WITH_KEY, WITH_KEY),
    "of another cloud": (f"{WITH_KEY};EndpointSuffix=core.windows.net", None),
    "as the portal signs it": (SIGNED, SIGNED),
    "an emulator": (EMULATOR, EMULATOR),
    "with an end": (f"{WITH_KEY};", WITH_KEY),
    "with blanks": (
        f" AccountName = acme ; AccountKey= {KEY}; ",
        f"AccountName=acme;AccountKey={KEY}",
    ),
    "in lower case": (f"accountname=acme;accountkey={KEY}", f"AccountName=acme;AccountKey={KEY}"),
    "a copied signature": (
        f"AccountName=acme;SharedAccessSignature=?{SIGNATURE}",
        f"AccountName=acme;SharedAccessSignature={SIGNATURE}",
    ),
    "the one on this machine": ("UseDevelopmentStorage=TRUE;", "UseDevelopmentStorage=true"),
}


@pytest.mark.parametrize(("text", "form"), ACCEPTED.values(), ids=list(ACCEPTED))
def test_a_connection_string_is_read_and_written_in_one_form(text: str, form: str | None) -> None:
    assert STORAGE_CONNECTION.read(text).reveal() == (form or text)
    assert storage_connection("table").read(text).reveal() == (form or text)


REFUSED = {
    "no parts": (KEY, "none of a connection string"),
    "an unknown part": (f"{WITH_KEY};Password=x", "none of a connection string"),
    "of a service bus": (f"Endpoint=sb://a/;SharedAccessKey={KEY}", "none of a connection string"),
    "a proxy of the old emulator": (
        "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://a",
        "none of a connection string",
    ),
    "a part twice": (f"{WITH_KEY};accountkey={KEY}", "twice"),
    "an empty part": ("AccountName=acme;AccountKey=", "AccountKey without a value"),
    "no credential": ("AccountName=acme", "neither or both"),
    "two credentials": (f"{WITH_KEY};SharedAccessSignature={SIGNATURE}", "neither or both"),
    "a key that is none": ("AccountName=acme;AccountKey=hunter2!", "not Base64"),
    "a key of nobody": (f"AccountKey={KEY}", "without AccountName"),
    "a signature that is none": ("AccountName=a;SharedAccessSignature=hunter2", "without sig"),
    "no account": (f"SharedAccessSignature={SIGNATURE}", "neither AccountName nor"),
    "no https": (WITH_KEY.replace("https", "http"), "does not use https"),
    "no https of another host": (
        EMULATOR.replace("localhost", "azurite"),
        "does not use https, and is not of this machine",
    ),
    "no address": (EMULATOR.replace("http://localhost", "localhost"), "no address"),
    "a user in an address": (SIGNED.replace("acme.blob", "me:pw@acme.blob"), "no address"),
    "more than the one here": (f"UseDevelopmentStorage=true;{WITH_KEY}", "has more"),
    "not the one here": ("UseDevelopmentStorage=false", "something else"),
}


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_no_connection_string_is_told_why_without_it(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why) as refused:
        STORAGE_CONNECTION.read(text)
    assert STORAGE_CONNECTION.rule in str(refused.value)
    for secret in (KEY, "hunter2", "pw"):
        assert secret not in f"{refused.value} {refused.value.__cause__}"


@given(st.text(max_size=60))
def test_no_text_is_ever_shown_again(noise: str) -> None:
    with pytest.raises(Refused) as refused:
        STORAGE_CONNECTION.read(f"AccountKey={KEY};{noise}{KEY}")
    assert KEY not in str(refused.value)


def test_a_connection_must_name_the_service_that_it_is_for() -> None:
    of_blobs = f"BlobEndpoint=https://a;SharedAccessSignature={SIGNATURE}"
    assert storage_connection("blob").read(of_blobs).reveal() == of_blobs
    with pytest.raises(Refused, match="neither AccountName nor TableEndpoint"):
        storage_connection("table").read(of_blobs)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://acme.table.core.windows.net", "https://acme.table.core.windows.net"),
        ("https://acme.table.core.windows.net/", "https://acme.table.core.windows.net"),
        ("HTTPS://acme.table.core.usgovcloudapi.net", "HTTPS://acme.table.core.usgovcloudapi.net"),
        ("https://tables.acme.example:8443", "https://tables.acme.example:8443"),
    ],
)
def test_an_endpoint_is_an_https_address(text: str, address: str) -> None:
    assert storage_endpoint("table").read(text) == address


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("acme.table.core.windows.net", "no address"),
        ("http://acme.table.core.windows.net", "does not use https"),
        ("http://127.0.0.1:10002/devstoreaccount1", "which an identity needs"),
        ("https://acme.blob.core.windows.net", "another service"),
        ("https://me:hunter2@acme.table.core.windows.net", "no address"),
        ("https://acme.table.core.windows.net?sig=hunter2", "with a query"),
        ("https://a:b", "no address"),
    ],
)
def test_any_other_endpoint_is_told_why_without_it(text: str, why: str) -> None:
    kind = storage_endpoint("table")
    with pytest.raises(Refused, match=why) as refused:
        kind.read(text)
    assert kind.rule in str(refused.value)
    assert "hunter2" not in str(refused.value)
