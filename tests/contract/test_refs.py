"""Refs: well-formed, allowed, and never a carrier of credentials."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.refs import (
    LOCAL_SCHEMES,
    URI_LIMIT,
    RefPolicy,
    check_no_credentials,
    check_ref,
    tenant_folder,
)


def refusal(uri: str, policy: RefPolicy | None = None) -> ErrorCode | None:
    try:
        check_ref(uri, policy or RefPolicy(), "/input_ref/uri")
    except ContractError as refused:
        return refused.code
    return None


@pytest.mark.parametrize(
    "uri",
    [
        "https://files.example/a%20b.pdf?version=3",
        "az://inbox/folder/a.pdf",
        "s3://bucket/a.pdf",
        "artifact://acme/invoice/versions/3",
    ],
)
def test_remote_schemes_are_allowed_by_default(uri: str) -> None:
    assert refusal(uri) is None


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "a.pdf",
        "https://[::1",
        "https://host:port/",
        "az://inbox/../secrets",
        "az://inbox/a\\..\\b",
        "az://inbox/" + "x" * URI_LIMIT,
        "az://in\tbox/a",
        "file://host/a",
        "file:relative",
    ],
)
def test_what_is_no_uri_is_invalid(uri: str) -> None:
    assert refusal(uri, RefPolicy(schemes=LOCAL_SCHEMES)) is ErrorCode.REF_INVALID


def test_local_files_belong_to_local_mode() -> None:
    assert refusal("file:///tmp/a.pdf") is ErrorCode.REF_FORBIDDEN
    assert refusal("file:///tmp/a.pdf", RefPolicy(schemes=LOCAL_SCHEMES)) is None


@pytest.mark.parametrize(
    "uri",
    [
        "https://user:secret@files.example/a",
        "https://token@files.example/a",
        "https://files.example/a?SIG=abc",
        "https://files.example/a?X-Amz-Signature=abc",
    ],
)
def test_credentials_are_forbidden(uri: str) -> None:
    assert refusal(uri) is ErrorCode.REF_FORBIDDEN


def test_a_refusal_names_the_place_and_does_not_repeat_the_secret() -> None:
    with pytest.raises(ContractError) as refused:
        check_ref("https://user:hunter2@files.example/a", RefPolicy(), "/input_ref/uri")
    assert "hunter2" not in str(refused.value)
    assert [problem.pointer for problem in refused.value.problems] == ["/input_ref/uri"]


def test_names_of_artifacts_are_no_places() -> None:
    policy = RefPolicy(places=frozenset({"inbox"}))
    assert refusal("artifact://answers", policy) is None
    assert refusal("artifact://answers/v1/a%20b.json", policy) is None
    assert refusal("az://answers/a.json", policy) is ErrorCode.REF_FORBIDDEN


def test_places_are_hosts_containers_or_whole_domains() -> None:
    policy = RefPolicy(places=frozenset({"inbox", ".files.example"}))
    assert refusal("az://inbox/a", policy) is None
    assert refusal("https://eu.files.example/a", policy) is None
    assert refusal("https://EU.Files.Example/a", policy) is None
    assert refusal("https://evilfiles.example/a", policy) is ErrorCode.REF_FORBIDDEN
    assert refusal("az://other/a", policy) is ErrorCode.REF_FORBIDDEN


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST", "[::1]:443"])
def test_private_hosts_of_https_refs_need_permission(host: str) -> None:
    assert refusal(f"https://{host}/a") is ErrorCode.REF_FORBIDDEN
    assert refusal(f"https://{host}/a", RefPolicy(allow_private_addresses=True)) is None


@pytest.mark.parametrize("uri", ["https://127.1/a", "https://files.example./a", "https://1/a?b"])
def test_a_misspelt_host_is_forbidden_whatever_is_permitted(uri: str) -> None:
    assert refusal(uri) is ErrorCode.REF_FORBIDDEN
    assert refusal(uri, RefPolicy(allow_private_addresses=True)) is ErrorCode.REF_FORBIDDEN


@pytest.mark.parametrize("host", ["ä.example", "a%2e", "a_b:", "[v1.a]", "[::1]b", "a\\b", "a,b"])
def test_a_host_that_parsers_may_read_differently_is_invalid(host: str) -> None:
    assert refusal(f"https://{host}/a") is ErrorCode.REF_INVALID


def test_containers_and_buckets_are_no_hosts() -> None:
    assert refusal("az://localhost/a") is None
    assert refusal("s3://127/a") is None


class TestTenantFolders:
    @pytest.mark.parametrize(
        ("tenant_id", "folder"),
        [
            ("acme", "acme"),
            ("Acme & Söhne", "Acme%20%26%20S%C3%B6hne"),
            ("..", "%252E%252E"),
            ("a/b", "a%252Fb"),
            ("a%2Fb", "a%25252Fb"),
        ],
    )
    def test_a_folder_is_one_segment_of_a_uri(self, tenant_id: str, folder: str) -> None:
        assert tenant_folder(tenant_id) == folder
        assert refusal(f"az://workspace/{folder}/job_1/") is None

    @given(st.text(min_size=1), st.text(min_size=1))
    def test_no_two_tenants_share_a_folder(self, one: str, other: str) -> None:
        folders = {unquote(tenant_folder(tenant_id)) for tenant_id in (one, other)}
        assert len(folders) == len({one, other})


class TestPayloads:
    def test_every_text_with_a_credential_is_pointed_at(self) -> None:
        payload = {
            "a/b": ["see https://u:p@files.example/x.", 1],
            "c": {"d": "https://files.example/x?sv=1&sig=abc"},
        }
        with pytest.raises(ContractError) as refused:
            check_no_credentials(payload, "/payload")
        assert refused.value.code is ErrorCode.REF_FORBIDDEN
        pointers = [problem.pointer for problem in refused.value.problems]
        assert pointers == ["/payload/a~1b/0", "/payload/c/d"]

    def test_plain_text_is_left_alone(self) -> None:
        payload = {
            "prompt": "Write to a@b.example, see https://files.example/x?signed=no",
            "odd": "https://[::1 is no uri",
            "user": "ssh://git@host/repository",
        }
        check_no_credentials(payload, "/payload")
