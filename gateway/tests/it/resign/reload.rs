//! A keys file that is replaced while the gateway runs: new requests follow it within 10 s.

use std::time::Duration;

use anyhow::{Result, ensure};
use pushdown_testkit::{Keys, ScriptedOrigin, eventually};

use super::{
    BUCKET, Client, EVERYTHING, Grant, KeysFile, accept, error_of, identity, key_block, launch, trainer,
};

/// Longest wait until new requests follow the file.
const LIMIT: Duration = Duration::from_secs(10);

fn other() -> Keys {
    Keys::new("TESTOTHERKEY0001", "secret-of-another-key")
}

/// Waits until a GET by this client is answered with the status and the code; empty for an object.
fn wait_for(client: &Client, status: u16, code: &str) -> Result<()> {
    let expected = (status, code.to_owned());
    eventually(
        &format!("{} gets {expected:?}", client.keys.access),
        LIMIT,
        || {
            let answer = client.call("GET", &format!("{BUCKET}/2024/a"))?;
            Ok((error_of(&answer) == expected).then_some(()))
        },
    )
}

#[test]
fn new_requests_follow_the_keys_file() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let block = |keys: &Keys| key_block(keys, "gateway", &[EVERYTHING]);
    let keys_file = KeysFile::new(&[block(&trainer()), block(&other())])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = |keys: &Keys| Client::new(keys, gateway.listen());
    for keys in [trainer(), other()] {
        wait_for(&client(&keys), 200, "")?;
    }

    // Another secret, which the old one outlives, and a key that is removed.
    let rotated = Keys::new(&trainer().access, "new-secret-of-the-trainer");
    let previous = format!(
        "[[key]]\naccess-key = {:?}\nsecret = {:?}\nprevious-secret = {:?}\nupstream = \"gateway\"\n\n",
        rotated.access,
        rotated.secret,
        trainer().secret
    );
    keys_file.write(&(previous + &EVERYTHING.block()))?;
    wait_for(&client(&other()), 403, "InvalidAccessKeyId")?;
    for keys in [&rotated, &trainer()] {
        let answer = client(keys).call("GET", &format!("{BUCKET}/2024/a"))?;
        ensure!(answer.status == 200, "{keys:?}: {answer:?}");
    }

    // The old secret ends, and so do the grants.
    keys_file.write(&key_block(
        &rotated,
        "gateway",
        &[Grant::new("photos", "2023/", &["read"])],
    ))?;
    wait_for(&client(&trainer()), 403, "SignatureDoesNotMatch")?;
    let answer = client(&rotated).call("GET", &format!("{BUCKET}/2024/a"))?;
    assert_eq!(error_of(&answer), (403, "AccessDenied".to_owned()));

    // A removed key comes back.
    keys_file.write(&[block(&trainer()), block(&other())].concat())?;
    for keys in [other(), trainer()] {
        wait_for(&client(&keys), 200, "")?;
    }
    Ok(())
}

#[test]
fn the_keys_in_use_stay_while_the_file_has_faults() -> Result<()> {
    let origin = ScriptedOrigin::start(accept)?;
    let block = key_block(&trainer(), "gateway", &[EVERYTHING]);
    let keys_file = KeysFile::new(std::slice::from_ref(&block))?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = Client::new(&trainer(), gateway.listen());
    keys_file.write(&block.replace("upstream", "upstraem"))?;
    eventually("the faults are logged", LIMIT, || {
        Ok(gateway.log()?.contains("upstraem").then_some(()))
    })?;
    assert_eq!(client.call("GET", &format!("{BUCKET}/2024/a"))?.status, 200);
    keys_file.write(&key_block(&other(), "gateway", &[EVERYTHING]))?;
    wait_for(&Client::new(&other(), gateway.listen()), 200, "")?;
    wait_for(&client, 403, "InvalidAccessKeyId")
}
