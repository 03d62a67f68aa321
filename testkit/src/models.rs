//! ONNX models and ONNX Runtime, from the cache of `scripts/models.sh`.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

fn cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache")
}

/// Path of the ONNX Runtime library.
pub fn onnxruntime() -> PathBuf {
    cache().join("onnxruntime/libonnxruntime.so")
}

/// Path of another version of the ONNX Runtime library.
pub fn other_onnxruntime() -> PathBuf {
    cache().join("onnxruntime/other/libonnxruntime.so")
}

/// A temporary folder with links to models, named as in `.cache/models` (including `bad/garbage`), and to their cards, if any.
/// Files of external weights (`NAME.onnx.*`) are copied, since the gateway does not follow links to them. Deleted when the
/// handle is dropped.
///
/// # Errors
/// If a model is missing, or the folder cannot be created.
pub fn model_folder(names: &[&str]) -> io::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    for name in names {
        let file = cache().join("models").join(format!("{name}.onnx"));
        if !file.exists() {
            let text = format!("{} is missing: run scripts/models.sh", file.display());
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
        let path = cache().join("models").join(name);
        let (file_name, directory) = (path.file_name(), path.parent().unwrap_or(&path));
        let prefix = format!("{}.onnx.", file_name.unwrap_or_default().to_string_lossy());
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                fs::copy(entry.path(), folder.path().join(entry.file_name()))?;
            }
        }
    }
    Ok(folder)
}
