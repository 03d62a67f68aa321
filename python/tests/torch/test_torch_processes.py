"""What needs a process of its own: imports, Ctrl-C, and the example with a kill."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "pytorch" / "train.py"


def python(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_torch_is_not_imported_with_pushdown():
    run = python("import sys, pushdown; print('torch' in sys.modules, 'numpy' in sys.modules)")
    assert (run.stdout, run.returncode) == ("False False\n", 0), run.stderr


def test_the_error_without_torch_names_the_extra():
    run = python("import sys; sys.modules['torch'] = None; import pushdown.torch")
    assert run.returncode == 1
    assert "ImportError: cannot import pushdown.torch: " in run.stderr
    assert "pip install 'pushdown-client[torch]'" in run.stderr


def test_ctrl_c_ends_a_loop_at_once(source, options):
    pytest.importorskip("torch", reason="torch is not installed")
    script = f"""
        import os, signal, pushdown.torch as pt
        from pushdown import Store
        # A shell starts jobs in the background with SIGINT ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pt.Loader({source!r}, "decode | resize(256, 256) | to_float", **{options!r}) as loader:
            before = len(os.listdir("/proc/self/task"))
            try:
                while True:
                    for batch in loader:
                        print(batch.number, flush=True)
            except KeyboardInterrupt:
                pass
        print("threads left:", len(os.listdir("/proc/self/task")) - before)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process:
        try:
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
            # The loop has no end of its own.
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (output.splitlines()[-1], process.returncode) == ("threads left: 0", 0)


def train(
    source: str, endpoint: str, folder: Path, *arguments: str, processes: int = 1
) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("torch", reason="torch is not installed")
    launcher = [sys.executable]
    if processes > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    options = [
        "--data",
        source,
        "--endpoint",
        endpoint,
        "--batch-size",
        "4",
        "--checkpoint",
        str(folder / "train.pt"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [*launcher, str(EXAMPLE), *options, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=environment)


def test_the_example_resumes_after_a_kill_on_two_processes(tmp_path, source, endpoint):
    killed = train(source, endpoint, tmp_path, "--epochs", "1", "--save-every", "2", "--stop-after", "3")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not list(tmp_path.glob("*.tmp"))
    resumed = train(source, endpoint, tmp_path, "--epochs", "2", processes=2)
    assert resumed.returncode == 0, resumed.stderr
    assert "resumes at epoch 0, sample 8" in resumed.stdout
    line = r"epoch %d: loss \d+\.\d+, accuracy \d+\.\d%%; .* bottleneck"
    assert [bool(re.search(line % epoch, resumed.stdout)) for epoch in range(2)] == [True, True], (
        resumed.stdout
    )
    finished = train(source, endpoint, tmp_path, "--epochs", "2")
    assert (finished.returncode, finished.stdout) == (0, "resumes at epoch 2, sample 0\n"), finished.stderr
