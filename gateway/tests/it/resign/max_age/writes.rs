//! A write through the gateway ends what was confirmed of its object at once.

use anyhow::{Context as _, Result, ensure};

use super::{HOUR, KEY, Lab, ask, error_of, target, warm};
use crate::it::resign::{BUCKET, Client};

/// A write through the gateway by a client, of the second photo or of none.
type Write = fn(&Lab, &Client) -> Result<()>;

/// Each leaves the object replaced or deleted.
const WRITES: [(&str, Write); 5] = [
    ("PutObject", put),
    ("CopyObject", copy),
    ("CompleteMultipartUpload", complete),
    ("DeleteObject", delete),
    ("DeleteObjects", delete_many),
];

fn put(lab: &Lab, client: &Client) -> Result<()> {
    client.store(&target(), lab.photos[1].clone())
}

fn copy(lab: &Lab, client: &Client) -> Result<()> {
    let source = format!("{BUCKET}/2024/source.jpg");
    lab.direct.store(&source, lab.photos[1].clone())?;
    let request = client.request("PUT", &target());
    let answer = client.send(request.header("x-amz-copy-source", &source))?;
    ensure!(answer.status == 200, "{}", answer.text());
    Ok(())
}

fn complete(lab: &Lab, client: &Client) -> Result<()> {
    let key = target();
    let created = client.call("POST", &format!("{key}?uploads"))?;
    let id = created.element("UploadId").with_context(|| created.text())?;
    let part = client.put(
        &format!("{key}?partNumber=1&uploadId={id}"),
        lab.photos[1].clone(),
    )?;
    let etag = part.header("etag").with_context(|| part.text())?;
    let list = format!(
        "<CompleteMultipartUpload><Part><ETag>{etag}</ETag><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>"
    );
    let request = client.request("POST", &format!("{key}?uploadId={id}")).body(list);
    let answer = client.send(request)?;
    ensure!(answer.status == 200, "{}", answer.text());
    Ok(())
}

fn delete(_lab: &Lab, client: &Client) -> Result<()> {
    let answer = client.call("DELETE", &target())?;
    ensure!(answer.status == 204, "{}", answer.text());
    Ok(())
}

fn delete_many(_lab: &Lab, client: &Client) -> Result<()> {
    let list = format!("<Delete><Object><Key>{KEY}</Key></Object></Delete>");
    let request = client.request("POST", &format!("{BUCKET}?delete")).body(list);
    let answer = client.send(request)?;
    ensure!(answer.status == 200, "{}", answer.text());
    Ok(())
}

#[test]
fn a_write_through_the_gateway_shows_at_once() -> Result<()> {
    let Some(lab) = Lab::start(&[HOUR])? else {
        return Ok(());
    };
    for client in [lab.client.clone(), lab.client.with_virtual_host()] {
        for (name, write) in WRITES {
            lab.store_photo(0)?;
            // What the gateway knows from the round before is ended by a write that changes nothing.
            client.store(&target(), lab.photos[0].clone())?;
            let value = warm(&client)?;
            let (_, cost) = lab.cost(|| ask(&client, "GET"))?;
            assert_eq!(cost, 0, "{name}");
            write(&lab, &client).context(name)?;
            let answer = ask(&client, "GET")?;
            if name.starts_with("Delete") {
                assert_eq!(error_of(&answer), (404, "NoSuchKey".to_owned()), "{name}");
            } else {
                ensure!(answer.status == 200, "{name}: {}", answer.text());
                ensure!(
                    answer.header("etag") != value.header("etag"),
                    "{name}: {answer:?}"
                );
                ensure!(answer.body != value.body, "{name}: the old value");
            }
        }
    }
    Ok(())
}

/// Writes of other objects change nothing.
#[test]
fn a_write_ends_nothing_of_other_objects() -> Result<()> {
    let Some(lab) = Lab::start(&[HOUR])? else {
        return Ok(());
    };
    warm(&lab.client)?;
    lab.client.store(&format!("{BUCKET}/2024/other.jpg"), "other")?;
    let (answer, cost) = lab.cost(|| ask(&lab.client, "GET"))?;
    assert_eq!((answer.header("x-pushdown-cache"), cost), (Some("memory"), 0));
    Ok(())
}
