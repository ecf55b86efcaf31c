"""Places: every spelling of a uri is compared in one form, and none leads out of a prefix."""

from urllib.parse import quote, unquote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lucius_contract import places
from lucius_contract.places import (
    HTTPS,
    PUBLISHABLE_SCHEMES,
    READABLE_SCHEMES,
    STORAGE_SCHEMES,
    TENANT,
    Reach,
    TenantPlaces,
    normalised,
    read_prefix,
    workspace_of,
)
from lucius_contract.refs import tenant_folder

WORKSPACE = workspace_of("az://work/jobs/", "lucius")
OWN = ("az://inbox/{tenant}/", "s3://bucket/{tenant}/in/", "file:///srv/{tenant}/")
SEGMENTS = st.text(min_size=1).filter(lambda name: not _is_ambiguous(name))


def _is_ambiguous(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return True
    control = any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in name)
    return control or name in (".", "..") or any(mark in name for mark in "/\\")


def inputs(tenant: str = "acme", reach: Reach | None = None, *own: str) -> TenantPlaces:
    folder = tenant_folder(tenant)
    return TenantPlaces(WORKSPACE, folder, own or OWN, reach or Reach(), is_input=True)


def outputs(tenant: str = "acme", reach: Reach | None = None, *own: str) -> TenantPlaces:
    folder = tenant_folder(tenant)
    return TenantPlaces(WORKSPACE, folder, own or OWN, reach or Reach(), is_input=False)


class TestNormalForm:
    @pytest.mark.parametrize(
        ("uri", "form"),
        [
            ("az://inbox/a.pdf", "az://inbox/a.pdf"),
            ("az://inbox", "az://inbox/"),
            ("az://inbox/a/", "az://inbox/a/"),
            ("AZ://inbox/a", "az://inbox/a"),
            ("az://$web/%61%2d", "az://$web/a-"),
            ("s3://Bucket_1/a%20b", "s3://Bucket_1/a%20b"),
            ("s3://bucket/ä+(1).pdf", "s3://bucket/%C3%A4%2B%281%29.pdf"),
            ("az://inbox/%c3%a4", "az://inbox/%C3%A4"),
            ("az://inbox/%252e%252e/a", "az://inbox/%252e%252e/a"),
            ("file:/srv/a", "file:///srv/a"),
            ("file:////srv//a", "file:///srv/a"),
            ("file:///srv/.hidden", "file:///srv/.hidden"),
            ("file:///srv/a.", "file:///srv/a."),
            ("https://Files.Example:443/a?b=c#d", "https://files.example/a"),
            ("https://files.example:8443/", "https://files.example:8443/"),
            ("https://[2001:DB8::1]/a", "https://[2001:db8::1]/a"),
        ],
    )
    def test_a_uri_has_one(self, uri: str, form: str) -> None:
        assert normalised(uri) == form
        assert normalised(form) == form

    @pytest.mark.parametrize(
        "uri",
        [
            "az://inbox/../a",
            "az://inbox/./a",
            "az://inbox/a/..",
            "az://inbox/%2e%2E/a",
            "az://inbox/.%2e/a",
            "az://inbox/a%2Fb",
            "az://inbox/a%5Cb",
            "az://inbox/a\\b",
            "az://inbox/a%00",
            "az://inbox/a%0a",
            "az://inbox/%C3",
            "az://inbox/\ud800",
            "az://inbox/a%",
            "az://inbox/a%2",
            "az://inbox/a%zz",
            "az://inbox//a",
            "az://inbox/acme./a",
            "az://inbox/acme%2e/a",
            "az://inbox/a?b",
            "az://inbox/a#b",
            "az://inbox/a?",
            "az://user@inbox/a",
            "az://inbox:443/a",
            "az://in%62ox/a",
            "az:///a",
            "az:inbox/a",
            "s3://bucket//a",
            "file://host/a",
            "file:a",
            "https:///a",
            "https://b%C3%BCcher.example/a",
            "https://me@files.example/a",
            "https://files.example/a/../b",
            "https://files.example:port/",
            "artifact://answers",
            "ftp://host/a",
            "a",
            "az://inbox/a b",
            "az://in\tbox/a",
        ],
    )
    def test_what_could_be_read_in_two_ways_has_none(self, uri: str) -> None:
        with pytest.raises(ValueError, match=r"."):
            normalised(uri)

    @given(st.sampled_from(["file://", "s3://b"]), st.lists(SEGMENTS, min_size=1))
    @example("s3://b", ["%2F", "%252e"])
    def test_however_it_is_encoded(self, start: str, names: list[str]) -> None:
        every = "/".join("".join(f"%{byte:02x}" for byte in name.encode()) for name in names)
        usual = "/".join(quote(name, safe="") for name in names)
        form = normalised(f"{start}/{every}")
        assert form == normalised(f"{start}/{usual}") == f"{start}/{usual}"
        assert [unquote(segment) for segment in form.removeprefix(start).split("/")[1:]] == names

    @given(
        st.sampled_from(["az://a", "file://", "https://a.b", "s3://a-b"]),
        st.lists(st.sampled_from([*"/.aB-~_:?$", "%2e", "x.y", "/a"]), max_size=9).map("".join),
    )
    @example("az://a.-b", "/a")
    @example("az://a", "/b..c/...d/")
    def test_the_short_way_leads_where_the_long_way_leads(self, start: str, rest: str) -> None:
        normal = places._NORMAL
        if normal.fullmatch(start + rest):
            try:
                places._NORMAL = places.re.compile("(?!)")  # type: ignore[attr-defined]
                assert normalised(start + rest) == start + rest
            finally:
                places._NORMAL = normal


class TestPrefixes:
    @pytest.mark.parametrize(
        ("text", "prefix"),
        [
            ("az://inbox/{tenant}/", "az://inbox/{tenant}/"),
            ("az://{tenant}-docs/", "az://{tenant}-docs/"),
            ("s3://bucket/a%2bb/{tenant}/in/", "s3://bucket/a%2Bb/{tenant}/in/"),
            ("file:///srv/{tenant}/", "file:///srv/{tenant}/"),
            ("https://Files.Example/{tenant}/", "https://files.example/{tenant}/"),
        ],
    )
    def test_a_prefix_is_kept_in_its_normal_form(self, text: str, prefix: str) -> None:
        assert read_prefix(text, READABLE_SCHEMES) == prefix

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("inbox/", "must begin with one of artifact://, az://"),
            ("AZ://inbox/", "must begin with one of"),
            ("az://inbox/acme", "must end with a '/'"),
            ("az://inbox/{tennant}/", "placeholder other than {tenant}"),
            ("az://inbox/}/", "placeholder other than {tenant}"),
            ("file:///", "names no folder"),
            ("az://inbox/../", "dot segment"),
            ("https://{tenant}.example/", "names no host"),
        ],
    )
    def test_what_is_no_prefix_is_refused(self, text: str, reason: str) -> None:
        with pytest.raises(ValueError, match=reason):
            read_prefix(text, READABLE_SCHEMES)

    def test_an_output_place_has_a_scheme_that_is_published_to(self) -> None:
        with pytest.raises(ValueError, match="must begin with one of artifact://, az://, file://"):
            read_prefix("https://files.example/", PUBLISHABLE_SCHEMES)


class TestPlaces:
    @pytest.mark.parametrize(
        "uri",
        [
            "az://inbox/acme/a.pdf",
            "az://inbox/%61cme/a.pdf",
            "s3://bucket/acme/in/a",
            "file:/srv/acme/a",
            "artifact://invoices/v1/a.pdf",
        ],
    )
    def test_all_below_a_place_is_the_tenants(self, uri: str) -> None:
        assert inputs().problem(uri) is None
        assert outputs().problem(uri) is None

    @pytest.mark.parametrize(
        "uri",
        [
            "az://inbox/acme",
            "az://inbox/acme2/a",
            "az://inbox/ACME/a",
            "az://inbox/globex/a",
            "az://INBOX/acme/a",
            "az://inbox2/acme/a",
            "s3://inbox/acme/a",
            "az://inbox/acme/../globex/a",
            "AZ://inbox/acme/a",
        ],
    )
    def test_nothing_else_is(self, uri: str) -> None:
        assert inputs().problem(uri) is not None
        assert outputs().problem(uri) is not None

    def test_a_scheme_without_a_place_is_open_where_it_is_within_reach(self) -> None:
        reach = Reach(("file:///data/",), STORAGE_SCHEMES | {HTTPS})
        tenant = inputs("acme", reach, "az://inbox/{tenant}/", "https://files.example/a/")
        assert tenant.problem("s3://any/thing") is None
        assert tenant.problem("file:///any/thing") is None
        assert tenant.problem("az://any/thing") is not None
        assert tenant.problem("https://files.example/a/b?c=d") is None
        assert tenant.problem("https://files.example/b") is not None
        assert inputs("acme", reach).problem("https://bücher.example/any//thing") is None
        assert inputs("acme", reach).problem("file:///data/a") is None
        assert inputs("acme", reach).problem("file:///elsewhere/a") is not None

    def test_nothing_is_published_over_https(self) -> None:
        everything = Reach(schemes=STORAGE_SCHEMES | {HTTPS})
        problem = outputs("acme", everything).problem("https://files.example/a")
        assert problem is not None
        assert "never published to" in problem

    @given(st.text(min_size=1), st.text(min_size=1), st.sampled_from(OWN))
    @example("acme", "acme2", OWN[0])
    @example("a/b", "a", OWN[0])
    @example("..", ".", OWN[2])
    @example("Co.", "Co", OWN[0])
    @example("a%2Fb", "a/b", OWN[1])
    def test_no_tenant_reaches_a_place_of_another(self, one: str, other: str, place: str) -> None:
        assume(one != other)
        assume(not _is_half(one) and not _is_half(other))
        named = f"{place.replace(TENANT, tenant_folder(one))}a"
        assert inputs(one).problem(named) is None
        assert inputs(other).problem(named) is not None
        assert outputs(other).problem(named) is not None


def _is_half(text: str) -> bool:
    return any(0xD800 <= ord(character) < 0xE000 for character in text)


class TestWorkspace:
    EVERYTHING = Reach(("az://work/",), STORAGE_SCHEMES | {HTTPS})

    @given(st.text(min_size=1), st.text(min_size=1))
    @example("..", "a/b")
    @example("Co.", "Co")
    def test_a_tenant_reads_its_own_folder_alone(self, one: str, other: str) -> None:
        assume(one != other)
        assume(not _is_half(one) and not _is_half(other))
        own = f"{WORKSPACE.prefix}{tenant_folder(one)}/job_1/ocr/1/output.txt"
        assert inputs(one, self.EVERYTHING).problem(own) is None
        assert inputs(other, self.EVERYTHING).problem(own) is not None
        assert outputs(one, self.EVERYTHING).problem(own) is not None

    @pytest.mark.parametrize(
        "uri",
        [
            "az://work",
            "az://work/",
            "az://work/jobs",
            "az://work/jobs/lucius",
            "az://work/jobs/lucius/",
            "az://work/jobs/lucius/globex/a",
            "az://work/jobs/lucius/acme2/a",
            "az://work/jobs/lucius/ACME/a",
            "az://work/jobs/LUCIUS/globex/a",
            "az://WORK/jobs/lucius/globex/a",
            "az://work/jobs/%6cucius/globex/a",
            "az://work/jobs/luciu%73/globex/a",
        ],
    )
    def test_what_is_around_or_in_it_is_nobodys(self, uri: str) -> None:
        assert inputs("acme", self.EVERYTHING).problem(uri) is not None
        assert outputs("acme", self.EVERYTHING).problem(uri) is not None

    def test_its_letters_are_compared_as_a_file_system_may(self) -> None:
        workspace = workspace_of("file:///srv/B%C3%BCro", "lucius")
        tenant = TenantPlaces(workspace, "acme", (), self.EVERYTHING, is_input=True)
        assert tenant.problem("file:///srv/B%C3%9CRO/lucius/globex/a") is not None
        assert tenant.problem("file:///srv/Bu%CC%88ro/lucius/globex/a") is not None
        assert tenant.problem("file:///srv/Buero/lucius/globex/a") is None

    def test_what_is_beside_it_is_open_to_a_place(self) -> None:
        assert inputs("acme", self.EVERYTHING).problem("az://work/jobs/lucius2/a") is None
        assert outputs("acme", self.EVERYTHING).problem("az://work/results/a") is None
