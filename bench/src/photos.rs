//! The benchmark's photos, from `scripts/photos.sh`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;

/// About 500 x 375 pixels, like the photos of `ImageNet`.
pub const SMALL: &str = "imagenet";
/// 12 megapixels, baseline.
pub const LARGE: &str = "12mp";
/// 12 megapixels, progressive.
pub const PROGRESSIVE: &str = "12mp-progressive";

/// The contents of a folder's files, sorted by name.
pub fn read_all(folder: &Path) -> Result<Vec<Bytes>> {
    let missing = || format!("cannot read {}: run `make photos`", folder.display());
    let entries = fs::read_dir(folder).with_context(missing)?;
    let mut paths: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    ensure!(!paths.is_empty(), missing());
    paths.iter().map(|path| Ok(fs::read(path)?.into())).collect()
}

/// The number of files as a float.
pub fn count(files: &[Bytes]) -> f64 {
    f64::from(u32::try_from(files.len()).unwrap_or(u32::MAX))
}

/// The mean size of a file in kilobytes.
pub fn mean_kilobytes(files: &[Bytes]) -> usize {
    files.iter().map(Bytes::len).sum::<usize>() / files.len().max(1) / 1000
}
