//! A request counts for the key that the store verifies, and for no other one that it names.

use anyhow::{Result, ensure};
use pushdown::wire::{BatchRequest, BatchSample, Row};
use pushdown_testkit::{GOOD_SIGNATURE, Gateway, PolicyStore, Request, Response, signed_by};

use super::{batch, binary, photo};

const PATH: &str = "/photos/cat.jpg";
const PIPELINE: &str = "decode | resize(short=64)";
/// Everything of a presigned query but the credential.
const PRESIGNED: &str =
    "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host";
const SCOPE: &str = "%2F20260101%2Fus-east-1%2Fs3%2Faws4_request";
const VICTIM: &str = "Credential=VICTIM/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=00";

/// A store that checks signatures in the query first, and a gateway whose tenants share nothing.
struct Accounts {
    store: PolicyStore,
    gateway: Gateway,
}

impl Accounts {
    fn new() -> Result<Self> {
        let store = PolicyStore::start()?;
        store.put(PATH, "\"1\"", photo(200, 100, "jpeg"));
        let upstream = format!("--upstream=http://{}", store.address());
        let flags = [upstream.as_str(), "--cache-memory=64MiB", "--cache-scope=tenant"];
        Ok(Self {
            gateway: Gateway::launch(binary(), flags)?,
            store,
        })
    }

    fn send(&self, request: &Request) -> Result<Response> {
        request.send(self.gateway.listen())
    }

    fn batch(&self, presign: &str, path: &str) -> Result<Response> {
        let samples = vec![BatchSample::new(path, GOOD_SIGNATURE)];
        let request = BatchRequest::new(PIPELINE.parse()?, presign.to_owned(), samples);
        Request::new("POST", "/_pushdown/v1/batch")
            .header("Host", "store")
            .body(serde_json::to_vec(&request)?)
            .send(self.gateway.listen())
    }
}

fn get(query: &str) -> Request {
    Request::new("GET", &format!("{PATH}?{query}"))
        .header("Host", "store")
        .header("x-pushdown-pipeline", PIPELINE)
}

fn presigned_by(key: &str) -> String {
    format!("{PRESIGNED}&X-Amz-Credential={key}{SCOPE}&X-Amz-Signature={GOOD_SIGNATURE}")
}

/// Requests that one store reads as the attacker's, and another reader as the victim's.
fn ambiguous() -> Vec<Request> {
    let presigned = presigned_by("ATTACKER");
    vec![
        get(&presigned).header("Authorization", &format!("Foo {VICTIM}")),
        get(&presigned).header("Authorization", &format!("AWS4-HMAC-SHA256 {VICTIM}")),
        get(&presigned).header("Authorization", "AWS VICTIM:c2ln"),
        get(&presigned).header("Authorization", "Bearer VICTIM"),
        get(&format!("%58-Amz-Credential=VICTIM{SCOPE}&{presigned}")),
        get(&format!("X-Amz-Credential=VICTIM{SCOPE}&{presigned}")),
        get(&format!("x-amz-credential=VICTIM{SCOPE}&{presigned}")),
        get(&format!("{presigned}&X-Amz%2DCredential=VICTIM{SCOPE}")),
        get(&format!("{presigned}&AWSAccessKeyId=VICTIM")),
        get(&format!("{presigned}&a=1;X-Amz-Credential=VICTIM{SCOPE}")),
        get(&presigned_by("VICTIM%20")),
        signed_by(get(""), "ATTACKER", GOOD_SIGNATURE)
            .header("Authorization", &format!("AWS4-HMAC-SHA256 {VICTIM}")),
        get("").header(
            "Authorization",
            &format!("AWS4-HMAC-SHA256 {VICTIM}, Credential=ATTACKER/d/r/s3/aws4_request"),
        ),
        get("").header("Authorization", &format!("AWS4-HMAC-SHA256\t{VICTIM}")),
    ]
}

#[test]
fn a_request_with_two_readings_is_refused_before_the_store_is_asked() -> Result<()> {
    let accounts = Accounts::new()?;
    for request in ambiguous() {
        for method in ["GET", "HEAD"] {
            let mut request = request.clone();
            method.clone_into(&mut request.method);
            let answer = accounts.send(&request)?;
            ensure!(answer.status == 400, "{request:?}: {}", answer.text());
        }
    }
    let signed = |key: &str| presigned_by(key).replace(&format!("&X-Amz-Signature={GOOD_SIGNATURE}"), "");
    for presign in [
        format!("%58-Amz-Credential=VICTIM{SCOPE}&{}", signed("ATTACKER")),
        format!("{}&X-Amz-Credential=VICTIM{SCOPE}", signed("ATTACKER")),
        format!("{}&AWSAccessKeyId=VICTIM", signed("ATTACKER")),
    ] {
        let answer = accounts.batch(&presign, PATH)?;
        ensure!(answer.status == 400, "{presign}: {}", answer.text());
    }
    // A path that contains a signature is an error of its row, or of the batch.
    let path = format!("{PATH}?X-Amz-Credential=ATTACKER{SCOPE}&a=");
    let answer = accounts.batch(&signed("VICTIM"), &path)?;
    if answer.status == 200 {
        let rows: Vec<Row> = batch::rows(answer)?;
        ensure!(rows.iter().all(|row| row.value.is_err()), "{rows:?}");
    }
    assert_eq!(
        accounts.store.requests().len(),
        0,
        "{:?}",
        accounts.store.requests()
    );
    Ok(())
}

/// The scheme `Foo` is no signature: whoever names the victim in it is anonymous, as at the store.
#[test]
fn a_scheme_that_is_not_known_names_no_account() -> Result<()> {
    let accounts = Accounts::new()?;
    let ask = |query: &str, authorization: Option<String>| -> Result<String> {
        let mut request = get(query);
        if let Some(value) = authorization {
            request = request.header("Authorization", &value);
        }
        let answer = accounts.send(&request)?;
        Ok(answer.header("x-pushdown-cache").unwrap_or_default().to_owned())
    };
    for _ in 0..5 {
        ask(&presigned_by("VICTIM"), None)?;
    }
    assert_eq!(ask(&presigned_by("VICTIM"), None)?, "memory");
    assert_ne!(ask(&presigned_by("ATTACKER"), None)?, "memory");
    // The store of this test takes the signature from any header, as a store that ignores unknown schemes takes a public object.
    let foreign = format!(
        "Foo Credential=VICTIM/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature={GOOD_SIGNATURE}"
    );
    assert_eq!(ask("", Some(foreign))?, "computed");
    Ok(())
}

/// A plain request is the store's business: it is forwarded as it is.
#[test]
fn a_plain_request_is_forwarded_whatever_it_claims() -> Result<()> {
    let accounts = Accounts::new()?;
    let requests = ambiguous();
    for mut request in requests.clone() {
        request.headers.retain(|(name, _)| name != "x-pushdown-pipeline");
        accounts.send(&request)?;
    }
    assert_eq!(accounts.store.requests().len(), requests.len());
    Ok(())
}
