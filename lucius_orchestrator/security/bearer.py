"""The `Authorization: Bearer` header."""

from lucius_contract.errors import ContractError, ErrorCode


def unauthenticated(message: str) -> ContractError:
    return ContractError(ErrorCode.UNAUTHENTICATED, message)


def bearer_token(authorization: str | None) -> str:
    """The token in the header; UNAUTHENTICATED where there is none."""
    scheme, _, token = (authorization or "").partition(" ")
    token = token.strip(" ")
    if scheme.lower() != "bearer" or not token:
        raise unauthenticated("send a credential: Authorization: Bearer <key or token>")
    return token
