//! `DeleteObjects` by keys with grants: each object of the body is decided on by itself, and the store gets only those that the
//! key may delete.

mod content;
mod list;
mod result;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE, request::Parts};
use sha2::{Digest as _, Sha256};

use super::{answers, refuse};
use crate::{
    access::{Access, Caller, Denied, Grants, Needs, Upstream},
    audit::AuditRecord,
    body::{self, Body},
    error::{Error, ErrorKind, Result},
    origin::{SignedPayload, Signer, Signing},
    s3::{
        RequestAddress,
        action::delete_accesses,
        auth::{PayloadMode, Verified},
        errors::{REQUEST_ID, RequestId},
    },
};
use list::{DeleteList, ListedObject};

/// The largest body of `DeleteObjects` in bytes, with its framing.
pub const MAX_DELETION_BYTES: u64 = 2 << 20;

/// Decides on the objects of a `DeleteObjects` request whose head was verified. It is in the place of a signature for the store.
#[derive(Debug)]
pub struct Deletion {
    signer: Signer,
    caller: Caller,
    address: RequestAddress,
    /// What the request needs whatever it deletes.
    accesses: Vec<Access>,
}

/// A [`Deletion`] that was decided on.
#[derive(Debug)]
pub struct DecidedDeletion {
    /// What the store gets. `None` if all objects are denied: then the store gets nothing.
    allowed: Option<AllowedDeletion>,
    denied: Vec<ListedObject>,
    /// Who signs at the store.
    upstream: Upstream,
}

/// The objects that may be deleted.
#[derive(Debug, Clone)]
pub struct AllowedDeletion {
    /// The body that the store gets.
    pub body: Bytes,
    /// What signs the request for the store.
    pub signing: Signing,
}

impl Deletion {
    /// The account of the key that signed.
    pub fn tenant(&self) -> &str {
        self.caller.key().tenant()
    }

    /// Decides on the head of a request. `accesses` are what it needs besides those of each object.
    pub(super) fn new(signer: &Signer, verified: &Verified, accesses: &[Access]) -> Result<Self> {
        let caller = verified.caller();
        if !accesses.is_empty() {
            Grants::decide(&caller, accesses, &Needs::default()).map_err(|denied| refuse(&denied))?;
        }
        Ok(Self {
            signer: signer.clone(),
            caller,
            address: verified.address().clone(),
            accesses: accesses.to_vec(),
        })
    }

    /// Decides on each object of a body that was verified as `mode` says, and records it. If the key may delete any, `head` becomes
    /// that of the request to the store.
    ///
    /// # Errors
    /// [`ErrorKind::MalformedXml`] for a body that is no list of 1 to 1,000 objects; [`ErrorKind::BadDigest`] and
    /// [`ErrorKind::InvalidRequest`] for a wrong or missing checksum.
    pub fn decide(
        &self,
        mode: PayloadMode,
        body: &[u8],
        head: &mut Parts,
        audit: &AuditRecord,
    ) -> Result<DecidedDeletion> {
        let content = content::verified_content(mode, body, &head.headers)?;
        let document = std::str::from_utf8(&content).map_err(|_| malformed())?;
        let list = DeleteList::parse(document).map_err(|_| malformed())?;
        let (needs, bucket) = (Needs::default(), self.address.bucket());
        let mut accesses = self.accesses.clone();
        let (mut allowed, mut denied) = (Vec::new(), Vec::new());
        for object in list.objects {
            let needed = delete_accesses(bucket, object.key.as_bytes(), object.version_id.is_some());
            let decision = Grants::decide(&self.caller, &needed, &needs);
            let reason = decision.as_ref().err();
            audit.add_object(bucket, object.key.as_bytes(), reason);
            match decision {
                Ok(_) => {
                    accesses.extend(needed);
                    allowed.push(object);
                }
                Err(reason @ Denied::InvalidBucket) => return Err(refuse(&reason)),
                Err(_) => denied.push(object),
            }
        }
        if !denied.is_empty() {
            tracing::info!(objects = denied.len(), "denied in a list of objects to delete");
        }
        let upstream = self.caller.key().upstream();
        if allowed.is_empty() {
            return Ok(DecidedDeletion {
                allowed: None,
                denied,
                upstream,
            });
        }
        let list = DeleteList {
            is_quiet: list.is_quiet,
            objects: allowed,
        };
        let body = Bytes::from(list.to_xml());
        let decision = Grants::decide(&self.caller, &accesses, &needs).map_err(|denied| refuse(&denied))?;
        audit.set_grant(&decision);
        let payload = SignedPayload::Hash(Sha256::digest(&body).into());
        let signing = self.signer.signing(decision, &self.address, payload);
        content::replace_headers(&mut head.headers, &body);
        Ok(DecidedDeletion {
            allowed: Some(AllowedDeletion { body, signing }),
            denied,
            upstream,
        })
    }
}

impl DecidedDeletion {
    /// What the store gets. `None` if all objects are denied: then the store gets nothing.
    pub const fn allowed(&self) -> Option<&AllowedDeletion> {
        self.allowed.as_ref()
    }

    /// The answer without the store: an error for each denied object.
    pub fn refusal(&self) -> Response<Body> {
        let mut answer = Response::new(body::full(result::document(&self.denied)));
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        if let Ok(id) = HeaderValue::from_str(&RequestId::random().to_string()) {
            headers.insert(REQUEST_ID, id);
        }
        answer
    }

    /// Adds an error for each denied object to the store's answer, and takes out what the store says of the gateway's identity.
    /// A refusal of the whole request passes unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::OriginUnavailable`] for an answer that is no result of a deletion.
    pub async fn complete(&self, answer: Response<Body>) -> Result<Response<Body>> {
        let is_unchanged = self.denied.is_empty() && self.upstream == Upstream::Caller;
        if is_unchanged || answer.status() != StatusCode::OK {
            return Ok(answer);
        }
        let (parts, body) = answer.into_parts();
        let mut document = answers::read_document(&parts.headers, body).await?;
        if self.upstream == Upstream::Gateway {
            document = result::mask_denials(&document);
        }
        if !self.denied.is_empty() {
            document = result::insert_errors(&document, &self.denied)
                .ok_or_else(|| answers::invalid("a DeleteResult"))?;
        }
        Ok(answers::replace_document(parts, document))
    }
}

fn malformed() -> Error {
    Error::new(
        ErrorKind::MalformedXml,
        "The XML you provided was not well-formed or did not validate against our published schema",
    )
}

#[cfg(test)]
mod tests;
