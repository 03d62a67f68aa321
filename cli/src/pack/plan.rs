//! Which files are in which shard.

use std::ops::Range;

use pushdown::shard::split_name;

use super::source::SourceFile;

/// Bytes of a block of a tar, and of a plain header.
const BLOCK_BYTES: u64 = 512;
/// Bytes of the end of a tar.
const END_BYTES: u64 = 2 * BLOCK_BYTES;
/// A name or a size beyond these may need an extension header.
const MAX_PLAIN_NAME_BYTES: usize = 100;
const MAX_PLAIN_SIZE: u64 = 8 << 30;
/// Bytes of an extension header besides its own header and the name, at most.
const EXTENSION_BYTES: u64 = 128;

/// What ends a shard.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShardLimits {
    /// The most bytes, unless one sample has more.
    pub(super) bytes: u64,
    /// The most samples.
    pub(super) samples: usize,
}

/// A shard to be written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShardPlan {
    /// Its files, by their indices.
    pub(super) files: Range<usize>,
    /// Number of samples.
    pub(super) samples: usize,
}

/// Sorts files by name, so that the files of a sample stand together.
pub(super) fn sort(files: &mut [SourceFile]) {
    files.sort_unstable_by(|file, other| {
        let (group, other_group) = (group(&file.name), group(&other.name));
        (group, &file.name).cmp(&(other_group, &other.name))
    });
}

/// The shards of sorted files.
pub(super) fn shards(files: &[SourceFile], limits: ShardLimits) -> Vec<ShardPlan> {
    let mut shards: Vec<ShardPlan> = Vec::new();
    let (mut end, mut bytes) = (0, 0);
    for sample in files.chunk_by(|file, next| group(&file.name) == group(&next.name)) {
        let start = end;
        end += sample.len();
        let more = sample.iter().map(entry_bytes).fold(0, u64::saturating_add);
        bytes = more.saturating_add(bytes);
        match shards.last_mut() {
            Some(shard) if bytes <= limits.bytes && shard.samples < limits.samples => {
                shard.files.end = end;
                shard.samples += 1;
            }
            _ => {
                bytes = more.saturating_add(END_BYTES);
                shards.push(ShardPlan {
                    files: start..end,
                    samples: 1,
                });
            }
        }
    }
    shards
}

/// What the names of all files of a sample begin with.
fn group(name: &str) -> &str {
    split_name(name).map_or(name, |(base, _)| base)
}

/// The most bytes that a file takes in a tar.
fn entry_bytes(file: &SourceFile) -> u64 {
    let blocks = |bytes: u64| bytes.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES);
    let plain = BLOCK_BYTES.saturating_add(blocks(file.bytes));
    if file.name.len() <= MAX_PLAIN_NAME_BYTES && file.bytes < MAX_PLAIN_SIZE {
        return plain;
    }
    let extension = BLOCK_BYTES + blocks(EXTENSION_BYTES + file.name.len() as u64);
    plain.saturating_add(extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, u64)]) -> Vec<SourceFile> {
        let file = |(name, bytes): &(&str, u64)| SourceFile {
            name: (*name).to_owned(),
            bytes: *bytes,
        };
        files.iter().map(file).collect()
    }

    fn plan(files: &[SourceFile], bytes: u64, samples: usize) -> Vec<(Range<usize>, usize)> {
        let shards = shards(files, ShardLimits { bytes, samples });
        shards
            .into_iter()
            .map(|shard| (shard.files, shard.samples))
            .collect()
    }

    #[test]
    fn files_of_a_sample_stand_together() {
        let mut files = files(&[
            ("a.jpg", 1),
            ("a.d/x.jpg", 1),
            ("b", 1),
            ("a.cls", 1),
            ("a-b.jpg", 1),
            ("a.d/x.cls", 1),
        ]);
        sort(&mut files);
        let names: Vec<_> = files.iter().map(|file| &*file.name).collect();
        assert_eq!(
            names,
            ["a.cls", "a.jpg", "a-b.jpg", "a.d/x.cls", "a.d/x.jpg", "b"]
        );
    }

    #[test]
    fn a_shard_ends_before_it_exceeds_a_limit() {
        let files = files(&[
            ("a.cls", 1),
            ("a.jpg", 600),
            ("b.jpg", 512),
            ("c.jpg", 0),
            ("d.jpg", 9_000),
        ]);
        // Entries of 1024 + 1536, 1024, 512 and 9728 bytes, and 1024 at the end.
        assert_eq!(plan(&files, u64::MAX, usize::MAX), [(0..5, 4)]);
        assert_eq!(plan(&files, 4608, usize::MAX), [(0..3, 2), (3..4, 1), (4..5, 1)]);
        assert_eq!(plan(&files, 5120, usize::MAX), [(0..4, 3), (4..5, 1)]);
        assert_eq!(plan(&files, u64::MAX, 3), [(0..4, 3), (4..5, 1)]);
        assert_eq!(plan(&files, 0, usize::MAX).len(), 4, "a sample is never divided");
    }
}
