"""The story that the Python programs of this folder play, and how they tell what they saw.

A holder with the fence FIRST was late: another one, with the fence SECOND, wrote the row meanwhile. Each way to write
is then tried with the guards of GUARDS, each time on fresh data.

A line that is told reads `KIND: what: cell | cell`; README.md says what becomes of it.
"""

FIRST, SECOND, THIRD = (33132838977483490749893836800000 + count for count in (1, 2, 3))
GUARDS = (None, "holder", "write")


def tell(kind, what, *cells):
    assert ": " not in what, what
    print(f"{kind}: {what}: {' | '.join(map(str, cells))}")


def raised(act):
    """The error that this raises."""
    try:
        act()
    except Exception as error:
        return error
    raise AssertionError("it went well")


def message(error):
    """The first line of an error, with its class."""
    name = f"{type(error).__module__}.{type(error).__name__}".removeprefix("builtins.")
    return f"`{name}: {str(error).splitlines()[0]}`"


def outcome(act, summary):
    """What came of a write, in a word or two: `lands` if the summary is another one than before."""
    before = summary()
    try:
        act()
    except Exception as error:
        assert summary() == before, "refused and written"
        told = str(error).partition("fence: ")[2].partition(":")[0]
        return told or f"`{type(error).__name__}`"
    return "0 rows" if summary() == before else "**lands**"
