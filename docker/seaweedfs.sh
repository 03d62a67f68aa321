#!/bin/sh
# Starts SeaweedFS with the account of the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), and with the accounts tenant1 to
# tenant9 with the same secret, for the benchmark scenario `tenants`. Usage: seaweedfs.sh [FLAG...], flags of `weed server`.
set -eu
users=/tmp/identities.json

user() { # access key
  printf '{"name": "%s", "actions": ["Admin", "Read", "List", "Tagging", "Write"], ' "$1"
  printf '"credentials": [{"accessKey": "%s", "secretKey": "%s"}]}' "$1" "$AWS_SECRET_ACCESS_KEY"
}

{
  printf '{"identities": ['
  user "$AWS_ACCESS_KEY_ID"
  for number in 1 2 3 4 5 6 7 8 9; do
    printf ', '
    user "tenant$number"
  done
  printf ']}\n'
} >"$users"
exec weed server "$@" -s3.config="$users"
