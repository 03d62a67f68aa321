//! Formats of shards, by their keys.

/// The format of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShardFormat {
    /// ustar, GNU or pax.
    Tar,
    /// Zip with members that are stored, not compressed.
    Zip,
}

/// How a whole shard is compressed. Members of compressed shards cannot be read by ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
    /// bzip2, which is not supported.
    Bzip2,
    /// xz, which is not supported.
    Xz,
}

/// Format and compression of the shard with this key, in upper or lower case: `.tar`, `.tar.gz`, `.tgz`, `.tar.zst` or `.zip`, and
/// the unsupported `.tar.bz2`, `.tbz2`, `.tar.xz` and `.txz`. `None` for other keys.
pub fn shard_kind(key: &str) -> Option<(ShardFormat, Compression)> {
    let kinds = [
        (".tar", ShardFormat::Tar, Compression::None),
        (".tar.gz", ShardFormat::Tar, Compression::Gzip),
        (".tgz", ShardFormat::Tar, Compression::Gzip),
        (".tar.zst", ShardFormat::Tar, Compression::Zstd),
        (".tar.bz2", ShardFormat::Tar, Compression::Bzip2),
        (".tbz2", ShardFormat::Tar, Compression::Bzip2),
        (".tar.xz", ShardFormat::Tar, Compression::Xz),
        (".txz", ShardFormat::Tar, Compression::Xz),
        (".zip", ShardFormat::Zip, Compression::None),
    ];
    kinds
        .into_iter()
        .find(|(suffix, ..)| ends_with_any_case(key, suffix))
        .map(|(_, format, compression)| (format, compression))
}

fn ends_with_any_case(key: &str, suffix: &str) -> bool {
    let start = key.len().checked_sub(suffix.len());
    let end = start.and_then(|start| key.as_bytes().get(start..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(suffix.as_bytes()))
}

impl ShardFormat {
    /// The format of the shard with this key, if its members can be read by ranges: `.tar` or `.zip`.
    pub fn from_key(key: &str) -> Option<Self> {
        shard_kind(key)
            .filter(|(_, compression)| *compression == Compression::None)
            .map(|(format, _)| format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_format_and_compression() {
        let tar = |compression| Some((ShardFormat::Tar, compression));
        assert_eq!(shard_kind("a/train-000.tar"), tar(Compression::None));
        assert_eq!(shard_kind("A.TAR"), tar(Compression::None));
        assert_eq!(shard_kind("a.tar.gz"), tar(Compression::Gzip));
        assert_eq!(shard_kind("a.tgz"), tar(Compression::Gzip));
        assert_eq!(shard_kind("a.tar.zst"), tar(Compression::Zstd));
        for (key, compression) in [
            ("a.tar.bz2", Compression::Bzip2),
            ("a.TBZ2", Compression::Bzip2),
            ("a.tar.xz", Compression::Xz),
            ("a.txz", Compression::Xz),
        ] {
            assert_eq!(shard_kind(key), tar(compression), "{key}");
        }
        assert_eq!(shard_kind("a.zip"), Some((ShardFormat::Zip, Compression::None)));
        for other in ["", "tar", "a.tar.jpg", "a.zst", "a.gz", "tär"] {
            assert_eq!(shard_kind(other), None, "{other}");
        }
    }

    #[test]
    fn compressed_shards_are_not_read_by_ranges() {
        assert_eq!(ShardFormat::from_key("a.tar"), Some(ShardFormat::Tar));
        assert_eq!(ShardFormat::from_key("a.zip"), Some(ShardFormat::Zip));
        assert_eq!(ShardFormat::from_key("a.tar.gz"), None);
    }
}
