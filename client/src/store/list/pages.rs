//! Pages of a listing.

use std::fmt;

use futures::future::BoxFuture;

use super::hidden::LeftOut;
use crate::error::Result;

/// Answers requests of pages.
pub(super) trait PageSource: fmt::Debug + Sync {
    /// A page of a listing.
    fn page<'a>(&'a self, request: PageRequest<'a>) -> BoxFuture<'a, Result<Page>>;

    /// The location of a prefix, for errors.
    fn describe(&self, prefix: &str) -> String;
}

/// Which page of which listing.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageRequest<'a> {
    pub(super) prefix: &'a str,
    /// Whether keys with a `/` after the prefix are replaced by their common prefixes up to there.
    pub(super) has_delimiter: bool,
    /// The token of the previous page; `None` for the first page.
    pub(super) token: Option<&'a str>,
}

/// A page of a listing.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) objects: Vec<PagedObject>,
    /// Common prefixes.
    pub(super) prefixes: Vec<String>,
    /// Hidden objects that the page had.
    pub(super) left_out: LeftOut,
    /// The token of the next page, if there is one.
    pub(super) next: Option<String>,
}

impl Page {
    /// The first key, or the first common prefix if there is no key.
    pub(super) fn first(&self) -> Option<&str> {
        let key = self.objects.first().map(|object| &*object.key);
        key.or_else(|| self.prefixes.first().map(String::as_str))
    }
}

/// An object of a page.
#[derive(Debug, Clone)]
pub(super) struct PagedObject {
    pub(super) key: String,
    pub(super) bytes: Option<u64>,
    pub(super) etag: Option<String>,
}
