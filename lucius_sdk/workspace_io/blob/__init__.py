"""The workspace in Azure Blob Storage.

`places` reads uris and needs no package of Azure; the other modules do.
"""
