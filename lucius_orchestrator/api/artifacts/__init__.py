"""Artifacts over HTTP: sessions that bring content, versions of named artifacts, reading, and
collections. The bytes themselves pass only where the storage is files of this deployment."""
