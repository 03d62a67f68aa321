//! The photos that are measured, as `scripts/photos.sh` makes them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;

/// About 500 x 375, as the photos of `ImageNet` are.
pub const SMALL: &str = "imagenet";
/// 12 megapixels, baseline.
pub const LARGE: &str = "12mp";
/// The same, progressive.
pub const PROGRESSIVE: &str = "12mp-progressive";

/// The contents of a folder's files, by name.
pub fn read_all(folder: &Path) -> Result<Vec<Bytes>> {
    let missing = || format!("cannot read {}: `make photos` makes it", folder.display());
    let entries = fs::read_dir(folder).with_context(missing)?;
    let mut paths: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    ensure!(!paths.is_empty(), missing());
    paths.iter().map(|path| Ok(fs::read(path)?.into())).collect()
}

/// The number of files, for arithmetic.
pub fn count(files: &[Bytes]) -> f64 {
    f64::from(u32::try_from(files.len()).unwrap_or(u32::MAX))
}

/// The mean size of a file in kilobytes.
pub fn mean_kilobytes(files: &[Bytes]) -> usize {
    files.iter().map(Bytes::len).sum::<usize>() / files.len().max(1) / 1000
}
