//! Names of HTTP headers and query parameters in lower case, and the paths of the endpoints.
//!
//! Request headers can also be sent as query parameters, so that presigned URLs can contain them.

/// Prefix of all headers.
pub const PREFIX: &str = "x-pushdown-";

/// Request: the text of the pipeline.
pub const PIPELINE: &str = "x-pushdown-pipeline";
/// Request: the split; see [`Split`](super::Split).
pub const SPLIT: &str = "x-pushdown-split";
/// Request: seed of the random steps without a seed argument, a `u64`.
pub const SEED: &str = "x-pushdown-seed";
/// Request: epoch for the random steps, counted from 0, a `u32`.
pub const EPOCH: &str = "x-pushdown-epoch";
/// Request: the percent-encoded name of a member, if the object is a shard. It requires [`OFFSET`] and [`SIZE`].
pub const MEMBER: &str = "x-pushdown-member";
/// Request: offset of the first byte of the member's entry in the shard, a `u64`.
pub const OFFSET: &str = "x-pushdown-offset";
/// Request: bytes of the member's content, a `u64`.
pub const SIZE: &str = "x-pushdown-size";
/// Request: bytes of the member's entry before its content, a `u32`. Default 512.
pub const HEADER_SIZE: &str = "x-pushdown-header-size";
/// Request: the `ETag` of the shard in which the member has this place. At another version the request fails.
pub const SHARD_ETAG: &str = "x-pushdown-shard-etag";
/// Request, as a header only: the [`StoreEndpoint`](super::StoreEndpoint) that path and presigned query are for: `URL`, or
/// `URL; bucket=NAME` if the host names the bucket.
pub const STORE: &str = "x-pushdown-store";

/// Request and answer: the [`ObjectForm`](super::ObjectForm) of the stored object, at stage 0. An answer without it is the object as it is.
pub const FORM: &str = "x-pushdown-form";
/// Answer: the column of the whole image at which a cropped JPEG begins, a `u32`.
pub const CROP_X: &str = "x-pushdown-crop-x";
/// Answer: its first row in the whole image, a `u32`.
pub const CROP_Y: &str = "x-pushdown-crop-y";
/// Answer with a cropped JPEG: width of the whole image in pixels, a `u32`.
pub const IMAGE_WIDTH: &str = "x-pushdown-image-width";
/// Answer with a cropped JPEG: height of the whole image in pixels, a `u32`.
pub const IMAGE_HEIGHT: &str = "x-pushdown-image-height";

/// Answer: the stage of the value, the number of steps already applied.
pub const STAGE: &str = "x-pushdown-stage";
/// Answer: `bytes`, `image`, `tensor` or `table`.
pub const KIND: &str = "x-pushdown-kind";
/// Answer: element type of an image or a tensor, named as in pipelines.
pub const DTYPE: &str = "x-pushdown-dtype";
/// Answer: the shape, comma-separated (`3,224,224`); empty for a scalar.
pub const SHAPE: &str = "x-pushdown-shape";
/// Answer: axis order of an image or a tensor: `chw`, `hwc` or `flat`.
pub const LAYOUT: &str = "x-pushdown-layout";
/// Answer: the quantisation scale, as the shortest decimal that parses as the same f32.
pub const SCALE: &str = "x-pushdown-scale";
/// Answer: the [`Engine`](pushdown_core::Engine) that computed the value.
pub const ENGINE: &str = "x-pushdown-engine";
/// Answer: the [`Features`](super::Features) of the gateway.
pub const FEATURES: &str = "x-pushdown-features";
/// Answer: the id of the gateway among its replicas. Readers place samples by it, so it stays the same as long as the gateway's cache does.
pub const REPLICA: &str = "x-pushdown-replica";
/// Answer to a request for the version: `serving`, which a missing header means as well, or [`DRAINING`].
pub const STATE: &str = "x-pushdown-state";
/// The [`STATE`] of a gateway that takes requests.
pub const SERVING: &str = "serving";
/// The [`STATE`] of a gateway that ends once the answers in flight are complete.
pub const DRAINING: &str = "draining";
/// Answer to a request for the version: the most bytes of a part of a data set that the gateway writes, a `u64`.
pub const PART_BYTES: &str = "x-pushdown-part-bytes";
/// Answer: bytes read from the store and size of the object, as `read/stored`.
pub const SOURCE_BYTES: &str = "x-pushdown-source-bytes";
/// Answer: the `ETag` of the stored object.
pub const SOURCE_ETAG: &str = "x-pushdown-source-etag";
/// Answer: where the value comes from; see [`CacheStatus::header_text`](super::CacheStatus::header_text).
pub const CACHE: &str = "x-pushdown-cache";
/// Answer: of the data set's values at a stage, the ratio that the result cache stores, for each stage with one: `3=0.25, 5=1`.
pub const CACHED_RATIO: &str = "x-pushdown-cached-ratio";
/// Answer: cores of the gateway; for a batch, the part of its tenant.
pub const CORES: &str = "x-pushdown-cores";
/// Answer to a batch: batches of the tenant in flight, including this one. They share the cores of the tenant.
pub const BATCHES: &str = "x-pushdown-batches";
/// Answer to a batch: the [`CpuTime`](super::CpuTime) of the gateway: busy seconds of its CPUs, including other processes such as a
/// store, total seconds, and seconds of steps. The difference between two answers is the load between them.
pub const CPU: &str = "x-pushdown-cpu";
/// Answer to a batch: the [`cpu_fingerprint`](fn@super::cpu_fingerprint) of the gateway, if it has one.
pub const CPUS: &str = "x-pushdown-cpus";
/// Answer: a warning for the caller.
pub const WARNING: &str = "x-pushdown-warning";

/// Path of the batch endpoint.
pub const BATCH_PATH: &str = "/_pushdown/v1/batch";
/// Path of the list of models. `MODELS_PATH/DIGEST` is the path of a model's weights.
pub const MODELS_PATH: &str = "/_pushdown/v1/models";
/// Path of the version, the features and the engine of a gateway.
pub const VERSION_PATH: &str = "/_pushdown/v1/version";

/// Maximum number of headers of a request or an answer. S3 allows 2 KiB of metadata per object, which is at most 2,048
/// headers.
pub const MAX_COUNT: usize = 4096;
