//! Temporary credentials that the store itself issues, by `AssumeRole`, pass through the gateway in forward mode.

pub(super) mod roles;

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, anyhow, ensure};
use pushdown::wire::{BatchReader, BatchRequest, BatchSample, Row};
use pushdown_testkit::{Gateway, Keys, Payload, RealStore, Request, Response, eventually};

use self::roles::Role;
use super::{
    binary,
    pipeline::{expected, photo, pixels},
};

const PIPELINE: &str = "decode | resize(short=64) | center_crop(48)";
const PATH: &str = "/photos/photo.jpg";
/// Validity of signatures.
const VALID: Duration = Duration::from_mins(10);
/// Lifetimes of sessions in seconds.
const HOUR: u64 = 3600;
const SHORT_SECONDS: u64 = 5;
/// Longest wait until the store refuses a session that has ended.
const LIMIT: Duration = Duration::from_secs(30);

/// Forms of the same request.
const FORMS: [Form; 4] = [
    Form::Get,
    Form::Presigned,
    Form::Pipeline,
    Form::PresignedPipeline,
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Get,
    Presigned,
    Pipeline,
    PresignedPipeline,
}

impl Form {
    fn has_pipeline(self) -> bool {
        matches!(self, Self::Pipeline | Self::PresignedPipeline)
    }
}

/// A store with a photo and a role that may read it, and a gateway in front of the store.
struct Lab {
    store: RealStore,
    gateway: Gateway,
    photo: Vec<u8>,
    role: Role,
}

impl Lab {
    fn new(store: RealStore) -> Result<Self> {
        let upstream = format!("--upstream=http://{}", store.address()?);
        let role = Role::create(&store, "reader")?;
        let lab = Self {
            gateway: Gateway::launch(binary(), [upstream.as_str(), "--cache-memory=64MiB"])?,
            store,
            photo: photo(400, 300, "jpeg"),
            role,
        };
        lab.store.put("/photos", "")?;
        lab.store.put(PATH, lab.photo.clone())?;
        lab.role.grant(&lab.store, &["s3:GetObject"])?;
        Ok(lab)
    }

    /// Credentials of a session that ends after `seconds`.
    fn session(&self, seconds: u64) -> Result<Keys> {
        self.role.assume(&self.store, seconds)
    }

    fn request(&self, method: &str) -> Request {
        Request::new(method, PATH).header("Host", &self.gateway.listen().to_string())
    }

    /// A request that can be sent to the store or to the gateway.
    fn signed(&self, keys: &Keys, form: Form) -> Result<Request> {
        let (get, with_pipeline) = (self.request("GET"), |request: Request| {
            request
                .header("x-pushdown-pipeline", PIPELINE)
                .header("Accept", "application/octet-stream")
        });
        match form {
            Form::Get => keys.sign(get, Payload::Signed),
            Form::Presigned => keys.presign(get, VALID),
            Form::Pipeline => keys.sign(with_pipeline(get), Payload::Signed),
            Form::PresignedPipeline => Ok(with_pipeline(keys.presign(get, VALID)?)),
        }
    }

    fn get(&self, keys: &Keys, form: Form) -> Result<Response> {
        self.signed(keys, form)?.send(self.gateway.listen())
    }

    /// The rows of a batch of the photo, three times.
    fn batch(&self, keys: &Keys) -> Result<Vec<Row>> {
        let keys = keys.with_time(SystemTime::now());
        let link = keys.presign(self.request("GET"), VALID)?.target;
        let (path, query) = link.split_once('?').context("no query")?;
        let is_signature = |parameter: &&str| parameter.starts_with("X-Amz-Signature=");
        let (signature, shared): (Vec<_>, Vec<_>) = query.split('&').partition(is_signature);
        let signature = signature.concat().replace("X-Amz-Signature=", "");
        let presign = shared.join("&");
        let samples = vec![BatchSample::new(path, signature.as_str()); 3];
        let request = BatchRequest::new(PIPELINE.parse()?, presign, samples);
        let address = self.gateway.listen();
        let answer = Request::new("POST", "/_pushdown/v1/batch")
            .header("Host", &address.to_string())
            .body(serde_json::to_vec(&request)?)
            .send(address)?;
        ensure!(answer.status == 200, "{}", answer.text());
        let mut reader = BatchReader::new(pushdown::Limits::default());
        let rows = reader.push(answer.body.into())?;
        reader.finish()?;
        Ok(rows)
    }
}

#[test]
#[ignore = "Ceph is not installed by default: make test-stores"]
fn sessions_of_ceph_pass_through() -> Result<()> {
    let lab = Lab::new(RealStore::ceph()?)?;
    check_valid(&lab)?;
    check_wrong_token(&lab).context("a wrong token")?;
    check_end(&lab).context("after the end of the session")
}

fn check_valid(lab: &Lab) -> Result<()> {
    let keys = lab.session(HOUR)?;
    let value = pixels(expected(&lab.photo, PIPELINE));
    for form in FORMS {
        let answer = lab.get(&keys, form)?;
        ensure!(answer.status == 200, "{form:?}: {}", answer.text());
        let body = if form.has_pipeline() { &value } else { &lab.photo };
        ensure!(answer.body == *body, "{form:?}");
    }
    for row in lab.batch(&keys)? {
        let sample = row.value.map_err(|error| anyhow!("{error:?}"))?;
        ensure!(pixels(sample) == value, "row {}", row.row);
    }
    // The role may only read.
    let put = keys.sign(lab.request("PUT").body("other"), Payload::Signed)?;
    check_refusal(&put, lab)
}

/// The token is that of another session. Values are cached by now.
fn check_wrong_token(lab: &Lab) -> Result<()> {
    let keys = Keys {
        token: lab.session(HOUR)?.token,
        ..lab.session(HOUR)?
    };
    check_all_refused(lab, &keys)
}

fn check_end(lab: &Lab) -> Result<()> {
    let keys = lab.session(SHORT_SECONDS)?;
    ensure!(lab.get(&keys, Form::PresignedPipeline)?.status == 200);
    eventually("the session ends", LIMIT, || {
        let answer = lab.signed(&keys, Form::Get)?.send(lab.store.address()?)?;
        Ok((answer.status != 200).then_some(()))
    })?;
    check_all_refused(lab, &keys)
}

fn check_all_refused(lab: &Lab, keys: &Keys) -> Result<()> {
    for form in FORMS {
        check_refusal(&lab.signed(keys, form)?, lab).with_context(|| format!("{form:?}"))?;
    }
    let direct = lab.signed(keys, Form::Presigned)?.send(lab.store.address()?)?;
    let code = direct.element("Code").context("no code")?;
    for row in lab.batch(keys)? {
        let error = row.value.err().context("expected an error, found a value")?;
        ensure!(error.code == code, "expected {code}, found {error:?}");
    }
    Ok(())
}

/// The gateway refuses a request as the store does.
fn check_refusal(request: &Request, lab: &Lab) -> Result<()> {
    let [direct, through] = [lab.store.address()?, lab.gateway.listen()].map(|address| request.send(address));
    let (direct, through) = (direct?, through?);
    let error = |answer: &Response| (answer.status, answer.element("Code"));
    ensure!(direct.status == 403, "{}", direct.text());
    ensure!(
        error(&direct) == error(&through),
        "{}: {}",
        direct.text(),
        through.text()
    );
    Ok(())
}
