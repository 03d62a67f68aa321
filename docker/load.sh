#!/usr/bin/env bash
# Puts the photos of the image `data` into a bucket, and its models into a folder for the gateway. What is there already
# stays: a second run is quick. The store is what AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY say.
set -euo pipefail
cd "$(dirname "$0")/.."
bucket=${BUCKET:-photos} models=${MODELS:-/models}

aws s3api head-bucket --bucket "$bucket" 2>/dev/null || aws s3 mb "s3://$bucket"
aws s3 sync .cache/photos "s3://$bucket" --exclude '.*' --size-only --only-show-errors
# Without the golden values beside them, which are for tests.
cp --update --preserve=timestamps .cache/models/*.onnx .cache/models/*.json "$models/"
echo "load: $(find .cache/photos -type f ! -name '.*' | wc -l) objects in s3://$bucket," \
  "$(find "$models" -name '*.onnx' | wc -l) models in $models"
