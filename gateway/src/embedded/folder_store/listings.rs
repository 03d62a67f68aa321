//! The answers to both versions of a listing.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use s3s::dto::{
    CommonPrefix, ETag, EncodingType, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input,
    ListObjectsV2Output, Object,
};
use s3s::{S3Result, s3_error};

use super::FolderStore;
use crate::{
    embedded::listing::{self, Entry, Page, PageRequest},
    s3::escapes::encode_path,
};

/// The most entries of a page, as in S3.
const MAX_ENTRIES: i32 = 1000;

/// How names are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Raw,
    /// Percent-encoded, so that XML can hold all of them.
    Url,
}

impl FolderStore {
    /// `ListObjects`.
    pub(super) async fn first_listing(&self, input: ListObjectsInput) -> S3Result<ListObjectsOutput> {
        let names = Names::of(input.encoding_type.as_ref())?;
        let max_entries = max_entries(input.max_keys);
        let page = self
            .page(PageRequest {
                bucket: input.bucket.clone(),
                prefix: input.prefix.clone().unwrap_or_default(),
                delimiter: input.delimiter.clone(),
                after: input.marker.clone().unwrap_or_default(),
                max_entries: usize::try_from(max_entries).unwrap_or_default(),
            })
            .await?;
        let next = next(&page).map(|next| names.write(next));
        let is_truncated = page.is_truncated;
        let (contents, common_prefixes) = entries(page, names);
        Ok(ListObjectsOutput {
            name: Some(input.bucket),
            prefix: Some(names.write(&input.prefix.unwrap_or_default())),
            marker: Some(names.write(&input.marker.unwrap_or_default())),
            max_keys: Some(max_entries),
            is_truncated: Some(is_truncated),
            contents,
            common_prefixes,
            delimiter: input.delimiter.map(|delimiter| names.write(&delimiter)),
            next_marker: next,
            encoding_type: input.encoding_type,
            ..ListObjectsOutput::default()
        })
    }

    /// `ListObjectsV2`.
    pub(super) async fn second_listing(&self, input: ListObjectsV2Input) -> S3Result<ListObjectsV2Output> {
        let names = Names::of(input.encoding_type.as_ref())?;
        let max_entries = max_entries(input.max_keys);
        let token = input.continuation_token.as_deref().map(read_token).transpose()?;
        let page = self
            .page(PageRequest {
                bucket: input.bucket.clone(),
                prefix: input.prefix.clone().unwrap_or_default(),
                delimiter: input.delimiter.clone(),
                after: token.or_else(|| input.start_after.clone()).unwrap_or_default(),
                max_entries: usize::try_from(max_entries).unwrap_or_default(),
            })
            .await?;
        let next = next(&page).map(|next| BASE64_URL_SAFE_NO_PAD.encode(next));
        let (is_truncated, count) = (page.is_truncated, page.entries.len());
        let (contents, common_prefixes) = entries(page, names);
        Ok(ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: Some(names.write(&input.prefix.unwrap_or_default())),
            max_keys: Some(max_entries),
            key_count: i32::try_from(count).ok(),
            continuation_token: input.continuation_token,
            is_truncated: Some(is_truncated),
            next_continuation_token: next,
            contents,
            common_prefixes,
            delimiter: input.delimiter.map(|delimiter| names.write(&delimiter)),
            encoding_type: input.encoding_type,
            start_after: input.start_after.map(|key| names.write(&key)),
            ..ListObjectsV2Output::default()
        })
    }

    async fn page(&self, request: PageRequest) -> S3Result<Page> {
        if !self.bucket(&request.bucket).is_dir() {
            return Err(s3_error!(NoSuchBucket));
        }
        self.blocking(move |root| listing::list(root, &request)).await
    }
}

impl Names {
    fn of(encoding: Option<&EncodingType>) -> S3Result<Self> {
        match encoding.map(EncodingType::as_str) {
            None => Ok(Self::Raw),
            Some(EncodingType::URL) => Ok(Self::Url),
            Some(_) => Err(s3_error!(
                InvalidArgument,
                "Invalid Encoding Method specified in Request"
            )),
        }
    }

    fn write(self, name: &str) -> String {
        match self {
            Self::Raw => name.to_owned(),
            Self::Url => encode_path(name.as_bytes()),
        }
    }
}

fn max_entries(asked: Option<i32>) -> i32 {
    asked.unwrap_or(MAX_ENTRIES).clamp(0, MAX_ENTRIES)
}

/// The last name of a page, if another page follows.
fn next(page: &Page) -> Option<&str> {
    page.entries.last().filter(|_| page.is_truncated).map(Entry::name)
}

fn read_token(token: &str) -> S3Result<String> {
    let key = BASE64_URL_SAFE_NO_PAD.decode(token).ok();
    key.and_then(|key| String::from_utf8(key).ok()).ok_or_else(|| {
        s3_error!(
            InvalidArgument,
            "The continuation token provided is incorrect: expected one of an earlier answer"
        )
    })
}

fn entries(page: Page, names: Names) -> (Option<Vec<Object>>, Option<Vec<CommonPrefix>>) {
    let (mut objects, mut prefixes) = (Vec::new(), Vec::new());
    for entry in page.entries {
        match entry {
            Entry::Object(key, attributes) => objects.push(Object {
                key: Some(names.write(&key)),
                last_modified: Some(attributes.modified.into()),
                size: i64::try_from(attributes.bytes).ok(),
                e_tag: Some(ETag::Strong(attributes.etag)),
                ..Object::default()
            }),
            Entry::CommonPrefix(prefix) => prefixes.push(CommonPrefix {
                prefix: Some(names.write(&prefix)),
            }),
        }
    }
    (
        Some(objects).filter(|objects| !objects.is_empty()),
        Some(prefixes).filter(|prefixes| !prefixes.is_empty()),
    )
}
