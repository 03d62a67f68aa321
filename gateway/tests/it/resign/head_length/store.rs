//! What the store gets for a HEAD with a pipeline.

use std::io;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Exchange, Gateway, ScriptedOrigin, photos};

use super::{PHOTO, RESIZE, ask};
use crate::it::binary;
use crate::it::resign::{Client, EVERYTHING, KeysFile, caller, identity, key_block, launch, trainer};

/// Answers a GET with an object, and a HEAD with its head.
fn answer(exchange: &mut Exchange, object: &[u8]) -> io::Result<()> {
    let is_head = exchange.head.starts_with("HEAD ");
    exchange.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"1\"\r\n\r\n",
        object.len()
    ))?;
    exchange.send(if is_head { &[] } else { object })
}

fn store() -> Result<ScriptedOrigin> {
    let (_, photo) = photos()?.into_iter().next().context("no photos")?;
    ScriptedOrigin::start(move |exchange| answer(exchange, &photo))
}

/// With both kinds of keys the gateway signs the GET whose object the value is computed from.
#[test]
fn the_store_gets_a_signed_get() -> Result<()> {
    let origin = store()?;
    for (keys, upstream, signer) in [(trainer(), "gateway", identity()), (caller(), "self", caller())] {
        let keys_file = KeysFile::new(&[key_block(&keys, upstream, &[EVERYTHING])])?;
        let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
        let client = Client::new(&keys, gateway.listen());
        for client in [client.presigned(), client.clone()] {
            let answer = ask(&client, "HEAD", PHOTO, RESIZE, &[])?;
            ensure!(answer.status == 200, "{upstream}: {answer:?}");
            ensure!(
                answer.header("content-length").is_some(),
                "{upstream}: {answer:?}"
            );
            let head = origin.requests().pop().context("no request")?;
            ensure!(head.starts_with("GET "), "{upstream}: {head}");
            ensure!(
                head.contains(&format!("Credential={}/", signer.access)),
                "{upstream}: {head}"
            );
        }
        // Rows are not computed for a HEAD.
        assert_eq!(ask(&client, "HEAD", PHOTO, "select()", &[])?.status, 200);
        let head = origin.requests().pop().context("no request")?;
        ensure!(head.starts_with("HEAD "), "{upstream}: {head}");
    }
    Ok(())
}

/// The signature of a HEAD authorizes no GET.
#[test]
fn in_forward_mode_the_store_gets_the_head() -> Result<()> {
    let origin = store()?;
    let gateway = Gateway::launch(binary(), [format!("--upstream=http://{}", origin.address())])?;
    let client = Client::new(&caller(), gateway.listen());
    let answer = ask(&client, "HEAD", PHOTO, RESIZE, &[])?;
    assert_eq!((answer.status, answer.header("content-length")), (200, None));
    let head = origin.requests().pop().context("no request")?;
    ensure!(head.starts_with("HEAD "), "{head}");
    Ok(())
}
