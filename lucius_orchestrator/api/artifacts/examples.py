"""One example of everything about artifacts that goes in or out."""

from typing import Any

Example = dict[str, Any]

UPLOAD_ID = "up_9f86d081884c7d659a2feaa0c55ad015"
OBJECT_KEY = "ob_0f1e2d3c4b5a69788796a5b4c3d2e1f0"
DIGEST = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
_PATH = f"/v1/artifacts/uploads/{UPLOAD_ID}"
_URL = f"https://lucius.example/v1/artifacts/objects/{OBJECT_KEY}"
_UPLOAD: Example = {
    "upload_id": UPLOAD_ID,
    "tenant_id": "acme",
    "state": "committed",
    "digest": DIGEST,
    "length": 5,
    "part_size": 16777216,
    "part_count": 1,
    "challenge": "5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592",
    "created_at": "2026-01-27T10:00:00Z",
    "expires_at": "2026-01-28T10:00:00Z",
    "reason": None,
    "uri": f"artifact://blobs/{DIGEST}",
    "links": {
        "self": _PATH,
        "sign": f"{_PATH}:sign",
        "dedupe": f"{_PATH}:dedupe",
        "complete": f"{_PATH}:complete",
        "abort": f"{_PATH}:abort",
    },
}
_VERSION: Example = {
    "tenant_id": "acme",
    "name": "invoices",
    "version": 3,
    "state": "published",
    "entries": [
        {
            "path": "scan.pdf",
            "digest": DIGEST,
            "length": 5,
            "media_type": "application/pdf",
            "uri": "artifact://invoices/v3/scan.pdf",
        }
    ],
    "created_at": "2026-01-27T10:00:00Z",
    "created_by": "ada",
    "published_at": "2026-01-27T10:00:00Z",
    "tombstoned_at": None,
    "retained_until": None,
    "reason": None,
    "producer": {
        "jobId": "job_0197f3c2d1e07000a000000000000001",
        "stepId": "step_03",
        "attempt_no": 1,
        "epoch": 1,
    },
}

EXAMPLES: dict[str, Example] = {
    "NewUpload": {"tenant_id": "acme", "digest": DIGEST, "length": 5},
    "PartNumbers": {"parts": [1]},
    "Proof": {"proof": "88aab3ede8d3adf94d26ab90d3bafd4a2083070c3bcce9c014ee04a443847c0b"},
    "NewVersion": {
        "tenant_id": "acme",
        "entries": [{"path": "scan.pdf", "digest": DIGEST, "media_type": "application/pdf"}],
    },
    "OfTenant": {"tenant_id": "acme"},
    "Tombstoning": {"tenant_id": "acme", "retention_seconds": 604800, "reason": "replaced"},
    "NewRun": {"dry_run": True},
    "UploadView": _UPLOAD,
    "UploadProgress": {
        **_UPLOAD,
        "state": "parts_uploading",
        "uri": None,
        "received": [[1, 1]],
    },
    "SignedParts": {
        "parts": [
            {
                "number": 1,
                "method": "PUT",
                "url": f"{_URL}/parts/1?expires=1769511600&length=5&signature=88aab3",
                "headers": {},
                "length": 5,
                "expires_at": "2026-01-27T11:00:00Z",
            }
        ]
    },
    "ContentView": {
        "uri": "artifact://invoices/v3/scan.pdf",
        "digest": DIGEST,
        "length": 5,
        "media_type": "application/pdf",
        "file_name": "scan.pdf",
        "method": "GET",
        "url": f"{_URL}?expires=1769511600&signature=4f2d1c",
        "headers": {},
        "expires_at": "2026-01-27T11:00:00Z",
    },
    "ArtifactPage": {
        "artifacts": [
            {
                "name": "invoices",
                "latest": 3,
                "published": 3,
                "changed_at": "2026-01-27T10:00:00Z",
            }
        ],
        "next_cursor": None,
    },
    "VersionPage": {"versions": [_VERSION], "next_cursor": None},
    "VersionView": _VERSION,
    "RunView": {
        "report": None,
        "candidates": [
            {
                "subject": f"artifact://blobs/{DIGEST}",
                "bytes": 5,
                "state": "tombstoned",
                "goes": False,
                "why": "can be revived until 2026-02-03 10:00 UTC",
            }
        ],
        "more": False,
    },
}
"""By the name of the schema."""

TEXTS: dict[str, str] = {"readObject": "hello", "putPart": "hello"}
"""Bytes, by operation."""
