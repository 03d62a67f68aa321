//! The limits that a pipeline's author cannot lift (law 5). All have defaults; the gateway makes them settings.

/// The longest text of a pipeline, in bytes. Fixed: it is also what fits into a header.
pub const MAX_PIPELINE_BYTES: usize = 16 * 1024;
/// The most steps in a pipeline. Fixed: stages travel as `u8`, ordinals of random steps as 16 bits.
pub const MAX_STEPS: usize = 64;
/// The most bytes at the start of an object that are looked at to learn what it will decode to.
pub const HEADER_BYTES: usize = 64 * 1024;
/// The most scans of a JPEG. Fixed.
pub const MAX_SCANS: u32 = 500;
/// The most scans times pixels of a JPEG: 25 scans of 100 megapixels, which take two seconds. Usual progressive files have 10
/// scans. A lossless scan counts as 8, an arithmetic-coded one as 250. Fixed.
pub const MAX_SCAN_PIXELS: u64 = 2_500_000_000;
/// The most rows of a record batch that a scan gives. Fixed: part of what makes sums of floats the same everywhere.
pub const BATCH_ROWS: usize = 8192;
/// Bytes that a record batch is to have at most: it has fewer rows where values are large. Fixed, as [`BATCH_ROWS`] is.
pub const BATCH_BYTES: u64 = 64 << 20;
/// Bytes of values that end a record batch of `each`: it has more by a part of its last value only.
pub const EACH_BYTES: usize = 16 << 20;
/// Bytes at the start of a text, inflated, that tell which columns it has and of which types. Fixed: it decides what a table
/// is.
pub const INFERENCE_BYTES: usize = 1 << 20;
/// The most nodes in the plan of a query: operators, and expressions in them.
pub const MAX_PLAN_NODES: usize = 10_000;
/// The most columns that `*` stands for in a query: planning takes the square of their number.
pub const MAX_STAR_COLUMNS: usize = 4096;
/// The most operators and the like in the text of a query or a condition. Each may stand inside the next, and much of what
/// plans a query recurses; values and names in lists are not counted.
pub const MAX_QUERY_OPERATORS: usize = 500;
/// The longest name in a query, in bytes: one that the object lacks is compared with all that it has, which takes the product
/// of both lengths.
pub const MAX_QUERY_NAME_BYTES: usize = 256;
/// The most queries in parentheses that stand inside each other in a query: planning them recurses.
pub const MAX_NESTED_QUERIES: usize = 8;
/// The most queries in parentheses in a query: `WITH` builds each of them on those before it.
pub const MAX_INNER_QUERIES: usize = 32;
/// The most times that a query may read the object: for the parts of a union, say.
pub const MAX_PLAN_SCANS: usize = 8;
/// The most window functions of a query: all are computed at once, for all rows of a partition.
pub const MAX_PLAN_WINDOWS: usize = 16;

/// Limits on a single sample's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Pixels in any image, decoded or resized. Default 100,000,000.
    pub max_pixels: u64,
    /// Bytes of a stored object. Default 256 MiB.
    pub max_object_bytes: u64,
    /// Bytes of any value after the first step. Default 512 MiB: a decoded image of `max_pixels` fits.
    pub max_value_bytes: u64,
    /// Limits on tables.
    pub tables: TableLimits,
}

/// Limits on reading tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableLimits {
    /// Columns of a table, nested ones counted one by one. Default 20,000.
    pub max_columns: usize,
    /// Bytes of a file's footer: Parquet's metadata and page index. Default 32 MiB.
    pub max_footer_bytes: u64,
    /// Bytes of a row group's columns that are read at once; the next ones are read meanwhile, up to 4 MiB of them, or one,
    /// so that two of this size may be held. Default 512 MiB. Pages that are inflated at a time may have as many bytes as the
    /// footer tells, and 64 MiB where it tells less.
    pub max_row_group_bytes: u64,
    /// Bytes of the text, or of the Arrow message, that a record batch is made of, and of one of the answer. Default
    /// 256 MiB.
    pub max_batch_bytes: u64,
    /// Bytes that an object compressed as a whole may inflate to. They flow, and are never held together. Default 16 GiB.
    pub max_inflated_bytes: u64,
    /// Bytes that sorting, grouping, windows and functions that lengthen texts may hold. Default 256 MiB.
    pub max_query_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_pixels: 100_000_000,
            max_object_bytes: 256 << 20,
            max_value_bytes: 512 << 20,
            tables: TableLimits::default(),
        }
    }
}

impl Default for TableLimits {
    fn default() -> Self {
        Self {
            max_columns: 20_000,
            max_footer_bytes: 32 << 20,
            max_row_group_bytes: 512 << 20,
            max_batch_bytes: 256 << 20,
            max_inflated_bytes: 16 << 30,
            max_query_bytes: 256 << 20,
        }
    }
}
