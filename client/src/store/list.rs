//! Listing of a prefix.

mod hidden;
mod lister;
mod merge;
mod names;
mod pages;

use aws_sdk_s3::{operation::list_objects_v2::ListObjectsV2Output, types::EncodingType};
use futures::future::BoxFuture;
use pushdown_s3::Escaped;

use super::Store;
use crate::{
    error::{Error, Result},
    objects::Objects,
};
pub use hidden::HiddenObjects;
use hidden::LeftOut;
use lister::Lister;
use names::{InvalidName, Names};
use pages::{Page, PageRequest, PageSource, PagedObject};

impl Store {
    /// All objects under a prefix that may be samples, in the order of their keys as UTF-8 bytes, so that a data set does not depend on the
    /// order of the store: AWS lists in this one, SeaweedFS folder by folder. [Hidden objects](HiddenObjects) are left out.
    ///
    /// Folders of many objects are listed concurrently, by at most 16 requests at a time.
    ///
    /// # Errors
    /// [`Refused`](crate::ErrorKind::Refused) with the store's message; [`Unreachable`](crate::ErrorKind::Unreachable) or
    /// [`Unavailable`](crate::ErrorKind::Unavailable) after retries; [`Protocol`](crate::ErrorKind::Protocol) if the store lists a key twice, or
    /// one that does not begin with the prefix or is not UTF-8.
    pub async fn list_objects(&self, bucket: &str, prefix: &str) -> Result<Objects> {
        self.list_objects_with(bucket, prefix, HiddenObjects::LeftOut, |_| ())
            .await
    }

    /// The same with or without hidden objects. Calls `progress` after each page with the number of objects so far.
    ///
    /// # Errors
    /// As [`list_objects`](Self::list_objects).
    pub async fn list_objects_with(
        &self,
        bucket: &str,
        prefix: &str,
        hidden: HiddenObjects,
        progress: impl Fn(usize) + Send + Sync,
    ) -> Result<Objects> {
        let pages = BucketPages { store: self, bucket };
        let lister = Lister::new(&pages, bucket, hidden, &progress);
        let objects = lister.list(prefix).await?;
        let left_out = lister.left_out();
        if let Some(first) = left_out.first {
            let objects = if left_out.count == 1 { "object" } else { "objects" };
            tracing::warn!(
                "s3://{}: left out {} hidden {objects}, such as `{}`: `include_hidden` keeps them",
                Escaped(format_args!("{bucket}/{prefix}")),
                left_out.count,
                Escaped(first)
            );
        }
        Ok(objects)
    }

    /// A page of a listing. Retried like any other request.
    async fn page(&self, bucket: &str, request: PageRequest<'_>) -> Result<ListObjectsV2Output> {
        let listing = self
            .shared
            .sdk
            .list_objects_v2()
            .bucket(bucket)
            .prefix(request.prefix)
            .encoding_type(EncodingType::Url)
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
        Box::pin(async move {
            let page = self.store.page(self.bucket, request).await?;
            page.try_into().map_err(|error: InvalidName| {
                let text = format!("cannot list {}: {error}", self.describe(request.prefix));
                Error::protocol(text)
            })
        })
    }

    fn describe(&self, prefix: &str) -> String {
        describe(self.bucket, prefix, self.store)
    }
}

impl TryFrom<ListObjectsV2Output> for Page {
    type Error = InvalidName;

    fn try_from(page: ListObjectsV2Output) -> Result<Self, InvalidName> {
        let names = Names::of(page.encoding_type.as_ref());
        let objects = page.contents.unwrap_or_default().into_iter();
        let objects = objects.filter_map(|object| {
            let (bytes, etag) = (object.size, object.e_tag);
            Some(names.read(object.key?).map(|key| PagedObject {
                key,
                bytes: bytes.and_then(|bytes| u64::try_from(bytes).ok()),
                etag,
            }))
        });
        let prefixes = page.common_prefixes.unwrap_or_default().into_iter();
        let prefixes = prefixes.filter_map(|prefix| Some(names.read(prefix.prefix?)));
        Ok(Self {
            objects: objects.collect::<Result<_, _>>()?,
            prefixes: prefixes.collect::<Result<_, _>>()?,
            next: page.next_continuation_token.filter(|next| !next.is_empty()),
            left_out: LeftOut::default(),
        })
    }
}

/// The listed location, for errors.
fn describe(bucket: &str, prefix: &str, store: &Store) -> String {
    format!("s3://{bucket}/{prefix} at {}", store.endpoint())
}
