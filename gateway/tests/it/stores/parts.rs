//! Parts of data sets at stores that requests state.

use std::sync::Arc;

use parking_lot::Mutex;
use pushdown::{
    part::PartFormat,
    wire::{PartRequest, PartTarget},
};
use pushdown_testkit::ScriptedOrigin;

use super::*;
use crate::it::pipeline::parts;

/// A store for parts, which records what is written.
struct PartStore {
    origin: ScriptedOrigin,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl PartStore {
    fn start() -> Result<Self> {
        let bodies = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let written = Arc::clone(&bodies);
        let origin = ScriptedOrigin::start(move |exchange| {
            let head = exchange.head.to_ascii_lowercase();
            let mut lines = head.lines();
            let length = lines.find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
            let body = exchange.read(length.unwrap_or_default())?;
            written.lock().push(body);
            exchange.answer("200 OK", "")
        })?;
        Ok(Self { origin, bodies })
    }

    fn url(&self) -> String {
        format!("http://{}", self.origin.address())
    }
}

/// A store of samples, another one for parts, and a gateway with these stores allowed.
struct PartLab {
    samples: PolicyStore,
    parts: PartStore,
    gateway: Gateway,
}

impl PartLab {
    fn new(allow_parts: bool, flags: &[&str]) -> Result<Self> {
        let (samples, parts) = (PolicyStore::start()?, PartStore::start()?);
        for number in 0..3 {
            let photo = photo(80 + number, 60, "jpeg");
            samples.put(&format!("/photos/train/{number}.jpg"), "\"1\"", photo);
        }
        let mut allowed = format!("--allow-store=http://{}", samples.address());
        if allow_parts {
            allowed.push(',');
            allowed.push_str(&parts.url());
        }
        let flags = [&[allowed.as_str()], flags].concat();
        Ok(Self {
            gateway: Gateway::launch(binary(), flags)?,
            samples,
            parts,
        })
    }

    fn request(&self, target: Option<PartTarget>) -> Result<BatchRequest> {
        let samples = (0..3).map(|number| BatchSample {
            etag: Some("\"1\"".to_owned()),
            ..BatchSample::new(format!("/photos/train/{number}.jpg"), GOOD_SIGNATURE)
        });
        let mut request = BatchRequest::new(PIPELINE.parse()?, presign("first"), samples.collect());
        request.store = Some(format!("http://{}", self.samples.address()).parse()?);
        request.part = Some(PartRequest {
            format: PartFormat::Wds,
            prefix: "train/".to_owned(),
            label: None,
            labels: Vec::new(),
            engine: None,
            target,
        });
        Ok(request)
    }

    fn target(&self, path: &str) -> Result<PartTarget> {
        Ok(PartTarget {
            store: Some(self.parts.url().parse()?),
            path: path.to_owned(),
            query: Some(signed_query("second")),
        })
    }
}

#[test]
fn a_part_is_written_to_another_store_than_its_samples() -> Result<()> {
    let lab = PartLab::new(true, &[])?;
    let request = lab.request(Some(lab.target("/sets/part%201.tar")?))?;
    let part = parts::written(&post(&lab.gateway, &request)?)?;
    let bodies = lab.parts.bodies.lock().clone();
    let [body] = &bodies[..] else {
        anyhow::bail!("expected one PUT, found {}", bodies.len());
    };
    assert_eq!(parts::md5(body), part.md5);
    let head = lab.parts.origin.requests().concat();
    let line = format!("PUT /sets/part%201.tar?{} HTTP/1.1\r\n", signed_query("second"));
    ensure!(head.starts_with(&line), "{head}");
    // The host that the caller has signed.
    let host = format!("host: {}\r\n", lab.parts.origin.address());
    ensure!(head.to_ascii_lowercase().contains(&host), "{head}");
    let trial = parts::written(&post(&lab.gateway, &lab.request(None)?)?)?;
    assert_eq!((trial.bytes, trial.md5), (part.bytes, part.md5));
    assert_eq!(lab.parts.bodies.lock().len(), 1);
    Ok(())
}

#[test]
fn a_target_that_is_not_allowed_is_refused_before_any_read() -> Result<()> {
    let refused = |lab: &PartLab, target: PartTarget| -> Result<(u16, Option<String>, String)> {
        let answer = post(&lab.gateway, &lab.request(Some(target))?)?;
        ensure!(lab.samples.requests().is_empty() && lab.parts.origin.connections() == 0);
        Ok((answer.status, code(&answer), answer.text()))
    };
    let lab = PartLab::new(false, &[])?;
    let (status, code, text) = refused(&lab, lab.target("/sets/part")?)?;
    assert_eq!((status, code.as_deref()), (403, Some("StoreNotAllowed")));
    ensure!(text.contains("expected one of allow-store"), "{text}");

    let lab = PartLab::new(true, &["--allow-bucket=photos"])?;
    let (status, code, text) = refused(&lab, lab.target("/sets/part")?)?;
    assert_eq!((status, code.as_deref()), (403, Some("StoreNotAllowed")));
    ensure!(text.contains("the bucket `sets` is not allowed"), "{text}");
    // At a store that cleans paths it would be in another bucket.
    let (status, code, _) = refused(&lab, lab.target("/photos/../sets/part")?)?;
    assert_eq!((status, code.as_deref()), (400, Some("InvalidRequest")));

    // A gateway without a store of its own writes to none that is not stated.
    let own = PartTarget {
        store: None,
        ..lab.target("/photos/part")?
    };
    let (status, code, _) = refused(&lab, own)?;
    assert_eq!((status, code.as_deref()), (400, Some("NoUpstream")));
    Ok(())
}
