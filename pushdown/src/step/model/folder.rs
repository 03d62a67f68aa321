//! A folder of networks: `NAME.onnx`, files beside it that it has weights in, and where there is one the `NAME.json` that says
//! how to prepare inputs.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use super::{Card, Files, Network, Networks, Runtime, Weights, files::open_data};
use crate::{Error, Result, pipeline::is_plain, step::nearest};

/// How many names of networks an error tells.
const NEAREST: usize = 8;

/// The networks of a folder, each looked at once it is asked for. One that cannot be used is remembered with the reason.
#[derive(Debug)]
pub struct Folder {
    networks: BTreeMap<String, OnceLock<Result<Arc<Network>>>>,
    place: PathBuf,
    runtime: Result<Runtime>,
}

/// The files of a network.
#[derive(Debug)]
struct File {
    /// The ONNX file.
    path: PathBuf,
    runtime: Result<Runtime>,
}

impl Folder {
    /// Finds the networks in `folder`. Without a runtime each has that for the reason why it cannot be used.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn open(folder: &Path, runtime: Result<Runtime>) -> io::Result<Self> {
        let mut networks = BTreeMap::new();
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
            networks.insert(name, OnceLock::new());
        }
        Ok(Self {
            networks,
            place: folder.to_owned(),
            runtime,
        })
    }

    /// Looks at every network, telling `seen` of each: seconds for one of hundreds of megabytes.
    pub fn look(&self, mut seen: impl FnMut(&str, &Result<Arc<Network>>)) {
        for name in self.networks.keys() {
            if let Some(network) = self.network(name) {
                seen(name, network);
            }
        }
    }

    /// Those networks that were looked at and can be used, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Network>> {
        let seen = self.networks.values().filter_map(OnceLock::get);
        seen.filter_map(|network| network.as_ref().ok())
    }

    fn network(&self, name: &str) -> Option<&Result<Arc<Network>>> {
        let network = self.networks.get(name)?;
        let path = || self.place.join(format!("{name}.onnx"));
        Some(network.get_or_init(|| look(name, &path(), &self.runtime).map(Arc::new)))
    }
}

impl Folder {
    /// Opens a file that readers may fetch: the ONNX file of the model that has this digest, or a file of weights beside a
    /// model that has this digest itself. Models are known once they were looked at.
    ///
    /// # Errors
    /// When the file is there no more.
    pub fn open_file(&self, digest: &str) -> Option<io::Result<fs::File>> {
        self.iter().find_map(|network| {
            let description = network.description();
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

impl Networks for Folder {
    fn find(&self, name: &str) -> Result<Arc<Network>> {
        match self.network(name) {
            Some(Ok(network)) => Ok(Arc::clone(network)),
            Some(Err(error)) => Err(Error::new(
                error.kind(),
                format!("the network `{name}` cannot be used: {error}"),
            )),
            None => {
                let mut known = nearest(self.networks.keys().map(String::as_str), name);
                known.truncate(NEAREST);
                let known = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                };
                Err(Error::new(
                    crate::ErrorKind::InvalidPipeline,
                    format!("found the unknown network `{name}`, expected one of those served: {known}"),
                ))
            }
        }
    }
}

fn look(name: &str, path: &Path, runtime: &Result<Runtime>) -> Result<Network> {
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
    Network::look(name, card, file)
}

impl Weights for File {
    fn fetch(&self) -> Result<Files> {
        Files::read(&self.path)
    }

    fn runtime(&self) -> Result<Runtime> {
        self.runtime.clone()
    }
}
