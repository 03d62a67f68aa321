"""The end-to-end benchmark: a trainer, a shaped link, a gateway, a store, and the methods of reading samples; and the reports of all
benchmarks."""
