//! A folder of models: `NAME.onnx`, its data files, and an optional model card, `NAME.json`.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use super::{Model, ModelCard, ModelFiles, Runtime, WeightSource, files::open_data_file};
use pushdown_core::{
    Error, Result,
    language::{NamedModel, Resolver, is_plain},
    step::nearest,
};

/// How many similar names an error lists.
const SIMILAR_NAMES: usize = 8;

/// The models of a folder. Each is inspected on first use; for one that cannot be used, the reason is stored.
#[derive(Debug)]
pub struct ModelFolder {
    models: BTreeMap<String, OnceLock<Result<Arc<Model>>>>,
    path: PathBuf,
    runtime: Result<Runtime>,
}

/// The weights of one model in the folder.
#[derive(Debug)]
struct FolderWeights {
    /// The ONNX file.
    path: PathBuf,
    runtime: Result<Runtime>,
}

impl ModelFolder {
    /// Lists the models in `folder`. Without a runtime, none can be used, for the reason that `runtime` gives.
    ///
    /// # Errors
    /// If the folder cannot be read.
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
            path: folder.to_owned(),
            runtime,
        })
    }

    /// Inspects every model and passes each result to `report`. A model of hundreds of megabytes takes seconds.
    pub fn inspect_all(&self, mut report: impl FnMut(&str, &Result<Arc<Model>>)) {
        for name in self.models.keys() {
            if let Some(model) = self.model(name) {
                report(name, model);
            }
        }
    }

    /// The models that are inspected and usable, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Model>> {
        let inspected = self.models.values().filter_map(OnceLock::get);
        inspected.filter_map(|model| model.as_ref().ok())
    }

    fn model(&self, name: &str) -> Option<&Result<Arc<Model>>> {
        let model = self.models.get(name)?;
        let path = || self.path.join(format!("{name}.onnx"));
        Some(model.get_or_init(|| inspect(name, &path(), &self.runtime).map(Arc::new)))
    }
}

impl ModelFolder {
    /// The inspected models that have a file with this digest: their ONNX file, or a data file.
    pub fn models_with_file(&self, digest: &str) -> impl Iterator<Item = &Arc<Model>> {
        self.iter().filter(move |model| {
            let description = model.description();
            let mut files = description.files.iter();
            description.digest == digest || files.any(|file| file.digest == digest)
        })
    }

    /// Opens a file that readers may fetch: the ONNX file with this digest, or the data file with this digest, of a model whose
    /// name `is_visible`. `None` if no inspected model has it.
    ///
    /// # Errors
    /// If the file was deleted.
    pub fn open_file(&self, digest: &str, is_visible: impl Fn(&str) -> bool) -> Option<io::Result<fs::File>> {
        let mut models = self.models_with_file(digest);
        let description = models
            .find(|model| is_visible(&model.description().name))?
            .description();
        if description.digest == digest {
            return Some(fs::File::open(
                self.path.join(format!("{}.onnx", description.name)),
            ));
        }
        let mut files = description.files.iter();
        let file = files.find(|file| file.digest == digest)?;
        Some(open_data_file(&self.path, &file.name))
    }
}

impl Resolver for ModelFolder {
    fn resolve(&self, name: &str) -> Result<Arc<dyn NamedModel>> {
        Ok(self.find(name)?)
    }
}

impl ModelFolder {
    /// The model called `name`, inspected if it is its first use.
    ///
    /// # Errors
    /// As [`Resolver::resolve`].
    pub fn find(&self, name: &str) -> Result<Arc<Model>> {
        self.find_visible(name, |_| true)
    }

    /// Like [`find`](Self::find), for a caller to whom only names that `is_visible` exist: others are unknown, and no error lists
    /// them.
    ///
    /// # Errors
    /// As [`Resolver::resolve`].
    pub fn find_visible(&self, name: &str, is_visible: impl Fn(&str) -> bool) -> Result<Arc<Model>> {
        let visible = Some(name).filter(|name| is_visible(name));
        match visible.and_then(|name| self.model(name)) {
            Some(Ok(model)) => Ok(Arc::clone(model)),
            Some(Err(error)) => Err(Error::new(
                error.kind(),
                format!("the model `{name}` cannot be used: {error}"),
            )),
            None => {
                let names = self.models.keys().map(String::as_str);
                let mut known = nearest(names.filter(|name| is_visible(name)), name);
                known.truncate(SIMILAR_NAMES);
                let known = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                };
                Err(Error::new(
                    pushdown_core::ErrorKind::InvalidPipeline,
                    format!("found the unknown model `{name}`, expected one of those served: {known}"),
                ))
            }
        }
    }
}

fn inspect(name: &str, path: &Path, runtime: &Result<Runtime>) -> Result<Model> {
    if !is_plain(name) {
        return Err(Error::model(
            "invalid model name: expected letters, digits and underscores",
        ));
    }
    let card = match fs::read(path.with_extension("json")) {
        Ok(json) => Some(ModelCard::parse(&json)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::model(format!("its JSON file cannot be read: {error}"))),
    };
    let weights = FolderWeights {
        path: path.to_owned(),
        runtime: runtime.clone(),
    };
    Model::inspect(name, card, weights)
}

impl WeightSource for FolderWeights {
    fn fetch(&self) -> Result<ModelFiles> {
        ModelFiles::read(&self.path)
    }

    fn runtime(&self) -> Result<Runtime> {
        self.runtime.clone()
    }
}
