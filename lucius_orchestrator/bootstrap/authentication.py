"""Who may call, by what the settings name."""

from pathlib import Path

from lucius_artifacts.signing import UrlSigner
from lucius_orchestrator.bootstrap.stores import make_folder
from lucius_orchestrator.engine.engine import World
from lucius_orchestrator.security.authentication import (
    AnyAuthenticator,
    KindOfCredential,
    NoAuthentication,
)
from lucius_orchestrator.security.callback_tokens import CallbackTokens, load_or_create_key
from lucius_orchestrator.security.callers import Authenticator
from lucius_orchestrator.security.issuers import JwksSource, JwtAuthenticator
from lucius_orchestrator.security.keys import KeyAuthenticator, KeyFile
from lucius_orchestrator.settings import Settings


def callback_tokens_of(settings: Settings, world: World) -> CallbackTokens:
    """Signed by the keys that are set, else by one that the data folder keeps."""
    keys = [secret.reveal().encode() for secret in settings.callback_keys]
    if not keys:
        make_folder(settings.data_dir)
        keys = [load_or_create_key(settings.data_dir / "callback.key")]
    return CallbackTokens(keys, world.clock)


def invoker_keys_of(settings: Settings) -> list[str]:
    """Of the internal API: those that are set, else one that the data folder keeps."""
    if settings.invoker_keys:
        return [secret.reveal() for secret in settings.invoker_keys]
    make_folder(settings.data_dir)
    return [load_or_create_key(invoker_key_file(settings), "the invoker").hex()]


def invoker_key_file(settings: Settings) -> Path:
    return settings.data_dir / "invoker.key"


def artifact_signer_of(settings: Settings, world: World) -> UrlSigner:
    """Of the addresses of objects: by the keys that are set, else by one that the data folder
    keeps."""
    keys = [secret.reveal().encode() for secret in settings.artifacts.keys]
    if not keys:
        make_folder(settings.data_dir)
        keys = [load_or_create_key(settings.data_dir / "artifacts.key", "artifacts")]
    return UrlSigner(keys, world.clock)


def authenticator_of(settings: Settings, world: World) -> Authenticator:
    if not settings.auth:
        return NoAuthentication()
    kinds: list[KindOfCredential] = [KeyAuthenticator(KeyFile(settings.api_keys_file, world.clock))]
    if settings.jwks_url is not None:
        assert settings.jwt_issuer is not None, "the settings were checked"
        assert settings.jwt_audience is not None, "the settings were checked"
        source = JwksSource(settings.jwks_url, world.clock)
        kinds.append(
            JwtAuthenticator(source, settings.jwt_issuer, settings.jwt_audience, world.clock)
        )
    return AnyAuthenticator(kinds)
