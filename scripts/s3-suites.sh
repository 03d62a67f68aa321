#!/usr/bin/env bash
# Runs third-party S3 test suites on SeaweedFS, directly and through the gateway. Usage: s3-suites.sh [OPTION...], see `s3-suites.sh --help`.
# S3_TESTS=DIR adds a checkout of ceph/s3-tests, which no package registry has.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh suites

# The package of minio-py has no tests; its source on PyPI has them.
version=$(sed -n 's/^minio==//p' scripts/requirements/suites.txt)
hash=95898b7a023fbbfde375985aa77e2cd6a0762268db79cf886f002a9ea8e68598
cache=.cache/suites
if [ ! -e "$cache/minio-$version/tests/functional/tests.py" ]; then
  echo "s3-suites: downloading the source of minio-py $version"
  mkdir -p "$cache"
  .venv-suites/bin/python -m pip download --quiet --disable-pip-version-check --no-input --no-deps --no-binary minio \
    --dest "$cache" "minio==$version"
  echo "$hash  $cache/minio-$version.tar.gz" | sha256sum --check --quiet
  tar -xzf "$cache/minio-$version.tar.gz" -C "$cache"
fi

case " $* " in
  *" --help "* | *" -h "*) ;;
  *) "${CARGO:-cargo}" build --locked --workspace --tests ;;
esac
exec .venv/bin/python scripts/s3_suites.py "$@"
