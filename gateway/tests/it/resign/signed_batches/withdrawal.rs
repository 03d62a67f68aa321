//! A batch lives as long as its key, and longer than its signature.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use pushdown::{MergeRule, SchemaRule, wire::BatchRequest};
use pushdown_testkit::{Exchange, Gateway, Keys, Parquet, Raw, Response, ScriptedOrigin};
use pushdown_testkit::{eventually, photos, ranged};

use super::{codes, post, sha256, unsigned};
use crate::it::resign::pipelines::RESIZE;
use crate::it::resign::{
    Client, EVERYTHING, KeysFile, error_of, identity, key_block, launch, trainer, wait_for_reload,
};

/// Longest wait for a request to the store.
const LIMIT: Duration = Duration::from_secs(20);

fn photo() -> Result<Vec<u8>> {
    let (_, photo) = photos()?.into_iter().next().context("no photos")?;
    Ok(photo)
}

fn send_object(exchange: &mut Exchange, object: &[u8]) -> io::Result<()> {
    let length = object.len();
    exchange.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nETag: \"one\"\r\n\r\n"
    ))?;
    exchange.send(object)
}

/// A batch of one object `count` times.
fn repeated(path: &str, pipeline: &str, count: usize) -> Result<BatchRequest> {
    unsigned(pipeline, &vec![path; count])
}

/// A table of all rows of one object.
fn table() -> Result<BatchRequest> {
    let mut request = unsigned("select(columns=[n])", &["/photos/table.parquet"])?;
    request.table = Some(MergeRule {
        key: false,
        schema: SchemaRule::Same,
    });
    Ok(request)
}

/// A gateway for a store that stops after some requests, until the key of the caller has been withdrawn.
struct Lab {
    origin: ScriptedOrigin,
    gateway: Gateway,
    keys_file: KeysFile,
    is_withdrawn: Arc<AtomicBool>,
}

impl Lab {
    fn start(
        requests_before: usize,
        answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let is_withdrawn = Arc::new(AtomicBool::new(false));
        let may_go_on = Arc::clone(&is_withdrawn);
        let origin = ScriptedOrigin::start(move |exchange| {
            while exchange.earlier_requests >= requests_before && !may_go_on.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(10));
            }
            answer(exchange)
        })?;
        let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
        let gateway = launch(
            origin.address(),
            &identity(),
            &keys_file,
            &["--batch-in-flight=1"],
        )?;
        Ok(Self {
            origin,
            gateway,
            keys_file,
            is_withdrawn,
        })
    }

    fn client(&self) -> Client {
        Client::new(&trainer(), self.gateway.listen())
    }

    /// Calls `send`, and withdraws the key while the store delays its answer to the request number `requests`.
    fn withdraw_during<T: Send>(&self, requests: usize, send: impl FnOnce() -> T + Send) -> Result<T> {
        thread::scope(|scope| {
            let answer = scope.spawn(send);
            eventually("the store is asked", LIMIT, || {
                Ok((self.origin.requests().len() >= requests).then_some(()))
            })?;
            let other = Keys::new("TESTOTHERKEY0001", "secret-of-another-key");
            self.keys_file
                .write(&key_block(&other, "gateway", &[EVERYTHING]))?;
            wait_for_reload(&self.gateway)?;
            self.is_withdrawn.store(true, Ordering::Release);
            answer.join().ok().context("the client panicked")
        })
    }
}

/// Whether an error is that of a body without its end, and not a timeout.
fn is_truncation(error: &anyhow::Error) -> bool {
    let is_reset = error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionReset);
    is_reset || error.to_string().starts_with("truncated body")
}

#[test]
fn a_withdrawn_key_ends_its_batches() -> Result<()> {
    let photo = photo()?;
    let lab = Lab::start(1, move |exchange| send_object(exchange, &photo))?;
    let client = lab.client();
    let request = client.sign(post(&client, &repeated("/photos/a.jpg", RESIZE, 5)?)?)?;
    // The second sample was allowed before.
    let answer = lab.withdraw_during(2, || request.send(client.address))??;
    let denied = "AccessDenied";
    assert_eq!(codes(answer)?, ["", "", denied, denied, denied]);
    assert_eq!(lab.origin.requests().len(), 2);
    let answer = request.send(client.address)?;
    assert_eq!(error_of(&answer), (403, "InvalidAccessKeyId".to_owned()));
    Ok(())
}

#[test]
fn a_withdrawn_key_ends_its_scans() -> Result<()> {
    const ROW_GROUPS: usize = 40;
    let parquet = Parquet {
        rows: 2000 * ROW_GROUPS,
        noise: 2,
        row_group: 2000,
    };
    let object = parquet.write()?;
    // The schema, the end again, and the first rows.
    let lab = Lab::start(3, move |exchange| ranged(exchange, &object, "one"))?;
    let client = lab.client();
    let request = client.sign(post(&client, &table()?)?)?;
    let (head, answer) = lab.withdraw_during(4, || -> Result<_> {
        let mut raw = Raw::connect(client.address)?;
        raw.write(&[request.head(), request.body.clone()].concat())?;
        let incoming = raw.begin("POST")?;
        Ok((incoming.head.clone(), incoming.finish()))
    })??;
    // The answer is truncated if its head had been sent, and a refusal otherwise.
    if head.status == 200 {
        let error = answer.err().context("the scan is complete")?;
        ensure!(is_truncation(&error), "{error:?}");
    } else {
        assert_eq!(error_of(&answer?), (403, "AccessDenied".to_owned()));
    }
    let requests = lab.origin.requests().len();
    ensure!(requests < ROW_GROUPS / 2, "{requests} requests");
    Ok(())
}

/// A gateway for a store that answers slowly.
fn slow(
    pause: Duration,
    answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
) -> Result<(ScriptedOrigin, KeysFile, Gateway)> {
    let origin = ScriptedOrigin::start(move |exchange| {
        thread::sleep(pause);
        answer(exchange)
    })?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let flags = ["--batch-in-flight=1"];
    let gateway = launch(origin.address(), &identity(), &keys_file, &flags)?;
    Ok((origin, keys_file, gateway))
}

/// The answer to a request whose signature is valid for some seconds, and which takes longer.
fn outlive(client: &Client, request: &BatchRequest, valid: Duration) -> Result<Response> {
    let request = post(client, request)?.header("Accept", "text/csv");
    let hash = sha256(&request.body);
    let signed = client.keys.presign_body(request, &hash, valid)?;
    let started = Instant::now();
    let answer = signed.send(client.address)?;
    let elapsed = started.elapsed();
    ensure!(
        elapsed > valid + Duration::from_secs(1),
        "it took only {elapsed:?}"
    );
    let expired = signed.send(client.address)?;
    assert_eq!(error_of(&expired), (403, "AccessDenied".to_owned()));
    Ok(answer)
}

#[test]
fn a_batch_outlives_its_signature() -> Result<()> {
    let photo = photo()?;
    let pause = Duration::from_millis(1500);
    let (_origin, _keys_file, gateway) = slow(pause, move |exchange| send_object(exchange, &photo))?;
    let client = Client::new(&trainer(), gateway.listen());
    let request = repeated("/photos/a.jpg", RESIZE, 4)?;
    let answer = outlive(&client, &request, Duration::from_secs(3))?;
    assert_eq!(codes(answer)?, [""; 4]);
    Ok(())
}

#[test]
#[ignore = "a minute: make test-full"]
fn a_scan_of_a_minute_outlives_its_signature_of_seconds() -> Result<()> {
    const ROW_GROUPS: usize = 70;
    let parquet = Parquet {
        rows: 2000 * ROW_GROUPS,
        noise: 2,
        row_group: 2000,
    };
    let object = parquet.write()?;
    // Some row groups are read at the same time.
    let pause = Duration::from_secs(8);
    let (origin, _keys_file, gateway) = slow(pause, move |exchange| ranged(exchange, &object, "one"))?;
    let client = Client::new(&trainer(), gateway.listen());
    let started = Instant::now();
    let answer = outlive(&client, &table()?, Duration::from_secs(5))?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.text().lines().count(), 2000 * ROW_GROUPS + 1);
    ensure!(
        started.elapsed() > Duration::from_mins(1),
        "{:?}, {} requests",
        started.elapsed(),
        origin.requests().len()
    );
    Ok(())
}
