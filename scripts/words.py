"""Words of a command, `key=value`, as the scripts beside this file take them."""

import sys


def stop(sentence: str) -> None:
    """Ends the program as for any command that cannot be carried out."""
    print(f"error: {sentence}", file=sys.stderr)
    sys.exit(2)


def options(words: list[str], known: list[str] | None = None) -> dict[str, str]:
    """Values by key; where `known` is given, of these keys alone."""
    for word in words:
        if "=" not in word:
            stop(f"`{word}` is no option: options are written key=value")
        key = word.split("=", 1)[0]
        if known is not None and key not in known:
            stop(f"there is no option `{key}`; there are {', '.join(known)}")
    return dict(word.split("=", 1) for word in words)


def whole(key: str, text: str, least: int) -> int:
    """A whole number."""
    try:
        number = int(text)
    except ValueError:
        stop(f"{key}={text}: expected a whole number")
    if number < least:
        stop(f"{key}={text}: must be {least} or more")
    return number
