//! The private native module of the Python package `pushdown`: readers, their batches, and values without copies.
//!
//! Everything public is Python, in `python/pushdown`. Here, blocking functions release the interpreter lock and look for signals every
//! 50 ms, so that Ctrl-C works while they wait.

mod batch;
mod column;
mod command;
mod error;
mod error_policy;
mod explain;
mod live;
mod logging;
mod objects;
mod pickle;
mod pipeline;
mod reader;
mod runtime;
mod settings;
mod shard_reader;
mod shards;
mod share;
mod steps;
mod store;
mod table;
mod tensor;
mod values;
mod whole_data_sets;

use pyo3::pymodule;

/// The native module of the package `pushdown`.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::{
        batch::Batch,
        command::run_command,
        error::{NativeError, NativeSampleError, escape},
        error_policy::ErrorPolicy,
        objects::Objects,
        pipeline::{check_json, parse_pipeline},
        reader::{Observations, Reader},
        shard_reader::{ShardReader, ShardsRead},
        shards::{ShardIndex, expand_braces, is_shard},
        share::{Share, rows_read_after},
        steps::steps_json,
        store::Store,
        table::{Footers, Table, TableBatch, TableReader},
        tensor::Tensor,
        whole_data_sets::{materialize_json, warm_json},
    };

    /// Version of the package.
    #[expect(non_upper_case_globals, reason = "the name in Python")]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
