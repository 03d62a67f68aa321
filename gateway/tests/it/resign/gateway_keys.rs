//! `upstream = "gateway"` in front of a real store, which knows none of the callers.

use anyhow::{Result, ensure};
use pushdown_testkit::{Backend, Gateway, Keys, Store};

use super::{BUCKET, Client, Grant, KeysFile, binary, error_of, key_block, launch, trainer};

const HIDDEN: &str = "/hidden";

/// A store with two buckets, and a gateway with a key that may do something in one of them.
struct Lab {
    direct: Client,
    through: Client,
    _gateway: Gateway,
    _store: Store,
    _keys_file: KeysFile,
}

impl Lab {
    fn new(grants: &[Grant]) -> Result<Self> {
        let (store, keys) = (Backend::Embedded.start(binary())?, trainer());
        let keys_file = KeysFile::new(&[key_block(&keys, "gateway", grants)])?;
        let gateway = launch(store.address, &store.keys, &keys_file, &[])?;
        let lab = Self {
            direct: Client::new(&store.keys, store.address),
            through: Client::new(&keys, gateway.listen()),
            _gateway: gateway,
            _store: store,
            _keys_file: keys_file,
        };
        for bucket in [BUCKET, HIDDEN] {
            lab.direct.store(bucket, "")?;
            for key in ["2024/a", "2024/b", "2023/a"] {
                lab.direct.store(&format!("{bucket}/{key}"), key)?;
            }
        }
        Ok(lab)
    }

    /// Deletes two objects in one request.
    fn delete(&self, keys: [&str; 2]) -> Result<u16> {
        let [first, second] = keys;
        let list = format!(
            "<Delete><Object><Key>{first}</Key></Object><Object><Key>{second}</Key></Object></Delete>"
        );
        let request = self
            .through
            .request("POST", &format!("{BUCKET}?delete"))
            .body(list);
        Ok(self.through.send(request)?.status)
    }

    fn status(&self, key: &str) -> Result<u16> {
        Ok(self.direct.call("GET", &format!("{BUCKET}/{key}"))?.status)
    }
}

#[test]
fn a_key_that_the_store_does_not_know_has_the_rights_of_its_grants() -> Result<()> {
    if !Backend::Embedded.is_enabled()? {
        return Ok(());
    }
    let lab = Lab::new(&[Grant::new("photos", "2024/", &["read", "write"])])?;
    let target = format!("{BUCKET}/2024/a");
    let stranger = Client::new(&trainer(), lab.direct.address);
    assert_eq!(
        stranger.call("GET", &target)?.status,
        403,
        "the store knows the key"
    );
    for client in [
        lab.through.presigned(),
        lab.through.with_virtual_host(),
        lab.through.clone(),
    ] {
        assert_eq!(client.call("GET", &target)?.body, b"2024/a");
        let answer = client.put(&format!("{BUCKET}/2024/new"), "new")?;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert_eq!(lab.status("2024/new")?, 200);
    // The secret of the store is not one of the gateway.
    let keys = Keys::new(&lab.direct.keys.access, &lab.direct.keys.secret);
    let answer = Client::new(&keys, lab.through.address).call("GET", &target)?;
    assert_eq!(error_of(&answer), (403, "InvalidAccessKeyId".to_owned()));
    // Whether a bucket or an object exists is not said.
    for target in [
        "/hidden/2024/a",
        "/hidden/2024/none",
        "/nowhere/2024/a",
        "/photos/none",
    ] {
        let answer = lab.through.call("GET", target)?;
        assert_eq!(error_of(&answer), (403, "AccessDenied".to_owned()), "{target}");
        let message = answer.element("Message");
        assert_eq!(message.as_deref(), Some("Access Denied"), "{target}");
    }
    Ok(())
}

#[test]
fn no_object_without_a_grant_is_deleted_among_others() -> Result<()> {
    if !Backend::Embedded.is_enabled()? {
        return Ok(());
    }
    let lab = Lab::new(&[Grant::new("photos", "2024/", &["delete", "versions"])])?;
    lab.delete(["2024/a", "2023/a"])?;
    assert_eq!(lab.status("2023/a")?, 200);
    let lab = Lab::new(&[Grant::new("photos", "", &["delete", "versions"])])?;
    assert_eq!(lab.delete(["2024/a", "2023/a"])?, 200);
    for (key, status) in [("2024/a", 404), ("2023/a", 404), ("2024/b", 200)] {
        assert_eq!(lab.status(key)?, status, "{key}");
    }
    Ok(())
}

#[test]
fn buckets_without_a_grant_are_not_listed() -> Result<()> {
    if !Backend::Embedded.is_enabled()? {
        return Ok(());
    }
    let lab = Lab::new(&[Grant::new("photos", "", &["list", "read"])])?;
    let all = lab.direct.call("GET", "/")?.text();
    ensure!(all.contains("hidden"), "{all}");
    let answer = lab.through.call("GET", "/")?.text();
    ensure!(
        answer.contains("photos") && !answer.contains("hidden"),
        "{answer}"
    );
    let answer = lab.through.call("GET", HIDDEN)?;
    assert_eq!(error_of(&answer), (403, "AccessDenied".to_owned()));
    Ok(())
}
