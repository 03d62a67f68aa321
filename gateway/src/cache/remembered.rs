//! Authorizations that an operator allows the gateway to remember for some seconds (`--auth-cache-ttl`).

use std::time::{Duration, SystemTime};

use chrono::NaiveDateTime;
use foyer::{Cache, CacheBuilder, EvictionConfig, FifoConfig};
use percent_encoding::percent_decode_str;
use pushdown::pipeline::Digest;
use pushdown_s3::presign;

use crate::{
    origin::{Authorization, OriginRequest},
    s3::query,
};

/// Bytes of an entry in memory.
const ENTRY_BYTES: usize = 256;

/// The authorizations of signed targets, byte for byte: whoever has these bytes could read the object from the store, too.
/// Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Remembered {
    ttl: Duration,
    table: Cache<Digest, (Authorization, SystemTime)>,
}

impl Remembered {
    /// A table of at most `bytes`; `None` if nothing is to be remembered.
    pub(super) fn new(ttl: Duration, bytes: u64) -> Option<Self> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        (!ttl.is_zero()).then(|| Self {
            ttl,
            table: CacheBuilder::new(bytes)
                .with_shards(4)
                .with_eviction_config(EvictionConfig::from(FifoConfig::default()))
                .with_weighter(|_: &Digest, _: &(Authorization, SystemTime)| ENTRY_BYTES)
                .build(),
        })
    }

    /// Remembers the authorization of a request, if its target alone was signed. Never longer than its signature is valid.
    pub(super) fn insert(&self, request: &OriginRequest, authorization: &Authorization, now: SystemTime) {
        if let Some(expiry) = signature_expiry(request) {
            let until = expiry.min(now + self.ttl);
            self.table.insert(key(request), (authorization.clone(), until));
        }
    }

    /// The authorization of an earlier request with the same target and the same headers.
    pub(super) fn get(&self, request: &OriginRequest, now: SystemTime) -> Option<Authorization> {
        signature_expiry(request)?;
        let entry = self.table.get(&key(request))?;
        let (authorization, until) = entry.value();
        (now < *until).then(|| authorization.clone())
    }
}

/// Digest of everything that the store would see: policies may ask for any header.
fn key(request: &OriginRequest) -> Digest {
    let target = request.target().to_string();
    let headers = request.headers().iter();
    let headers = headers.flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
    Digest::from_parts(std::iter::once(target.as_bytes()).chain(headers))
}

/// When the signature in the query of a request ends. `None` if something else than the target and the host is signed.
fn signature_expiry(request: &OriginRequest) -> Option<SystemTime> {
    let query = request.target().query()?;
    let value = |name| {
        let mut values = query::values(query, name);
        let value = percent_decode_str(values.next()?).decode_utf8().ok()?;
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
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode, header};

    use super::*;
    use crate::origin::OriginObject;

    const SIGNED: &str = "/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a%2F20260101%2Fr%2Fs3%2Faws4_request\
        &X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=00";

    fn request(target: &str) -> OriginRequest {
        OriginRequest::for_sample(HeaderValue::from_static("store"), target.parse().unwrap())
    }

    fn authorization(request: &OriginRequest) -> Authorization {
        let headers = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("\"e\""))]);
        let answer = OriginObject::for_test(StatusCode::OK, headers);
        Authorization::from_answer(request.object_id(), &answer).unwrap()
    }

    /// Seconds after the time of the signature.
    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600 + seconds)
    }

    #[test]
    fn only_the_same_bytes_are_recalled() {
        let remembered = Remembered::new(Duration::from_mins(1), 1 << 20).unwrap();
        let request = request(SIGNED);
        remembered.insert(&request, &authorization(&request), at(0));
        assert_eq!(remembered.get(&request, at(59)), Some(authorization(&request)));
        assert_eq!(remembered.get(&request, at(60)), None, "after the ttl");
        let others = [
            SIGNED.replace("Signature=00", "Signature=01"),
            SIGNED.replace("/b/k", "/b/%6B"),
            format!("{SIGNED}&x=y"),
        ];
        for other in others {
            assert_eq!(remembered.get(&self::request(&other), at(1)), None, "{other}");
        }
        let other_host =
            OriginRequest::for_sample(HeaderValue::from_static("other"), SIGNED.parse().unwrap());
        assert_eq!(remembered.get(&other_host, at(1)), None);
    }

    #[test]
    fn nothing_is_remembered_beyond_its_signature() {
        let remembered = Remembered::new(Duration::from_mins(1), 1 << 20).unwrap();
        let request = request(SIGNED);
        remembered.insert(&request, &authorization(&request), at(890));
        assert!(remembered.get(&request, at(899)).is_some());
        assert_eq!(remembered.get(&request, at(900)), None);
    }

    #[test]
    fn requests_whose_target_does_not_say_all_are_not_remembered() {
        for target in [
            "/b/k".to_owned(),
            SIGNED.replace("SignedHeaders=host", "SignedHeaders=host%3Brange"),
            SIGNED.replace("X-Amz-Expires=900", "X-Amz-Expires=soon"),
            SIGNED.replace("X-Amz-Date=20260101T000000Z", "X-Amz-Date=today"),
            SIGNED.replace("&X-Amz-Signature=00", ""),
            format!("{SIGNED}&X-Amz-Expires=900000"),
        ] {
            assert_eq!(signature_expiry(&request(&target)), None, "{target}");
        }
        assert!(Remembered::new(Duration::ZERO, 1 << 20).is_none());
    }
}
