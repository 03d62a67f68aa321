//! A folder of models: `NAME.onnx`, files beside it that it has weights in, and where there is one the `NAME.json` that says
//! how to prepare inputs.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use super::{Card, Files, Model, ModelResolver, Runtime, Weights, files::open_data};
use crate::{Error, Result, pipeline::is_plain, step::nearest};

/// How many names of models an error tells.
const NEAREST: usize = 8;

/// The models of a folder, each looked at once it is asked for. One that cannot be used is remembered with the reason.
#[derive(Debug)]
pub struct Folder {
    models: BTreeMap<String, OnceLock<Result<Arc<Model>>>>,
    place: PathBuf,
    runtime: Result<Runtime>,
}

/// The files of a model.
#[derive(Debug)]
struct File {
    /// The ONNX file.
    path: PathBuf,
    runtime: Result<Runtime>,
}

impl Folder {
    /// Finds the models in `folder`. Without a runtime each has that for the reason why it cannot be used.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn open(folder: &Path, runtime: Result<Runtime>) -> io::Result<Self> {
        let mut models = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "onnx") {
                continue;
            }
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            models.insert(name, OnceLock::new());
        }
        Ok(Self {
            models,
            place: folder.to_owned(),
            runtime,
        })
    }

    /// Looks at every model, telling `seen` of each: seconds for one of hundreds of megabytes.
    pub fn look(&self, mut seen: impl FnMut(&str, &Result<Arc<Model>>)) {
        for name in self.models.keys() {
            if let Some(model) = self.model(name) {
                seen(name, model);
            }
        }
    }

    /// Those models that were looked at and can be used, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Model>> {
        let seen = self.models.values().filter_map(OnceLock::get);
        seen.filter_map(|model| model.as_ref().ok())
    }

    fn model(&self, name: &str) -> Option<&Result<Arc<Model>>> {
        let model = self.models.get(name)?;
        let path = || self.place.join(format!("{name}.onnx"));
        Some(model.get_or_init(|| look(name, &path(), &self.runtime).map(Arc::new)))
    }
}

impl Folder {
    /// Opens a file that readers may fetch: the ONNX file of the model that has this digest, or a file of weights beside a
    /// model that has this digest itself. Models are known once they were looked at.
    ///
    /// # Errors
    /// When the file is there no more.
    pub fn open_file(&self, digest: &str) -> Option<io::Result<fs::File>> {
        self.iter().find_map(|model| {
            let description = model.description();
            if description.digest == digest {
                return Some(fs::File::open(
                    self.place.join(format!("{}.onnx", description.name)),
                ));
            }
            let mut files = description.files.iter();
            let file = files.find(|file| file.digest == digest)?;
            Some(open_data(&self.place, &file.name))
        })
    }
}

impl ModelResolver for Folder {
    fn find(&self, name: &str) -> Result<Arc<Model>> {
        match self.model(name) {
            Some(Ok(model)) => Ok(Arc::clone(model)),
            Some(Err(error)) => Err(Error::new(
                error.kind(),
                format!("the model `{name}` cannot be used: {error}"),
            )),
            None => {
                let mut known = nearest(self.models.keys().map(String::as_str), name);
                known.truncate(NEAREST);
                let known = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                };
                Err(Error::new(
                    crate::ErrorKind::InvalidPipeline,
                    format!("found the unknown model `{name}`, expected one of those served: {known}"),
                ))
            }
        }
    }
}

fn look(name: &str, path: &Path, runtime: &Result<Runtime>) -> Result<Model> {
    if !is_plain(name) {
        return Err(Error::model(
            "its name is not plain: expected letters, digits and underscores",
        ));
    }
    let card = match fs::read(path.with_extension("json")) {
        Ok(json) => Some(Card::parse(&json)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::model(format!("its JSON file cannot be read: {error}"))),
    };
    let file = File {
        path: path.to_owned(),
        runtime: runtime.clone(),
    };
    Model::look(name, card, file)
}

impl Weights for File {
    fn fetch(&self) -> Result<Files> {
        Files::read(&self.path)
    }

    fn runtime(&self) -> Result<Runtime> {
        self.runtime.clone()
    }
}
