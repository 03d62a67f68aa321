//! Lists a prefix folder by folder, concurrently, where folders have many objects, and otherwise page by page.
//!
//! A folder is a common prefix that ends in `/`. Its first page is listed as a whole. If more follow, and the page shows few subfolders,
//! these are listed with a delimiter, and then each for itself. Whether all of them have many objects is only known then: the first pages
//! of some of them decide.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use futures::{
    StreamExt as _, TryStreamExt as _,
    future::{BoxFuture, try_join_all},
    stream,
};
use pushdown_exec::sync::Mutex;
use tokio::sync::Semaphore;

use super::{
    hidden::{HiddenObjects, LeftOut},
    merge::{duplicate, merged, sorted},
    pages::{Page, PageRequest, PageSource, PagedObject},
};
use crate::{
    error::{Error, Result},
    objects::{Object, Objects, ObjectsBuilder},
};

/// The most requests in flight.
const MAX_REQUESTS: usize = 16;
/// The least mean number of keys in a folder for which listing it alone is worth a request: a quarter of a page.
const MIN_FOLDER_KEYS: usize = 250;
/// Subfolders whose first pages decide whether all are listed concurrently.
const SAMPLED_FOLDERS: usize = 16;
/// The most levels of folders. What is below is listed page by page.
const MAX_DEPTH: usize = 16;

/// A listing of one prefix.
#[derive(Debug)]
pub(super) struct Lister<'a, S, P> {
    source: &'a S,
    bucket: Arc<str>,
    /// Called with the number of objects so far.
    progress: &'a P,
    hidden: HiddenObjects,
    listed: AtomicUsize,
    left_out: Mutex<LeftOut>,
    requests: Semaphore,
    min_folder_keys: usize,
}

impl<'a, S: PageSource, P: Fn(usize) + Sync> Lister<'a, S, P> {
    pub(super) fn new(source: &'a S, bucket: &str, hidden: HiddenObjects, progress: &'a P) -> Self {
        Self {
            source,
            bucket: bucket.into(),
            progress,
            hidden,
            listed: AtomicUsize::new(0),
            left_out: Mutex::default(),
            requests: Semaphore::new(MAX_REQUESTS),
            min_folder_keys: MIN_FOLDER_KEYS,
        }
    }

    /// All objects under the prefix, in the order of their keys.
    ///
    /// # Errors
    /// The first error of a page; a repeated page or key; a key outside of the prefix.
    pub(super) async fn list(&self, prefix: &str) -> Result<Objects> {
        let first = self.page(prefix, false, None).await?;
        let objects = sorted(self.folder(prefix.to_owned(), first, 0).await?);
        match duplicate(&objects) {
            None => Ok(objects),
            Some(key) => Err(self.invalid(prefix, &format!("expected each key once, found `{key}` twice"))),
        }
    }

    /// The hidden objects that the listings so far have left out.
    pub(super) fn left_out(&self) -> LeftOut {
        self.left_out.lock().clone()
    }

    /// The objects of a folder whose first page is known.
    fn folder(&self, prefix: String, first: Page, depth: usize) -> BoxFuture<'_, Result<Objects>> {
        Box::pin(async move {
            if first.next.is_some()
                && depth < MAX_DEPTH
                && self.has_large_subfolders(&prefix, &first)
                && let Some(objects) = self.subfolders(&prefix, depth).await?
            {
                return Ok(objects);
            }
            self.page_by_page(&prefix, first).await
        })
    }

    /// Whether the subfolders that the page shows have enough keys, and it shows at least one.
    fn has_large_subfolders(&self, prefix: &str, page: &Page) -> bool {
        let subfolders = page.objects.iter().filter_map(|object| {
            let below = &object.key[prefix.len()..];
            below.find('/').map(|end| &below[..end])
        });
        let subfolders = subfolders.collect::<BTreeSet<_>>().len();
        subfolders > 0 && subfolders * self.min_folder_keys <= page.objects.len()
    }

    /// The objects of a folder, whose subfolders are listed concurrently; `None` if these turn out to have few objects.
    async fn subfolders(&self, prefix: &str, depth: usize) -> Result<Option<Objects>> {
        let mut direct = ObjectsBuilder::default();
        let (mut direct_count, mut direct_left_out) = (0, LeftOut::default());
        let mut subfolders = BTreeSet::new();
        let mut page = self.page(prefix, true, None).await?;
        let mut tokens = HashSet::new();
        loop {
            direct_count += page.objects.len();
            direct_left_out.merge(std::mem::take(&mut page.left_out));
            push(&mut direct, &page);
            subfolders.extend(page.prefixes.iter().cloned());
            match self.next_page(prefix, true, &mut tokens, &page).await? {
                Some(next) => page = next,
                None => break,
            }
        }
        let subfolders: Vec<String> = subfolders.into_iter().collect();
        let step = subfolders.len().div_ceil(SAMPLED_FOLDERS).max(1);
        let sampled = subfolders.iter().step_by(step);
        let sampled: Vec<Page> = try_join_all(sampled.map(|folder| self.page(folder, false, None))).await?;
        let keys: usize = sampled.iter().map(|page| page.objects.len()).sum();
        if sampled.len() < subfolders.len() && keys < sampled.len() * self.min_folder_keys {
            return Ok(None);
        }
        self.count(direct_count, direct_left_out);
        let mut sampled = sampled.into_iter();
        let first_pages: Vec<Option<Page>> = (0..subfolders.len())
            .map(|index| (index % step == 0).then(|| sampled.next()).flatten())
            .collect();
        let listings = subfolders.into_iter().zip(first_pages);
        let listings = listings.map(|(folder, first)| self.subfolder(folder, first, depth + 1));
        let mut listed: Vec<(String, Objects)> = stream::iter(listings)
            .buffer_unordered(MAX_REQUESTS)
            .try_collect()
            .await?;
        listed.sort_by(|(first, _), (second, _)| first.cmp(second));
        let direct = sorted(direct.finish(Arc::clone(&self.bucket)));
        Ok(Some(merged(&self.bucket, &direct, &listed)))
    }

    /// A subfolder and its objects.
    async fn subfolder(
        &self,
        prefix: String,
        first: Option<Page>,
        depth: usize,
    ) -> Result<(String, Objects)> {
        let first = match first {
            Some(first) => first,
            None => self.page(&prefix, false, None).await?,
        };
        let objects = self.folder(prefix.clone(), first, depth).await?;
        Ok((prefix, objects))
    }

    /// The objects of a folder from its first page on, one page after the other.
    async fn page_by_page(&self, prefix: &str, first: Page) -> Result<Objects> {
        let mut objects = ObjectsBuilder::default();
        let (mut page, mut tokens) = (first, HashSet::new());
        loop {
            push(&mut objects, &page);
            self.count(page.objects.len(), std::mem::take(&mut page.left_out));
            match self.next_page(prefix, false, &mut tokens, &page).await? {
                Some(next) => page = next,
                None => return Ok(sorted(objects.finish(Arc::clone(&self.bucket)))),
            }
        }
    }

    /// The page after this one, if there is one. `tokens` are those of the pages before.
    async fn next_page(
        &self,
        prefix: &str,
        has_delimiter: bool,
        tokens: &mut HashSet<String>,
        last: &Page,
    ) -> Result<Option<Page>> {
        let Some(token) = &last.next else {
            return Ok(None);
        };
        let repeated = || self.invalid(prefix, "expected another page, found the same one again");
        if !tokens.insert(token.clone()) {
            return Err(repeated());
        }
        let next = self.page(prefix, has_delimiter, Some(token)).await?;
        // A store that ignores tokens sends its first page again, perhaps with a new token.
        if next.first().is_some() && next.first() == last.first() {
            return Err(repeated());
        }
        Ok(Some(next))
    }

    /// Requests a page, and leaves out its hidden objects.
    async fn page(&self, prefix: &str, has_delimiter: bool, token: Option<&str>) -> Result<Page> {
        let request = PageRequest {
            prefix,
            has_delimiter,
            token,
        };
        let permit = self.requests.acquire().await;
        let mut page = self.source.page(request).await?;
        drop(permit);
        let keys = page.objects.iter().map(|object| &object.key);
        if let Some(key) = keys.clone().find(|key| !key.starts_with(prefix)) {
            let text = format!("expected keys that begin with `{prefix}`, found `{key}`");
            return Err(self.invalid(prefix, &text));
        }
        let is_subfolder = |folder: &String| {
            let below = folder.strip_prefix(prefix);
            below.is_some_and(|below| below.find('/').map(|end| end + 1) == Some(below.len()))
        };
        if let Some(folder) = page.prefixes.iter().find(|folder| !is_subfolder(folder)) {
            let text = format!("expected prefixes between `{prefix}` and the next `/`, found `{folder}`");
            return Err(self.invalid(prefix, &text));
        }
        let is_left_out = |object: &mut PagedObject| self.hidden.leave_out(&object.key, object.bytes);
        for hidden in page.objects.extract_if(.., is_left_out) {
            page.left_out.add(hidden.key);
        }
        Ok(page)
    }

    /// Reports the objects of a page, and counts those that it has left out.
    fn count(&self, objects: usize, left_out: LeftOut) {
        self.left_out.lock().merge(left_out);
        let before = self.listed.fetch_add(objects, Relaxed);
        (self.progress)(before + objects);
    }

    fn invalid(&self, prefix: &str, fault: &str) -> Error {
        Error::protocol(format!("cannot list {}: {fault}", self.source.describe(prefix)))
    }
}

/// Adds the objects of a page.
fn push(objects: &mut ObjectsBuilder, page: &Page) {
    objects.extend(page.objects.iter().map(|object| Object {
        key: &object.key,
        bytes: object.bytes,
        etag: object.etag.as_deref(),
        member: None,
    }));
}

#[cfg(test)]
mod tests;
