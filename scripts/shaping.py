"""What the kernel is told of a link: how wide it is, and how commands tell it."""

import contextlib
import subprocess

# What the kernel's shaper lets through at once.
BURST_BYTES = 32_000
# What waits at most: all that a reader has asked for at once, a hundred connections with a photo each. Where packets are lost,
# what is measured is how long TCP takes to find out: seconds, now and then, over a thin link.
QUEUE_BYTES, QUEUE_SECONDS = 16_000_000, 0.2


def shaper(bits_per_second: float) -> list[str]:
    """A queueing discipline for `tc`. A fast link needs a larger bucket: it is filled once a tick."""
    burst = max(BURST_BYTES, round(bits_per_second / 8 / 250))
    limit = max(QUEUE_BYTES, round(bits_per_second / 8 * QUEUE_SECONDS))
    return ["tbf", "rate", f"{bits_per_second:.0f}bit", "burst", str(burst), "limit", str(limit)]


def run(*command: str) -> None:
    """Runs a command that says nothing when it is well."""
    subprocess.run(command, check=True, capture_output=True, text=True)


def attempt(*command: str) -> None:
    """Runs a command that takes something away, which may be gone already."""
    with contextlib.suppress(OSError):
        subprocess.run(command, check=False, capture_output=True)
