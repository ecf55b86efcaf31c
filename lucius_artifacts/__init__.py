"""Documents in, results out: resumable uploads, immutable versions, deletion that is never rash."""
