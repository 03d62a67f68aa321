//! The store that a request states: the header of a GET or HEAD with a pipeline, the field of a batch.

use http::{HeaderValue, header::AUTHORIZATION, request::Parts};
use pushdown::wire::{BatchRequest, InvalidStore, StoreEndpoint, header};

use crate::{
    error::{Error, ErrorKind, Result},
    origin::{Origin, StatedStore, StoreSignature},
    resign::ReadAdmission,
    s3::{query, sign::Signature},
};

/// The admission of a GET or HEAD with a pipeline, for the store that its header states.
///
/// # Errors
/// [`ErrorKind::StoreNotAllowed`] unless the operator allowed the store and the bucket; [`ErrorKind::InvalidRequest`] and
/// [`ErrorKind::InvalidArgument`] for a header that is no store, and for a signature in a header; [`ErrorKind::AccessDenied`] without a
/// signature.
pub(super) fn admit_read(admission: ReadAdmission, origin: &Origin) -> Result<ReadAdmission> {
    let ReadAdmission { head, signature } = admission;
    let Some(endpoint) = read_header(&head)? else {
        return Ok(ReadAdmission { head, signature });
    };
    let store = origin.admit_store(endpoint)?;
    origin.check_bucket(&store, head.uri.path())?;
    if head.headers.contains_key(AUTHORIZATION) {
        return Err(invalid(format!(
            "unexpected Authorization with {}: expected a presigned query, signed for the store",
            header::STORE
        )));
    }
    if Signature::from_parts(&head)?.access_key().is_none() {
        let message = format!(
            "the request has no signature: expected a presigned query, signed for the store of {}",
            header::STORE
        );
        return Err(Error::new(ErrorKind::AccessDenied, message));
    }
    let signature = match signature {
        StoreSignature::Unchanged | StoreSignature::Stated(_) => StoreSignature::Stated(store),
        renewed @ StoreSignature::Renewed(_) => renewed,
    };
    Ok(ReadAdmission { head, signature })
}

/// The store that the samples of a batch are signed for, if that is not the gateway's own.
///
/// # Errors
/// [`ErrorKind::StoreNotAllowed`] unless the operator allowed the store and the buckets of all samples; [`ErrorKind::NoUpstream`] for a
/// batch that states no store, at a gateway without an upstream.
pub(super) fn admit_batch(request: &BatchRequest, origin: &Origin) -> Result<Option<StatedStore>> {
    let Some(endpoint) = &request.store else {
        origin.check_own_store()?;
        return Ok(None);
    };
    let store = origin.admit_store(endpoint.clone())?;
    for sample in &request.samples {
        origin.check_bucket(&store, &sample.path)?;
    }
    Ok(Some(store))
}

/// Refuses a store that is stated without a pipeline: the gateway relays no plain objects.
pub(super) fn refuse(head: &Parts) -> Result<()> {
    if head.headers.contains_key(header::STORE) {
        return Err(invalid(format!(
            "unexpected {}: expected it with a pipeline only; read plain objects from the store",
            header::STORE
        )));
    }
    Ok(())
}

fn read_header(head: &Parts) -> Result<Option<StoreEndpoint>> {
    let query = head.uri.query().unwrap_or_default();
    if query::values(query, header::STORE).next().is_some() {
        return Err(invalid(format!(
            "unexpected parameter {}: expected it as a header",
            header::STORE
        )));
    }
    let mut values = head.headers.get_all(header::STORE).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => parse(value).map(Some),
        (Some(_), Some(_)) => Err(invalid(format!("duplicate {}: expected it once", header::STORE))),
    }
}

fn parse(value: &HeaderValue) -> Result<StoreEndpoint> {
    let argument = |reason: &str| {
        Error::new(
            ErrorKind::InvalidArgument,
            format!("invalid {}: {reason}", header::STORE),
        )
    };
    let text = value.to_str().map_err(|_| argument("expected ASCII"))?;
    text.parse()
        .map_err(|error: InvalidStore| argument(&error.to_string()))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}
