//! HEAD with a pipeline in re-sign mode: the gateway signs a GET for the store, so the answer has the head of that GET, with its
//! length.

mod store;

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{
    Backend, Gateway, Keys, Response, Store, eventually, model_folder, onnxruntime, photos,
};
use serde_json::Value;

use super::{
    BUCKET, Client, EVERYTHING, Grant, KeysFile, audit, binary, error_of, key_block, launch, trainer,
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
        let trainer_block = key_block(&trainer(), "gateway", &[EVERYTHING]);
        let keys_file = KeysFile::new(&[
            trainer_block.replacen("upstream", "models = [\"*\"]\nupstream", 1),
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

#[test]
fn conditions_and_ranges_apply_as_in_a_get() -> Result<()> {
    let Some(lab) = Lab::start(&[])? else {
        return Ok(());
    };
    let raw = ("accept", "application/octet-stream");
    let get = check(&lab.client, RESIZE, &[raw])?;
    let etag = get.header("etag").context("no ETag")?;
    for (condition, status, length) in [
        (("if-none-match", etag), 304, None),
        (("if-match", "\"other\""), 412, None),
        (("if-match", etag), 200, Some("192")),
        (("range", "bytes=10-19"), 206, Some("10")),
        (("range", "bytes=-5"), 206, Some("5")),
    ] {
        let head = ask(&lab.client, "HEAD", PHOTO, RESIZE, &[raw, condition])?;
        assert_eq!(head.status, status, "{condition:?}");
        if status < 400 {
            check(&lab.client, RESIZE, &[raw, condition])?;
            assert_eq!(head.header("content-length"), length, "{condition:?}");
        }
    }
    let beyond = ask(
        &lab.client,
        "HEAD",
        PHOTO,
        RESIZE,
        &[raw, ("range", "bytes=500-")],
    )?;
    assert_eq!((beyond.status, beyond.body.len()), (416, 0));
    Ok(())
}

#[test]
fn head_and_get_share_cached_values() -> Result<()> {
    for methods in [["GET", "HEAD"], ["HEAD", "GET"]] {
        let Some(lab) = Lab::start(&["--cache-memory=64MiB"])? else {
            return Ok(());
        };
        let origin = |method: &str| -> Result<Option<String>> {
            let answer = ask(&lab.client, method, PHOTO, RESIZE, &[])?;
            ensure!(answer.status == 200, "{method}: {answer:?}");
            Ok(answer.header("x-pushdown-cache").map(str::to_owned))
        };
        let [first, second] = methods;
        // A data set is worth it once it is read repeatedly.
        let mut origins = (0..5).map(|_| origin(first));
        ensure!(
            origins.any(|origin| matches!(origin, Ok(Some(name)) if name == "memory")),
            "the value is not cached by {first}"
        );
        let computed = lab.computed()?;
        assert_eq!(origin(second)?.as_deref(), Some("memory"), "{methods:?}");
        check(&lab.client, RESIZE, &[])?;
        assert_eq!(lab.computed()?.total_cmp(&computed), std::cmp::Ordering::Equal);
    }
    Ok(())
}

#[test]
fn failures_have_the_status_of_the_get() -> Result<()> {
    let Some(lab) = Lab::start(&[])? else {
        return Ok(());
    };
    for (key, pipeline, status) in [
        (BROKEN, RESIZE, 422),
        (TABLE, RESIZE, 422),
        ("2024/none.jpg", RESIZE, 404),
        (PHOTO, "dekode", 400),
    ] {
        let get = ask(&lab.client, "GET", key, pipeline, &[])?;
        let head = ask(&lab.client, "HEAD", key, pipeline, &[])?;
        assert_eq!((head.status, get.status), (status, status), "{key} {pipeline}");
        ensure!(head.body.is_empty(), "{head:?}");
    }
    let stranger = Client::new(&reader(), lab.client.address);
    for client in [stranger.presigned(), stranger] {
        for key in [PHOTO, BROKEN, "2024/none.jpg"] {
            let answer = ask(&client, "HEAD", key, RESIZE, &[])?;
            assert_eq!(error_of(&answer), (403, String::new()), "{key}");
            for name in ["etag", "x-pushdown-source-etag", "x-pushdown-cache"] {
                ensure!(answer.header(name).is_none(), "{key}: {name}");
            }
        }
    }
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

#[test]
fn the_audit_log_has_the_operation_of_the_caller() -> Result<()> {
    let Some(lab) = Lab::start(&[])? else {
        return Ok(());
    };
    assert_eq!(ask(&lab.client, "HEAD", PHOTO, RESIZE, &[])?.status, 200);
    let path = audit::audit_log(&lab.keys_file);
    let line = eventually("the line is written", Duration::from_secs(10), || {
        let text = fs::read_to_string(&path).unwrap_or_default();
        Ok(text.lines().next().map(str::to_owned))
    })?;
    let line: Value = serde_json::from_str(&line)?;
    for (name, value) in [
        ("operation", "HeadObject"),
        ("action", "read"),
        ("verdict", "allowed"),
    ] {
        ensure!(line[name] == value, "{name}: {line}");
    }
    ensure!(line["status"] == 200 && line["bytes_out"] == 0, "{line}");
    Ok(())
}
