//! Uploads whose body has not left the gateway when the store refuses its credentials.

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Result, ensure};
use parking_lot::Mutex;
use pushdown_testkit::{Payload, Raw, ScriptedOrigin, eventually};

use super::{CREDENTIALS_URL, REGION, launch};
use crate::it::resign::{
    BUCKET, Client, EVERYTHING, KeysFile, accept,
    bodies::{PAYLOADS, upload},
    key_block, trainer,
};

/// Longest wait of the client and of the endpoint for the gateway.
const LIMIT: Duration = Duration::from_secs(5);
const BODY_BYTES: usize = 10_000;

/// The access key of a session.
fn access_key(number: usize) -> String {
    format!("ASIATESTSESSION{number:04}")
}

/// The answer of the credentials endpoint.
fn session(number: usize) -> String {
    let document = format!(
        "{{\"AccessKeyId\":\"{}\",\"SecretAccessKey\":\"secret-of-a-session\",\"Token\":\"token-{number}\",\
         \"Expiration\":\"2099-01-01T00:00:00Z\"}}",
        access_key(number)
    );
    let length = document.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{document}")
}

/// While the gateway waits for other credentials, the refused upload ends and takes nothing of the body.
fn check(payload: Payload) -> Result<()> {
    let (closed, refused_upload) = mpsc::channel();
    let refused_upload = Mutex::new(refused_upload);
    let endpoint = ScriptedOrigin::start(move |exchange| {
        let number = exchange.earlier_requests;
        if number > 0 {
            let body_bytes: u64 = refused_upload
                .lock()
                .recv_timeout(LIMIT)
                .map_err(io::Error::other)?;
            if body_bytes > 0 {
                return Err(io::Error::other("the body has left"));
            }
        }
        exchange.send(session(number))
    })?;
    let origin = ScriptedOrigin::start(move |exchange| {
        if !exchange.head.contains(&access_key(0)) {
            return accept(exchange);
        }
        exchange.close();
        exchange.answer("400 Bad Request", "<Error><Code>ExpiredToken</Code></Error>")?;
        closed.send(exchange.wait_for_close()?).map_err(io::Error::other)
    })?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let credentials = format!("http://{}/credentials", endpoint.address());
    let url = format!("http://s3.{REGION}.localhost:{}", origin.address().port());
    let gateway = launch(&url, &keys_file, &[(CREDENTIALS_URL, credentials)], &[])?;
    let client = Client::new(&trainer(), gateway.listen());
    let request = upload(&client, &format!("{BUCKET}/k"), payload, BODY_BYTES)?;
    let mut raw = Raw::connect(client.address)?;
    raw.write(&request.head())?;
    eventually("the upload is sent again", LIMIT, || {
        let uploads = origin.requests();
        let uploads = uploads.iter().filter(|head| head.starts_with("PUT "));
        Ok((uploads.count() == 2).then_some(()))
    })?;
    raw.write(&request.body)?;
    let answer = raw.read("PUT")?;
    ensure!(answer.status == 200, "{}", answer.text());
    Ok(())
}

#[test]
fn a_body_is_kept_while_the_gateway_waits_for_other_credentials() -> Result<()> {
    for payload in [PAYLOADS[0], PAYLOADS[1]] {
        check(payload)?;
    }
    Ok(())
}
