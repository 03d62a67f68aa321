#!/usr/bin/env bash
# Starts the gateway in a root of docker-steps.sh like the image would: with its user, environment, command, read-only root
# and health check. Run it in its own network namespace, since the image's ports may be in use.
# Usage: docker-steps-check.sh ROOT STAGES
set -euo pipefail
cd "$(dirname "$0")/.."
root=$1 stages=$2
say() { printf 'docker-steps: %s\n' "$*"; }
fail() { say "$@" >&2; exit 1; }
instruction() { jq -r --arg kind "$1" '.gateway[] | select(.do == $kind) | .with' "$stages"; }

user=$(instruction USER)
mapfile -t environment < <(instruction ENV | jq -r '.[]')
mapfile -t entrypoint < <(instruction ENTRYPOINT | jq -r '.[]')
mapfile -t command < <(instruction CMD | jq -r '.[]')
mapfile -t health < <(instruction HEALTHCHECK | sed 's/^.* CMD //' | jq -r '.[]')
models=(.cache/models/*.onnx) descriptions=(.cache/models/*.json)
install -m 644 "${models[@]}" "${descriptions[@]}" "$root/models/"

mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
ip link set lo up
group=$(chroot "$root" id -g "$user")
as_image=(env -i PATH=/usr/local/bin:/usr/bin:/bin "${environment[@]}"
  PUSHDOWN_STORE=/tmp/store PUSHDOWN_ACCESS_KEY=check PUSHDOWN_SECRET_KEY=check-secret PUSHDOWN_MODELS=/models
  setpriv --no-new-privs "$(command -v chroot)" --userspec="+$user:+$group" --groups= "$root")

user=$("${as_image[@]}" id)
say "user: $user"
if "${as_image[@]}" touch /models/written 2>/dev/null; then fail "the root is writable, expected a read-only root"; fi
for file in /usr/local/bin/pushdown-gateway /usr/local/lib/libonnxruntime.so; do
  libraries=$("${as_image[@]}" ldd "$file")
  if grep 'not found' <<<"$libraries"; then fail "$file: missing libraries"; fi
  say "$file: $(grep -c '=>' <<<"$libraries") system libraries, all found"
done
version=$("${as_image[@]}" "${entrypoint[@]}" --version)
[[ $version == pushdown-gateway\ * ]] || fail "--version: expected pushdown-gateway and a number, found \`$version\`"
say "--version: $version"
"${as_image[@]}" "${entrypoint[@]}" serve --help >/dev/null
say "serve --help: ok"

"${as_image[@]}" "${entrypoint[@]}" "${command[@]}" >"$root/tmp/log" 2>&1 &
gateway=$!
wait_for() { # timeout in seconds, command...
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $end ] || ! kill -0 $gateway 2>/dev/null; then
      cat "$root/tmp/log" >&2
      fail "\`$*\` did not succeed in time"
    fi
    sleep 0.2
  done
}
wait_for 10 "${as_image[@]}" "${health[@]}"
say "health check: ${health[*]}: ok"
wait_for 120 "${as_image[@]}" "${health[@]}" --ready
found=$(curl --fail --silent http://127.0.0.1:9901/status.json | jq -r '.models[] | "\(.name) on \(.execution_provider)"')
[ "$(wc -l <<<"$found")" -eq ${#models[@]} ] && [ -n "$found" ] || { cat "$root/tmp/log" >&2; fail "expected ${#models[@]} models, found: $found"; }
say "ONNX Runtime runs ${found//$'\n'/, }"
curl --fail --silent http://127.0.0.1:9901/metrics | grep -q '^pushdown_connections ' || fail "no metrics"
kill -TERM $gateway
wait $gateway || fail "SIGTERM: the gateway exited with $?"
say "SIGTERM: it exited with 0"
