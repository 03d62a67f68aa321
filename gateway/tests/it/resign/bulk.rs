//! `DeleteObjects` and `ListBuckets` by keys with grants: each object is decided on by itself, and other buckets are not listed.

mod scripted;

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::Crc;
use pushdown_testkit::{Backend, Gateway, Payload, Request, Response, Store};

use super::bodies::PAYLOADS;
use super::{BUCKET, Client, Grant, KeysFile, binary, key_block, launch, trainer};

/// Objects below `2024/` may be deleted, and their versions below `2024/v/`.
const GRANTS: [Grant; 2] = [
    Grant::new("photos", "2024/", &["list", "read", "delete"]),
    Grant::new("photos", "2024/v/", &["versions"]),
];

/// A store with three buckets, and a gateway in front of it with a key that has grants in one of them.
struct Lab {
    direct: Client,
    through: Client,
    _gateway: Gateway,
    _store: Store,
    _keys_file: KeysFile,
}

impl Lab {
    /// Starts SeaweedFS. `None` if it is disabled.
    fn start() -> Result<Option<Self>> {
        if !Backend::SeaweedFs.is_enabled()? {
            return Ok(None);
        }
        let (store, keys) = (Backend::SeaweedFs.start(binary())?, trainer());
        let keys_file = KeysFile::new(&[key_block(&keys, "gateway", &GRANTS)])?;
        let gateway = launch(store.address, &store.keys, &keys_file, &[])?;
        let lab = Self {
            direct: Client::new(&store.keys, store.address),
            through: Client::new(&keys, gateway.listen()),
            _gateway: gateway,
            _store: store,
            _keys_file: keys_file,
        };
        for bucket in [BUCKET, "/hidden", "/photos2"] {
            lab.direct.store(bucket, "")?;
        }
        Ok(Some(lab))
    }

    fn create(&self, keys: &[&str]) -> Result<()> {
        keys.iter()
            .try_for_each(|key| self.direct.store(&format!("{BUCKET}/{key}"), *key))
    }

    /// Checks what the store itself answers to a GET of an object, or of a version of it.
    fn check(&self, target: &str, status: u16) -> Result<()> {
        let answer = self.direct.call("GET", &format!("{BUCKET}/{target}"))?;
        ensure!(
            answer.status == status,
            "{target}: expected {status}, found {}",
            answer.status
        );
        Ok(())
    }

    fn delete(&self, list: &str) -> Result<Response> {
        self.through.send(deletion(&self.through, list))
    }
}

/// An unsigned request to delete a list of objects.
fn deletion(client: &Client, list: &str) -> Request {
    client.request("POST", &format!("{BUCKET}?delete")).body(list)
}

/// A list of objects, and of versions as `key?version`.
fn list(objects: &[&str], is_quiet: bool) -> String {
    let objects = objects.iter().map(|object| match object.split_once('?') {
        Some((key, version)) => {
            format!("<Object><Key>{key}</Key><VersionId>{version}</VersionId></Object>")
        }
        None => format!("<Object><Key>{object}</Key></Object>"),
    });
    let objects = objects.collect::<Vec<_>>().concat();
    format!(
        "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{objects}<Quiet>{is_quiet}</Quiet></Delete>"
    )
}

/// The error of a denied object, whose elements are in `name`.
fn denied(name: &str) -> String {
    format!("<Error>{name}<Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
}

fn crc32(body: &str) -> String {
    let mut crc = Crc::new();
    crc.update(body.as_bytes());
    STANDARD.encode(crc.sum().to_be_bytes())
}

#[test]
fn each_object_is_decided_on_by_itself() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    for payload in PAYLOADS {
        check_mixed(&lab, payload).with_context(|| format!("{payload:?}"))?;
    }
    check_quiet(&lab).context("quiet")?;
    check_all_denied(&lab).context("all denied")?;
    check_buckets(&lab).context("buckets")?;
    check_versions(&lab).context("versions")
}

fn check_mixed(lab: &Lab, payload: Payload) -> Result<()> {
    let list = list(&["2024/a&amp;b", "2023/c", "2024/d", "2024-secret/e"], false);
    let stored = ["2024/a%26b", "2023/c", "2024/d", "2024-secret/e"];
    lab.create(&stored)?;
    let mut request = deletion(&lab.through, &list);
    if payload == Payload::Unsigned {
        request = request.header("x-amz-checksum-crc32", &crc32(&list));
    }
    let signed = lab.through.keys.sign(request, payload)?;
    let answer = signed.send(lab.through.address)?;
    let text = answer.text();
    ensure!(answer.status == 200, "{text}");
    let errors = [denied("<Key>2023/c</Key>"), denied("<Key>2024-secret/e</Key>")];
    ensure!(
        text.trim_end()
            .ends_with(&format!("{}</DeleteResult>", errors.concat())),
        "{text}"
    );
    ensure!(text.matches("<Deleted>").count() == 2, "{text}");
    for (key, status) in stored.into_iter().zip([404, 200, 404, 200]) {
        lab.check(key, status)?;
    }
    Ok(())
}

fn check_quiet(lab: &Lab) -> Result<()> {
    lab.create(&["2024/a", "2023/b"])?;
    let answer = lab.delete(&list(&["2024/a", "2023/b"], true))?;
    let text = answer.text();
    ensure!(answer.status == 200, "{text}");
    ensure!(
        text.contains(&denied("<Key>2023/b</Key>")) && !text.contains("2024/a"),
        "{text}"
    );
    lab.check("2024/a", 404)?;
    lab.check("2023/b", 200)
}

fn check_all_denied(lab: &Lab) -> Result<()> {
    lab.create(&["2023/a", "2023/b"])?;
    let answer = lab.delete(&list(&["2023/a", "2023/b"], false))?;
    ensure!(answer.status == 200, "{answer:?}");
    let errors = [denied("<Key>2023/a</Key>"), denied("<Key>2023/b</Key>")].concat();
    let text = answer.text();
    ensure!(text.ends_with(&format!("/\">{errors}</DeleteResult>")), "{text}");
    lab.check("2023/a", 200)?;
    lab.check("2023/b", 200)
}

fn check_buckets(lab: &Lab) -> Result<()> {
    let all = lab.direct.call("GET", "/")?.text();
    for name in ["photos", "photos2", "hidden"] {
        ensure!(all.contains(&format!("<Name>{name}</Name>")), "{name}: {all}");
    }
    for client in [lab.through.presigned(), lab.through.clone()] {
        let answer = client.call("GET", "/")?;
        let text = answer.text();
        ensure!(answer.status == 200, "{text}");
        ensure!(text.contains("<Name>photos</Name>"), "{text}");
        ensure!(!text.contains("photos2") && !text.contains("hidden"), "{text}");
        ensure!(text.matches("<Bucket>").count() == 1, "{text}");
    }
    Ok(())
}

fn check_versions(lab: &Lab) -> Result<()> {
    let versioning = "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
        <Status>Enabled</Status></VersioningConfiguration>";
    lab.direct.store(&format!("{BUCKET}?versioning"), versioning)?;
    let put = |key: &str| -> Result<String> {
        let answer = lab.direct.put(&format!("{BUCKET}/{key}"), key)?;
        let version = answer.header("x-amz-version-id");
        Ok(version.with_context(|| format!("{key}: {answer:?}"))?.to_owned())
    };
    let (granted, other) = (put("2024/v/a")?, put("2024/b")?);
    let objects = [format!("2024/v/a?{granted}"), format!("2024/b?{other}")];
    let answer = lab.delete(&list(&[&objects[0], &objects[1]], false))?;
    let text = answer.text();
    ensure!(answer.status == 200, "{text}");
    let error = denied(&format!("<Key>2024/b</Key><VersionId>{other}</VersionId>"));
    ensure!(text.contains(&error), "{text}");
    lab.check(&format!("2024/v/a?versionId={granted}"), 404)?;
    lab.check(&format!("2024/b?versionId={other}"), 200)
}
