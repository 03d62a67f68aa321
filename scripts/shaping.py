"""`tc` settings of a shaped link, and helpers that run commands."""

import contextlib
import subprocess

# Bytes that the token bucket passes at once.
BURST_BYTES = 32_000
# Bytes that may wait in the queue: all requests of a reader, up to a hundred connections with a photo each. A lost packet would
# measure TCP's retransmission timeout instead of the link: up to seconds over a slow one.
QUEUE_BYTES, QUEUE_SECONDS = 16_000_000, 0.2


def shaper(bits_per_second: float) -> list[str]:
    """The token bucket filter for `tc`. A fast link needs a larger bucket, since the kernel fills it once per tick."""
    burst = max(BURST_BYTES, round(bits_per_second / 8 / 250))
    limit = max(QUEUE_BYTES, round(bits_per_second / 8 * QUEUE_SECONDS))
    return ["tbf", "rate", f"{bits_per_second:.0f}bit", "burst", str(burst), "limit", str(limit)]


def run(*command: str) -> None:
    """Runs a command and hides its output. A failure raises."""
    subprocess.run(command, check=True, capture_output=True, text=True)


def attempt(*command: str) -> None:
    """Runs a command that removes something, and ignores failure: the thing may be gone already."""
    with contextlib.suppress(OSError):
        subprocess.run(command, check=False, capture_output=True)
