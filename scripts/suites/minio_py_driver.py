"""Runs the functional tests of minio-py, also those after one that failed. Each prints a line of JSON.

Runs in the environment of minio-py, without the other modules of this folder.
"""

import argparse
import contextlib
import importlib.util


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="tests/functional/tests.py in the source of minio-py")
    parser.add_argument("--filter", default="", help="run the tests whose names contain it")
    parser.add_argument("tests", nargs="*", help="names of tests, default: all")
    arguments = parser.parse_args()
    spec = importlib.util.spec_from_file_location("functional", arguments.file)
    suite = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(suite)
    call_test = suite._call_test

    def call_selected(test, *args, **kwargs) -> None:
        if arguments.filter not in test.__name__ or (arguments.tests and test.__name__ not in arguments.tests):
            return
        # A test that failed has printed its line.
        with contextlib.suppress(suite.TestFailed):
            call_test(test, *args, **kwargs)

    suite._call_test = call_selected
    suite.main()


if __name__ == "__main__":
    main()
