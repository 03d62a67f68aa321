//! Pages of a listing.

use std::fmt;

use futures::future::BoxFuture;

use super::hidden::LeftOut;
use crate::error::Result;

/// Answers requests of pages.
pub(in crate::store) trait PageSource: fmt::Debug + Sync {
    /// A page of a listing.
    fn page<'a>(&'a self, request: PageRequest<'a>) -> BoxFuture<'a, Result<Page>>;

    /// The location of a prefix, for errors.
    fn describe(&self, prefix: &str) -> String;
}

/// Which page of which listing.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct PageRequest<'a> {
    pub(in crate::store) prefix: &'a str,
    /// Whether keys with a `/` after the prefix are replaced by their common prefixes up to there.
    pub(in crate::store) has_delimiter: bool,
    /// The token of the previous page; `None` for the first page.
    pub(in crate::store) token: Option<&'a str>,
}

/// A page of a listing.
#[derive(Debug, Default)]
pub(in crate::store) struct Page {
    pub(in crate::store) objects: Vec<PagedObject>,
    /// Common prefixes.
    pub(in crate::store) prefixes: Vec<String>,
    /// Hidden objects that the page had.
    pub(in crate::store) left_out: LeftOut,
    /// The token of the next page, if there is one.
    pub(in crate::store) next: Option<String>,
}

impl Page {
    /// The first key, or the first common prefix if there is no key.
    pub(in crate::store) fn first(&self) -> Option<&str> {
        let key = self.objects.first().map(|object| &*object.key);
        key.or_else(|| self.prefixes.first().map(String::as_str))
    }
}

/// An object of a page.
#[derive(Debug, Clone)]
pub(in crate::store) struct PagedObject {
    pub(in crate::store) key: String,
    pub(in crate::store) bytes: Option<u64>,
    pub(in crate::store) etag: Option<String>,
}
