"""A platform service written by hand, without the SDK, and the ways in which a team may get one
wrong. The conformance suite has to pass the first and to find every one of the others."""
