//! Prints the type stub of the native module: `pushdown-stubs target/debug/lib_native.so`.

use std::{env, io::Write as _, path::PathBuf};

use anyhow::Context as _;

const HEADER: &str = "# Generated from the native module by `make python-stubs`. Do not edit.\n";

/// What `PyO3` does not know about types: the text that it writes, and the one that is meant. Each text occurs once.
const CORRECTIONS: [(&str, &str); 5] = [
    // In `types` since Python 3.13 only.
    (
        "from types import CapsuleType\n",
        "from typing_extensions import CapsuleType\n",
    ),
    (
        "    def shape(self, /) -> tuple: ...\n",
        "    def shape(self, /) -> tuple[int, ...]: ...\n",
    ),
    // Only the exceptions are missing, which are added below.
    ("\ndef __getattr__(name: str) -> Incomplete: ...\n", ""),
    (
        "from _typeshed import Incomplete, SupportsGetItem\n",
        "from _typeshed import SupportsGetItem\n",
    ),
    // The buffer protocol is a slot of the type, without a signature.
    (
        "    def __dlpack__(self,",
        "    def __buffer__(self, flags: int, /) -> memoryview: ...\n    def __dlpack__(self,",
    ),
];

/// What the module adds by hand.
const ADDED: &str = "
class NativeError(Exception):
    \"\"\"
    An error as (kind, message, position in the pipeline's text or None).
    \"\"\"

class NativeSampleError(Exception):
    \"\"\"
    A sample that ends an iteration as (its entry in `Batch.errors`, a note that says why or None).
    \"\"\"
";

fn main() -> anyhow::Result<()> {
    let library = env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .context("expected the path of the library: pushdown-stubs target/debug/lib_native.so")?;
    let module = pyo3_introspection::introspect_cdylib(&library, "_native")
        .with_context(|| format!("cannot read {}", library.display()))?;
    let stubs = pyo3_introspection::module_stub_files(&module);
    let mut stub: String = stubs.into_values().collect();
    for (written, meant) in CORRECTIONS {
        anyhow::ensure!(
            stub.matches(written).count() == 1,
            "expected this text once in the stub: {written}"
        );
        stub = stub.replace(written, meant);
    }
    let mut out = std::io::stdout().lock();
    out.write_all(HEADER.as_bytes())?;
    out.write_all(stub.as_bytes())?;
    out.write_all(ADDED.as_bytes())?;
    Ok(())
}
