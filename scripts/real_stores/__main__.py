"""Runs a real store for tests: python3 scripts/real_stores ceph|garage --account ACCESS_KEY:SECRET_KEY ...

Each account may create buckets, and has no right on those of others. Once the store serves, one line on stdout has its `address`,
`version` and, for Garage, its `admin` address and token. The store and its files are gone when stdin closes or on SIGTERM.
"""

import argparse
import json
import pathlib
import signal
import sys
import tempfile

import ceph
import garage
from daemons import Account, Daemons, NotStarted

LAUNCH = {"ceph": ceph.launch, "garage": garage.launch}


def account(text: str) -> Account:
    access_key, separator, secret_key = text.partition(":")
    if not separator:
        raise argparse.ArgumentTypeError(f"expected ACCESS_KEY:SECRET_KEY, found {text}")
    return Account(access_key, secret_key)


def main() -> None:
    parser = argparse.ArgumentParser(prog="real_stores", description=__doc__.splitlines()[0])
    parser.add_argument("store", choices=LAUNCH)
    parser.add_argument("--account", action="append", type=account, required=True)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # The name is short, since paths of sockets have at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix=f"{options.store}-", ignore_cleanup_errors=True) as folder:
        with Daemons(pathlib.Path(folder)) as daemons:
            try:
                ready = LAUNCH[options.store](daemons, options.account)
            except NotStarted as error:
                sys.exit(f"{options.store} did not start: {error}")
            print(json.dumps(ready), flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main()
