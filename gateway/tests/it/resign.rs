//! Re-sign mode: the gateway verifies callers by its keys file, decides by their grants, and signs again for the store.

mod audit;
mod aws;
mod bodies;
mod bulk;
mod gateway_keys;
mod grants;
mod hardening;
mod head_length;
mod keys_file;
mod late_refusals;
mod leaks;
mod lies;
mod max_age;
mod members;
mod models;
mod operations;
mod own_keys;
mod pipelines;
mod refusals;
mod reload;
mod result_cache;
mod routes;
mod scans;
mod signed_batches;
mod version;

use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use pushdown_testkit::{Exchange, Gateway, Keys, Payload, Request, Response};

use super::binary;
use keys_file::{Grant, KeysFile, key_block, key_block_with_models, wait_for_reload};

const BUCKET: &str = "/photos";
/// The domain of virtual hosts.
const DOMAIN: &str = "s3.lab.example";
/// Validity of presigned requests.
const VALID: Duration = Duration::from_mins(10);

/// All that a bucket's user does.
const EVERYTHING: Grant = Grant::new("*", "", &["list", "read", "write", "delete"]).with_pipelines();

/// A key that the store knows, too.
fn caller() -> Keys {
    Keys::new("TESTCALLER000001", "secret-of-the-caller")
}

/// A key that only the gateway knows.
fn trainer() -> Keys {
    Keys::new("TESTTRAINER00001", "secret-of-the-trainer")
}

/// What the gateway signs with for keys that the store does not know.
fn identity() -> Keys {
    Keys::new("TESTGATEWAY00001", "secret-of-the-gateway")
}

/// Launches a gateway in re-sign mode in front of a store that knows `identity`.
fn launch(store: SocketAddr, identity: &Keys, keys_file: &KeysFile, flags: &[&str]) -> Result<Gateway> {
    let own = [
        format!("--upstream=http://{store}"),
        format!("--resign-keys={}", keys_file.path().display()),
        format!("--resign-domains={DOMAIN}"),
    ];
    let environment = [
        ("AWS_ACCESS_KEY_ID", OsStr::new(&identity.access)),
        ("AWS_SECRET_ACCESS_KEY", OsStr::new(&identity.secret)),
        ("AWS_SESSION_TOKEN", OsStr::new("")),
    ];
    let flags = own.iter().map(String::as_str).chain(flags.iter().copied());
    Gateway::launch_with(binary(), flags, &environment)
}

/// Sends signed requests to a store or a gateway.
#[derive(Debug, Clone)]
struct Client {
    keys: Keys,
    address: SocketAddr,
    is_presigned: bool,
    has_virtual_host: bool,
}

impl Client {
    /// A client that signs in a header, and names the bucket in the path.
    fn new(keys: &Keys, address: SocketAddr) -> Self {
        Self {
            keys: keys.clone(),
            address,
            is_presigned: false,
            has_virtual_host: false,
        }
    }

    /// The same client, but it signs in the query.
    fn presigned(&self) -> Self {
        Self {
            is_presigned: true,
            ..self.clone()
        }
    }

    /// The same client, but it names [`BUCKET`] in the host.
    fn with_virtual_host(&self) -> Self {
        Self {
            has_virtual_host: true,
            ..self.clone()
        }
    }

    /// This client, and the same with the other ways to address and to sign.
    fn styles(&self) -> [(&'static str, Self); 4] {
        let (path, host) = (self.clone(), self.with_virtual_host());
        [
            ("path, presigned", path.presigned()),
            ("path", path),
            ("virtual host, presigned", host.presigned()),
            ("virtual host", host),
        ]
    }

    /// An unsigned request to `/BUCKET/KEY?QUERY`, whatever names the bucket.
    fn request(&self, method: &str, target: &str) -> Request {
        let rest = target
            .strip_prefix(BUCKET)
            .filter(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
        let Some(rest) = rest.filter(|_| self.has_virtual_host) else {
            return Request::new(method, target).header("Host", &self.address.to_string());
        };
        let slash = if rest.starts_with('/') { "" } else { "/" };
        let host = format!("{}.{DOMAIN}", BUCKET.trim_start_matches('/'));
        Request::new(method, &format!("{slash}{rest}")).header("Host", &host)
    }

    fn sign(&self, request: Request) -> Result<Request> {
        if self.is_presigned {
            self.keys.presign(request, VALID)
        } else {
            self.keys.sign(request, Payload::Signed)
        }
    }

    /// Signs a request, and sends it.
    fn send(&self, request: Request) -> Result<Response> {
        self.sign(request)?.send(self.address)
    }

    fn call(&self, method: &str, target: &str) -> Result<Response> {
        self.send(self.request(method, target))
    }

    fn put(&self, target: &str, body: impl Into<Vec<u8>>) -> Result<Response> {
        self.send(self.request("PUT", target).body(body))
    }

    /// Creates a bucket, or adds or replaces an object.
    fn store(&self, target: &str, body: impl Into<Vec<u8>>) -> Result<()> {
        let answer = self.put(target, body)?;
        ensure!(answer.status == 200, "PUT {target}: {answer:?}");
        Ok(())
    }
}

/// Status and code of an error answer.
fn error_of(answer: &Response) -> (u16, String) {
    (answer.status, answer.element("Code").unwrap_or_default())
}

/// A script of a store that reads the body of a request, and answers 200.
fn accept(exchange: &mut Exchange) -> io::Result<()> {
    skip_body(exchange)?;
    let body = if exchange.head.starts_with("HEAD ") {
        ""
    } else {
        "<Stored/>"
    };
    exchange.answer("200 OK", body)
}

/// Reads the body of a request.
fn skip_body(exchange: &mut Exchange) -> io::Result<()> {
    let head = exchange.head.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    exchange.skip(length.unwrap_or_default())
}
