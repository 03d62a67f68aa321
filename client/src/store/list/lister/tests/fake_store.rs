//! A store in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use futures::{executor::block_on, future::BoxFuture};
use pushdown_exec::sync::Mutex;

use super::Lister;
use crate::{
    error::{Error, ErrorKind, Result},
    objects::Objects,
    store::list::hidden::HiddenObjects,
    store::list::pages::{Page, PageRequest, PageSource, PagedObject},
};

/// A store with these keys and sizes.
#[derive(Debug, Default)]
pub(super) struct FakeStore {
    pub(super) objects: BTreeMap<String, u64>,
    pub(super) page_keys: usize,
    /// Lists from the last key to the first, as a store without an order might.
    pub(super) is_reversed: bool,
    /// A key that is listed again on the following page.
    pub(super) repeated: Option<String>,
    /// A prefix that is refused.
    pub(super) refused: Option<String>,
    pub(super) requests: AtomicUsize,
    pub(super) in_flight: AtomicUsize,
    pub(super) max_in_flight: AtomicUsize,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    Object(String),
    Prefix(String),
}

impl Entry {
    fn name(&self) -> &str {
        match self {
            Self::Object(name) | Self::Prefix(name) => name,
        }
    }
}

impl FakeStore {
    pub(super) fn new(keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            objects: keys.into_iter().map(|key| (key.into(), 5)).collect(),
            page_keys: 1000,
            ..Self::default()
        }
    }

    fn entries(&self, request: PageRequest<'_>) -> Vec<Entry> {
        let mut entries = BTreeSet::new();
        for key in self.objects.keys().filter(|key| key.starts_with(request.prefix)) {
            let end = key[request.prefix.len()..].find('/');
            entries.insert(match end.filter(|_| request.has_delimiter) {
                Some(end) => Entry::Prefix(key[..=request.prefix.len() + end].to_owned()),
                None => Entry::Object(key.clone()),
            });
        }
        let mut entries: Vec<Entry> = entries.into_iter().collect();
        entries.sort_by(|first, second| first.name().cmp(second.name()));
        if self.is_reversed {
            entries.reverse();
        }
        entries
    }

    fn answer(&self, request: PageRequest<'_>) -> Result<Page> {
        if self.refused.as_deref() == Some(request.prefix) {
            return Err(Error::new(ErrorKind::Refused, "AccessDenied"));
        }
        let entries = self.entries(request);
        let first: usize = request.token.map_or(0, |token| token.parse().unwrap());
        let end = entries.len().min(first + self.page_keys);
        let object = |key: &str| PagedObject {
            key: key.to_owned(),
            bytes: self.objects.get(key).copied(),
            etag: Some(format!("\"{key}\"")),
        };
        let mut page = Page {
            next: (end < entries.len()).then(|| end.to_string()),
            ..Page::default()
        };
        for entry in &entries[first..end] {
            match entry {
                Entry::Object(key) => page.objects.push(object(key)),
                Entry::Prefix(prefix) => page.prefixes.push(prefix.clone()),
            }
        }
        if let Some(repeated) = self.repeated.as_deref().filter(|_| request.token.is_some()) {
            page.objects.push(object(repeated));
        }
        Ok(page)
    }

    /// Lists a prefix, and returns the objects and the counts that were reported.
    pub(super) fn list(&self, prefix: &str, min_folder_keys: usize) -> Result<(Objects, Vec<usize>)> {
        let counts = Mutex::new(Vec::new());
        let progress = |count| counts.lock().push(count);
        let lister = Lister {
            min_folder_keys,
            ..Lister::new(self, "b", HiddenObjects::LeftOut, &progress)
        };
        let objects = block_on(lister.list(prefix))?;
        Ok((objects, counts.into_inner()))
    }

    /// The keys of all objects under a prefix, in their order, without empty folders.
    pub(super) fn keys(&self, prefix: &str) -> Vec<&str> {
        let listed = self.objects.iter().filter(|(key, bytes)| {
            let is_folder = key.ends_with('/') && **bytes == 0;
            key.starts_with(prefix) && !is_folder
        });
        listed.map(|(key, _)| key.as_str()).collect()
    }
}

impl PageSource for FakeStore {
    fn page<'a>(&'a self, request: PageRequest<'a>) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            self.requests.fetch_add(1, Relaxed);
            let in_flight = self.in_flight.fetch_add(1, Relaxed) + 1;
            self.max_in_flight.fetch_max(in_flight, Relaxed);
            tokio::task::yield_now().await;
            self.in_flight.fetch_sub(1, Relaxed);
            self.answer(request)
        })
    }

    fn describe(&self, prefix: &str) -> String {
        format!("s3://b/{prefix}")
    }
}
