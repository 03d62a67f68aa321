//! Conditions of requests to the embedded store, evaluated after it has authorized the request.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use pushdown_testkit::{Gateway, Keys, Payload, Request, Response};

use super::binary;

const KEY: &str = "/bucket/key";
const EXPIRES: Duration = Duration::from_mins(1);

/// A gateway on its embedded store, with one object.
struct Lab {
    gateway: Gateway,
    keys: Keys,
}

impl Lab {
    fn start() -> Result<Self> {
        let keys = Keys::new("accesskey", "secretkey");
        let gateway = Gateway::embedded(binary(), &keys, [""; 0])?;
        let lab = Self { gateway, keys };
        assert_eq!(lab.send("PUT", "/bucket", "")?.status, 200);
        assert_eq!(lab.send("PUT", KEY, "first")?.status, 200);
        Ok(lab)
    }

    fn request(&self, method: &str, target: &str) -> Request {
        Request::new(method, target).header("Host", &self.gateway.listen().to_string())
    }

    fn send(&self, method: &str, target: &str, body: &str) -> Result<Response> {
        let request = self.request(method, target).body(body);
        self.keys
            .sign(request, Payload::Signed)?
            .send(self.gateway.listen())
    }

    /// A presigned GET with a header that is not signed, as the gateway sends it to revalidate a value.
    fn get_by(&self, keys: &Keys, name: &str, value: &str) -> Result<Response> {
        let request = keys.presign(self.request("GET", KEY), EXPIRES)?;
        request.header(name, value).send(self.gateway.listen())
    }

    fn get(&self, name: &str, value: &str) -> Result<Response> {
        self.get_by(&self.keys, name, value)
    }

    fn etag(&self) -> Result<String> {
        let head = self.send("HEAD", KEY, "")?;
        Ok(head.header("etag").context("no ETag")?.to_owned())
    }
}

#[test]
fn a_matching_etag_is_304_without_a_body() -> Result<()> {
    let lab = Lab::start()?;
    let etag = lab.etag()?;
    for tags in [etag.clone(), "*".to_owned(), format!("\"other\", {etag}")] {
        let answer = lab.get("If-None-Match", &tags)?;
        assert_eq!((answer.status, answer.text().as_str()), (304, ""), "{tags}");
        assert_eq!(answer.header("etag"), Some(etag.as_str()));
        assert_eq!(answer.header("content-length"), None);
    }
    let signed = lab.request("GET", KEY).header("If-None-Match", &etag);
    let signed = lab.keys.sign(signed, Payload::Signed)?;
    assert_eq!(signed.send(lab.gateway.listen())?.status, 304);
    let other = lab.get("If-None-Match", "\"other\"")?;
    assert_eq!((other.status, other.text().as_str()), (200, "first"));
    Ok(())
}

#[test]
fn a_false_precondition_is_412() -> Result<()> {
    let lab = Lab::start()?;
    let same = lab.get("If-Match", &lab.etag()?)?;
    assert_eq!((same.status, same.text().as_str()), (200, "first"));
    let other = lab.get("If-Match", "\"other\"")?;
    assert_eq!(
        (other.status, other.element("Code").as_deref()),
        (412, Some("PreconditionFailed"))
    );
    Ok(())
}

/// A condition tells nothing to those who may not read the object.
#[test]
fn the_store_authorizes_a_request_before_its_condition() -> Result<()> {
    let lab = Lab::start()?;
    let etag = lab.etag()?;
    let earlier = SystemTime::now() - Duration::from_hours(1);
    for (who, keys) in [
        ("a wrong signature", Keys::new("accesskey", "othersecret")),
        ("an unknown access key", Keys::new("otherkey", "secretkey")),
        ("an expired signature", lab.keys.with_time(earlier)),
    ] {
        for tags in [etag.as_str(), "*", "\"other\""] {
            let answer = lab.get_by(&keys, "If-None-Match", tags)?;
            assert_eq!(answer.status, 403, "{who}: {tags}");
            assert_eq!(answer.header("etag"), None, "{who}: {tags}");
        }
    }
    let anonymous = lab.request("GET", KEY).header("If-None-Match", &etag);
    assert_eq!(anonymous.send(lab.gateway.listen())?.status, 403);
    Ok(())
}

#[test]
fn a_replaced_object_is_sent_and_a_deleted_one_is_404() -> Result<()> {
    let lab = Lab::start()?;
    let etag = lab.etag()?;
    assert_eq!(lab.send("PUT", KEY, "second")?.status, 200);
    let replaced = lab.get("If-None-Match", &etag)?;
    assert_eq!((replaced.status, replaced.text().as_str()), (200, "second"));
    assert_ne!(replaced.header("etag"), Some(etag.as_str()));
    assert_eq!(lab.send("DELETE", KEY, "")?.status, 204);
    for tags in [etag.as_str(), "*"] {
        let deleted = lab.get("If-None-Match", tags)?;
        assert_eq!(
            (deleted.status, deleted.element("Code").as_deref()),
            (404, Some("NoSuchKey")),
            "{tags}"
        );
    }
    Ok(())
}
