//! HEAD with a pipeline in re-sign mode: the gateway signs a GET for the store, so the answer has the head of that GET, with its
//! length.

mod audit_log;
mod cached_values;
mod conditions;
mod failures;
mod store;

use std::fs;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Backend, Gateway, Keys, Response, Store, model_folder, onnxruntime, photos};

use super::{
    BUCKET, Client, Grant, KeysFile, audit, binary, key_block, key_block_with_models, launch, trainer,
};

const RESIZE: &str = "decode | resize(8, 8)";
const PHOTO: &str = "2024/cat.jpg";
const TABLE: &str = "2024/table.csv";
const BROKEN: &str = "2024/broken.jpg";
/// Headers of each answer alone.
const OWN: [&str; 6] = [
    "date",
    "server-timing",
    "x-amz-id-2",
    "x-amz-request-id",
    "x-pushdown-cache",
    "x-pushdown-cached-ratio",
];

/// A key that may read all objects, without pipelines.
fn reader() -> Keys {
    Keys::new("TESTREADER000001", "secret-of-the-reader")
}

struct Lab {
    client: Client,
    photo: Vec<u8>,
    gateway: Gateway,
    keys_file: KeysFile,
    _store: Store,
}

impl Lab {
    /// A store with three objects, and a gateway in re-sign mode. `None` if the embedded store is disabled.
    fn start(flags: &[&str]) -> Result<Option<Self>> {
        if !Backend::Embedded.is_enabled()? {
            return Ok(None);
        }
        let store = Backend::Embedded.start(binary())?;
        let keys_file = KeysFile::new(&[
            key_block_with_models(&trainer(), &["*"]),
            key_block(&reader(), "gateway", &[Grant::new("*", "", &["read"])]),
        ])?;
        let log = format!("--audit-log={}", audit::audit_log(&keys_file).display());
        let flags = [&[log.as_str()], flags].concat();
        let gateway = launch(store.address, &store.keys, &keys_file, &flags)?;
        let (_, photo) = photos()?.into_iter().next().context("no photos")?;
        let direct = Client::new(&store.keys, store.address);
        direct.store(BUCKET, "")?;
        direct.store(&format!("{BUCKET}/{PHOTO}"), photo.clone())?;
        direct.store(&format!("{BUCKET}/{TABLE}"), "n,m\n1,2\n3,4\n")?;
        direct.store(&format!("{BUCKET}/{BROKEN}"), &photo[..64])?;
        Ok(Some(Self {
            client: Client::new(&trainer(), gateway.listen()),
            photo,
            gateway,
            keys_file,
            _store: store,
        }))
    }

    /// The values of the gateway so far that were computed.
    fn computed(&self) -> Result<f64> {
        self.gateway
            .metric("pushdown_cache_values_total{origin=\"computed\"}")
    }
}

/// A request with a pipeline. The `unsigned` headers are added after signing.
fn ask(
    client: &Client,
    method: &str,
    key: &str,
    pipeline: &str,
    unsigned: &[(&str, &str)],
) -> Result<Response> {
    let request = client
        .request(method, &format!("{BUCKET}/{key}"))
        .header("x-pushdown-pipeline", pipeline);
    let mut request = client.sign(request)?;
    for (name, value) in unsigned {
        request = request.header(name, value);
    }
    request.send(client.address)
}

/// The headers that HEAD and GET share.
fn common_headers(answer: &Response) -> Vec<(String, &str)> {
    let headers = answer.headers.iter();
    let mut headers: Vec<_> = headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
        .filter(|(name, _)| !OWN.contains(&name.as_str()))
        .collect();
    headers.sort();
    headers
}

/// Checks that HEAD has status and headers of the GET, which it returns.
fn check(client: &Client, pipeline: &str, unsigned: &[(&str, &str)]) -> Result<Response> {
    let head = ask(client, "HEAD", PHOTO, pipeline, unsigned)?;
    let get = ask(client, "GET", PHOTO, pipeline, unsigned)?;
    let place = format!("{pipeline} {unsigned:?} {client:?}");
    ensure!(head.status == get.status, "{place}: {head:?}, {}", get.text());
    ensure!(head.body.is_empty(), "{place}");
    let (found, expected) = (common_headers(&head), common_headers(&get));
    ensure!(found == expected, "{place}: {found:?}, {expected:?}");
    Ok(get)
}

#[test]
fn head_has_length_and_headers_of_the_get() -> Result<()> {
    let Some(lab) = Lab::start(&[])? else {
        return Ok(());
    };
    let random = [("x-pushdown-seed", "7"), ("x-pushdown-epoch", "1")];
    for (pipeline, unsigned) in [
        (RESIZE, &[][..]),
        (RESIZE, &[("accept", "application/octet-stream")]),
        (RESIZE, &[("accept", "application/vnd.apache.arrow.stream")]),
        (
            "decode | resize(8, 8) | to_float",
            &[("accept", "application/vnd.safetensors")],
        ),
        ("decode | resize(8, 8) | encode(jpeg)", &[]),
        ("decode | resize(8, 8) | encode(png)", &[]),
        ("decode | random_resized_crop(32) | flip_h", &random),
        (RESIZE, &[("x-pushdown-split", "0")]),
        (RESIZE, &[("x-pushdown-split", "1")]),
        (RESIZE, &[("x-pushdown-split", "smallest")]),
    ] {
        let get = check(&lab.client, pipeline, unsigned)?;
        let length = get.body.len().to_string();
        ensure!(
            get.status == 200 && get.header("content-length") == Some(&length),
            "{get:?}"
        );
    }
    let whole = check(&lab.client, RESIZE, &[("x-pushdown-split", "0")])?;
    assert_eq!(whole.body, lab.photo);
    for client in [
        lab.client.presigned(),
        lab.client.with_virtual_host(),
        lab.client.with_virtual_host().presigned(),
    ] {
        assert_eq!(check(&client, RESIZE, &[])?.status, 200);
    }
    Ok(())
}

#[test]
fn head_has_the_length_of_features() -> Result<()> {
    let folder = model_folder(&["squeezenet"])?;
    let description =
        r#"{"layout": "chw", "mean": [124, 116, 104], "std": [58, 57, 57], "value_range": 255}"#;
    fs::write(folder.path().join("squeezenet.json"), description)?;
    let flags = [
        format!("--models={}", folder.path().display()),
        format!("--onnxruntime={}", onnxruntime().display()),
    ];
    let Some(lab) = Lab::start(&flags.each_ref().map(String::as_str))? else {
        return Ok(());
    };
    let pipeline = "decode | resize(224, 224) | to_float | normalize(mean=0.5, std=0.5) | model(squeezenet, until=cut:2)";
    let get = check(&lab.client, pipeline, &[])?;
    assert_eq!(get.status, 200, "{}", get.text());
    ensure!(get.header("x-pushdown-warning").is_some(), "{get:?}");
    Ok(())
}

/// The length of streamed rows is unknown before their end.
#[test]
fn rows_have_no_length() -> Result<()> {
    let Some(lab) = Lab::start(&[])? else {
        return Ok(());
    };
    for unsigned in [&[][..], &[("accept", "text/csv")]] {
        let [head, get] = ["HEAD", "GET"].map(|method| ask(&lab.client, method, TABLE, "select()", unsigned));
        let (head, get) = (head?, get?);
        assert_eq!((head.status, get.status), (200, 200), "{}", get.text());
        assert_eq!(head.header("content-length"), None);
        for name in [
            "etag",
            "content-type",
            "x-pushdown-stage",
            "x-pushdown-source-etag",
        ] {
            ensure!(get.header(name).is_some(), "{name}: {get:?}");
            assert_eq!(head.header(name), get.header(name), "{name}");
        }
    }
    Ok(())
}
