//! Names of the HTTP headers and query parameters, lower case, and the path of the batch endpoint.
//!
//! The requests' names are also names of query parameters, so that presigned URLs can carry them.

/// What every name below starts with.
pub const PREFIX: &str = "x-pushdown-";

/// Request: the pipeline's text.
pub const PIPELINE: &str = "x-pushdown-pipeline";
/// Request: where to cut; see [`Split`](super::Split).
pub const SPLIT: &str = "x-pushdown-split";
/// Request: seed of the random steps that have none of their own, a `u64`.
pub const SEED: &str = "x-pushdown-seed";
/// Request: epoch for the random steps, from 0, a `u32`.
pub const EPOCH: &str = "x-pushdown-epoch";

/// Answer: how many steps the value has been through.
pub const STAGE: &str = "x-pushdown-stage";
/// Answer: `bytes`, `image`, `tensor` or `table`.
pub const KIND: &str = "x-pushdown-kind";
/// Answer: element type of an image or a tensor, as in pipelines.
pub const DTYPE: &str = "x-pushdown-dtype";
/// Answer: extents, comma-separated (`3,224,224`); empty for a scalar.
pub const SHAPE: &str = "x-pushdown-shape";
/// Answer: axis order of an image or a tensor: `chw`, `hwc` or `flat`.
pub const LAYOUT: &str = "x-pushdown-layout";
/// Answer: the quantisation scale, the shortest decimal that reads back to the same f32.
pub const SCALE: &str = "x-pushdown-scale";
/// Answer: the [`Engine`](crate::Engine) that computed the value.
pub const ENGINE: &str = "x-pushdown-engine";
/// Answer: bytes read from the store and bytes stored, as `read/stored`.
pub const SOURCE_BYTES: &str = "x-pushdown-source-bytes";
/// Answer: the stored object's own `ETag`.
pub const SOURCE_ETAG: &str = "x-pushdown-source-etag";
/// Answer: whether a cache had the value.
pub const CACHE: &str = "x-pushdown-cache";
/// Answer: cores that the gateway computes with; of a batch, the part that its tenant has of them.
pub const CORES: &str = "x-pushdown-cores";
/// Answer to a batch: batches of its tenant under way, itself among them, which share the tenant's cores.
pub const BATCHES: &str = "x-pushdown-batches";
/// Answer to a batch: seconds in which somebody used the CPUs of the gateway, its store if it is on the same host, seconds that
/// there were, and seconds that steps took, as [`CpuTime`](super::CpuTime) is written. Two answers tell how busy they were in
/// between, and with what.
pub const CPU: &str = "x-pushdown-cpu";
/// Answer to a batch: the CPUs of the gateway, as [`cpus`](super::cpus) names them; absent where it leaves some to others.
pub const CPUS: &str = "x-pushdown-cpus";
/// Answer: something that the caller should know and that is no error.
pub const WARNING: &str = "x-pushdown-warning";

/// Path of the batch endpoint.
pub const BATCH_PATH: &str = "/_pushdown/v1/batch";

/// Most headers that are read of one request or answer. S3 allows 2 KiB of metadata for an object, which is at most
/// 2,048 headers.
pub const MAX_COUNT: usize = 4096;
