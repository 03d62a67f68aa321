//! Limits on shards.

/// Most bytes of an entry before its content: extension headers of 1 MiB with their own block, and the block of the file.
pub const MAX_HEADER_BYTES: u32 = MAX_EXTENSION_BYTES + 1024;
/// Most bytes of a member's name: the limit of S3 for keys.
pub const MAX_NAME_BYTES: usize = 1024;
/// Fewest bytes of an entry before its content: a local header of a zip, and a name of one byte.
pub(crate) const MIN_HEADER_BYTES: u32 = 31;
/// Most bytes of the content of one extension header of a tar.
pub(crate) const MAX_EXTENSION_BYTES: u32 = 1 << 20;

/// Limits on one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardLimits {
    /// Most members. Default: 16 Mi.
    pub max_members: usize,
    /// Most bytes of all names together. Default: 1 GiB.
    pub max_total_name_bytes: u64,
}

impl Default for ShardLimits {
    fn default() -> Self {
        Self {
            max_members: 16 << 20,
            max_total_name_bytes: 1 << 30,
        }
    }
}
