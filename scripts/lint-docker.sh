#!/usr/bin/env bash
# Checks every shell script of the repository, the workflows of .github against their schema, and docker/ without a Docker engine: the
# Dockerfile with hadolint, the compose files against the schema of their specification and with lint_docker.py, which tests/docker tests.
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
echo "lint-docker: ${#scripts[@]} shell scripts, no findings"

mapfile -d '' -t dockerfiles < <(find docker tests/containers -name '*Dockerfile' -print0)
"$bin/hadolint" "${dockerfiles[@]}"
echo "lint-docker: ${dockerfiles[*]}, no findings"

"$bin/check-jsonschema" --quiet --builtin-schema vendor.compose-spec compose.yaml "${compose[@]}"
echo "lint-docker: compose.yaml ${compose[*]} match the schema"
"$bin/check-jsonschema" --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
"$bin/check-jsonschema" --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
echo "lint-docker: .github matches the schemas"
"$bin/python" -m pytest -q tests/docker
"$bin/python" scripts/lint_docker.py "${compose[@]}"

# Docker Compose parses its files without an engine, if it is installed.
if docker compose version >/dev/null 2>&1; then
  for profile in minio gateway bench monitoring; do
    docker compose --profile "$profile" config --quiet
    docker compose --file docker/compose.yaml --profile "$profile" config --quiet
    for overlay in docker/compose.*.yaml; do
      docker compose --file docker/compose.yaml --file "$overlay" --profile "$profile" config --quiet
    done
  done
  echo "lint-docker: $(docker compose version) parses them with each profile"
fi
