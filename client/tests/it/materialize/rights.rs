//! Rights: at a gateway in re-sign mode its grants decide on what a part reads and writes.

use std::{ffi::OsStr, fs, io::Write as _, os::unix::fs::OpenOptionsExt as _};

use pushdown_testkit::{Gateway, find_gateway};

use super::*;

const KEY: (&str, &str) = ("TESTREADER000001", "secret-of-a-reader");

/// A gateway that signs again, and its grants for one key: actions on the source, and on the target `out/`.
struct Resigning {
    gateway: Gateway,
    _folder: tempfile::TempDir,
}

impl Resigning {
    fn launch(world: &World, on_source: &str, on_target: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let grant = |prefix: &str, actions: &str| {
            format!(
                "[[key.grant]]\nbucket = {BUCKET:?}\nprefix = {prefix:?}\nallow = [{actions}]\npipelines = {}\n\n",
                actions.contains("read")
            )
        };
        let (access_key, secret) = KEY;
        let key =
            format!("[[key]]\naccess-key = {access_key:?}\nsecret = {secret:?}\nupstream = \"gateway\"\n\n");
        let text = format!("{key}{}{}", grant(SOURCE, on_source), grant("out/", on_target));
        let mut file = fs::File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let flags = [
            format!("--upstream=http://{}", world.gateway.store().unwrap()),
            format!("--resign-keys={}", path.display()),
        ];
        let environment = [
            ("AWS_ACCESS_KEY_ID", OsStr::new(ACCESS_KEY)),
            ("AWS_SECRET_ACCESS_KEY", OsStr::new(SECRET_KEY)),
            ("AWS_SESSION_TOKEN", OsStr::new("")),
        ];
        let gateway = Gateway::launch_with(&find_gateway().unwrap(), flags, &environment).unwrap();
        Self {
            gateway,
            _folder: folder,
        }
    }

    fn store(&self) -> Store {
        let endpoint = format!("http://{}", self.gateway.listen());
        run(settings(&endpoint)
            .credentials(Credentials::new(KEY.0, KEY.1))
            .build())
        .unwrap()
    }
}

#[test]
fn a_key_needs_grants_to_read_and_to_write() {
    let world = World::with_objects(classified(6));
    let all = "\"list\", \"read\", \"write\", \"delete\"";
    let resigning = Resigning::launch(&world, "\"list\", \"read\"", all);
    let written = done(job(&resigning.store(), PIPELINE, PartFormat::Wds, "out/"));
    assert_eq!((written.samples, written.parts_written), (6, 2));
    let store = store(&world);
    done(job(&store, PIPELINE, PartFormat::Wds, "expected/"));
    assert_eq!(objects_under(&store, "out/"), objects_under(&store, "expected/"));
}

#[test]
fn what_a_key_may_not_do_is_named() {
    let world = World::with_objects(classified(6));
    for (on_source, on_target, expected) in [
        ("\"list\"", "\"list\", \"read\", \"write\"", "train/cat/000"),
        ("\"list\", \"read\"", "\"list\", \"read\"", "out/_recipe.json"),
    ] {
        let resigning = Resigning::launch(&world, on_source, on_target);
        let error = refused(job(&resigning.store(), PIPELINE, PartFormat::Wds, "out/")).to_string();
        assert!(
            error.contains("AccessDenied") && error.contains(expected),
            "expected {expected}, found {error}"
        );
    }
    assert!(objects_under(&store(&world), "out/").is_empty());
}
