//! What an operator allows the gateway to remember of the store's answers: in forward mode authorizations of signed targets
//! (`--auth-cache-ttl`), in re-sign mode versions of objects that the gateway's own identity may read (`--resign-cache-max-age`).

use std::time::{Duration, SystemTime};

use chrono::NaiveDateTime;
use foyer::{Cache, CacheBuilder, EvictionConfig, FifoConfig};
use pushdown::pipeline::Digest;
use pushdown_s3::{escapes, presign};
use tokio::time::Instant;

use super::{key::group_name, writes::Writes};
use crate::{
    compute::Tenant,
    config::Scope,
    origin::{Authorization, Confirmation, ObjectId, OriginRequest},
    s3::query,
};

/// Bytes of an entry in memory.
const ENTRY_BYTES: usize = 256;

/// Answers of the store in bounded memory. The oldest are forgotten first. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Remembered {
    rules: Rules,
    table: Cache<Digest, Answer>,
    writes: Writes,
}

/// What may be remembered, and how long.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rules {
    /// Time for an authorization of a signed target; zero for none.
    pub(super) auth_ttl: Duration,
    /// Time for a version that the gateway's own identity may read; zero for none.
    pub(super) max_age: Duration,
    /// Who shares confirmed versions: those who share values, so that the time of an answer tells no more.
    pub(super) scope: Scope,
}

/// What the store has answered.
#[derive(Debug, Clone)]
enum Answer {
    /// To a signed target, valid until this time: whoever has the bytes of the target could read the object from the store, too.
    Authorized(Authorization, SystemTime),
    /// To the gateway's own identity. The grants of a request decide whether it applies.
    Confirmed(Confirmation),
}

impl Rules {
    /// Whether anything may be remembered.
    pub(super) const fn is_enabled(&self) -> bool {
        !self.auth_ttl.is_zero() || !self.max_age.is_zero()
    }
}

impl Remembered {
    /// A table of at most `bytes`; `None` if nothing is to be remembered.
    pub(super) fn new(rules: Rules, bytes: u64) -> Option<Self> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        rules.is_enabled().then(|| Self {
            rules,
            table: CacheBuilder::new(bytes)
                .with_shards(4)
                .with_eviction_config(EvictionConfig::from(FifoConfig::default()))
                .with_weighter(|_: &Digest, _: &Answer| ENTRY_BYTES)
                .build(),
            writes: Writes::new(),
        })
    }

    /// Writes through the gateway, which end what was confirmed before. `None` if nothing is confirmed.
    pub(super) fn writes(&self) -> Option<&Writes> {
        (!self.rules.max_age.is_zero()).then_some(&self.writes)
    }

    /// Remembers the store's answer to a request: its authorization, if its target alone was signed, and never longer than its
    /// signature is valid; or the version, if the gateway's own identity signed.
    pub(super) fn insert(&self, request: &OriginRequest, authorization: &Authorization, now: SystemTime) {
        if let Some(signing) = request.signing() {
            self.insert_confirmation(signing.allowed().key().tenant(), authorization);
        } else if let Some(expiry) = signature_expiry(request) {
            let until = expiry.min(now + self.rules.auth_ttl);
            let answer = Answer::Authorized(authorization.clone(), until);
            self.table.insert(target_key(request), answer);
        }
    }

    /// The authorization of a request by an earlier answer: to the same target with the same headers, or about the version of an
    /// object that grants allow the request to read.
    pub(super) fn get(&self, request: &OriginRequest, now: SystemTime) -> Option<Authorization> {
        if let Some(signing) = request.signing() {
            let tenant = signing.allowed().key().tenant();
            let confirmation = self.confirmation(tenant, &request.object_id(), Instant::now());
            return signing.authorization(&confirmation.filter(|_| request.is_plain())?);
        }
        signature_expiry(request)?;
        let entry = self.table.get(&target_key(request))?;
        match entry.value() {
            Answer::Authorized(authorization, until) if now < *until => Some(authorization.clone()),
            _ => None,
        }
    }

    /// Remembers a version, if the gateway's own identity asked for it, and not about an earlier time than is known.
    fn insert_confirmation(&self, tenant: &str, authorization: &Authorization) {
        let confirmation = authorization.confirmation();
        let Some(confirmation) = confirmation.filter(|_| !self.rules.max_age.is_zero()) else {
            return;
        };
        let key = self.object_key(tenant, confirmation.object());
        let is_overtaken = self.table.get(&key).is_some_and(|entry| {
            matches!(entry.value(), Answer::Confirmed(later) if later.asked_at() > confirmation.asked_at())
        });
        if !is_overtaken {
            self.table.insert(key, Answer::Confirmed(confirmation));
        }
    }

    /// The version that was confirmed within the last `max_age`, and not written through the gateway since.
    fn confirmation(&self, tenant: &str, object: &ObjectId, now: Instant) -> Option<Confirmation> {
        let entry = self.table.get(&self.object_key(tenant, object))?;
        let Answer::Confirmed(confirmation) = entry.value() else {
            return None;
        };
        let asked_at = confirmation.asked_at();
        let is_recent = now.saturating_duration_since(asked_at) < self.rules.max_age;
        let is_current = is_recent && !self.writes.is_written_since(object, asked_at);
        is_current.then(|| confirmation.clone())
    }

    fn object_key(&self, tenant: &str, object: &ObjectId) -> Digest {
        let tenant = Tenant::from_access_key(Some(tenant));
        let group = group_name(self.rules.scope, &tenant);
        Digest::from_parts([object.object_digest().as_bytes().as_slice(), group.as_bytes()])
    }
}

/// Digest of everything that the store would see: policies may ask for any header.
fn target_key(request: &OriginRequest) -> Digest {
    let target = request.target().to_string();
    let headers = request.headers().iter();
    let headers = headers.flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
    // No signature covers the scheme.
    let store = request.store().map(|store| store.endpoint().url().to_string());
    let parts = std::iter::once(target.as_bytes()).chain(headers);
    Digest::from_parts(parts.chain(store.as_deref().map(str::as_bytes)))
}

/// When the signature in the query of a request ends. `None` if something else than the target and the host is signed.
fn signature_expiry(request: &OriginRequest) -> Option<SystemTime> {
    let query = request.target().query()?;
    let value = |name| {
        let mut values = query::values(query, name);
        let value = String::from_utf8(escapes::decode_lenient(values.next()?).into_owned()).ok()?;
        values.next().is_none().then_some(value)
    };
    value(presign::SIGNATURE)?;
    if value(presign::SIGNED_HEADERS)? != "host" || request.is_signed_in_header() {
        return None;
    }
    let date = NaiveDateTime::parse_from_str(&value(presign::DATE)?, "%Y%m%dT%H%M%SZ").ok()?;
    let seconds = u64::try_from(date.and_utc().timestamp()).ok()?;
    let valid: u32 = value(presign::EXPIRES)?.parse().ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_secs(valid.into()))
}

#[cfg(test)]
mod tests;
