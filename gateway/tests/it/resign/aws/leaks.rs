//! Nothing of a session leaves the gateway, but in requests to the store: no token, secret, access key or signature.

use std::fs;

use anyhow::{Result, ensure};
use pushdown_testkit::{Backend, CredentialsAnswer, MovedAnswer, Response, photos};

use super::{LIFETIME, Lab};
use crate::it::resign::{BUCKET, error_of, leaks::signatures, pipelines};

/// Codes of the store that are about the gateway's signature, or about the place of a bucket.
const CODES: [&str; 5] = [
    "AuthorizationHeaderMalformed",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "PermanentRedirect",
    "TemporaryRedirect",
];

/// A gateway, and all that it has answered.
struct Run {
    lab: Lab,
    answers: Vec<Response>,
}

impl Run {
    /// Sends requests of every kind.
    fn requests(&mut self, bucket: &str) -> Result<()> {
        for (_, client) in self.lab.clients() {
            let pipeline = client
                .request("GET", &format!("{bucket}/0"))
                .header("x-pushdown-pipeline", pipelines::RESIZE);
            let list = "<Delete><Object><Key>new</Key></Object></Delete>";
            let requests = [
                client.request("GET", &format!("{bucket}/0")),
                client.request("HEAD", &format!("{bucket}/0")),
                client.request("GET", &format!("{bucket}/missing")),
                client.request("GET", bucket),
                client.request("GET", "/"),
                client.request("PUT", &format!("{bucket}/new")).body("new"),
                client.request("POST", &format!("{bucket}?delete")).body(list),
                client.request("POST", &format!("{bucket}/parts?uploads")),
                pipeline,
            ];
            for request in requests {
                let answer = client.send(request)?;
                let (status, code) = error_of(&answer);
                ensure!(status != 403 && !CODES.contains(&code.as_str()), "{answer:?}");
                self.answers.push(answer);
            }
        }
        Ok(())
    }

    /// A request that the store refuses.
    fn read_in_vain(&mut self) -> Result<()> {
        let answer = self.lab.through.call("GET", &format!("{BUCKET}/0"))?;
        ensure!([500, 502, 503].contains(&answer.status), "{answer:?}");
        self.answers.push(answer);
        Ok(())
    }

    /// Requests while the store and the credentials endpoint work, and while they do not.
    fn run(&mut self) -> Result<()> {
        self.requests(BUCKET)?;
        for (number, moved) in [MovedAnswer::Redirect, MovedAnswer::Malformed]
            .into_iter()
            .enumerate()
        {
            let bucket = format!("/elsewhere-{number}");
            self.lab.front.set_moved_answer(moved);
            self.lab.create_elsewhere(&bucket)?;
            self.requests(&bucket)?;
        }
        self.lab.front.set_newly_created("photos", true);
        self.requests(BUCKET)?;
        self.lab.front.set_newly_created("photos", false);
        self.lab.front.revoke_sessions();
        self.requests(BUCKET)?;
        for answer in [CredentialsAnswer::Html, CredentialsAnswer::Failure] {
            self.lab.front.set_credentials_answer(answer);
            self.lab.front.revoke_sessions();
            self.read_in_vain()?;
        }
        self.lab.front.forget_sessions();
        self.read_in_vain()?;
        Ok(())
    }
}

#[test]
fn nothing_of_a_session_is_shown() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let audit = folder.path().join("audit.jsonl");
    let flag = format!("--audit-log={}", audit.display());
    let flags = ["--log-level=debug", flag.as_str()];
    let Some(lab) = Lab::start_with(Backend::Embedded, LIFETIME, &flags)? else {
        return Ok(());
    };
    if let Some(photo) = photos()?.into_values().next() {
        lab.direct.store(&format!("{BUCKET}/0"), photo)?;
    }
    let mut run = Run {
        lab,
        answers: Vec::new(),
    };
    run.run()?;

    let sent = run.lab.front.requests();
    let sessions = run.lab.front.issued();
    let mut hidden: Vec<&str> = sent.iter().flat_map(|head| signatures(head)).collect();
    for keys in &sessions {
        hidden.extend([keys.access.as_str(), keys.secret.as_str()]);
        hidden.extend(keys.token.as_deref());
    }
    ensure!(
        sessions.len() >= 2 && hidden.len() > 100,
        "{} sessions, {} texts",
        sessions.len(),
        hidden.len()
    );
    let log = run.lab.gateway.log()?;
    let audit = fs::read_to_string(&audit)?;
    ensure!(audit.lines().count() > 100, "requests have no lines: {audit}");
    let pages = ["/metrics", "/status.json", "/"]
        .iter()
        .map(|path| Ok(run.lab.gateway.page(path)?.text()));
    let mut shown = pages.collect::<Result<Vec<_>>>()?;
    shown.extend([log, audit]);
    let answers = run.answers.iter();
    shown.extend(answers.map(|answer| format!("{:?} {}", answer.headers, answer.text())));
    let redirect_target = run.lab.front.redirect_target().to_string();
    for text in &shown {
        for hidden in hidden.iter().chain([&redirect_target.as_str()]) {
            ensure!(!text.contains(hidden), "{hidden} is in {text}");
        }
    }
    assert_eq!(run.lab.front.redirected_connections(), 0);
    Ok(())
}
