//! Scans of one table that outlive the caller's signature, and scans that a withdrawn key ends.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use parking_lot::Mutex;
use pushdown_testkit::{Gateway, Keys, Parquet, Raw, Request, ScriptedOrigin, Throttle, eventually, ranged};
use serde_json::Value;

use super::audit::audit_log;
use super::{
    BUCKET, Client, EVERYTHING, KeysFile, VALID, error_of, identity, key_block, launch, trainer,
    wait_for_reload,
};

/// Twenty row groups of 1.6 MB each: more than the gateway and the sockets hold.
const DEEP: Parquet = Parquet {
    rows: 400_000,
    noise: 8,
    row_group: 20_000,
};
/// Longest wait for a line of the audit log.
const LIMIT: Duration = Duration::from_secs(10);

/// A store with a table, and a gateway with a key.
struct Lab {
    gateway: Gateway,
    keys_file: KeysFile,
    /// When the store was asked.
    reads: Arc<Mutex<Vec<Instant>>>,
    _origin: ScriptedOrigin,
}

impl Lab {
    fn start() -> Result<Self> {
        let (object, reads) = (DEEP.write()?, Arc::<Mutex<Vec<Instant>>>::default());
        let recorded = Arc::clone(&reads);
        let origin = ScriptedOrigin::start(move |exchange| {
            recorded.lock().push(Instant::now());
            ranged(exchange, &object, "one")
        })?;
        let keys_file = KeysFile::new(&[block(&trainer())])?;
        let audit = format!("--audit-log={}", audit_log(&keys_file).display());
        let gateway = launch(origin.address(), &identity(), &keys_file, &[&audit])?;
        Ok(Self {
            gateway,
            keys_file,
            reads,
            _origin: origin,
        })
    }

    fn client(&self) -> Client {
        Client::new(&trainer(), self.gateway.listen())
    }
}

fn block(keys: &Keys) -> String {
    key_block(keys, "gateway", &[EVERYTHING])
}

/// A presigned GET of all rows.
fn scan(client: &Client, pipeline: &str, valid: Duration) -> Result<Request> {
    let request = client.request("GET", &format!("{BUCKET}/t.parquet"));
    let signed = client.keys.presign(request, valid)?;
    Ok(signed.header("x-pushdown-pipeline", pipeline))
}

/// Reads a table for `duration` with a signature that is valid for `valid`.
fn check_paced(valid: Duration, duration: Duration) -> Result<()> {
    let lab = Lab::start()?;
    let client = lab.client();
    let expected = scan(&client, "select()", VALID)?.send(client.address)?;
    ensure!(expected.status == 200, "{}", expected.text());

    let (link, address) = Throttle::start(client.address)?;
    let rate = expected.body.len() as u64 / duration.as_secs();
    link.set_rate(rate);
    let client = Client::new(&client.keys, address);
    let start = Instant::now();
    let found = scan(&client, "select()", valid)?.send(address)?;
    let took = start.elapsed();
    ensure!(found.status == 200 && found.body == expected.body, "other rows");
    ensure!(took > duration / 2, "the scan took only {took:?}");
    let last = lab.reads.lock().last().copied().context("no read")?;
    let after = last.saturating_duration_since(start);
    ensure!(after > valid, "the last read was after {after:?}");
    Ok(())
}

#[test]
fn a_scan_outlives_the_signature_that_started_it() -> Result<()> {
    check_paced(Duration::from_secs(3), Duration::from_secs(12))
}

#[test]
#[ignore = "a minute: make test-full"]
fn a_scan_of_a_minute_outlives_a_signature_of_five_seconds() -> Result<()> {
    check_paced(Duration::from_secs(5), Duration::from_mins(1))
}

fn check_withdrawn(pipeline: &str) -> Result<()> {
    let lab = Lab::start()?;
    let client = lab.client();
    let mut raw = Raw::connect(client.address)?;
    raw.write(&scan(&client, pipeline, VALID)?.head())?;
    let mut answer = raw.begin("GET")?;
    ensure!(answer.head.status == 200, "{:?}", answer.head);
    answer.chunk()?.context("no rows")?;

    let other = Keys::new("TESTOTHERKEY0001", "secret-of-another-key");
    lab.keys_file.write(&block(&other))?;
    lab.gateway.hang_up()?;
    wait_for_reload(&lab.gateway)?;
    let reads = lab.reads.lock().len();
    // The status is sent already: the answer is cut, so that it does not look complete.
    let end = answer.finish();
    ensure!(end.is_err(), "the scan went on");
    ensure!(lab.reads.lock().len() == reads, "the store was read");
    let refused = scan(&client, pipeline, VALID)?.send(client.address)?;
    assert_eq!(error_of(&refused), (403, "InvalidAccessKeyId".to_owned()));
    let path = audit_log(&lab.keys_file);
    eventually("the cut is in the audit log", LIMIT, || {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let is_cut = |line: Value| line["status"] == 200 && line["reason"] == "AccessDenied";
        Ok(lines.any(is_cut).then_some(()))
    })
}

#[test]
fn a_withdrawn_key_ends_its_scans() -> Result<()> {
    for pipeline in ["select()", "sql('select * from object')"] {
        check_withdrawn(pipeline).with_context(|| pipeline.to_owned())?;
    }
    Ok(())
}
