//! `upstream = "self"` with virtual hosts: the store knows the key of the caller, which has no token.

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{AwsFront, Backend, Gateway};

use super::{BUCKET_HOST, LIFETIME, OTHER_REGION, REGION, launch};
use crate::it::resign::{BUCKET, Client, KeysFile, binary, caller, key_block};

#[test]
fn a_key_of_the_store_signs_for_virtual_hosts() -> Result<()> {
    if !Backend::Embedded.is_enabled()? {
        return Ok(());
    }
    let keys = caller();
    let store = Gateway::embedded(binary(), &keys, [""; 0])?;
    let address = store.store().context("no address of the store")?;
    let front = AwsFront::start(address, &keys, REGION, LIFETIME)?;
    front.accept_store_keys();
    let keys_file = KeysFile::new(&[key_block(&keys, "self", &[])])?;
    // No credentials of the gateway are needed.
    let gateway = launch(&front.url(), &keys_file, &[], &[])?;
    let client = Client::new(&keys, gateway.listen());
    Client::new(&keys, address).store(BUCKET, "")?;
    for client in [
        client.presigned(),
        client.with_virtual_host(),
        client.with_virtual_host().presigned(),
        client.clone(),
    ] {
        let target = format!("{BUCKET}/a%2Bkey");
        client.store(&target, "body")?;
        assert_eq!(client.call("GET", &target)?.text(), "body", "{client:?}");
        assert_eq!(client.call("DELETE", &target)?.status, 204, "{client:?}");
    }
    let record = front.record();
    ensure!(
        record.refusals.is_empty() && record.hosts.keys().eq([BUCKET_HOST]),
        "{record:?}"
    );

    front.move_bucket("photos", OTHER_REGION);
    client.store(&format!("{BUCKET}/empty"), "")?;
    assert_eq!(front.record().refused("PermanentRedirect"), 1);
    assert_eq!(front.issued().len(), 0);
    Ok(())
}
