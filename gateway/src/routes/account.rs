//! Whose account a request in forward mode is charged to, once the store has authorized it.

use pushdown::wire::BatchRequest;
use pushdown_s3::Address;

use crate::{
    config::TenantBy,
    error::{Error, ErrorKind, Result},
    s3::sign::Signature,
};

/// The account of a request with this signature for an object in `bucket`.
pub(super) fn account(by: TenantBy, signature: &Signature, bucket: &[u8]) -> Option<String> {
    match by {
        TenantBy::AccessKey => signature.access_key().map(str::to_owned),
        TenantBy::Bucket => Some(String::from_utf8_lossy(bucket).into_owned()),
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
    Ok(account(by, signature, &first))
}
