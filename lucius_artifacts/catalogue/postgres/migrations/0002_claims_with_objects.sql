-- The tenant's own copy of the content; NULL: the blob's object.
ALTER TABLE lucius_artifacts_claims ADD COLUMN object_key text COLLATE "C";
