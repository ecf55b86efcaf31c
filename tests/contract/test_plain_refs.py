"""The short way for plain refs leads where the long way leads."""

from hypothesis import given
from hypothesis import strategies as st

from lucius_contract import refs
from lucius_contract.errors import ContractError
from lucius_contract.refs import RefPolicy, check_ref

POLICIES = [
    RefPolicy(),
    RefPolicy(schemes=frozenset({"az"})),
    RefPolicy(places=frozenset({"inbox", ".example.com"})),
    RefPolicy(allow_private_addresses=True),
]
pieces = st.sampled_from(
    [
        "az",
        "https",
        "file",
        "ftp",
        "://",
        "/",
        "..",
        ".",
        "inbox",
        "a.example.com",
        "INBOX",
        "%2e",
        "127.0.0.1",
        "localhost",
        "10.0.0",
        "0x7f",
        "x" * 64,
        "@",
        ":",
        "80",
        "?sig=x",
        "#",
        " ",
        "ä",
        "a",
        "x.pdf",
    ]
)
uris = st.one_of(
    st.lists(pieces, max_size=9).map("".join),
    st.lists(pieces, max_size=6).map(lambda parts: "az://" + "".join(parts)),
    st.lists(pieces, max_size=6).map(lambda parts: "https://" + "".join(parts)),
)


def outcome(uri: str, policy: RefPolicy) -> str:
    try:
        check_ref(uri, policy, "/uri")
    except ContractError as error:
        return str(error)
    return "allowed"


@given(uris, st.sampled_from(POLICIES))
def test_a_plain_ref_is_judged_as_any_other(uri: str, policy: RefPolicy) -> None:
    plain = refs._PLAIN
    judged = outcome(uri, policy)
    try:
        refs._PLAIN = refs.re.compile("(?!)")  # type: ignore[attr-defined]
        assert outcome(uri, policy) == judged
    finally:
        refs._PLAIN = plain
