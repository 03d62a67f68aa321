//! What a request needs: its S3 operation, and the accesses that must be granted before it may reach the store.
//!
//! The table of operations is complete only in one direction: a request that it does not describe in full, with a sub-resource,
//! a parameter or an `x-amz-*` header that it does not name, needs [`Action::Admin`].

mod copy_source;
mod headers;
mod operations;
mod parameters;

use http::{HeaderMap, Method};

use super::RequestAddress;
use super::query::Query;
use crate::access::{Access, Action};
use headers::HeaderEffect;
use operations::{KnownOperation, Scope};
use parameters::Parameters;

/// The S3 operation of a request, and the accesses that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    known: Option<&'static KnownOperation>,
    accesses: Vec<Access>,
}

impl Operation {
    /// Reads the operation of a request from its parts. All of them must be verified.
    pub fn new(method: &Method, address: &RequestAddress, query: &Query, headers: &HeaderMap) -> Self {
        let parameters = Parameters::from_query(query);
        let known = parameters
            .as_ref()
            .and_then(|parameters| operations::find(method, address, parameters));
        let (Some(parameters), Some(known)) = (parameters, known) else {
            return Self {
                known: None,
                accesses: vec![access(Action::Admin, address)],
            };
        };
        let mut accesses = known.accesses(address, &parameters);
        let mut needs_admin = false;
        for (name, value) in parameters.headers().chain(amz_headers(headers)) {
            match headers::effect(name) {
                HeaderEffect::None => {}
                HeaderEffect::Admin => needs_admin = true,
                HeaderEffect::CopySource => match copy_source::accesses(value) {
                    Some(source) if known.can_copy() => accesses.extend(source),
                    _ => needs_admin = true,
                },
            }
        }
        if needs_admin {
            accesses.push(access(Action::Admin, address));
        }
        Self {
            known: Some(known),
            accesses,
        }
    }

    /// The name that S3 gives the operation; `None` for operations that need [`Action::Admin`] because they are not in the table.
    pub fn name(&self) -> Option<&'static str> {
        self.known.map(KnownOperation::name)
    }

    /// The accesses that the request needs, all of them. Empty only if each key of the body is an access of its own:
    /// see [`Self::is_delete_objects`].
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Whether it lists the buckets. Its answer must be filtered to those that the key can see.
    pub fn is_list_buckets(&self) -> bool {
        self.has_scope(Scope::Service)
    }

    /// Whether it deletes the objects that its body names, each of which needs [`delete_accesses`].
    pub fn is_delete_objects(&self) -> bool {
        self.has_scope(Scope::EachKey)
    }

    fn has_scope(&self, scope: Scope) -> bool {
        self.known.is_some_and(|known| known.scope() == scope)
    }
}

/// What it needs to delete an object, or a version of it.
pub fn delete_accesses(bucket: &[u8], key: &[u8], has_version: bool) -> Vec<Access> {
    let mut accesses = vec![Access::object(Action::Delete, bucket, key)];
    if has_version {
        accesses.push(Access::object(Action::Versions, bucket, key));
    }
    accesses
}

/// An action on the object of the address, or on its bucket, or on no bucket.
fn access(action: Action, address: &RequestAddress) -> Access {
    match (address.bucket(), address.key()) {
        (b"", _) => Access::service(action),
        (bucket, b"") => Access::bucket(action, bucket),
        (bucket, key) => Access::object(action, bucket, key),
    }
}

fn amz_headers(headers: &HeaderMap) -> impl Iterator<Item = (&str, &[u8])> {
    headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .filter(|(name, _)| name.starts_with(headers::PREFIX))
}

#[cfg(test)]
mod tests;
