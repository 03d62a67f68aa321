//! A store that names one region after another, or invalid ones, and one whose refusals are for the caller.

use std::io;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{AwsFront, Exchange, Gateway, Response, ScriptedOrigin};

use super::{CREDENTIALS_URL, LIFETIME, REGION, check_slow_down, launch};
use crate::it::resign::{BUCKET, Client, EVERYTHING, KeysFile, error_of, identity, key_block, trainer};

/// A scripted store, and a gateway in front of it.
struct Lab {
    origin: ScriptedOrigin,
    client: Client,
    _gateway: Gateway,
    _keys_file: KeysFile,
}

impl Lab {
    /// Credentials are those of the environment, or those of a front's endpoint.
    fn start(
        credentials: Option<&AwsFront>,
        script: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let origin = ScriptedOrigin::start(script)?;
        let url = format!("http://s3.{REGION}.localhost:{}", origin.address().port());
        let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
        let variables = match credentials {
            Some(front) => vec![(CREDENTIALS_URL, front.credentials_url())],
            None => vec![
                ("AWS_ACCESS_KEY_ID", identity().access),
                ("AWS_SECRET_ACCESS_KEY", identity().secret),
            ],
        };
        let gateway = launch(&url, &keys_file, &variables, &[])?;
        Ok(Self {
            client: Client::new(&trainer(), gateway.listen()),
            origin,
            _gateway: gateway,
            _keys_file: keys_file,
        })
    }

    /// The answer to a request, and the heads that the store got for it.
    fn call(&self, method: &str) -> Result<(Response, Vec<String>)> {
        let earlier = self.origin.requests().len();
        let answer = self.client.call(method, &format!("{BUCKET}/k"))?;
        Ok((answer, self.origin.requests().split_off(earlier)))
    }
}

/// The `Host` of a request.
fn host(head: &str) -> Result<String> {
    let head = head.to_ascii_lowercase();
    let (_, rest) = head.split_once("\r\nhost: ").context("no Host")?;
    Ok(rest.split(['\r', ':']).next().unwrap_or_default().to_owned())
}

/// Sends a refusal without a document.
fn refuse(exchange: &mut Exchange, status: &str, headers: &str) -> io::Result<()> {
    exchange.send(format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\n\r\n"))
}

#[test]
fn a_request_is_signed_again_for_another_region_at_most_once() -> Result<()> {
    let lab = Lab::start(None, |exchange| {
        let number = exchange.earlier_requests;
        let headers =
            format!("x-amz-bucket-region: region-{number}\r\nLocation: http://192.0.2.1/elsewhere\r\n");
        let statuses = [
            "301 Moved Permanently",
            "307 Temporary Redirect",
            "308 Permanent Redirect",
            "400 Bad Request",
        ];
        refuse(exchange, statuses[number / 2 % 4], &headers)
    })?;
    for round in 0..4 {
        let (answer, heads) = lab.call("GET")?;
        check_slow_down(&answer)?;
        ensure!(!answer.text().contains("192.0.2.1"), "{answer:?}");
        assert_eq!(heads.len(), 2, "round {round}: {heads:?}");
        assert_eq!(
            host(&heads[1])?,
            format!("photos.s3.region-{}.localhost", 2 * round)
        );
    }
    Ok(())
}

/// A region becomes a part of the host, so a name that could lead to another host is invalid.
#[test]
fn invalid_region_names_are_ignored() -> Result<()> {
    const REGIONS: [&str; 8] = [
        "evil.example",
        "evil/",
        "evil:80",
        "user@evil",
        "evil#",
        "-evil",
        "eu central",
        "a-label-of-more-than-sixty-three-characters-is-no-label-of-a-host-name",
    ];
    let lab = Lab::start(None, |exchange| {
        let region = REGIONS[exchange.earlier_requests % REGIONS.len()];
        refuse(
            exchange,
            "301 Moved Permanently",
            &format!("x-amz-bucket-region: {region}\r\n"),
        )
    })?;
    for region in REGIONS {
        let (answer, heads) = lab.call("GET")?;
        let expected = (502, "OriginUnavailable".to_owned());
        assert_eq!(error_of(&answer), expected, "{region}: {answer:?}");
        ensure!(
            !format!("{answer:?}").contains("evil"),
            "{region} is shown: {answer:?}"
        );
        assert_eq!(heads.len(), 1, "{region}: {heads:?}");
        assert_eq!(host(&heads[0])?, "photos.s3.us-east-1.localhost", "{region}");
    }
    Ok(())
}

/// A refusal that names the region of the request, or none, sends it nowhere else.
#[test]
fn other_redirections_are_not_followed() -> Result<()> {
    let lab = Lab::start(None, |exchange| {
        let region = if exchange.earlier_requests.is_multiple_of(2) {
            "x-amz-bucket-region: us-east-1\r\n"
        } else {
            ""
        };
        let location = "Location: http://192.0.2.1/elsewhere\r\n";
        refuse(exchange, "307 Temporary Redirect", &format!("{region}{location}"))
    })?;
    for method in ["GET", "GET", "HEAD", "HEAD"] {
        let (answer, heads) = lab.call(method)?;
        check_slow_down(&answer).with_context(|| method.to_owned())?;
        assert_eq!(heads.len(), 1, "{method}: {heads:?}");
    }
    Ok(())
}

#[test]
fn refusals_of_the_callers_request_are_forwarded() -> Result<()> {
    let document = "<Error><Code>InvalidArgument</Code><ArgumentName>partNumber</ArgumentName></Error>";
    let lab = Lab::start(None, move |exchange| {
        if exchange.head.starts_with("HEAD ") {
            return refuse(exchange, "400 Bad Request", "");
        }
        exchange.answer("400 Bad Request", document)
    })?;
    let (answer, heads) = lab.call("GET")?;
    assert_eq!(error_of(&answer), (400, "InvalidArgument".to_owned()));
    assert_eq!(heads.len(), 1, "{heads:?}");
    // The credentials have no token that could have ended.
    let (answer, heads) = lab.call("HEAD")?;
    assert_eq!((answer.status, heads.len()), (400, 1), "{heads:?}");
    Ok(())
}

/// HEAD has no document, so the reason may be the token or the request: the gateway renews the session once.
#[test]
fn a_refusal_of_head_without_a_reason_renews_the_session_once() -> Result<()> {
    let store = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", ""))?;
    let front = AwsFront::start(store.address(), &identity(), REGION, LIFETIME)?;
    let lab = Lab::start(Some(&front), |exchange| refuse(exchange, "400 Bad Request", ""))?;
    let (answer, heads) = lab.call("HEAD")?;
    // The second refusal is for the caller.
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(heads.len(), 2, "{heads:?}");
    assert_eq!(front.issued().len(), 2);
    for (head, keys) in heads.iter().zip(front.issued()) {
        ensure!(head.contains(&keys.access), "{head}");
    }
    Ok(())
}
