//! Models by key: for a caller, only the models that its key names exist.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{
    Backend, Gateway, Keys, Request, Response, Store, eventually, model_folder, onnxruntime, photos,
};
use serde_json::Value;
use tempfile::TempDir;

use super::audit::audit_log;
use super::{BUCKET, Client, KeysFile, VALID, binary, key_block_with_models, launch};

const MODELS: &str = "/_pushdown/v1/models";
/// The steps before a model.
const PREPARATION: &str = "decode | resize(28, 28) | grayscale | to_float";
/// A model of the gateway that a key may use.
const GRANTED: &str = "digits";
/// A model of the gateway that it may not use. Its weights are in a file next to it.
const OTHER: &str = "external";
/// No model of the gateway. It is as long as the name of the other model.
const UNKNOWN: &str = "extended";
/// Longest wait for a line of the audit log.
const LIMIT: Duration = Duration::from_secs(10);

/// A key that may use one model.
fn vision() -> Keys {
    Keys::new("TESTVISION000001", "secret-of-a-vision-job")
}

/// A store with a photo, and a gateway with two models and three keys.
struct Lab {
    gateway: Gateway,
    keys_file: KeysFile,
    _store: Store,
    _models: TempDir,
}

impl Lab {
    /// Starts the store. `None` if the embedded store is disabled.
    fn start() -> Result<Option<Self>> {
        if !Backend::Embedded.is_enabled()? {
            return Ok(None);
        }
        let (store, models) = (
            Backend::Embedded.start(binary())?,
            model_folder(&["tiny/digits", "tiny/external"])?,
        );
        let keys_file = KeysFile::new(&[
            key_block_with_models(&all(), &["*"]),
            key_block_with_models(&vision(), &[GRANTED]),
            key_block_with_models(&nobody(), &[]),
        ])?;
        let flags = [
            format!("--models={}", models.path().display()),
            format!("--onnxruntime={}", onnxruntime().display()),
            format!("--audit-log={}", audit_log(&keys_file).display()),
        ];
        let flags = flags.each_ref().map(String::as_str);
        let gateway = launch(store.address, &store.keys, &keys_file, &flags)?;
        let direct = Client::new(&store.keys, store.address);
        direct.store(BUCKET, "")?;
        let photo = photos()?.into_values().next().context("no photo")?;
        direct.store(&format!("{BUCKET}/a.jpg"), photo)?;
        Ok(Some(Self {
            gateway,
            keys_file,
            _store: store,
            _models: models,
        }))
    }

    fn client(&self, keys: &Keys) -> Client {
        Client::new(keys, self.gateway.listen())
    }

    /// The models that a key lists, presigned as by readers.
    fn list(&self, keys: &Keys) -> Result<Vec<Value>> {
        let answer = self.client(keys).presigned().call("GET", MODELS)?;
        ensure!(answer.status == 200, "{}", answer.text());
        let list: Value = serde_json::from_slice(&answer.body)?;
        Ok(list["models"].as_array().context("no list")?.clone())
    }

    /// The lines of the audit log on requests for which a model was denied, once there are `count`.
    fn denials(&self, model: &str, count: usize) -> Result<Vec<Value>> {
        let (path, reason) = (audit_log(&self.keys_file), format!("no model: {model}"));
        eventually("the lines are written", LIMIT, || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
            let lines: Vec<Value> = lines.filter(|line: &Value| line["reason"] == reason).collect();
            Ok((lines.len() >= count).then_some(lines))
        })
    }
}

fn all() -> Keys {
    Keys::new("TESTALLMODELS001", "secret-of-all-models")
}

fn nobody() -> Keys {
    Keys::new("TESTNOMODELS0001", "secret-of-no-models")
}

fn get(client: &Client, pipeline: &str) -> Result<Response> {
    let request = client
        .request("GET", &format!("{BUCKET}/a.jpg"))
        .header("x-pushdown-pipeline", pipeline)
        .header("Accept", "application/octet-stream");
    client.send(request)
}

/// Sends a batch of one presigned sample. `fields` are further fields of the request.
fn batch(client: &Client, pipeline: &str, fields: &str) -> Result<Response> {
    let sample = client.request("GET", &format!("{BUCKET}/a.jpg"));
    let target = client.keys.presign(sample, VALID)?.target;
    let (path, query) = target.split_once('?').context("no query")?;
    let (presign, signature) = query.split_once("&X-Amz-Signature=").context("no signature")?;
    Request::new("POST", "/_pushdown/v1/batch")
        .header("Host", &client.address.to_string())
        .body(format!(
            r#"{{"pipeline":"{pipeline}","presign":"{presign}","samples":[{{"path":"{path}","signature":"{signature}"}}]{fields}}}"#
        ))
        .send(client.address)
}

/// Status, headers and body of an answer.
type Visible = (u16, Vec<(String, String)>, String);

/// What a caller sees of an answer, without its time and id. `name` is what the caller asked for.
fn visible(answer: &Response, name: &str) -> Result<Visible> {
    let id = answer.header("x-amz-request-id").context("no id")?;
    let headers = answer.headers.iter().filter(|(name, _)| {
        let changing = ["date", "x-amz-request-id"];
        !changing
            .iter()
            .any(|changing| name.eq_ignore_ascii_case(changing))
    });
    let text = answer.text().replace(id, "ID").replace(name, "NAME");
    Ok((answer.status, headers.cloned().collect(), text))
}

#[test]
fn a_key_lists_and_runs_its_models() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    for (keys, expected) in [
        (all(), &[GRANTED, OTHER][..]),
        (vision(), &[GRANTED][..]),
        (nobody(), &[][..]),
    ] {
        let list = lab.list(&keys)?;
        let names: Vec<_> = list.iter().map(|model| &model["name"]).collect();
        ensure!(names == expected, "{keys:?}: {names:?}");
        let client = lab.client(&keys);
        let [head, list] = [client.call("HEAD", MODELS)?, client.call("GET", MODELS)?];
        ensure!(
            head.header("content-length") == list.header("content-length"),
            "{keys:?}: {head:?}"
        );
    }
    let client = lab.client(&vision());
    let pipeline = format!("{PREPARATION} | model({GRANTED})");
    for answer in [get(&client, &pipeline)?, batch(&client, &pipeline, "")?] {
        ensure!(answer.status == 200, "{}", answer.text());
    }
    Ok(())
}

#[test]
fn files_of_other_models_are_unknown() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    let list = lab.list(&all())?;
    let digest = |model: &Value| model["digest"].as_str().map(str::to_owned);
    let granted = digest(&list[0]).context("no digest")?;
    let other = digest(&list[1]).context("no digest")?;
    let file = digest(&list[1]["files"][0]).context("no digest")?;
    let (client, unknown) = (lab.client(&vision()), "0".repeat(64));
    assert_eq!(client.call("GET", &format!("{MODELS}/{granted}"))?.status, 200);
    for method in ["GET", "HEAD"] {
        let ask = |client: &Client, digest: &str| client.call(method, &format!("{MODELS}/{digest}"));
        let expected = visible(&ask(&client, &unknown)?, &unknown)?;
        ensure!(expected.0 == 404, "{expected:?}");
        for digest in [&other, &file] {
            assert_eq!(ask(&lab.client(&all()), digest)?.status, 200, "{method}");
            let found = visible(&ask(&client, digest)?, digest)?;
            ensure!(
                found == expected,
                "{method}: expected {expected:?}, found {found:?}"
            );
        }
    }
    // The operator sees the difference: two methods, two files.
    for line in lab.denials(OTHER, 4)? {
        ensure!(line["operation"] == "pushdown:Models", "{line}");
        ensure!(line["verdict"] == "denied" && line["status"] == 404, "{line}");
        ensure!(line["access_key"] == vision().access, "{line}");
    }
    Ok(())
}

#[test]
fn other_models_are_unknown_in_pipelines() -> Result<()> {
    type Ask = fn(&Client, &str) -> Result<Response>;

    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    let value = format!("{PREPARATION} | model(NAME)");
    let normalized = format!("{PREPARATION} | normalize(model=NAME)");
    let table = format!("select | each(photo: {PREPARATION} | model(NAME))");
    let json_steps = r#"[{"step": "decode"}, {"step": "model", "network": "NAME"}]"#;
    let cases: [(&str, Ask); 6] = [
        (&value, get),
        (&normalized, get),
        (&table, get),
        (json_steps, get),
        (&value, |client, pipeline| batch(client, pipeline, "")),
        (&table, |client, pipeline| {
            batch(client, pipeline, r#","table":{"schema":"same"}"#)
        }),
    ];
    for keys in [vision(), nobody()] {
        let client = lab.client(&keys);
        for (pipeline, ask) in cases {
            let ask = |name: &str| visible(&ask(&client, &pipeline.replace("NAME", name))?, name);
            let (expected, found) = (ask(UNKNOWN)?, ask(OTHER)?);
            ensure!(expected.0 == 400, "{pipeline}: {expected:?}");
            ensure!(
                found == expected,
                "{pipeline}: expected {expected:?}, found {found:?}"
            );
            ensure!(!found.2.contains(OTHER), "{pipeline}: {found:?}");
        }
    }
    // The operator sees what was denied. Whether the model exists does not matter.
    for name in [OTHER, UNKNOWN] {
        for line in lab.denials(name, 2 * cases.len())? {
            ensure!(line["verdict"] == "denied" && line["status"] == 400, "{line}");
            let mut callers = [vision(), nobody()].into_iter();
            ensure!(callers.any(|keys| line["access_key"] == keys.access), "{line}");
        }
    }
    Ok(())
}
