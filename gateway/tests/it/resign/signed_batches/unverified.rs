//! Bodies of callers that nobody has verified have a bounded part of the memory, in both modes. Signed batches have the rest.

use std::time::Duration;

use anyhow::{Result, ensure};
use pushdown_testkit::{Gateway, Raw, Request, ScriptedOrigin, eventually};

use super::{BATCH, gzip, rows, unsigned};
use crate::it::gateway_for;
use crate::it::resign::pipelines::{RESIZE, batch_request};
use crate::it::resign::{
    Client, EVERYTHING, KeysFile, accept, error_of, identity, key_block, launch, trainer,
};

const MIB: f64 = 1_048_576.0;
/// The largest body, in bytes.
const BODY_BYTES: usize = 4 << 20;
/// A compressed batch requires twice the largest body, and unverified callers together may have three times as much.
const FLAGS: [&str; 3] = [
    "--memory-budget=32MiB",
    "--queue-wait=200ms",
    "--batch-body-idle-timeout=60s",
];
const TIMEOUT: Duration = Duration::from_secs(30);
const RESERVED: &str = "pushdown_memory_reserved_bytes";
const REFUSED: &str = "pushdown_requests_total{kind=\"batch\",status=\"5xx\"}";

/// Sends all bytes but the last of a large batch, until the gateway has them in memory or has refused them.
fn send_most(gateway: &Gateway) -> Result<Raw> {
    let (reserved, refused) = (gateway.metric(RESERVED)?, gateway.metric(REFUSED)?);
    let mut stranger = Raw::connect(gateway.listen())?;
    let request = Request::new("POST", BATCH)
        .header("Host", &gateway.listen().to_string())
        .header("Content-Length", &BODY_BYTES.to_string());
    stranger.write(&request.head())?;
    stranger.write(&vec![b' '; BODY_BYTES - 1])?;
    eventually("the body is in memory or refused", TIMEOUT, || {
        let is_read = gateway.metric(RESERVED)? >= reserved + 4.0 * MIB;
        Ok((is_read || gateway.metric(REFUSED)? > refused).then_some(()))
    })?;
    Ok(stranger)
}

/// A compressed batch of presigned samples.
fn presigned(client: &Client) -> Result<Request> {
    let body = batch_request(client, RESIZE)?.to_json()?;
    let request = client.request("POST", BATCH);
    Ok(request.header("Content-Encoding", "gzip").body(gzip(&body)?))
}

#[test]
fn strangers_leave_memory_to_others() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let resign = launch(origin.address(), &identity(), &keys_file, &FLAGS)?;
    let forward = gateway_for(&origin, &FLAGS)?;
    for gateway in [&resign, &forward] {
        let client = Client::new(&trainer(), gateway.listen());
        let strangers = (0..8).map(|_| send_most(gateway)).collect::<Result<Vec<Raw>>>()?;
        let reserved = gateway.metric(RESERVED)?;
        ensure!((8.0 * MIB..=12.0 * MIB).contains(&reserved), "{reserved}");

        let answer = presigned(&client)?.send(client.address)?;
        assert_eq!(error_of(&answer), (503, "SlowDown".to_owned()));
        let message = answer.element("Message").unwrap_or_default();
        ensure!(message.contains("callers that are not verified"), "{message}");
        if gateway.listen() == resign.listen() {
            let body = gzip(&unsigned(RESIZE, &["/photos/a.jpg"])?.to_json()?)?;
            let signed = client
                .request("POST", BATCH)
                .header("Content-Encoding", "gzip")
                .body(body);
            assert_eq!(rows(client.send(signed)?)?.len(), 1);
        }

        drop(strangers);
        eventually("all memory is released", TIMEOUT, || {
            Ok((gateway.metric(RESERVED)?.abs() < 1.0).then_some(()))
        })?;
        ensure!(!rows(presigned(&client)?.send(client.address)?)?.is_empty());
    }
    Ok(())
}
