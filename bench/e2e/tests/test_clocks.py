"""CPU time of a process with its children."""

import subprocess
import sys

import pytest

psutil = pytest.importorskip("psutil", reason="it is in .venv-e2e")

from ..clocks import tree_cpu_seconds  # noqa: E402

# Burns 0.2 s of CPU time.
BURN = "import time\nwhile time.process_time() < 0.2: pass\n"


@pytest.mark.parametrize("child", ["live", "ended"])
def test_the_clock_counts_children(child: str):
    wait = "import sys\nprint('done', flush=True)\nsys.stdin.read()\n"
    code = {
        "live": f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN + wait!r}])",
        "ended": f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}])\n{wait}",
    }[child]
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"done\n"
        assert tree_cpu_seconds(psutil.Process(process.pid)) >= 0.2
        process.stdin.close()
