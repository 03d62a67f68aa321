//! Real models and the library that runs them, from where `scripts/models.sh` puts them.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

fn cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache")
}

/// ONNX Runtime's library.
pub fn onnxruntime() -> PathBuf {
    cache().join("onnxruntime/libonnxruntime.so")
}

/// The library of another version of it.
pub fn other_onnxruntime() -> PathBuf {
    cache().join("onnxruntime/other/libonnxruntime.so")
}

/// A folder of some of the models, named as in `.cache/models` (`bad/garbage`, too), with their cards where they have any,
/// and copies of the files that their weights are in (`NAME.onnx.*`: no gateway takes links to these); it goes away with its
/// handle.
///
/// # Errors
/// When a model is missing, or there is no temporary folder.
pub fn model_folder(names: &[&str]) -> io::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    for name in names {
        let file = cache().join("models").join(format!("{name}.onnx"));
        if !file.exists() {
            let text = format!("{} is missing: scripts/models.sh makes it", file.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let card = file.with_extension("json");
        for file in [Some(file), Some(card).filter(|card| card.exists())]
            .into_iter()
            .flatten()
        {
            let link = folder.path().join(file.file_name().unwrap_or_default());
            symlink(file, link)?;
        }
        let place = cache().join("models").join(name);
        let (of, beside) = (place.file_name(), place.parent().unwrap_or(&place));
        let prefix = format!("{}.onnx.", of.unwrap_or_default().to_string_lossy());
        for entry in fs::read_dir(beside)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                fs::copy(entry.path(), folder.path().join(entry.file_name()))?;
            }
        }
    }
    Ok(folder)
}
