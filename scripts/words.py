"""Parser for the words `key=value` of the scripts in this directory."""

import sys


def stop(sentence: str) -> None:
    """Prints an error and exits with code 2."""
    print(f"error: {sentence}", file=sys.stderr)
    sys.exit(2)


def options(words: list[str], known: list[str] | None = None) -> dict[str, str]:
    """Values by key. If `known` is set, only these keys are accepted."""
    for word in words:
        if "=" not in word:
            stop(f"expected key=value, got `{word}`")
        key = word.split("=", 1)[0]
        if known is not None and key not in known:
            stop(f"unknown option `{key}`: expected {', '.join(known)}")
    return dict(word.split("=", 1) for word in words)


def whole(key: str, text: str, least: int) -> int:
    """Parses a whole number."""
    try:
        number = int(text)
    except ValueError:
        stop(f"{key}={text}: expected a whole number")
    if number < least:
        stop(f"{key}={text}: must be {least} or more")
    return number
