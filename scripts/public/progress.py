"""A line of progress at least every ten seconds."""

from __future__ import annotations

import time


class Progress:
    def __init__(self, what: str, n: int) -> None:
        self.what, self.n = what, n
        self.began = self.shown = time.monotonic()

    def done(self, count: int) -> None:
        now = time.monotonic()
        if count == self.n or now - self.shown >= 8:
            self.shown = now
            print(f"{count}/{self.n} {self.what} after {now - self.began:.0f} s", flush=True)
