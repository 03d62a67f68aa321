//! Listing of a prefix.

mod hidden;
mod lister;
mod merge;
mod pages;

use super::{Store, aws::BucketPages};
use crate::{error::Result, objects::Objects};
pub use hidden::HiddenObjects;
pub(super) use hidden::LeftOut;
use lister::Lister;
pub(super) use merge::{duplicate, sorted};
pub(super) use pages::{Page, PageRequest, PageSource, PagedObject};

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
        let pages = BucketPages::new(self, bucket);
        let lister = Lister::new(&pages, bucket, hidden, &progress);
        let objects = lister.list(prefix).await?;
        lister.left_out().warn(bucket, prefix);
        Ok(objects)
    }
}
