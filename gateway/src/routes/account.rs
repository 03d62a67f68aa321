//! Whose account a request in forward mode is charged to, once the store has authorized it.

use pushdown::wire::{BatchRequest, StoreEndpoint};
use pushdown_s3::Address;

use crate::{
    config::TenantBy,
    error::{Error, ErrorKind, Result},
    s3::sign::Signature,
};

/// The account of a request with this signature for an object in `bucket`, of the `store` that the request states. Buckets of two stores
/// are two, whatever their names: each store decides for its own.
pub(super) fn account(
    by: TenantBy,
    signature: &Signature,
    store: Option<&StoreEndpoint>,
    bucket: &[u8],
) -> Option<String> {
    match by {
        TenantBy::AccessKey => signature.access_key().map(str::to_owned),
        TenantBy::Bucket => {
            let bucket = String::from_utf8_lossy(bucket);
            Some(match store {
                // A bucket has no space in its name.
                Some(store) => format!("{} {bucket}", store.url()),
                None => bucket.into_owned(),
            })
        }
    }
}

/// The account of a batch with this signature.
///
/// # Errors
/// [`ErrorKind::InvalidRequest`] for samples of several buckets, if buckets have accounts.
pub(super) fn account_of_batch(
    by: TenantBy,
    signature: &Signature,
    request: &BatchRequest,
) -> Result<Option<String>> {
    let store = request.store.as_ref();
    let mut paths = request.samples.iter().map(|sample| sample.path.as_str());
    let bucket = |path| Address::new(store, path).map(|address| address.bucket);
    let first = paths.next().and_then(bucket).unwrap_or_default();
    if by == TenantBy::Bucket && !paths.all(|path| bucket(path).as_ref() == Some(&first)) {
        return Err(Error::new(
            ErrorKind::InvalidRequest,
            "invalid samples: expected samples of one bucket, because buckets are tenants of this gateway; send a batch for each bucket",
        ));
    }
    Ok(account(by, signature, store, &first))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    #[test]
    fn a_bucket_is_a_tenant_together_with_its_store() {
        let query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=KEY%2F20260101%2Fus-east-1%2Fs3%2Faws4_request\
             &X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host";
        let signature = Signature::read(&HeaderMap::new(), Some(query)).unwrap();
        let account = |by, store: Option<&str>| {
            let store: Option<StoreEndpoint> = store.map(|store| store.parse().unwrap());
            account(by, &signature, store.as_ref(), b"photos")
        };
        let stores = [
            None,
            Some("https://s3.example"),
            Some("http://s3.example"),
            Some("https://s3.example:8333"),
            Some("https://photos.s3.example; bucket=photos"),
            Some("https://other.example"),
        ];
        let accounts = stores.map(|store| account(TenantBy::Bucket, store));
        for (index, first) in accounts.iter().enumerate() {
            assert!(
                first.is_some() && !accounts[..index].contains(first),
                "{accounts:?}"
            );
        }
        assert_eq!(
            account(TenantBy::Bucket, Some("https://S3.example.:443/")),
            accounts[1]
        );
        for store in stores {
            assert_eq!(account(TenantBy::AccessKey, store).as_deref(), Some("KEY"));
        }
    }
}
