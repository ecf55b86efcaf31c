"""Objects in S3, or in a store that speaks its protocol.

`places` and `storage` need no further package; the other modules need the extra `s3`, and are
loaded when the first object is read or written.
"""
