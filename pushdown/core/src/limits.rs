//! Limits that a pipeline cannot raise (law 5). All have defaults, and most are settings of the gateway.

/// Maximum length of the text of a pipeline. Not configurable: the text has to fit into a header.
pub const MAX_PIPELINE_BYTES: usize = 16 * 1024;
/// Maximum number of steps of a pipeline. Not configurable: stages are encoded as `u8`, ordinals of random steps in 16 bits.
pub const MAX_STEPS: usize = 64;
/// Maximum number of bytes read from the start of an object to find its image header.
pub const HEADER_BYTES: usize = 64 * 1024;
/// Maximum number of scans of a JPEG. Not configurable.
pub const MAX_SCANS: u32 = 500;
/// Maximum of scans times pixels of a JPEG: 25 scans of 100 megapixels take two seconds. Typical progressive files have 10 scans.
/// A lossless scan counts as 8, an arithmetic-coded one as 250. Not configurable.
pub const MAX_SCAN_PIXELS: u64 = 2_500_000_000;
/// Maximum number of rows of a record batch of a scan. Not configurable: sums of floats depend on it.
pub const BATCH_ROWS: usize = 8192;
/// Target size of a record batch: batches of large values have fewer rows. Not configurable, for the same reason as
/// [`BATCH_ROWS`].
pub const BATCH_BYTES: u64 = 64 << 20;
/// Bytes of values that end a record batch of `each`. Only its last value can exceed this size.
pub const EACH_BYTES: usize = 16 << 20;
/// Decompressed bytes at the start of a text from which its columns and their types are inferred. Not configurable: the types
/// depend on it.
pub const INFERENCE_BYTES: usize = 1 << 20;
/// Maximum number of nodes of a query plan: operators, and expressions in them.
pub const MAX_PLAN_NODES: usize = 10_000;
/// Maximum number of columns that `*` expands to: planning time is quadratic in it.
pub const MAX_STAR_COLUMNS: usize = 4096;
/// Maximum number of operators and other nested constructs in the text of a query or a condition. Each may be nested in the
/// next, and the planner recurses. Values and names in lists do not count.
pub const MAX_QUERY_OPERATORS: usize = 500;
/// Maximum length of a name in a query. An unknown name is compared with all names of the object, in time proportional to the
/// product of the lengths.
pub const MAX_QUERY_NAME_BYTES: usize = 256;
/// Maximum nesting depth of subqueries: the planner recurses.
pub const MAX_NESTED_QUERIES: usize = 8;
/// Maximum number of subqueries of a query: with `WITH`, each one can build on those before it.
pub const MAX_INNER_QUERIES: usize = 32;
/// Maximum number of SELECTs of a query, with each name of `WITH` replaced by its query: the planner plans a copy for each name.
pub const MAX_QUERY_SELECTS: usize = 256;
/// Maximum number of tables that a query reads, counted like [`MAX_QUERY_SELECTS`], before it is planned. Its plan has at most
/// [`MAX_PLAN_SCANS`].
pub const MAX_QUERY_READS: usize = 32;
/// Maximum number of expressions of an `ORDER BY`: planning time is quadratic in it.
pub const MAX_SORT_KEYS: usize = 100;
/// Maximum number of regular expressions of a query with a counted repetition such as `{9}`: each may compile to 10 MiB.
pub const MAX_COUNTED_PATTERNS: usize = 8;
/// Maximum number of casts to other types in each other, as in `n::text::int`: planning time is cubic in it.
pub const MAX_NESTED_CASTS: usize = 100;
/// Maximum number of operators and columns that a condition gains if each column that an inner query computes is replaced by its
/// expression: the planner moves conditions towards the object, and a column may be computed from another one several times.
pub const MAX_INLINED_NODES: usize = 500;
/// Maximum number of scans of the object per query, such as those of the parts of a union.
pub const MAX_PLAN_SCANS: usize = 8;
/// Maximum number of window functions of a query: all are computed at once, over all rows of a partition.
pub const MAX_PLAN_WINDOWS: usize = 16;

/// Limits on the values of one sample.
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
    /// Columns of a table, counting each nested column. Default 20,000.
    pub max_columns: usize,
    /// Bytes of the footer of a file: the metadata and page index of Parquet. Default 32 MiB.
    pub max_footer_bytes: u64,
    /// Bytes of the columns of a row group, which are read at once. Default 512 MiB. Up to 4 MiB of the next row groups are read
    /// ahead, or at least one, so that two row groups of this size may be in memory. Pages decompressed at a time may have the
    /// size in the footer, or 64 MiB if that is more.
    pub max_row_group_bytes: u64,
    /// Bytes of the text or Arrow message that a record batch is parsed from, and of a record batch of the answer. Default
    /// 256 MiB.
    pub max_batch_bytes: u64,
    /// Decompressed bytes of an object that is compressed as a whole. They are streamed. Default 16 GiB.
    pub max_inflated_bytes: u64,
    /// Memory for sorting, grouping, windows and functions that lengthen texts. Default 256 MiB.
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
