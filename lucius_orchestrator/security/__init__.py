"""Who may do what: callers of the API, and services that answer directives.

Everything here fails closed. A credential that is missing, unknown, malformed, revoked or expired
is UNAUTHENTICATED; when the keys that it is checked against cannot be read, the answer is
UNAVAILABLE, and nobody gets in meanwhile. No message, and no repr, shows a secret or any part of
one.
"""
