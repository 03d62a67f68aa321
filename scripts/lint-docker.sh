#!/usr/bin/env bash
# Every shell script of the repository, and what of docker/ can be checked without a Docker engine: the Dockerfile by
# hadolint, the compose files against the schema of their specification, and by lint_docker.py, which tests/docker tests, what no
# schema knows.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh lint
bin=$PWD/.venv-lint/bin
compose=(docker/compose.yaml docker/compose.*.yaml)

scripts=()
while IFS= read -r -d '' file; do
  IFS= read -r first 2>/dev/null <"$file" || continue
  if [[ $first =~ ^#!.*[/\ ](ba|da)?sh$ ]]; then scripts+=("$file"); fi
done < <(git grep -zlI -e '^#!' --untracked)
"$bin/shellcheck" "${scripts[@]}"
echo "lint-docker: ${#scripts[@]} shell scripts, nothing found"

mapfile -d '' -t dockerfiles < <(find docker -name '*Dockerfile' -print0)
"$bin/hadolint" "${dockerfiles[@]}"
echo "lint-docker: ${dockerfiles[*]}, nothing found"

"$bin/check-jsonschema" --quiet --builtin-schema vendor.compose-spec compose.yaml "${compose[@]}"
echo "lint-docker: compose.yaml ${compose[*]} as the specification of compose has it"
"$bin/python" -m pytest -q tests/docker
"$bin/python" scripts/lint_docker.py "${compose[@]}"

# Compose reads its files without an engine; where it is there, it does.
if docker compose version >/dev/null 2>&1; then
  for profile in minio gateway bench monitoring; do
    docker compose --profile "$profile" config --quiet
    docker compose --file docker/compose.yaml --profile "$profile" config --quiet
    docker compose --file docker/compose.yaml --file docker/compose.seaweedfs.yaml --profile "$profile" config --quiet
  done
  echo "lint-docker: $(docker compose version) reads them, with each profile"
fi
