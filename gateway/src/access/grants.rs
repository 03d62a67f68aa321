//! The grants of a key, and the decision whether a key may do what a request needs.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use super::action::{Access, Action, Target};
use super::caller::Caller;
use super::grant::Grant;
use super::key::Key;
use super::{Keys, names};

/// The grants of a key. They only allow: what no grant covers is denied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants(Vec<Grant>);

/// What a request needs besides its accesses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Whether the gateway runs a pipeline of the caller on what is read.
    pub pipelines: bool,
    /// Names of the models that the request runs or downloads.
    pub models: Vec<String>,
}

/// A request that a key may make. Only [`Grants::decide`] makes one.
#[derive(Debug, Clone)]
pub struct Allowed {
    caller: Caller,
    accesses: Arc<[Access]>,
    needs: Needs,
    grant: Option<usize>,
}

/// Why a request is denied. This is for the audit log and never for the caller, who would learn from it which buckets and
/// models exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// The request needs nothing, so there is nothing to allow.
    NoAccess,
    /// A bucket name breaks the rules of S3. The caller may learn this: no grant has been asked.
    InvalidBucket,
    /// A key or prefix has a NUL, or a segment `.` or `..`. The caller may learn this: no grant has been asked.
    UnsafeKey,
    /// No grant covers this action on its target.
    NoGrant(Action),
    /// Grants cover all actions, but one of them without pipelines.
    NoPipelines,
    /// The key may not use the model with this name.
    NoModel(String),
}

impl Grants {
    pub(super) const fn new(grants: Vec<Grant>) -> Self {
        Self(grants)
    }

    /// Decides whether `caller` may make a request that needs all of `accesses` and `needs`.
    ///
    /// # Errors
    /// The first reason against it. Names that are unsafe to decide on come first, before any grant is asked, unless the store
    /// alone decides ([`Key::is_unrestricted`]).
    pub fn decide(caller: impl Into<Caller>, accesses: &[Access], needs: &Needs) -> Result<Allowed, Denied> {
        let caller = caller.into();
        let grant = evaluate(caller.key(), accesses, needs)?;
        Ok(Allowed {
            caller,
            accesses: accesses.into(),
            needs: needs.clone(),
            grant,
        })
    }

    /// Whether there are no grants.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The grants, in the order of the file.
    pub fn as_slice(&self) -> &[Grant] {
        &self.0
    }

    /// Whether a grant is about this bucket.
    pub(super) fn has_bucket(&self, bucket: &[u8]) -> bool {
        self.0.iter().any(|grant| grant.bucket.contains(bucket))
    }

    /// The number of the first grant that covers an access, counted from 1.
    fn covering(&self, access: &Access, needs_pipelines: bool) -> Result<usize, Denied> {
        let needs_pipelines = needs_pipelines && access.action() == Action::Read;
        let mut denied = Denied::NoGrant(access.action());
        for (number, grant) in (1..).zip(&self.0) {
            if grant.covers(access) {
                if grant.pipelines || !needs_pipelines {
                    return Ok(number);
                }
                denied = Denied::NoPipelines;
            }
        }
        Err(denied)
    }
}

/// The number of the grant that covers the first access. `None` if no grant was asked.
fn evaluate(key: &Key, accesses: &[Access], needs: &Needs) -> Result<Option<usize>, Denied> {
    if accesses.is_empty() && needs.models.is_empty() {
        return Err(Denied::NoAccess);
    }
    let is_unrestricted = key.is_unrestricted();
    if !is_unrestricted {
        accesses.iter().try_for_each(check_names)?;
    }
    if let Some(model) = needs.models.iter().find(|model| !key.models().contains(model)) {
        return Err(Denied::NoModel(model.clone()));
    }
    if is_unrestricted {
        return Ok(None);
    }
    if needs.pipelines && !accesses.iter().any(|access| access.action() == Action::Read) {
        return Err(Denied::NoPipelines);
    }
    let mut first = None;
    for access in accesses {
        let number = key.grants().covering(access, needs.pipelines)?;
        first = first.or(Some(number));
    }
    Ok(first)
}

fn check_names(access: &Access) -> Result<(), Denied> {
    let (bucket, path) = match access.target() {
        Target::Service => return Ok(()),
        Target::Bucket { bucket } => (bucket, None),
        Target::Prefix { bucket, prefix: path } | Target::Object { bucket, key: path } => {
            (bucket, Some(path))
        }
    };
    if !names::is_bucket_name(bucket) {
        return Err(Denied::InvalidBucket);
    }
    match path {
        Some(path) if names::is_unsafe_key(path) => Err(Denied::UnsafeKey),
        _ => Ok(()),
    }
}

impl Allowed {
    /// The key that makes the request.
    pub const fn key(&self) -> &Arc<Key> {
        self.caller.key()
    }

    /// Who makes the request.
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The accesses that are allowed.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// The generation of the keys file that changed the key last before the decision.
    pub fn generation(&self) -> u64 {
        self.key().generation()
    }

    /// The number of the grant that covers the first access, counted from 1, for the audit log. `None` without an access, or if
    /// the store alone decides.
    pub const fn grant(&self) -> Option<usize> {
        self.grant
    }

    /// Whether the request is allowed by the keys in use now: to be asked before each read of the store.
    ///
    /// It costs a look-up while the key stays the same. After a change, the decision is made again. A request is not valid
    /// any more if its key or its secret was removed, or if someone else signs for the key at the store.
    pub fn is_still_valid(&self, keys: &Keys) -> bool {
        let key = self.key();
        let Some(current) = keys.get(key.access_key()) else {
            return false;
        };
        if Arc::ptr_eq(&current, key) {
            return true;
        }
        let is_left = |secret| current.secrets().contains(secret);
        self.caller.secret().is_some_and(is_left)
            && current.upstream() == key.upstream()
            && current.models() == key.models()
            && evaluate(&current, &self.accesses, &self.needs).is_ok()
    }
}

impl Denied {
    /// The reason, for the audit log.
    pub fn audit_reason(&self) -> String {
        match self {
            Self::NoAccess => "request without an access".to_owned(),
            Self::InvalidBucket => "invalid bucket name".to_owned(),
            Self::UnsafeKey => "unsafe key".to_owned(),
            Self::NoGrant(action) => format!("no grant: {action}"),
            Self::NoPipelines => "no grant: pipelines".to_owned(),
            Self::NoModel(name) => format!("no model: {name}"),
        }
    }
}

/// For logs.
impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.audit_reason())
    }
}

impl std::error::Error for Denied {}
