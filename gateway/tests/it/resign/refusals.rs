//! Requests that fail verification: each gets its answer, and none opens a connection to the store.

use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use pushdown_testkit::{Keys, Payload, Request, ScriptedOrigin};

use super::{
    BUCKET, Client, DOMAIN, Grant, KeysFile, VALID, accept, caller, error_of, identity, key_block, launch,
    trainer,
};

const HOUR: Duration = Duration::from_hours(1);
/// More than the clocks of a caller and the gateway may differ.
const SKEW: Duration = Duration::from_mins(16);

/// No refusal is for lack of a grant.
const ALL: Grant = Grant::new("*", "", &["list", "read", "write", "delete", "versions", "admin"]);

/// What is wrong with a request, the request, and the status and the code of its answer.
type Case = (&'static str, Request, u16, &'static str);

/// Builds requests to one object, by a key that the gateway knows.
struct Cases {
    client: Client,
    cases: Vec<Case>,
}

impl Cases {
    fn add(&mut self, name: &'static str, request: Request, status: u16, code: &'static str) {
        self.cases.push((name, request, status, code));
    }

    fn get(&self) -> Request {
        self.client.request("GET", &format!("{BUCKET}/2024/a"))
    }

    fn signed(&self) -> Result<Request> {
        self.client.keys.sign(self.get(), Payload::Signed)
    }

    fn presigned(&self) -> Result<Request> {
        self.client.keys.presign(self.get(), VALID)
    }

    fn keys(&mut self) -> Result<()> {
        let wrong = Keys::new(&self.client.keys.access, "another-secret-of-tests");
        let unknown = Keys::new("TESTUNKNOWN00001", &self.client.keys.secret);
        for (name, keys, code) in [
            ("a wrong secret", wrong, "SignatureDoesNotMatch"),
            ("an unknown key", unknown, "InvalidAccessKeyId"),
        ] {
            self.add(name, keys.sign(self.get(), Payload::Signed)?, 403, code);
            self.add(name, keys.presign(self.get(), VALID)?, 403, code);
            let upload = self
                .client
                .request("PUT", &format!("{BUCKET}/2024/a"))
                .body("pixels");
            self.add(name, keys.sign(upload, Payload::Chunks)?, 403, code);
        }
        Ok(())
    }

    fn times(&mut self) -> Result<()> {
        let (keys, now) = (self.client.keys.clone(), SystemTime::now());
        for (name, time) in [
            ("a signature of the past", now - SKEW),
            ("a signature of the future", now + SKEW),
        ] {
            let request = keys.with_time(time).sign(self.get(), Payload::Signed)?;
            self.add(name, request, 403, "RequestTimeTooSkewed");
        }
        let expired = keys.with_time(now - HOUR).presign(self.get(), VALID)?;
        self.add("an expired URL", expired, 403, "AccessDenied");
        let early = keys.with_time(now + SKEW).presign(self.get(), HOUR)?;
        self.add("a URL that is not valid yet", early, 403, "AccessDenied");
        let long = keys.presign(self.get(), 192 * HOUR)?;
        self.add(
            "a URL for more than a week",
            long,
            400,
            "AuthorizationQueryParametersError",
        );
        Ok(())
    }

    fn unsigned_headers(&mut self) -> Result<()> {
        for (name, value) in [
            ("x-amz-acl", "public-read"),
            ("x-amz-copy-source", "/photos/2024/b"),
            ("x-amz-meta-label", "cat"),
            ("X-Amz-Unknown", "1"),
        ] {
            for request in [self.signed()?, self.presigned()?] {
                self.add(name, request.header(name, value), 403, "AccessDenied");
            }
        }
        Ok(())
    }

    fn changed_requests(&mut self) -> Result<()> {
        for request in [self.signed()?, self.presigned()?] {
            let method = Request {
                method: "DELETE".to_owned(),
                ..request.clone()
            };
            let path = Request {
                target: request.target.replacen("/2024/a", "/2024/b", 1),
                ..request.clone()
            };
            let separator = if request.target.contains('?') { '&' } else { '?' };
            let query = Request {
                target: format!("{}{separator}versionId=1", request.target),
                ..request.clone()
            };
            let virtual_host = with_header(request.clone(), "host", &format!("other.{DOMAIN}"));
            for (name, request) in [
                ("another method", method),
                ("another path", path),
                ("another parameter", query),
                ("another host", with_header(request, "host", "elsewhere.example")),
                ("a virtual host", virtual_host),
            ] {
                self.add(name, request, 403, "SignatureDoesNotMatch");
            }
        }
        let ranged = self.client.sign(self.get().header("Range", "bytes=0-1"))?;
        let range = with_header(ranged, "range", "bytes=0-9");
        self.add("another signed range", range, 403, "SignatureDoesNotMatch");
        Ok(())
    }

    fn carriers(&mut self) -> Result<()> {
        let both = self.client.keys.sign(self.presigned()?, Payload::Signed)?;
        self.add("two signatures", both, 400, "InvalidArgument");
        let twice = self.signed()?.header("Authorization", "AWS4-HMAC-SHA256 x");
        self.add("two Authorization headers", twice, 400, "InvalidArgument");
        let bearer = self.get().header("Authorization", "Bearer token");
        self.add("another scheme", bearer, 400, "InvalidArgument");
        let bearer = self.presigned()?.header("Authorization", "Bearer token");
        self.add(
            "another scheme beside a presigned query",
            bearer,
            400,
            "InvalidArgument",
        );
        let version_2 = self.get().header("Authorization", "AWS TESTTRAINER00001:c2ln");
        self.add("a signature of version 2", version_2, 400, "InvalidRequest");
        let target = format!("{BUCKET}/2024/a?AWSAccessKeyId=TESTTRAINER00001&Expires=1&Signature=c2ln");
        let version_2 = self.client.request("GET", &target);
        self.add("a URL of version 2", version_2, 400, "InvalidRequest");
        let malformed = self.get().header("Authorization", "AWS4-HMAC-SHA256 x");
        self.add("no fields", malformed, 400, "AuthorizationHeaderMalformed");
        let mut repeated = self.presigned()?;
        repeated.target.push_str("&X-Amz-Expires=604800");
        self.add(
            "a repeated parameter",
            repeated,
            400,
            "AuthorizationQueryParametersError",
        );
        Ok(())
    }

    fn others(&mut self) -> Result<()> {
        for target in ["/", BUCKET, "/photos/2024/a", "/_pushdown/v1/models"] {
            let anonymous = self.client.request("GET", target);
            self.add("no signature", anonymous, 403, "AccessDenied");
        }
        let elsewhere = Keys {
            region: "eu-central-1".to_owned(),
            ..self.client.keys.clone()
        };
        let header = elsewhere.sign(self.get(), Payload::Signed)?;
        self.add("another region", header, 400, "AuthorizationHeaderMalformed");
        let query = elsewhere.presign(self.get(), VALID)?;
        self.add("another region", query, 400, "AuthorizationQueryParametersError");
        let token = self.get().header("x-amz-security-token", "token");
        self.add("a session token", self.client.sign(token)?, 400, "InvalidToken");
        let mut escape = self.signed()?;
        escape.target = format!("{BUCKET}/2024/a%zz");
        self.add("an incomplete escape", escape, 400, "InvalidURI");
        let form = self
            .client
            .request("POST", BUCKET)
            .header("Content-Type", "multipart/form-data; boundary=x")
            .body("--x--");
        self.add("an HTML form", form, 501, "NotImplemented");
        Ok(())
    }
}

/// The request with another value of a header that it has.
fn with_header(mut request: Request, header: &str, other: &str) -> Request {
    for (name, value) in &mut request.headers {
        if name.eq_ignore_ascii_case(header) {
            other.clone_into(value);
        }
    }
    request
}

#[test]
fn what_is_not_verified_opens_no_connection_to_the_store() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let blocks = [
        key_block(&caller(), "self", &[]),
        key_block(&trainer(), "gateway", &[ALL]),
    ];
    let keys_file = KeysFile::new(&blocks)?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    for keys in [caller(), trainer()] {
        let mut cases = Cases {
            client: Client::new(&keys, gateway.listen()),
            cases: Vec::new(),
        };
        cases.keys()?;
        cases.times()?;
        cases.unsigned_headers()?;
        cases.changed_requests()?;
        cases.carriers()?;
        cases.others()?;
        for (name, request, status, code) in &cases.cases {
            let answer = request.send(gateway.listen())?;
            ensure!(
                error_of(&answer) == (*status, (*code).to_owned()),
                "{name}: expected {status} {code}, found {} {}",
                answer.status,
                answer.text()
            );
            let region = answer.element("Region");
            ensure!(
                *name != "another region" || region.as_deref() == Some("us-east-1"),
                "{name}: {}",
                answer.text()
            );
            ensure!(answer.header("x-amz-request-id").is_some(), "{name}");
            ensure!(origin.connections() == 0, "{name}: the store was asked");
        }
    }
    Ok(())
}
