//! The credential of a signature: `KEY/date/region/s3/aws4_request`.

use std::borrow::Cow;

use super::error::AuthError;
use crate::s3::sign::Carrier;

const SERVICE: &str = "s3";
const TERMINAL: &str = "aws4_request";

/// The access key of a credential, and what its signature is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scope<'a> {
    pub(super) access_key: &'a str,
    pub(super) date: &'a str,
    pub(super) region: &'a str,
}

impl<'a> Scope<'a> {
    /// Parses a credential from its end: a key can contain slashes.
    pub(super) fn parse(credential: &'a str, carrier: Carrier) -> Result<Self, AuthError> {
        let malformed = |reason: Cow<'static, str>| AuthError::MalformedCredential { carrier, reason };
        let mut parts = credential.rsplitn(5, '/');
        let (Some(terminal), Some(service), Some(region), Some(date), Some(access_key)) = (
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next().filter(|key| !key.is_empty()),
        ) else {
            return Err(malformed(
                "the Credential is mal-formed; expecting \"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\".".into(),
            ));
        };
        if date.len() != 8 || !date.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(malformed(
                format!(
                    "incorrect date format {date:?}. This date in the credential must be in the format \"yyyyMMdd\"."
                )
                .into(),
            ));
        }
        if service != SERVICE {
            return Err(malformed(
                format!("incorrect service {service:?}. This endpoint belongs to \"s3\".").into(),
            ));
        }
        if terminal != TERMINAL {
            return Err(malformed(
                format!("incorrect terminal {terminal:?}. This endpoint uses \"aws4_request\".").into(),
            ));
        }
        Ok(Self {
            access_key,
            date,
            region,
        })
    }

    /// Checks that the scope has one of the regions, and the date of the signature's time.
    pub(super) fn check(
        &self,
        regions: &[String],
        timestamp: &str,
        carrier: Carrier,
    ) -> Result<(), AuthError> {
        if !regions.iter().any(|region| region == self.region) {
            return Err(AuthError::WrongRegion {
                carrier,
                found: self.region.to_owned(),
                expected: regions.first().cloned().unwrap_or_default(),
            });
        }
        if timestamp.get(..8) != Some(self.date) {
            return Err(AuthError::MalformedCredential {
                carrier,
                reason: format!(
                    "Invalid credential date {:?}. This date is not the same as X-Amz-Date: {timestamp:?}.",
                    self.date
                )
                .into(),
            });
        }
        Ok(())
    }
}

impl std::fmt::Display for Scope<'_> {
    /// The scope as it is signed, without the access key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{SERVICE}/{TERMINAL}", self.date, self.region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(credential: &str) -> String {
        match Scope::parse(credential, Carrier::Header) {
            Err(AuthError::MalformedCredential { reason, .. }) => reason.into_owned(),
            other => panic!("{credential}: {other:?}"),
        }
    }

    #[test]
    fn credentials_are_split_from_the_right() {
        let scope = Scope::parse("A/K/20130524/us-east-1/s3/aws4_request", Carrier::Header).unwrap();
        assert_eq!(
            (scope.access_key, scope.date, scope.region),
            ("A/K", "20130524", "us-east-1")
        );
        assert_eq!(scope.to_string(), "20130524/us-east-1/s3/aws4_request");
    }

    #[test]
    fn malformed_credentials_are_refused() {
        for credential in [
            "",
            "AK",
            "20130524/us-east-1/s3/aws4_request",
            "/20130524/us-east-1/s3/aws4_request",
        ] {
            assert!(reason(credential).starts_with("the Credential is mal-formed"));
        }
        assert!(reason("AK/2013/r/s3/aws4_request").starts_with("incorrect date format \"2013\""));
        assert!(reason("AK/20130524/r/ec2/aws4_request").starts_with("incorrect service \"ec2\""));
        assert!(reason("AK/20130524/r/s3/aws5").starts_with("incorrect terminal \"aws5\""));
    }

    #[test]
    fn region_and_date_must_match() {
        let regions = ["eu-central-1".to_owned(), "us-east-1".to_owned()];
        let check = |credential: &str, timestamp: &str| {
            let scope = Scope::parse(credential, Carrier::Query).unwrap();
            scope.check(&regions, timestamp, Carrier::Query)
        };
        let credential = "AK/20130524/us-east-1/s3/aws4_request";
        assert_eq!(check(credential, "20130524T000000Z"), Ok(()));
        assert!(matches!(
            check(credential, "20130525T000000Z"),
            Err(AuthError::MalformedCredential { .. })
        ));
        assert_eq!(
            check("AK/20130524/mars-1/s3/aws4_request", "20130524T000000Z"),
            Err(AuthError::WrongRegion {
                carrier: Carrier::Query,
                found: "mars-1".to_owned(),
                expected: "eu-central-1".to_owned(),
            })
        );
    }
}
