//! Checks the texts of a batch request that become a part of requests to the store.

use pushdown_core::{Error, Result};
use pushdown_s3::{Address, StoreEndpoint, presign};

use super::{BatchSample, is_etag_hint};

/// The parameters of a presigned query that the samples of a batch share. All but the last two are required.
const SIGNING: [&str; 7] = [
    presign::ALGORITHM,
    presign::CREDENTIAL,
    presign::DATE,
    presign::EXPIRES,
    presign::SIGNED_HEADERS,
    presign::SECURITY_TOKEN,
    presign::CONTENT_SHA256,
];
const REQUIRED: usize = 5;

impl BatchSample {
    /// Checks everything that does not depend on the pipeline, of a sample in a request that states this `store`.
    pub fn check(&self, store: Option<&StoreEndpoint>) -> Result<()> {
        check_path(store, &self.path)?;
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_signature = |signature: &String| signature.len() == 64 && signature.bytes().all(hex);
        if !self.signature.as_ref().is_none_or(is_signature) {
            return Err(Error::wire(
                "invalid signature: expected 64 lower-case hex digits",
            ));
        }
        self.check_member(store)?;
        if self.etag.as_deref().is_some_and(|etag| !is_etag_hint(etag)) {
            return Err(Error::wire(
                "invalid etag: expected 1 to 1024 characters of visible ASCII, as listed by the store",
            ));
        }
        match &self.version {
            Some(version) if version.is_empty() || !version.bytes().all(is_query_value) => Err(Error::wire(
                format!("invalid version: expected the signed, percent-encoded version, found {version:?}"),
            )),
            _ => Ok(()),
        }
    }
}

/// Checks the part of a presigned query that all samples share.
pub fn check_presign(query: &str) -> Result<()> {
    let mut seen = [false; SIGNING.len()];
    for parameter in query.split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let Some(index) = SIGNING.iter().position(|known| *known == name) else {
            return Err(match name {
                presign::SIGNATURE => Error::wire("invalid presign: X-Amz-Signature belongs to each sample"),
                _ => Error::wire(format!(
                    "invalid presign: expected only {}, found {name:?}",
                    SIGNING.join(", ")
                )),
            });
        };
        if std::mem::replace(&mut seen[index], true) {
            return Err(Error::wire(format!("invalid presign: repeated {name}")));
        }
        if value.is_empty() || !value.bytes().all(is_query_value) {
            return Err(Error::wire(format!(
                "invalid presign: expected a percent-encoded value of {name}"
            )));
        }
        if name == presign::SIGNED_HEADERS && value != "host" {
            return Err(Error::wire(format!(
                "invalid presign: expected `host` as the only signed header, found {value:?}"
            )));
        }
    }
    match SIGNING[..REQUIRED].iter().zip(seen).find(|(_, seen)| !seen) {
        Some((name, _)) => Err(Error::wire(format!("invalid presign: missing {name}"))),
        None => Ok(()),
    }
}

fn check_path(store: Option<&StoreEndpoint>, path: &str) -> Result<()> {
    // A query can have a signature.
    let shown = path.split(['?', '#']).next().unwrap_or_default();
    let fault = |expected: &str| {
        Err(Error::wire(format!(
            "invalid path: expected {expected}, found {shown:?}"
        )))
    };
    if !path
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#'))
    {
        return fault("the signed, percent-encoded path without a query");
    }
    match Address::new(store, path) {
        Some(address) if address.is_object() => Ok(()),
        _ if store.and_then(StoreEndpoint::bucket).is_some() => {
            fault("/key, because the host names the bucket")
        }
        _ => fault("/bucket/key"),
    }
}

const fn is_query_value(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'&' | b'#' | b'?' | b'=' | b'+')
}

#[cfg(test)]
mod tests {
    use super::{super::PRESIGN, *};

    type Change = fn(&mut BatchSample);

    fn sample() -> BatchSample {
        BatchSample::new("/bucket/a%20b+c/%2F%C3%A9.jpg", "0f".repeat(32))
    }

    #[test]
    fn samples_are_checked() {
        sample().check(None).unwrap();
        BatchSample::for_signed_batch("/bucket/k").check(None).unwrap();
        let listed = BatchSample {
            etag: Some("\"0f-2\"".to_owned()),
            ..sample()
        };
        listed.check(None).unwrap();
        let faults: [Change; 18] = [
            |sample| sample.path = String::new(),
            |sample| sample.path = "bucket/key".to_owned(),
            |sample| sample.path = "/bucket".to_owned(),
            |sample| sample.path = "/bucket/".to_owned(),
            |sample| sample.path = "//key".to_owned(),
            |sample| sample.path = "/bucket/key?versionId=1".to_owned(),
            |sample| sample.path = "/bucket/key#1".to_owned(),
            |sample| sample.path = "/bucket/a b".to_owned(),
            |sample| sample.path = "/bucket/a\r\nHost: x".to_owned(),
            |sample| sample.path = "/bucket/\u{e9}".to_owned(),
            |sample| sample.signature = Some("0".repeat(63)),
            |sample| sample.signature = Some("0F".repeat(32)),
            |sample| sample.version = Some("1&acl".to_owned()),
            |sample| sample.version = Some(String::new()),
            |sample| sample.etag = Some(String::new()),
            |sample| sample.etag = Some("\"a b\"".to_owned()),
            |sample| sample.etag = Some("\"\u{e9}\"".to_owned()),
            |sample| sample.etag = Some("0".repeat(1025)),
        ];
        for (index, change) in faults.into_iter().enumerate() {
            let mut sample = sample();
            change(&mut sample);
            let error = sample.check(None).unwrap_err();
            assert_eq!(
                error.kind(),
                pushdown_core::ErrorKind::InvalidWire,
                "{index}: {error}"
            );
        }
    }

    #[test]
    fn presign_has_signing_parameters_only() {
        check_presign(PRESIGN).unwrap();
        check_presign(&format!("{PRESIGN}&X-Amz-Security-Token=a%2Bb%3D")).unwrap();
        for (presign, expected) in [
            (String::new(), "found \"\""),
            ("X-Amz-Date=1".to_owned(), "missing X-Amz-Algorithm"),
            (format!("{PRESIGN}&X-Amz-Signature=0f"), "belongs to each sample"),
            (format!("{PRESIGN}&"), "found \"\""),
            (format!("{PRESIGN}&acl"), "found \"acl\""),
            (format!("{PRESIGN}&x-amz-date=1"), "found \"x-amz-date\""),
            (format!("{PRESIGN}&X-Amz-Date=1"), "repeated X-Amz-Date"),
            (
                format!("{PRESIGN}&X-Amz-Security-Token="),
                "expected a percent-encoded value",
            ),
            (
                format!("{PRESIGN}&X-Amz-Security-Token=a b"),
                "expected a percent-encoded value",
            ),
            (
                PRESIGN.replace("=host", "=host%3Brange"),
                "`host` as the only signed header",
            ),
        ] {
            let error = check_presign(&presign).unwrap_err().to_string();
            assert!(error.contains(expected), "{presign}: {error}");
        }
    }
}
