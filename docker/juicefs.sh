#!/bin/sh
# Starts the S3 gateway of JuiceFS, whose front end is MinIO's code, over one folder: metadata in SQLite, data in files.
# MINIO_ROOT_USER and MINIO_ROOT_PASSWORD are its only account. Usage: juicefs.sh [FLAG...], flags of `juicefs gateway`.
set -eu
metadata=sqlite3:///store/metadata.db
[ -e /store/metadata.db ] || juicefs format --storage file --bucket /store/data/ --trash-days 0 "$metadata" store
exec juicefs gateway --multi-buckets --keep-etag --no-banner --no-usage-report "$@" "$metadata" 0.0.0.0:9000
