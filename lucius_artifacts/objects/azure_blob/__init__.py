"""Objects as blobs of one container in Azure Storage.

    staging/<key>     a place for parts: an empty blob, and the blocks that are put beside it
    objects/<key>     a frozen object

A part is a block, which a client puts with a signature for the one blob `staging/<key>` that allows
to write. Such a signature allows more than that: to put another blob there, to commit other blocks,
to take a lease, and to break one. So no lease of ours would keep its holder out, and whatever has
that name can be changed until the last signature has expired.

Therefore an object has another name, for which no signature to write is ever made. Freezing commits
the blocks, and copies exactly that blob, by its ETag, inside the service. The bytes never pass
through here, and within one account the copy is a matter of moments. Whatever is put at the old
name afterwards is in no object; it goes with the object, and blocks that are never committed are
dropped by the service after a week.
"""

from lucius_artifacts.objects.azure_blob.objects import AzureBlobObjects

__all__ = ["AzureBlobObjects"]
