//! Listing of a prefix.

mod lister;
mod merge;
mod pages;

use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Output;
use futures::future::BoxFuture;

use super::Store;
use crate::{error::Result, objects::Objects};
use lister::Lister;
use pages::{Page, PageRequest, PageSource, PagedObject};

impl Store {
    /// All objects under a prefix, in the order of their keys as UTF-8 bytes, so that a data set does not depend on the order of the store:
    /// AWS lists in this one, SeaweedFS folder by folder. Empty objects that represent folders (`photos/`) are left out.
    ///
    /// Folders of many objects are listed concurrently, by at most 16 requests at a time.
    ///
    /// # Errors
    /// [`Refused`](crate::ErrorKind::Refused) with the store's message; [`Unreachable`](crate::ErrorKind::Unreachable) or
    /// [`Unavailable`](crate::ErrorKind::Unavailable) after retries; [`Protocol`](crate::ErrorKind::Protocol) if the store lists a key twice, or
    /// one that does not begin with the prefix.
    pub async fn list_objects(&self, bucket: &str, prefix: &str) -> Result<Objects> {
        self.list_objects_with(bucket, prefix, |_| ()).await
    }

    /// The same, and calls `progress` after each page with the number of objects so far.
    ///
    /// # Errors
    /// As [`list_objects`](Self::list_objects).
    pub async fn list_objects_with(
        &self,
        bucket: &str,
        prefix: &str,
        progress: impl Fn(usize) + Send + Sync,
    ) -> Result<Objects> {
        let pages = BucketPages { store: self, bucket };
        Lister::new(&pages, bucket, &progress).list(prefix).await
    }

    /// A page of a listing. Retried like any other request.
    async fn page(&self, bucket: &str, request: PageRequest<'_>) -> Result<ListObjectsV2Output> {
        let listing = self
            .shared
            .sdk
            .list_objects_v2()
            .bucket(bucket)
            .prefix(request.prefix)
            .set_delimiter(request.has_delimiter.then(|| "/".to_owned()))
            .set_continuation_token(request.token.map(str::to_owned));
        let action = format!("list {}", describe(bucket, request.prefix, self));
        self.with_sdk_retries(&action, || listing.clone().send()).await
    }
}

/// The pages of a bucket's listings.
#[derive(Debug)]
struct BucketPages<'a> {
    store: &'a Store,
    bucket: &'a str,
}

impl PageSource for BucketPages<'_> {
    fn page<'a>(&'a self, request: PageRequest<'a>) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move { Ok(self.store.page(self.bucket, request).await?.into()) })
    }

    fn describe(&self, prefix: &str) -> String {
        describe(self.bucket, prefix, self.store)
    }
}

impl From<ListObjectsV2Output> for Page {
    fn from(page: ListObjectsV2Output) -> Self {
        let objects = page.contents.unwrap_or_default().into_iter();
        let objects = objects.filter_map(|object| {
            Some(PagedObject {
                key: object.key?,
                bytes: object.size.and_then(|size| u64::try_from(size).ok()),
                etag: object.e_tag,
            })
        });
        let prefixes = page.common_prefixes.unwrap_or_default().into_iter();
        Self {
            objects: objects.collect(),
            prefixes: prefixes.filter_map(|prefix| prefix.prefix).collect(),
            next: page.next_continuation_token.filter(|next| !next.is_empty()),
        }
    }
}

/// The listed location, for errors.
fn describe(bucket: &str, prefix: &str, store: &Store) -> String {
    format!("s3://{bucket}/{prefix} at {}", store.endpoint())
}
