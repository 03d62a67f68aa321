//! A folder of networks: `NAME.onnx`, and where there is one the `NAME.json` that says how to prepare inputs.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use super::{Card, MAX_MODEL_BYTES, Network, Networks, Runtime, Weights, read_file};
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

/// The file of a network.
#[derive(Debug)]
struct File {
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
    /// The file of the network that has this digest, once it was looked at.
    pub fn path(&self, digest: &str) -> Option<PathBuf> {
        let found = self
            .iter()
            .find(|network| network.description().digest == digest)?;
        Some(self.place.join(format!("{}.onnx", found.description().name)))
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
    fn fetch(&self) -> Result<Arc<[u8]>> {
        let unreadable = |error: io::Error| Error::model(format!("its file cannot be read: {error}"));
        let length = fs::metadata(&self.path).map_err(unreadable)?.len();
        if length > MAX_MODEL_BYTES as u64 {
            return Err(Error::too_large(format!(
                "a network of {length} bytes is more than the limit of {MAX_MODEL_BYTES}"
            )));
        }
        read_file(&self.path).map_err(unreadable)
    }

    fn runtime(&self) -> Result<Runtime> {
        self.runtime.clone()
    }
}
