//! Pages of listings, as the SDK requests them.

use aws_sdk_s3::{operation::list_objects_v2::ListObjectsV2Output, types::EncodingType};
use futures::future::BoxFuture;

use super::names::{InvalidName, Names};
use crate::{
    error::{Error, Result},
    store::{
        Store,
        list::{LeftOut, Page, PageRequest, PageSource, PagedObject},
    },
};

/// The pages of a bucket's listings.
#[derive(Debug)]
pub(in crate::store) struct BucketPages<'a> {
    store: &'a Store,
    bucket: &'a str,
}

impl<'a> BucketPages<'a> {
    pub(in crate::store) const fn new(store: &'a Store, bucket: &'a str) -> Self {
        Self { store, bucket }
    }

    async fn send(&self, request: PageRequest<'_>) -> Result<ListObjectsV2Output> {
        let list = |sdk: aws_sdk_s3::Client| {
            let listing = sdk
                .list_objects_v2()
                .bucket(self.bucket)
                .prefix(request.prefix)
                .encoding_type(EncodingType::Url)
                .set_delimiter(request.has_delimiter.then(|| "/".to_owned()))
                .set_continuation_token(request.token.map(str::to_owned));
            async move { listing.send().await }
        };
        let action = format!("list {}", self.describe(request.prefix));
        self.store.with_sdk_retries(self.bucket, &action, list).await
    }
}

impl PageSource for BucketPages<'_> {
    fn page<'a>(&'a self, request: PageRequest<'a>) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            let page = self.send(request).await?;
            read(page).map_err(|error| {
                let text = format!("cannot list {}: {error}", self.describe(request.prefix));
                Error::protocol(text)
            })
        })
    }

    fn describe(&self, prefix: &str) -> String {
        format!("s3://{}/{prefix} at {}", self.bucket, self.store.endpoint())
    }
}

/// The page in an answer.
fn read(page: ListObjectsV2Output) -> Result<Page, InvalidName> {
    let names = Names::of(page.encoding_type.as_ref().map(EncodingType::as_str));
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
    Ok(Page {
        objects: objects.collect::<Result<_, _>>()?,
        prefixes: prefixes.collect::<Result<_, _>>()?,
        next: page.next_continuation_token.filter(|next| !next.is_empty()),
        left_out: LeftOut::default(),
    })
}
