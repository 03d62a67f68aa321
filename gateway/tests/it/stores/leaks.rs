//! Presigned queries and session tokens are in requests to the store, and nowhere else.

use anyhow::{Result, ensure};

use super::*;

const TOKEN: &str = "FwoGZXIvYXdzEXAMPLETOKENOFASESSION";

#[test]
fn signatures_and_tokens_are_not_shown() -> Result<()> {
    let lab = StoresLab::new(
        Style::VirtualHost,
        &["--log-level=trace", MEMORY, "--auth-cache-ttl=60s"],
    )?;
    lab.put(KEY, "\"1\"", photo(400, 300, "jpeg"));
    lab.put("broken.jpg", "\"1\"", "no photo");
    lab.store.forbid("adversary", &lab.path(KEY));
    let mut answers = Vec::new();
    for (access_key, key) in [
        ("first", KEY),
        ("first", KEY),
        ("first", "broken.jpg"),
        ("first", "missing.jpg"),
        ("adversary", KEY),
    ] {
        let mut request = lab.request(access_key, key, PIPELINE);
        request.target = format!("{}&X-Amz-Security-Token={TOKEN}", request.target);
        answers.push(request.send(lab.gateway.listen())?);
        let mut batch = lab.batch(access_key, &[key, key], PIPELINE)?;
        batch.presign = Some(format!("{}&X-Amz-Security-Token={TOKEN}", presign(access_key)));
        answers.push(lab.post(&batch)?);
        // Refused: by its text, by its store, by its address, and by what it is.
        batch.samples[0].path.push_str("?x");
        answers.push(lab.post(&batch)?);
        let port = lab.store.address().port();
        for stated in [
            format!("http://photos.localhost:{port}/?X-Amz-Security-Token={TOKEN}"),
            format!("http://{TOKEN}@photos.localhost:{port}"),
            "http://other.example".to_owned(),
            format!("http://photos.localhost:{port}"),
        ] {
            let mut refused = request.clone();
            for (name, value) in &mut refused.headers {
                if name == STORE {
                    stated.clone_into(value);
                }
            }
            answers.push(refused.send(lab.gateway.listen())?);
        }
        let mut plain = request.clone();
        plain.headers.retain(|(name, _)| name != "x-pushdown-pipeline");
        answers.push(plain.send(lab.gateway.listen())?);
    }
    ensure!(lab.store.requests().iter().any(|head| head.contains(TOKEN)));
    let log = lab.gateway.log()?;
    ensure!(log.contains("StoreNotAllowed"), "refusals are not logged: {log}");
    let pages = ["/metrics", "/status.json", "/"].map(|path| lab.gateway.page(path));
    let pages = pages.into_iter().map(|page| Ok(page?.text()));
    let texts = pages.chain([Ok(log)]).collect::<Result<Vec<_>>>()?;
    let bodies = answers.iter().map(Response::text);
    for text in texts.into_iter().chain(bodies) {
        for hidden in [
            TOKEN,
            GOOD_SIGNATURE,
            "X-Amz-Signature",
            "X-Amz-Credential",
            "aws4_request",
        ] {
            ensure!(!text.contains(hidden), "{hidden} is shown: {text}");
        }
    }
    Ok(())
}
