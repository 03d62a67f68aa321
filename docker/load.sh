#!/usr/bin/env bash
# Uploads the photos of the image `data` to a bucket, and copies its models to a folder for the gateway. Existing objects and files
# are skipped, so a second run is quick. AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY select the store.
set -euo pipefail
cd "$(dirname "$0")/.."
bucket=${BUCKET:-photos} models=${MODELS:-/models}

aws s3api head-bucket --bucket "$bucket" 2>/dev/null || aws s3 mb "s3://$bucket"
aws s3 sync .cache/photos "s3://$bucket" --exclude '.*' --size-only --only-show-errors
# The golden values in the same folder are for tests and are not copied.
cp --update --preserve=timestamps .cache/models/*.onnx .cache/models/*.json "$models/"
echo "load: $(find .cache/photos -type f ! -name '.*' | wc -l) objects in s3://$bucket," \
  "$(find "$models" -name '*.onnx' | wc -l) models in $models"
