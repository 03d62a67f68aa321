"""Shared by demos and benchmarks: the programs of this repository, and S3 clients."""

import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable

import boto3
from botocore.config import Config

ROOT = pathlib.Path(__file__).resolve().parents[1]
BINARIES = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("DEMO_PROFILE", "release")
KEYS = {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "demo-secret", "AWS_REGION": "us-east-1"}


def s3(endpoint: str, keys: dict[str, str] = KEYS, **config: object):
    """A plain boto3 client."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
        region_name=keys["AWS_REGION"],
        config=Config(s3={"addressing_style": "path"}, **config),
    )


def run_program(name: str, *arguments: object, cores: set[int] | None = None, **environment: str) -> str:
    """Runs a program of this repository, pinned to `cores` if given, and returns its output."""
    command = [str(BINARIES / name), *map(str, arguments)]
    ended = subprocess.run(
        command,
        env=dict(os.environ) | KEYS | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
    )
    if ended.returncode != 0:
        sys.exit(f"`{name} {' '.join(command[1:])}` exited with {ended.returncode}")
    return ended.stdout


def columns(lines: list[tuple[str, ...]]) -> str:
    """A table of texts, the first column on the left, the others on the right."""
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    aligned = ([f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)] for line in lines)
    return "\n".join(f"  {line[0]:<{widths[0]}}  {'  '.join(cells[1:])}" for line, cells in zip(lines, aligned, strict=True))


def end(*processes: subprocess.Popen) -> None:
    """Terminates processes and waits for them; kills those that do not end within 10 s."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run(main: Callable[[], None]) -> None:
    """Runs a script so that its cleanup also runs on SIGTERM and SIGINT."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
