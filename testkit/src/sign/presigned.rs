//! Presigned requests: what their query claims, and the verification of their signatures.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use chrono::NaiveDateTime;
use percent_encoding::percent_decode_str;

use super::Keys;
use crate::raw::Request;

/// Names of the parameters of a signature begin so.
const PREFIX: &str = "X-Amz-";

/// What the query of a presigned request claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Presigned {
    pub(crate) access_key: String,
    pub(crate) region: String,
    pub(crate) time: SystemTime,
    pub(crate) expires: Duration,
    pub(crate) token: Option<String>,
    /// Names in lower case.
    signed_headers: Vec<String>,
    signature: String,
    /// The target without the parameters of the signature.
    pub(crate) target: String,
}

impl Presigned {
    /// Reads the query of a target. `None` without a presigned signature of version 4 for S3.
    pub(crate) fn parse(target: &str) -> Option<Self> {
        let (path, query) = target.split_once('?')?;
        let (signing, others): (Vec<_>, Vec<_>) = query
            .split('&')
            .partition(|parameter| parameter.starts_with(PREFIX));
        let value = |name: &str| {
            let mut pairs = signing.iter().filter_map(|parameter| parameter.split_once('='));
            let (_, value) = pairs.find(|(key, _)| key.strip_prefix(PREFIX) == Some(name))?;
            Some(percent_decode_str(value).decode_utf8().ok()?.into_owned())
        };
        let credential = value("Credential")?;
        let scope: Vec<&str> = credential.split('/').collect();
        let [access_key, _date, region, "s3", "aws4_request"] = scope[..] else {
            return None;
        };
        let time = NaiveDateTime::parse_from_str(&value("Date")?, "%Y%m%dT%H%M%SZ").ok()?;
        let target = if others.is_empty() {
            path.to_owned()
        } else {
            format!("{path}?{}", others.join("&"))
        };
        Some(Self {
            access_key: access_key.to_owned(),
            region: region.to_owned(),
            time: time.and_utc().into(),
            expires: Duration::from_secs(value("Expires")?.parse().ok()?),
            token: value("Security-Token"),
            signed_headers: value("SignedHeaders")?.split(';').map(str::to_owned).collect(),
            signature: value("Signature")?,
            target,
        })
    }

    /// Whether the signature covers this header, whose name is in lower case.
    pub(crate) fn has_signed(&self, name: &str) -> bool {
        self.signed_headers.iter().any(|signed| signed == name)
    }
}

impl Keys {
    /// Whether a request has the presigned signature that these keys compute for it. Its body is not signed.
    ///
    /// # Errors
    /// For a request that cannot be signed.
    pub(crate) fn has_presigned(&self, request: &Request, presigned: &Presigned) -> Result<bool> {
        // The token that is signed is that of the keys, whatever the request has.
        if presigned.token != self.token {
            return Ok(false);
        }
        let keys = Self {
            region: presigned.region.clone(),
            time: Some(presigned.time),
            ..self.clone()
        };
        let mut unsigned = request.clone();
        unsigned.target.clone_from(&presigned.target);
        unsigned
            .headers
            .retain(|(name, _)| presigned.has_signed(&name.to_ascii_lowercase()));
        let expected = keys.presign(unsigned, presigned.expires)?;
        let expected = Presigned::parse(&expected.target).context("no presigned signature")?;
        Ok(expected.signature == presigned.signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPIRES: Duration = Duration::from_secs(90);

    fn keys() -> Keys {
        Keys {
            token: Some("token//of+session==".to_owned()),
            ..Keys::new("ASIATEST", "secret")
        }
    }

    fn presigned() -> Request {
        let request = Request::new("GET", "/a%20key/b%2Bc?x-id=Get%2FObject")
            .header("Host", "photos.s3.us-east-1.localhost:80");
        keys().presign(request, EXPIRES).unwrap()
    }

    fn verify(keys: &Keys, request: &Request) -> bool {
        let presigned = Presigned::parse(&request.target);
        presigned.is_some_and(|presigned| keys.has_presigned(request, &presigned).unwrap())
    }

    #[test]
    fn a_query_claims_a_key_a_time_and_a_target() {
        let found = Presigned::parse(&presigned().target).unwrap();
        assert_eq!(found.access_key, "ASIATEST");
        assert_eq!((found.region.as_str(), found.expires), ("us-east-1", EXPIRES));
        assert_eq!(found.token.as_deref(), Some("token//of+session=="));
        assert_eq!(found.target, "/a%20key/b%2Bc?x-id=Get%2FObject");
        assert!(found.has_signed("host") && !found.has_signed("range"));
        for target in ["/k", "/k?x-id=1", "/k?X-Amz-Credential=A%2Fb"] {
            assert_eq!(Presigned::parse(target), None, "{target}");
        }
    }

    #[test]
    fn a_presigned_signature_is_that_of_its_own_request() {
        let request = presigned();
        assert!(verify(&keys(), &request));
        assert!(verify(&keys(), &request.clone().header("Range", "bytes=0-1")));
        for (from, to) in [
            ("/a%20key", "/b%20key"),
            ("x-id=Get", "x-id=Put"),
            ("X-Amz-Expires=90", "X-Amz-Expires=91"),
            ("token", "tokem"),
            ("us-east-1", "us-west-1"),
        ] {
            let other = Request {
                target: request.target.replace(from, to),
                ..request.clone()
            };
            assert_ne!(other.target, request.target, "{from}");
            assert!(!verify(&keys(), &other), "{from}");
        }
        assert!(!verify(&Keys::new("ASIATEST", "another"), &request));
        let head = Request {
            method: "HEAD".to_owned(),
            ..request
        };
        assert!(!verify(&keys(), &head));
    }
}
