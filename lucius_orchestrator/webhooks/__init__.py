"""Tells the addresses of a job how it ended: signed, over https, at least once."""

from lucius_orchestrator.webhooks.delivery import WebhookDelivery
from lucius_orchestrator.webhooks.policy import WebhookPolicy
from lucius_orchestrator.webhooks.sender import WebhookSender
from lucius_orchestrator.webhooks.signature import (
    InvalidSignature,
    WebhookKeys,
    signature_header,
    tenant_key,
    verify,
)

__all__ = [
    "InvalidSignature",
    "WebhookDelivery",
    "WebhookKeys",
    "WebhookPolicy",
    "WebhookSender",
    "signature_header",
    "tenant_key",
    "verify",
]
