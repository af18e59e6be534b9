"""What this package raises itself. The messages read `fence: what happened: what to do`."""


class FenceError(Exception):
    """The base of all of them."""


class CannotLoad(FenceError):
    """The connection cannot load extensions."""


class Held(FenceError):
    """The time to wait was over and somebody else still holds the key. Nothing was run."""


class LeaseLost(FenceError):
    """The lease ended before its holder was done. What it wrote late was refused, if it was written with the fence."""


class PermitLost(FenceError):
    """The permit ended before its holder was done."""
