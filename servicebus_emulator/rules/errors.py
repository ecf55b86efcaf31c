"""What can be wrong with a rule."""


class RuleError(ValueError):
    """A rule that cannot be used as it is written; the text says where and why."""


class FilterFailed(Exception):
    """A filter that was accepted met a message on which it cannot be evaluated."""
