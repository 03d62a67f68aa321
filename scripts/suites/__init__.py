"""The parts of s3_suites.py: ways to the store, suites, and the ledger of expected losses."""
