#!/usr/bin/env bash
# Runs a small benchmark in the root of the image `bench` from docker-steps.sh, like docker/compose.yaml would: with its
# command, root with the container's capabilities, a read-only root, and eth0 shaped. Store and gateway are in another network
# namespace, connected by that device; SeaweedFS uses the script and the flags of docker/compose.seaweedfs.yaml.
# Usage, in an empty network namespace: docker-steps-bench.sh ROOT
set -euo pipefail
cd "$(dirname "$0")/.."
root=$1
say() { printf 'docker-steps: %s\n' "$*"; }
fail() { say "$@" >&2; exit 1; }

# Reads a compose file with every variable at its default.
compose() { # file, key...
  .venv-lint/bin/python - "$@" <<'PYTHON'
import pathlib, re, sys, yaml
text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", pathlib.Path(sys.argv[1]).read_text())
found = yaml.safe_load(text)["services"]
for key in sys.argv[2:]:
    found = found[key]
print("\n".join(found if isinstance(found, list) else [f"{name}={value}" for name, value in found.items()]))
PYTHON
}

mapfile -t store < <(compose docker/compose.seaweedfs.yaml store command)
mapfile -t store_environment < <(compose docker/compose.seaweedfs.yaml store environment)
mapfile -t load_environment < <(compose docker/compose.yaml load environment)
mapfile -t gateway_environment < <(compose docker/compose.yaml gateway environment)
mapfile -t bench < <(compose docker/compose.yaml bench command)
mapfile -t bench_environment < <(compose docker/compose.yaml bench environment)
capabilities=$(compose docker/compose.yaml bench cap_add | sed 's/^/+/' | paste -sd, | tr '[:upper:]' '[:lower:]')

# Volumes, and the files that Docker creates in every container.
install -d "$root"/{store,results,cache} "$root"/opt/pushdown/.cache/{e2e,tables}
install -m 644 docker/seaweedfs.sh "$root/seaweedfs.sh"
echo "127.0.0.1 localhost
198.18.2.2 store gateway" >"$root/etc/hosts"
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
for volume in tmp models store results cache opt/pushdown/.cache/e2e opt/pushdown/.cache/tables dev/shm; do
  install -d "$root/$volume" 2>/dev/null || true
  mount -t tmpfs -o mode=1777 volume "$root/$volume"
done

unshare --net sleep infinity &
peer=$!
while [ "$(readlink /proc/$peer/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
in_peer=(nsenter --net="/proc/$peer/ns/net")
ip link add name eth0 type veth peer name eth1 netns "$peer"
ip address add 198.18.2.1/30 dev eth0
"${in_peer[@]}" ip address add 198.18.2.2/30 dev eth1
for device in lo eth0; do ip link set "$device" up; done
for device in lo eth1; do "${in_peer[@]}" ip link set "$device" up; done

virtual=/opt/pushdown/.venv/bin
clean=(env -i "PATH=$virtual:/opt/pushdown/target/release:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME=/tmp)
wait_for() { # name, process, command...
  local name=$1 process=$2 end=$((SECONDS + 60))
  shift 2
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $end ] || ! kill -0 "$process" 2>/dev/null; then
      tail -n 20 "$root/tmp/$name.log" >&2
      fail "$name did not start"
    fi
    sleep 0.3
  done
}
"${in_peer[@]}" "${clean[@]}" "${store_environment[@]}" chroot "$root" sh /seaweedfs.sh "${store[@]}" >"$root/tmp/store.log" 2>&1 &
wait_for store $! curl --fail --silent http://198.18.2.2:9000/healthz
say "store: SeaweedFS with docker/seaweedfs.sh"
# It listens before its parts are connected, so retry.
load=("${clean[@]}" "${load_environment[@]}" chroot --userspec=10001:10001 "$root" /opt/pushdown/docker/load.sh)
wait_for load $$ "${load[@]}"
say "$("${load[@]}")"
"${in_peer[@]}" "${clean[@]}" "${gateway_environment[@]}" PUSHDOWN_LISTEN=0.0.0.0:9900 PUSHDOWN_ADMIN_LISTEN=0.0.0.0:9901 \
  ORT_DYLIB_PATH=/opt/pushdown/.cache/onnxruntime/libonnxruntime.so \
  chroot "$root" pushdown-gateway serve >"$root/tmp/gateway.log" 2>&1 &
wait_for gateway $! "${in_peer[@]}" chroot "$root" /opt/pushdown/target/release/pushdown-gateway health --admin 127.0.0.1:9901 --ready
say "gateway: ready"

mkdir "$root/tmp/try"
cat >"$root/tmp/try/try-read.toml" <<'TOML'
title = "Pixels over a slow link"
kind = "read"
default = false
pipeline = "decode | resize(short=256) | center_crop(224)"
samples = 64
arms = ["plain", "pushed", "auto", "boto3", "webdataset", "s3torchconnector", "tfdata"]
links = ["50 Mbit/s"]
rounds = 1
epochs = 2
TOML
sed -e '/^links/d' -e 's/^arms.*/arms = ["plain", "pushed", "tfdata"]/' "$root/tmp/try/try-read.toml" >"$root/tmp/try/try-open.toml"
printf 'title = "GETs"\nkind = "forward"\ndefault = false\nsizes = [1048576]\nrounds = 1\n' >"$root/tmp/try/try-forward.toml"
printf 'title = "Jobs"\nkind = "tenants"\ndefault = false\nsizes = [10]\nsamples = 20\narms = ["pushed"]\nrounds = 1\npipeline = "%s"\n' \
  'decode | resize(short=64)' >"$root/tmp/try/try-tenants.toml"
# Of the image's ENV, e2e.sh needs E2E_SETUP.
as_bench=("${clean[@]}" "${bench_environment[@]}" E2E_SETUP=0 E2E_COMMIT=unknown chroot "$root"
  setpriv --no-new-privs --inh-caps=-all --bounding-set="-all,$capabilities" /opt/pushdown/scripts/e2e.sh)
tries=(/tmp/try/try-read.toml /tmp/try/try-forward.toml /tmp/try/try-tenants.toml)

measured() { # what, argument...
  local what=$1
  shift
  if ! "${as_bench[@]}" "$@" >"$root/tmp/bench.log" 2>&1; then
    grep ' failed: ' "$root/tmp/bench.log" >&2 || tail -n 40 "$root/tmp/bench.log" >&2
    fail "$what: it exited with an error"
  fi
  results=("$root"/results/*.json)
  say "$what: $(jq -r '.scenarios[] | "\(.name) with \([.cells[].arms | keys[]] | join(", "))"' "${results[0]}" | paste -sd';')"
  jq -e 'all(.scenarios[]; .cells | length == 1)' "${results[0]}" >/dev/null || fail "$what: a scenario was skipped"
}

measured "bench, over eth0" "${bench[@]}" "${tries[@]}"
if tc qdisc show dev eth0 | grep -Eq 'tbf|ingress'; then fail "eth0 is still shaped"; fi
rm -r "$root"/results/*
measured "bench, with its own store and gateway" run --no-shaping --results=/results "${tries[@]:1}" /tmp/try/try-open.toml
jq -e 'any(.scenarios[].cells[]; .arms.nginx)' "${results[0]}" >/dev/null || fail "nginx was left out"
