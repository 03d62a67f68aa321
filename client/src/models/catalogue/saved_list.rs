//! The list of models of a gateway beside the store, kept on this host for readers that begin while the gateway is lost.

use std::{fs, path::PathBuf};

use bytes::Bytes;
use pushdown::pipeline::Digest;

use super::{LIST_BYTES, download::write_file};
use crate::store::Store;

impl Store {
    /// Saves the list next to the weights, unless it is saved already. Without it a later reader depends on the gateway, and says so.
    pub(super) fn save_models(&self, list: &Bytes) {
        let Some(file) = self.list_file() else { return };
        if fs::read(&file).is_ok_and(|saved| saved == *list) {
            return;
        }
        if let Err(error) = write_file(&file, list) {
            tracing::info!(%error, file = %file.display(), "cannot save the list of models");
        }
    }

    /// The list that was saved last.
    pub(super) fn saved_models(&self) -> Option<Bytes> {
        let file = self.list_file()?;
        let is_short = fs::metadata(&file).is_ok_and(|metadata| metadata.len() <= LIST_BYTES);
        is_short.then(|| fs::read(&file).ok())?.map(Bytes::from)
    }

    /// The file of the list; `None` without a folder, and for a gateway at the store's address, without which nothing can be read.
    fn list_file(&self) -> Option<PathBuf> {
        if !self.has_gateway_beside() {
            return None;
        }
        let gateway = Digest::new(self.gateway_name().as_bytes());
        Some(self.model_cache()?.join(format!("{gateway}.json")))
    }
}
